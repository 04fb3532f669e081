"""The file of prepared requests that the load programs replay (format: bench/load/common.h)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ringleader.protocol.frames import encode_request
from ringleader.protocol.schema import Message

# Any number that does not appear in a request by chance: marks where the load program counts up.
COUNTER_MARK = 0x5EC0_17E5_5EC0_17E5


class Frame(NamedTuple):
    """A whole request with its size field, and where in it an int64 grows with each sending (0: nowhere)."""

    data: bytes
    counter_at: int = 0


def frame(message: Message, version: int) -> Frame:
    """Encodes a request; a field that holds `COUNTER_MARK` becomes its counter."""
    data = encode_request(message, version, 0, "bench")
    mark = struct.pack(">q", COUNTER_MARK)
    if mark not in data:
        return Frame(data)
    if data.count(mark) > 1:
        raise ValueError("a frame has one counter at most")
    at = data.index(mark)
    return Frame(data.replace(mark, bytes(8)), at)


def write_frames(path: Path, connections: Sequence[Sequence[Frame]]) -> Path:
    """Writes the frames that each connection repeats in turn."""
    parts = [struct.pack("<I", len(connections))]
    for frames in connections:
        parts.append(struct.pack("<I", len(frames)))
        for one in frames:
            parts += [struct.pack("<II", len(one.data), one.counter_at), one.data]
    path.write_bytes(b"".join(parts))
    return path


def deal(frames: Sequence[Frame], connections: int) -> list[list[Frame]]:
    """Deals frames out to connections in turn, as cards."""
    return [list(frames[start::connections]) for start in range(connections)]
