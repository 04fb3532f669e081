"""`weighted`: loads by what the group gets through, not by the number of partitions; few moves.

Ours, not Kafka's. The load of a partition is the rate at which the group has committed offsets in it, and a
tenth of the mean rate, so that idle partitions are shared evenly, too. Where no rate is known yet, the
assignor is `uniform`.

Members keep what they had. Free partitions go, the costliest first, to the subscriber with the least load.
Then, as long as a member has more than `TOLERANCE` above the mean load, or one has more than that below it,
the member with the most hands over the partition that evens the two out best, if any does. Every move makes
loads more even, so there is an end. With equal subscriptions, a member is in the end no further from the mean
than that, or has no partition that is smaller than its distance from the least loaded one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

from ringleader.coordinator.consumer_groups.assignors import uniform
from ringleader.coordinator.consumer_groups.assignors.model import Candidate, Facts, Shares, Work

TOLERANCE = 0.2
"""So far from the mean load nothing moves: rates that change a little move no partition."""
IDLE = 0.1
"""The load of a partition without records, as a share of the mean rate."""

_Place = tuple[float, bytes, int]
"""A partition: its load, topic id and number."""


def assign(members: list[Candidate], topics: Mapping[bytes, int], facts: Facts) -> Work[Shares]:
    """See `model.Assignor`."""
    total = sum(map(sum, facts.rates.values()))
    if not members or not total:
        return (yield from uniform.assign(members, topics, facts))
    return (yield from _Evened(members, topics, facts, IDLE * total / sum(topics.values())).run())


class _Evened:
    """One assignment on its way. Members are numbers, by their ids. Topics with the same subscribers are of
    one sort, also a number."""

    def __init__(
        self, members: list[Candidate], topics: Mapping[bytes, int], facts: Facts, idle: float
    ) -> None:
        self._members = sorted(members, key=lambda one: one.member_id)
        self._topics, self._rates, self._idle = topics, facts.rates, idle
        self._loads = [0.0] * len(members)
        self._sort: dict[bytes, int] = {}
        self._sorts: list[list[int]] = [[] for _ in members]
        """By member: those of its topics."""
        self._held: list[dict[int, list[_Place]]] = [{} for _ in members]
        """By member and sort: its partitions, in order."""
        self._takers: list[list[tuple[float, int]]] = []
        """By sort: a heap of its subscribers and loads."""

    def run(self) -> Work[Shares]:
        """Keep, give out, even out."""
        yield from self._find_sorts()
        kept, free, _ = yield from uniform.kept(self._members, self._topics)
        for number, member in enumerate(self._members):
            held = self._held[number]
            for topic_id, partitions in kept[member.member_id].items():
                own = held.setdefault(self._sort[topic_id], [])
                own += ((self._load(topic_id, partition), topic_id, partition) for partition in partitions)
                yield len(partitions)
            for own in held.values():
                own.sort()
                self._loads[number] += sum(place[0] for place in own)
        left = [
            (-self._load(topic_id, partition), topic_id, partition)
            for topic_id, partitions in free.items()
            if topic_id in self._sort
            for partition in partitions
        ]
        yield len(left)
        for load, topic_id, partition in sorted(left):
            self._take(self._least_loaded(self._sort[topic_id]), (-load, topic_id, partition))
            yield 3
        yield from self._even_out()
        return self._shares()

    def _load(self, topic_id: bytes, partition: int) -> float:
        rates = self._rates.get(topic_id, ())
        return self._idle + (rates[partition] if partition < len(rates) else 0.0)

    def _find_sorts(self) -> Work[None]:
        subscribers: dict[frozenset[bytes], list[int]] = {}
        for number, member in enumerate(self._members):
            subscribers.setdefault(member.topics, []).append(number)
        of_topic: dict[bytes, list[int]] = {}
        for number, topics in enumerate(subscribers):
            for topic_id in topics & self._topics.keys():
                of_topic.setdefault(topic_id, []).append(number)
            yield len(topics)
        groups = list(subscribers.values())
        known: dict[tuple[int, ...], int] = {}
        for topic_id, numbers in of_topic.items():
            sort = self._sort[topic_id] = known.setdefault(tuple(numbers), len(known))
            if sort == len(self._takers):
                some = [one for number in numbers for one in groups[number]]
                self._takers.append([(0.0, one) for one in some])
                for one in some:
                    self._sorts[one].append(sort)
                yield len(some)

    def _take(self, member: int, place: _Place) -> None:
        insort(self._held[member].setdefault(self._sort[place[1]], []), place)
        self._loads[member] += place[0]

    def _give(self, member: int, sort: int, at: int) -> _Place:
        place = self._held[member][sort].pop(at)
        load = self._loads[member] = self._loads[member] - place[0]
        for one in self._sorts[member]:
            heappush(self._takers[one], (load, member))
        return place

    def _least_loaded(self, sort: int) -> int:
        """Loads that have grown are corrected where they come up; lower ones are pushed."""
        heap = self._takers[sort]
        while heap[0][0] != self._loads[heap[0][1]]:
            heapreplace(heap, (self._loads[heap[0][1]], heap[0][1]))
        return heap[0][1]

    def _even_out(self) -> Work[None]:
        mean = sum(self._loads) / len(self._loads)
        most, least = mean * (1 + TOLERANCE), mean * (1 - TOLERANCE)
        givers = [(-load, member) for member, load in enumerate(self._loads)]
        heapify(givers)
        while givers:
            load, giver = givers[0]
            best = self._best_move(giver, most, least) if -load == self._loads[giver] else None
            yield 4 + 4 * len(self._sorts[giver])
            if best is None:
                heappop(givers)
                continue
            sort, at, taker = best
            self._take(taker, self._give(giver, sort, at))
            for one in (giver, taker):
                heappush(givers, (-self._loads[one], one))

    def _best_move(self, giver: int, most: float, least: float) -> tuple[int, int, int] | None:
        """Sort and place of the partition that goes, and its taker."""
        load, best, found = self._loads[giver], self._loads[giver], None
        for sort, places in self._held[giver].items():
            taker = self._least_loaded(sort)
            room = load - self._loads[taker]
            if not places or (load <= most and self._loads[taker] >= least):
                continue
            middle = bisect_left(places, (room / 2, b"", 0))
            for at in (middle - 1, middle):
                if 0 <= at < len(places):
                    worse = max(load - places[at][0], self._loads[taker] + places[at][0])
                    if worse < best * (1 - 1e-9):
                        best, found = worse, (sort, at, taker)
        return found

    def _shares(self) -> Shares:
        shares: Shares = {}
        for member, held in zip(self._members, self._held, strict=True):
            own: dict[bytes, list[int]] = {}
            for places in held.values():
                for _, topic_id, partition in places:
                    own.setdefault(topic_id, []).append(partition)
            shares[member.member_id] = {topic_id: frozenset(some) for topic_id, some in own.items()}
        return shares
