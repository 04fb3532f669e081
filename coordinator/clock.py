"""The two clocks of the coordinator, each injected where it is needed."""

from __future__ import annotations

import time
from collections.abc import Callable

from ringleader.host.clock import wall_ms

__all__ = ["Clock", "WallClock", "monotonic_ms", "wall_ms"]

Clock = Callable[[], int]
"""Milliseconds since some fixed moment; never goes back. All deadlines use it."""

WallClock = Callable[[], int]
"""Unix time in milliseconds; may jump. Only for stamps that people or clients read."""


def monotonic_ms() -> int:
    """The process's monotonic clock, in whole milliseconds."""
    return time.monotonic_ns() // 1_000_000
