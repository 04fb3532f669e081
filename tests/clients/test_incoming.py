"""Frames out of a buffer that is used again, however their bytes come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.clients.connection.incoming import FIRST_BYTES, KEPT_BYTES, Incoming
from tests.support.shares import share


def receive(incoming: Incoming, data: bytes, most: int) -> list[bytes]:
    """The frames that end in `data`, which comes in pieces of at most `most` bytes."""
    return [bytes(frame) for frame in lent(incoming, data, most, lambda: False)]


def lent(incoming: Incoming, data: bytes, most: int, lend: Callable[[], bool]) -> list[memoryview | bytes]:
    """The same; those that `lend` says as they stand in the buffer."""
    frames: list[memoryview | bytes] = []
    while data:
        room = incoming.room()
        count = min(len(room), most, len(data))
        assert count
        room[:count] = data[:count]
        data = data[count:]
        incoming.received(count)
        while (frame := incoming.frame(1 << 30)) is not None:
            if lend():
                incoming.lend()
                frames.append(frame)
            else:
                frames.append(bytes(frame))
    return frames


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@settings(deadline=None, max_examples=share(20, whole=50), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(4, 300_000), st.integers(0, 255)), max_size=6),
    st.sampled_from([1_000, 65_536, 262_144, 1 << 30]),
)
def test_every_frame_comes_out_whole(frames: list[tuple[int, int]], most: int) -> None:
    wanted = [bytes([byte]) * size for size, byte in frames]
    assert receive(Incoming(), b"".join(map(framed, wanted)), most) == wanted


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(4, 300_000), st.integers(0, 255)), max_size=9),
    st.sampled_from([1_000, 65_536, 262_144, 1 << 30]),
    st.randoms(use_true_random=False),
)
def test_what_is_lent_stays_as_long_as_it_is_looked_at(
    frames: list[tuple[int, int]], most: int, random: Any
) -> None:
    wanted = [bytes([byte]) * size for size, byte in frames]
    incoming, kept = Incoming(), []
    for one in wanted:
        kept += lent(incoming, framed(one) * 2, most, lambda: random.random() < 0.5)
        if random.random() < 0.3:
            assert kept.pop(random.randrange(len(kept))) in wanted
    assert all(one in wanted for one in kept)


def test_a_lent_buffer_is_used_again_when_nobody_looks_at_it() -> None:
    incoming = Incoming()

    def buffer_of(byte: bytes) -> tuple[memoryview | bytes, int]:
        [frame] = lent(incoming, framed(byte * 3_000_000), 1 << 30, lambda: True)
        assert isinstance(frame, memoryview)
        return frame, id(frame.obj)

    first, one = buffer_of(b"a")
    second, other = buffer_of(b"b")
    assert one != other
    del first
    assert buffer_of(b"c")[1] == one
    assert second == b"b" * 3_000_000


def test_no_more_is_kept_of_what_was_lent_than_of_what_was_not() -> None:
    incoming = Incoming()
    frames = []
    for _ in range(10):
        frames += lent(incoming, framed(bytes(3_000_000)), 1 << 30, lambda: True)
    assert len(frames) == 10
    frames.clear()
    held = [*incoming._lent, incoming._bytes]
    assert sum(map(len, held)) <= KEPT_BYTES


def test_byte_by_byte() -> None:
    wanted = [b"abcd", b"efghi", b"x" * 100]
    assert receive(Incoming(), b"".join(map(framed, wanted)), 1) == wanted


def test_a_buffer_that_had_to_grow_stays_unless_it_is_huge() -> None:
    incoming = Incoming()
    assert len(incoming.room()) == FIRST_BYTES
    receive(incoming, framed(b"x" * 1_000_000), 1 << 30)
    grown = len(incoming.room())
    assert grown > 1_000_000
    receive(incoming, framed(b"x" * 10), 1 << 30)
    assert len(incoming.room()) == grown
    receive(incoming, framed(b"x" * (KEPT_BYTES + 1)), 1 << 30)
    assert len(incoming.room()) == FIRST_BYTES


@pytest.mark.parametrize("size", [-1, 3, 101])
def test_impossible_sizes(size: int) -> None:
    incoming = Incoming()
    incoming.room()[:4] = size.to_bytes(4, "big", signed=True)
    incoming.received(4)
    with pytest.raises(ValueError, match=f"an answer of {size} bytes"):
        incoming.frame(100)
    assert incoming.starts_with(size.to_bytes(4, "big", signed=True)[:2])
