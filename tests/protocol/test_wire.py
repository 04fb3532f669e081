"""Unsigned varints and sections of tagged fields by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.wire import SMALL, read_uvarint, skip_tags, write_tags, write_uvarint

# Kafka's own test values for unsigned varints.
VARINTS = [
    (0, "00"), (1, "01"), (63, "3f"), (64, "40"), (127, "7f"), (128, "8001"), (8191, "ff3f"), (8192, "8040"),
    (16383, "ff7f"), (16384, "808001"), (1048575, "ffff3f"), (1048576, "808040"), (2147483647, "ffffffff07"),
    (4294967295, "ffffffff0f"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), VARINTS)
def test_known_varints(value: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert write_uvarint(value) == data
    assert read_uvarint(b"before" + data + b"after", 6) == (value, 6 + len(data))


@given(st.integers(0, 2**32 - 1) | st.integers(SMALL - 3, SMALL + 3))
def test_varints_come_back(value: int) -> None:
    data = write_uvarint(value)
    assert read_uvarint(data, 0) == (value, len(data))
    for size in range(len(data)):
        with pytest.raises(IndexError):
            read_uvarint(data[:size], 0)


@pytest.mark.parametrize("text", ["ffffffff10", "ffffffff7f", "808080808000", "ffffffffffffffffff01"])
def test_varints_of_more_than_32_bits_or_five_bytes(text: str) -> None:
    with pytest.raises(ValueError, match="varint of more than"):
        read_uvarint(bytes.fromhex(text), 0)


def test_a_length_that_no_varint_carries() -> None:
    with pytest.raises(ValueError, match="more than 32 bits"):
        write_uvarint(2**32)


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=200), max_size=5), st.binary(max_size=5))
def test_tagged_fields_are_skipped_whole(found: dict[int, bytes], after: bytes) -> None:
    section = write_tags(sorted(found.items()))
    assert skip_tags(section + after, 0) == len(section)
    for size in range(len(section)):
        with pytest.raises((IndexError, ValueError)):
            skip_tags(section[:size], 0)
