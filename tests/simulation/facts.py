"""What the checks of a simulated run keep in mind."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import State


class ViolationError(AssertionError):
    """An invariant does not hold."""


@dataclass
class Generation:
    """What has been said about one generation."""

    leader: str
    listed: dict[str, bytes] | None = None
    answered: set[str] = field(default_factory=set)
    submissions: list[dict[str, bytes]] = field(default_factory=list)


@dataclass
class Life:
    """One incarnation of a group: from its first record to its deletion."""

    group: Group | None
    highest: int = 0
    current: int = 0
    generations: dict[int, Generation] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    crashed_since: bool = False


@dataclass
class Facts:
    """What held when a request arrived."""

    state: State | None = None
    valid: bool = False
    gated: bool = False
    allowed: bool = False
    unchanged_follower: bool = False
    generation: int = -1
    deleted: dict[tuple[str, int], int] = field(default_factory=dict)
