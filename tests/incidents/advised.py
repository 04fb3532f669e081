"""Compares what was done with what advice finds in the history of each group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ringleader.insight.advice import Past, Pattern, advise
from ringleader.insight.history import History
from tests.incidents.ledger import Incident

EXPECTED = {
    "slow leader": Pattern.SLOW_LEADER,
    "rolling deploy": Pattern.ROLLING_DEPLOY,
    "instance id twice": Pattern.SAME_INSTANCE_TWICE,
}
"""Kind of incident -> what has to be found where it was done. Patterns that take longer, or more clients,
than a run has are not here."""
PUT_OUT = {"SIGSTOP", "SIGKILL", "slow poll loop", "static gone"}
NEEDS = {
    Pattern.ROLLING_DEPLOY: {"rolling deploy", "SIGCONT", "back"},
    Pattern.SLOW_POLL_LOOP: {"slow poll loop"},
    Pattern.FLAPPING_MEMBER: PUT_OUT,
    Pattern.ZOMBIES: PUT_OUT,
    Pattern.SLOW_LEADER: {"slow leader"},
    Pattern.SAME_INSTANCE_TWICE: {"instance id twice"},
}
"""Finding -> the incidents that make it true; without one of them in the group it is wrong."""


@dataclass(slots=True)
class Advised:
    """Of one pattern: the groups."""

    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """It was found, and nothing was done that makes it so."""


def advised(history: History, incidents: Iterable[Incident]) -> dict[Pattern, Advised]:
    """By pattern. Groups that did not come to rest are left out."""
    by_group: dict[str, list[Incident]] = defaultdict(list)
    for one in incidents:
        by_group[one.group].append(one)
    result: dict[Pattern, Advised] = defaultdict(Advised)
    for group, done in by_group.items():
        if not all(one.settled for one in done):
            continue
        kinds = {one.kind for one in done}
        for kind in kinds & EXPECTED.keys():
            # As an operator asks for the time of a deploy: minutes of everything at once are nobody's day.
            found = _found(history, [one for one in done if one.kind == kind])
            pattern = EXPECTED[kind]
            (result[pattern].found if pattern in found else result[pattern].missed).append(group)
        for pattern in _found(history, done) & NEEDS.keys():
            if not kinds & NEEDS[pattern]:
                result[pattern].wrong.append(group)
    return result


def _found(history: History, done: Sequence[Incident]) -> set[Pattern]:
    since_ms, until_ms = min(one.began_ms for one in done), max(one.ended_ms for one in done)
    past = Past.read(history, done[0].group, since_ms, until_ms)
    return {finding.pattern for finding in advise(past, replay=False).findings}
