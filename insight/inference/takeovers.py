"""Static members whose place another process took: a restart, or two processes with one instance id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ringleader.insight.inference.causes import Verdict
from ringleader.insight.inference.changes import Change
from ringleader.insight.inference.commits import Commits, newest_ms, usual_gap_ms
from ringleader.insight.inference.facts import Output
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import count, seconds
from ringleader.insight.model import Cause, Confidence, Departure, Member, Rebalance

_REMEMBERED = 8
_FENCING_MS = 10 * 60_000
"""Takeovers within this belong together."""
_ALIVE_MS = 1_500
"""A member that commits more often than this, and did until its place was taken, was still there."""
_RESTART_MS = 500
"""A process does not start faster than this."""


class Takeover(NamedTuple):
    """A static member's place was taken."""

    instance_id: str
    at_ms: int
    left: str
    """The process before, as CLIENT_ID@HOST,"""
    taken_by: str
    """and the one that has it."""
    alive: bool
    """The one before had committed until then, as usual."""
    rebalance: Rebalance


class Takeovers(Restorable):
    """The takeovers of one group. Corrections of earlier rebalances go to `out`."""

    _taken: Kept[list[Takeover]]

    def __init__(self, commits: Commits, out: list[Output]) -> None:
        self._commits = commits
        self._out = out
        self._taken = []

    def add(self, old: Member, new: Member, rebalance: Rebalance) -> None:
        """One more, before the commits' generation ends."""
        alive = self.was_alive(old, rebalance.at_ms) is True
        self._taken.append(
            Takeover(new.instance_id or "", rebalance.at_ms, _place(old), _place(new), alive, rebalance)
        )
        del self._taken[:-_REMEMBERED]

    def committed(self, rebalance: Rebalance) -> None:
        """The first commit after one of them has come."""
        self._taken = [
            one._replace(rebalance=rebalance) if one.rebalance.id == rebalance.id else one
            for one in self._taken
        ]

    def judge(self, conclusion: Verdict, change: Change) -> Verdict:
        """The cause of a change with static members that came back: `conclusion`, or two processes with one
        instance id.

        Apache Kafka keeps client id and host of the first one, so that these do not show it; commits that
        went on until the place was taken do.
        """
        for old, new in change.taken:
            instance_id = new.instance_id or ""
            earlier = [
                one
                for one in self._taken
                if one.instance_id == instance_id and change.at_ms - one.at_ms <= _FENCING_MS
            ]
            left, taken_by, alive = _place(old), _place(new), self.was_alive(old, change.at_ms)
            if conclusion.confidence is Confidence.LIKELY and alive is not False:
                doubt = "nothing shows that the process before it had ended: another one would look the same"
                conclusion = conclusion._replace(
                    confidence=Confidence.POSSIBLE, evidence=(*conclusion.evidence, doubt)
                )
            if not earlier:
                continue
            times = f"{count(len(earlier) + 1, 'takeover')} in {seconds(change.at_ms - earlier[0].at_ms)}"
            back = left != taken_by and any(taken_by in (one.left, one.taken_by) for one in earlier)
            if back or (alive and earlier[-1].alive):
                how = (
                    f"went from {left} back to {taken_by}"
                    if back
                    else "was taken from one that was committing"
                )
                text = f"instance id {instance_id} {how}: {times}"
                conclusion = Verdict(Cause.INSTANCE_FENCED, Confidence.LIKELY, (text,), (new.member_id,))
                self._were_twice(earlier, text)
            elif len(earlier) >= 2:
                text = (
                    f"instance id {instance_id} was taken over again and again: {times}, by two processes or "
                    "by one that restarts"
                )
                conclusion = Verdict(Cause.INSTANCE_FENCED, Confidence.POSSIBLE, (text,), (new.member_id,))
        return conclusion

    def was_alive(self, member: Member, at_ms: int) -> bool | None:
        """Whether it had committed until then, as usual; None where that is not known."""
        slots = list(self._commits.of(member.assigned))
        gap_ms, last_ms = usual_gap_ms(slots), newest_ms(slots)
        if gap_ms is None or last_ms is None:
            return None
        silent_ms = at_ms - last_ms
        if silent_ms > gap_ms + _RESTART_MS:
            return False
        return True if silent_ms <= gap_ms <= _ALIVE_MS else None

    def _were_twice(self, earlier: Sequence[Takeover], text: str) -> None:
        """Correct rebalances that looked like restarts."""
        for one in earlier:
            if one.rebalance.cause is Cause.STATIC_MEMBER_REPLACED:
                fenced = {
                    member_id: finding._replace(why=Departure.FENCED)
                    for member_id, finding in one.rebalance.left.items()
                    if finding.why is Departure.RESTARTED
                }
                corrected = replace(
                    one.rebalance,
                    cause=Cause.INSTANCE_FENCED,
                    confidence=Confidence.LIKELY,
                    evidence=(*one.rebalance.evidence, f"later {text}"),
                    left={**one.rebalance.left, **fenced},
                )
                self._taken[self._taken.index(one)] = one._replace(rebalance=corrected)
                self._out.append(corrected)


def _place(one: Member) -> str:
    return f"{one.client_id}@{one.host.lstrip('/')}"
