"""Frames from a broker, received into buffers that are used again."""

from __future__ import annotations

from ringleader.protocol.compression import is_free

FIRST_BYTES = 64 * 1024
KEPT_BYTES = 16 * 1024 * 1024
"""To get new memory costs more than to receive into it: a buffer that had to grow stays, up to this size, and
so do those that were lent, together."""
STEP_BYTES = 1024 * 1024
"""Sizes of large buffers are multiples of it, so that one fits the next answer, too."""


class Incoming:
    """`room` for what comes next, `received` that number of bytes, then each whole `frame`.

    A frame is a part of the buffer: it has to be done with before the next `room`, unless it was lent.
    """

    def __init__(self) -> None:
        self._bytes = bytearray(FIRST_BYTES)
        self._buffer = memoryview(self._bytes)
        self._start = self._end = 0
        self._is_lent = False
        self._lent: list[bytearray] = []
        """Buffers that may be used again when no view of them is left, the oldest one first."""

    def room(self) -> memoryview:
        """Where to receive into; never empty."""
        start, end = self._start, self._end
        left = self._buffer[start:end]
        need = FIRST_BYTES if len(left) < 4 else max(FIRST_BYTES, 4 + self._size())
        if (
            self._is_lent
            or need > len(self._buffer)
            or (len(self._buffer) > KEPT_BYTES and need <= KEPT_BYTES)
        ):
            self._bytes = self._another(need)
            self._buffer = memoryview(self._bytes)
            self._buffer[: len(left)] = left
            self._start, self._end = 0, len(left)
        elif start:
            self._buffer[: len(left)] = bytes(left)
            self._start, self._end = 0, len(left)
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        """`count` bytes came."""
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

    @property
    def missing_bytes(self) -> int:
        """The bytes of the next frame that are still to come; 0: its size is not known yet."""
        have = self._end - self._start
        return 0 if have < 4 else max(0, 4 + self._size() - have)

    def lend(self) -> None:
        """Parts of the last frame stay as they are: its buffer is used again when there are none any more."""
        self._is_lent = True

    def starts_with(self, data: bytes) -> bool:
        """Whether what comes next begins so."""
        return bytes(self._buffer[self._start : min(self._end, self._start + len(data))]) == data

    def _size(self) -> int:
        return int.from_bytes(self._buffer[self._start : self._start + 4], "big", signed=True)

    def _another(self, need: int) -> bytearray:
        """A buffer of at least that size."""
        if self._is_lent:
            self._is_lent = False
            self._lent.append(self._bytes)
        for number, one in enumerate(self._lent):
            if len(one) >= need and is_free(one):
                return self._lent.pop(number)
        if need > STEP_BYTES:
            need = max(need, min(KEPT_BYTES, -(-need // STEP_BYTES) * STEP_BYTES))
        while self._lent and sum(map(len, self._lent)) + need > KEPT_BYTES:
            del self._lent[0]
        return bytearray(need)
