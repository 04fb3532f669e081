"""The cost of a time to a group: rebalances, partitions without an owner, records read again; and by pod."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from ringleader.insight.advice.past import Going, Past, place
from ringleader.insight.model import Commit, Departure, Member, TopicPartition

_CANNOT_COMMIT = (
    Departure.SESSION_EXPIRED,
    Departure.POLL_INTERVAL_EXCEEDED,
    Departure.NOT_REJOINED,
    Departure.NOT_SYNCED,
    Departure.NOT_REVOKED,
    Departure.FENCED,
)
"""A member that goes so could not commit the records that it had read last."""


@dataclass(slots=True)
class PodCost:
    """The part of one place that members ran in."""

    name: str
    client_id: str
    host: str
    instance_id: str | None
    caused: int = 0
    """Rebalances."""
    joined: int = 0
    gone: Counter[Departure] = field(default_factory=Counter)
    unowned_ms: int = 0
    """Of partitions that it had, until others had them."""
    held_up_ms: int = 0
    """Join phases in which it came last."""
    read_again: int = 0
    """Records, at most."""

    def add(self, other: PodCost) -> None:
        """Count what happened there at another time, too."""
        self.caused += other.caused
        self.joined += other.joined
        self.gone += other.gone
        self.unowned_ms += other.unowned_ms
        self.held_up_ms += other.held_up_ms
        self.read_again += other.read_again


@dataclass(slots=True)
class Cost:
    """All of it."""

    group: str
    since_ms: int
    until_ms: int
    rebalances: int
    by_cause: list[tuple[str, int, int]]
    """Cause, rebalances, partition-milliseconds without owner; the dearest first."""
    unowned_ms: int
    """Summed over partitions, of the rebalances of which it is known."""
    unowned_unknown: int
    """The number of rebalances of which it is not known."""
    longest_ms: int | None
    moved: int
    """Partitions that changed hands."""
    read_again: int
    """Records that were read again, at most: what is left of the last commits of members that could not
    commit any more when they went, at the rate of the partition."""
    went_back: int
    """Records that were read again for sure: the first commit after a rebalance was below the last before."""
    unknown_causes: int
    pods: list[PodCost]
    """The dearest first."""


def cost_of(past: Past) -> Cost:
    """Pure arithmetic over the record."""
    rebalances = past.counted
    counts: Counter[str] = Counter()
    unowned: Counter[str] = Counter()
    pods: dict[tuple[str, str], PodCost] = {}

    def pod(member: Member) -> PodCost:
        where = place(member)
        if where not in pods:
            pods[where] = PodCost(member.name, member.client_id, member.host.lstrip("/"), member.instance_id)
        return pods[where]

    for one in rebalances:
        counts[one.cause] += 1
        unowned[one.cause] += one.unowned_ms or 0
        blamed = {
            place(past.known[member_id]): past.known[member_id]
            for member_id in one.cause_members
            if member_id in past.known
        }
        for member in blamed.values():
            pod(member).caused += 1
        for member_id in one.joined:
            if member_id in past.known:
                pod(past.known[member_id]).joined += 1
        for move in one.moves:
            if move.giver in past.known and move.unowned_ms:
                pod(past.known[move.giver]).unowned_ms += move.unowned_ms
        if one.join_last_member in past.known and one.join_ms:
            pod(past.known[one.join_last_member]).held_up_ms += one.join_ms
    rates = _Rates(past.commits)
    for going in past.goings:
        found = pod(going.member)
        found.gone[going.departure.why] += 1
        found.read_again += rates.again(going)
    durations = [one.duration_ms for one in rebalances if one.duration_ms is not None]
    return Cost(
        past.group,
        past.since_ms,
        past.until_ms,
        len(rebalances),
        [
            (cause, n, unowned[cause])
            for cause, n in sorted(counts.items(), key=lambda o: (-unowned[o[0]], -o[1]))
        ],
        sum(unowned.values()),
        sum(one.unowned_ms is None for one in rebalances),
        max(durations, default=None),
        sum(len(one.moves) for one in rebalances),
        sum(one.read_again for one in pods.values()),
        rates.went_back(past),
        sum(one.cause == "unknown" for one in rebalances),
        dearest_first(pods.values()),
    )


def dearest_first(pods: Iterable[PodCost]) -> list[PodCost]:
    """In the order in which they are shown."""
    return sorted(pods, key=lambda one: (-one.unowned_ms, -one.caused, one.name))


class _Rates:
    """Commits by partition."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._of: dict[TopicPartition, list[Commit]] = defaultdict(list)
        for one in commits:
            self._of[one.topic, one.partition].append(one)
        for some in self._of.values():
            some.sort(key=lambda one: one.at_ms)

    def again(self, going: Going) -> int:
        """How many records of the member's partitions are read again, at most."""
        if going.departure.why not in _CANNOT_COMMIT:
            return 0
        total = 0.0
        for tp in going.member.assigned:
            commits = self._of.get(tp, [])
            number = bisect_right(commits, going.at_ms, key=lambda one: one.at_ms)
            before = commits[max(number - 10, 0) : number]
            if len(before) < 2:
                continue
            elapsed_ms = before[-1].at_ms - before[0].at_ms
            rate = max(before[-1].offset - before[0].offset, 0) / max(elapsed_ms, 1)
            usual_ms = median(b.at_ms - a.at_ms for a, b in pairwise(before))
            total += rate * max(going.silent_since_ms - before[-1].at_ms, usual_ms)
        return round(total)

    def went_back(self, past: Past) -> int:
        """Records between the last commit before a rebalance and a lower one that came first after it."""
        total = 0
        for one in past.counted:
            began_ms = past.began_ms(one)
            for move in one.moves:
                commits = self._of.get((move.topic, move.partition), [])
                number = bisect_right(commits, began_ms, key=lambda commit: commit.at_ms)
                if 0 < number < len(commits):
                    total += max(commits[number - 1].offset - commits[number].offset, 0)
        return total
