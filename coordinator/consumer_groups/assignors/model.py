"""Input and output of an assignor."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from ringleader.coordinator.consumer_groups.member import Target

T = TypeVar("T")

Work: TypeAlias = Generator[int, None, T]
"""Work that can be done in steps; its result. It yields about how many partitions and topics it has looked at
since it yielded last."""

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
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """More that is known of the topics, and of the members."""

    racks: Mapping[bytes, Sequence[frozenset[str]]] = field(default_factory=dict)
    """Topic id -> the racks of each partition's replicas; topics of which none is known are not in it."""
    rates: Mapping[bytes, Sequence[float]] = field(default_factory=dict)
    """Topic id -> records per second of each partition, as far as they are known; 0 else."""
    first: str = ""
    """The member whose heartbeat it is, if any. It has what it gets at once, while others have to come for
    it: so it is the first one among equals."""


NO_FACTS = Facts()


Assignor: TypeAlias = Callable[[list[Candidate], Mapping[bytes, int], Facts], Work[Shares]]
"""Members, the number of partitions of each topic, and more that is known; none of it changes meanwhile. Each
partition of a topic with a subscriber goes to one of its subscribers. Equal input gives equal output."""
