"""The cost of `ringleader watch` beside many groups that commit, on the daemon and on Apache Kafka.

Each group has two members, each with a partition; commits come at a fixed rate, in turn from all members, and
stay behind the end of the topic. The watcher has its defaults, the page included, and counts once it has read
what was there before.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.brokers import await_group, brokers
from bench.commits import ERROR_AT, commits_of
from bench.frames import Frame, deal, write_frames
from bench.plan import KAFKA, RINGLEADER, TOPIC, Plan
from bench.processes import (
    Pins,
    cpu_seconds,
    daemon,
    finish_load,
    pinned,
    resident_bytes,
    start_load,
    work_dir,
)
from bench.report import Goal, print_goals, save, say, table
from ringleader import SyncProducer
from tests.support.command import command_line
from tests.support.ports import free_address
from tests.support.rawclient import Address, address_of
from tests.support.rawgroup import form_group
from tests.support.tied import tied

MEMBERS = 2
RECORDS = 2_000
"""In each partition, ahead of all commits."""
_AT_ONCE = 16
"""Groups that form: most of that is waiting."""
CORES, MIB = 0.1, 200.0
"""The goals, beside the fewest groups."""
COLUMNS = ("cores", "mib", "commits_per_s")


def _groups(address: Address, count: int) -> list[Frame]:
    """Commits of the members of that many groups, which are formed first."""
    with SyncProducer(f"{address[0]}:{address[1]}") as producer:
        for number in range(RECORDS):
            for partition in range(MEMBERS):
                producer.send(TOPIC, b"%d" % number, partition=partition)
        producer.flush()
    await_group(address, "first")

    def formed(number: int) -> list[Frame]:
        group = form_group(address, f"watched-{number}", MEMBERS)
        group.close()
        return commits_of(group)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [frame for frames in pool.map(formed, range(count)) for frame in frames]


@contextlib.contextmanager
def _watcher(address: Address, directory: Path, cpu: int) -> Iterator[int]:
    """Its process id, once it has found the groups; ended by SIGTERM."""
    command = command_line(
        "watch", "--bootstrap-server", f"{address[0]}:{address[1]}", "--page", free_address()
    )
    log = directory / "watch.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            pinned(cpu, [*command, "--history", str(directory / "history.sqlite")]),
            stdout=subprocess.DEVNULL,
            stderr=written,
        )
    tied(process)
    try:
        while "watching" not in log.read_text():
            if process.poll() is not None:
                raise RuntimeError(f"the watcher ended: {log.read_text()}")
            time.sleep(0.1)  # it writes a line, and wakes nobody
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _measured(address: Address, groups: int, directory: Path, plan: Plan, pins: Pins) -> dict[str, float]:
    frames = write_frames(directory / "frames", deal(_groups(address, groups), plan.connections))
    options = {
        "host": address[0],
        "port": address[1],
        "frames": frames,
        "depth": 64,
        "error_at": ERROR_AT,
        "rate": plan.watched_commits_per_s,
        "warmup": plan.watched_warmup_s,
        "seconds": plan.watched_s,
    }
    with _watcher(address, directory, pins.load) as pid:
        load = start_load(pins.load, "load", options)
        time.sleep(plan.watched_warmup_s)
        began_s, used_s = time.monotonic(), cpu_seconds(pid)
        time.sleep(plan.watched_s)
        cores = (cpu_seconds(pid) - used_s) / (time.monotonic() - began_s)
        memory = resident_bytes(pid) / 2**20
        done = finish_load(load)
    if done["errors"]:
        raise RuntimeError(f"commits were answered with errors: {done['errors']}")
    rate = done["answers"] / done["seconds"]
    return dict(zip(COLUMNS, (cores, memory, rate), strict=True))


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes watching.json, returns its content."""
    pins = Pins.choose()
    say(f"watching: {plan.watched_commits_per_s:,} commits a second")
    results: dict[str, dict[str, dict[str, float]]] = {}
    about: dict[str, dict[str, str]] = {}
    for groups in plan.watched_groups:
        measured = results[str(groups)] = {}
        with pins.aside(), work_dir(plan.data_dir) as directory:
            with daemon(directory, pins.server, topics=[f"{TOPIC}:{MEMBERS}"]) as server:
                address = address_of(server.bootstrap)
                measured[RINGLEADER] = _measured(address, groups, directory, plan, pins)
            with brokers(
                [name for name in plan.brokers if name == KAFKA],
                directory,
                pins.server,
                partitions=MEMBERS,
                warmup_s=0,
                jvm=plan.jvm,
            ) as others:
                about = others.to_dict()
                for name, broker in others.running.items():
                    (place := directory / name).mkdir()
                    measured[name] = _measured(broker.address, groups, place, plan, pins)
    columns = ["groups, server", "thousandths of a core", "MiB", "commits per second"]
    rows = [
        [f"{int(groups):,}, {name}", one["cores"] * 1000, one["mib"], one["commits_per_s"]]
        for groups, measured in results.items()
        for name, one in measured.items()
    ]
    table("The cost of a watcher", columns, rows)
    fewest = min(results, key=int)
    goals = [
        goal
        for name, one in results[fewest].items()
        for goal in (
            Goal(
                f"watcher beside {int(fewest):,} groups, {name}: CPU",
                "a tenth of a core",
                one["cores"] / CORES,
                1,
                True,
            ),
            Goal(
                f"watcher beside {int(fewest):,} groups, {name}: memory", "200 MiB", one["mib"] / MIB, 1, True
            ),
        )
    ]
    print_goals(goals)
    whole = {
        "commits_per_s": plan.watched_commits_per_s,
        "seconds": plan.watched_s,
        **about,
        "results": results,
    }
    save(plan.out_dir, "watching", whole, goals)
    return whole
