"""Records of many batches at once, as columns: the fast way for readers that hand columns on.

One pass over the bytes, written out straight: a call per record would cost more than the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ringleader.protocol.records import BatchHeader, BatchView, CorruptBatchError, Headers, iter_batches

_NO_HEADERS: Headers = ()
_LONGEST_VARINT = 10


@dataclass(slots=True)
class Columns:
    """Records as lists of the same length. Offsets are absolute, timestamps Unix time in ms (-1: none).

    `append_time`: for each record, whether its timestamp is the broker's; empty headers are one shared tuple.
    """

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    append_time: list[bool] = field(default_factory=list)
    next_offset: int = -1
    """First offset after the last batch that was seen, control and skipped batches included; -1: none was."""

    def __len__(self) -> int:
        return len(self.offsets)

    def cut(self, start: int, stop: int) -> None:
        """Keep the rows from `start` to before `stop`."""
        for column in self._lists():
            del column[stop:]
            del column[:start]

    def _lists(self) -> tuple[list[Any], ...]:
        return (
            self.keys,
            self.values,
            self.offsets,
            self.timestamps_ms,
            self.headers,
            self.append_time,
        )


def decode_columns(
    data: bytes,
    from_offset: int = 0,
    to_offset: int | None = None,
    *,
    with_headers: bool = True,
    check_crc: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
) -> Columns:
    """The records of a Fetch answer with `from_offset <= offset < to_offset`, control batches left out.

    A last batch that is cut off is left out. Without `with_headers` the headers column stays empty.
    `aborted`: (producer id, first offset) of aborted transactions, whose records are left out too.
    Raises CorruptBatchError; what was decoded before is lost then.
    """
    columns = Columns()
    skip = AbortedTransactions(aborted) if aborted else None
    for batch in iter_batches(bytes(data)):
        header = batch.header
        if to_offset is not None and header.base_offset >= to_offset:
            break
        columns.next_offset = header.next_offset
        if check_crc:
            batch.check_crc()
        if (skip is not None and skip.drops(batch)) or header.is_control:
            continue
        if header.next_offset <= from_offset:
            continue
        before = len(columns.offsets)
        append_columns(batch, columns, with_headers)
        if header.base_offset < from_offset or (to_offset is not None and header.next_offset > to_offset):
            _trim(columns, before, from_offset, to_offset)
    return columns


def _trim(columns: Columns, before: int, from_offset: int, to_offset: int | None) -> None:
    """Take rows out of the range away again, of those from row `before` on."""
    offsets = columns.offsets
    first = next((i for i in range(before, len(offsets)) if offsets[i] >= from_offset), len(offsets))
    stop = len(offsets)
    if to_offset is not None:
        stop = next((i for i in range(first, stop) if offsets[i] >= to_offset), stop)
    for column in columns._lists():
        del column[stop:]
        del column[before:first]


class AbortedTransactions:
    """Which batches of an answer belong to aborted transactions, followed as Java's consumer does.

    `aborted`: (producer id, first offset) as the Fetch answer lists them.
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: -entry[1])
        self._producers: set[int] = set()

    def drops(self, batch: BatchView) -> bool:
        """Whether this batch is not for readers of committed records: part of an aborted transaction, or a
        marker. To be asked of every batch of the answer, in order."""
        header = batch.header
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._producers.add(self._waiting.pop()[0])
        if not header.is_transactional:
            return False
        if header.is_control:
            # A marker ends its producer's transaction, whichever way.
            self._producers.discard(header.producer_id)
            return True
        return header.producer_id in self._producers


def append_columns(batch: BatchView, columns: Columns, with_headers: bool = True) -> None:
    """Append all records of one batch. Raises CorruptBatchError; `columns` may hold some of them then."""
    header = batch.header
    before = len(columns.offsets)
    payload = batch.payload()
    # True of every batch but one that compaction has thinned out.
    dense = header.record_count == header.last_offset_delta + 1
    if not dense or not _try_dense(payload, header, columns, with_headers):
        _append_rows(payload, header, columns, with_headers, dense=False)
    added = len(columns.offsets) - before
    if added and not header.base_offset <= columns.offsets[-1] <= header.last_offset:
        raise CorruptBatchError(f"offset {columns.offsets[-1]} is outside its batch", batch.start)
    if header.is_log_append_time:
        columns.timestamps_ms[before:] = [header.max_timestamp] * added
    columns.append_time += [header.is_log_append_time] * added


def _try_dense(
    payload: tuple[bytes, int, int], header: BatchHeader, columns: Columns, with_headers: bool
) -> bool:
    """Decode as if offsets were written in the shortest way; False, with no trace, when that does not fit."""
    before = [len(column) for column in columns._lists()]
    try:
        _append_rows(payload, header, columns, with_headers, dense=True)
    except CorruptBatchError:
        for column, length in zip(columns._lists(), before, strict=True):
            del column[length:]
        return False
    return True


def _append_rows(
    payload: tuple[bytes, int, int],
    header: BatchHeader,
    columns: Columns,
    with_headers: bool,
    *,
    dense: bool,
) -> None:
    """Decode a batch's records. Raises CorruptBatchError.

    One and two byte varints are decoded in place: nearly all are. A length that leads beyond the record is
    found at the record's end, since a slice never reads beyond the bytes. `dense`: the offset deltas are 0,
    1, 2 and so on, so that their bytes can be skipped.
    """
    buffer, pos, stop_at = payload
    try:
        pos = _rows(buffer, pos, header, columns, with_headers, dense)
    except IndexError:
        raise CorruptBatchError("a record is cut off", pos) from None
    if pos != stop_at:
        raise CorruptBatchError(f"records end at {pos}, not at {stop_at}", pos)
    if dense:
        columns.offsets.extend(range(header.base_offset, header.base_offset + header.record_count))


def _rows(
    buffer: bytes, pos: int, header: BatchHeader, columns: Columns, with_headers: bool, dense: bool
) -> int:
    """The loop of `_append_rows`; where the last record ends. IndexError when the bytes run out."""
    add_key, add_value, add_headers = columns.keys.append, columns.values.append, columns.headers.append
    add_offset, add_timestamp = columns.offsets.append, columns.timestamps_ms.append
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    for number in range(header.record_count):
        byte = buffer[pos]
        pos += 1
        if byte > 127:
            second = buffer[pos]
            if second < 128:
                byte += (second - 1) << 7
                pos += 1
            else:
                byte, pos = _long_varint(buffer, pos - 1)
        if byte & 1:
            raise CorruptBatchError("a record's length is negative", pos)
        end = pos + (byte >> 1)
        # Before the timestamp, a byte of attributes that nobody uses.
        byte = buffer[pos + 1]
        pos += 2
        if byte > 127:
            second = buffer[pos]
            if second < 128:
                byte += (second - 1) << 7
                pos += 1
            else:
                byte, pos = _long_varint(buffer, pos - 1)
        add_timestamp(base_timestamp + (~(byte >> 1) if byte & 1 else byte >> 1))
        if dense:
            pos += 1 if number < 64 else 2 if number < 8192 else 3 if number < 1_048_576 else 4
        else:
            delta, pos = read_varint(buffer, pos)
            add_offset(base_offset + delta)
        byte = buffer[pos]
        pos += 1
        if byte > 127:
            second = buffer[pos]
            if second < 128:
                byte += (second - 1) << 7
                pos += 1
            else:
                byte, pos = _long_varint(buffer, pos - 1)
        if byte & 1:
            add_key(None)
        else:
            stop = pos + (byte >> 1)
            add_key(buffer[pos:stop])
            pos = stop
        byte = buffer[pos]
        pos += 1
        if byte > 127:
            second = buffer[pos]
            if second < 128:
                byte += (second - 1) << 7
                pos += 1
            else:
                byte, pos = _long_varint(buffer, pos - 1)
        if byte & 1:
            add_value(None)
        else:
            stop = pos + (byte >> 1)
            add_value(buffer[pos:stop])
            pos = stop
        if pos >= end:
            raise CorruptBatchError("a record is longer than its length", pos)
        if not with_headers:
            pos = end
        elif buffer[pos]:
            headers, pos = read_headers(buffer, pos, end)
            add_headers(headers)
        else:
            pos += 1
            add_headers(_NO_HEADERS)
        if pos != end:
            raise CorruptBatchError("a record is not as long as its length", pos)
    return pos


def read_headers(buffer: bytes, pos: int, end: int) -> tuple[Headers, int]:
    """The headers of the record that ends at `end`, and where they end. CorruptBatchError, IndexError."""
    count, pos = read_varint(buffer, pos)
    if not 0 <= count * 2 <= end - pos:
        raise CorruptBatchError(f"{count} headers cannot follow", pos)
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = read_varint(buffer, pos)
        if not 0 <= length <= end - pos:
            raise CorruptBatchError(f"a header key of {length} bytes cannot follow", pos)
        # As Java reads them: a bad key must not keep a reader from its records.
        key = buffer[pos : pos + length].decode("utf-8", "replace")
        pos += length
        length, pos = read_varint(buffer, pos)
        if length > end - pos:
            raise CorruptBatchError(f"a header value of {length} bytes cannot follow", pos)
        value = None if length < 0 else buffer[pos : pos + length]
        pos += max(length, 0)
        found.append((key, value))
    return found, pos


def read_varint(buffer: bytes, pos: int) -> tuple[int, int]:
    """A signed number in zigzag form, and where it ends. IndexError when the bytes run out."""
    value, pos = _long_varint(buffer, pos)
    return (value >> 1) ^ -(value & 1), pos


def _long_varint(buffer: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(pos, pos + _LONGEST_VARINT):
        byte = buffer[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
    raise CorruptBatchError("a number is longer than 64 bits", pos)
