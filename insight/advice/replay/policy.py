"""What may be different when a recorded history is played again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """As it was, but for what is given here."""

    words: str
    """What is different, in words."""
    static: bool = False
    """Every process has a group.instance.id, and its successor takes it over; nobody leaves when it ends."""
    session_timeout_ms: int | None = None
    max_poll_interval_ms: int | None = None
    assignor: str | None = None
    """One of `clients.assignors.ASSIGNORS`."""
    members: int | None = None
    """Never more than so many; who would be one more does not begin."""
    stays_ms: int | None = None
    """Who would come back, or be replaced, within this time does not go."""
    leaves: bool = False
    """Whoever ends says so."""
    leader_ms: int | None = None
    """So long a leader computes, at most."""
    prompt: bool = False
    """Nobody is waited for longer than its next heartbeat."""
    topics: frozenset[str] | None = None
    """Only members of these topics are in the group."""


AS_IT_WAS = Policy("as it was")
