"""Partitions of different cost shared among members of different strength, sticky within a tolerance.

The load of a member is the cost of its partitions over its weight. Members keep what they own. Free
partitions go, the costliest first, to the subscriber that would be loaded least. Then a member that has more
than the mean load and the tolerance hands over the partition whose move lowers the larger of the two loads
most, if any does, and again. Each move makes the loads more even, so there is an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappush, heapreplace

from ringleader.clients.assignors.ownership import NOBODY, Claims, Table

_Entry = tuple[float, int]
"""A load and a member number."""


class Evened:
    """One assignment on its way. `shares` is the result.

    `costs`: of each partition, above 0. `weights`: of each member, above 0. `tolerance`: 0.1 lets a load be a
    tenth above the mean before anything moves for it.
    """

    def __init__(
        self,
        table: Table,
        claims: Claims,
        costs: Sequence[float],
        weights: Sequence[float],
        tolerance: float,
    ) -> None:
        self._table = table
        self._claims = claims
        self._costs = costs
        self._weights = weights
        self._cheapest = min(costs)
        self._sums = [0.0] * len(table.members)
        self._held: list[set[int]] = [set() for _ in table.members]
        mean = sum(costs) / sum(weights)
        self._limit = mean * (1 + tolerance) if tolerance else 0.0
        self._subscribed = [frozenset(t for t in m.topics if t in table.number) for m in table.members]
        self._heaps = self._make_heaps()

    @property
    def shares(self) -> list[list[int]]:
        """Partitions by member number."""
        return [list(held) for held in self._held]

    def run(self) -> None:
        """Keep, give out, even out."""
        free = []
        for partition, owner in enumerate(self._claims.owner):
            if owner != NOBODY and self._topic_name(partition) in self._subscribed[owner]:
                self._take(owner, partition)
            else:
                free.append(partition)
        free.sort(key=lambda partition: -self._costs[partition])
        for partition in free:
            self._take(self._least_loaded(self._topic_name(partition)), partition)
        self._even_out()

    # ---- loads ----

    def _make_heaps(self) -> dict[str, list[_Entry]]:
        """Topic -> a heap of its subscribers; topics with the same subscribers share one. An entry that is
        not its member's present load is corrected when it comes up."""
        heaps: dict[str, list[_Entry]] = {}
        shared: dict[tuple[int, ...], list[_Entry]] = {}
        for topic in self._table.topics:
            members = tuple(number for number, topics in enumerate(self._subscribed) if topic in topics)
            if members not in shared:
                shared[members] = [(self._next_load(member), member) for member in members]
                heapify(shared[members])
            heaps[topic] = shared[members]
        return heaps

    def _topic_name(self, partition: int) -> str:
        return self._table.topics[self._table.topic_of(partition)]

    def _load(self, member: int) -> float:
        return self._sums[member] / self._weights[member]

    def _next_load(self, member: int) -> float:
        """With one more of the cheapest: of two that have nothing the stronger one comes first."""
        return (self._sums[member] + self._cheapest) / self._weights[member]

    def _least_loaded(self, topic: str) -> int:
        heap = self._heaps[topic]
        while True:
            load, member = heap[0]
            present = self._next_load(member)
            if load == present:
                return member
            heapreplace(heap, (present, member))

    def _take(self, member: int, partition: int) -> None:
        self._held[member].add(partition)
        self._sums[member] += self._costs[partition]

    def _give_up(self, member: int, partition: int) -> None:
        self._held[member].remove(partition)
        self._sums[member] -= self._costs[partition]
        load = self._next_load(member)
        for heap in {id(one): one for one in map(self._heaps.get, self._subscribed[member]) if one}.values():
            heappush(heap, (load, member))

    # ---- evening out ----

    def _even_out(self) -> None:
        """Until a round in which nothing moved: a member that gave something away can take from
        others."""
        while self._round():
            pass

    def _round(self) -> bool:
        moved = False
        givers = [(-self._load(member), member) for member in range(len(self._held))]
        heapify(givers)
        while givers and -givers[0][0] > self._limit:
            load, giver = givers[0]
            if -load != self._load(giver):
                heapreplace(givers, (-self._load(giver), giver))
                continue
            move = self._best_move(giver)
            if move is None:  # nothing that it has would make things better elsewhere
                _drop_first(givers)
                continue
            partition, taker = move
            moved = True
            self._give_up(giver, partition)
            self._take(taker, partition)
            heapreplace(givers, (-self._load(giver), giver))
        return moved

    def _best_move(self, giver: int) -> tuple[int, int] | None:
        """The partition and its taker that lower the larger of the two loads most; what the giver does not
        own is moved rather than what it owns, then the lowest."""
        owner, costs = self._claims.owner, self._costs
        load = self._load(giver)
        best: tuple[float, bool, int] = (load, True, -1)
        best_taker = NOBODY
        takers: dict[int, int] = {}
        for partition in self._held[giver]:
            number = self._table.topic_of(partition)
            taker = takers.get(number)
            if taker is None:
                taker = takers[number] = self._least_loaded(self._table.topics[number])
            if taker == giver:
                continue
            cost = costs[partition]
            rest = (self._sums[giver] - cost) / self._weights[giver]
            worse = max(rest, (self._sums[taker] + cost) / self._weights[taker])
            rank = (worse, owner[partition] == giver, partition)
            if worse < load and rank < best:
                best, best_taker = rank, taker
        return None if best_taker == NOBODY else (best[2], best_taker)


def _drop_first(heap: list[_Entry]) -> None:
    last = heap.pop()
    if heap:
        heapreplace(heap, last)
