"""Commits per second that all replicas have, on three brokers: Ringleader's nodes beside Apache Kafka's own
coordinator.

Both keep groups in a topic of three replicas, two in sync, on the same brokers. The load is one group; many
groups of one coordinator, each in a partition of its own; or as many of each of the three coordinators. All
servers share one processor, the load has another. A CPU second is one of all servers together: of three
brokers, and for Ringleader of three nodes, too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commits import ERROR_AT, VERSION, commits_of
from bench.frames import deal, write_frames
from bench.heartbeats import formed
from bench.peers import PATIENCE, goals_against, summary
from bench.plan import DEPTHS, KAFKA, RINGLEADER, TOPIC, Plan
from bench.processes import Pins, cpu_seconds, run_load, work_dir
from bench.relay import PROPERTIES as PATIENT
from bench.report import print_goals, save, say, table
from ringleader.coordinator.config import Settings
from ringleader.coordinator.groups.routing import partition_for
from tests.chaos import asking
from tests.chaos.targets import KAFKA_DEFAULTS, REPLICAS, ringleader_nodes
from tests.interop.kafka import VERSION as KAFKA_VERSION
from tests.interop.kafka_cluster import KafkaCluster
from tests.interop.maven import InteropError
from tests.support.rawclient import Address, address_of

GROUP = "commits"
SPREAD = 16
"""Groups of one coordinator, each in another partition: of 50 it has about as many."""
PARTITIONS = int(Settings.model_fields["offsets_topic_num_partitions"].default)
"""Of the groups' topic, there and here."""
COORDINATORS = 3
ONE, MANY, ALL = "one group", f"{SPREAD} groups", f"{COORDINATORS} x {SPREAD} groups"
SPREAD_S = 60.0
"""Longest time in which nodes that started share the partitions."""
LOADS = {ONE: (1, 1), MANY: (1, SPREAD), ALL: (COORDINATORS, SPREAD)}
"""Coordinators, and groups of each."""
GOALS = {KAFKA: 1.0}
PROPERTIES = {**KAFKA_DEFAULTS, **PATIENT, "group.initial.rebalance.delay.ms": "0"}
DELAY = ["--group-initial-rebalance-delay-ms", "0"]
"""Likewise of nodes: many groups form, one after the other."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A server under load. `pids`: of all processes whose time counts."""

    name: str
    ports: Sequence[int]
    frames: Path
    pids: Sequence[int]


def _rounds(
    load: str, cluster: KafkaCluster, directory: Path, plan: Plan, pins: Pins
) -> dict[int, dict[str, list[dict[str, Any]]]]:
    """By depth and server. With fresh nodes: those that remember another load would even it out."""
    brokers = [broker.pid for broker in cluster.brokers.values()]
    of_brokers = {number: address_of(one.bootstrap) for number, one in cluster.brokers.items()}
    with ringleader_nodes(directory / f"nodes {load}", cluster, range(1, 4), DELAY) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        of_nodes = {number: address_of(one.bootstrap) for number, one in nodes.items()}
        pids = [*brokers, *(one.pid for one in nodes.values())]
        both = [
            _loaded(KAFKA, load, cluster.bootstrap, of_brokers, brokers, directory, plan),
            _loaded(RINGLEADER, load, bootstrap, of_nodes, pids, directory, plan),
        ]
        rounds: dict[int, dict[str, list[dict[str, Any]]]] = {
            depth: {one.name: [] for one in both} for depth in DEPTHS
        }
        with pins.aside():
            for one in both:
                _warm_up(one, plan.jvm_warmup_s, pins)
            for depth, number, one in itertools.product(DEPTHS, range(plan.rounds), both):
                measured = _measure(one, depth, plan.warmup_s, plan.seconds, pins)
                rounds[depth][one.name].append(measured)
                say(
                    f"  {load}, depth {depth}, round {number + 1}, {one.name}: "
                    f"{measured['per_s']:,.0f}/s, {measured['per_cpu_s']:,.0f} per CPU second, "
                    f"p99 {measured['p99_us']:,.0f} us"
                )
    return rounds


def _groups(bootstrap: str, load: str) -> dict[int, list[str]]:
    """Groups of a load in as many partitions, by coordinator."""
    coordinators, count = LOADS[load]
    names: dict[int, str] = {}
    for number in itertools.count():
        name = f"{GROUP} {load} {number}"  # no load has a group of another one
        names.setdefault(partition_for(name), name)
        if len(names) == PARTITIONS:
            break
    until_s = time.monotonic() + SPREAD_S
    while time.monotonic() < until_s:
        found: dict[int, list[str]] = {}
        for name in names.values():
            asking.await_groups(bootstrap, [name])
            node = asking.coordinator(bootstrap, name)
            assert node is not None
            found.setdefault(node, []).append(name)
        sizes = [len(groups) for groups in found.values()]
        if len(sizes) == COORDINATORS and max(sizes) - min(sizes) <= 1:
            return {node: found[node][:count] for node in list(found)[:coordinators]}
        time.sleep(0.5)
    raise InteropError(f"after {SPREAD_S:g} s coordinators do not have equally many partitions: {sizes}")


def _loaded(
    name: str,
    load: str,
    bootstrap: str,
    addresses: Mapping[int, Address],
    pids: Sequence[int],
    directory: Path,
    plan: Plan,
) -> _Loaded:
    found = _groups(bootstrap, load)
    members = max(1, plan.members // sum(map(len, found.values())))
    dealt = []
    for node, groups in found.items():
        formed_groups = [formed(addresses[node], group, members) for group in groups]
        commits = zip(*(commits_of(group) for group in formed_groups), strict=True)
        frames = [one for commits_of_all in commits for one in commits_of_all]
        dealt.append(deal(frames, plan.connections // len(found)))
    connections = [frames for of_each in zip(*dealt, strict=True) for frames in of_each]
    path = write_frames(directory / f"frames {name} {load}", connections)
    return _Loaded(name, [addresses[node][1] for node in found], path, pids)


def _measure(one: _Loaded, depth: int, warmup_s: float, seconds: float, pins: Pins) -> dict[str, Any]:
    before = sum(map(cpu_seconds, one.pids))
    measured = run_load(
        pins.load,
        "load",
        {
            "port": ",".join(map(str, one.ports)),
            "frames": one.frames,
            "depth": depth,
            "warmup": warmup_s,
            "seconds": seconds,
            "error_at": ERROR_AT,
            "server_pid": one.pids[0],
        },
    )
    if measured["errors"]:
        raise RuntimeError(f"{one.name} answered with errors: {measured['errors']}")
    used_s = sum(map(cpu_seconds, one.pids)) - before
    measured["per_s"] = measured["answers"] / measured["seconds"]
    measured["servers_cpu_s"] = used_s
    # The servers' time is that of the warm-up, too: so are these answers.
    measured["per_cpu_s"] = measured["all_answers"] / max(used_s, 0.01)
    return measured


def _warm_up(one: _Loaded, seconds: float, pins: Pins) -> None:
    used_s, spent_s = 0.0, 0.0
    piece_s = min(1.0, seconds)
    while used_s < seconds and spent_s < PATIENCE * seconds:
        used_s += _measure(one, 1, 0, piece_s, pins)["servers_cpu_s"]
        spent_s += piece_s


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes node_commits.json, returns its content. Raises `InteropError`."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, {pins.server})  # what is started from here on inherits it
        directory = stack.enter_context(work_dir(plan.data_dir))
        say(f"node_commits: {KAFKA} {KAFKA_VERSION}, three brokers; {plan.members} members")
        cluster = stack.enter_context(KafkaCluster(directory / "kafka", properties=PROPERTIES, jvm=plan.jvm))
        asking.create_topic(cluster.bootstrap, TOPIC, plan.members, REPLICAS, 2)
        for load in LOADS:
            for depth, rounds in _rounds(load, cluster, directory, plan, pins).items():
                results[f"{load}, depth {depth}"] = {
                    "medians": {name: summary(found) for name, found in rounds.items()},
                    "rounds": rounds,
                }
    goals = [
        goal
        for depth, result in results.items()
        for goal in (
            *goals_against(f"commits on all replicas per second, {depth}", result["medians"], "per_s", GOALS),
            *goals_against(f"the same per CPU second, {depth}", result["medians"], "per_cpu_s", GOALS),
        )
    ]
    table(
        f"OffsetCommit v{VERSION}, three replicas (medians)",
        ["server", "per second", "per CPU second", "p50 us", "p99 us"],
        [
            [f"{name}, {depth}", *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us"))]
            for depth, result in results.items()
            for name, values in result["medians"].items()
        ],
    )
    print_goals(goals)
    whole = {
        "version": VERSION,
        "pins": {"servers": pins.server, "load": pins.load},
        "brokers": {f"{KAFKA}, three brokers": f"{KAFKA_VERSION} (KRaft), {' '.join(plan.jvm)}"},
        "results": results,
    }
    save(plan.out_dir, "node_commits", whole, goals)
    return whole
