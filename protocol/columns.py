"""Records as columns: those of many batches at once, or of one batch when they are looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ringleader.protocol import native
from ringleader.protocol.records import BatchHeader, BatchView, CorruptBatchError, Headers, iter_batches
from ringleader.protocol.rows import Rows, read_rows, read_values, skip_rows
from ringleader.protocol.wire import INT64_MAX

_T = TypeVar("_T", bound=tuple[Any, ...])
_FAR_MS = 1 << 62
"""Two times or differences of times below this are no more than 64 bits together."""


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

    def copy(self, start: int, stop: int, into: Columns) -> None:
        """Append the rows from `start` to before `stop` to other columns."""
        for column, other in zip(self._lists(), into._lists(), strict=True):
            other += column[start:stop]

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
        if header.next_offset <= from_offset or not header.record_count:
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
    """Append all records of one batch. Raises CorruptBatchError; `columns` is as it was then."""
    header = batch.header
    buffer, pos, stop_at = batch.payload()
    rows, offsets = _rows(buffer, pos, stop_at, header, with_headers)
    _append(columns, header, rows, offsets)


def _rows(
    buffer: bytes | memoryview, pos: int, stop_at: int, header: BatchHeader, with_headers: bool
) -> tuple[Rows, Sequence[int]]:
    """All records of a batch, and their offsets. Raises CorruptBatchError."""
    count, base = header.record_count, header.base_offset
    if header.is_dense:
        try:
            rows = read_rows(buffer, pos, 0, count, with_headers=with_headers)
            if rows.end == stop_at:
                return rows, range(base, base + count)
        except CorruptBatchError:
            pass  # or its offsets are not written in the shortest way
    rows = read_rows(buffer, pos, 0, count, with_headers=with_headers, dense=False)
    if rows.end != stop_at:
        raise CorruptBatchError(f"records end at {rows.end}, not at {stop_at}", pos)
    offsets = [base + delta for delta in rows.offset_deltas]
    if offsets and not base <= offsets[-1] <= header.last_offset:
        raise CorruptBatchError(f"offset {offsets[-1]} is outside its batch", pos)
    return rows, offsets


def _append(columns: Columns, header: BatchHeader, rows: Rows, offsets: Sequence[int]) -> None:
    count = len(rows.values)
    if header.is_log_append_time:
        timestamps_ms = [header.max_timestamp] * count
    else:
        base, deltas = header.base_timestamp, rows.timestamp_deltas
        timestamps_ms = [base + (~(delta >> 1) if delta & 1 else delta >> 1) for delta in deltas]
        if count and (max(deltas) > _FAR_MS or not -_FAR_MS < base < _FAR_MS):
            _check_times(timestamps_ms)
    columns.keys += rows.keys
    columns.values += rows.values
    columns.headers += rows.headers
    columns.offsets += offsets
    columns.timestamps_ms += timestamps_ms
    columns.append_time += [header.is_log_append_time] * count


def _check_times(timestamps_ms: list[int]) -> None:
    if not -INT64_MAX - 1 <= min(timestamps_ms) <= max(timestamps_ms) <= INT64_MAX:
        raise CorruptBatchError("a time is longer than 64 bits")


class _Opened(NamedTuple):
    payload: tuple[bytes | memoryview, int, int]
    columns: Columns | None
    """Of a batch that compaction has thinned out: where it is to be cut only its offsets tell."""
    starts: dict[int, int]
    """Rows whose first byte is known."""


class BatchRows:
    """The records of one batch, decoded when they are looked at, some at a time. Rows count from 0.

    May be read in several threads at once.
    """

    __slots__ = ("_opened", "header", "view")

    def __init__(self, view: BatchView) -> None:
        self.view = view
        self.header = view.header
        self._opened: _Opened | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is inflated."""
        return self._opened is not None

    @property
    def inflated_bytes(self) -> int:
        """The bytes that the records take once inflated, besides the bytes they came in."""
        opened = self._opened
        if opened is None or (not self.header.compression and opened.columns is None):
            return 0
        return opened.payload[2] - opened.payload[1]

    def open(self) -> _Opened:
        """Inflate, if it is not yet. Raises CorruptBatchError."""
        opened = self._opened
        if opened is None:
            payload, columns = self.view.payload(), None
            if not self.header.is_dense:
                columns = Columns()
                _append(columns, self.header, *_rows(*payload, self.header, True))
            opened = self._opened = _Opened(payload, columns, {0: payload[1]})
        return opened

    def close(self) -> None:
        """Give back what `open` took; it is opened again when rows are wanted."""
        self._opened = None

    def size_bytes(self, count: int) -> int:
        """An estimate of the bytes that `count` rows take."""
        payload = self.open().payload
        return (payload[2] - payload[1]) * count // max(1, self.header.record_count)

    def cut(self, first: int, count: int) -> tuple[BatchRows, int]:
        """A slice of `count` rows without the bytes around them, and the index of its first row there. Raises
        CorruptBatchError."""
        opened, header = self.open(), self.header
        rows = BatchRows(BatchView(b"", 0, header))
        if opened.columns is not None:
            columns = Columns()
            opened.columns.copy(first, first + count, columns)
            rows._opened = _Opened((b"", 0, 0), columns, {})
            return rows, 0
        start, end = _start(opened, first), opened.starts.get(first + count)
        if end is None:
            end = read_values(opened.payload[0], start, first, count)[1]
            self._note_end(opened, first + count, end)
        rows._opened = _Opened((bytes(opened.payload[0][start:end]), 0, end - start), None, {first: 0})
        return rows, first

    def row_of(self, offset: int) -> int:
        """The first row with that offset or a higher one."""
        if (columns := self.open().columns) is not None:
            return bisect_left(columns.offsets, offset)
        return max(0, offset - self.header.base_offset)

    def offset_of(self, row: int) -> int:
        """Its offset."""
        columns = self.open().columns
        return self.header.base_offset + row if columns is None else columns.offsets[row]

    def offsets(self, first: int, count: int) -> Sequence[int]:
        """The offsets of `count` rows."""
        columns = self.open().columns
        if columns is not None:
            return columns.offsets[first : first + count]
        return range(self.header.base_offset + first, self.header.base_offset + first + count)

    def read(self, first: int, count: int, into: Columns) -> None:
        """Append `count` rows. Raises CorruptBatchError."""
        opened = self.open()
        if opened.columns is not None:
            opened.columns.copy(first, first + count, into)
            return
        header, pos = self.header, _start(opened, first)
        base = header.base_offset + first
        offsets = range(base, base + count)
        try:
            rows = read_rows(opened.payload[0], pos, first, count)
            self._note_end(opened, first + count, rows.end)
        except CorruptBatchError:
            # Perhaps the offsets are not written in the shortest way.
            rows = read_rows(opened.payload[0], pos, first, count, dense=False)
            self._note_end(opened, first + count, rows.end)
            if [header.base_offset + delta for delta in rows.offset_deltas] != list(offsets):
                raise CorruptBatchError("offsets do not ascend by one", pos) from None
        _append(into, header, rows, offsets)

    def values(self, first: int, count: int) -> list[bytes | None]:
        """The values of `count` rows, faster than all columns that `read` gives. Raises CorruptBatchError."""
        opened = self.open()
        if opened.columns is not None:
            return opened.columns.values[first : first + count]
        try:
            values, end = read_values(opened.payload[0], _start(opened, first), first, count)
            self._note_end(opened, first + count, end)
        except CorruptBatchError:
            columns = Columns()
            self.read(first, count, columns)
            return columns.values
        return values

    def tuples(
        self, first: int, count: int, kind: type[_T], topic: str, partition: int, timestamp_type: str | None
    ) -> Iterator[_T] | None:
        """Tuples of `count` rows: topic, partition, offset, timestamp, its type, key, value, headers. Each is
        made when its turn comes; that all can be made is known before. None where only `read` can do it, or
        has to say what is wrong."""
        header, append_time = self.header, self.header.is_log_append_time
        base_ms = header.max_timestamp if append_time else header.base_timestamp
        try:
            opened = self.open()
            if native.compiled is None or opened.columns is not None:
                return None
            found: tuple[Iterator[_T], int] | None = native.compiled.read_records(
                opened.payload[0],
                _start(opened, first),
                first,
                count,
                kind,
                topic,
                partition,
                timestamp_type,
                header.base_offset,
                base_ms,
                append_time,
            )
            if found is None:
                return None
            self._note_end(opened, first + count, found[1])
        except CorruptBatchError:
            return None
        return found[0]

    def _note_end(self, opened: _Opened, row: int, end: int) -> None:
        """`row` begins there, or it is the end. Raises CorruptBatchError."""
        stop_at = opened.payload[2]
        if end > stop_at or (row == self.header.record_count and end != stop_at):
            raise CorruptBatchError(f"records end at {end}, not at {stop_at}", end)
        opened.starts[row] = end


def _start(opened: _Opened, row: int) -> int:
    starts = opened.starts
    if row not in starts:
        near = max(known for known in list(starts) if known < row)
        start = skip_rows(opened.payload[0], starts[near], row - near)
        if start > opened.payload[2]:
            raise CorruptBatchError("a record is cut off", starts[near])
        starts[row] = start
    return starts[row]
