"""`__consumer_offsets` as a topic to read: the rows of the groups' store, in the order of positions, are a
compacted log. A record's offset is its position.

The end comes from memory: what has become durable since a client began to read. So who reads there sees every
record in its order, deletions (null values) too. Older records are read from the store, which has the last
record of each key and nothing of what was deleted: Kafka's own topic, too, forgets both after a while. There
may be gaps between offsets, and an empty batch leads over one at the end.

Left out are keys that only this daemon knows. A record's time is that of its commit, or of the group's change
of state, as its value has it; of a deletion, when it became durable.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from struct import Struct
from typing import Protocol

from ringleader.coordinator.clock import WallClock
from ringleader.coordinator.groups import records
from ringleader.coordinator.storage.base import Batch, Record, Row, StorageError
from ringleader.coordinator.topics.log import MAX_TIMESTAMP
from ringleader.coordinator.topics.partition import Waiter
from ringleader.coordinator.topics.transactional import TransactionIndex
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError
from ringleader.protocol.records import Record as TopicRecord
from ringleader.protocol.records import build_batch, empty_batch, iter_batches

TOPIC = "__consumer_offsets"
CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
"""As Kafka's own has them."""

TAIL_BYTES = 33_554_432
"""Bytes kept in memory for readers at the end, over all partitions."""

RECORD_OVERHEAD_BYTES = 200
"""Bytes of memory for a record besides its content."""

UNREAD_S = 600.0
"""The in-memory end of a partition is dropped when no client has read it for this time."""

BATCH_RECORDS = 500
BATCH_BYTES = 131_072
"""A batch is closed above either."""

LOOK_ROWS = 200_000
LOOK_BYTES = 33_554_432
"""Bytes that one look at the store brings at most; a reader that needs more has another look taken."""

LOOKS_BYTES = 67_108_864
"""Bytes of memory for looks, over all partitions."""

_KAFKAS = 0
"""The first byte of keys that Kafka knows."""
_SHORT = Struct(">h")
_STAMP = Struct(">q")


class Rows(Protocol):
    """The part of the store (`SqliteStorage`) that is used here."""

    async def ends(self) -> Sequence[int]:
        """By partition: the position of the last record that there ever was; 0: none."""

    async def scan(self, partition: int, after: bytes) -> list[Row]:
        """Some rows by key, those after this one; none at the end. Raises `StorageError`."""


@dataclass(slots=True)
class _Item:
    """Records that became durable together."""

    first: int
    last: int
    records: Sequence[Record]
    at_ms: int
    size: int


@dataclass(slots=True)
class _Look:
    """The records of the store from `first` to `last`, as batches."""

    first: int
    last: int
    taken: int
    """Where the partition ended then: what came later is in the tail, or the look is of no use."""
    batches: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Of each batch, the last offset."""
    size: int = 0

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one with `offset` on, at least one; an empty one when none is left."""
        number = bisect_left(self.ends, offset)
        if number == len(self.ends):
            return empty_batch(offset, self.last)
        found = [self.batches[number]]
        left = max_bytes - len(found[0])
        for batch in self.batches[number + 1 :]:
            left -= len(batch)
            if left < 0:
                break
            found.append(batch)
        return b"".join(found)


class OffsetsPartition:
    """One partition; for readers like one of the topic log (`topics.partition.Readable`)."""

    start_offset = 0

    def __init__(self, topic: OffsetsTopic, number: int) -> None:
        self.number = number
        self.high_watermark = 0
        self.waiters: dict[Waiter, None] = {}
        self.transactions = TransactionIndex()
        self.items: list[_Item] = []
        self.lasts: list[int] = []
        """Of each item."""
        self.before_tail = -1
        """Offsets above it are in `items`; -1: none is kept."""
        self.read_s = 0.0
        """When it was read last, by the loop's clock."""
        self._topic = topic

    @property
    def last_stable_offset(self) -> int:
        """Offsets of open transactions are not shown."""
        return self.high_watermark

    def read_tail(self, offset: int, max_bytes: int) -> bytes | None:
        """See `Partition.read_tail`."""
        self.read_s = asyncio.get_running_loop().time()
        if not 0 <= offset <= self.high_watermark:
            text = f"offset {offset} is not in 0 to {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        if self.before_tail < 0:
            self.before_tail = self.high_watermark - 1 if self.high_watermark else 0
        if offset == self.high_watermark:
            return b""
        return self._from_tail(offset, max_bytes) if offset > self.before_tail else None

    async def read(self, offset: int, max_bytes: int) -> bytes:
        """From the store, what `read_tail` did not have. Raises KafkaError (KAFKA_STORAGE_ERROR)."""
        look = await self._topic.look(self, offset)
        return look.read(offset, max_bytes)

    async def offset_for_time(self, timestamp_ms: int) -> tuple[int, int]:
        """See `Topics.offset_for_time`."""
        offset, found = 0, (-1, -1)
        while offset < self.high_watermark:
            data = self.read_tail(offset, BATCH_BYTES)
            if data is None:
                data = await self.read(offset, LOOK_BYTES)
            for record, next_offset in await asyncio.to_thread(_stamps, data):
                offset = next_offset
                if timestamp_ms == MAX_TIMESTAMP:
                    found = max(found, record, key=lambda one: one[1])
                elif record[1] >= timestamp_ms:
                    return record
        return found

    def _from_tail(self, offset: int, max_bytes: int) -> bytes:
        found: list[TopicRecord] = []
        size = 0
        for item in self.items[bisect_left(self.lasts, offset) :]:
            for position, (key, value) in enumerate(item.records, item.first):
                if position >= offset and key[0] == _KAFKAS:
                    found.append(TopicRecord(position, _time_of(key, value, item.at_ms), key, value))
                    size += len(key) + len(value or b"")
            if size >= min(max_bytes, BATCH_BYTES) or len(found) >= BATCH_RECORDS:
                break
        return build_batch(found)

    # ---- what becomes durable ----

    def add(self, content: Sequence[Record], end: int, at_ms: int) -> int:
        """These became durable, the last one at position `end`; how much is kept of them."""
        last = end
        for key, _ in reversed(content):
            if key[0] == _KAFKAS:
                break
            last -= 1
        first = end - len(content) + 1
        if last < first:  # nothing to show; the end is where it was
            return 0
        self.high_watermark = last + 1
        size = 0
        if self.before_tail >= 0:
            size = sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in content)
            self.items.append(_Item(first, last, content, at_ms, size))
            self.lasts.append(last)
        if self.waiters:
            self._wake(sum(len(key) + len(value or b"") for key, value in content))
        return size

    def _wake(self, size: int) -> None:
        for waiter in list(self.waiters):
            waiter.bytes_needed -= size
            if waiter.bytes_needed <= 0:
                waiter.cancel()
                waiter.wake()

    def forget_first(self, count: int) -> None:
        """Keep these many items at the beginning of the tail no longer."""
        self.before_tail = self.lasts[count - 1]
        del self.items[:count], self.lasts[:count]

    def forget_all(self) -> int:
        """Keep no tail; how much was kept."""
        size = sum(item.size for item in self.items)
        self.items, self.lasts, self.before_tail = [], [], -1
        return size

    def wake_all(self) -> None:
        """Nobody need wait any more."""
        self._wake(2**62)


class OffsetsTopic:
    """All partitions. For one loop's thread."""

    def __init__(self, partitions: int, rows: Rows, wall_ms: WallClock) -> None:
        self.partitions = [OffsetsPartition(self, number) for number in range(partitions)]
        self._rows = rows
        self._wall_ms = wall_ms
        self._kept = 0
        """Bytes of all tails."""
        self._looks: dict[int, _Look] = {}
        """By partition, the one that was used least recently first."""
        self._turns: dict[int, asyncio.Lock] = {}

    async def start(self) -> None:
        """Learn where the partitions end. Raises `StorageError`."""
        for partition, end in zip(self.partitions, await self._rows.ends(), strict=True):
            partition.high_watermark = max(partition.high_watermark, end + 1 if end else 0)

    def durable(self, batches: Sequence[Batch], ends: Sequence[int]) -> None:
        """To be called for every transaction of the store that succeeded, in their order."""
        at_ms = self._wall_ms()
        for (number, _, content), end in zip(batches, ends, strict=True):
            if content:
                self._kept += self.partitions[number].add(content, end, at_ms)
        if self._kept > TAIL_BYTES:
            self._trim()

    def _trim(self) -> None:
        """Halve the tails, those without readers first."""
        unread_s = asyncio.get_running_loop().time() - UNREAD_S
        for partition in self.partitions:
            if partition.before_tail >= 0 and partition.read_s < unread_s:
                self._kept -= partition.forget_all()
        if self._kept <= TAIL_BYTES // 2:
            return
        for partition in self.partitions:
            count = (len(partition.items) + 1) // 2
            if count:
                self._kept -= sum(item.size for item in partition.items[:count])
                partition.forget_first(count)

    # ---- what is in the store ----

    async def look(self, partition: OffsetsPartition, offset: int) -> _Look:
        """The records of the store from `offset` on, or from before it. Raises KafkaError
        (KAFKA_STORAGE_ERROR)."""
        number = partition.number
        async with self._turns.setdefault(number, asyncio.Lock()):
            look = self._looks.pop(number, None)
            if look is None or not (
                look.first <= offset <= look.last and partition.before_tail <= look.taken
            ):
                try:
                    look = await self._taken(partition, offset)
                except StorageError as error:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            self._looks[number] = look
            sizes = sum(one.size for one in self._looks.values())
            while sizes > LOOKS_BYTES and len(self._looks) > 1:
                sizes -= self._looks.pop(next(iter(self._looks))).size
            return look

    async def _taken(self, partition: OffsetsPartition, offset: int) -> _Look:
        # Records that become durable from now on are in the tail, or were promised to nobody.
        last = taken = partition.high_watermark - 1
        # The highest position first: what is too much goes one by one, as sorting all would stop the loop.
        heap: list[tuple[int, bytes, bytes]] = []
        size = 0
        after = b""
        while rows := await self._rows.scan(partition.number, after):
            after = rows[-1][2]
            for position, _, key, value in rows:
                if offset <= position <= last and key[0] == _KAFKAS and value is not None:
                    heappush(heap, (-position, key, value))
                    size += len(key) + len(value)
            while len(heap) > 1 and (len(heap) > LOOK_ROWS or size > LOOK_BYTES):
                negative, key, value = heappop(heap)
                size -= len(key) + len(value)
                last = -negative - 1
        return await asyncio.to_thread(_batched, _Look(offset, last, taken), heap)


def _batched(look: _Look, heap: list[tuple[int, bytes, bytes]]) -> _Look:
    """The look with the records of the heap, on a thread."""
    found = [heappop(heap) for _ in range(len(heap))]
    some: list[TopicRecord] = []
    size = 0

    def close() -> None:
        look.batches.append(build_batch(some))
        look.ends.append(some[-1].offset)
        look.size += len(look.batches[-1])

    for negative, key, value in reversed(found):
        some.append(TopicRecord(-negative, _time_of(key, value, -1), key, value))
        size += len(key) + len(value)
        if len(some) >= BATCH_RECORDS or size >= BATCH_BYTES:
            close()
            some, size = [], 0
    if some:
        close()
    return look


def _stamps(data: bytes) -> list[tuple[tuple[int, int], int]]:
    """Offset and time of each record, and where to read on behind it."""
    found: list[tuple[tuple[int, int], int]] = []
    for batch in iter_batches(data):
        found += [((one.offset, one.timestamp_ms), one.offset + 1) for one in batch.records()]
        found.append(((-1, -1), batch.header.next_offset))
    return found


def _time_of(key: bytes, value: bytes | None, at_ms: int) -> int:
    """The time of a record; `at_ms`: of one that does not say."""
    if value is None:
        return at_ms
    try:
        if key[1] != records.GROUP:
            return records.decode_offset_value(value).commit_ms
        if _SHORT.unpack_from(value)[0] not in (2, 3):
            return records.decode_group_value(value).current_state_timestamp
        # Without its members: there may be thousands.
        at = 4 + _SHORT.unpack_from(value, 2)[0] + 4
        for _ in ("protocol", "leader"):
            at += 2 + max(_SHORT.unpack_from(value, at)[0], 0)
        stamp: int = _STAMP.unpack_from(value, at)[0]
        return stamp
    except (MalformedError, IndexError, ValueError):
        return at_ms
