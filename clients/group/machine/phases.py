"""The phases of a member and the table of allowed transitions. Tests read this table."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """Where the member stands. The value is the text of logs, errors and metrics."""

    NEW = "new"
    UNJOINED = "about to join"
    PREPARING = "preparing to join"
    JOINING = "joining"
    ASSIGNING = "computing the assignment"
    SYNCING = "waiting for its assignment"
    STABLE = "stable"
    REVOKING = "giving up its assignment"
    RESTING = "out of the group until the application polls"
    LEAVING = "leaving"
    LEFT = "left"
    FAILED = "failed"


_AT_ANY_TIME = {
    Phase.LEAVING: "the member leaves with no assignment in hand, or without waiting for it to be given up",
    Phase.FAILED: "an error that no retry cures",
}
_ENTERS_AGAIN = "an answer asks the member to join again, or the coordinator is gone"
_LEAVES_WITH_ASSIGNMENT = "the member leaves, and gives up the assignment that it still holds first"

TRANSITIONS: dict[Phase, dict[Phase, str]] = {
    Phase.NEW: {Phase.UNJOINED: "the member is started", **_AT_ANY_TIME},
    Phase.UNJOINED: {
        Phase.PREPARING: "the driver has something to do before JoinGroup",
        Phase.JOINING: "JoinGroup, or the first heartbeat of the consumer protocol, is sent",
        Phase.REVOKING: _LEAVES_WITH_ASSIGNMENT,
        **_AT_ANY_TIME,
    },
    Phase.PREPARING: {
        Phase.UNJOINED: "the preparation has ended or its time is over; an answer asks to join again",
        Phase.REVOKING: _LEAVES_WITH_ASSIGNMENT,
        **_AT_ANY_TIME,
    },
    Phase.JOINING: {
        Phase.UNJOINED: "JoinGroup was rejected, or gave a member id to join with",
        Phase.ASSIGNING: "JoinGroup made this member the leader",
        Phase.SYNCING: "JoinGroup made another member the leader, or asked for no assignment",
        Phase.STABLE: "the consumer protocol's coordinator has accepted the member",
        Phase.REVOKING: _LEAVES_WITH_ASSIGNMENT,
        **_AT_ANY_TIME,
    },
    Phase.ASSIGNING: {
        Phase.SYNCING: "the assignment of all members is computed",
        Phase.UNJOINED: _ENTERS_AGAIN,
        Phase.REVOKING: _LEAVES_WITH_ASSIGNMENT,
        **_AT_ANY_TIME,
    },
    Phase.SYNCING: {
        Phase.STABLE: "SyncGroup gave the assignment",
        Phase.UNJOINED: _ENTERS_AGAIN,
        Phase.REVOKING: _LEAVES_WITH_ASSIGNMENT,
        **_AT_ANY_TIME,
    },
    Phase.STABLE: {
        Phase.REVOKING: "the group rebalances, partitions move to another member, or the member leaves",
        Phase.UNJOINED: "a cooperative member joins again with its assignment in hand, or was removed",
        **_AT_ANY_TIME,
    },
    Phase.REVOKING: {
        Phase.UNJOINED: "the assignment is given up or lost",
        Phase.STABLE: "the consumer protocol: the partitions that move are given up, the others stay",
        **_AT_ANY_TIME,
    },
    Phase.RESTING: {
        Phase.UNJOINED: "the application makes progress again",
        Phase.LEFT: "the member leaves a group that it is out of already",
        **_AT_ANY_TIME,
    },
    Phase.LEAVING: {
        Phase.LEFT: "the coordinator has answered, its time is over, or nothing is sent",
        Phase.RESTING: "the same, of a member that left for lack of progress",
        Phase.FAILED: "the same, of a member that an error has ended",
    },
    Phase.LEFT: {Phase.FAILED: "the driver fails after the end"},
    Phase.FAILED: {},
}
"""from -> to -> when. A member may enter the phase that it is in once more."""

BEATING = (Phase.PREPARING, Phase.ASSIGNING, Phase.STABLE, Phase.REVOKING)
"""The phases with heartbeats. Not while JoinGroup or SyncGroup is parked: a heartbeat would wait behind it on
the same connection, and the coordinator counts a member with a parked request as alive."""

ENTERING = (Phase.UNJOINED, Phase.PREPARING, Phase.JOINING, Phase.ASSIGNING, Phase.SYNCING)
"""The phases on the way to an assignment; of a cooperative member, with the one before still in hand."""

PARKED = (Phase.UNJOINED, Phase.JOINING, Phase.SYNCING)
"""The phases in which JoinGroup or SyncGroup is parked, or about to be."""

OVER = (Phase.LEFT, Phase.FAILED)
ASLEEP = (Phase.NEW, Phase.RESTING, *OVER)
"""The phases in which nothing happens by itself."""


class PhaseError(RuntimeError):
    """A transition that the table does not have: a bug of the machine, never the doing of a coordinator."""


def check_transition(group_id: str, old: Phase, new: Phase) -> None:
    """Raises `PhaseError` unless the table has old -> new."""
    if new is not old and new not in TRANSITIONS[old]:
        raise PhaseError(f"group {group_id!r}: a member went from {old.name} to {new.name}")
