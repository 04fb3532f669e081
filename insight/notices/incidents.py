"""The problems of which people are notified, and when. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ringleader.insight.model import Event, EventKind


class Problem(NamedTuple):
    """Something that is wrong now. Group and title are its name: the same problem has the same ones."""

    group: str
    """"" for the cluster."""
    title: str
    text: str
    """Sentences: what it is, the evidence, what to change."""


Key = tuple[str, str]
"""Group and title."""


@dataclass(slots=True)
class _Open:
    since_ms: int
    seen_ms: int
    notified: bool


class Incidents:
    """A problem becomes an incident when it has been there for `quiet_ms`; people are notified then, and
    not again until it has been away for `again_ms`."""

    def __init__(self, quiet_ms: int, again_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._again_ms = again_ms
        self._open: dict[Key, _Open] = {}

    def restore(self, notified: Iterable[Event]) -> None:
        """Take these events of `look` as notified already, those of an earlier watcher included."""
        for one in notified:
            title, _, since_ms = one.id.removeprefix(_prefix(one.group)).rpartition("-")
            if one.kind is EventKind.INCIDENT and title and since_ms.isdecimal():
                self._open[one.group, title] = _Open(int(since_ms), one.at_ms, notified=True)

    def look(self, found: Mapping[Key, Problem], now_ms: int) -> list[Event]:
        """The incidents to notify people of now, of all current problems."""
        for key, one in [*self._open.items()]:
            if key not in found and (not one.notified or now_ms - one.seen_ms >= self._again_ms):
                del self._open[key]
        notified = []
        for key, problem in found.items():
            known = self._open.setdefault(key, _Open(now_ms, now_ms, notified=False))
            known.seen_ms = now_ms
            if not known.notified and now_ms - known.since_ms >= self._quiet_ms:
                known.notified = True
                event_id = f"{_prefix(problem.group)}{problem.title}-{known.since_ms}"
                notified.append(Event(event_id, problem.group, now_ms, EventKind.INCIDENT, problem.text))
        return notified

    def waiting(self) -> set[str]:
        """Groups with a problem of which people have not been notified yet."""
        return {group for (group, _), one in self._open.items() if not one.notified}


def _prefix(group: str) -> str:
    return f"incident-{group}-"
