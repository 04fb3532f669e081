"""Input and output of an assignor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ringleader.coordinator.consumer_groups.member import Target

Shares: TypeAlias = dict[str, dict[bytes, frozenset[int]]]
"""Member id -> topic id -> partitions. All members are in it; no topic without partitions."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that may get partitions. `topics`: ids of the topics to which it subscribes and that exist;
    `target`: what it was to have so far."""

    member_id: str
    topics: frozenset[bytes]
    target: Target = field(default_factory=dict)
    instance_id: str | None = None


Assignor: TypeAlias = Callable[[list[Candidate], Mapping[bytes, int]], Shares]
"""Members, and the number of partitions of each topic. Each partition of a topic with a subscriber goes to
one of its subscribers. The same input gives the same output."""
