"""Unix time as the shard machines believe it: no clock that jumps for a moment makes anything expire."""

from __future__ import annotations

from collections import deque


class UnixTime:
    """Unix time as a machine got it during the last `window_ms` of its monotonic clock.

    A stamp takes the latest time that was given in the window, an age is counted to the earliest: a jump that
    is taken back within the window, in either direction, makes nothing older than it is. One that stays
    counts when the window has passed.
    """

    __slots__ = ("_earliest", "_latest", "_window_ms", "difference_ms")

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self.difference_ms = 0
        """Unix time less the monotonic clock, as given last."""
        # (when, difference): the ends of the window's sorted hull, so that both extremes stand in front.
        self._earliest: deque[tuple[int, int]] = deque()
        self._latest: deque[tuple[int, int]] = deque()

    def tell(self, now_ms: int, wall_ms: int) -> None:
        """The current Unix time."""
        # Until now the last given time held: a jump counts from now on only.
        difference = self.difference_ms = wall_ms - now_ms
        while self._earliest and self._earliest[-1][1] >= difference:
            self._earliest.pop()
        while self._latest and self._latest[-1][1] <= difference:
            self._latest.pop()
        for hull in (self._earliest, self._latest):
            hull.append((now_ms, difference))
            while hull[0][0] < now_ms - self._window_ms:
                hull.popleft()

    def now_ms(self, now_ms: int) -> int:
        """Unix time, for what people read."""
        return now_ms + self.difference_ms

    def stamp_ms(self, now_ms: int) -> int:
        """Unix time for a stamp whose age will count."""
        return now_ms + (self._latest[0][1] if self._latest else self.difference_ms)

    def age_to_ms(self, now_ms: int) -> int:
        """Unix time to count the age of a stamp to."""
        return now_ms + (self._earliest[0][1] if self._earliest else self.difference_ms)
