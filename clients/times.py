"""Points in time and lengths of time as they are typed: ISO 8601, as Kafka's tools take them, and ``-1h``."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta

from ringleader.clients.reset import duration_ns

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHORT = re.compile(r"(\d+)(ms|s|m|h|d)")


def duration_ms(text: str) -> int:
    """``1h``, ``30m``, ``7d``, ``90s``, ``500ms``, or ``P7DT12H``. Raises ValueError."""
    try:
        if match := _SHORT.fullmatch(text):
            length = timedelta(**{_UNITS[match[2]]: int(match[1])})
        else:
            length = _iso(text)
    except OverflowError:
        raise ValueError(f"{text!r} is too long a time") from None
    return length // timedelta(milliseconds=1)


def _iso(text: str) -> timedelta:
    with contextlib.suppress(ValueError):
        if (length_ns := duration_ns(text)) >= 0:
            return timedelta(microseconds=length_ns // 1_000)
    raise ValueError(f"a length of time is 1h, 30m, 7d or P7DT12H, not {text!r}")


def time_ms(text: str, now_ms: int) -> int:
    """Unix time in ms of ``2026-01-31``, ``2026-01-31T12:00``, with or without a zone (UTC then), or of
    ``-1h``: an hour ago. Raises ValueError."""
    if text.startswith("-"):
        return now_ms - duration_ms(text[1:])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"a time is 2026-01-31T12:00:00Z, or -1h for an hour ago, not {text!r}") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def moment_ms(text: str, now_ms: int) -> int:
    """``2h`` or ``-2h``: that time ago; else as `time_ms`. Raises ValueError."""
    with contextlib.suppress(ValueError):
        return now_ms - duration_ms(text)
    try:
        return time_ms(text, now_ms)
    except ValueError:
        raise ValueError(f"a time is 2h, for two hours ago, or 2026-01-31T12:00:00Z, not {text!r}") from None
