"""The newest batches of all partitions in memory, within one bound."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

BATCH_OVERHEAD_BYTES = 120
"""Bytes of memory for a batch besides its content."""

_COMPACT_AT = 512


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
