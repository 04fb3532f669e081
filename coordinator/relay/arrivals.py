"""A bound for the bytes of brokers' answers that are on their way through this node at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Arrivals:
    """A connection that is about to receive a large answer takes its bytes, at once or when others gave
    theirs back, in the order in which they came; until then the broker keeps the answer. One that is larger
    than the bound gets its turn when no other has any."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._taken = 0
        self.received_bytes = 0
        """Of all answers, small ones, too; since the start, as the next one."""
        self.sent_bytes = 0
        """Of the requests."""
        self._waiting: deque[tuple[int, Callable[[], bool]]] = deque()

    @property
    def taken_bytes(self) -> int:
        """Bytes that are taken now."""
        return self._taken

    def take(self, count: int, granted: Callable[[], bool]) -> None:
        """`granted()` is called when `count` bytes are the caller's, perhaps before this returns. It says
        whether they are still wanted."""
        self._waiting.append((count, granted))
        self._grant()

    def give(self, count: int) -> None:
        """Bytes that were taken are free again."""
        self._taken -= count
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            count, granted = self._waiting[0]
            if self._taken and self._taken + count > self._limit:
                return
            self._waiting.popleft()
            self._taken += count
            if not granted():
                self._taken -= count
