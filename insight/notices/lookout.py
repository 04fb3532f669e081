"""The problems that a history shows: findings, groups that lost all members, a cluster that is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag

from ringleader.insight.advice import Finding, Past, Thresholds, advise
from ringleader.insight.advice.past import PARTS_MAX
from ringleader.insight.advice.words import clock
from ringleader.insight.history import History
from ringleader.insight.history.history import DEAD
from ringleader.insight.model import Confidence, Event, EventKind, Kind
from ringleader.insight.notices.incidents import Key, Problem

NOTIFIED = (Confidence.EXACT, Confidence.CERTAIN, Confidence.LIKELY)
EVIDENCE_MAX = 5
"""Sentences of it in a notice."""
RARELY = 10
"""Groups in which nothing happens are looked at less often by this factor: only their lag can change."""


class Lookout:
    """Looks at the history in a file, on one thread at a time."""

    def __init__(self, path: Path, thresholds: Thresholds, window_ms: int, interval_ms: int) -> None:
        self._path = path
        self._thresholds = thresholds
        self._window_ms = window_ms
        self._rarely_ms = interval_ms * RARELY
        self._history: History | None = None
        self._cursor: int | None = None
        self._looked: dict[str, int] = {}
        self._found: dict[str, list[Problem]] = {}
        self._ended = Flag()

    def incidents(self, since_ms: int) -> list[Event]:
        """The incidents in the history since then. Raises HistoryError."""
        events = self._opened().events(since_ms=since_ms)
        return [one for one in events if one.kind is EventKind.INCIDENT]

    def look(self, now_ms: int, again: set[str]) -> dict[Key, Problem]:
        """All problems now. `again`: groups to look at, whatever happened there. Raises HistoryError."""
        history = self._opened()
        moved = self._moved(history) | again
        living = {one.group for one in history.groups() if one.state != DEAD and one.kind is not Kind.SHARE}
        for left in self._looked.keys() - living:
            del self._looked[left]
            self._found.pop(left, None)
        for group in sorted(living):
            if self._ended.is_set():
                break
            if group in moved or now_ms - self._looked.get(group, 0) >= self._rarely_ms:
                window = (now_ms - self._window_ms, now_ms)
                past = Past.read(history, group, *window, counted=True, parts_max=PARTS_MAX)
                self._found[group] = [*problems(past, self._thresholds)]
                self._looked[group] = now_ms
        found = [one for some in self._found.values() for one in some]
        if (away := history.away) is not None:
            found.append(
                Problem(
                    "",
                    "cluster away",
                    f"The cluster {history.address} does not answer since {clock(away.since_ms)}:"
                    f" {away.why.rstrip('.')}.",
                )
            )
        return {(one.group, one.title): one for one in found}

    def end(self) -> None:
        """End a look that goes on, on any thread."""
        self._ended.set()

    def close(self) -> None:
        """Close the file."""
        if self._history is not None:
            self._history.close()

    def _opened(self) -> History:
        if self._history is None:
            self._history = History.open(self._path, read_only=True)
        return self._history

    def _moved(self, history: History) -> set[str]:
        """Groups of which something was recorded since the last look."""
        if self._cursor is None:
            self._cursor = history.cursor
        groups: set[str] = set()
        while True:
            self._cursor, changes = history.changes(self._cursor)
            groups |= {one.group for one in changes}
            if not changes:
                return groups


def problems(past: Past, thresholds: Thresholds) -> Iterator[Problem]:
    """Of one group."""
    for finding in advise(past, thresholds, replay=False).findings:
        if finding.confidence in NOTIFIED:
            yield Problem(past.group, finding.pattern.value, _text(finding))
    if (left := _unread(past)) is not None:
        since_ms, records = left
        yield Problem(
            past.group,
            "group without members",
            f"The group has no members since {clock(since_ms)}, and is {records:,} records behind.",
        )


def _text(finding: Finding) -> str:
    doubt = ", likely" if finding.confidence is Confidence.LIKELY else ""
    sentences = [
        f"{finding.pattern.value.capitalize()}{doubt}: {finding.text}",
        *finding.evidence[:EVIDENCE_MAX],
    ]
    for change in finding.changes[:1]:
        now = f" (now {change.now})" if change.now else ""
        sentences.append(f"Change {change.setting}: {change.value}{now}.")
    return " ".join(sentences)


def _unread(past: Past) -> tuple[int, int] | None:
    """The time since which a group that had members has none, and its lag in records."""
    if not past.rebalances or past.rebalances[-1].members or not past.rebalances[-1].before:
        return None
    behind = past.records_behind
    return (past.rebalances[-1].at_ms, behind) if behind else None
