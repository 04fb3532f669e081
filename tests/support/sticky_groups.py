"""A group as Kafka's tests of its sticky assignors have it: members that say what they own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ringleader.clients.assignors import (
    STICKY,
    Assignment,
    Assignor,
    AssignorMember,
    PartitionRacks,
    sticky_user_data,
)

RACKS = "abcdef"
MAX_ROUNDS = 4
"""A cooperative group settles within; two are the rule."""

Owned = dict[str, list[int]]


def owned(text: str) -> Owned:
    """ "t-0 t-1" as a mapping."""
    found: Owned = {}
    for one in text.split():
        topic, _, partition = one.rpartition("-")
        found.setdefault(topic, []).append(int(partition))
    return found


def flat(share: Mapping[str, Iterable[int]]) -> str:
    """The other way round, sorted."""
    return " ".join(f"{topic}-{partition}" for topic in sorted(share) for partition in sorted(share[topic]))


def replicas(counts: Mapping[str, int], copies: int, racks: int) -> PartitionRacks:
    """Racks of all partitions: replicas go round the brokers, one in each rack, from partition to partition
    and on through the topics. 0 racks: brokers do not say where they are."""
    found, first = {}, 0
    for topic, count in counts.items():
        found[topic] = [
            frozenset(RACKS[(first + p + copy) % racks] for copy in range(copies)) if racks else frozenset()
            for p in range(count)
        ]
        first += count
    return found


class StickyGroup:
    """One group. `racks`: "none", "brokers" (members have none) or "both"; then there are three racks with a
    replica of everything in each, so that they should make no difference."""

    def __init__(self, assignor: Assignor, racks: str = "none", **counts: int) -> None:
        self.assignor = assignor
        self.counts = dict(counts)
        self.members: dict[str, AssignorMember] = {}
        self.shares: Assignment = {}
        self.first_round: Assignment = {}
        """Shares after the first of the rounds that the last `settle` took."""
        self._racks = racks

    def member(self, name: str, topics: str, has: str = "", generation: int = -1) -> None:
        """Join, or join again: its topics, and what it owns since when."""
        own, rack = owned(has), None
        if self._racks == "both":
            rack = RACKS[(list(self.members).index(name) if name in self.members else len(self.members)) % 3]
        data = sticky_user_data(own, generation) if self.assignor is STICKY else None
        self.members[name] = AssignorMember(
            name,
            topics=topics.split(),
            owned={} if self.assignor is STICKY else own,
            generation=generation,
            rack=rack,
            user_data=data,
        )

    def again(self, generation: int = 1, *, topics: str = "") -> None:
        """All that have a share say so, with these topics or those they had."""
        for name, share in self.shares.items():
            if name in self.members:
                before = " ".join(self.members[name].topics)
                self.member(name, topics or before, flat(share), generation)

    def leave(self, *names: str) -> None:
        """They are gone."""
        for name in names:
            del self.members[name]

    def settle(self, generation: int = 100) -> dict[str, str]:
        """Assign until nobody loses anything; check that it is valid at any time and balanced at the end.

        Shares as text by member."""
        for number in range(MAX_ROUNDS):
            self.shares = self.assignor.assign(
                list(self.members.values()),
                self.counts,
                None if self._racks == "none" else replicas(self.counts, 3, 3),
            )
            self._check_valid()
            if not number:
                self.first_round = self.shares
            if not any(self._lost(member) for member in self.members.values()):
                break
            self.again(generation + number)
        else:
            raise AssertionError("no end of rounds")
        self._check_balanced()
        return self.text()

    def text(self) -> dict[str, str]:
        """The shares."""
        return {name: flat(share) for name, share in self.shares.items()}

    def withheld(self) -> str:
        """The partitions that nobody had in the first of the last rounds."""
        wanted = {topic for member in self.members.values() for topic in member.topics}
        free = {(t, p) for t in wanted for p in range(self.counts.get(t, 0))}
        free -= {(t, p) for share in self.first_round.values() for t, ps in share.items() for p in ps}
        return flat({topic: [p for t, p in free if t == topic] for topic, _ in free})

    def sizes(self) -> dict[str, int]:
        """How many partitions each has."""
        return {name: sum(map(len, share.values())) for name, share in self.shares.items()}

    def fully_balanced(self) -> bool:
        """Whether nobody has two more than another."""
        return max(self.sizes().values()) - min(self.sizes().values()) <= 1

    # ---- inside ----

    def _lost(self, member: AssignorMember) -> bool:
        share = self.shares[member.member_id]
        return any(set(ps) - set(share.get(topic, ())) for topic, ps in member.owned.items())

    def _check_valid(self) -> None:
        assert self.shares.keys() == self.members.keys()
        given = [(t, p) for share in self.shares.values() for t, ps in share.items() for p in ps]
        assert len(set(given)) == len(given)
        newest: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for name, member in self.members.items():
            assert set(self.shares[name]) <= set(member.topics)
            for topic, ps in member.owned.items():
                for p in ps:
                    newest.setdefault((topic, p), []).append((member.generation, name))
        for name, share in self.shares.items():
            for topic, ps in share.items():
                for p in ps:
                    claims = newest.get((topic, p), [])
                    last = max(claims, default=(0, name))[0]
                    assert {owner for since, owner in claims if since == last} <= {name}, (
                        "owned by two at once"
                    )

    def _check_balanced(self) -> None:
        sizes = self.sizes()
        wanted = {topic for member in self.members.values() for topic in member.topics}
        assert sum(sizes.values()) == sum(self.counts.get(topic, 0) for topic in wanted)
        for name, share in self.shares.items():
            for other, member in self.members.items():
                assert not set(share) & set(member.topics) or sizes[name] - sizes[other] < 2
