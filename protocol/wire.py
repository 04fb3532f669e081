"""Primitive pieces of the wire format that the generated code calls, and the bounds that every decoder keeps.

The generated decoders read most things inline; here is what is too long for a line: unsigned varints of more
than
one byte (at most five bytes, 32 bits), the skipping of tagged fields, and the writing of both.

Every function raises ValueError (or IndexError at the end of the data) for what does not fit; the generated
code turns
that into `MalformedError`.
"""

from __future__ import annotations

_MAX_UVARINT = 0xFFFFFFFF

INT32_MAX = 2_147_483_647
INT64_MAX = 9_223_372_036_854_775_807
"""The largest numbers of the wire's types INT32 and INT64."""

STRING_MAX = 32_767
"""Bytes of the longest string: the older versions have no room for more, and Kafka refuses it in all."""

UNLIMITED = 1 << 62
"""The budget of a decoder whose caller sets no bound."""

PIECE_ITEMS = 4_096
"""Items that are joined to one piece of a long message."""

TAGS_MAX = 127
"""Most unknown tagged fields that are skipped in one section; no client sends as many."""

SMALL = 4096
"""Below this a varint comes out of the table."""


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINT: tuple[bytes, ...] = tuple(_uvarint(value) for value in range(SMALL))
"""Encoded unsigned varints of small numbers."""


def write_uvarint(value: int) -> bytes:
    """`value` (0 to 2^32-1) as an unsigned varint."""
    if value < SMALL:
        return UVARINT[value]
    if value > _MAX_UVARINT:
        raise ValueError("a length of more than 32 bits")
    return _uvarint(value)


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at `position` and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _MAX_UVARINT:
                raise ValueError("varint of more than 32 bits")
            return value, position
    raise ValueError("varint of more than five bytes")


def skip_tags(data: bytes | memoryview, position: int) -> int:
    """Pass over a section of tagged fields of which none is known (KIP-482)."""
    count, position = read_uvarint(data, position)
    end = len(data)
    if count > (end - position) // 2 or count > TAGS_MAX:
        raise ValueError("too many tagged fields")
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > end:
            raise ValueError("tagged field goes beyond the data")
    return position


def write_tags(tags: list[tuple[int, bytes]]) -> bytes:
    """A section of tagged fields, in the order given (ascending tags)."""
    out = [write_uvarint(len(tags))]
    for tag, payload in tags:
        out += (write_uvarint(tag), write_uvarint(len(payload)), payload)
    return b"".join(out)
