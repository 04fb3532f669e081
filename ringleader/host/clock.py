"""The time of day, as people and clients read it."""

from __future__ import annotations

import time


def wall_ms() -> int:
    """Unix time in whole milliseconds."""
    return time.time_ns() // 1_000_000
