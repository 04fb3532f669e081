"""The deadlines of a shard of groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import NamedTuple

from ringleader.coordinator.deadlines import Deadline


@unique
class Kind(IntEnum):
    """The purpose of a deadline; decides which handler is called when it is due."""

    MEMBER = 0
    """Session of a member; for a new member, the wait for its first join phase."""
    GIVEN_OUT = 1
    """Session of a member id that was given out with MEMBER_ID_REQUIRED and has not come back."""
    JOIN = 2
    """The join phase of a group."""
    SYNC = 3
    """The sync phase of a group."""
    CLEANUP = 4
    """The next look for expired offsets and empty groups."""
    CONFIRM = 5
    """The next confirmation that the shard is still owned."""
    CONSUMER_SESSION = 8
    """Session of a member of the consumer protocol."""
    CONSUMER_REVOCATION = 9
    """Partitions that a member of the consumer protocol has to give up, within its rebalance timeout."""
    CONSUMER_JOIN = 10
    """The JoinGroup that a classic member of such a group owes."""
    CONSUMER_SYNC = 11
    """The SyncGroup that a classic member of such a group owes."""
    CONSUMER_LEADER = 12
    """A target that a member of a group of the consumer protocol computes."""
    JOURNAL = 6
    """A rebalance whose last followers do not come for their shares is reported as it is."""
    WORK = 7
    """The next step of long work."""


@dataclass(slots=True, eq=False, repr=False)
class GroupDeadline(Deadline):
    """A deadline of one group, or of the whole shard."""

    group_id: str | None
    kind: Kind


@dataclass(slots=True, eq=False, repr=False)
class MemberDeadline(GroupDeadline):
    """Of a member of a group of the consumer protocol. `epoch`: the one in which its revocation was asked
    for."""

    member_id: str
    epoch: int = 0


class MemberDeadlines(NamedTuple):
    """Those of a member. `join` and `sync`: of the classic protocol."""

    session: MemberDeadline
    revocation: MemberDeadline
    join: MemberDeadline
    sync: MemberDeadline
