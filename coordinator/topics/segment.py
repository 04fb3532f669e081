"""One file of a partition, and the sparse index of it that is kept in memory.

The file is nothing but record batches. The index has an entry for a batch about every `INDEX_INTERVAL_BYTES`;
it is written beside the file when that is closed, so that a start need not read all records. Such an index
vouches for the bytes that were there when it was made: they were synced before (unless syncing is off).
"""

from __future__ import annotations

import json
import struct
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ringleader.coordinator.topics.producers import Producers
from ringleader.coordinator.topics.transactional import Aborted, Snapshot

INDEX_INTERVAL_BYTES = 4096
NO_TIMESTAMP = -1

_INDEX_MAGIC = b"RLIX"
_INDEX_VERSION = 2
_PLAIN_VERSION = 1
"""The version before: of a log without transactions, only producers are in it."""
_INDEX_HEADER = Struct("<4sIqqqqqII")
_INDEX_CRC = Struct("<I")


class IndexUnusableError(Exception):
    """An index file that is missing, broken, of another version or of another file: look at the records."""


class Known(NamedTuple):
    """A `Snapshot`, read."""

    producers: Producers
    open: dict[int, int]
    """Open transactions: producer id to first offset."""
    aborted: list[Aborted]


class Segment:
    """A file of batches with offsets from `base_offset` on. Kept by the loop's thread.

    `size_bytes` and `next_offset` count what has been written. `max_timestamp` is the largest of its batches,
    `first_timestamp` that of its first batch, in ms, -1 for none.
    """

    __slots__ = (
        "_offsets",
        "_positions",
        "_timestamps",
        "base_offset",
        "first_timestamp",
        "max_timestamp",
        "next_offset",
        "path",
        "size_bytes",
    )

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
    def load_index(cls, directory: Path, base_offset: int, data: bytes) -> tuple[Segment, Known]:
        """What `dump_index` gave, for the file of this base offset. Raises IndexUnusableError."""
        body = data[: -_INDEX_CRC.size]
        try:
            (crc,) = _INDEX_CRC.unpack_from(data, len(body))
            fields = _INDEX_HEADER.unpack_from(body)
        except struct.error:
            raise IndexUnusableError("cut off") from None
        magic, version, base = fields[:3]
        known_version = version in (_INDEX_VERSION, _PLAIN_VERSION)
        if crc != crc32c(body) or (magic, base) != (_INDEX_MAGIC, base_offset) or not known_version:
            raise IndexUnusableError("checksum, version or file is another one")
        segment = cls(directory, base_offset)
        _, _, _, segment.next_offset, segment.size_bytes, segment.max_timestamp, segment.first_timestamp = (
            fields[:7]
        )
        count, snapshot_bytes = fields[7:]
        if len(body) != _INDEX_HEADER.size + 24 * count + snapshot_bytes:
            raise IndexUnusableError("another length")
        start = _INDEX_HEADER.size
        for column in (segment._offsets, segment._positions, segment._timestamps):
            column.frombytes(body[start : start + 8 * count])
            start += 8 * count
        try:
            rows = json.loads(body[start:])
            known = _known(Snapshot(rows, [], []) if version == _PLAIN_VERSION else Snapshot(*rows))
        except (ValueError, TypeError):
            raise IndexUnusableError("no producers") from None
        return segment, known


def _known(snapshot: Snapshot) -> Known:
    """Raises ValueError or TypeError for what is no snapshot."""
    numbers = [number for rows in snapshot[1:] for row in rows for number in row]
    if not all(type(number) is int for number in numbers):
        raise ValueError("no snapshot of transactions")
    return Known(
        Producers.load(snapshot.producers),
        dict(snapshot.open),  # type: ignore[arg-type]
        [Aborted(*row) for row in snapshot.aborted],
    )
