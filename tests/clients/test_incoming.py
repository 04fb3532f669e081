"""Frames out of a buffer that is used again, however their bytes come in."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.clients.connection.incoming import FIRST_BYTES, KEPT_BYTES, Incoming
from tests.support.shares import share


def receive(incoming: Incoming, data: bytes, most: int) -> list[bytes]:
    """The frames that end in `data`, which comes in pieces of at most `piece` bytes."""
    frames = []
    while data:
        room = incoming.room()
        count = min(len(room), most, len(data))
        assert count
        room[:count] = data[:count]
        data = data[count:]
        incoming.received(count)
        while (frame := incoming.frame(1 << 30)) is not None:
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
