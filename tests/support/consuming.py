"""Records for a consumer, and a reader of them that knows whether one is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.fetch.model import Batch
from ringleader.clients.model import TopicPartition
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator

PATIENCE_S = 30.0
QUICK: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
    "auto_offset_reset": "earliest",
    "retry_backoff_ms": 20,
}


def consumer(where: Coordinator | str, name: str = "a", **options: Any) -> GroupConsumer:
    """A consumer of the topic `t` in group `g`, from the beginning."""
    bootstrap = where if isinstance(where, str) else where.bootstrap
    given: dict[str, Any] = {"client_id": name} | QUICK | options
    topics = None if "pattern" in given else given.pop("topics", ["t"])
    return GroupConsumer(bootstrap, given.pop("group", "g"), topics, **given)


def value(place: TopicPartition, number: int, size: int = 0) -> bytes:
    """Tells where a record was put, and as the how manieth."""
    return b"%s-%d-%d" % (place[0].encode(), place[1], number) + b"." * size


class Source:
    """Puts numbered records into a coordinator's topics; from the thread of the test."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.counts: dict[TopicPartition, int] = {}

    def put(self, place: TopicPartition, count: int = 1, *, size: int = 0, **options: Any) -> None:
        """One batch of `count` records; `options` as for `build_batch`."""
        first = self.counts.get(place, 0)
        records = [Record(i, 1_000 + first + i, b"k", value(place, first + i, size)) for i in range(count)]
        self.append(place, build_batch(records, **options))
        self.counts[place] = first + count

    def append(self, place: TopicPartition, batch: bytes) -> None:
        """Bytes as they are."""
        self._coordinator.run(self._coordinator.node.topics.append(*place, batch))

    def fill(self, partitions: int = 4, batches: int = 5, count: int = 20, **options: Any) -> None:
        """Several batches into each partition of `t`."""
        for _ in range(batches):
            for partition in range(partitions):
                self.put(("t", partition), count, **options)


class Sink:
    """The records that were read, by partition."""

    def __init__(self) -> None:
        self.values: dict[TopicPartition, list[bytes]] = {}
        self.offsets: dict[TopicPartition, list[int]] = {}
        self.total = 0

    def add(self, batch: Batch) -> None:
        self.values.setdefault(batch.topic_partition, []).extend(
            record.value or b"" for record in batch.records
        )
        self.offsets.setdefault(batch.topic_partition, []).extend(record.offset for record in batch.records)
        self.total += len(batch)

    def exactly(self, source: Source) -> None:
        """Every record once, in order."""
        expected = {
            place: [value(place, number) for number in range(count)]
            for place, count in source.counts.items()
            if count
        }
        assert self.values == expected


async def read(one: GroupConsumer, sink: Sink, until: Callable[[], bool]) -> None:
    """Read until that holds after a batch."""
    async with asyncio.timeout(PATIENCE_S):
        async for batch in one:
            sink.add(batch)
            if until():
                return


async def read_count(one: GroupConsumer, count: int, sink: Sink | None = None) -> Sink:
    """Read until there are `count` records in the sink."""
    sink = sink or Sink()
    await read(one, sink, lambda: sink.total >= count)
    return sink


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that tells nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def fetched_offsets(coordinator: Coordinator, place: TopicPartition) -> list[int]:
    """The offsets that clients asked for, of one partition, by name or by id."""
    topic = coordinator.node.topics.describe(place[0])
    assert topic is not None
    return [
        part.fetch_offset
        for seen in coordinator.faults.seen("Fetch")
        for requested in seen.request.topics
        for part in requested.partitions
        if (requested.topic == topic.name or requested.topic_id == topic.id) and part.partition == place[1]
    ]


def places(partitions: Iterable[int]) -> list[TopicPartition]:
    """Of topic `t`."""
    return [("t", partition) for partition in partitions]
