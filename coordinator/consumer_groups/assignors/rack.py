"""`rack`: the loads are those of `uniform`, and as many partitions as possible are near their members.

Ours; Apache Kafka's own assignors of the coordinator do not look at racks. A partition is near a member if
one of its replicas is in the member's rack (`RackId` of the heartbeat, `client.rack` of a consumer).

It begins with what `uniform` makes, balanced and with few moves, and lets members exchange partitions: no
member ends with more or fewer. Members of one rack with the same topics are one kind, and partitions that the
same kinds may have, and have near, are of one sort. An exchange is a ring of kinds, each of which hands a
partition to the next one, so that more are near than before. Where there is no such ring, no assignment with
these loads has more of them near. At last members exchange partitions of one sort, so that those come back
to the members that had them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ringleader.coordinator.consumer_groups.assignors import uniform
from ringleader.coordinator.consumer_groups.assignors.model import Candidate, Facts, Shares, Work

KINDS_MAX = 48
"""Of members, the most numerous ones: those of others keep what `uniform` gives them."""

_Sort = tuple[int, ...]
"""By kind: 1, its members have such a partition near; 0, they may have it; -1, they may not."""
_Held = tuple[str, bytes, int]
"""A member that has a partition: its id, topic id and number."""
_Kind = tuple[str, frozenset[bytes]]
"""The rack of members, and their topics."""
_Edge = tuple[int, _Sort]

_NOT = -1
_MORE = 2 * KINDS_MAX
"""The worth of a partition that is near, more than all others of a ring that move for it."""


def assign(members: list[Candidate], topics: Mapping[bytes, int], facts: Facts) -> Work[Shares]:
    """See `model.Assignor`."""
    shares = yield from uniform.assign(members, topics, facts)
    if facts.racks and any(one.rack for one in members):
        yield from _Exchange(members, shares, facts).run()
    return shares


class _Exchange:
    """Changes shares, whose members keep their loads."""

    def __init__(self, members: list[Candidate], shares: Shares, facts: Facts) -> None:
        self._shares, self._facts = shares, facts
        self._members = {one.member_id: one for one in members}
        common = Counter((one.rack or "", one.topics) for one in members).most_common(KINDS_MAX)
        self._kinds: list[_Kind] = [kind for kind, _ in common]
        self._number = {kind: number for number, kind in enumerate(self._kinds)}
        self._held: list[dict[_Sort, tuple[list[_Held], list[_Held]]]] = [{} for _ in self._kinds]
        """By kind and sort: the partitions that came to their members only now, and those that they had."""
        self._edges: list[list[_Edge | None]] = [[None] * len(self._kinds) for _ in self._kinds]
        """From kind to kind: the worth of the best partition that may move, and its sort."""

    def run(self) -> Work[None]:
        """Exchange until nothing is better."""
        yield from self._sort()
        for kind in range(len(self._kinds)):
            self._look(kind)
            yield len(self._held[kind]) * len(self._kinds)
        rings = 0
        while ring := self._ring():
            rings += 1
            yield len(self._kinds) ** 2
            yield from self._go_round(ring)
        if rings:
            yield from self._give_back()
            yield from self._write()

    def _kind(self, member_id: str) -> int | None:
        one = self._members[member_id]
        return self._number.get((one.rack or "", one.topics))

    def _sort(self) -> Work[None]:
        sorts: dict[tuple[bytes, frozenset[str]], _Sort] = {}
        nowhere = frozenset[str]()
        for member_id, own in self._shares.items():
            kind = self._kind(member_id)
            if kind is None:
                continue
            held, target = self._held[kind], self._members[member_id].target
            for topic_id, partitions in own.items():
                racks, had = self._facts.racks.get(topic_id, ()), target.get(topic_id, ())
                for partition in partitions:
                    where = racks[partition] if partition < len(racks) else nowhere
                    sort = sorts.get((topic_id, where))
                    if sort is None:
                        sort = sorts[topic_id, where] = tuple(self._worth(topic_id, where))
                    held.setdefault(sort, ([], []))[partition in had].append((member_id, topic_id, partition))
                yield 1 + len(partitions)

    def _worth(self, topic_id: bytes, where: frozenset[str]) -> Iterator[int]:
        for rack, topics in self._kinds:
            yield int(rack in where) if topic_id in topics else _NOT

    def _look(self, giver: int) -> None:
        """Find the best that a kind can hand to each of the others. Rather what its members have not had."""
        edges: list[_Edge | None] = [None] * len(self._kinds)
        for sort, (fresh, own) in self._held[giver].items():
            if not fresh and not own:
                continue
            for taker, worth in enumerate(sort):
                if worth != _NOT and taker != giver:
                    gain = (worth - sort[giver]) * _MORE - (not fresh)
                    known = edges[taker]
                    if known is None or gain > known[0]:
                        edges[taker] = gain, sort
        self._edges[giver] = edges

    def _ring(self) -> list[tuple[int, int, _Sort]]:
        """A ring that gains something: from, to, and the sort of the partition (Bellman and Ford)."""
        count = len(self._kinds)
        best, before = [0] * count, [-1] * count
        last = -1
        for _ in range(count):
            last = -1
            for giver, edges in enumerate(self._edges):
                for taker, edge in enumerate(edges):
                    if edge is not None and best[giver] + edge[0] > best[taker]:
                        best[taker], before[taker], last = best[giver] + edge[0], giver, taker
            if last < 0:
                return []
        for _ in range(count):
            last = before[last]
        ring, taker = [], last
        while True:
            giver = before[taker]
            edge = self._edges[giver][taker]
            assert edge is not None
            ring.append((giver, taker, edge[1]))
            taker = giver
            if taker == last:
                return ring

    def _go_round(self, ring: list[tuple[int, int, _Sort]]) -> Work[None]:
        """As often as all have such partitions. The member that hands one on gets the one from before."""
        times = min(
            len(fresh) or len(own) for giver, _, sort in ring for fresh, own in (self._held[giver][sort],)
        )
        for _ in range(times):
            given: dict[int, _Held] = {}
            for giver, _, sort in ring:
                fresh, own = self._held[giver][sort]
                given[giver] = (fresh or own).pop()
            for giver, taker, sort in ring:
                self._put(taker, sort, given[taker][0], given[giver])
            yield 3 * len(ring)
        for giver, _, _ in ring:
            self._look(giver)

    def _put(self, kind: int, sort: _Sort, member_id: str, held: _Held) -> None:
        _, topic_id, partition = held
        had = partition in self._members[member_id].target.get(topic_id, ())
        self._held[kind].setdefault(sort, ([], []))[had].append((member_id, topic_id, partition))

    def _give_back(self) -> Work[None]:
        """Of two members with partitions of one sort one may have what the other one had before: they
        exchange them, and as many are near as before."""
        before: dict[tuple[bytes, int], str] = {}
        for member in self._members.values():
            for topic_id, partitions in member.target.items():
                before.update(((topic_id, partition), member.member_id) for partition in partitions)
                yield len(partitions)
        for sort in dict.fromkeys(sort for held in self._held for sort in held):
            lists = [held[sort][0] for held in self._held if sort in held]
            fresh = [one for some in lists for one in some]
            places: dict[str, dict[int, None]] = {}
            for place, (member_id, _, _) in enumerate(fresh):
                places.setdefault(member_id, {})[place] = None
            for place, (member_id, topic_id, partition) in enumerate(fresh):
                former = before.get((topic_id, partition), member_id)
                if former != member_id and places.get(former):
                    other, _ = places[former].popitem()
                    fresh[place] = former, topic_id, partition
                    fresh[other] = member_id, *fresh[other][1:]
                    del places[member_id][place]
                    places[member_id][other] = None
            for some in lists:
                some[:], fresh = fresh[: len(some)], fresh[len(some) :]
                yield len(some)

    def _write(self) -> Work[None]:
        made: dict[str, dict[bytes, list[int]]] = {}
        for held in self._held:
            for lists in held.values():
                for some in lists:
                    for member_id, topic_id, partition in some:
                        made.setdefault(member_id, {}).setdefault(topic_id, []).append(partition)
                    yield len(some)
        for member_id, own in made.items():
            self._shares[member_id] = {topic_id: frozenset(some) for topic_id, some in own.items()}
            yield len(own)
