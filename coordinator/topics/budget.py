"""What all partitions have together: bytes of work per turn of the loop, bytes of memory for new records."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable

TURN_BYTES = 2 * 1024 * 1024
"""Bytes of records that are checked, copied or handed over in one turn of the loop; what is more waits for
the next turn. One unit of work (a batch, one partition's part of an answer) may go above it."""

BATCH_OVERHEAD_BYTES = 120
"""What Python keeps for a batch in memory besides its bytes."""

Work = Callable[[], int]
"""Does something, and says how many bytes it moved."""

_COMPACT_AT = 512


class LoopBudget:
    """Runs work at once while this turn of the loop has room for it, else in later turns, in the order it
    came: so heartbeats come between."""

    def __init__(self, turn_bytes: int = TURN_BYTES) -> None:
        self._turn_bytes = turn_bytes
        self._spent = 0
        self._waiting: deque[Work] = deque()
        self._scheduled = False

    def run(self, work: Work) -> None:
        """Do this, now or later. What it raises later goes to the loop's exception handler."""
        if self._waiting or self._spent >= self._turn_bytes:
            self._waiting.append(work)
            return
        self._spent += work()
        self._schedule()

    def _next_turn(self) -> None:
        self._spent = 0
        self._scheduled = False
        try:
            while self._waiting and self._spent < self._turn_bytes:
                self._spent += self._waiting.popleft()()
        finally:
            self._schedule()

    def _schedule(self) -> None:
        if (self._spent or self._waiting) and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)


class Tail:
    """The newest batches of one partition, without gaps up to its end."""

    __slots__ = ("_bases", "_batches", "_head", "end_offset")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._batches: list[bytes] = []
        self._head = 0
        self.end_offset = 0
        """Offset after the last batch."""

    def __len__(self) -> int:
        return len(self._bases) - self._head

    def add(self, base_offset: int, next_offset: int, batch: bytes) -> None:
        """The next batch."""
        self._bases.append(base_offset)
        self._batches.append(batch)
        self.end_offset = next_offset

    def evict(self) -> int:
        """Forget the oldest batch; its size in bytes."""
        head = self._head
        size = len(self._batches[head])
        self._batches[head] = b""
        self._head = head = head + 1
        if head >= _COMPACT_AT and head * 2 > len(self._bases):
            del self._bases[:head]
            del self._batches[:head]
            self._head = 0
        return size

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Whole batches from the one with `offset` on, at least one; None when it is not here (any more)."""
        bases, head = self._bases, self._head
        index = bisect_right(bases, offset, head) - 1
        if index < head or offset >= self.end_offset:
            return None
        batches = self._batches
        size = len(batches[index])
        stop = index + 1
        while stop < len(batches):
            size += len(batches[stop])
            if size > max_bytes:
                break
            stop += 1
        return batches[index] if stop == index + 1 else b"".join(batches[index:stop])


class TailCache:
    """All partitions' tails: when they are too large together, the batch that came first goes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._order: deque[Tail] = deque()
        self.size_bytes = 0

    def add(self, tail: Tail, base_offset: int, next_offset: int, batch: bytes) -> None:
        """Another batch of a partition."""
        tail.add(base_offset, next_offset, batch)
        self._order.append(tail)
        self.size_bytes += len(batch) + BATCH_OVERHEAD_BYTES
        while self.size_bytes > self._limit:
            self.size_bytes -= self._order.popleft().evict() + BATCH_OVERHEAD_BYTES
