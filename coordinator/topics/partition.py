"""One partition: what is in its files, what is on its way, who waits for more. Kept by the loop's thread.

An append gets its offset here, at once; its bytes go to the writing thread; it counts (high watermark,
readers, answer) when they are written. When a write fails, that append and all later ones on their way are
taken back.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol

from ringleader.coordinator.topics.appender import Chain, FileWrite
from ringleader.coordinator.topics.background import Sealed
from ringleader.coordinator.topics.configs import TopicConfig
from ringleader.coordinator.topics.producers import ProducedBatch, ProducerCount, ProducerEntry
from ringleader.coordinator.topics.recovery import Recovered
from ringleader.coordinator.topics.segment import NO_TIMESTAMP, Segment, Snapshot, find_time, read_range
from ringleader.coordinator.topics.tails import Tail, TailCache
from ringleader.coordinator.topics.transactional import TransactionIndex, marker, refuse_unverified
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import (
    BatchHeader,
    ChecksumError,
    CorruptBatchError,
    InvalidBatchError,
    check_batch,
    parse_header,
    stamp,
    stamp_append_time,
)

_BASE_OFFSET = attrgetter("base_offset")
_SOME_BYTES = 2**62
"""More offsets became stable; their number is found by reading."""
LEADER_EPOCH = 0
"""There is one node, which leads all partitions for ever."""


class AppendResult(NamedTuple):
    """Where a batch is. `log_append_time_ms` is -1 unless the topic stamps records with it."""

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


Done = Callable[["AppendResult | KafkaError"], None]
"""Gets the result of an append, on the loop's thread."""

Verify = Callable[[int, int], None]
"""Gets producer id and epoch of a transactional batch; raises KafkaError if it does not belong to the open
transaction of that producer, or this partition does not."""


@dataclass(slots=True, eq=False)
class PendingAppend(FileWrite):
    """An append on its way."""

    partition: Partition
    segment: Segment
    header: BatchHeader
    append_time_ms: int
    before: ProducerEntry | None
    """The state of its producer before."""
    done: list[Done]
    committed: bool | None
    """The content of a marker; None for other batches."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits for `bytes_needed` more bytes in these partitions together. `wake` is called once:
    when they have been added, or a partition was deleted."""

    bytes_needed: int
    wake: Callable[[], None]
    partitions: Sequence[Readable]
    stable: bool = False
    """Only bytes before the last stable offset count."""

    def __post_init__(self) -> None:
        for partition in self.partitions:
            partition.waiters[self] = None

    def cancel(self) -> None:
        """Wait no more; `wake` will not be called."""
        for partition in self.partitions:
            partition.waiters.pop(self, None)


class Readable(Protocol):
    """A partition to read, of this log or of what else is served as a topic. Each raises KafkaError as
    `Partition` does."""

    waiters: dict[Waiter, None]
    transactions: TransactionIndex

    @property
    def start_offset(self) -> int:
        """The first offset."""

    @property
    def high_watermark(self) -> int:
        """The next offset."""

    @property
    def last_stable_offset(self) -> int:
        """See `Partition.last_stable_offset`."""

    def read_tail(self, offset: int, max_bytes: int) -> bytes | None:
        """See `Partition.read_tail`."""


class Served(Readable, Protocol):
    """A partition whose records are not in this log."""

    async def read(self, offset: int, max_bytes: int) -> bytes:
        """The batches that `read_tail` had not: whole ones, at least one."""

    async def offset_for_time(self, timestamp_ms: int) -> tuple[int, int]:
        """See `Topics.offset_for_time`."""

    def wake_all(self) -> None:
        """Wake the readers that wait for more."""


class Partition:
    """See the module. Raises KafkaError where a client's request cannot be done."""

    def __init__(
        self,
        directory: Path,
        config: TopicConfig,
        found: Recovered,
        tails: TailCache,
        all_producers: ProducerCount,
    ) -> None:
        self.directory = directory
        self.config = config
        self.segments = found.segments
        self.producers = found.producers
        self.producers.join(all_producers)
        self.transactions = found.transactions
        self.start_offset = found.start_offset
        self.high_watermark = found.next_offset
        """Offset of the next record as far as written: the end that clients see."""
        self.next_offset = found.next_offset
        """The same with what is on its way."""
        self.synced_before = -1
        """Files that end at or before this offset are known to be on the disk."""
        self.tail = Tail()
        self.waiters: dict[Waiter, None] = {}
        self.deleted = False
        self._tails = tails
        self._in_flight: deque[PendingAppend] = deque()
        self._active_bytes = self.segments[-1].size_bytes if self.segments else 0
        self.chain = Chain()
        """Of all appends since the last one that failed."""
        self._sealing: dict[Segment, list[list[object]]] = {}
        """Complete files that are still being written, and the producers at their end."""
        self._changed = found.scanned_bytes > 0

    # ---- appending ----

    def append(
        self, batch: bytes, now_ms: int, done: Done, verify: Verify = refuse_unverified
    ) -> PendingAppend | None:
        """Append a producer's batch; the caller hands what is returned to the appending thread. None: it is a
        duplicate, and `done` gets the earlier result.

        Raises KafkaError; then nothing changed, and `done` is not called: MESSAGE_TOO_LARGE,
        RECORD_LIST_TOO_LARGE, CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TXN_STATE, those of
        `Producers.check`, and those of `verify` for a transactional batch.
        """
        header = self._checked(batch)
        if header.is_transactional:
            verify(header.producer_id, header.producer_epoch)
        elif header.producer_id in self.transactions.open:
            text = f"producer {header.producer_id} has an open transaction"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        earlier = self.producers.check(header)
        if earlier is not None:
            self._duplicate(earlier, done)
            return None
        return self._place(batch, header, now_ms, done)

    def append_marker(
        self, producer_id: int, producer_epoch: int, now_ms: int, done: Done, *, committed: bool
    ) -> PendingAppend:
        """End a producer's transaction here; batches of earlier epochs are refused from then on."""
        batch = marker(producer_id, producer_epoch, now_ms, committed=committed)
        return self._place(batch, parse_header(batch), now_ms, done, committed)

    def _place(
        self, batch: bytes, header: BatchHeader, now_ms: int, done: Done, committed: bool | None = None
    ) -> PendingAppend:
        header, append_time_ms = header._replace(base_offset=self.next_offset), -1
        if self.config.append_time and committed is None:
            batch, append_time_ms = stamp_append_time(batch, now_ms), now_ms
            header = header._replace(max_timestamp=now_ms)
        # First, for a file that ends here has seen all producers but the one whose batch opens the next file.
        segment, before = self._segment_for(header), None
        if committed is not None:
            before = self.producers.fence(header.producer_id, header.producer_epoch, now_ms)
        elif header.producer_id >= 0:
            before = self.producers.add(header, header.base_offset, now_ms)
        self.next_offset = header.next_offset
        pending = PendingAppend(
            path=segment.path,
            position=self._active_bytes,
            data=stamp(batch, header.base_offset, LEADER_EPOCH),
            chain=self.chain,
            partition=self,
            segment=segment,
            header=header,
            append_time_ms=append_time_ms,
            before=before,
            done=[done],
            committed=committed,
        )
        self._in_flight.append(pending)
        self._active_bytes += len(batch)
        return pending

    def _checked(self, batch: bytes) -> BatchHeader:
        if len(batch) > self.config.max_message_bytes:
            text = f"a batch of {len(batch)} bytes, {self.config.max_message_bytes} are allowed"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
        if len(batch) > self.config.segment_bytes:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, "the batch is larger than a segment")
        try:
            header = check_batch(batch)
        except InvalidBatchError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from None
        except (ChecksumError, CorruptBatchError) as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, error.reason) from None
        if header.is_control:
            raise KafkaError(ErrorCode.INVALID_RECORD, "clients do not write control records")
        return header

    def _duplicate(self, earlier: ProducedBatch, done: Done) -> None:
        for pending in self._in_flight:
            if pending.header.base_offset == earlier.base_offset:
                pending.done.append(done)
                return
        done(AppendResult(earlier.base_offset, -1, self.start_offset))

    def _segment_for(self, header: BatchHeader) -> Segment:
        if self.segments:
            active, size = self.segments[-1], self._active_bytes
            full = size > 0 and size + header.size_bytes > self.config.segment_bytes
            first = active.first_timestamp
            if not full and (first == NO_TIMESTAMP or header.max_timestamp - first <= self.config.segment_ms):
                return active
            self._sealing[active] = self.producers.dump()
        return self._open_segment()

    def _open_segment(self) -> Segment:
        segment = Segment(self.directory, self.next_offset)
        self.segments.append(segment)
        self._active_bytes = 0
        return segment

    def written(self, pending: PendingAppend) -> Sealed | None:
        """An append is in its file. Returns the file that is complete by that: the one before this one."""
        assert self._in_flight[0] is pending, "writes are reported in their order"
        self._in_flight.popleft()
        segment, header, sealed = pending.segment, pending.header, None
        complete = next(iter(self._sealing), segment)
        if complete.base_offset < segment.base_offset:
            sealed = self._seal(complete, self._sealing.pop(complete))
        segment.add(header)
        self.high_watermark = header.next_offset
        self._changed = True
        self._tails.add(self.tail, header.base_offset, header.next_offset, pending.data)
        stable_bytes = header.size_bytes
        if header.is_transactional or self.transactions.open:
            stable_bytes = self._track(header, pending.committed)
        if self.waiters:
            self._advance(header.size_bytes, stable_bytes)
        return sealed

    def _seal(self, segment: Segment, producers: list[list[object]]) -> Sealed:
        """A file and what is known at its end; nothing behind it may be written."""
        transactions = self.transactions
        aborted = transactions.dump_aborted(segment.base_offset, segment.next_offset)
        return segment, Snapshot(producers, [*transactions.open.items()], aborted)

    def _track(self, header: BatchHeader, committed: bool | None) -> int:
        """A batch was written, it or earlier ones of a transaction. How many bytes became stable."""
        transactions, producer_id = self.transactions, header.producer_id
        if committed is None:
            if header.is_transactional:
                transactions.add(producer_id, header.base_offset)
            return 0
        is_first = next(iter(transactions.open), None) == producer_id
        transactions.end(producer_id, header.base_offset, committed=committed)
        return _SOME_BYTES if is_first else 0

    def failed(self) -> tuple[list[Done], list[Segment]]:
        """A write failed: take back all that is on its way. Returns who waits for it, and files that must be
        as large as their `size_bytes` again, or gone if they are not in `segments` any more."""
        taken, self._in_flight = self._in_flight, deque()
        for pending in reversed(taken):
            self.producers.take_back(pending.header.producer_id, pending.before)
        self.next_offset = self.high_watermark
        while len(self.segments) > 1 and not self.segments[-1].size_bytes:
            self.segments.pop()
        self._sealing = {}
        self._active_bytes = self.segments[-1].size_bytes
        self.chain = Chain()
        touched = dict.fromkeys(pending.segment for pending in taken)
        return [done for pending in taken for done in pending.done], list(touched)

    # ---- reading ----

    @property
    def last_stable_offset(self) -> int:
        """The end that readers of committed records see: before the first open transaction."""
        first = next(iter(self.transactions.open.values()), None)
        return self.high_watermark if first is None else max(first, self.start_offset)

    def read_tail(self, offset: int, max_bytes: int) -> bytes | None:
        """Whole batches from memory; empty at the end; None when they must be read with `read_plan`.

        Raises KafkaError (OFFSET_OUT_OF_RANGE).
        """
        if offset == self.high_watermark:
            return b""
        if not self.start_offset <= offset < self.high_watermark:
            text = f"offset {offset} is not in {self.start_offset} to {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        return self.tail.read(offset, max_bytes)

    def read_plan(self, offset: int, max_bytes: int, at_least_one: bool = True) -> Callable[[], bytes | None]:
        """Reads from `offset` on, on another thread: see `read_range`. Call after `read_tail` said None."""
        segment = self.segments[max(bisect_right(self.segments, offset, key=_BASE_OFFSET) - 1, 0)]
        position = segment.position_before(offset)
        boundary = max(segment.boundary(position + max_bytes), position)
        largest = segment.size_bytes if at_least_one else max_bytes
        return partial(read_range, segment.path, position, boundary, segment.size_bytes, offset, largest)

    def time_plan(self, timestamp_ms: int) -> Callable[[], tuple[int, int]]:
        """Looks for the record of a time, on another thread: see `find_time`."""
        parts = [
            (segment.path, segment.position_before_time(timestamp_ms), segment.size_bytes)
            for segment in self.segments
            if segment.size_bytes and segment.max_timestamp >= timestamp_ms
        ]
        return partial(find_time, parts, timestamp_ms, self.start_offset)

    def _advance(self, size: int, stable_bytes: int) -> None:
        for waiter in list(self.waiters):
            waiter.bytes_needed -= stable_bytes if waiter.stable else size
            if waiter.bytes_needed <= 0:
                waiter.cancel()
                waiter.wake()

    def delete(self) -> None:
        """The topic is gone: readers that wait here learn it by reading again."""
        self.deleted = True
        self.producers.expire(2**63)
        self.wake_all()

    def wake_all(self) -> None:
        """Wake the readers that wait for more."""
        self._advance(_SOME_BYTES, _SOME_BYTES)

    # ---- what goes ----

    def truncate(self, offset: int) -> list[Segment]:
        """Move the start, which is durable; returns the files that no reader can reach any more."""
        self.start_offset = max(self.start_offset, offset)
        self.transactions.forget_before(self.start_offset)
        deleted: list[Segment] = []
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.start_offset:
            if self.segments[0] in self._sealing:
                break
            deleted.append(self.segments.pop(0))
        return deleted

    def retention_start(self, now_ms: int) -> int:
        """The start that retention asks for: where a file begins, or the end when all records are too old."""
        config, deleted = self.config, 0
        # Files that are written to stay.
        files = self.segments[: -1 - len(self._sealing)] if self._in_flight else self.segments
        if config.retention_ms >= 0:
            while deleted < len(files) and _newest(files[deleted]) < now_ms - config.retention_ms:
                deleted += 1
        if config.retention_bytes >= 0:
            size = sum(segment.size_bytes for segment in self.segments[deleted:])
            while deleted < min(len(files), len(self.segments) - 1):
                size -= files[deleted].size_bytes
                if size < config.retention_bytes:
                    break
                deleted += 1
        if deleted and deleted == len(self.segments):
            return self.next_offset
        return self.segments[deleted].base_offset if deleted else self.start_offset

    def roll(self) -> Sealed | None:
        """Begin a new file; returns the one that is complete by that. None: the last one is empty, or is
        being written to."""
        if self._in_flight or not self.segments or not self.segments[-1].size_bytes:
            return None
        sealed = self._seal(self.segments[-1], self.producers.dump())
        self._open_segment()
        return sealed

    # ---- what is on the disk ----

    def unsynced(self, offset: int) -> list[Segment]:
        """The files that may have to be synced so that this offset and all before it are on the disk."""
        return [segment for segment in self.segments if self.synced_before <= segment.base_offset <= offset]

    def final_index(self) -> Sealed | None:
        """The last file and what is known at its end, if it changed since an index vouched for it."""
        if not self._changed or not self.segments or self._in_flight:
            return None
        return self._seal(self.segments[-1], self.producers.dump())


def _newest(segment: Segment) -> int:
    """Unix time in ms of the newest record."""
    if segment.max_timestamp != NO_TIMESTAMP:
        return segment.max_timestamp
    with contextlib.suppress(FileNotFoundError):
        return segment.path.stat().st_mtime_ns // 1_000_000
    return 2**63
