"""How all groups are now, and what the last day cost them: kept in memory, and moved on by what changes."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ringleader.insight.model import Cause, Confidence, Event, GroupState, Lag, Rebalance
from ringleader.insight.plain import Json
from ringleader.insight.web.lags import Lags

HOUR_MS = 3_600_000
HOURS = 24
"""How far back a row of the page's first table looks."""
RESTING = ("Stable", "Empty")
"""States in which a group does not rebalance."""
REBALANCES_MAX = 100_000
"""Of all groups in that time. The oldest are forgotten first."""


@dataclass(slots=True)
class _Seen:
    """One rebalance, as the board keeps it."""

    id: str
    at_ms: int
    cause: Cause
    confidence: Confidence
    unowned_ms: int


@dataclass(slots=True)
class Totals:
    """The sums of one group since the process began: for counters, which never go back."""

    rebalances: Counter[Cause] = field(default_factory=Counter)
    unowned_ms: int = 0


class Board:
    """One row for each group. No clock: the time is an argument."""

    def __init__(self) -> None:
        self._states: dict[str, GroupState] = {}
        self._recent: OrderedDict[str, tuple[str, _Seen]] = OrderedDict()
        """Rebalance id -> group and what is kept; the newest last."""
        self._by_group: dict[str, deque[_Seen]] = {}
        self._totals: dict[str, Totals] = {}
        self.lags = Lags()

    def begin(self, states: Iterable[GroupState], rebalances: Iterable[Rebalance]) -> None:
        """Take over the entries that the history has already, in the order of time."""
        for state in states:
            self._states[state.group] = state
        for rebalance in rebalances:
            self._keep(rebalance)

    def tell(self, change: Rebalance | Event | GroupState) -> None:
        """Take over a change. A rebalance that was there before takes its own place."""
        if isinstance(change, GroupState):
            self._states[change.group] = change
            if change.state == "Dead":
                self.lags.forget(change.group)
        elif isinstance(change, Rebalance):
            new = change.id not in self._recent
            self._keep(change)
            if new:
                totals = self._totals.setdefault(change.group, Totals())
                totals.rebalances[change.cause] += 1
                totals.unowned_ms += change.unowned_ms or 0

    def measure(self, group: str, rows: Iterable[Lag]) -> None:
        """Lags of one group, newer than those it was given before."""
        self.lags.add(group, rows)

    def groups(self) -> list[GroupState]:
        """Those that are not gone, by name."""
        return [state for _, state in sorted(self._states.items()) if state.state != "Dead"]

    def totals(self, group: str) -> Totals:
        """Since the process began."""
        return self._totals.get(group) or Totals()

    def sums(self, now_ms: int) -> Json:
        """Of all groups that are not gone."""
        groups = self.groups()
        lags = [lag for one in groups if (lag := self.lags.of(one.group, now_ms)) is not None]
        since_ms = now_ms - HOURS * HOUR_MS
        return {
            "groups": len(groups),
            "moving": sum(one.state not in RESTING for one in groups),
            "members": sum(len(one.members) for one in groups),
            "lag": sum(one.records for one in lags) if lags else None,
            "lag_ms": max((one.behind_ms for one in lags), default=None),
            "rebalances": sum(1 for one in groups for _ in self._since(one.group, since_ms)),
        }

    def rows(self, now_ms: int, *, gone: bool = False) -> list[Json]:
        """A row for each group, by name; with `gone` for those that are no longer there, too."""
        return [
            self._row(state, now_ms)
            for _, state in sorted(self._states.items())
            if gone or state.state != "Dead"
        ]

    def row(self, group: str, now_ms: int) -> Json | None:
        """That of one group; None: never seen."""
        state = self._states.get(group)
        return None if state is None else self._row(state, now_ms)

    # ---- inside ----

    def _keep(self, rebalance: Rebalance) -> None:
        seen = _Seen(
            rebalance.id, rebalance.at_ms, rebalance.cause, rebalance.confidence, rebalance.unowned_ms or 0
        )
        kept = self._recent.get(rebalance.id)
        if kept is not None:  # a later record changed what is concluded
            old = kept[1]
            old.at_ms, old.cause, old.confidence, old.unowned_ms = (
                seen.at_ms, seen.cause, seen.confidence, seen.unowned_ms,
            )  # fmt: skip
            return
        self._recent[rebalance.id] = (rebalance.group, seen)
        self._by_group.setdefault(rebalance.group, deque()).append(seen)
        while len(self._recent) > REBALANCES_MAX:
            _, (group, oldest) = self._recent.popitem(last=False)
            self._by_group[group].remove(oldest)

    def _since(self, group: str, since_ms: int) -> Iterator[_Seen]:
        return (seen for seen in self._by_group.get(group, ()) if seen.at_ms >= since_ms)

    def _row(self, state: GroupState, now_ms: int) -> Json:
        hours = [0] * HOURS
        causes: Counter[str] = Counter()
        unowned_ms = 0
        for seen in self._since(state.group, now_ms - HOURS * HOUR_MS + 1):
            ago = max(now_ms - seen.at_ms, 0) // HOUR_MS
            hours[HOURS - 1 - ago] += 1
            causes[seen.cause] += 1
            unowned_ms += seen.unowned_ms
        last = max(self._by_group.get(state.group, ()), key=lambda seen: seen.at_ms, default=None)
        lag = self.lags.of(state.group, now_ms)
        leader = next((member.name for member in state.members if member.member_id == state.leader), "")
        return {
            "group": state.group,
            "kind": state.kind,
            "state": state.state,
            "protocol": state.protocol,
            "generation": state.generation,
            "leader": leader,
            "members": len(state.members),
            "idle": sum(not member.assigned for member in state.members),
            "since_ms": state.since_ms,
            "lag": None if lag is None else lag.records,
            "lag_ms": None if lag is None else lag.behind_ms,
            "lag_at_least": lag is not None and lag.at_least,
            "hours": hours,
            "causes": dict(causes.most_common()),
            "unowned_ms": unowned_ms,
            "last": last
            and {
                "id": last.id,
                "at_ms": last.at_ms,
                "cause": last.cause,
                "confidence": last.confidence,
            },
        }


def pages(
    read: Callable[..., list[Rebalance]], since_ms: int, until_ms: int, page: int = 1000
) -> Iterator[Rebalance]:
    """All rebalances of a time in its order, read page by page; the newest `REBALANCES_MAX`."""

    def backwards() -> Iterator[Rebalance]:
        seen: set[str] = set()
        last_ms = until_ms
        while True:
            found = read(since_ms=since_ms, until_ms=last_ms, limit=page, newest_first=True)
            new = [one for one in found if one.id not in seen]
            yield from new
            seen.update(one.id for one in new)
            if len(found) < page or not new:
                return
            last_ms = found[-1].at_ms

    return reversed(list(islice(backwards(), REBALANCES_MAX)))
