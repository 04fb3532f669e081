"""The recorded history of a group, played again by our own group machine and assignors: as it was, to see how
near that comes, and under another policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ringleader.insight.advice.findings import Saving
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.replay.policy import AS_IT_WAS, Policy
from ringleader.insight.advice.replay.script import NothingToReplayError, script_of
from ringleader.insight.advice.replay.world import RanAwayError, Replayed, World
from ringleader.insight.model import Confidence, Rebalance

__all__ = ["NothingToReplayError", "Policy", "RanAwayError", "Replay"]

MATCH_MS = 15_000
"""A replayed rebalance that ends so near to a recorded one, with as many members, is the same."""
LIKELY_SHARE, POSSIBLE_SHARE = 0.9, 0.7
"""The share of the recorded rebalances that has to come out again, without more invented than the rest, for a
figure to be likely, and possible."""


class Replay:
    """A history that can be played again. Raises NothingToReplayError, whose sentence says why not, and
    RanAwayError when the record, as it was, leads to rebalances without end."""

    def __init__(self, past: Past) -> None:
        self.script = script_of(past)
        self.as_it_was = World(self.script, AS_IT_WAS).play()
        self.reproduced = _matched(self.script.rebalances, self.as_it_was.rebalances)

    @property
    def confidence(self) -> Confidence:
        """How far it can be believed."""
        recorded, replayed = len(self.script.rebalances), len(self.as_it_was.rebalances)
        share = min(self.reproduced / recorded, self.reproduced / max(replayed, 1))
        if share >= LIKELY_SHARE:
            return Confidence.LIKELY
        return Confidence.POSSIBLE if share >= POSSIBLE_SHARE else Confidence.UNKNOWN

    def saving(self, policy: Policy, *assumptions: str) -> Saving:
        """The history under the policy, against the record."""
        return self._saving(policy.words, [policy], assumptions)

    def apart(self, applications: Iterable[frozenset[str]]) -> Saving:
        """The same with each application (its topics) as a group of its own. Its rebalances
        are those of the one that would have had the most."""
        policies = [Policy("", topics=topics) for topics in applications]
        return self._saving("a group id for each application", policies, ())

    def _saving(self, words: str, policies: Sequence[Policy], assumptions: tuple[str, ...]) -> Saving:
        confidence = self.confidence
        try:
            played = [World(self.script, policy).play() for policy in policies]
        except RanAwayError:
            played, confidence = [self.as_it_was], Confidence.UNKNOWN
        return Saving(
            words,
            len(self.script.rebalances),
            self.reproduced,
            len(self.as_it_was.rebalances) - self.reproduced,
            len(self.as_it_was.rebalances),
            max(one.count for one in played),
            self.as_it_was.unowned_ms,
            sum(one.unowned_ms for one in played),
            confidence,
            self.script.since_ms,
            assumptions,
        )


def _matched(recorded: list[Rebalance], replayed: list[Replayed]) -> int:
    """How many of the recorded ones came out again."""
    left, count = list(replayed), 0
    for one in recorded:
        fits = [
            other
            for other in left
            if abs(other.at_ms - one.at_ms) <= MATCH_MS and len(other.entry.members_after) == len(one.members)
        ]
        if fits:
            left.remove(min(fits, key=lambda other: abs(other.at_ms - one.at_ms)))
            count += 1
    return count
