"""Every record is delivered once, in its partition's order, whatever happens to transactions, logs and
readers."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.insight.feed.tail import Data, Gap, Tail
from ringleader.insight.history import Position
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator
from tests.support.two_brokers import fetched, two_brokers

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


class Log:
    """Batches of one record, by offset, at the leader of partition 0."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.more = asyncio.Event()

    def append(self, value: bytes, *, end: bool = False, transactional: bool = True) -> None:
        """`end`: the value is a marker's key."""
        key = value if end else b"k" + value
        record = Record(len(self.batches), 1_000, key, value)
        ids = {"producer_id": 7, "producer_epoch": 0} if transactional else {}
        self.batches.append(build_batch([record], transactional=transactional, control=end, **ids))
        self.more.set()

    def corrupt(self, offset: int) -> None:
        good = self.batches[offset]
        self.batches[offset] = good[:-1] + bytes([good[-1] ^ 1])

    def lose(self, offset: int) -> None:
        """All from there on."""
        del self.batches[offset:]
        self.more.set()

    def ends(self, request: ListOffsetsRequest, _version: int, _id: int) -> ListOffsetsResponse:
        [part] = request.topics[0].partitions
        offset = 0 if part.timestamp == EARLIEST else len(self.batches)
        found = ListOffsetsResponseListOffsetsPartitionResponse(0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsResponseListOffsetsTopicResponse(TOPIC, [found])])

    async def fetch(self, request: FetchRequest, _version: int, _id: int) -> FetchResponse:
        [part] = request.topics[0].partitions
        while part.fetch_offset == len(self.batches):
            self.more.clear()
            await self.more.wait()
        if part.fetch_offset > len(self.batches):
            return fetched(request, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return fetched(request, b"".join(self.batches[part.fetch_offset :]))


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


async def test_a_transaction_goes_on_across_a_batch_that_cannot_be_read() -> None:
    tp, log = (TOPIC, 0), Log()
    log.append(b"first")
    log.append(b"lost", transactional=False)
    log.append(b"second")
    log.append(b"plain", transactional=False)
    log.corrupt(1)
    gap = Gap(*tp, 1, 2, "they cannot be read")
    async with two_brokers() as cluster:
        cluster.leaders = {TOPIC: [1]}
        cluster.on(1, log.fetch)
        async with telling(cluster.bootstrap, {tp: Position(0, 0)}) as tailed:
            await tailed.until(tp, 4)
            assert (tailed.records, tailed.gaps) == ([(0, 3, b"plain")], [gap])
            positions = tailed.tail.positions
            assert positions == {tp: Position(4, 0)}
            log.append(struct.pack(">hh", 0, 1), end=True)
            await tailed.until(tp, 5)
            assert tailed.records[1:] == [(0, 4, b"first"), (0, 4, b"second")]
        # A reader that goes on in the middle passes the batch once more, and delivers nothing twice.
        async with telling(cluster.bootstrap, positions) as again:
            await again.until(tp, 5)
            assert again.records == [(0, 4, b"first"), (0, 4, b"second")]
            assert (again.gaps, again.tail.unreadable) == ([], 0)


async def test_a_transaction_that_began_before_a_gap_is_open_behind_it() -> None:
    tp, log = (TOPIC, 0), Log()
    log.append(b"first")
    for _ in range(3):
        log.append(b"plain", transactional=False)
    async with two_brokers() as cluster:
        cluster.leaders = {TOPIC: [1]}
        cluster.on(1, log.fetch)
        cluster.on(2, log.ends)
        async with telling(cluster.bootstrap, {tp: Position(0, 0)}) as tailed:
            await tailed.until(tp, 4)
            log.lose(2)
            async with asyncio.timeout(PATIENCE_S):
                while not tailed.gaps:
                    await tailed.tail.read(1.0)
            assert tailed.gaps == [Gap(*tp, 4, 2, "the log was truncated")]
            log.append(struct.pack(">hh", 0, 1), end=True)
            await tailed.until(tp, 3)
            assert tailed.records == [*((0, one, b"plain") for one in (1, 2, 3)), (0, 2, b"first")]
