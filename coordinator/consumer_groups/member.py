"""A member of a group of the consumer protocol, and the partitions that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from ringleader.coordinator.enums import at_hand

Target: TypeAlias = Mapping[bytes, frozenset[int]]
"""Topic id -> partitions that the assignor wants a member to have. No topic without partitions."""

Owned: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Topic id -> partition -> the epoch in which the member got it. No topic without partitions."""

LEFT_EPOCH = -1
"""The epoch of a request by which a member leaves."""

AWAY_EPOCH = -2
"""The epoch of a request by which a static member leaves for a while, and its epoch until it is back."""


@at_hand
class MemberState(IntEnum):
    """How far a member is on its way to its target. The numbers are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions before it moves on."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given up yet."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """The offer of a member of the classic protocol in JoinGroup, inside a group of the consumer protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, in the member's order of preference."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member as it describes itself: all that it may change by a heartbeat."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    """Empty: none."""
    server_assignor: str | None = None
    classic: ClassicMember | None = None
    leader_user_data: bytes | None = None
    """For the assignor of a leader; None: this member cannot lead."""
    principal: str = ""
    """Of one with a regular expression, which matches what that may see; empty: none, or it is not known."""


@dataclass(frozen=True, slots=True)
class Current:
    """The partitions that a member has, and the epoch that it has reached."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)

    def held(self) -> tuple[tuple[bytes, Mapping[int, int]], ...]:
        """By topic id, the partitions that it has or still has to give up: no other member may have them."""
        return (*self.assigned.items(), *self.pending_revocation.items())

    def holds_as(self, other: Current) -> bool:
        """Whether no partition is to be given up here or there, and the others are the same."""
        if self.pending_revocation or other.pending_revocation:
            return False
        return self.assigned is other.assigned or self.assigned == other.assigned

    def is_stable_at(self, epoch: int) -> bool:
        """Whether it has reached the target of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def has_same(self, other: Owned) -> bool:
        """Whether the partitions that it has are these, whatever their epochs."""
        own = self.assigned
        return own is other or (
            own.keys() == other.keys() and all(own[one].keys() == some.keys() for one, some in other.items())
        )

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it got a partition that it has or still has to give up; None: neither."""
        found = self.assigned.get(topic_id, {}).get(partition)
        if found is not None:
            return found
        return self.pending_revocation.get(topic_id, {}).get(partition)


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """A member: its subscription, its target and what it has."""

    member_id: str
    subscription: Subscription = field(default_factory=Subscription)
    current: Current = field(default_factory=Current)
    target: Target = field(default_factory=dict)
    load: int = 0
    """The partitions of its target."""
    written: bytes = b""
    """The value of its record 8 that was made last, which says what `current` says; empty: it was read."""

    @property
    def has_target(self) -> bool:
        """Whether its partitions are those of its target, and it has none to give up."""
        current, target = self.current, self.target
        if current.pending_revocation or current.assigned.keys() != target.keys():
            return False
        return all(current.assigned[one].keys() == wanted for one, wanted in target.items())

    @property
    def is_away(self) -> bool:
        """Whether it is static and left for a while (epoch -2)."""
        return self.current.epoch == AWAY_EPOCH


def contains(owned: Owned, topics: Iterable[tuple[bytes, Iterable[int]]]) -> bool:
    """Whether all these partitions are in `owned`."""
    return all(
        partition in owned.get(topic_id, ()) for topic_id, partitions in topics for partition in partitions
    )
