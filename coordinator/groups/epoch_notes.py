"""The journal's notes of a group of the consumer protocol, and of one event that changes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import Current, Subscription
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.journal.entries import Cause, DepartedMember, Departure, Wait

Place = tuple[bytes, int]
"""Topic id and partition."""

Was = tuple[Subscription, Current]
"""A member before an event."""


class Had(NamedTuple):
    """A member before a rebalance."""

    subscription: Subscription
    current: Current
    principal: str | None


@dataclass(slots=True, eq=False, repr=False)
class EpochProgress(GroupDeadline):
    """Notes about one rebalance. As a `Deadline`: the next look at who holds it up."""

    kind: Kind = field(default=Kind.JOURNAL, init=False)
    cause: Cause
    cause_member: str
    generation: int
    """The group epoch."""
    started_ms: int
    had: dict[str, Had]
    """The members before it."""
    last_commit_ms: int
    joined: dict[str, None] = field(default_factory=dict)
    left: dict[str, DepartedMember] = field(default_factory=dict)
    leader_synced_ms: int = -1
    """When the target was computed; -1: it is not."""
    unsettled: set[str] = field(default_factory=set)
    """Members that have not reached the target."""
    moves: dict[Place, tuple[str | None, str | None, int | None]] = field(default_factory=dict)
    """Giver, heir, and the time during which no member had it."""
    waits: dict[tuple[str, str], Wait] = field(default_factory=dict)
    """By the member that waits and the one that it waits for."""
    awaited: dict[str, list[str]] = field(default_factory=dict)
    """By the member that waits: whom it waits for now."""
    first_commit_ms: int = -1


@dataclass(slots=True)
class Notes:
    """Those of a group with members."""

    epoch: int
    was_classic: bool = False
    """Before the event."""
    open: EpochProgress | None = None
    unplaced: list[str] = field(default_factory=list)
    """Members that joined without another epoch: their regular expression is not resolved yet."""
    free: dict[Place, tuple[str, int]] = field(default_factory=dict)
    """Partitions without an owner -> their last owner, and since when (Unix time)."""
    principals: dict[str, str] = field(default_factory=dict)
    away: dict[str, int] = field(default_factory=dict)
    """Static members that left for a while: since when (Unix time)."""


@dataclass(slots=True)
class Event:
    """The members that one event concerns."""

    was: dict[str, Was | None] = field(default_factory=dict)
    """None: it was no member."""
    going: dict[str, tuple[Departure, int]] = field(default_factory=dict)
    """The reason, and the time of the last request (the machine's clock)."""
    # --- known when it is over ---
    joined: list[str] = field(default_factory=list)
    left: dict[str, Was] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Static members that came back: new id -> old id. They neither joined nor left."""


def is_step(notes: Notes, consumer: ConsumerGroup, event: Event) -> bool:
    """Whether members only came into another epoch, gave partitions up, or got some: none came or went, and
    the group's own epoch is as before."""
    if notes.was_classic or event.going or consumer.epoch != notes.epoch:
        return False
    for member_id, was in event.was.items():
        member = consumer.members.get(member_id)
        if member is None or was is None or member.is_away:
            return False
    return bool(consumer.members)


def had_before(notes: Notes, consumer: ConsumerGroup, event: Event) -> dict[str, Had]:
    """The members before the event. The journal works out the rest when the rebalance is over."""
    principal = notes.principals.get
    found = {one: Had(*was, principal(one)) for one, was in event.left.items()}
    found |= had_now(notes, consumer)
    for name in (*event.was, *event.replaced):
        known = event.was.get(event.replaced.get(name, name))
        if known is not None and name in consumer.members:
            found[name] = Had(*known, principal(name))
    for name in event.joined:
        found.pop(name, None)
    return found


def had_now(notes: Notes, consumer: ConsumerGroup) -> dict[str, Had]:
    """The members as they are."""
    principal = notes.principals.get
    members = consumer.members.items()
    return {name: Had(one.subscription, one.current, principal(name)) for name, one in members}


def beyond(some: Current, other: Current) -> list[Place]:
    """The partitions that one has, and the other has not."""
    had, pending = other.assigned, other.pending_revocation
    return [
        (topic_id, one)
        for topic_id, partitions in some.held()
        for one in partitions
        if one not in had.get(topic_id, ()) and one not in pending.get(topic_id, ())
    ]
