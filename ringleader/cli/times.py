"""Points in time and lengths of time as they are typed: ISO 8601, as Kafka's tools take them, and ``-1h``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHORT = re.compile(r"(\d+)(ms|s|m|h|d)")
_ISO = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int:
    """``1h``, ``30m``, ``7d``, ``90s``, ``500ms``, or ``P7DT12H``. Raises ValueError."""
    try:
        if match := _SHORT.fullmatch(text):
            length = timedelta(**{_UNITS[match[2]]: int(match[1])})
        elif (match := _ISO.fullmatch(text)) and any(match.groups()):
            length = timedelta(**{name: float(value) for name, value in match.groupdict(default="0").items()})
        else:
            raise ValueError(f"a length of time is 1h, 30m, 7d or P7DT12H, not {text!r}")
    except OverflowError:
        raise ValueError(f"{text!r} is too long a time") from None
    return length // timedelta(milliseconds=1)


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
