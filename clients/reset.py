"""`auto_offset_reset`: where a partition without a position begins. No clock here: time is an argument."""

from __future__ import annotations

import re

from ringleader.clients.model import EARLIEST, LATEST

BY_DURATION = "by_duration:"
"""The beginning of a policy that goes back in time (KIP-1106), as of Kafka 4.0."""
_TIMES = {"earliest": EARLIEST, "latest": LATEST, "none": LATEST}

_ISO = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<D>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<H>[-+]?\d+)H)?(?:(?P<M>[-+]?\d+)M)?(?:(?P<S>[-+]?\d+)(?:[.,](?P<nanos>\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_NS = {"D": 86_400 * 10**9, "H": 3_600 * 10**9, "M": 60 * 10**9, "S": 10**9}
_MAX_DIGITS = 19
_MAX_SECONDS = 2**63 - 1


def duration_ns(text: str) -> int:
    """The length of an ISO 8601 duration as Java's `Duration.parse` takes it, in ns: ``PT1H30M``, ``P7D``,
    ``PT0.5S``; days have 24 hours, and each number may have a sign. Raises ValueError."""
    match = _ISO.fullmatch(text)
    parts = {} if match is None else {unit: match[unit] for unit in _NS if match[unit] is not None}
    if match is None or not parts or any(len(part.lstrip("+-")) > _MAX_DIGITS for part in parts.values()):
        raise ValueError(f"{text!r} is no ISO 8601 duration such as PT1H, PT90S or P7D")
    length = sum(int(part) * _NS[unit] for unit, part in parts.items())
    nanos = int((match["nanos"] or "").ljust(9, "0"))
    length += -nanos if parts.get("S", "").startswith("-") else nanos
    if abs(length) > _MAX_SECONDS * 10**9:
        raise ValueError(f"{text!r} is too long a duration")
    return -length if match["sign"] == "-" else length


def check_reset(policy: str) -> None:
    """Raises ValueError for what is no policy."""
    reset_time(policy, 0)


def reset_time(policy: str, now_ms: int) -> int:
    """The time to ask ListOffsets for: EARLIEST, LATEST (for "none", too), or a Unix time in ms, which is not
    before 1970. Raises ValueError."""
    if policy in _TIMES:
        return _TIMES[policy]
    if not policy.startswith(BY_DURATION):
        allowed = f"{', '.join(map(repr, _TIMES))} or {BY_DURATION + 'PT1H'!r}"
        raise ValueError(f"auto_offset_reset has to be one of {allowed}, not {policy!r}")
    try:
        length_ns = duration_ns(policy.removeprefix(BY_DURATION))
    except ValueError as error:
        raise ValueError(f"auto_offset_reset: {error}") from None
    if length_ns < 0:
        raise ValueError(f"auto_offset_reset has to go back in time, which {policy!r} does not")
    return max(0, (now_ms * 10**6 - length_ns) // 10**6)
