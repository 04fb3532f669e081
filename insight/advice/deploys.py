"""Deploys of a group, marked by people or recognised by its rebalances, and what each cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ringleader.insight.advice.findings import Saving
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.replay import NothingToReplayError, RanAwayError, Replay
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.rollouts import rollouts
from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.advice.words import count, length, partition_time, rounded_up_ms
from ringleader.insight.history import History
from ringleader.insight.model import Event, EventKind

LONGEST_MS = 24 * 3_600_000
"""How long before the time that is asked for the beginning of a deploy is looked for."""
_MARKS = (EventKind.DEPLOY_BEGAN, EventKind.DEPLOY_ENDED)


class Deploy(NamedTuple):
    """A time in which members were replaced."""

    label: str
    """"" for one that is recognised."""
    marked: bool
    """An operator marked it; else it is recognised by members that were replaced one after another."""
    since_ms: int
    until_ms: int | None
    """None: it goes on."""
    rebalances: int
    unowned_ms: int
    """Summed over partitions, as far as it is known."""
    moved: int
    """Partitions that changed hands."""

    @property
    def text(self) -> str:
        """``6 rebalances, 16.7 partition-seconds without an owner, 72 partitions changed hands``."""
        return (
            f"{count(self.rebalances, 'rebalance')}, {partition_time(self.unowned_ms)} without an owner,"
            f" {count(self.moved, 'partition')} changed hands"
        )


def marks_of(history: History, group: str, since_ms: int, until_ms: int) -> list[Event]:
    """The marks of deploys of the group, and of all groups, in the order of time."""
    since_ms = max(since_ms - LONGEST_MS, 0)
    found = [
        one
        for name in (group, "")
        for one in history.events(name, since_ms=since_ms, until_ms=until_ms)
        if one.kind in _MARKS
    ]
    return sorted(found, key=lambda one: one.at_ms)


def deploys(past: Past, marks: Sequence[Event] = (), thresholds: Thresholds = DEFAULT) -> list[Deploy]:
    """In the order of their beginnings. One that is recognised within one that is marked is the same."""
    found = [
        _costed(past, label, True, since_ms, until_ms)
        for label, since_ms, until_ms in _marked(marks)
        if until_ms is None or until_ms >= past.since_ms
    ]
    for run, _, _ in rollouts(past, thresholds):
        since_ms, until_ms = past.began_ms(run[0]), run[-1].at_ms
        if not any(one.since_ms <= until_ms and since_ms <= (one.until_ms or until_ms) for one in found):
            found.append(_costed(past, "", False, since_ms, until_ms))
    return sorted(found, key=lambda one: one.since_ms)


def with_static_ids(past: Past) -> Saving | None:
    """The time, played again with members that have a group.instance.id; None: they have one, or the record
    cannot be played."""
    if not past.known or all(one.instance_id for one in past.known.values()):
        return None
    sessions = [one.session_timeout_ms or 0 for one in past.known.values()]
    away = [one.away_ms for one in past.goings if one.away_ms is not None]
    session_ms = max(*sessions, rounded_up_ms(max(away, default=0) * 1.5))
    try:
        return Replay(past).saving(
            Policy(
                f"static ids, session timeout {length(session_ms)}",
                static=True,
                session_timeout_ms=session_ms,
            )
        )
    except (NothingToReplayError, RanAwayError):
        return None


def _marked(marks: Iterable[Event]) -> Iterator[tuple[str, int, int | None]]:
    """Label, beginning and end of each. One that begins ends the one before it, of the same group or of
    all."""
    begun: dict[str, Event] = {}
    for one in marks:
        if (before := begun.pop(one.group, None)) is not None:
            yield before.text, before.at_ms, one.at_ms
        if one.kind is EventKind.DEPLOY_BEGAN:
            begun[one.group] = one
    for one in begun.values():
        yield one.text, one.at_ms, None


def _costed(past: Past, label: str, marked: bool, since_ms: int, until_ms: int | None) -> Deploy:
    end_ms = past.until_ms if until_ms is None else until_ms
    within = [one for one in past.counted if since_ms <= one.at_ms and past.began_ms(one) <= end_ms]
    return Deploy(
        label,
        marked,
        since_ms,
        until_ms,
        len(within),
        sum(one.unowned_ms or 0 for one in within),
        sum(len(one.moves) for one in within),
    )
