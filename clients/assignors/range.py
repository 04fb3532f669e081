"""Range: of each topic, each member gets one run of consecutive partitions. Protocol name `range`, as Kafka's
RangeAssignor, its rack-aware part (KIP-881) included.

Guarantees: every partition exactly once; deterministic, whatever the order of the input; per topic the counts
differ by at most 1; topics with the same subscribers and the same number of partitions are co-partitioned
(same numbers to the same member). Co-partitioning wins over rack locality, balance wins over both. Not
balanced over many topics (the first members always get the extras), not sticky, and a member can end with
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
    in_order,
    subscribers,
)

_MayTake = Callable[[AssignorMember, int], bool]


class _Topic:
    """One topic on its way to being given out."""

    def __init__(
        self,
        name: str,
        count: int,
        members: list[AssignorMember],
        replica_racks: Sequence[frozenset[str]] | None,
        result: Assignment,
    ) -> None:
        self.name = name
        self.members = members
        self.member_racks = {member.member_id: member.rack or None for member in members}
        self.free = dict.fromkeys(range(count))
        self._result = result
        self._quota, self._extras = divmod(count, len(members))
        self._taken = dict.fromkeys(self.member_racks, 0)
        wanted = {rack for rack in self.member_racks.values() if rack is not None}
        self.racks = list(replica_racks or ()) if wanted else []
        everywhere = frozenset().union(*self.racks)
        self.needs_racks = bool(wanted & everywhere) and any(racks != everywhere for racks in self.racks)

    def room(self, member: AssignorMember) -> int:
        """How many more partitions the member may have; one more than the quota while extras are left."""
        return max(0, self._quota + (self._extras > 0) - self._taken[member.member_id])

    def near(self, member: AssignorMember, partition: int) -> bool:
        """Whether a replica is in the member's rack. A member without a rack is near to everything."""
        rack = self.member_racks[member.member_id]
        return rack is None or (partition < len(self.racks) and rack in self.racks[partition])

    def give(self, member: AssignorMember, partitions: Sequence[int]) -> None:
        self._taken[member.member_id] += len(partitions)
        if self._taken[member.member_id] > self._quota:
            self._extras -= 1
        self._result[member.member_id].setdefault(self.name, []).extend(partitions)
        for partition in partitions:
            del self.free[partition]

    def give_runs(self, may_take: _MayTake | None = None) -> None:
        """Each member in order takes as many of the free partitions as it has room for."""
        for member in self.members:
            matching = (p for p in self.free if may_take is None or may_take(member, p))
            if run := list(islice(matching, self.room(member))):
                self.give(member, run)


def assign(
    members: Sequence[AssignorMember], partitions: PartitionCounts, racks: PartitionRacks | None = None
) -> Assignment:
    """With q, r = divmod(partitions, subscribers) of a topic, the first r members (in member order) get q + 1
    partitions, the rest q. Where racks differ between partitions, near partitions are given first."""
    result: Assignment = {member.member_id: {} for member in in_order(members)}
    topics = [
        _Topic(name, partitions[name], takers, (racks or {}).get(name), result)
        for name, takers in subscribers(members, partitions).items()
    ]
    by_rack = any(topic.needs_racks for topic in topics)
    if by_rack:
        _give_near(topics)
    for topic in topics:
        topic.give_runs()
    if by_rack:
        _sort(result)
    return result


def _give_near(topics: list[_Topic]) -> None:
    alike: dict[tuple[frozenset[tuple[str, str | None]], int], list[_Topic]] = {}
    for topic in topics:
        # A topic none of whose members has a rack counts as one of 0 partitions here, as in Kafka.
        alike.setdefault((frozenset(topic.member_racks.items()), len(topic.racks)), []).append(topic)
    for (_, count), group in alike.items():
        if len(group) > 1:
            _give_near_aligned(group, count)
        elif group[0].needs_racks:
            group[0].give_runs(group[0].near)


def _give_near_aligned(group: list[_Topic], count: int) -> None:
    """Partition p of all these topics goes to the first member near to all of them with room in all."""
    candidates = list(group[0].members)
    for partition in range(count):
        for member in candidates:
            if all(topic.room(member) > 0 and topic.near(member, partition) for topic in group):
                for topic in group:
                    topic.give(member, [partition])
                if not any(topic.room(member) > 0 for topic in group):
                    candidates.remove(member)
                break


def _sort(result: Assignment) -> None:
    for topics in result.values():
        for partitions in topics.values():
            partitions.sort()


RANGE = Assignor("range", assign)
