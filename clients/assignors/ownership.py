"""The start of the sticky assignors: all partitions as one row of numbers, with the members that claim them.

Partitions of up to a million are common enough here that nothing may cost an object for each of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ringleader.clients.assignors.model import (
    Assignment,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
    java_order,
)

Claim = tuple[Mapping[str, Sequence[int]], int]
"""The partitions that a member claims, by topic, and the generation it has them from (-1: none)."""

NOBODY = -1


class Table:
    """Members and partitions of one assignment as numbers.

    Members are numbered by member id. Partitions of all topics that a member subscribes to and that have
    partitions are numbered by topic, then by partition: partition p of topic number t is `first[t] + p`.
    """

    def __init__(self, members: Iterable[AssignorMember], partitions: PartitionCounts) -> None:
        self.members = sorted(members, key=lambda m: java_order(m.member_id))
        wanted: set[str] = set().union(*(member.topics for member in self.members))
        self.topics = sorted((t for t in wanted if partitions.get(t, 0) > 0), key=java_order)
        self.number = {topic: number for number, topic in enumerate(self.topics)}
        self.first = [0]
        """Where each topic begins; one more entry says where the last one ends."""
        for topic in self.topics:
            self.first.append(self.first[-1] + partitions[topic])
        self.size = self.first[-1]

    def topic_of(self, partition: int) -> int:
        """Number of the topic that a partition belongs to."""
        return bisect_right(self.first, partition) - 1

    def by_partition(self, partition: int) -> tuple[int, int]:
        """Sort key: partition 0 of all topics before partition 1."""
        topic = self.topic_of(partition)
        return partition - self.first[topic], topic

    def assignment(self, shares: Sequence[list[int]]) -> Assignment:
        """Shares (by member number, in any order) as assignors return them."""
        result: Assignment = {}
        names, first = self.topics, self.first
        for member, share in zip(self.members, shares, strict=True):
            share.sort()
            result[member.member_id] = topics = {}
            position, length, topic = 0, len(share), 0
            while position < length:
                lowest = share[position]
                topic = bisect_right(first, lowest, topic) - 1
                base, limit = first[topic], first[topic + 1]
                end = position + 1
                if end == length or share[end] >= limit:
                    topics[names[topic]] = [lowest - base]
                else:
                    end = bisect_left(share, limit, end)
                    topics[names[topic]] = [number - base for number in share[position:end]]
                position = end
        return result


class Claims:
    """The owners by the newest claims. Of two that claim a partition, the one of the later generation has it;
    of the same generation none has it (KAFKA-12984): one of them is wrong, and both may be at work on
    it."""

    def __init__(self, table: Table, claims: Iterable[Claim]) -> None:
        """`claims`: one for each member, by number; taken one after the other, and not kept."""
        self.owner = [NOBODY] * table.size
        """Member number by partition."""
        self.contested: dict[int, int] = {}
        """Partitions that several claim in one generation -> that generation."""
        self.former: dict[int, int] = {}
        """Partition -> the member that had it before its present owner, by its own word."""
        owner, first, topic_numbers = self.owner, table.first, table.number
        generations: list[int] = []
        for member, (owned, generation) in enumerate(claims):
            generations.append(generation)
            for topic, numbers in owned.items():
                number = topic_numbers.get(topic)
                if number is None:
                    continue
                base = first[number]
                count = first[number + 1] - base
                for one in numbers:
                    if not 0 <= one < count:
                        continue
                    if owner[base + one] == NOBODY and not self.contested:
                        owner[base + one] = member
                    else:
                        self._claim(base + one, member, generation, generations)

    def _claim(self, partition: int, member: int, generation: int, generations: Sequence[int]) -> None:
        holder = self.owner[partition]
        if holder == member:
            return
        if holder == NOBODY:
            rival = self.contested.get(partition)
            if rival is None or generation > rival:
                self.owner[partition] = member
                self.contested.pop(partition, None)
            return
        if generation > generations[holder]:
            self.owner[partition] = member
            self.former[partition] = holder
        elif generation == generations[holder]:
            self.owner[partition] = NOBODY
            self.contested[partition] = generation
        else:
            before = self.former.get(partition)
            if before is None or generation > generations[before]:
                self.former[partition] = member


class Nearness:
    """Which members have a replica of a partition in their rack (KIP-881)."""

    def __init__(self, table: Table, racks: PartitionRacks | None) -> None:
        self._member_racks = [member.rack or None for member in table.members]
        self._replicas: list[frozenset[str]] = []
        self._in_rack = Counter(self._member_racks)
        self._without_rack = self._in_rack.pop(None, 0)
        wanted = {rack for rack in self._member_racks if rack is not None}
        self.counts = False
        """Whether racks make a difference. If not, they need not be looked at."""
        if not wanted or not racks:
            return
        for topic, name in enumerate(table.topics):
            known = list(racks.get(name, ()))
            count = table.first[topic + 1] - table.first[topic]
            self._replicas += known[:count] + [frozenset()] * (count - len(known))
        everywhere = frozenset().union(*self._replicas)
        self.counts = bool(wanted & everywhere) and any(one != everywhere for one in self._replicas)

    def far(self, member: int, partition: int) -> bool:
        """Whether the member has a rack, and the partition no replica there."""
        if not self.counts:
            return False
        rack = self._member_racks[member]
        return rack is not None and rack not in self._replicas[partition]

    def near_count(self, partition: int) -> int:
        """How many of all members are near."""
        return self._without_rack + sum(self._in_rack.get(rack, 0) for rack in self._replicas[partition])

    def rack_of(self, member: int) -> str | None:
        """The member's rack."""
        return self._member_racks[member]

    def racks_near(self, partition: int) -> list[str | None]:
        """Members of these racks are near, and those without one."""
        return [None, *self._replicas[partition]]


class Queue:
    """Members waiting for their turn. To find one near to a partition takes a look at its racks only."""

    def __init__(self, members: Iterable[int], nearness: Nearness) -> None:
        self._nearness = nearness
        self._by_rack: dict[str | None, deque[tuple[int, int]]] = {}
        self._ticket = 0
        for member in members:
            self.append(member)

    def append(self, member: int) -> None:
        """It waits from now on."""
        self._by_rack.setdefault(self._nearness.rack_of(member), deque()).append((self._ticket, member))
        self._ticket += 1

    def pop_near(self, partition: int) -> int | None:
        """Of those near to the partition the one that has waited longest; None if there is none."""
        rows = (self._by_rack.get(rack) for rack in self._nearness.racks_near(partition))
        longest = min((row for row in rows if row), default=None)
        return longest.popleft()[1] if longest else None

    def clear(self) -> None:
        """Nobody waits any more."""
        self._by_rack.clear()

    def __iter__(self) -> Iterator[int]:
        return (member for _, member in sorted(chain.from_iterable(self._by_rack.values())))
