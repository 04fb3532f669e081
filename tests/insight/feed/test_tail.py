"""Every record is delivered once, in its partition's order, whatever happens to transactions, logs and
readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.insight.feed.tail import Data, Gap, Tail
from ringleader.insight.history import Position
from ringleader.testing.coordinator import Coordinator

PATIENCE_S = 60.0
TOPIC = "facts"
BEGIN = {(TOPIC, number): Position(0, 0) for number in range(3)}


class Tailed:
    """A tail, and the records that it delivered."""

    def __init__(self, bootstrap: str) -> None:
        self.tail = Tail(Cluster(bootstrap), self._tell, lambda gap: self.gaps.append(gap))
        self.gaps: list[Gap] = []
        self.records: list[tuple[int, int, bytes | None]] = []

    def _tell(
        self,
        topic: str,
        partition: int,
        offsets: Sequence[int],
        times: Sequence[int],
        keys: Data,
        values: Data,
    ) -> None:
        assert topic == TOPIC
        assert min(times) > 0
        assert len(offsets) == len(times) == len(keys) == len(values)
        self.records += [(partition, offset, value) for offset, value in zip(offsets, values, strict=True)]

    @property
    def values(self) -> list[bytes | None]:
        return [value for _, _, value in self.records]

    async def until(self, tp: TopicPartition, offset: int) -> None:
        """All records before that offset were delivered."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.tail.is_past({tp: offset}):
                await self.tail.read(1.0)


@asynccontextmanager
async def telling(bootstrap: str, positions: Mapping[TopicPartition, Position]) -> AsyncIterator[Tailed]:
    tailed = Tailed(bootstrap)
    tailed.tail.start()
    try:
        tailed.tail.add(positions)
        yield tailed
    finally:
        await tailed.tail.close()


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={TOPIC: 3}) as started:
        yield started


async def test_every_record_once_in_its_order_and_on_from_the_positions(coordinator: Coordinator) -> None:
    for number in range(30):
        coordinator.produce(TOPIC, b"%d" % number, partition=number % 3)
    async with telling(coordinator.bootstrap, BEGIN) as tailed:
        for partition in range(3):
            await tailed.until((TOPIC, partition), 10)
        expected = [(part, offset, b"%d" % (offset * 3 + part)) for part in range(3) for offset in range(10)]
        assert sorted(tailed.records) == expected
        assert tailed.tail.positions == dict.fromkeys(BEGIN, Position(10, 10))
        coordinator.produce(TOPIC, b"live", partition=1)
        await tailed.until((TOPIC, 1), 11)
        assert tailed.records[30:] == [(1, 10, b"live")]
        positions = tailed.tail.positions
        assert tailed.tail.holes == 0
    coordinator.produce(TOPIC, b"later", partition=2)
    async with telling(coordinator.bootstrap, positions) as again:
        await again.until((TOPIC, 2), 11)
        assert again.records == [(2, 10, b"later")]
        found = await again.tail.offsets({(TOPIC, 2): LATEST, (TOPIC, 0): EARLIEST})
        assert found == {(TOPIC, 2): 11, (TOPIC, 0): 0}


def producer(coordinator: Coordinator, name: str) -> confluent_kafka.Producer:
    made = confluent_kafka.Producer(
        {"bootstrap.servers": coordinator.bootstrap, "transactional.id": name, "linger.ms": 0}
    )
    made.init_transactions(PATIENCE_S)
    return made


def write(one: confluent_kafka.Producer, value: bytes) -> None:
    one.produce(TOPIC, value=value, key=value, partition=0)
    assert one.flush(PATIENCE_S) == 0


async def test_transactions_count_from_their_commit_and_hold_nobody_up(coordinator: Coordinator) -> None:
    tp = (TOPIC, 0)
    slow, quick = producer(coordinator, "slow"), producer(coordinator, "quick")
    slow.begin_transaction()
    write(slow, b"slow 1")  # offset 0
    coordinator.produce(TOPIC, b"plain")  # 1
    quick.begin_transaction()
    write(quick, b"aborted")  # 2
    await asyncio.to_thread(quick.abort_transaction, PATIENCE_S)  # 3
    quick.begin_transaction()
    write(quick, b"quick")  # 4
    await asyncio.to_thread(quick.commit_transaction, PATIENCE_S)  # 5
    async with telling(coordinator.bootstrap, {tp: Position(0, 0)}) as tailed:
        await tailed.until(tp, 6)
        # The open transaction does not keep the others back; the marker's offset is when it counts.
        assert tailed.records == [(0, 1, b"plain"), (0, 5, b"quick")]
        positions = tailed.tail.positions
        assert positions == {tp: Position(6, 0)}
        write(slow, b"slow 2")  # 6
        await asyncio.to_thread(slow.commit_transaction, PATIENCE_S)  # 7
        await tailed.until(tp, 8)
        assert tailed.records[2:] == [(0, 7, b"slow 1"), (0, 7, b"slow 2")]
        assert tailed.tail.positions == {tp: Position(8, 8)}
    # A reader that goes on in the middle knows what was open, and delivers nothing twice.
    async with telling(coordinator.bootstrap, positions) as again:
        await again.until(tp, 8)
        assert again.records == [(0, 7, b"slow 1"), (0, 7, b"slow 2")]
        assert again.tail.holes == 0


async def test_a_position_that_the_log_has_not_is_a_gap(coordinator: Coordinator) -> None:
    tp = (TOPIC, 0)
    for number in range(5):
        coordinator.produce(TOPIC, b"%d" % number)
    # Its log was longer once.
    async with telling(coordinator.bootstrap, {tp: Position(9, 9)}) as tailed:
        async with asyncio.timeout(PATIENCE_S):
            while not tailed.gaps:
                await tailed.tail.read(0.2)
        coordinator.produce(TOPIC, b"new")
        await tailed.until(tp, 6)
        assert tailed.gaps == [Gap(*tp, 9, 5, "the log was truncated")]
        assert tailed.values == [b"new"]


async def test_a_topic_that_was_created_again_is_read_from_its_beginning(coordinator: Coordinator) -> None:
    tp = (TOPIC, 0)
    for number in range(5):
        coordinator.produce(TOPIC, b"%d" % number)
    async with telling(coordinator.bootstrap, {tp: Position(0, 0)}) as tailed:
        await tailed.until(tp, 5)
        async with Admin(coordinator.bootstrap) as admin:
            await admin.delete_topics([TOPIC])
            await admin.create_topic(TOPIC, 3)
        coordinator.produce(TOPIC, b"first of the new one")
        async with asyncio.timeout(PATIENCE_S):
            while tailed.values[-1] != b"first of the new one":
                await tailed.tail.read(0.2)
        assert tailed.gaps == [Gap(*tp, 5, 0, "the topic was deleted and made again")]
