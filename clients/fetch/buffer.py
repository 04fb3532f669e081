"""What was fetched of one partition and has not been handed out. No I/O here."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ringleader.protocol.columns import AbortedTransactions, Columns, append_columns
from ringleader.protocol.records import HEADER_BYTES, OVERHEAD_BYTES, BatchView, Record, parse_header

_INT32, _INT64 = Struct(">i"), Struct(">q")
_LENGTH_AT, _LAST_DELTA_AT = 8, 23


class Chunk:
    """The records of one answer for one partition, from wire batch to wire batch."""

    __slots__ = ("_aborted", "_at", "_data")

    def __init__(self, data: bytes, aborted: Sequence[tuple[int, int]] | None) -> None:
        """`aborted`: (producer id, first offset) of aborted transactions; None: they are delivered, too."""
        self._data = data
        self._at = 0
        self._aborted = None if aborted is None else AbortedTransactions(aborted)

    @property
    def left_bytes(self) -> int:
        """What has not been looked at; 0 when only a batch is left that is cut off."""
        return len(self._data) - self._at

    def next_view(self, check_crcs: bool) -> tuple[BatchView, bool] | None:
        """The next batch, and whether its records are to be skipped; None at the end. Raises MalformedError;
        `at` then stays before the batch."""
        data, start = self._data, self._at
        if len(data) - start < HEADER_BYTES:
            self._at = len(data)
            return None
        header = parse_header(data, start)
        view = BatchView(data, start, header)
        if view.end > len(data):
            self._at = len(data)  # cut off, as Kafka allows for the last one
            return None
        if check_crcs:
            view.check_crc()
        self._at = view.end
        skip = self._aborted.drops(view) if self._aborted is not None else False
        return view, skip or header.is_control

    def end_of_bad(self, position: int) -> int:
        """First offset after the batch that cannot be read, as far as its header can be trusted."""
        data, start = self._data, self._at
        if len(data) - start < HEADER_BYTES:
            return position + 1
        (base,) = _INT64.unpack_from(data, start)
        (delta,) = _INT32.unpack_from(data, start + _LAST_DELTA_AT)
        after = int(base + delta + 1)
        return after if base <= position < after else position + 1


def end_of(data: bytes) -> int | None:
    """The offset after the last whole batch; None when there is none. Looks at no more than needed."""
    at, last, size = 0, -1, len(data)
    length_of = _INT32.unpack_from
    while size - at >= HEADER_BYTES:
        (length,) = length_of(data, at + _LENGTH_AT)
        if length < HEADER_BYTES - OVERHEAD_BYTES or at + OVERHEAD_BYTES + length > size:
            break
        last = at
        at += OVERHEAD_BYTES + length
    if last < 0:
        return None
    return int(_INT64.unpack_from(data, last)[0] + length_of(data, last + _LAST_DELTA_AT)[0] + 1)


def decode(view: BatchView) -> list[Record]:
    """All records of a batch. Raises MalformedError."""
    columns = Columns()
    append_columns(view, columns)
    return list(
        map(Record, columns.offsets, columns.timestamps_ms, columns.keys, columns.values, columns.headers)
    )
