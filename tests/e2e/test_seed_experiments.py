"""The experiments this project began with, on real clients: who owns what as members come and go.

A topic of 3 partitions; members 1, 2, 3, 4 join one after another and leave in that order. Meanwhile a second
group receives every record once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from tests.support.daemon import Daemon
from tests.support.members import AiokafkaMember, Board, ConfluentMember, KafkaPythonMember, Stage

TOPIC = "seed"
PARTITIONS = 3
RECORDS_PER_STEP = 30
# A member hears of a rebalance at its next heartbeat; the default of 3 s would make this a long test.
QUICK: dict[str, Any] = {"heartbeat_interval_ms": 150}

Owned = dict[str, tuple[int, ...]]
# After each join and each leave. Both assignors go by member ids, which begin with the client ids.
ROUND_ROBIN: list[Owned] = [
    {"member-1": (0, 1, 2)},
    {"member-1": (0, 2), "member-2": (1,)},
    {"member-1": (0,), "member-2": (1,), "member-3": (2,)},
    {"member-1": (0,), "member-2": (1,), "member-3": (2,), "member-4": ()},
    {"member-2": (0,), "member-3": (1,), "member-4": (2,)},
    {"member-3": (0, 2), "member-4": (1,)},
    {"member-4": (0, 1, 2)},
]
RANGE: list[Owned] = [
    {"member-1": (0, 1, 2)},
    {"member-1": (0, 1), "member-2": (2,)},
    *ROUND_ROBIN[2:5],
    {"member-3": (0, 1), "member-4": (2,)},
    {"member-4": (0, 1, 2)},
]

MakeMember = Callable[[Board, str, str], Any]


def _round_robin(board: Board, bootstrap: str, name: str) -> Any:
    """Odd members use aiokafka, even ones kafka-python, with the assignors that they have by default."""
    library = AiokafkaMember if int(name[-1]) % 2 else KafkaPythonMember
    return library(board, bootstrap, "shared", TOPIC, name, **QUICK)


def _range(board: Board, bootstrap: str, name: str) -> Any:
    if int(name[-1]) % 2:
        return AiokafkaMember(
            board, bootstrap, "shared", TOPIC, name, partition_assignment_strategy=(AiokafkaRange,), **QUICK
        )
    return KafkaPythonMember(
        board, bootstrap, "shared", TOPIC, name, partition_assignment_strategy=(KafkaPythonRange,), **QUICK
    )


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with the topic, which forms groups without waiting for more members."""
    started = Daemon(
        tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"], options=["--group-initial-rebalance-delay-ms", "0"]
    )
    with started:
        yield started


class Producing:
    """Produces a few records into every partition at each step, and remembers their offsets."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap)
        self.offsets: list[tuple[int, int]] = []

    async def step(self) -> None:
        """Produce and wait for all offsets."""
        sent = [
            await self._producer.send(TOPIC, b"record", partition=number % PARTITIONS)
            for number in range(RECORDS_PER_STEP)
        ]
        for metadata in await asyncio.gather(*sent):
            self.offsets.append((metadata.partition, metadata.offset))

    async def __aenter__(self) -> Producing:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()


@pytest.mark.parametrize(
    ("make", "expected"),
    [pytest.param(_round_robin, ROUND_ROBIN, id="roundrobin"), pytest.param(_range, RANGE, id="range")],
)
async def test_members_join_and_leave_one_after_another(
    daemon: Daemon, make: MakeMember, expected: list[Owned]
) -> None:
    shared, second = Board(), Board()
    async with Stage() as stage, Producing(daemon.bootstrap) as producing:
        await stage.enter(AiokafkaMember(second, daemon.bootstrap, "second", TOPIC, "alone", **QUICK))
        members = [make(shared, daemon.bootstrap, f"member-{number}") for number in (1, 2, 3, 4)]
        for member, owned in zip(members, expected[:4], strict=True):
            await stage.enter(member)
            await shared.until_owned(owned)
            await producing.step()
        for member, owned in zip(members, [*expected[4:], {}], strict=True):
            await stage.exit(member)
            await shared.until_owned(owned)
            await producing.step()
        await second.until(lambda now: len(now.got.get("alone", ())) >= len(producing.offsets))
    assert sorted(second.got["alone"]) == sorted(producing.offsets)
    assert len(set(producing.offsets)) == 8 * RECORDS_PER_STEP
    # The shared group saw every record that was produced while it had members.
    seen = {record for records in shared.got.values() for record in records}
    assert seen <= set(producing.offsets)
    assert all(shared.got.get(name) for name in ("member-1", "member-2", "member-3", "member-4"))


async def _produce_with_each_library(bootstrap: str) -> list[tuple[int, int]]:
    """Ten records with each library and its default settings; returns their offsets."""
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        first = [await producer.send_and_wait(TOPIC, b"a", partition=n % PARTITIONS) for n in range(10)]
    offsets = [(one.partition, one.offset) for one in first]
    offsets += await asyncio.to_thread(_produce_with_kafka_python, bootstrap)
    offsets += await asyncio.to_thread(_produce_with_confluent, bootstrap)
    return offsets


def _produce_with_kafka_python(bootstrap: str) -> list[tuple[int, int]]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    try:
        sent = [producer.send(TOPIC, b"k", partition=n % PARTITIONS) for n in range(10)]
        answers = [one.get(timeout=30) for one in sent]
    finally:
        producer.close()
    return [(one.partition, one.offset) for one in answers]


def _produce_with_confluent(bootstrap: str) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = []

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            offsets.append((message.partition(), message.offset()))

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(TOPIC, b"c", partition=number % PARTITIONS, on_delivery=delivered)
    assert producer.flush(30) == 0
    return offsets


DEFAULTS: dict[str, dict[str, Any]] = {"aiokafka": {}, "kafka-python": {}, "confluent-kafka": {}}
ALL_RANGE: dict[str, dict[str, Any]] = {
    "aiokafka": {"partition_assignment_strategy": (AiokafkaRange,)},
    "kafka-python": {"partition_assignment_strategy": (KafkaPythonRange,)},
    "confluent-kafka": {"partition.assignment.strategy": "range"},
}


@pytest.mark.parametrize(
    ("options", "protocol"),
    [pytest.param(DEFAULTS, "roundrobin", id="defaults"), pytest.param(ALL_RANGE, "range", id="range")],
)
async def test_three_libraries_share_a_group(
    daemon: Daemon, options: dict[str, dict[str, Any]], protocol: str
) -> None:
    board = Board()
    libraries: dict[str, Any] = {
        "aiokafka": AiokafkaMember,
        "kafka-python": KafkaPythonMember,
        "confluent-kafka": ConfluentMember,
    }
    async with Stage() as stage:
        for name, library in libraries.items():
            await stage.enter(library(board, daemon.bootstrap, "mixed", TOPIC, name, **options[name]))
        # Client ids in the order of their names, a partition each.
        await board.until_owned({"aiokafka": (0,), "confluent-kafka": (1,), "kafka-python": (2,)})
        produced = await _produce_with_each_library(daemon.bootstrap)
        assert len(produced) == 30
        await board.until(lambda now: {one for got in now.got.values() for one in got} >= set(produced))
        assert {one[0] for one in board.got["aiokafka"]} == {0}
        assert {one[0] for one in board.got["confluent-kafka"]} == {1}
        assert {one[0] for one in board.got["kafka-python"]} == {2}
        group = await asyncio.to_thread(_describe, daemon.bootstrap)
    assert (group.state, group.partition_assignor) == (confluent_kafka.ConsumerGroupState.STABLE, protocol)


def _describe(bootstrap: str) -> Any:
    """The group as librdkafka's admin client sees it."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    return admin.describe_consumer_groups(["mixed"], request_timeout=30)["mixed"].result()
