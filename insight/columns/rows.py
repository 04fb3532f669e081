"""A history as rows of the tables, one after the other.

For `rebalances`, `moves`, `members` and `events` one entry of the history is in memory at a time; for `costs`
a hundred rebalances. For `findings` it is what `advise` looks at of one group on one day: of its rebalances
how many partitions moved and members had, not which, and the lag of one partition at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from ringleader.insight.advice import Past, advise
from ringleader.insight.advice.cost import PodCost, cost_of, dearest_first
from ringleader.insight.advice.past import PARTS_MAX
from ringleader.insight.history.queries import Queries
from ringleader.insight.model import DepartureFinding, Rebalance

DAY_MS = 24 * 3_600_000
SLICE = 100
"""Rebalances of which costs are worked out at once."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a history that is wanted."""

    groups: tuple[str, ...]
    since_ms: int | None = None
    until_ms: int | None = None
    """Not included."""

    @property
    def last_ms(self) -> int | None:
        """The last moment that is included."""
        return None if self.until_ms is None else self.until_ms - 1


def groups_in(history: Queries) -> tuple[str, ...]:
    """All that were ever seen, by name."""
    return tuple(one.group for one in history.groups())


def rows(table: str, history: Queries, selection: Selection, *, cluster: bool = True) -> Iterator[Row]:
    """Of one table, group by group, each in the order of time. A rebalance and an event are those that ended
    in that time, a member one whose life touches it. `cluster`: with events of the whole cluster. Raises
    HistoryError."""
    cluster_id = history.cluster_id
    # Events of the whole cluster are kept under no group.
    groups = ("", *selection.groups) if table == "events" and cluster else selection.groups
    days = tuple(_days(history, selection)) if table in _DAILY else ()
    for group in groups:
        found: Iterable[Row]
        if table in _DAILY:
            found = (row for day in days for row in _DAILY[table](history, group, *day))
        else:
            found = _EACH[table](history, group, selection)
        for row in found:
            yield {"cluster_id": cluster_id, "group": group, **row}


def _rebalances(history: Queries, group: str, selection: Selection) -> Iterator[Row]:
    for one in history.each_rebalance(group, selection.since_ms, selection.last_ms):
        names = {member.member_id: member.name for member in (*one.before, *one.members)}
        yield {
            "id": one.id,
            "at": one.at_ms,
            "kind": one.kind,
            "generation": one.generation,
            "cause": one.cause,
            "confidence": one.confidence,
            "evidence": one.evidence,
            "cause_members": one.cause_members,
            "cause_names": [names.get(member_id, member_id) for member_id in one.cause_members],
            "reason": one.reason,
            "outcome": one.outcome,
            "protocol_type": one.protocol_type,
            "protocol": one.protocol,
            "leader": one.leader,
            "members": [member.member_id for member in one.members],
            "before": [member.member_id for member in one.before],
            "joined": one.joined,
            "left": [
                {"member_id": member_id, **_departure(departure)} for member_id, departure in one.left.items()
            ],
            "began": one.began_ms,
            "duration_ms": one.duration_ms,
            "join_ms": one.join_ms,
            "join_last_member": one.join_last_member,
            "leader_ms": one.leader_ms,
            "sync_ms": one.sync_ms,
            "moved": len(one.moves),
            "unowned_ms": one.unowned_ms,
            "first_commit": one.first_commit_ms,
            "last_commit": one.last_commit_ms,
        }


def _departure(departure: DepartureFinding) -> Row:
    return {
        "why": departure.why,
        "confidence": departure.confidence,
        "silent_ms": departure.silent_ms,
        "evidence": departure.evidence,
    }


def _moves(history: Queries, group: str, selection: Selection) -> Iterator[Row]:
    for one in history.each_rebalance(group, selection.since_ms, selection.last_ms):
        for move in one.moves:
            yield {"rebalance_id": one.id, "at": one.at_ms, **move._asdict()}


def _members(history: Queries, group: str, selection: Selection) -> Iterator[Row]:
    for one in history.each_member(group, selection.since_ms, selection.last_ms):
        member, departure = one.member, one.gone
        yield {
            "member_id": member.member_id,
            "name": member.name,
            "client_id": member.client_id,
            "host": member.host.lstrip("/"),
            "instance_id": member.instance_id,
            "topics": member.topics,
            "session_timeout_ms": member.session_timeout_ms,
            "rebalance_timeout_ms": member.rebalance_timeout_ms,
            "since": one.since_ms,
            "until": one.until_ms,
            "gone": departure and departure.why,
            "confidence": departure and departure.confidence,
            "silent_ms": departure and departure.silent_ms,
            "evidence": departure and departure.evidence,
            "rebalance_id": one.rebalance_id,
        }


def _events(history: Queries, group: str, selection: Selection) -> Iterator[Row]:
    for one in history.each_event(group, selection.since_ms, selection.last_ms):
        yield {"id": one.id, "at": one.at_ms, "kind": one.kind, "text": one.text}


_EACH: dict[str, Callable[[Queries, str, Selection], Iterator[Row]]] = {
    "rebalances": _rebalances,
    "moves": _moves,
    "members": _members,
    "events": _events,
}


# ---- by day ----


def _days(history: Queries, selection: Selection) -> Iterator[tuple[int, int]]:
    """The days that the history covers, as far as they are asked for: the first and the last moment."""
    oldest_ms, newest_ms = history.oldest_ms, history.newest_ms
    if oldest_ms is None or newest_ms is None:
        return
    since_ms = max(selection.since_ms or 0, oldest_ms)
    last_ms = newest_ms if selection.last_ms is None else min(selection.last_ms, newest_ms)
    while since_ms <= last_ms:
        next_ms = (since_ms // DAY_MS + 1) * DAY_MS
        yield since_ms, min(next_ms - 1, last_ms)
        since_ms = next_ms


def _day(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms // 1000, UTC).date()


def _costs(history: Queries, group: str, since_ms: int, until_ms: int) -> Iterator[Row]:
    # Without commits and lag, which are many: nothing here is worked out from them.
    spans = history.members(group, since_ms=since_ms, until_ms=until_ms)
    pods: dict[tuple[str, str], PodCost] = {}
    for some in _slices(history.each_rebalance(group, since_ms, until_ms)):
        for one in cost_of(Past(group, since_ms, until_ms, some, spans)).pods:
            where = (one.instance_id, "") if one.instance_id else (one.client_id, one.host)
            if where in pods:
                pods[where].add(one)
            else:
                pods[where] = one
    for one in dearest_first(pods.values()):
        yield {
            "day": _day(since_ms),
            "since": since_ms,
            "until": until_ms,
            "pod": one.name,
            "client_id": one.client_id,
            "host": one.host,
            "instance_id": one.instance_id,
            "caused": one.caused,
            "came": one.joined,
            "went": one.gone.total(),
            "unowned_ms": one.unowned_ms,
            "held_up_ms": one.held_up_ms,
        }


def _slices(rebalances: Iterable[Rebalance]) -> Iterator[list[Rebalance]]:
    """Some at a time; those of one generation stay together, as they count once."""
    found: list[Rebalance] = []
    for one in rebalances:
        if len(found) >= SLICE and one.generation != found[-1].generation:
            yield found
            found = []
        found.append(one)
    if found:
        yield found


def _findings(history: Queries, group: str, since_ms: int, until_ms: int) -> Iterator[Row]:
    past = Past.read(history, group, since_ms, until_ms, counted=True, parts_max=PARTS_MAX)
    for one in advise(past, replay=False).findings:
        yield {
            "day": _day(since_ms),
            "since": one.since_ms,
            "until": one.until_ms,
            "pattern": one.pattern,
            "text": one.text,
            "confidence": one.confidence,
            "evidence": one.evidence,
            "members": one.members,
            "rebalance_ids": one.rebalance_ids,
            "changes": [
                {"setting": change.setting, "value": change.value, "now": change.now, "why": change.why}
                for change in one.changes
            ],
        }


_DAILY: dict[str, Callable[[Queries, str, int, int], Iterator[Row]]] = {
    "costs": _costs,
    "findings": _findings,
}
