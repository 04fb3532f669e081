"""Two brokers and one partition for a consumer's reader: leaders move, logs shrink, topics are made anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)
from ringleader.protocol.records import Record, build_batch
from tests.support.consuming import PATIENCE_S
from tests.support.scripted_broker import VERSIONS, ScriptedBroker

PLACE = ("t", 0)
SPEAKS = {**VERSIONS, 1: (4, 12), 2: (1, 7), 23: (2, 4)}


class World:
    """Brokers 1 and 2 and one partition, with a log of one-record batches."""

    def __init__(self) -> None:
        self.brokers = [self.broker(node) for node in (1, 2)]
        self.leader = self.named_leader = 1
        self.epoch = 0
        self.topic_id = b"\1" * 16
        self.log: list[bytes] = []
        self.epoch_ends: dict[int, int] = {}
        self.fetching: list[tuple[int, int]] = []
        """Node and offset of each fetch."""
        self.stable: int | None = None
        """Before the last open transaction; None: there is none."""
        self.preferred = -1
        self.version = 0
        self.trick: Callable[[int, Any], Any] = lambda _node, _request: None
        self.validated: list[int] = []
        """Epochs whose ends were asked for."""
        self.may_answer = asyncio.Event()
        """Answers with records are held until then."""
        self.may_answer.set()

    def broker(self, node: int) -> ScriptedBroker:
        def fetch(request: FetchRequest, _version: int, _id: int) -> Any:
            return self.fetch(node, request)

        handlers: dict[int, Callable[[Any, int, int], Any]] = {
            3: self.metadata,
            1: fetch,
            2: self.list_offsets,
            23: self.epoch_end,
        }
        return ScriptedBroker(handlers, SPEAKS)

    def append(self, count: int = 1, epoch: int | None = None) -> None:
        for _ in range(count):
            offset = len(self.log)
            record = Record(offset, 1_000, None, b"%d" % offset)
            self.log.append(build_batch([record], leader_epoch=self.epoch if epoch is None else epoch))

    def metadata(self, _request: Any, _version: int, _id: int) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=broker.port)
            for node, broker in enumerate(self.brokers, 1)
        ]
        part = MetadataResponsePartition(
            partition_index=0, leader_id=self.named_leader, leader_epoch=self.epoch
        )
        topic = MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=[part])
        return MetadataResponse(brokers=brokers, controller_id=1, topics=[topic])

    async def fetch(self, node: int, request: FetchRequest) -> Any:
        wanted = request.topics[0].partitions[0]
        self.fetching.append((node, wanted.fetch_offset))
        if (trick := self.trick(node, wanted)) is not None:
            return trick
        end = len(self.log)
        stable = end if self.stable is None else self.stable
        data = FetchResponsePartitionData(high_watermark=end, last_stable_offset=stable)
        if node != self.leader and self.preferred != node:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif node == self.leader and wanted.current_leader_epoch not in (-1, self.epoch):
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif wanted.fetch_offset > len(self.log):
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif node == self.leader and self.preferred >= 0:
            data.preferred_read_replica = self.preferred
        else:
            readable = stable if request.isolation_level else end
            data.records = b"".join(self.log[wanted.fetch_offset : readable])
            if not data.records:
                await asyncio.sleep(request.max_wait_ms / 1000)
            await self.may_answer.wait()
        return answer(data)

    def list_offsets(self, request: Any, _version: int, _id: int) -> ListOffsetsResponse:
        at = 0 if request.topics[0].partitions[0].timestamp == -2 else len(self.log)
        part = ListOffsetsResponseListOffsetsPartitionResponse(offset=at, leader_epoch=self.epoch)
        topic = ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=[part])
        return ListOffsetsResponse(topics=[topic])

    def epoch_end(self, request: Any, _version: int, _id: int) -> OffsetForLeaderEpochResponse:
        epoch = request.topics[0].partitions[0].leader_epoch
        self.validated.append(epoch)
        end = self.epoch_ends.get(epoch, -1)
        part = OffsetForLeaderEpochResponseEpochEndOffset(leader_epoch=epoch, end_offset=end)
        topic = OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic="t", partitions=[part])
        return OffsetForLeaderEpochResponse(topics=[topic])

    def elect(self, node: int, *, keeps: int | None = None) -> None:
        """Another leader, whose log has only the first records."""
        self.epoch_ends[self.epoch] = len(self.log) if keeps is None else keeps
        self.log = self.log[:keeps]
        self.leader = self.named_leader = node
        self.epoch += 1

    def make_anew(self, records: int) -> None:
        """Another topic of the same name, whose leaders count from the beginning."""
        self.topic_id, self.epoch, self.log, self.epoch_ends = b"\2" * 16, 0, [], {}
        self.append(records)


def answer(data: FetchResponsePartitionData) -> FetchResponse:
    return FetchResponse(responses=[FetchResponseFetchableTopicResponse("t", partitions=[data])])


async def from_the_start(places: Iterable[TopicPartition]) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """The first offset is committed in each of them."""
    return dict.fromkeys(places, OffsetAndMetadata(0))


@contextlib.asynccontextmanager
async def reader(
    world: World, committed: Mapping[TopicPartition, OffsetAndMetadata] | None = None, **options: Any
) -> AsyncIterator[Reader]:
    async def fetch_committed(
        _places: Iterable[TopicPartition],
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return committed or {}

    given: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 50,
        "metadata_max_age_ms": 200,
    } | options
    async with world.brokers[0] as first, world.brokers[1]:
        found = Reader(Cluster(first.address), ConsumerSettings(**given), fetch_committed)
        found.start()
        found.add([PLACE])
        found.release([PLACE])
        try:
            yield found
        finally:
            await found.close()


async def take(one: Reader, count: int) -> list[int]:
    """Take `count` offsets."""
    got: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(got) < count:
            one.something.clear()
            batch: Batch | None = await one.pick(count - len(got))
            if batch is None:
                await one.something.wait()
            else:
                got += [record.offset for record in batch.records]
                one.processed()
    return got
