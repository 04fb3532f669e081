"""Lengths of time, counts and names in evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ringleader.insight.model import Member

_NAMED = 3


def seconds(ms: float) -> str:
    """A length of time: "45 s", "0.8 s", "12.3 s", "7 ms"."""
    if 0 < ms < 100:
        return f"{ms:.0f} ms"
    text = f"{ms / 1000:.1f}"
    return f"{text.removesuffix('.0')} s"


def count(number: int, noun: str) -> str:
    """ "1 partition", "3 partitions"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """A few of them, in words."""
    every = list(names)
    if len(every) <= _NAMED:
        return " and ".join([", ".join(every[:-1]), every[-1]] if len(every) > 1 else every)
    return f"{', '.join(every[:_NAMED])} and {len(every) - _NAMED} more"


def members(some: Sequence[Member]) -> str:
    """Members by their names."""
    return listed([one.name for one in some])
