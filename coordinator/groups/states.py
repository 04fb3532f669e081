"""The states of a group and the table of allowed transitions. Documentation and tests read this table."""

from __future__ import annotations

from enum import StrEnum

from ringleader.protocol.errors import ErrorCode


class GroupState(StrEnum):
    """State of a classic group; the value is the name on the wire (DescribeGroups, ListGroups)."""

    EMPTY = "Empty"
    """No members; may hold offsets."""
    PREPARING = "PreparingRebalance"
    """Collecting JoinGroups."""
    COMPLETING = "CompletingRebalance"
    """JoinGroups are answered; the leader's assignment is awaited."""
    STABLE = "Stable"
    """The assignment is known and durable."""
    DEAD = "Dead"
    """The state of groups that do not exist."""


TRANSITIONS: dict[GroupState, dict[GroupState, str]] = {
    GroupState.EMPTY: {
        GroupState.PREPARING: "a member is added; the initial rebalance delay starts",
        GroupState.STABLE: "the shard is loaded, or the group was one of the consumer protocol until now",
    },
    GroupState.PREPARING: {
        GroupState.COMPLETING: "the join phase completes with at least one member: generation + 1",
        GroupState.EMPTY: "no members: generation + 1, group record written; or it is upgraded",
    },
    GroupState.COMPLETING: {
        GroupState.STABLE: "the leader's assignment is in; SyncGroups are answered when it is durable",
        GroupState.PREPARING: "a member joined, changed, left, expired, did not sync; assignment too large",
        GroupState.EMPTY: "it is upgraded to the consumer protocol, where its members go on",
    },
    GroupState.STABLE: {
        GroupState.PREPARING: "a member joined, changed, left, expired, did not sync; the leader rejoined",
        GroupState.EMPTY: "it is upgraded to the consumer protocol, where its members go on",
    },
    GroupState.DEAD: {},
}
"""from -> to -> when. Kafka's ClassicGroupState behaviour. A group whose last member leaves does not go from
Stable to Empty: it passes through Preparing inside one event, and its generation goes up by one."""

CAN_REBALANCE = (GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE)
"""States that a rebalance can start from."""

HEARTBEAT_CODES: dict[GroupState, int] = {
    GroupState.EMPTY: int(ErrorCode.UNKNOWN_MEMBER_ID),
    GroupState.PREPARING: int(ErrorCode.REBALANCE_IN_PROGRESS),
    GroupState.COMPLETING: int(ErrorCode.NONE),
    GroupState.STABLE: int(ErrorCode.NONE),
    GroupState.DEAD: int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
}
"""The answer to a valid heartbeat in each state (Kafka GroupMetadataManager behaviour)."""


NOT_YET = -1_000
"""From the hot paths of heartbeats, `Shard.heartbeat` and `Shard.stay`: they do not answer this one. No error
code of Kafka's."""


class IllegalTransitionError(RuntimeError):
    """A transition that is not in the table: a bug of the machine, never a client's doing."""


def check_transition(group_id: str, old: GroupState, new: GroupState) -> None:
    """Raises `IllegalTransitionError` unless the table has old -> new."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransitionError(f"group {group_id!r}: {old} -> {new}")
