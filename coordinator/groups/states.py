"""The states of a group and the table of allowed transitions. Documentation and tests read this table."""

from __future__ import annotations

from enum import StrEnum

from ringleader.protocol.errors import ErrorCode


class State(StrEnum):
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
    """The shard is being unloaded; also what is said about groups that do not exist."""


TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.PREPARING: "a member is added; the initial rebalance delay starts",
        State.DEAD: "the shard is unloaded",
    },
    State.PREPARING: {
        State.COMPLETING: "the join phase completes with at least one member: generation + 1",
        State.EMPTY: "the join phase completes without members: generation + 1, group record written",
        State.DEAD: "the shard is unloaded",
    },
    State.COMPLETING: {
        State.STABLE: "the leader's assignment is durable: waiting SyncGroups are answered",
        State.PREPARING: "a member joined, changed, left, expired or did not sync, or the write failed",
        State.DEAD: "the shard is unloaded",
    },
    State.STABLE: {
        State.PREPARING: "a member joined, changed, left, expired or did not sync, or the leader rejoined",
        State.DEAD: "the shard is unloaded",
    },
    State.DEAD: {State.DEAD: "unloading twice changes nothing"},
}
"""from -> to -> when. Kafka's ClassicGroupState behaviour. There is no Stable -> Empty: a group whose last
member leaves passes through Preparing inside one event, and its generation goes up by one."""

CAN_REBALANCE = (State.EMPTY, State.COMPLETING, State.STABLE)
"""States that a rebalance can start from."""

HEARTBEAT_CODES: dict[State, int] = {
    State.EMPTY: int(ErrorCode.UNKNOWN_MEMBER_ID),
    State.PREPARING: int(ErrorCode.REBALANCE_IN_PROGRESS),
    State.COMPLETING: int(ErrorCode.NONE),
    State.STABLE: int(ErrorCode.NONE),
    State.DEAD: int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
}
"""What a valid heartbeat is told in each state (Kafka GroupMetadataManager behaviour)."""


class IllegalTransitionError(RuntimeError):
    """A transition that is not in the table: a bug of the machine, never a client's doing."""


def check_transition(group_id: str, old: State, new: State) -> None:
    """Raises `IllegalTransitionError` unless the table has old -> new."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransitionError(f"group {group_id!r}: {old} -> {new}")
