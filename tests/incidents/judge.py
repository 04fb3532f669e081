"""Compares what was done with what the history says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ringleader.insight.model import Cause, Confidence, Departure, Event, EventKind, Rebalance
from tests.incidents.ledger import Incident

SURE = (Confidence.EXACT, Confidence.CERTAIN, Confidence.LIKELY)
ENOUGH = 0.95
"""The share of the incidents that something shows which have to be reported right."""
AWAY = (EventKind.COORDINATOR_AWAY, EventKind.COORDINATOR_BACK)


class Verdict(StrEnum):
    """The verdict on the report of an incident. From the best to the worst."""

    RIGHT = "right"
    HEDGED = "hedged"
    """Unknown, or another cause, and said to be no more than possible."""
    MISSED = "missed"
    """Nothing is said of it."""
    WRONG = "confidently wrong"


@dataclass(frozen=True, slots=True)
class Judged:
    """An incident, what was said, and the verdict with its reasons."""

    incident: Incident
    concluded: Sequence[Rebalance]
    verdict: Verdict
    why: Sequence[str] = ()

    @property
    def good(self) -> bool:
        """Right, or not known where nothing shows it."""
        if self.verdict is Verdict.WRONG:
            return False
        return self.verdict is Verdict.RIGHT or not self.incident.shown


def judge(
    incidents: Iterable[Incident],
    rebalances: Iterable[Rebalance],
    events: Iterable[Event],
    *,
    exact: bool = False,
) -> list[Judged]:
    """Each incident that came to rest against what ended between its beginning and the next one's. `exact`:
    the coordinator itself reported it, and so says nothing of its own absence."""
    by_group: dict[str, list[Rebalance]] = {}
    for one in sorted(rebalances, key=lambda one: one.at_ms):
        by_group.setdefault(one.group, []).append(one)
    seen = list(events)
    lists: dict[str, list[Incident]] = {}
    for incident in sorted(incidents, key=lambda incident: incident.began_ms):
        lists.setdefault(incident.group, []).append(incident)
    found = []
    for group, done in lists.items():
        concluded = by_group.get(group, [])
        clients = {
            member.member_id: member.client_id for one in concluded for member in (*one.before, *one.members)
        }
        ends_ms = [later.began_ms for later in done[1:]] + [1 << 62]
        for incident, end_ms in zip(done, ends_ms, strict=True):
            if incident.settled:
                window = [one for one in concluded if incident.began_ms <= one.at_ms < end_ms]
                around = [one for one in seen if incident.began_ms <= one.at_ms < end_ms]
                found.append(_Case(incident, window, around, clients, exact).judged())
    return found


@dataclass(slots=True)
class _Case:
    incident: Incident
    concluded: Sequence[Rebalance]
    events: Sequence[Event]
    clients: Mapping[str, str]
    """Member id -> client id."""
    exact: bool
    why: list[str] = field(default_factory=list)
    worst: Verdict = Verdict.RIGHT

    def judged(self) -> Judged:
        verdicts = [self._rebalance(one) for one in self.concluded]
        if not any(verdicts):
            if not self.incident.quiet and self.incident.causes:
                if not self.concluded:
                    self._is(Verdict.MISSED, "no rebalance is known")
                else:
                    self._is(Verdict.HEDGED, f"nobody says {' or '.join(self.incident.causes)}")
            away = any(one.kind in AWAY for one in self.events)
            if Cause.COORDINATOR_CHANGED in self.incident.causes and not (away or self.exact):
                self._is(Verdict.MISSED, "no event says that the coordinator was away")
        self._departures()
        if self.incident.phases:
            self._phases()
        return Judged(self.incident, self.concluded, self.worst, self.why)

    def _is(self, verdict: Verdict, why: str) -> None:
        order = list(Verdict)
        self.worst = max(self.worst, verdict, key=order.index)
        self.why.append(why)

    def _rebalance(self, one: Rebalance) -> bool:
        """Whether it tells the incident."""
        name = f"generation {one.generation}"
        if one.cause in self.incident.causes:
            named = {self.clients.get(member, member) for member in one.cause_members}
            if not self.incident.client_ids or named & set(self.incident.client_ids):
                return True
            if one.cause in self.incident.also:
                return False
            if named and one.confidence in SURE:
                self._is(Verdict.WRONG, f"{name}: {one.cause}, but of {', '.join(sorted(named))}")
            else:
                self._is(Verdict.HEDGED, f"{name}: {one.cause}, but not of whom")
        elif one.cause in self.incident.also or one.cause is Cause.UNKNOWN:
            return False
        elif one.confidence in SURE:
            self._is(Verdict.WRONG, f"{name}: {one.cause}, {one.confidence}")
        return False

    def _departures(self) -> None:
        departed = {
            self.clients.get(member, member): how
            for one in self.concluded
            for member, how in one.left.items()
        }
        for client, right in self.incident.departures.items():
            how = departed.pop(client, None)
            if how is None:
                self._is(Verdict.MISSED, f"{client} is not said to be gone")
            elif how.why not in right:
                sure = how.confidence in SURE and how.why is not Departure.UNKNOWN
                self._is(
                    Verdict.WRONG if sure else Verdict.HEDGED,
                    f"{client} is said to be gone: {how.why}, {how.confidence}",
                )
        if not self.incident.departures:
            return
        for client, how in departed.items():
            if how.confidence in SURE and client not in self.incident.client_ids:
                self._is(Verdict.WRONG, f"{client} is said to be gone: {how.why}, {how.confidence}")

    def _phases(self) -> None:
        for phase, least_ms in self.incident.phases.items():
            longest = max(
                (getattr(one, phase) for one in self.concluded if getattr(one, phase)), default=None
            )
            if longest is None:
                self._is(Verdict.HEDGED, f"{phase} is not known")
            elif longest < least_ms:
                self._is(Verdict.HEDGED, f"{phase} was {longest}, not {least_ms} or more")
        if self.incident.slowest:
            waited = {
                self.clients.get(one.join_last_member, "") for one in self.concluded if one.join_last_member
            }
            if waited and self.incident.slowest not in waited:
                self._is(Verdict.HEDGED, f"the join phase is said to have waited for {', '.join(waited)}")


CALIBRATED = {Confidence.EXACT: 1.0, Confidence.CERTAIN: 1.0, Confidence.LIKELY: 0.9}
"""The share of what is said with a confidence that has to be right."""


def calibration(found: Iterable[Judged]) -> dict[Confidence, tuple[int, int]]:
    """By confidence, how many causes of rebalances and reasons of departures were said with it, and how many
    of them are right."""
    counts: dict[Confidence, tuple[int, int]] = {}

    def count(confidence: Confidence, is_right: bool) -> None:
        total, right = counts.get(confidence, (0, 0))
        counts[confidence] = total + 1, right + is_right

    for one in found:
        clients = {
            member.member_id: member.client_id
            for rebalance in one.concluded
            for member in (*rebalance.before, *rebalance.members)
        }
        for rebalance in one.concluded:
            if rebalance.cause is not Cause.UNKNOWN:
                count(rebalance.confidence, rebalance.cause in (*one.incident.causes, *one.incident.also))
            for member_id, how in rebalance.left.items():
                right = one.incident.departures.get(clients.get(member_id, ""))
                if right is not None and how.why is not Departure.UNKNOWN:
                    count(how.confidence, how.why in right)
    return counts


def calibrated(found: Iterable[Judged]) -> bool:
    """Whether each confidence is right as often as it has to be."""
    counts = calibration(found)
    return all(
        right >= CALIBRATED.get(confidence, 0.0) * total for confidence, (total, right) in counts.items()
    )


@dataclass(frozen=True, slots=True)
class Score:
    """Of some incidents."""

    judged: Sequence[Judged]

    def count(self, verdict: Verdict, *, shown: bool | None = None) -> int:
        """How many have that verdict, of all, or of those that something shows, or nothing."""
        return sum(one.verdict is verdict and shown in (None, one.incident.shown) for one in self.judged)

    @property
    def knowable(self) -> int:
        """Incidents that something shows."""
        return sum(one.incident.shown for one in self.judged)

    @property
    def right(self) -> float:
        """The share of these that was reported right."""
        return self.count(Verdict.RIGHT, shown=True) / self.knowable if self.knowable else 1.0

    def good(self, enough: float = ENOUGH) -> bool:
        """Whether it is as it has to be."""
        return bool(self.judged) and self.right >= enough and not self.count(Verdict.WRONG)
