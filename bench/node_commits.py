"""Commits per second that all replicas have, on three brokers: Ringleader's nodes beside Apache Kafka's own
coordinator.

Both keep groups in a topic of three replicas, two in sync, on the same brokers; one coordinator has the
group. All servers share one processor, the load has another. A CPU second is one of all servers together: of
three brokers, and for Ringleader of three nodes, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commits import ERROR_AT, VERSION, commit_frames
from bench.heartbeats import formed
from bench.peers import PATIENCE, goals_against, summary
from bench.plan import DEPTHS, KAFKA, RINGLEADER, TOPIC, Plan
from bench.processes import Pins, cpu_seconds, run_load, work_dir
from bench.report import print_goals, save, say, table
from tests.chaos import asking
from tests.chaos.targets import KAFKA_DEFAULTS, REPLICAS, ringleader_nodes
from tests.interop.kafka import BENCH_JVM
from tests.interop.kafka import VERSION as KAFKA_VERSION
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.rawclient import Address, address_of

GROUP = "commits"
GOALS = {KAFKA: 0.5}
PROPERTIES = {**KAFKA_DEFAULTS, "group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class _Coordinator:
    """One under load. `pids`: of all processes whose time counts."""

    name: str
    address: Address
    frames: Path
    pids: Sequence[int]


def _coordinator(
    name: str, address: Address, pids: Sequence[int], directory: Path, plan: Plan
) -> _Coordinator:
    group = formed(address, GROUP, plan.members)
    frames = commit_frames(directory / f"frames {name}", group, plan.connections)
    return _Coordinator(name, address, frames, pids)


def _measure(one: _Coordinator, depth: int, warmup_s: float, seconds: float, pins: Pins) -> dict[str, Any]:
    before = sum(map(cpu_seconds, one.pids))
    measured = run_load(
        pins.load,
        "load",
        {
            "port": one.address[1],
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


def _warm_up(one: _Coordinator, plan: Plan, pins: Pins) -> None:
    used_s, spent_s = 0.0, 0.0
    piece_s = min(1.0, plan.jvm_warmup_s)
    while used_s < plan.jvm_warmup_s and spent_s < PATIENCE * plan.jvm_warmup_s:
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
        cluster = stack.enter_context(KafkaCluster(directory / "kafka", properties=PROPERTIES, jvm=BENCH_JVM))
        asking.create_topic(cluster.bootstrap, TOPIC, plan.members, REPLICAS, 2)
        asking.await_groups(cluster.bootstrap, [GROUP])
        nodes = stack.enter_context(ringleader_nodes(directory, cluster, range(1, 4)))
        brokers = [broker.pid for broker in cluster.brokers.values()]
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        asking.await_groups(bootstrap, [GROUP])
        theirs, ours = asking.coordinator(cluster.bootstrap, GROUP), asking.coordinator(bootstrap, GROUP)
        assert theirs is not None
        assert ours is not None
        both = [
            _coordinator(KAFKA, address_of(cluster.brokers[theirs].bootstrap), brokers, directory, plan),
            _coordinator(
                RINGLEADER,
                address_of(nodes[ours].bootstrap),
                [*brokers, *(node.pid for node in nodes.values())],
                directory,
                plan,
            ),
        ]
        stack.enter_context(pins.aside())
        for one in both:
            _warm_up(one, plan, pins)
        for depth in DEPTHS:
            rounds: dict[str, list[dict[str, Any]]] = {one.name: [] for one in both}
            for number in range(plan.rounds):
                for one in both:
                    measured = _measure(one, depth, plan.warmup_s, plan.seconds, pins)
                    rounds[one.name].append(measured)
                    say(
                        f"  depth {depth}, round {number + 1}, {one.name}: {measured['per_s']:,.0f}/s, "
                        f"{measured['per_cpu_s']:,.0f} per CPU second, p99 {measured['p99_us']:,.0f} us"
                    )
            results[f"depth {depth}"] = {
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
        "brokers": {KAFKA: f"{KAFKA_VERSION}, three brokers (KRaft), {' '.join(BENCH_JVM)}"},
        "results": results,
    }
    save(plan.out_dir, "node_commits", whole, goals)
    return whole
