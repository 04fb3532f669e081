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
    came: str
    """and the one that has it."""
    alive: bool
    """The one before had committed until then, as usual."""
    told: Rebalance


class Takeovers(Restorable):
    """The takeovers of one group. Corrections of earlier rebalances go to `out`."""

    _taken: Kept[list[Takeover]]

    def __init__(self, commits: Commits, out: list[Output]) -> None:
        self._commits = commits
        self._out = out
        self._taken = []

    def add(self, old: Member, new: Member, told: Rebalance) -> None:
        """One more, before the commits' generation ends."""
        alive = self.was_alive(old, told.at_ms) is True
        self._taken.append(Takeover(new.instance_id or "", told.at_ms, _place(old), _place(new), alive, told))
        del self._taken[:-_REMEMBERED]

    def committed(self, told: Rebalance) -> None:
        """The first commit after one of them has come."""
        self._taken = [one._replace(told=told) if one.told.id == told.id else one for one in self._taken]

    def judge(self, said: Verdict, change: Change) -> Verdict:
        """The cause of a change with static members that came back: `said`, or two processes with one
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
            left, came, alive = _place(old), _place(new), self.was_alive(old, change.at_ms)
            if said.confidence is Confidence.LIKELY and alive is not False:
                doubt = "nothing shows that the process before it had ended: another one would look the same"
                said = said._replace(confidence=Confidence.POSSIBLE, evidence=(*said.evidence, doubt))
            if not earlier:
                continue
            times = f"{count(len(earlier) + 1, 'takeover')} in {seconds(change.at_ms - earlier[0].at_ms)}"
            back = left != came and any(came in (one.left, one.came) for one in earlier)
            if back or (alive and earlier[-1].alive):
                how = f"went from {left} back to {came}" if back else "was taken from one that was committing"
                text = f"instance id {instance_id} {how}: {times}"
                said = Verdict(Cause.INSTANCE_FENCED, Confidence.LIKELY, (text,), (new.member_id,))
                self._were_twice(earlier, text)
            elif len(earlier) >= 2:
                text = (
                    f"instance id {instance_id} was taken over again and again: {times}, by two processes or "
                    "by one that restarts"
                )
                said = Verdict(Cause.INSTANCE_FENCED, Confidence.POSSIBLE, (text,), (new.member_id,))
        return said

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
            if one.told.cause is Cause.STATIC_MEMBER_REPLACED:
                gone = {
                    member_id: gone._replace(why=Departure.FENCED)
                    for member_id, gone in one.told.left.items()
                    if gone.why is Departure.RESTARTED
                }
                told = replace(
                    one.told,
                    cause=Cause.INSTANCE_FENCED,
                    confidence=Confidence.LIKELY,
                    evidence=(*one.told.evidence, f"later {text}"),
                    left={**one.told.left, **gone},
                )
                self._taken[self._taken.index(one)] = one._replace(told=told)
                self._out.append(told)


def _place(one: Member) -> str:
    return f"{one.client_id}@{one.host.lstrip('/')}"
