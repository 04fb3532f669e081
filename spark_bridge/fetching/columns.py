"""Fetched record batches as Arrow batches."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ringleader.protocol import native
from ringleader.protocol.columns import Columns, decode_columns
from ringleader.protocol.records import CorruptBatchError
from ringleader.protocol.wire import INT64_MAX
from ringleader.spark_bridge import rows
from ringleader.spark_bridge.fetching.batches import BatchRecords, RecordColumns, UnfitError, record_batches

# Spark takes batches of 1 to 5 thousand rows or 1 to 8 MB fastest.
BATCH_ROWS = 5_000
BATCH_BYTES = 6 * 1024 * 1024
# A smaller answer is decoded record by record: Arrow's kernels have a price of their own.
FEW_BYTES = 64 * 1024

_MOST_MS = INT64_MAX // 1_000
"""Timestamps of Spark are microseconds."""

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


def answer_batches(
    topic: str,
    partition: int,
    data: bytes,
    from_offset: int,
    to_offset: int,
    *,
    include_headers: bool,
    aborted: Sequence[tuple[int, int]] | None = None,
) -> Iterator[Any]:
    """The records of a Fetch answer in the range, as ``pyarrow.RecordBatch``es of the size that Spark likes.

    Arguments as of ``decode_columns``, but that ``data`` may be any buffer; nothing refers to it in the end.
    Raises CorruptBatchError.
    """
    if aborted:
        data = bytes(data)
    if native.compiled is not None or len(data) >= FEW_BYTES:
        try:
            for batches in record_batches(data, from_offset, to_offset, aborted):
                found = _rows(batches, from_offset, to_offset, include_headers)
                if found is not None:
                    yield from _cut(topic, partition, found, include_headers)
                    from_offset = found.offsets[-1].as_py() + 1
            return
        except UnfitError:
            # Bad data, or some that is fit for the other way only: that one has the words.
            pass
    columns = decode_columns(
        bytes(data), from_offset, to_offset, with_headers=include_headers, aborted=aborted
    )
    if len(columns):
        yield from _cut(topic, partition, _few(columns, include_headers), include_headers)


def _rows(
    batches: list[BatchRecords], from_offset: int, to_offset: int, include_headers: bool
) -> RecordColumns | None:
    """The records of the range as columns; None when there is none. Raises UnfitError."""
    if native.compiled is None:
        # Imported when there is work for it: a task of a few rows should not pay for Arrow's kernels.
        from ringleader.spark_bridge.fetching import record_columns

        return record_columns.rows(batches, from_offset, to_offset, include_headers)
    import pyarrow as pa

    found = native.compiled.read_columns(batches, from_offset, to_offset, include_headers)
    if found is None:
        raise UnfitError
    count, keys, values, offsets, timestamps, append_time, headers = found
    if not count:
        return None
    of_one_kind = len({one.append_time for one in batches}) == 1

    def column(kind: Any, *buffers: bytes | None) -> Any:
        return pa.Array.from_buffers(
            kind, count, [None if one is None else pa.py_buffer(one) for one in buffers]
        )

    return RecordColumns(
        column(pa.binary(), *keys),
        column(pa.binary(), *values),
        column(pa.int64(), None, offsets),
        column(pa.timestamp("us", tz="UTC"), None, timestamps),
        int(batches[0].append_time) if of_one_kind else column(pa.int32(), None, append_time),
        headers,
    )


def _few(columns: Columns, include_headers: bool) -> RecordColumns:
    """Columns of objects as Arrow columns. Raises CorruptBatchError."""
    import pyarrow as pa

    kinds = {int(kind) for kind in columns.append_time}
    if far := [stamp for stamp in columns.timestamps_ms if not -_MOST_MS <= stamp <= _MOST_MS]:
        raise CorruptBatchError(f"a record's time, {far[0]} ms, is none that Spark can hold")
    return RecordColumns(
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.values, pa.binary()),
        pa.array(columns.offsets, pa.int64()),
        pa.array([1000 * stamp for stamp in columns.timestamps_ms], pa.timestamp("us", tz="UTC")),
        kinds.pop() if len(kinds) == 1 else pa.array(map(int, columns.append_time), pa.int32()),
        columns.headers if include_headers and any(columns.headers) else None,
    )


def _cut(topic: str, partition: int, found: RecordColumns, include_headers: bool) -> Iterator[Any]:
    import pyarrow as pa

    schema = _schema(include_headers)
    count = len(found.offsets)
    size = found.keys.nbytes + found.values.nbytes
    step = max(1, min(BATCH_ROWS, count * BATCH_BYTES // max(1, size)))
    same = isinstance(found.append_time, int)
    constants = _constants(topic, partition, found.append_time if same else rows.CREATE_TIME)
    headers: Any = None
    if include_headers:
        kind = schema.field("headers").type
        # Null, not an empty list, when a record has none: as Spark's connector does.
        none = found.headers is None
        headers = (
            pa.nulls(count, kind) if none else pa.array([one or None for one in found.headers or ()], kind)
        )
    for start in range(0, count, step):
        part = min(step, count - start)
        topics, partitions, kinds = (column.slice(0, part) for column in constants)
        arrays = [
            found.keys.slice(start, part),
            found.values.slice(start, part),
            topics,
            partitions,
            found.offsets.slice(start, part),
            found.timestamps.slice(start, part),
            kinds if same else found.append_time.slice(start, part),
        ]
        if include_headers:
            arrays.append(headers.slice(start, part))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=64)
def _constants(topic: str, partition: int, kind: int) -> tuple[Any, Any, Any]:
    """The columns that are the same in all rows, as long as the longest batch."""
    import pyarrow as pa

    given = pa.scalar(topic, pa.string()), pa.scalar(partition, pa.int32()), pa.scalar(kind, pa.int32())
    topics, partitions, kinds = (pa.repeat(one, BATCH_ROWS) for one in given)
    return topics, partitions, kinds


@lru_cache(maxsize=2)
def _schema(include_headers: bool) -> Any:
    return rows.arrow_schema(include_headers)
