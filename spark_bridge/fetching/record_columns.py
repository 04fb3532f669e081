"""Fetched record batches to Arrow columns without an object for any record.

Where each record begins has to be found one after the other; that is all that Python does for a record, and
where all records of a batch are equally long not even that. Everything else is computed for all records of
an answer together, by Arrow's kernels: the byte at some position in every record is one column, a varint is
decoded a byte at a time for all of them, and keys and values are gathered in one call. A bytes object for
each 1 KB value would cost several times as much as all of this.

Nothing here has words for bad data: whatever does not fit is `UnfitError`, and the straight-line decoder of
`ringleader.protocol.columns`, which has them, reads the answer again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringleader.protocol.records import LEAST_RECORD_BYTES, CorruptBatchError, Headers
from ringleader.protocol.rows import read_headers, read_varint
from ringleader.spark_bridge.fetching.batches import MOST_BYTES, BatchRecords, RecordColumns, UnfitError


@dataclass(slots=True)
class RecordBatches:
    """Batches whose records lie in one buffer. Lists have an entry for each batch; `begins`, `ends` for each
    record, counted from the batch's entry in `bases`."""

    buffer: bytes = b""
    begins: array[int] = field(default_factory=lambda: array("i"))
    ends: array[int] = field(default_factory=lambda: array("i"))
    stops: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    last_deltas: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    append_time: list[int] = field(default_factory=list)


def rows(
    found: Sequence[BatchRecords], from_offset: int, to_offset: int, with_headers: bool
) -> RecordColumns | None:
    """The records with `from_offset <= offset < to_offset` as columns; None when there is none.

    Raises `UnfitError`.
    """
    batches = _together(found)
    if not batches.begins:
        return None
    try:
        return _Decoding(batches).rows(from_offset, to_offset, with_headers)
    except (pa.ArrowInvalid, pa.ArrowIndexError):
        # A length led out of the buffer.
        raise UnfitError from None


# -- one after the other


def _together(found: Sequence[BatchRecords]) -> RecordBatches:
    """Finds where the records begin. Uncompressed batches of an answer lie in one buffer; where some are
    inflated, each in a buffer of its own, the records of all are copied together."""
    batches = RecordBatches()
    apart = any(one.buffer is not found[0].buffer for one in found)
    base = 0
    for one in found:
        # Where the first byte of the batch's own buffer would be in the common one.
        _add(batches, one.buffer, one.start, one.stop, one.records, base - one.start if apart else 0)
        batches.base_offsets.append(one.base_offset)
        batches.last_deltas.append(one.last_delta)
        batches.timestamps_ms.append(one.timestamp_ms)
        batches.append_time.append(int(one.append_time))
        base += one.stop - one.start
    if found:
        parts = (memoryview(one.buffer)[one.start : one.stop] for one in found)
        batches.buffer = b"".join(parts) if apart else found[0].buffer
    if len(batches.buffer) > MOST_BYTES:
        raise UnfitError
    return batches


def _add(batches: RecordBatches, buffer: bytes, start: int, stop: int, count: int, base: int) -> None:
    """Notes where the records between `start` and `stop` of `buffer` are, which begins at `base` of the
    batches' one."""
    if not 0 <= count * LEAST_RECORD_BYTES <= stop - start:
        raise UnfitError
    grid = _grid(buffer[start], buffer[start + 1], stop - start, count)
    if grid is not None:
        begins, ends = grid
        batches.begins.extend(begins)
        batches.ends.extend(ends)
        batches.bases.append(base + start)
    else:
        found = _chase(buffer, start, count)
        if found[-1] != stop:
            raise UnfitError
        batches.ends.extend(array("i", found[1:]))
        found.pop()
        batches.begins.extend(array("i", found))
        batches.bases.append(base)
    batches.stops.append(len(batches.begins))


@lru_cache(maxsize=64)
def _grid(byte: int, second: int, room: int, count: int) -> tuple[array[int], array[int]] | None:
    """Begins and ends if all records are as long as the first one, which begins with these bytes; None when
    they cannot be.

    A guess: that each record's length says the same is checked with everything else.
    """
    if byte < 128:
        size = 1 + (byte >> 1)
    else:
        if second > 127:
            return None
        size = 2 + (byte + ((second - 1) << 7) >> 1)
    # From the 65th record on, the offset takes a byte more.
    if size * count + max(0, count - 64) != room or count > 8192:
        return None
    few = min(count, 64)
    edges = [
        *range(0, few * size, size),
        *range(few * size, few * size + (count - few) * (size + 1) + 1, size + 1),
    ]
    return array("i", edges[:count]), array("i", edges[1 : count + 1])


def _chase(buffer: bytes, pos: int, count: int) -> list[int]:
    """Where records begin, by their lengths, and where the last one ends."""
    found: list[int] = []
    add = found.append
    try:
        for _ in range(count):
            add(pos)
            byte = buffer[pos]
            if byte < 128:
                pos += 1 + (byte >> 1)
            else:
                second = buffer[pos + 1]
                if second < 128:
                    pos += (byte >> 1) + (second << 6) - 62
                else:
                    length, pos = read_varint(buffer, pos)
                    if length < 0:
                        raise UnfitError
                    pos += length
    except (IndexError, CorruptBatchError):
        raise UnfitError from None
    add(pos)
    return found


# -- all together

_INT64 = pa.int64()
_ONE, _TWO, _SEVEN = (pa.scalar(number, _INT64) for number in (1, 2, 7))
_THOUSAND = pa.scalar(1000, _INT64)
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_NULL = pa.scalar(None, _INT64)
_LOW, _HIGH, _SHIFT = (pa.scalar(number, _INT64) for number in (127, 128, 32))


class _Cursor:
    """A position in every record, which moves on by what is read there."""

    def __init__(self, buffer: bytes, at: Any) -> None:
        self._bytes = pa.Array.from_buffers(pa.uint8(), len(buffer), [None, pa.py_buffer(buffer)])
        self.at = at

    def byte(self) -> Any:
        """The byte at the position of each record."""
        return pc.take(self._bytes, self.at).cast(_INT64)

    def move(self, by: Any) -> None:
        """Go on by a number, or by a number for each."""
        self.at = pc.add(self.at, by)

    def varint(self) -> Any:
        """A number in zigzag form, not yet made positive or negative."""
        value = self.byte()
        bounds = pc.min_max(value)
        self.move(_ONE)
        if bounds["max"].as_py() < 128:
            return value
        if bounds["min"].as_py() > 127:
            second = self.byte()
            if pc.max(second).as_py() < 128:
                self.move(_ONE)
                return pc.add(pc.subtract(value, _HIGH), pc.shift_left(second, _SEVEN))
        return self._long(value)

    def _long(self, value: Any) -> Any:
        """Numbers of different lengths; `value` is the first byte of each."""
        more = pc.shift_right(value, _SEVEN)
        value = pc.bit_wise_and(value, _LOW)
        # Nine bytes are 63 bits: a number of ten has no sense in a record.
        for shift in range(7, 63, 7):
            if not pc.max(more).as_py():
                return value
            # A number that has ended reads its last byte again, and adds nothing.
            byte = pc.multiply(
                pc.take(self._bytes, pc.add(self.at, pc.subtract(more, _ONE))).cast(_INT64), more
            )
            value = pc.add(value, pc.shift_left(pc.bit_wise_and(byte, _LOW), pa.scalar(shift, _INT64)))
            self.move(more)
            more = pc.shift_right(byte, _SEVEN)
        raise UnfitError


class _Decoding:
    """The records of batches in one buffer."""

    def __init__(self, batches: RecordBatches) -> None:
        self._batches = batches
        self._count = len(batches.begins)
        self._batch = None
        if len(batches.stops) > 1:
            numbers = _int64(range(len(batches.stops)))
            kind, ends = pa.run_end_encoded(_INT64, _INT64), _int64(batches.stops)
            runs = pa.RunEndEncodedArray.from_buffers(kind, self._count, [None], children=[ends, numbers])
            self._batch = pc.run_end_decode(runs)
        bases = self._each(batches.bases)
        self._begins = pc.add(_positions(batches.begins), bases)
        self._ends = pc.add(_positions(batches.ends), bases)

    def rows(self, from_offset: int, to_offset: int, with_headers: bool) -> RecordColumns | None:
        """The columns, cut to the range."""
        batches = self._batches
        cursor = _Cursor(batches.buffer, self._begins)
        length = cursor.varint()
        # The lowest bit is the sign, and must not be set.
        _must_equal(pc.add(pc.multiply(cursor.at, _TWO), length), pc.multiply(self._ends, _TWO))
        # Nobody uses the attributes of a record.
        cursor.move(_ONE)
        timestamps = self._timestamps(cursor.varint())
        deltas = cursor.varint()
        # Twice the number: a negative one would be odd.
        if pc.max(pc.bit_wise_and(deltas, _ONE)).as_py():
            raise UnfitError
        deltas = pc.shift_right(deltas, _ONE)
        if pc.any(pc.greater(deltas, self._each(batches.last_deltas))).as_py():
            raise UnfitError
        offsets = pc.add(deltas, self._each(batches.base_offsets))
        keys = _Field(cursor)
        values = _Field(cursor)
        # Behind the value there is at least the number of headers.
        if pc.any(pc.greater_equal(cursor.at, self._ends)).as_py():
            raise UnfitError
        first, count = _cut(offsets, from_offset, to_offset)
        if not count:
            return None
        return RecordColumns(
            keys.gather(batches.buffer, first, count),
            values.gather(batches.buffer, first, count),
            offsets.slice(first, count),
            _microseconds(timestamps, first, count),
            self._kinds(first, count),
            self._headers(cursor.at, first, count) if with_headers else None,
        )

    def _timestamps(self, deltas: Any) -> Any:
        batches = self._batches
        found = pc.add(_signed(deltas), self._each(batches.timestamps_ms))
        if any(batches.append_time):
            # One time for all records of such a batch, whatever they say.
            appended = pc.equal(self._each(batches.append_time), _ONE)
            found = pc.if_else(appended, self._each(batches.timestamps_ms), found)
        return found

    def _kinds(self, first: int, count: int) -> Any:
        """Whether each timestamp is the broker's, 0 or 1; one number when it is the same for all."""
        kinds = self._batches.append_time
        if len(set(kinds)) == 1:
            return kinds[0]
        return self._each(kinds).slice(first, count).cast(pa.int32())

    def _headers(self, at: Any, first: int, count: int) -> list[Headers] | None:
        """For each record; None when no record has any."""
        buffer = self._batches.buffer
        begins = at.slice(first, count)
        ends = self._ends.slice(first, count)
        lengths = pc.subtract(ends, begins)
        if pc.max(lengths).as_py() == 1 and not pc.max(_Cursor(buffer, begins).byte()).as_py():
            return None
        buffer = bytes(buffer)
        found: list[Headers] = []
        for begin, end in zip(begins.to_pylist(), ends.to_pylist(), strict=True):
            try:
                headers, stop = read_headers(buffer, begin, end)
            except (CorruptBatchError, IndexError):
                raise UnfitError from None
            if stop != end:
                raise UnfitError
            found.append(headers)
        return found

    def _each(self, of_batch: list[Any]) -> Any:
        """The values of each batch, for each of its records."""
        if self._batch is None:
            return pa.scalar(of_batch[0], _INT64)
        return pc.take(_int64(of_batch), self._batch)


class _Field:
    """Begin and end of a key or value in every record; reading it moves the cursor behind it."""

    def __init__(self, cursor: _Cursor) -> None:
        length = cursor.varint()
        odd = pc.bit_wise_and(length, _ONE)
        bounds = pc.min_max(odd)
        self._none = bounds["max"].as_py() == 0
        self._all = bounds["min"].as_py() == 1
        self._nulls = odd
        self._begins = cursor.at
        if self._all:
            self._ends = cursor.at
            return
        size = pc.shift_right(length, _ONE)
        if not self._none:
            size = pc.multiply(size, pc.subtract(_ONE, odd))
        cursor.move(size)
        self._ends = cursor.at

    def gather(self, buffer: bytes, first: int, count: int) -> Any:
        """Rows `first` and on as a binary column."""
        if self._all:
            return pa.nulls(count, pa.binary())
        # An array whose every second value is what lies between: positions of 32 bits, begin and end in turn.
        both = pc.bit_wise_or(self._begins, pc.shift_left(self._ends, _SHIFT)).slice(first, count)
        buffers = [None, both.buffers()[1], pa.py_buffer(buffer)]
        column = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers, offset=2 * both.offset)
        chosen = _evens(count)
        if not self._none:
            chosen = pc.if_else(pc.equal(self._nulls.slice(first, count), _ONE), _NULL, chosen)
        return pc.take(column, chosen)


def _signed(zigzag: Any) -> Any:
    """Zigzag undone."""
    odd = pc.bit_wise_and(zigzag, _ONE)
    half = pc.shift_right(zigzag, _ONE)
    return half if not pc.max(odd).as_py() else pc.bit_wise_xor(half, pc.negate(odd))


def _cut(offsets: Any, from_offset: int, to_offset: int) -> tuple[int, int]:
    """First row and number of rows of the range; offsets ascend."""
    count = len(offsets)
    if offsets[0].as_py() >= from_offset and offsets[count - 1].as_py() < to_offset:
        return 0, count
    first = pc.sum(pc.less(offsets, from_offset)).as_py()
    return first, max(0, pc.sum(pc.less(offsets, to_offset)).as_py() - first)


def _positions(found: array[int]) -> Any:
    return pa.Array.from_buffers(pa.int32(), len(found), [None, pa.py_buffer(found)]).cast(_INT64)


def _microseconds(milliseconds: Any, first: int, count: int) -> Any:
    made = pc.multiply(milliseconds, _THOUSAND)
    return pa.Array.from_buffers(_TIMESTAMP, count, [None, made.buffers()[1]], offset=made.offset + first)


def _int64(found: Iterable[int]) -> Any:
    """`pa.array` would look for pandas each time, which takes long where there is none."""
    made = array("q", found)
    return pa.Array.from_buffers(_INT64, len(made), [None, pa.py_buffer(made)])


def _evens(count: int) -> Any:
    """0, 2, 4 and so on."""
    return _many_evens(1 << max(12, (count - 1).bit_length())).slice(0, count)


@lru_cache(maxsize=4)
def _many_evens(count: int) -> Any:
    return pa.array(range(0, 2 * count, 2), _INT64)


def _must_equal(one: Any, other: Any) -> None:
    if not one.equals(other):
        raise UnfitError
