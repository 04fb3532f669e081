"""Corrections of rebalances already reported, by what is seen soon after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ringleader.insight.inference.causes import BY_DEPARTURE
from ringleader.insight.inference.changes import Change, back_at_once, subscription_changes
from ringleader.insight.inference.facts import Output
from ringleader.insight.inference.heard import Went
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import seconds
from ringleader.insight.inference.world import change_text
from ringleader.insight.model import Cause, Confidence, Departure, DepartureFinding, Rebalance

_REMEMBERED = 5

LATER_MS = 30_000
"""Metadata shows a change of a topic that much later at most."""


class Hindsight(Restorable):
    """The last rebalances of one group. Corrections go to `out`."""

    _told: Kept[list[Rebalance]]

    def __init__(self, out: list[Output]) -> None:
        self._out = out
        self._told = []

    def add(self, rebalance: Rebalance) -> None:
        """Remember a rebalance that was reported, or its corrected form."""
        self._told = [one for one in self._told if one.id != rebalance.id]
        self._told.append(rebalance)
        del self._told[:-_REMEMBERED]

    def topics_changed(self, at_ms: int, changes: Mapping[str, tuple[int, int]]) -> dict[str, Rebalance]:
        """Topics were seen to change: by id, the rebalances that they explain, corrected."""
        found = {}
        for one in self._told:
            if 0 <= at_ms - one.at_ms <= LATER_MS and (names := _explained(one, changes)):
                some = {name: changes[name] for name in sorted(names)}
                text = f"{seconds(at_ms - one.at_ms)} later it was seen that {change_text(some)}"
                found[one.id] = replace(
                    one,
                    cause=Cause.TOPICS_CHANGED,
                    confidence=Confidence.LIKELY,
                    evidence=(*one.evidence, text),
                )
        return self._correct(found)

    def members_joined(self, change: Change) -> dict[str, Rebalance]:
        """Members came: by id, the rebalances that are corrected, as all had gone only just before."""
        found = {}
        for one in self._told:
            if back_at_once(change) and one.cause is Cause.MEMBER_LEFT and not one.members:
                text = f"all were back after {seconds(change.at_ms - one.at_ms)}: no process had ended"
                finding = DepartureFinding(Departure.REMOVED, Confidence.POSSIBLE, None, (text,))
                found[one.id] = replace(
                    one,
                    cause=Cause.MEMBER_REMOVED,
                    confidence=Confidence.POSSIBLE,
                    evidence=(*one.evidence, text),
                    left=dict.fromkeys(one.left, finding),
                )
        return self._correct(found)

    def reported_later(self, found: Iterable[tuple[Went, DepartureFinding]]) -> dict[str, Rebalance]:
        """Clients reported how members left: the rebalances in which these left, by id, corrected."""
        by_id = {one.id: one for one in self._told}
        now: dict[str, Rebalance] = {}
        for went, finding in found:
            one = now.get(went.rebalance_id) or by_id.get(went.rebalance_id)
            if one is not None:
                now[one.id] = with_departure(one, went, finding)
        return self._correct(now)

    def _correct(self, found: dict[str, Rebalance]) -> dict[str, Rebalance]:
        self._told = [found.get(one.id, one) for one in self._told]
        self._out += found.values()
        return found


def with_departure(rebalance: Rebalance, went: Went, finding: DepartureFinding) -> Rebalance:
    """The same rebalance, with another reason for the departure of one member."""
    member_id = went.member.member_id
    exact = rebalance.confidence is Confidence.EXACT
    by_it = rebalance.cause_members == (member_id,) and rebalance.cause in BY_DEPARTURE.values()
    outage = rebalance.cause is Cause.COORDINATOR_CHANGED  # it was thought to have put the member out
    alone = rebalance.left.keys() == {member_id} and not rebalance.joined
    unknown = (rebalance.cause is Cause.UNKNOWN or outage) and alone
    now = replace(
        rebalance,
        left={**rebalance.left, member_id: finding},
        evidence=(*rebalance.evidence, f"{went.member.name}: {finding.evidence[-1]}"),
    )
    cause = BY_DEPARTURE.get(finding.why, Cause.UNKNOWN)
    if (
        not (by_it or unknown)
        or (exact and cause is rebalance.cause)
        or finding.why is Departure.NOT_REJOINED
    ):
        return now  # that it was waited for does not show what began it
    sure = finding.confidence
    if sure is Confidence.CERTAIN and not (exact or went.alone):
        sure = Confidence.LIKELY
    return replace(now, cause=cause, confidence=sure, cause_members=(member_id,))


def _explained(rebalance: Rebalance, changes: Mapping[str, tuple[int, int]]) -> set[str]:
    """The topics whose changes explain a rebalance; none: they do not."""
    before = {one.member_id: one for one in rebalance.before}
    pairs = [(before[one.member_id], one) for one in rebalance.members if one.member_id in before]
    if rebalance.cause is Cause.MEMBER_CHANGED:
        gained, lost = subscription_changes(pairs)
        known = {one for one in gained if _created(changes.get(one))}
        known |= {one for one in lost if _deleted(changes.get(one))}
        return known if known == gained | lost else set()
    if rebalance.cause is Cause.LEADER_REJOINED:
        had = {topic for one in rebalance.before for topic, _ in one.assigned}
        has = {topic for one in rebalance.members for topic, _ in one.assigned}
        deleted = {one for one in had - has if _deleted(changes.get(one))}
        return deleted | {one for one in _grown(rebalance) if one in changes and not _deleted(changes[one])}
    return set()


def _grown(rebalance: Rebalance) -> Iterator[str]:
    had = {partition for one in rebalance.before for partition in one.assigned}
    for one in rebalance.members:
        yield from (topic for topic, number in one.assigned if (topic, number) not in had)


def _created(change: tuple[int, int] | None) -> bool:
    return change is not None and not change[0]


def _deleted(change: tuple[int, int] | None) -> bool:
    return change is not None and not change[1]
