"""One file of a partition, the sparse index of it that is kept in memory and beside it, and how it is read.

The file is nothing but record batches. The index has an entry for a batch about every `INDEX_INTERVAL_BYTES`;
it is written beside the file when that is complete, so that a start need not read all records. Such an index
vouches for the bytes that were there when it was made: they were synced before (unless syncing is off).

Functions that read are for worker threads: nothing here touches what the loop's thread keeps.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ringleader.coordinator.topics.producers import Producers
from ringleader.coordinator.topics.transactional import TransactionIndex
from ringleader.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    BatchHeader,
    BatchView,
    CorruptBatchError,
    parse_header,
)

INDEX_INTERVAL_BYTES = 4096
NO_TIMESTAMP = -1

_INDEX_MAGIC = b"RLIX"
_INDEX_VERSION = 2
_PLAIN_VERSION = 1
"""The version before: of a log without transactions, only producers are in it."""
_INDEX_HEADER = Struct("<4sIqqqqqII")
_INDEX_CRC = Struct("<I")

_CHUNK_BYTES = 1024 * 1024
_SCAN_CHUNK_BYTES = 64 * 1024
_PREFIX = Struct(">qi11xi")  # base offset, length of what follows, last offset delta


class IndexUnusableError(Exception):
    """An index file that is missing, broken, of another version or of another file: look at the records."""


class Snapshot(NamedTuple):
    """What an index file keeps besides the index: all there was to know at the end of its file."""

    producers: list[list[object]]
    """`Producers.dump`."""
    open: list[list[int]]
    """Open transactions: producer id, first offset."""
    aborted: list[list[int]]
    """`Aborted`, of the markers in this file."""


class Segment:
    """A file of batches with offsets from `base_offset` on. Kept by the loop's thread.

    `size_bytes` and `next_offset` count what has been written. `max_timestamp` is the largest of its batches,
    `first_timestamp` that of its first batch, in ms, -1 for none.
    """

    def __init__(self, directory: Path, base_offset: int) -> None:
        self.path = directory / f"{base_offset:020d}.log"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.first_timestamp = NO_TIMESTAMP
        self._offsets = array("q")
        self._positions = array("q")
        # The largest timestamp of everything before the entry's batch.
        self._timestamps = array("q")

    @property
    def index_path(self) -> Path:
        """Where the index is kept beside the file."""
        return self.path.with_suffix(".index")

    def add(self, base_offset: int, next_offset: int, size_bytes: int, max_timestamp: int) -> None:
        """A batch has been written at the end."""
        if not self._positions:
            self.first_timestamp = max_timestamp
        if not self._positions or self.size_bytes - self._positions[-1] >= INDEX_INTERVAL_BYTES:
            self._offsets.append(base_offset)
            self._positions.append(self.size_bytes)
            self._timestamps.append(self.max_timestamp)
        self.size_bytes += size_bytes
        self.next_offset = next_offset
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp

    def position_before(self, offset: int) -> int:
        """Where a batch begins that is at or before the one with this offset; near it."""
        index = bisect_right(self._offsets, offset) - 1
        return self._positions[index] if index >= 0 else 0

    def position_before_time(self, timestamp_ms: int) -> int:
        """Where a batch begins that is at or before the first one with such a timestamp or a later one."""
        index = bisect_left(self._timestamps, timestamp_ms) - 1
        return self._positions[index] if index >= 0 else 0

    def boundary(self, limit: int) -> int:
        """Where a batch begins, or the file ends: the last such place known that is not after `limit`."""
        if limit >= self.size_bytes:
            return self.size_bytes
        index = bisect_right(self._positions, limit) - 1
        return self._positions[index] if index >= 0 else 0

    def dump_index(self, known: Snapshot) -> bytes:
        """The index file. `known`: what was known when all of this file and nothing more was written."""
        snapshot = json.dumps(known, separators=(",", ":")).encode()
        head = _INDEX_HEADER.pack(
            _INDEX_MAGIC,
            _INDEX_VERSION,
            self.base_offset,
            self.next_offset,
            self.size_bytes,
            self.max_timestamp,
            self.first_timestamp,
            len(self._offsets),
            len(snapshot),
        )
        columns = [column.tobytes() for column in (self._offsets, self._positions, self._timestamps)]
        body = b"".join([head, *columns, snapshot])
        return body + _INDEX_CRC.pack(crc32c(body))

    @classmethod
    def load_index(
        cls, directory: Path, base_offset: int, data: bytes
    ) -> tuple[Segment, Producers, TransactionIndex]:
        """What `dump_index` gave, for the file of this base offset: producers and open transactions at its
        end, aborted ones in it. Raises IndexUnusableError."""
        body = data[: -_INDEX_CRC.size]
        try:
            (crc,) = _INDEX_CRC.unpack_from(data, len(body))
            magic, version, base, end, size, newest, first, count, rest = _INDEX_HEADER.unpack_from(body)
        except struct.error:
            raise IndexUnusableError("cut off") from None
        known_version = version in (_INDEX_VERSION, _PLAIN_VERSION)
        if crc != crc32c(body) or (magic, base) != (_INDEX_MAGIC, base_offset) or not known_version:
            raise IndexUnusableError("checksum, version or file is another one")
        segment = cls(directory, base_offset)
        segment.next_offset, segment.size_bytes = end, size
        segment.max_timestamp, segment.first_timestamp = newest, first
        if len(body) != _INDEX_HEADER.size + 24 * count + rest:
            raise IndexUnusableError("another length")
        start = _INDEX_HEADER.size
        for column in (segment._offsets, segment._positions, segment._timestamps):
            column.frombytes(body[start : start + 8 * count])
            start += 8 * count
        try:
            rows = json.loads(body[start:])
            known = Snapshot(rows, [], []) if version == _PLAIN_VERSION else Snapshot(*rows)
            return segment, Producers.load(known.producers), TransactionIndex.load(known.open, known.aborted)
        except (ValueError, TypeError):
            raise IndexUnusableError("no producers") from None


class ReadPlan(NamedTuple):
    """The arguments of `read_range`."""

    path: Path
    position: int
    boundary: int
    limit: int
    offset: int


def read_range(path: Path, position: int, boundary: int, limit: int, offset: int) -> bytes | None:
    """Whole batches from the one with `offset`, or the first after it, up to `boundary`; at least one.

    `position` and `boundary` are where batches begin, `limit` is where what may be read ends. Empty when
    there is no such batch, None when the file is gone. Raises OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        data = os.pread(
            descriptor, max(boundary - position, min(_SCAN_CHUNK_BYTES, limit - position)), position
        )
        start = 0
        while position + start < limit:
            if len(data) - start < HEADER_BYTES:
                position += start
                start = 0
                data = os.pread(descriptor, min(_CHUNK_BYTES, limit - position), position)
                if len(data) < HEADER_BYTES:
                    return b""
            base, length, delta = _PREFIX.unpack_from(data, start)
            if base + delta >= offset:
                break
            start += length + 12
        else:
            return b""
        stop = max(boundary - position, start + length + 12)
        if stop > len(data):
            data += os.pread(descriptor, stop - len(data), position + len(data))
        return data[start:stop]
    finally:
        os.close(descriptor)


class TimePlan(NamedTuple):
    """Where the record of a time may be: from `position` to `limit`, at or after both bounds."""

    path: Path
    position: int
    limit: int
    timestamp_ms: int
    from_offset: int


def find_time(plans: list[TimePlan]) -> tuple[int, int]:
    """Offset and timestamp of the first record that is not before the bounds; (-1, -1) for none.

    Raises OSError. A batch whose records cannot be read stands for itself: its first offset, largest time.
    """
    for plan in plans:
        descriptor = os.open(plan.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = _find_time(descriptor, plan)
        except CorruptBatchError:
            continue
        finally:
            os.close(descriptor)
        if found is not None:
            return found
    return -1, -1


def _find_time(descriptor: int, plan: TimePlan) -> tuple[int, int] | None:
    for start, header, _ in scan(descriptor, plan.position, plan.limit):
        if header.max_timestamp < plan.timestamp_ms or header.last_offset < plan.from_offset:
            continue
        view = BatchView(os.pread(descriptor, header.size_bytes, start), 0, header)
        try:
            for record in view.records():
                if record.timestamp_ms >= plan.timestamp_ms and record.offset >= plan.from_offset:
                    return record.offset, record.timestamp_ms
        except CorruptBatchError:
            return max(header.base_offset, plan.from_offset), header.max_timestamp
    return None


def scan(
    descriptor: int, position: int, limit: int, *, check: bool = False
) -> Iterator[tuple[int, BatchHeader, int]]:
    """The headers of the batches in a file: position, header, position after it.

    With `check`, the checksums too. Raises CorruptBatchError at the first batch that is cut off or broken.
    """
    chunk = _CHUNK_BYTES if check else _SCAN_CHUNK_BYTES
    data, start = b"", position
    while position < limit:
        at = position - start
        if len(data) - at < HEADER_BYTES:
            data, start, at = os.pread(descriptor, min(chunk, limit - position), position), position, 0
        header = parse_header(data, at)
        end = position + header.size_bytes
        if end > limit:
            raise CorruptBatchError("a batch is cut off", position)
        if check:
            if end - start > len(data):
                size = max(header.size_bytes, min(chunk, limit - position))
                data, start, at = os.pread(descriptor, size, position), position, 0
            if crc32c(memoryview(data)[at + CRC_START : end - start]) != header.crc:
                raise CorruptBatchError("a checksum is wrong", position)
        yield position, header, end
        position = end
