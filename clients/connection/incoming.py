"""Frames from a broker, received into one buffer that is used again."""

from __future__ import annotations

FIRST_BYTES = 64 * 1024
KEPT_BYTES = 16 * 1024 * 1024
"""To get new memory costs more than to receive into it: a buffer that had to grow stays, up to this size."""


class Incoming:
    """`room` for what comes next, `received` that number of bytes, then each whole `frame`.

    A frame is a part of the buffer: it has to be done with before the next `room`.
    """

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(FIRST_BYTES))
        self._start = self._end = 0

    def room(self) -> memoryview:
        """Where to receive into; never empty."""
        start, end = self._start, self._end
        left = self._buffer[start:end]
        need = FIRST_BYTES if len(left) < 4 else max(FIRST_BYTES, 4 + self._size())
        if need > len(self._buffer) or (len(self._buffer) > KEPT_BYTES and need <= KEPT_BYTES):
            self._buffer = memoryview(bytearray(need))
            self._buffer[: len(left)] = left
            self._start, self._end = 0, len(left)
        elif start:
            self._buffer[: len(left)] = bytes(left)
            self._start, self._end = 0, len(left)
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        """So many bytes came."""
        self._end += count

    def frame(self, limit_bytes: int) -> memoryview | None:
        """The next frame without its size; None: there is none, or not all of it. Raises ValueError for a
        size that is impossible or above the limit."""
        have = self._end - self._start
        if have < 4:
            return None
        size = self._size()
        if not 4 <= size <= limit_bytes:
            raise ValueError(f"an answer of {size} bytes")
        if have < 4 + size:
            return None
        begin = self._start + 4
        self._start = begin + size
        return self._buffer[begin : self._start]

    def starts_with(self, data: bytes) -> bool:
        """Whether what comes next begins so."""
        return bytes(self._buffer[self._start : min(self._end, self._start + len(data))]) == data

    def _size(self) -> int:
        return int.from_bytes(self._buffer[self._start : self._start + 4], "big", signed=True)
