"""The record batches of a Fetch answer: checked, inflated, with what their headers say of their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from crc32c import crc32c

from ringleader.protocol.columns import AbortedTransactions
from ringleader.protocol.compression import CorruptBatchError, decompress
from ringleader.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    LEAST_RECORD_BYTES,
    MAGIC,
    OVERHEAD_BYTES,
    BatchView,
    Headers,
    parse_header,
)
from ringleader.protocol.wire import INT64_MAX

MOST_INFLATED_BYTES = 16 * 1024 * 1024
"""Inflated records are forwarded when there are this number of them, or one batch more."""
MOST_BYTES = 2**31 - 1
"""Positions have 32 bits: that is Arrow's limit for one column of binary values."""

# Base offset, length, magic, checksum, attributes, last offset delta, both timestamps, number of records.
_HEADER = Struct(">qi4xbIhiqq14xi")
_COMPRESSED, _APPEND_TIME, _CONTROL = 7, 8, 32


class UnfitError(Exception):
    """These bytes are not what they are taken for."""


class BatchRecords(NamedTuple):
    """The records of one batch: from `start` to before `stop` of the buffer. Compiled code takes them so."""

    buffer: bytes
    start: int
    stop: int
    records: int
    base_offset: int
    last_delta: int
    timestamp_ms: int
    """The time that their timestamps count from; with `append_time` the time of them all."""
    append_time: bool
    """Whether it is the broker's."""


@dataclass(slots=True)
class RecordColumns:
    """Decoded records: Arrow columns of the same length, but for the last two."""

    keys: Any
    values: Any
    offsets: Any
    timestamps: Any
    """As Spark has them: microseconds, UTC."""
    append_time: Any
    """Whether each timestamp is the broker's: 1 or 0; a plain int when it is the same for all."""
    headers: Sequence[Headers] | None
    """For each record; None when no record has any, or they were not asked for."""


def record_batches(
    data: bytes, from_offset: int, to_offset: int, aborted: Sequence[tuple[int, int]] | None = None
) -> Iterator[list[BatchRecords]]:
    """The batches with records of the range, whatever their codecs, control batches left out, at least one at
    a time and as many as `MOST_INFLATED_BYTES` allows: a producer leaves a batch uncompressed that does not
    shrink, so codecs change from batch to batch. Arguments as of `decode_columns`. Raises UnfitError."""
    skip = AbortedTransactions(aborted) if aborted else None
    whole = memoryview(data)
    unpack = _HEADER.unpack_from
    found: list[BatchRecords] = []
    inflated_bytes = 0
    start, end = 0, len(data)
    if end > MOST_BYTES:
        raise UnfitError
    while end - start >= HEADER_BYTES:
        base_offset, length, magic, crc, attributes, last_delta, base_ms, max_ms, count = unpack(data, start)
        stop = start + OVERHEAD_BYTES + length
        # A batch that is cut off, too, has a header that is fit.
        if magic != MAGIC or length < HEADER_BYTES - OVERHEAD_BYTES or last_delta < 0 or count < 0:
            raise UnfitError
        if base_offset + last_delta >= INT64_MAX:
            raise UnfitError
        if stop > end:
            break
        if base_offset >= to_offset:
            break
        if crc32c(whole[start + CRC_START : stop]) != crc:
            raise UnfitError
        begin, start = start, stop
        if skip is not None and skip.drops(BatchView(data, begin, parse_header(data, begin))):
            continue
        if attributes & _CONTROL or base_offset + last_delta < from_offset or not count:
            continue
        codec = attributes & _COMPRESSED
        if inflated_bytes > MOST_INFLATED_BYTES:
            yield found
            found, inflated_bytes = [], 0
        if codec:
            buffer, at, stop = _inflated(codec, whole[begin + HEADER_BYTES : stop])
            inflated_bytes += stop
        else:
            buffer, at = data, begin + HEADER_BYTES
        if count * LEAST_RECORD_BYTES > stop - at:
            raise UnfitError
        append_time = attributes & _APPEND_TIME != 0
        time_ms = max_ms if append_time else base_ms
        found.append(BatchRecords(buffer, at, stop, count, base_offset, last_delta, time_ms, append_time))
    if found:
        yield found


def _inflated(codec: int, compressed: memoryview) -> tuple[bytes, int, int]:
    try:
        part = decompress(codec, compressed)
    except CorruptBatchError:
        raise UnfitError from None
    return part, 0, len(part)
