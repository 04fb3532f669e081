"""Record batches out of Arrow columns: no Python object for a record.

The framing of records is itself columns (varints by look-up), and one kernel joins them row by row: its
result is the records of a batch. ``protocol.records.build_batch`` is the plain form of the same, which the
tests compare with.
"""

from __future__ import annotations

import bisect
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from crc32c import crc32c

from ringleader.protocol.compression import Compression, compress
from ringleader.protocol.records import CRC_START, HEADER_BYTES, MAGIC, OVERHEAD_BYTES, varint
from ringleader.spark_bridge.sink.rows import SinkRows

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
_INT32 = Struct("=i")
_NULL, _ZERO = b"\x01", b"\x00"
# Attributes and timestamp delta of every record: all of a batch have one timestamp.
_FRONT = b"\x00\x00"
FRAME_BYTES = 20
"""What a record has around key, value and headers: 5 at the least, never more than this."""
MAX_BATCH_ROWS = 65_536


class RowTooLargeError(ValueError):
    """A row that no request can hold. ``size_bytes``: of its record."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


class BatchBuilder:
    """Gathers the rows of one partition until they fill a batch."""

    def __init__(self, limit_bytes: int, max_record_bytes: int) -> None:
        """``limit_bytes``: of a batch, unless one record is larger; ``max_record_bytes``: of one record."""
        self._limit = limit_bytes
        self._max_record = max_record_bytes
        self._slices: list[SinkRows] = []
        self.count = 0
        self.size_bytes = 0

    @property
    def full(self) -> bool:
        """Whether the batch has to go before it takes more."""
        return self.size_bytes >= self._limit or self.count >= MAX_BATCH_ROWS

    def fill(self, rows: SinkRows, known: RowSizes, at: int) -> int:
        """Take rows from ``at`` on until the batch is full or they end; where it stopped.

        Nothing is taken only when the next row does not fit beside what is there. Raises
        RowTooLargeError.
        """
        if known.largest - FRAME_BYTES > self._max_record:
            raise RowTooLargeError(known.largest)
        sizes = known.running
        done = sizes[at - 1] if at else 0
        stop = bisect.bisect_right(sizes, done + self._limit - self.size_bytes, at)
        stop = min(stop, at + MAX_BATCH_ROWS - self.count)
        if stop == at and not self.count:
            stop = at + 1
        if stop > at:
            self._slices.append(rows if stop - at == len(rows) else rows.slice(at, stop))
            self.count += stop - at
            self.size_bytes += sizes[stop - 1] - done
        # A batch that did not take the next row is full, whatever its size.
        if stop < len(sizes):
            self.size_bytes = max(self.size_bytes, self._limit)
        return stop

    def build(
        self,
        timestamp_ms: int,
        codec: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """The batch of all rows taken, at least one; the builder is empty after it."""
        body = _records(*_joined(self._slices))
        count = self.count
        self._slices, self.count, self.size_bytes = [], 0, 0
        if codec is not Compression.NONE:
            body = memoryview(compress(codec, bytes(body)))
        header = _HEADER.pack(
            0,
            HEADER_BYTES - OVERHEAD_BYTES + len(body),
            -1,
            MAGIC,
            0,
            codec,
            count - 1,
            timestamp_ms,
            timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        crc = crc32c(body, crc32c(header[CRC_START:]))
        return b"".join((header[:17], _CRC.pack(crc), header[CRC_START:], body))


class RowSizes(NamedTuple):
    """Bytes of records, a little too high: of each with all before it, and of the largest."""

    running: list[int]
    largest: int


def row_sizes(rows: SinkRows) -> RowSizes:
    """What the records of these rows take; at least one row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total: Any = pa.scalar(FRAME_BYTES, pa.int64())
    for column in (rows.values, rows.keys, rows.tails):
        if column is not None:
            total = pc.add(pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()), total)
    return RowSizes(pc.cumulative_sum(total).to_pylist(), pc.max(total).as_py())


def _joined(slices: list[SinkRows]) -> tuple[Any, Any, Any]:
    """Values, keys and headers of all slices; keys and headers None where no slice has any."""
    import pyarrow as pa

    if len(slices) == 1:
        only = slices[0]
        return only.values, only.keys, only.tails
    values = pa.concat_arrays([found.values for found in slices])
    keys = tails = None
    if any(found.keys is not None for found in slices):
        none = [pa.nulls(len(found), pa.binary()) if found.keys is None else found.keys for found in slices]
        keys = pa.concat_arrays(none)
    if any(found.tails is not None for found in slices):
        empty = pa.scalar(_ZERO, pa.binary())
        tails = pa.concat_arrays(
            [pa.repeat(empty, len(found)) if found.tails is None else found.tails for found in slices]
        )
    return values, keys, tails


def _records(values: Any, keys: Any, tails: Any) -> memoryview:
    """The records of a batch, one after another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(values)
    varints, lengths = _tables()
    inner = pc.add(lengths.slice(0, count), pa.scalar(len(_FRONT), pa.int32()))
    pieces: list[Any] = [pa.scalar(_FRONT, pa.binary()), varints.slice(0, count)]
    for column in (keys, values):
        if column is None:
            pieces.append(pa.scalar(_NULL, pa.binary()))
            inner = pc.add(inner, pa.scalar(1, pa.int32()))
            continue
        size = pc.binary_length(column)
        prefix = pc.fill_null(_varints(size), pa.scalar(_NULL, pa.binary()))
        pieces += [prefix, column]
        inner = pc.add(pc.add(inner, pc.binary_length(prefix)), pc.fill_null(size, 0))
    pieces.append(pa.scalar(_ZERO, pa.binary()) if tails is None else tails)
    inner = pc.add(inner, pa.scalar(1, pa.int32()) if tails is None else pc.binary_length(tails))
    joined = pc.binary_join_element_wise(
        _varints(inner),
        *pieces,
        pa.scalar(b"", pa.binary()),
        null_handling="replace",
        null_replacement=b"",
    )
    _, offsets, data = joined.buffers()
    first, last = (_INT32.unpack_from(offsets, 4 * (joined.offset + at))[0] for at in (0, count))
    return memoryview(data)[first:last]


def _varints(numbers: Any) -> Any:
    """The varint of each number (int32, at least 0); null for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table, _ = _tables()
    if (pc.max(numbers).as_py() or 0) < len(table):
        return table.take(numbers)
    encoded = [None if number is None else varint(number) for number in numbers.to_pylist()]
    return pa.array(encoded, pa.binary())


@lru_cache(maxsize=1)
def _tables() -> tuple[Any, Any]:
    """Varints of the numbers below MAX_BATCH_ROWS, and their lengths."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.array([varint(number) for number in range(MAX_BATCH_ROWS)], pa.binary())
    return table, pc.binary_length(table)
