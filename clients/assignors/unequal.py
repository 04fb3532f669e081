"""Sticky assignment where members subscribe to different topics.

First by single moves: everybody keeps what they own, what is free goes to the member with the fewest, and
each topic is evened out at once, with heaps of its subscribers, until no topic has anything to move; among
what must move, partitions that were just given out go first. A round costs the sum of all subscriptions;
every move makes the loads strictly more even, so there is an end. Kafka's general algorithm ends here too,
after trying single partitions one after the other, over and over.

Then, where racks play no part, by chains of moves: `optimum`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from ringleader.clients.assignors.optimum import Counts, Optimum
from ringleader.clients.assignors.ownership import NOBODY, Claims, Nearness, Table


class Unequal:
    """One assignment on its way; `shares` is the result."""

    def __init__(self, table: Table, claims: Claims, nearness: Nearness) -> None:
        self._table = table
        self._claims = claims
        self._nearness = nearness
        self._subscribers: list[list[int]] = [[] for _ in table.topics]
        for member, one in enumerate(table.members):
            for topic in dict.fromkeys(one.topics):
                if topic in table.number:
                    self._subscribers[table.number[topic]].append(member)
        self._subscribed = [frozenset(members) for members in self._subscribers]
        self._holder = [NOBODY] * table.size
        self._loads = [0] * len(table.members)
        # Topics that few can take come first: who takes them has room then.
        self._order = sorted(range(len(table.topics)), key=lambda topic: len(self._subscribers[topic]))
        self.shares: list[list[int]] = [[] for _ in table.members]

    def run(self) -> None:
        """Keep what may be kept, give out the rest, then even out."""
        self._keep()
        fresh = {topic: self._give(topic) for topic in self._order}
        self._return_to_former()
        self._even_out(fresh)
        self._even_out_all()
        if not self._nearness.counts:
            self._find_optimum()
        for partition, member in enumerate(self._holder):
            self.shares[member].append(partition)

    def handed_over(self) -> set[int]:
        """Of what was given out, the partitions that another member owns still."""
        owner, contested = self._claims.owner, self._claims.contested
        return {
            partition
            for partition, member in enumerate(self._holder)
            if owner[partition] not in (NOBODY, member) or partition in contested
        }

    def _keep(self) -> None:
        owner, first = self._claims.owner, self._table.first
        for topic, subscribed in enumerate(self._subscribed):
            for partition in range(first[topic], first[topic + 1]):
                member = owner[partition]
                if member != NOBODY and member in subscribed and not self._nearness.far(member, partition):
                    self._holder[partition] = member
                    self._loads[member] += 1

    def _give(self, topic: int) -> list[int]:
        """Each free partition of the topic to the subscriber with the fewest; returns them."""
        first, loads = self._table.first, self._loads
        free = [p for p in range(first[topic], first[topic + 1]) if self._holder[p] == NOBODY]
        if self._nearness.counts:
            self._give_near(topic, free)
            return free
        heap = [(loads[member], member) for member in self._subscribers[topic]]
        heapify(heap)
        for partition in free:
            load, member = heap[0]
            heapreplace(heap, (load + 1, member))
            self._holder[partition] = member
            loads[member] += 1
        return free

    def _give_near(self, topic: int, free: list[int]) -> None:
        """Each to the subscriber with the fewest, of those near to it if there are any."""
        near, loads = self._nearness, self._loads
        heaps: dict[str | None, list[tuple[int, int]]] = {}
        for member in self._subscribers[topic]:
            heaps.setdefault(near.rack_of(member), []).append((loads[member], member))
        for heap in heaps.values():
            heapify(heap)
        for partition in free:
            found = [heaps[rack] for rack in near.racks_near(partition) if rack in heaps]
            heap = min(found or heaps.values())
            load, member = heap[0]
            heapreplace(heap, (load + 1, member))
            self._holder[partition] = member
            loads[member] += 1

    def _return_to_former(self) -> None:
        """A partition that must move anyhow goes to a member that had it before."""
        loads = self._loads
        for partition, former in sorted(self._claims.former.items()):
            holder = self._holder[partition]
            if loads[holder] - loads[former] < 2 or self._nearness.far(former, partition):
                continue
            if former in self._subscribed[self._table.topic_of(partition)]:
                self._move(partition, holder, former)

    def _move(self, partition: int, giver: int, taker: int) -> None:
        self._holder[partition] = taker
        self._loads[giver] -= 1
        self._loads[taker] += 1

    def _even_out(self, movable: dict[int, list[int]]) -> None:
        """Until nothing moves any more in any topic."""
        while True:
            moves = sum(self._even_topic(topic, partitions) for topic, partitions in movable.items())
            if not moves:
                return

    def _even_out_all(self) -> None:
        first = self._table.first
        self._even_out({topic: list(range(first[topic], first[topic + 1])) for topic in self._order})

    def _even_topic(self, topic: int, partitions: list[int]) -> int:
        """Move partitions of one topic from those with the most to those with the fewest; how many moved."""
        loads = self._loads
        held: dict[int, list[int]] = {}
        for partition in reversed(partitions):  # so that the lowest is given away first
            held.setdefault(self._holder[partition], []).append(partition)
        if not held:
            return 0
        takers = [(loads[member], member) for member in self._subscribers[topic]]
        if max(loads[member] for member in held) - min(takers)[0] < 2:
            return 0
        heapify(takers)
        givers = [(-loads[member], member) for member in held]
        heapify(givers)
        moves = 0
        while givers:
            _, giver = givers[0]
            load, taker = takers[0]
            if load != loads[taker]:  # it gave something away since: look again at what it has now
                heapreplace(takers, (loads[taker], taker))
                continue
            if loads[giver] - load < 2:
                break
            self._move(self._pick(held[giver], giver, taker), giver, taker)
            moves += 1
            heapreplace(takers, (load + 1, taker))
            heappop(givers)
            if held[giver]:
                heappush(givers, (-loads[giver], giver))
        return moves

    def _pick(self, held: list[int], giver: int, taker: int) -> int:
        """The partition of `held` that goes to the taker: one it owns itself, one the giver does not own, the
        lowest."""
        if len(held) > 1:
            owner = self._claims.owner
            for wanted in (taker, NOBODY):
                for position in range(len(held) - 1, -1, -1):
                    if owner[held[position]] == wanted:
                        return held.pop(position)
        return held.pop()

    # ---- the best ----

    def _find_optimum(self) -> None:
        first = self._table.first
        held: Counts = [{} for _ in self._subscribers]
        owned: Counts = [{} for _ in self._subscribers]
        moved = False
        for topic, subscribed in enumerate(self._subscribed):
            has, had = held[topic], owned[topic]
            for partition in range(first[topic], first[topic + 1]):
                holder, owner = self._holder[partition], self._claims.owner[partition]
                has[holder] = has.get(holder, 0) + 1
                if owner in subscribed:
                    had[owner] = had.get(owner, 0) + 1
                    moved = moved or owner != holder
        if not moved and max(self._loads) - min(self._loads) <= 1:
            return
        optimum = Optimum(held, owned, self._subscribers, self._loads)
        optimum.run()
        for topic in optimum.changed:
            self._give_anew(range(first[topic], first[topic + 1]), held[topic])
        if not optimum.found:
            self._even_out_all()

    def _give_anew(self, partitions: range, wanted: dict[int, int]) -> None:
        """Give each member as many of these as it is wanted to have: what it owns and has, what it owns, what
        it has, the lowest."""
        holder, owner = self._holder, self._claims.owner
        left = dict(wanted)
        rest = list(partitions)
        for at_once in (
            lambda p: owner[p] if owner[p] == holder[p] else NOBODY,
            owner.__getitem__,
            holder.__getitem__,
        ):
            still = []
            for partition in rest:
                member = at_once(partition)
                if left.get(member, 0):
                    left[member] -= 1
                    holder[partition] = member
                else:
                    still.append(partition)
            rest = still
        takers = [member for member in sorted(left) for _ in range(left[member])]
        for partition, member in zip(rest, takers, strict=True):
            holder[partition] = member
