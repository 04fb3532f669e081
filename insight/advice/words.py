"""Lengths of time, times and numbers in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

SOME = 4
"""Names in a sentence; the rest is counted."""


def length(ms: float) -> str:
    """``320 ms``, ``1.2 s``, ``45 s``, ``4 min 10 s``, ``2 h 5 min``, ``3 days 4 h``."""
    ms = round(ms)
    if ms < 0:
        return f"-{length(-ms)}"
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    seconds = round(ms / 1000)
    for big, name, small, rest in ((60, "min", 1, "s"), (3_600, "h", 60, "min"), (86_400, "d", 3_600, "h")):
        if seconds < _MOST[name]:
            whole, more = divmod(seconds, big)
            return f"{whole} {name}" + (f" {more // small} {rest}" if more // small else "")
    return f"{seconds // 86_400} d"


_MOST = {"min": 3_600, "h": 48 * 3_600, "d": 14 * 86_400}


def short(ms: float) -> str:
    """With one unit: ``320 ms``, ``1.2 s``, ``93 s``, ``6.9 min``, ``2.5 h``, ``4 d``."""
    for most, unit_ms, unit in ((1_000, 1, "ms"), (99_500, 1_000, "s"), (99 * 60_000, 60_000, "min")):
        if abs(ms) < most:
            return f"{_two_digits(ms / unit_ms)} {unit}"
    hours = ms / 3_600_000
    return f"{_two_digits(hours)} h" if abs(hours) < 72 else f"{hours / 24:.0f} d"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 9.95 else f"{number:.1f}".removesuffix(".0")


def partition_time(ms: float) -> str:
    """A sum over partitions: ``812 partition-minutes``, ``4.2 partition-seconds``."""
    minutes = ms / 60_000
    if abs(minutes) >= 10:
        return f"{minutes:,.0f} partition-minutes"
    if abs(minutes) >= 1:
        return f"{minutes:.1f} partition-minutes"
    return f"{ms / 1000:.1f} partition-seconds"


def clock(at_ms: int) -> str:
    """``2026-01-31 12:00:05Z``."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def some(names: Sequence[str]) -> str:
    """The first few of them."""
    if len(names) <= SOME:
        return ", ".join(names)
    return f"{', '.join(names[:SOME])} and {len(names) - SOME} more"


def count(number: int, what: str, many: str = "") -> str:
    """``1 member``, ``3 members``."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def how_often(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def rounded_up_ms(ms: float) -> int:
    """A value to set a timeout to: the next of 10 s, 15 s, 30 s, 45 s, then whole minutes, that is longer."""
    for step in (10_000, 15_000, 30_000, 45_000):
        if ms < step:
            return step
    return (int(ms) // 60_000 + 1) * 60_000
