"""The parameters of a question: each is checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ringleader.insight.model import EventKind

TEXT_MAX_CHARS = 1000
LATEST_MS = 253_402_300_799_000
"""The last second of the year 9999."""
LABEL_MAX = 200
"""Characters of a deploy's label."""
MARKS = {"begin": EventKind.DEPLOY_BEGAN, "end": EventKind.DEPLOY_ENDED}


class BadRequestError(Exception):
    """The text says what to change."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        """`status`: of the answer."""
        super().__init__(sentence)
        self.status = status


class Params:
    """The parameters of a URL."""

    def __init__(self, given: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        for name, value in given.items():
            if name not in allowed:
                known = ", ".join(allowed) if allowed else "none"
                raise BadRequestError(f"There is no parameter {name[:80]!r} here; there are: {known}.")
            if len(value) > TEXT_MAX_CHARS:
                raise BadRequestError(f"{name} may have {TEXT_MAX_CHARS} characters at most.")
        self._given = given

    def text(self, name: str) -> str:
        """One that has to be there."""
        value = self._given.get(name, "")
        if not value:
            raise BadRequestError(f"Say which {name}: ?{name}=...")
        return value

    def optional(self, name: str) -> str | None:
        """One that may be missing."""
        return self._given.get(name) or None

    def number(self, name: str, default: int | None, low: int, high: int) -> int:
        """A whole number; without a default it has to be there."""
        value = self._given.get(name)
        if not value:
            if default is None:
                raise BadRequestError(f"Say which {name}: ?{name}=...")
            return default
        if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
            raise BadRequestError(f"{name} is a whole number from {low} to {high}, not {value[:40]!r}.")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self._given.get(name, "true" if default else "false")
        if value not in ("true", "false"):
            raise BadRequestError(f"{name} is true or false, not {value[:40]!r}.")
        return value == "true"

    def time_ms(self, name: str) -> int | None:
        """Unix time in ms, or ISO 8601 (UTC where it names no zone)."""
        value = self._given.get(name)
        if not value:
            return None
        if value.isascii() and value.isdigit() and len(value) < 16 and int(value) <= LATEST_MS:
            return int(value)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise BadRequestError(
                f"{name} is Unix time in ms or 2026-01-31T12:00:00Z, not {value[:40]!r}."
            ) from None
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def mark_of(body: Mapping[str, Any]) -> tuple[EventKind, str, str]:
    """Kind, group ("" for all) and label of the mark of a deploy. Raises AskedWronglyError."""
    what, group, label = body.get("what"), body.get("group", ""), body.get("label", "")
    if what not in MARKS:
        raise BadRequestError("what is begin or end.")
    if not isinstance(group, str) or not isinstance(label, str):
        raise BadRequestError("group and label are texts.")
    if len(label) > LABEL_MAX or not label.isprintable():
        raise BadRequestError(f"A label has at most {LABEL_MAX} printable characters.")
    return MARKS[what], group, label
