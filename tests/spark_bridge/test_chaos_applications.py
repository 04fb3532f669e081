"""Chaos as users live it: two Spark applications and two plain consumers in one group, each a process.

Members join, stop, are killed; the daemon is killed and started again. No record may be missing, and each
that was processed twice must lie in a batch that was cut off, as logs and ledgers tell.

One run by default. ``RINGLEADER_CHAOS_RUNS=5`` makes five, each of them longer than the first and in an
order of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ringleader.clients.admin import Admin
from tests.spark_bridge.applications.ledger import Range, lines
from tests.support.daemon import Daemon
from tests.support.shares import WHOLE, share
from tests.support.tied import tied

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PARTITIONS = 6
GROUP = "g"
PATIENCE_S = 240.0
RUNS = int(os.environ.get("RINGLEADER_CHAOS_RUNS", share(1, whole=3)))
# `t-0[100,150)`, as the source's log lines name ranges.
LOGGED = re.compile(r"\bt-(\d+)\[(\d+),(\d+)\)")
TELLING = ("did not take the commit", "from the checkpoint runs again")
TIMES = ["kafka.session.timeout.ms=6000", "kafka.heartbeat.interval.ms=500"]


class Application:
    """One member of the group, or several in the case of Spark: a process that can be stopped and killed."""

    def __init__(self, name: str, directory: Path, bootstrap: str, arguments: list[str]) -> None:
        self.name = name
        self.out = directory / name
        self.out.mkdir()
        self._arguments = ["--bootstrap", bootstrap, "--out", str(self.out), *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self.cut_off: list[Range] = []
        """Ranges that a kill or a stop of a query may have cut off."""

    @property
    def running(self) -> bool:
        return self._process is not None

    def lives(self) -> bool:
        """Whether it is in the state that was last ordered."""
        return self._process is None or self._process.poll() is None

    def start(self) -> None:
        package = "tests.spark_bridge.applications"
        module = f"{package}.query" if self.name.startswith("spark") else f"{package}.consumer"
        with (self.out / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *self._arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                # The files that a kill leaves behind go with the test's directory.
                env={**os.environ, "TMPDIR": str(self.out)},
            )
        tied(self._process)

    def stop(self) -> None:
        """As an operator would. Spark hears nothing of what its source says after that."""
        self._end(signal.SIGTERM)
        self.cut_off += self._last_batch()

    def kill(self) -> None:
        """With its JVM and its workers, in one moment."""
        self._end(signal.SIGKILL)
        self.cut_off += self._last_batch()

    def executors(self) -> list[psutil.Process]:
        """Spark's executors that are processes of their own."""
        assert self._process is not None
        found = []
        for one in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any("CoarseGrainedExecutorBackend" in word for word in one.cmdline()):
                    found.append(one)
        return found

    def clear(self) -> None:
        """At the end of a run that failed."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)

    def rows(self) -> list[Range]:
        return [tuple(found) for line in lines(self.out / "ledger") for found in line.get("read", [])]

    def has_more_than(self, count: int) -> bool:
        """Whether it has read more rows."""
        return len(self.rows()) > count

    def log(self) -> str:
        return (self.out / "log").read_text(errors="replace")

    def explained(self) -> list[Range]:
        """Ranges that may have been processed again by others, or were processed again here."""
        found = list(self.cut_off)
        for line in self.log().splitlines():
            if any(words in line for words in TELLING):
                found += [(int(p), int(start), int(end)) for p, start, end in LOGGED.findall(line)]
        if not self.name.startswith("spark"):
            reads = list(lines(self.out / "ledger"))
            done = {(line["process"], line["committed"]) for line in reads if "committed" in line}
            for read in reads:
                if "read" in read and (read["process"], read["number"]) not in done:
                    found += [tuple(part) for part in read["read"]]
        return found

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if number is signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert process.wait(PATIENCE_S) == (-number if number is signal.SIGKILL else 0), self.log()

    def _last_batch(self) -> list[Range]:
        """The newest batch in the checkpoint: only that one can be without its commit."""
        logged = [path for path in (self.out / "checkpoint" / "offsets").glob("*") if path.name.isdigit()]
        if not logged:
            return []
        text = max(logged, key=lambda path: int(path.name)).read_text()
        document = json.loads(text.splitlines()[-1])
        return [(int(number), start, end) for number, (start, end) in document["r"].get("t", {}).items()]


class Producer:
    """Sends records all the time, through restarts of the daemon."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()))
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)

    async def _send(self) -> None:
        number = 0
        async with AIOKafkaProducer(bootstrap_servers=self._bootstrap, request_timeout_ms=5_000) as producer:
            while not self._stop.is_set():
                sent = []
                for _ in range(100):
                    number += 1
                    sent.append(await producer.send("t", b"v%d" % number, partition=number % PARTITIONS))
                for future in sent:
                    try:
                        await future
                    except KafkaError:
                        break  # what counts is what the log holds in the end
                await asyncio.sleep(0.1)


class World:
    """The daemon, the producer and the applications of one run: all, or ``only`` those."""

    def __init__(
        self, directory: Path, cooperative: bool, only: Sequence[str] = (), master: str = "local[2]"
    ) -> None:
        self.daemon = Daemon(
            directory, topics=[f"t:{PARTITIONS}"], options=["--group-initial-rebalance-delay-ms", "0"]
        ).start()
        strategy = "cooperative-sticky" if cooperative else "range"
        spark = ["subscribe=t", f"kafka.group.id={GROUP}", "startingOffsets=earliest", *TIMES]
        spark += ["maxOffsetsPerTrigger=3000", f"kafka.partition.assignment.strategy={strategy}"]
        options = ["--master", master, *(word for option in spark for word in ("--option", option))]
        plain = ["--group", GROUP, "--assignor", strategy, "--library"]
        self.applications = {
            name: Application(name, directory, self.daemon.bootstrap, arguments)
            for name, arguments in {
                "spark-1": [*options, "--option", "members=2"],
                "spark-2": [*options, "--option", "members=1"],
                "plain-1": [*plain, "ringleader"],
                "plain-2": [*plain, "kafka-python"],
            }.items()
            if not only or name in only
        }
        self.producer: Producer | None = Producer(self.daemon.bootstrap)
        self.patience_s = PATIENCE_S

    def __getitem__(self, name: str) -> Application:
        return self.applications[name]

    def close(self) -> None:
        if self.producer is not None:
            self.producer.stop()
        for application in self.applications.values():
            application.clear()
        self.daemon.kill()

    def all_get_records(self) -> None:
        """Wait until every application that runs has processed more than it had."""
        before = {name: len(found.rows()) for name, found in self.applications.items() if found.running}
        for name, count in before.items():
            self._until(partial(self[name].has_more_than, count), f"records of {name}")

    def nothing_is_left(self) -> None:
        """Wait until the group has committed everything."""
        assert self.producer is not None
        self.producer.stop()
        self.producer = None
        self._until(lambda: asyncio.run(lag(self.daemon.bootstrap)) == 0, "lag 0")

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.patience_s
        while not reached():
            for application in self.applications.values():
                assert application.lives(), application.log()
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {n}\n{a.log()[-6_000:]}" for n, a in self.applications.items())
                raise AssertionError(f"not in time: {what}\n{logs}\n--- daemon\n{self.daemon.log()[-4_000:]}")
            time.sleep(0.1)


async def lag(bootstrap: str) -> int:
    async with Admin(bootstrap) as admin:
        offsets = await admin.group_offsets(GROUP)
        ends = await admin.end_offsets([("t", number) for number in range(PARTITIONS)])
    return sum(end - (offsets[tp].offset if tp in offsets else 0) for tp, end in ends.items())


async def log_ends(bootstrap: str) -> dict[int, int]:
    async with Admin(bootstrap) as admin:
        ends = await admin.end_offsets([("t", number) for number in range(PARTITIONS)])
    return {number: end for (_, number), end in ends.items()}


def judge(world: World) -> str:
    """Compare what was processed with what there is. Returns a sentence with the numbers."""
    seen: Counter[tuple[int, int]] = Counter()
    explained: set[tuple[int, int]] = set()
    for application in world.applications.values():
        for number, start, end in application.rows():
            seen.update((number, offset) for offset in range(start, end))
        for number, start, end in application.explained():
            explained.update((number, offset) for offset in range(start, end))
    ends = asyncio.run(log_ends(world.daemon.bootstrap))
    expected = {(number, offset) for number, end in ends.items() for offset in range(end)}
    missing = expected - seen.keys()
    assert not missing, f"{len(missing)} of {len(expected)} records are missing: {sorted(missing)[:20]}"
    assert seen.keys() <= expected
    twice = {row for row, count in seen.items() if count > 1}
    assert twice <= explained, f"nobody explains {sorted(twice - explained)[:20]}"
    return f"{len(expected)} records, 0 missing, {len(twice)} more than once, all of them explained"


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    run: int = request.param
    found = World(tmp_path, cooperative=run % 3 != 2)
    yield found
    found.close()


def short(world: World) -> None:
    """The order of the run that is always made."""
    world["plain-2"].kill()
    world.daemon.restart()
    world.all_get_records()
    world["spark-2"].kill()
    world["spark-2"].start()
    world["plain-2"].start()
    world["plain-1"].stop()
    world.all_get_records()
    world["spark-1"].stop()


def long(world: World, dice: random.Random) -> None:
    """Ten things in any order; somebody is always left."""
    for _ in range(10):
        what = dice.choice(["stop", "kill", "start", "start", "daemon"])
        running = [found for found in world.applications.values() if found.running]
        resting = [found for found in world.applications.values() if not found.running]
        if what == "daemon":
            world.daemon.restart()
        elif what == "start" and resting:
            dice.choice(resting).start()
        elif len(running) > 1:
            victim = dice.choice(running)
            victim.kill() if what == "kill" else victim.stop()
        time.sleep(dice.uniform(0, 8))
    world.all_get_records()


@pytest.mark.share
@pytest.mark.parametrize(("world", "run"), [(run, run) for run in range(RUNS)], indirect=["world"])
def test_no_record_is_lost_and_each_double_is_explained(
    world: World, run: int, seed: int, record_property: Callable[[str, object], None]
) -> None:
    for application in world.applications.values():
        application.start()
    world.all_get_records()
    if run == 0:
        short(world)
    else:
        long(world, random.Random(seed))
    world.nothing_is_left()
    for application in world.applications.values():
        application.stop()
    sentence = judge(world)
    record_property("chaos", sentence)
    print(sentence)


@pytest.mark.share
@pytest.mark.skipif(not WHOLE, reason="its eight JVMs are for `make nightly`")
@pytest.mark.timeout(1_800)
def test_executors_of_their_own_and_a_kill_of_all_of_them(tmp_path: Path) -> None:
    """The source has no file, socket or memory in common with the tasks but what Spark hands them."""
    world = World(tmp_path, True, ["spark-1"], "local-cluster[2,1,2048]")
    # Five JVMs start, one after the other.
    world.patience_s = 3 * PATIENCE_S
    try:
        application = world["spark-1"]
        application.start()
        world.all_get_records()
        assert len(application.executors()) == 2
        killed = application.executors()
        application.kill()
        psutil.wait_procs(killed, PATIENCE_S)
        application.start()
        world.all_get_records()
        world.nothing_is_left()
        application.stop()
        print(judge(world))
    finally:
        world.close()
