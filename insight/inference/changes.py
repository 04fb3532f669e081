"""The difference between two records of a group, with what else was seen between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ringleader.insight.model import Confidence, Departure, DepartureFinding, Kind, Member, TopicPartition

RETURN_MS = 60_000
"""A member that comes within this after one of the same client id and host left has restarted."""

AT_ONCE_MS = 1_000
"""No process ends, begins and joins within this."""


class Departed(NamedTuple):
    """A member that went not long ago."""

    client_id: str
    host: str
    name: str
    at_ms: int
    why: Departure
    sure: bool


def departed(findings: Mapping[str, DepartureFinding], some: Sequence[Member], at_ms: int) -> list[Departed]:
    """These members, as what `returned` looks for."""
    return [
        Departed(
            one.client_id,
            one.host,
            one.name,
            at_ms,
            findings[one.member_id].why,
            findings[one.member_id].confidence is not Confidence.POSSIBLE,
        )
        for one in some
    ]


def returned(joined: Sequence[Member], earlier: Sequence[Departed], at_ms: int) -> dict[str, Departed]:
    """Member id of a new member -> one of the same client id and host that went not long ago."""
    found: dict[str, Departed] = {}
    free = [one for one in earlier if at_ms - one.at_ms <= RETURN_MS]
    for member in joined:
        for one in reversed(free):
            if (one.client_id, one.host) == (member.client_id, member.host):
                found[member.member_id] = one
                free.remove(one)
                break
    return found


@dataclass(frozen=True)
class Change:
    """The difference between two records of a group, and other sightings between them."""

    kind: Kind
    at_ms: int
    since_ms: int
    generation: int
    known: bool
    """The record before was read, or there was none."""
    members: Sequence[Member]
    joined: Sequence[Member]
    missing: Sequence[Member]
    left: Mapping[str, DepartureFinding]
    changed: Sequence[tuple[Member, Member]]
    """Members with another subscription: before, after."""
    topic_changes: Mapping[str, tuple[int, int]]
    returned: Mapping[str, Departed]
    """Member id of a new member -> the departed one whose place it may have."""
    before: Sequence[Member] = ()
    leader: str = ""
    """Before."""
    generation_before: int = 0
    taken: Sequence[tuple[Member, Member]] = ()
    """Static members that came back: before, after."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Topic -> partitions that assignments have had so far."""
    coordinator_ms: int | None = None
    """When the coordinator was seen to be away or another."""
    visible_ms: int | None = None
    """When something was last seen to change."""
    glimpsed: Sequence[str] = ()
    """Names of members that polls saw between the records, and that are in neither."""
    poll_missing: Mapping[str, int] = field(default_factory=dict)
    """Member id -> when a poll first missed it."""
    poll_new: Mapping[str, int] = field(default_factory=dict)
    """Member id of a new member -> when a poll saw it."""
    twins: Sequence[tuple[Member, int]] = ()
    """Members of the same client id and host as one that went, and since when they are there."""
    silent_twins: Sequence[Member] = ()
    """Members of the same client id and host as a new one that do not commit as usual."""
    matched: Sequence[str] = ()
    """Patterns that match other topics than before."""
    topics_known: Set[str] = frozenset()
    """All topics of the cluster when it was last asked."""
    waited_ms: int | None = None
    """How long the group had waited in its join phase, where that is known."""
    hash_changed: bool = False
    """The hash of the topics' partitions, which the broker keeps, is another one."""
    eager: bool = False
    """All members give up their partitions first: none is withheld for a second rebalance."""

    @property
    def classic(self) -> bool:
        """Members agree on a generation themselves; else the broker counts epochs."""
        return self.kind is Kind.CLASSIC

    @property
    def word(self) -> str:
        """The name of the number."""
        return "generation" if self.classic else "epoch"

    @cached_property
    def went_first(self) -> Member:
        """The member that most likely went first: those that polls missed, then the surest."""
        order = list(Confidence)

        def key(one: Member) -> tuple[int, int]:
            missed = self.poll_missing.get(one.member_id, self.at_ms)
            return missed, order.index(self.left[one.member_id].confidence)

        return min(self.missing, key=key)

    @property
    def departure(self) -> DepartureFinding:
        """How the first one went."""
        return self.left[self.went_first.member_id]

    @cached_property
    def went_alike(self) -> Sequence[Member]:
        """All members that went as the first one."""
        return [one for one in self.missing if self.left[one.member_id].why is self.departure.why]

    @property
    def all_went_alike(self) -> bool:
        """Whether all members that went did so as the first one."""
        return len(self.went_alike) == len(self.missing)

    @cached_property
    def pairs(self) -> Sequence[tuple[Member, Member]]:
        """Members that went, each with a new one of the same client id and host."""
        free, found = list(self.missing), []
        for new in self.joined:
            old = next((one for one in free if place(one) == place(new)), None)
            if old is not None:
                free.remove(old)
                found.append((old, new))
        return found

    @cached_property
    def back(self) -> Sequence[Member]:
        """New members that had gone not long ago."""
        return [one for one in self.joined if one.member_id in self.returned]

    def shared(self, some: Sequence[Member]) -> bool:
        """Others have the client id and host of one of these, too: they do not say who it is."""
        new = {one.member_id for one in self.joined}
        others = {place(one) for one in self.members if one.member_id not in new}
        return any(place(one) in others for one in some)

    @cached_property
    def grown(self) -> dict[str, tuple[int, int]]:
        """Topics of which more partitions are assigned than ever before: how many were, and are."""
        if not self.classic:
            return {}  # an epoch begins before its assignment is there
        subscribed = {topic for one in self.members for topic in one.topics}
        now: dict[str, int] = {}
        for topic, number in self.has:
            if topic in subscribed:
                now[topic] = max(now.get(topic, 0), number + 1)
        return {
            name: (self.counts.get(name, 0), number)
            for name, number in sorted(now.items())
            if number > self.counts.get(name, 0)
        }

    @cached_property
    def had(self) -> set[TopicPartition]:
        """Partitions with an owner before."""
        return {partition for one in self.before for partition in one.assigned}

    @cached_property
    def has(self) -> set[TopicPartition]:
        """Partitions with an owner now."""
        return {partition for one in self.members for partition in one.assigned}

    @cached_property
    def touched(self) -> Mapping[str, tuple[int, int]]:
        """Changes of topics that matter to the group."""
        removed = {topic for topic, _ in self.had} - {topic for topic, _ in self.has}
        topics = {topic for one in self.members for topic in one.topics} | removed
        return {
            name: (old, new)
            for name, (old, new) in self.topic_changes.items()
            # Partitions that were given out before they were seen made an earlier rebalance.
            if name in topics and not old < new <= self.counts.get(name, 0) and not (name in removed and new)
        }

    @cached_property
    def resubscribed(self) -> Mapping[str, tuple[int, int]]:
        """The creation of topics that subscriptions gained, and the deletion of those that they lost; empty
        unless they explain all of them."""
        gained, lost = subscription_changes(self.changed)
        found = {
            name: (old, new)
            for name, (old, new) in sorted(self.topic_changes.items())
            if (name in gained and not old) or (name in lost and not new)
        }
        return found if found.keys() == gained | lost else {}

    @property
    def alike(self) -> bool:
        """All members with the same subscription got another one, and more than one did."""
        kinds = {old.topics for old, _ in self.changed}
        return 1 < len(self.changed) == sum(one.topics in kinds for one in self.before)

    @property
    def by_itself(self) -> bool:
        """Members changed their subscriptions by their own wish: the topics that they gained were there
        before."""
        gained, lost = subscription_changes(self.changed)
        return not lost and gained <= self.topics_known and not gained & self.topic_changes.keys()


def subscription_changes(pairs: Sequence[tuple[Member, Member]]) -> tuple[set[str], set[str]]:
    """The topics that subscriptions gained, and lost; each pair is a member before and after."""
    gained = {topic for old, new in pairs for topic in {*new.topics} - {*old.topics}}
    return gained, {topic for old, new in pairs for topic in {*old.topics} - {*new.topics}}


def place(one: Member) -> tuple[str, str]:
    """The client id and host of a member: those of its next process, too."""
    return one.client_id, one.host


def back_at_once(change: Change) -> bool:
    """Whether several members that had all gone are there again, too soon for new processes."""
    earlier = change.returned.values()
    return (
        len(change.back) == len(change.joined) == len(change.members) > 1
        and not change.before
        and all(one.why is Departure.LEFT and change.at_ms - one.at_ms <= AT_ONCE_MS for one in earlier)
        and len({place(one) for one in change.joined}) == len(change.joined)
    )
