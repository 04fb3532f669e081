"""The records in the bytes of one batch, as lists: the loops that have to be fast.

Where it was built, compiled code does the same in a fifth of the time (`native`). It has no words for bad
data: what it does not take, Python reads again.

One pass over the bytes, written out straight: a call per record would cost more than the record. One and two
byte varints are decoded in place: nearly all are. A length that leads beyond the record is found at the
record's end, since a slice never reads beyond the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringleader.protocol import native
from ringleader.protocol.records import CorruptBatchError, Headers

_NO_HEADERS: Headers = ()
_LONGEST_VARINT = 10
_BEYOND = 1 << 40
_SHORT = tuple(_BEYOND if byte & 1 else 1 + (byte >> 1) for byte in range(128))
"""How far a length of one byte leads, itself included; beyond all for a negative one."""
_SHORT = (_SHORT[0], 1, *_SHORT[2:])  # but null, which leads nowhere
_LONG = (0,) * 128 + tuple(_BEYOND if byte & 1 else 2 + ((byte - 128) >> 1) for byte in range(128, 256))
"""The same for the first byte of two; the second one adds 64 times its number."""
_WIDTHS = (
    (0, 64, 1),
    (64, 8_192, 2),
    (8_192, 1_048_576, 3),
    (1_048_576, 134_217_728, 4),
    (134_217_728, 2**31, 5),
)


class Rows(NamedTuple):
    """Records as lists of the same length. `end`: where the last record ends."""

    keys: list[bytes | None]
    values: list[bytes | None]
    timestamp_deltas: list[int]
    """To the base timestamp, in zigzag form."""
    offset_deltas: list[int]
    """To the base offset; empty for dense batches."""
    headers: list[Headers]
    """Empty without `with_headers`."""
    end: int


def read_rows(
    buffer: bytes | memoryview,
    pos: int,
    first: int,
    count: int,
    *,
    with_headers: bool = True,
    dense: bool = True,
) -> Rows:
    """`count` records, of which the first begins at `pos`. Raises CorruptBatchError.

    `dense`: the offset deltas are `first` and so on, written in the shortest way, so that they are skipped.
    """
    if native.compiled is not None:
        found = native.compiled.read_rows(buffer, pos, first, count, with_headers, dense)
        if found is not None:
            return Rows._make(found)
    try:
        return _read_rows(bytes(buffer), pos, first, first + count, with_headers, dense)
    except IndexError:
        raise CorruptBatchError("a record is cut off", pos) from None


def _read_rows(buffer: bytes, pos: int, first: int, stop_row: int, with_headers: bool, dense: bool) -> Rows:
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    timestamps: list[int] = []
    deltas: list[int] = []
    headers: dict[int, Headers] = {}
    """Of the rows that have any: few do."""
    for begin, until, width in _widths(first, stop_row) if dense else ((first, stop_row, 0),):
        for row in range(begin, until):
            byte = buffer[pos]
            if byte < 128:
                end = pos + 1 + (byte >> 1)
                pos += 2
            elif (second := buffer[pos + 1]) < 128:
                end = pos + 2 + ((byte + ((second - 1) << 7)) >> 1)
                pos += 3
            else:
                byte, pos = _long_varint(buffer, pos)
                end = pos + (byte >> 1)
                pos += 1
            if byte & 1:
                raise CorruptBatchError("a record's length is negative", pos)
            # A byte of attributes that nobody uses was between the length and the timestamp.
            byte = buffer[pos]
            if byte < 128:
                pos += 1
            elif (second := buffer[pos + 1]) < 128:
                byte += (second - 1) << 7
                pos += 2
            else:
                byte, pos = _long_varint(buffer, pos)
            timestamps.append(byte)
            if width:
                pos += width
            else:
                delta, pos = read_varint(buffer, pos)
                deltas.append(delta)
            byte = buffer[pos]
            if byte < 128:
                pos += 1
            elif (second := buffer[pos + 1]) < 128:
                byte += (second - 1) << 7
                pos += 2
            else:
                byte, pos = _long_varint(buffer, pos)
            if byte & 1:
                keys.append(None)
            else:
                stop = pos + (byte >> 1)
                keys.append(buffer[pos:stop])
                pos = stop
            byte = buffer[pos]
            if byte < 128:
                pos += 1
            elif (second := buffer[pos + 1]) < 128:
                byte += (second - 1) << 7
                pos += 2
            else:
                byte, pos = _long_varint(buffer, pos)
            if byte & 1:
                values.append(None)
            else:
                stop = pos + (byte >> 1)
                values.append(buffer[pos:stop])
                pos = stop
            if not with_headers:
                if pos >= end:
                    raise CorruptBatchError("a record is longer than its length", pos)
                pos = end
            elif buffer[pos]:
                headers[row - first], pos = read_headers(buffer, pos, end)
            else:
                pos += 1
            if pos != end:
                raise CorruptBatchError("a record is not as long as its length", pos)
    column: list[Headers] = [_NO_HEADERS] * len(values) if with_headers else []
    for row, found in headers.items():
        column[row] = found
    return Rows(keys, values, timestamps, deltas, column, pos)


def read_values(
    buffer: bytes | memoryview, pos: int, first: int, count: int
) -> tuple[list[bytes | None], int]:
    """The values of such records of a dense batch, and where the last record ends. Raises CorruptBatchError,
    also for lengths that `read_rows` understands, but nobody writes."""
    if native.compiled is not None:
        found: tuple[list[bytes | None], int] | None = native.compiled.read_values(buffer, pos, first, count)
        if found is not None:
            return found
    try:
        return _read_values(bytes(buffer), pos, first, first + count)
    except IndexError:
        raise CorruptBatchError("a record is cut off", pos) from None


def _read_values(buffer: bytes, pos: int, first: int, stop_row: int) -> tuple[list[bytes | None], int]:
    values: list[bytes | None] = []
    short, long = _SHORT, _LONG
    for begin, until, width in _widths(first, stop_row):
        skip = 1 + width
        for _ in range(begin, until):
            byte = buffer[pos]
            if byte < 128:
                end = pos + short[byte]
                pos += 2
            elif (second := buffer[pos + 1]) < 128:
                end = pos + long[byte] + (second << 6)
                pos += 3
            else:
                length, pos = _read_length(buffer, pos)
                end = pos + length
                pos += 1
            while buffer[pos] > 127:
                pos += 1
            pos += skip
            byte = buffer[pos]
            if byte < 128:
                pos += short[byte]
            elif (second := buffer[pos + 1]) < 128:
                pos += long[byte] + (second << 6)
            else:
                length, pos = _read_length(buffer, pos)
                pos += length
            byte = buffer[pos]
            if byte < 128:
                stop = pos + short[byte]
                values.append(None if byte == 1 else buffer[pos + 1 : stop])
            elif (second := buffer[pos + 1]) < 128:
                stop = pos + long[byte] + (second << 6)
                values.append(buffer[pos + 2 : stop])
            else:
                length, pos = _read_length(buffer, pos)
                stop = pos + length
                values.append(buffer[pos:stop])
            if stop >= end:
                raise CorruptBatchError("a record is longer than its length", pos)
            pos = end
    return values, pos


def skip_rows(buffer: bytes | memoryview, pos: int, count: int) -> int:
    """The position where `count` records end. Raises CorruptBatchError."""
    try:
        for _ in range(count):
            length, pos = read_varint(buffer, pos)
            if length < 0:
                raise CorruptBatchError("a record's length is negative", pos)
            pos += length
    except IndexError:
        raise CorruptBatchError("a record is cut off", pos) from None
    return pos


def _read_length(buffer: bytes, pos: int) -> tuple[int, int]:
    length, pos = read_varint(buffer, pos)
    if length < 0:
        raise CorruptBatchError("a length is negative", pos)
    return length, pos


def _widths(row: int, stop_row: int) -> Sequence[tuple[int, int, int]]:
    """Rows from, to, and how many bytes their offset deltas take."""
    if stop_row <= 64:
        return ((row, stop_row, 1),)
    return [
        (max(row, least), min(stop_row, until), width)
        for least, until, width in _WIDTHS
        if row < until and least < stop_row
    ]


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


def read_varint(buffer: bytes | memoryview, pos: int) -> tuple[int, int]:
    """A signed number in zigzag form, and where it ends. IndexError when the bytes run out."""
    value, pos = _long_varint(buffer, pos)
    return (value >> 1) ^ -(value & 1), pos


def _long_varint(buffer: bytes | memoryview, pos: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(pos, pos + _LONGEST_VARINT):
        byte = buffer[at]
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at + 1
        shift += 7
    raise CorruptBatchError("a number is longer than 64 bits", pos)
