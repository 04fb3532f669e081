"""The conditions under which a recorded history is played again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """As it was, but for what is given here."""

    words: str
    """The difference, in words."""
    static: bool = False
    """Every process has a group.instance.id, and a successor takes it over: none leaves at its end."""
    session_timeout_ms: int | None = None
    max_poll_interval_ms: int | None = None
    assignor: str | None = None
    """One of `clients.assignors.ASSIGNORS`."""
    members: int | None = None
    """The largest number of members; a further process does not begin."""
    stays_ms: int | None = None
    """A member that would come back, or be replaced, within this time does not go."""
    leaves: bool = False
    """A process that ends leaves the group."""
    leader_ms: int | None = None
    """The most time that a leader computes."""
    prompt: bool = False
    """Nobody is waited for longer than its next heartbeat."""
    topics: frozenset[str] | None = None
    """Only members of these topics are in the group."""
    consumer: bool = False
    """Members use the consumer protocol (KIP-848). Sessions are as long as `session_timeout_ms`, or Kafka's
    default, for the coordinator's setting rules there."""
    heartbeat_ms: int | None = None
    """Between two heartbeats of the consumer protocol; None: Kafka's default."""


AS_IT_WAS = Policy("as it was")
