"""Figures that are counted where something happens, and read by metrics."""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar


class Histogram:
    """How long something took, each time: how often up to each bound, and all together."""

    BOUNDS_MS: ClassVar = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
    """Upper bounds; what took longer is counted behind the last one."""

    __slots__ = ("_counts", "_sum_ms")

    def __init__(self) -> None:
        self._counts = [0] * (len(self.BOUNDS_MS) + 1)
        self._sum_ms = 0.0

    def add(self, ms: float) -> None:
        """Once more."""
        self._counts[bisect_left(self.BOUNDS_MS, ms)] += 1
        self._sum_ms += ms

    def copy(self) -> tuple[list[int], float]:
        """The counts, and the sum in milliseconds."""
        return [*self._counts], self._sum_ms
