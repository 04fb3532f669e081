"""One file of a partition, the sparse index of it that is kept in memory and beside it, and how it is read.

The file is nothing but record batches. The index has an entry for a batch about every `INDEX_INTERVAL_BYTES`;
it is written beside the file when that is complete, so that a start need not read all records. Such an index
vouches for the bytes that were there when it was made: they were synced before (unless syncing is off).

Functions that read are for worker threads: nothing here touches what the loop's thread keeps.
"""

from __future__ import annotations

import contextlib
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
from ringleader.protocol import json_text
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
_INDEX_HEADER = Struct("<4sIqqqqqII")
_INDEX_CRC = Struct("<I")

_CHUNK_BYTES = 1024 * 1024
_SCAN_CHUNK_BYTES = 64 * 1024


class IndexUnusableError(Exception):
    """An index file that is missing, broken, of another version or of another file: look at the records."""


class Snapshot(NamedTuple):
    """The content of an index file besides the index: the state at the end of its log file."""

    producers: list[list[object]]
    """`Producers.dump`."""
    open: list[tuple[int, int]]
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

    def remove(self) -> None:
        """Remove file and index from the disk. Raises OSError."""
        self.path.unlink(missing_ok=True)
        self.index_path.unlink(missing_ok=True)

    def add(self, header: BatchHeader) -> None:
        """A batch has been written at the end."""
        if not self._positions:
            self.first_timestamp = header.max_timestamp
        if not self._positions or self.size_bytes - self._positions[-1] >= INDEX_INTERVAL_BYTES:
            self._offsets.append(header.base_offset)
            self._positions.append(self.size_bytes)
            self._timestamps.append(self.max_timestamp)
        self.size_bytes += header.size_bytes
        self.next_offset = header.next_offset
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)

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
        """Load the output of `dump_index`, for the file of this base offset: producers and open transactions
        at its end, aborted ones in it. Raises IndexUnusableError."""
        body = data[: -_INDEX_CRC.size]
        try:
            (crc,) = _INDEX_CRC.unpack_from(data, len(body))
            magic, version, base, end, size, newest, first, count, rest = _INDEX_HEADER.unpack_from(body)
        except struct.error:
            raise IndexUnusableError("cut off") from None
        if crc != crc32c(body) or (magic, version, base) != (_INDEX_MAGIC, _INDEX_VERSION, base_offset):
            raise IndexUnusableError("checksum, version or file is another one")
        if end < base or size < 0:
            raise IndexUnusableError("the end lies before the beginning")
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
            known = Snapshot(*json_text.loads(body[start:]))
            return segment, Producers.load(known.producers), TransactionIndex.load(known.open, known.aborted)
        except (ValueError, TypeError, OverflowError):
            raise IndexUnusableError("no producers") from None


def read_range(
    path: Path, position: int, boundary: int, limit: int, offset: int, largest: int
) -> bytes | None:
    """Whole batches from the one with `offset`, or the first after it, up to `boundary`; at least one, unless
    that is larger than `largest`.

    `position` and `boundary` are where batches begin, `limit` is where what may be read ends. Empty when
    there is no such batch, None when the file is gone. Raises OSError.
    """
    try:
        with path.open("rb", buffering=0) as file:
            for start, header, end in scan(file.fileno(), position, limit):
                if header.last_offset >= offset:
                    if end - start > largest:
                        return b""
                    return os.pread(file.fileno(), max(boundary, end) - start, start)
    except FileNotFoundError:
        return None
    except CorruptBatchError as error:
        raise OSError(f"{path} is damaged: {error.reason}") from None
    return b""


def find_time(parts: list[tuple[Path, int, int]], timestamp_ms: int, from_offset: int) -> tuple[int, int]:
    """Offset and timestamp of the first record that is not before these, in parts of files (path, from here,
    up to there); (-1, -1) for none.

    Raises OSError. A batch whose records cannot be read stands for itself: its first offset, largest time.
    """
    for path, position, limit in parts:
        with path.open("rb", buffering=0) as file, contextlib.suppress(CorruptBatchError):
            for start, header, _ in scan(file.fileno(), position, limit):
                if header.max_timestamp >= timestamp_ms and header.last_offset >= from_offset:
                    batch = BatchView(os.pread(file.fileno(), header.size_bytes, start), 0, header)
                    found = _find_record(batch, timestamp_ms, from_offset)
                    if found is not None:
                        return found
    return -1, -1


def _find_record(batch: BatchView, timestamp_ms: int, from_offset: int) -> tuple[int, int] | None:
    try:
        for record in batch.records():
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return record.offset, record.timestamp_ms
    except CorruptBatchError:
        return max(batch.header.base_offset, from_offset), batch.header.max_timestamp
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
