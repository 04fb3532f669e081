"""How long and how often: the sizes that all benchmarks share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bench.build import OUT
from tests.interop.kafka import BENCH_JVM, TEST_JVM

TOPIC = "bench"
RINGLEADER, YARDSTICK, KAFKA, KFAKE = "ringleader", "C server", "Apache Kafka", "kfake"
MEMBERS = 200
CONNECTIONS = 64
DEPTHS = (1, 16)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan:
    """Times in seconds."""

    rounds: int = 5
    warmup_s: float = 1.0
    seconds: float = 3.0
    members: int = MEMBERS
    connections: int = CONNECTIONS
    rebalance_members: tuple[int, ...] = (500, 1_000, 2_000)
    consumer_members: tuple[int, ...] = (250, 1_000)
    """Of groups of the consumer protocol that form."""
    idle_members: int = 5_000
    offsets: int = 1_000_000
    consumed_records: int = 400_000
    """Of about 1 KB each, that a consumer reads in one round."""
    handover_settled_s: float = 6.0
    """Time in which a consumer is alone in its group before another joins: heartbeats come at their pace."""
    mb_per_s: int = 100
    """Produced, and as much fetched, beside the heartbeats of the mixed benchmark."""
    assignors: tuple[tuple[int, int], ...] = ((100, 2_000), (1_000, 10_000), (2_000, 1_000_000))
    """Members and partitions of the groups that assignments are computed for."""
    assignor_times: int = 9
    """How often ours is measured in each; the others take too long for more than once."""
    server_assignor: tuple[int, int, int] = (1_000, 1_000, 50)
    """Members, topics and partitions of each: a group whose target the coordinator computes."""
    watched_groups: tuple[int, ...] = (1_000, 10_000)
    """Groups of two members beside which a watcher is measured, and the commits of all of them."""
    watched_commits_per_s: int = 5_000
    watched_warmup_s: float = 20.0
    watched_s: float = 60.0
    brokers: tuple[str, ...] = (KAFKA, KFAKE)
    """The peers besides the C server."""
    jvm: tuple[str, ...] = BENCH_JVM
    """Options of the brokers' JVMs."""
    jvm_warmup_s: float = 15.0
    """CPU seconds that a JVM spends under each load before that load is measured."""
    jvm_warmup_rounds: int = 25
    """Of the largest group's rebalances; a warm JVM takes a tenth of the first round's time."""
    spark_records: int = 1_000_000
    """Of 1 KB in two partitions, for Spark to read."""
    spark_small_batches: int = 15
    """Micro-batches of one row in each slice."""
    spark_warmups: int = 3
    """Reads of the whole topic before any counts: a JVM needs as many to come to its speed."""
    failover_members: int = 4
    """Of each library's group whose coordinator is killed, stopped, restarted and moved."""
    failover_settled_s: float = 3.0
    """Between the end of one fault and the next."""
    failover_every_s: float = 0.02
    """Interval of a member's commits, if there is a record: finer than any goal that is measured."""
    rolling_restarts: int = 2
    """Of all brokers, and of all nodes."""
    pause_s: float = 0.5
    """Of nothing but heartbeats, before a member joins or leaves."""
    data_dir: Path | None = None
    """Where the daemon keeps its data; a directory under bench/out when None."""
    out_dir: Path = OUT
    """Where the JSON files go."""

    def without(self, names: Collection[str]) -> Plan:
        """The same plan without some of the brokers."""
        return replace(self, brokers=tuple(name for name in self.brokers if name not in names))

    def with_rounds(self, rounds: int) -> Plan:
        """The same plan with another number of rounds."""
        return replace(self, rounds=rounds)


def quick_plan(data_dir: Path | None = None, out_dir: Path = OUT / "quick") -> Plan:
    """Sizes for a look in seconds: they show that everything works, not how fast it is."""
    return Plan(
        rounds=1,
        warmup_s=0.1,
        seconds=0.3,
        members=20,
        connections=8,
        rebalance_members=(20,),
        consumer_members=(10, 20),
        idle_members=100,
        offsets=2_000,
        consumed_records=4_000,
        handover_settled_s=0.0,
        assignors=((10, 100), (20, 200), (50, 1_000)),
        assignor_times=1,
        server_assignor=(20, 20, 5),
        watched_groups=(5, 10),
        watched_commits_per_s=200,
        watched_warmup_s=0.5,
        watched_s=1.0,
        mb_per_s=2,
        jvm=TEST_JVM,
        jvm_warmup_s=0.2,
        spark_records=20_000,
        spark_small_batches=4,
        spark_warmups=1,
        jvm_warmup_rounds=1,
        failover_members=2,
        failover_settled_s=0.5,
        failover_every_s=0.2,
        rolling_restarts=0,
        pause_s=0.05,
        data_dir=data_dir,
        out_dir=out_dir,
    )


def in_turn(names: Sequence[T], number: int) -> Sequence[T]:
    """The peers as they are measured in a round: the second finds the caches of the first, so each is second
    in every other round."""
    return names if number % 2 else names[::-1]
