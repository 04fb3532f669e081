"""Fetched record batches as Arrow batches, column by column: no object for each record."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ringleader.protocol.columns import Columns
from ringleader.spark_bridge import rows

# Spark takes batches of 1 to 5 thousand rows or 1 to 8 MB fastest.
BATCH_ROWS = 5_000
BATCH_BYTES = 6 * 1024 * 1024

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_LAST_DELTA = struct.Struct(">i")
_HEADER_BYTES = 61
_LAST_DELTA_AT = 23


def next_offset(records: bytes) -> int | None:
    """The offset after the last whole batch; None when there is none. Looks at no more than needed.

    The next request can so be sent before these records are decoded.
    """
    position, last, end = 0, -1, len(records)
    unpack = _OFFSET_AND_LENGTH.unpack_from
    while end - position >= _HEADER_BYTES:
        _, length = unpack(records, position)
        if length < 0 or position + 12 + length > end:
            break
        last = position
        position += 12 + length
    if last < 0:
        return None
    (delta,) = _LAST_DELTA.unpack_from(records, last + _LAST_DELTA_AT)
    return int(unpack(records, last)[0] + delta + 1)


def arrow_batches(topic: str, partition: int, columns: Columns, include_headers: bool) -> Iterator[Any]:
    """The rows as ``pyarrow.RecordBatch``es of the size that Spark takes fastest."""
    count = len(columns)
    if not count:
        return
    import pyarrow as pa

    schema = _schema(include_headers)
    timestamps = pa.array(columns.timestamps_ms, pa.timestamp("ms", tz="UTC"))
    arrays = [
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.values, pa.binary()),
        pa.repeat(pa.scalar(topic, pa.string()), count),
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        pa.array(columns.offsets, pa.int64()),
        timestamps.cast(pa.timestamp("us", tz="UTC")),
        _timestamp_types(columns.append_time),
    ]
    if include_headers:
        # Null, not an empty list, when a record has none: as Spark's connector does.
        arrays.append(pa.array([found or None for found in columns.headers], schema.field("headers").type))
    whole = pa.RecordBatch.from_arrays(arrays, schema=schema)
    step = max(1, min(BATCH_ROWS, count * BATCH_BYTES // max(1, whole.nbytes)))
    for start in range(0, count, step):
        yield whole.slice(start, step)


def _timestamp_types(append_time: list[bool]) -> Any:
    import pyarrow as pa

    kinds = set(append_time)
    if len(kinds) == 1:
        kind = rows.LOG_APPEND_TIME if kinds.pop() else rows.CREATE_TIME
        return pa.repeat(pa.scalar(kind, pa.int32()), len(append_time))
    return pa.array(append_time, pa.bool_()).cast(pa.int32())


@lru_cache(maxsize=2)
def _schema(include_headers: bool) -> Any:
    return rows.arrow_schema(include_headers)
