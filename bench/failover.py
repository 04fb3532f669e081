"""How long groups stand still when their coordinator is killed, stopped, restarted in turn or moved:
Ringleader's nodes and Apache Kafka's own coordinator on the same three brokers.

Three replicas, two in sync, everything else as Kafka and the libraries have it by default but for the initial
delay of a rebalance. Groups of librdkafka and aiokafka, and members at the level of requests that commit all
the time, all of one partition of groups, so that one coordinator has them; others ask every node for the
committed offsets all the time. First Kafka's coordinator has its rounds, then the nodes start, and have
theirs.

For each member the time between its last acknowledged commit before the fault and the first one after it (or
the longest such time in a rolling restart); of a round the slowest member of a library counts, of the rounds
the median.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.plan import KAFKA, RINGLEADER, Plan
from bench.processes import work_dir
from bench.report import Goal, print_goals, save, say, table
from ringleader.coordinator.groups.routing import partition_for
from tests.chaos import asking
from tests.chaos.checks import stale
from tests.chaos.clients.common import PARTITIONS, TOPIC
from tests.chaos.facts import commits_of, reads_of, seen_of
from tests.chaos.history import OK, Tail
from tests.chaos.plan import LIBRARIES, MEMBERS
from tests.chaos.processes import Processes
from tests.chaos.targets import IN_SYNC, KAFKA_DEFAULTS, REPLICAS, Target, ringleader_nodes
from tests.chaos.targets import KAFKA as KAFKA_TARGET
from tests.chaos.targets import RINGLEADER as RINGLEADER_TARGET
from tests.interop.kafka import VERSION
from tests.interop.kafka_cluster import KafkaCluster

RAW, LIBRDKAFKA, AIOKAFKA = "raw", "librdkafka", "aiokafka"
MEASURED = (RAW, LIBRDKAFKA, AIOKAFKA)
KILL, STOP, ROLLING, MOVE = "kill -9", "clean stop", "rolling restart", "planned move"
NOTHING = "no fault"
"""A run without a fault: the effect of the load and the machine alone."""
ROWS = (NOTHING, KILL, STOP, ROLLING, MOVE)
RECOVERED_S = 90.0
A_COMMIT = 6.0
"""Records for each commit of a member, so that each partition has one."""
LOOK_S = 0.1

LIMITS_S = {KILL: 2.5, STOP: 0.5, ROLLING: 0.5, MOVE: 0.25}
"""The goals for each member that commits all the time."""

PROPERTIES = {**KAFKA_DEFAULTS, "group.initial.rebalance.delay.ms": "0"}


class Load:
    """Members, readers and a producer; who was acknowledged when."""

    def __init__(self, target: Target, directory: Path, plan: Plan) -> None:
        self.target = target
        self.plan = plan
        partition = partition_for(LIBRDKAFKA)
        self.groups = {
            LIBRDKAFKA: LIBRDKAFKA,
            AIOKAFKA: named(AIOKAFKA, partition),
            RAW: named(RAW, partition),
        }
        self._members = [
            f"{library}-{number}"
            for library in (LIBRDKAFKA, AIOKAFKA)
            for number in range(1, plan.failover_members + 1)
        ]
        self._names = [*self._members, RAW]
        self._readers = [f"reader-{number}" for number in range(1, len(target.addresses) + 1)]
        directory.mkdir()
        self.cast = Processes(directory)
        self._tails = {name: Tail(self.cast.history(name)) for name in self._names}
        self._begun: dict[tuple[str, int], float] = {}
        self.acked: dict[str, list[tuple[float, float]]] = defaultdict(list)
        """Of each member: when its acknowledged commits began and ended."""

    def start(self) -> None:
        """Start all of them, and wait until every member has a commit acknowledged."""
        target = self.target
        every_s = self.plan.failover_every_s
        places = ["--bootstrap", target.bootstrap, "--brokers", target.brokers, "--every", str(every_s)]
        for name in self._members:
            library = name.rpartition("-")[0]
            self.cast.start(name, f"{MEMBERS}.{LIBRARIES[library]}", *places, "--group", self.groups[library])
        self.cast.start(RAW, f"{MEMBERS}.committer", *places, "--group", self.groups[RAW])
        groups = [word for group in self.groups.values() for word in ("--group", group)]
        for name, address in zip(self._readers, target.addresses, strict=True):
            alone = ["--bootstrap", address, "--brokers", target.brokers]
            self.cast.start(name, f"{MEMBERS}.reader", *alone, *groups)
        # Straight to the brokers: that they lose and get leaders is the same for both.
        self.cast.start(
            "producer", f"{MEMBERS}.producer", *places, "--straight", "--per-second", str(A_COMMIT / every_s)
        )
        self.recovered(time.monotonic())
        time.sleep(self.plan.failover_settled_s)  # groups that have just formed admit late members
        self.recovered(time.monotonic())

    def recovered(self, since_s: float) -> None:
        """Until every member has a commit acknowledged that began after that. Raises ``RuntimeError``."""
        until_s = time.monotonic() + RECOVERED_S
        while late := [name for name in self._names if self._latest(name) < since_s]:
            self.cast.check()
            if self.cast.complaints:
                raise RuntimeError("; ".join(self.cast.complaints))
            if time.monotonic() > until_s:
                raise RuntimeError(f"no commit of {', '.join(late)} within {RECOVERED_S:.0f} s")
            time.sleep(LOOK_S)

    def _latest(self, name: str) -> float:
        for line in self._tails[name].new():
            if line["did"] == "asks" and line["what"] == "commit":
                self._begun[name, line["call"]] = line["t"]
            elif line["did"] == OK and (name, line["call"]) in self._begun:
                self.acked[name].append((self._begun.pop((name, line["call"])), line["t"]))
        return self.acked[name][-1][0] if self.acked[name] else 0.0

    def gaps(self, since_s: float, until_s: float) -> dict[str, float]:
        """The longest time without an acknowledged commit of each library's slowest member."""
        found: dict[str, float] = defaultdict(float)
        for name in self._names:
            library = name.rpartition("-")[0] or name
            ends = [ended_s for _, ended_s in self.acked[name]]
            for before, after in pairwise(ends):
                if after >= since_s and before <= until_s:
                    found[library] = max(found[library], after - before)
        return dict(found)

    def stop(self) -> dict[str, Any]:
        """Stop all; what their histories say of the whole time."""
        names = [*self._names, *self._readers, "producer"]
        self.cast.stop(names)
        if self.cast.complaints:
            raise RuntimeError("; ".join(self.cast.complaints))
        histories = [self.cast.read(name) for name in names]
        old = stale(commits_of(histories), reads_of(histories))
        return {
            "reads": len(reads_of(histories)),
            "stale_reads": len(old),
            "stale_longest_s": max((one.ended_s - floor.ended_s for one, floor in old), default=0.0),
        }

    def generations(self) -> int:
        """How many generations the groups of libraries have had so far."""
        histories = [self.cast.read(name) for name in self._members]
        return len({(one.group, one.generation) for one in seen_of(histories)})


def named(name: str, partition: int) -> str:
    """A group of that name, and a number, in that partition of groups."""
    return next(found for n in itertools.count() if partition_for(found := f"{name}-{n}") == partition)


def measure(load: Load, what: str, do: Callable[[], object], after: Callable[[], object]) -> dict[str, Any]:
    """Do it, and wait until all members go on; then `after`, and until all is as before."""
    generations = load.generations()
    began_s = time.monotonic()
    do()
    load.recovered(time.monotonic())
    gaps = load.gaps(began_s, time.monotonic())
    after()
    load.target.await_healthy(list(load.groups.values()))
    time.sleep(load.plan.failover_settled_s)  # so that the next fault finds what this one has left in peace
    load.recovered(time.monotonic())
    # A rebalance may come as late as with what healed.
    result = {**gaps, "rebalances": load.generations() - generations}
    words = ", ".join(f"{name} {gap:.2f} s" for name, gap in gaps.items())
    say(f"  {load.target.kind}, {what}: {words}; {result['rebalances']} rebalances")
    return result


def all_faults(load: Load, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """The rounds of one coordinator."""
    target = load.target
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(plan.rounds):
        results[NOTHING].append(
            measure(load, NOTHING, lambda: time.sleep(plan.failover_settled_s), lambda: None)
        )
        victim = target.node(owner(load))
        results[KILL].append(measure(load, KILL, victim.kill, victim.start))
        victim = target.node(owner(load))
        results[STOP].append(measure(load, STOP, victim.stop, victim.start))
        if target.kind == RINGLEADER_TARGET:
            results[MOVE].append(measure(load, MOVE, lambda: move(load), lambda: None))
    for _ in range(plan.rolling_restarts):
        results[ROLLING].append(measure(load, ROLLING, lambda: roll(load), lambda: None))
    return dict(results)


def owner(load: Load) -> int:
    """The node that coordinates the groups. Raises ``TimeoutError``."""
    found: list[int] = []

    def known() -> bool:
        found[:] = [one for one in [load.target.owner(load.groups[LIBRDKAFKA])] if one is not None]
        return bool(found)

    asking.until(known, "the coordinator")
    return found[0]


def roll(load: Load) -> None:
    """Stop and start each, one after the other."""
    target = load.target
    for node_id in sorted(target.nodes or (target.cluster.brokers if target.cluster else {})):
        victim = target.node(node_id)
        victim.stop()
        victim.start()
        target.await_healthy(list(load.groups.values()))


def move(load: Load) -> None:
    """Let another node have the groups' shard, as an operator would. Raises ``CalledProcessError``."""
    now = owner(load)
    heir = next(node_id for node_id in sorted(load.target.nodes) if node_id != now)
    shard = partition_for(load.groups[RAW])
    command = [sys.executable, "-m", "ringleader", "nodes", "move", str(shard), str(heir)]
    subprocess.run([*command, "--cluster", load.target.brokers], check=True, capture_output=True)


@contextlib.contextmanager
def targets(directory: Path, plan: Plan) -> Iterator[Iterator[Target]]:
    """Kafka's own coordinator and then the nodes, on the same brokers. Raises `InteropError`."""
    with (
        KafkaCluster(directory / "kafka", properties=PROPERTIES, jvm=plan.jvm) as cluster,
        contextlib.ExitStack() as stack,
    ):
        asking.create_topic(cluster.bootstrap, TOPIC, PARTITIONS, REPLICAS, IN_SYNC)

        def one_by_one() -> Iterator[Target]:
            yield Target(KAFKA_TARGET, {}, cluster)
            nodes = stack.enter_context(ringleader_nodes(directory, cluster, range(1, 4)))
            yield Target(RINGLEADER_TARGET, nodes, cluster)

        yield one_by_one()


def summary(results: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """Medians of the rounds; rebalances are counted over all of them."""
    return {
        what: {
            **{name: median(one[name] for one in found) for name in MEASURED},
            "rebalances": sum(one["rebalances"] for one in found),
        }
        for what, found in results.items()
    }


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes failover.json, returns its content. Raises `InteropError`."""
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    reads: dict[str, dict[str, Any]] = {}
    with work_dir(plan.data_dir) as directory, targets(directory, plan) as both:
        say(f"failover: {KAFKA} {VERSION}, three brokers; groups of {plan.failover_members}")
        for target in both:
            name = KAFKA if target.kind == KAFKA_TARGET else RINGLEADER
            load = Load(target, directory / f"{target.kind} load", plan)
            with load.cast:
                load.start()
                results[name] = all_faults(load, plan)
                reads[name] = load.stop()
            words = ", ".join(
                f"{what} {value:,.2f}".removesuffix(".00") for what, value in reads[name].items()
            )
            say(f"  {name}: {words}")
    medians = {name: summary(found) for name, found in results.items()}
    ours = medians[RINGLEADER]
    goals = [
        Goal(
            f"{what}: without an acknowledged commit, {name}",
            f"a limit of {limit_s:g} s",
            ours[what][name] / limit_s,
            1.0,
            is_time=True,
        )
        for what, limit_s in LIMITS_S.items()
        if what in ours
        for name in MEASURED
    ]
    table(
        "Time without an acknowledged commit (medians)",
        ["", *(f"{name}, ms" for name in MEASURED), "rebalances"],
        [
            [f"{what}, {name}", *(values[library] * 1000 for library in MEASURED), str(values["rebalances"])]
            for what in ROWS
            for name, found in medians.items()
            if (values := found.get(what)) is not None
        ],
    )
    print_goals(goals)
    whole = {
        "version": VERSION,
        "members": plan.failover_members,
        "rounds": plan.rounds,
        "brokers": {f"{KAFKA}, three brokers": f"{VERSION} (KRaft), {' '.join(plan.jvm)}"},
        "medians": medians,
        "reads": reads,
        "results": results,
    }
    save(plan.out_dir, "failover", whole, goals)
    return whole
