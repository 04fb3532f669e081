"""The arguments and results of every assignor, and the order of members.

Assignors are pure: the same members, partition counts and racks give the same assignment, whatever the order
of the input. They run in the leader's library only; the coordinator carries the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Assignment = dict[str, dict[str, list[int]]]
"""Member id -> topic -> partitions in ascending order. Every member has an entry, possibly an empty one;
topics without a partition for the member are left out."""

PartitionCounts = Mapping[str, int]
"""Topic -> number of its partitions, as the leader's metadata says. Subscribed topics that are not in it (or
have 0 partitions) are skipped."""

PartitionRacks = Mapping[str, Sequence[frozenset[str]]]
"""Topic -> for each partition the racks of all its replicas, online or not (KIP-881)."""

AssignFunction = Callable[["Sequence[AssignorMember]", PartitionCounts, PartitionRacks | None], Assignment]


@dataclass(frozen=True, slots=True)
class AssignorMember:
    """One member as the leader sees it: its place in the group and what its Subscription says.

    `owned` and `generation` are what the member claims to hold and since when (-1: never in a group); eager
    members own nothing when they join. `rack`: None or "" means no rack. `user_data`: bytes of the assignor.
    """

    member_id: str
    group_instance_id: str | None = None
    topics: Sequence[str] = ()
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation: int = -1
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Assignor:
    """An assignor under the name that the group votes on (the protocol name in JoinGroup)."""

    name: str
    function: AssignFunction
    cooperative: bool = False
    """Whether members may keep what they own while they rejoin (KIP-429)."""

    def assign(
        self,
        members: Sequence[AssignorMember],
        partitions: PartitionCounts,
        racks: PartitionRacks | None = None,
    ) -> Assignment:
        """See the function's module for its guarantees."""
        return self.function(members, partitions, racks)


def java_order(text: str) -> bytes:
    """Sort key for Java's string order: UTF-16 code units. Differs from Python's beyond the BMP only, but the
    members of a mixed group must agree under any leader."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(members: Sequence[AssignorMember]) -> list[AssignorMember]:
    """Static members first, by group instance id; then the dynamic ones by member id.

    So the share of a static member does not depend on the member id that it got this time (KIP-345).
    """
    return sorted(
        members,
        key=lambda m: (
            m.group_instance_id is None,
            java_order(m.member_id if m.group_instance_id is None else m.group_instance_id),
        ),
    )


def subscribers(
    members: Sequence[AssignorMember], partitions: PartitionCounts
) -> dict[str, list[AssignorMember]]:
    """Topic -> its subscribers in member order, for the topics that have partitions, in topic order."""
    found: dict[str, list[AssignorMember]] = {}
    for member in in_order(members):
        for topic in dict.fromkeys(member.topics):
            if partitions.get(topic, 0) > 0:
                found.setdefault(topic, []).append(member)
    return {topic: found[topic] for topic in sorted(found, key=java_order)}
