"""Topics and their records: made on the cluster, copied partition by partition, counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

from ringleader.clients.admin import Admin
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.metadata import TopicMetadata
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import BrokerError, RetriableError, is_retriable
from ringleader.clients.model import TopicPartition
from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.migration.batches import Aborted, kept
from ringleader.migration.offsets import OffsetMap
from ringleader.migration.source import Source, SourceError
from ringleader.migration.state import NOT_YET, State, TopicState
from ringleader.migration.together import together
from ringleader.migration.writer import PATIENCE_S, PartitionWriter
from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import InitProducerIdRequest
from ringleader.protocol.records import CorruptBatchError, iter_batches
from ringleader.protocol.wire import INT64_MAX

AT_ONCE = 8
"""Partitions that are copied at a time."""
READ_BYTES = 1024 * 1024
MESSAGE_MAX_BYTES = 100 * 1024 * 1024
"""While we copy: batches may be older than the topic's present limit."""

COPYING = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": str(MESSAGE_MAX_BYTES),
    "message.timestamp.after.max.ms": str(INT64_MAX),
    "message.timestamp.before.max.ms": str(INT64_MAX),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""The configuration of a topic while it is filled: every batch is stored as it is, and none is deleted before
all are there."""

Maps = dict[TopicPartition, OffsetMap]
Progress = Callable[[int, int], None]
"""Gets how many offsets are behind us, of how many."""


class ConflictError(Exception):
    """Something on the cluster is in the way; the text says what."""


def conflicts(
    source: Source, there: Mapping[str, TopicMetadata], ends: Mapping[TopicPartition, int], state: State
) -> list[str]:
    """The topics that hold records which are not of this migration. Raises ConflictError for other numbers of
    partitions."""
    found = []
    for info in source.infos():
        topic = there.get(info.name)
        if topic is None:
            continue
        if len(topic.partitions) != info.partitions:
            raise ConflictError(
                f"topic {info.name} has {len(topic.partitions)} partitions on the cluster and "
                f"{info.partitions} here: delete or rename it there"
            )
        begun = state.topics.get(info.name)
        if (begun is None or begun.id != topic.id.hex()) and any(
            ends[info.name, number] for number in range(info.partitions)
        ):
            found.append(info.name)
    return found


async def make(
    admin: Admin,
    source: Source,
    there: Mapping[str, TopicMetadata],
    ends: Mapping[TopicPartition, int],
    state: State,
    replicas: int,
) -> None:
    """All topics are there, and noted. Raises ClientError, OSError."""
    for info in source.infos():
        topic, begun = there.get(info.name), state.topics.get(info.name)
        if topic is not None:
            if begun is None or begun.id != topic.id.hex():
                bases = [ends[info.name, number] for number in range(info.partitions)]
                made = begun is not None and begun.id == NOT_YET
                state.topics[info.name] = TopicState(topic.id.hex(), bases, made)
        else:
            # First of all: the operator who goes on has to know that the settings for copying are not to
            # stay.
            state.topics[info.name] = TopicState(NOT_YET, [0] * info.partitions, made=True)
            state.save()
            configs = source.topic_configs(info) | COPYING
            await admin.create_topic(info.name, info.partitions, replication_factor=replicas, configs=configs)
            (described,) = await admin.describe_topics([info.name])
            state.topics[info.name].id = described.id.hex()
        state.save()


async def settle(admin: Admin, source: Source, info: TopicInfo, state: State) -> None:
    """The topic gets the settings it is to have, when all records are in it."""
    begun = state.topics[info.name]
    if begun.made and not begun.done:
        configs = source.topic_configs(info)
        final = {name: value for name, value in configs.items() if name in COPYING}
        await admin.alter_topic_configs(
            info.name, final, delete=[name for name in COPYING if name not in final]
        )
    begun.done = True
    state.save()


class Copy:
    """Copies the records of all topics, and learns which offset each has on the cluster."""

    def __init__(self, source: Source, cluster: Cluster, state: State, progress: Progress) -> None:
        self._source = source
        self._cluster = cluster
        self._state = state
        self._progress = progress
        self._names = [info.name for info in source.infos()]
        self._slots = [f"copy-{number}" for number in range(AT_ONCE)]
        self._behind = 0
        self.maps: Maps = {}
        self.records = 0
        """Written in this run."""

    @property
    def places(self) -> list[TopicPartition]:
        """All partitions."""
        return [(info.name, number) for info in self._source.infos() for number in range(info.partitions)]

    async def run(self, ends: Mapping[TopicPartition, int]) -> None:
        """`ends`: of the partitions on the cluster, now. Raises ClientError, KafkaError, SourceError,
        ConflictError."""
        total = 0
        for place in self.places:
            partition = self._source.partition(*place)
            total += partition.high_watermark - partition.start_offset
        self._progress(0, total)
        producer = await self._producer()

        async def copied(place: TopicPartition) -> None:
            slot = self._slots.pop()
            writer = PartitionWriter(self._cluster, place, producer, self._names, slot)
            try:
                await self._copy(place, writer, ends[place], total)
            finally:
                await writer.close()
                self._slots.append(slot)

        await together(self.places, copied, AT_ONCE)

    async def _producer(self) -> tuple[int, int]:
        """Id and epoch, as soon as a broker has one to give out."""

        async def ask() -> tuple[int, int]:
            answer = await self._cluster.send(None, plain(InitProducerIdRequest(None, 60_000)))
            if code := answer.error_code:
                text = f"the cluster gives out no producer id: {error_name(code)}"
                raise (RetriableError if is_retriable(code) else BrokerError)(text, code)
            return answer.producer_id, answer.producer_epoch

        deadline_s = asyncio.get_running_loop().time() + PATIENCE_S
        return await retrying(deadline_s, Backoff(50, 1_000, random.random), ask)

    async def _copy(self, place: TopicPartition, writer: PartitionWriter, end: int, total: int) -> None:
        topic, number = place
        partition = self._source.partition(topic, number)
        offsets = self.maps[place] = OffsetMap(self._state.topics[topic].bases[number])
        aborted, offset = Aborted(partition.transactions), partition.start_offset
        while offset < partition.high_watermark:
            begun = offset
            for batch in iter_batches(await self._source.topics.read(partition, offset, READ_BYTES)):
                try:
                    found = kept(batch, partition.start_offset, aborted)
                except CorruptBatchError as error:
                    at = batch.header.base_offset
                    raise SourceError(f"{topic}-{number} cannot be read at {at}: {error.reason}") from None
                offset = batch.header.next_offset
                if found is None:
                    continue
                # An earlier run, which ended early, wrote what is before the end.
                if offsets.end >= end:
                    await writer.add(found)
                elif offsets.end + found.records > end:
                    raise ConflictError(f"somebody else writes to {topic}-{number} on the cluster")
                offsets.add(found.offset, found.records)
            self._behind += offset - begun
            self._progress(self._behind, total)
        offsets.finish(partition.high_watermark)
        await writer.flush()
        self.records += writer.acknowledged

    def check(self, ends: Mapping[TopicPartition, int]) -> None:
        """Raises ConflictError when the cluster has other numbers of records than were written."""
        for (topic, number), offsets in self.maps.items():
            if (end := ends[topic, number]) != offsets.end:
                raise ConflictError(
                    f"{topic}-{number} ends at {end} on the cluster and not at {offsets.end}: somebody else "
                    "writes to it"
                )
