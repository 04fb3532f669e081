"""Sticky assignment where all members subscribe to the same topics: Kafka's constrained algorithm.

With q, r = divmod(partitions, members), r members end with q + 1 partitions and the rest with q, and
everybody keeps as much of what they own as these numbers allow. Time and memory are linear in members plus
partitions.
"""

from __future__ import annotations

from collections import deque

from ringleader.clients.assignors.ownership import NOBODY, Claims, Nearness, Queue, Table


class Constrained:
    """One assignment on its way; `shares` is the result."""

    def __init__(self, table: Table, claims: Claims, nearness: Nearness) -> None:
        self._table = table
        self._claims = claims
        self._nearness = nearness
        count = len(table.members)
        self._least, self._extras = divmod(table.size, count)
        self._full = 0  # members that have one more than the least
        self._under: deque[int] = deque()  # members below the least, in the order of their turns
        self._exact: deque[int] = deque()  # members at the least that may get one more
        self._given_up: dict[int, int] = {}  # partition -> the owner who could not keep it
        self.shares: list[list[int]] = [[] for _ in range(count)]

    def run(self) -> None:
        """Keep, then give out the rest."""
        free = self._keep()
        if self._nearness.counts:
            free = self._give_near(free)
        shares, least = self.shares, self._least
        under, exact = self._under, self._exact
        left = iter(free)
        while under:
            # The first of those below the least gets one, and goes to the end of the row or is done.
            member = under.popleft()
            shares[member].append(next(left))
            (under if len(shares[member]) < least else exact).append(member)
        for partition in left:
            shares[exact.popleft()].append(partition)

    def handed_over(self) -> set[int]:
        """Of what was given out, the partitions that another member owns still."""
        given_up, contested = self._given_up, self._claims.contested
        moved = given_up.keys() | contested.keys()
        if not moved:
            return moved
        return {
            partition
            for member, share in enumerate(self.shares)
            for partition in moved.intersection(share)
            if partition in contested or given_up[partition] != member
        }

    # ---- what each member keeps ----

    def _keep(self) -> list[int]:
        """Returns what no member keeps, in order."""
        owned: list[list[int]] = [[] for _ in self.shares]
        free = []
        for partition, owner in enumerate(self._claims.owner):
            if owner == NOBODY:
                free.append(partition)
            else:
                owned[owner].append(partition)
        for member, mine in enumerate(owned):
            self.shares[member] = self._keeps(member, self._near_ones(member, mine))
        if self._given_up:
            free += self._given_up
            free.sort()
        return free

    def _near_ones(self, member: int, mine: list[int]) -> list[int]:
        far = self._nearness.far
        if not self._nearness.counts or not any(far(member, partition) for partition in mine):
            return mine
        self._given_up |= {partition: member for partition in mine if far(member, partition)}
        return [partition for partition in mine if not far(member, partition)]

    def _keeps(self, member: int, mine: list[int]) -> list[int]:
        least = self._least
        if len(mine) < least:
            self._under.append(member)
            return mine
        if len(mine) > least and self._full < self._extras:
            self._full += 1
            if self._full == self._extras:
                self._exact.clear()  # no other member may have one more
            return self._cut(member, mine, least + 1)
        if self._full < self._extras:
            self._exact.append(member)
        return self._cut(member, mine, least)

    def _cut(self, member: int, mine: list[int], length: int) -> list[int]:
        if len(mine) <= length:
            return mine
        mine.sort(key=self._table.by_partition)
        for partition in mine[length:]:
            self._given_up[partition] = member
        return mine[:length]

    # ---- the rest ----

    def _give_near(self, free: list[int]) -> list[int]:
        """To members with a replica in their rack, rare partitions first; returns what found none."""
        under, exact = Queue(self._under, self._nearness), Queue(self._exact, self._nearness)
        left = []
        for partition in sorted(free, key=self._nearness.near_count):
            if (member := under.pop_near(partition)) is not None:
                self.shares[member].append(partition)
                if len(self.shares[member]) < self._least:
                    under.append(member)
                elif self._full < self._extras:
                    exact.append(member)
            elif (member := exact.pop_near(partition)) is not None:
                self.shares[member].append(partition)
                self._full += 1
                if self._full == self._extras:
                    exact.clear()
            else:
                left.append(partition)
        self._under, self._exact = deque(under), deque(exact)
        return left
