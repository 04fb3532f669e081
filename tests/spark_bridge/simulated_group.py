"""A consumer group in memory, eager or cooperative, whose members belong to streaming queries.

It moves in steps and only on demand, so that a test can cut in anywhere: between the joins and the shares of
a rebalance, while a member holds on to what a batch reads, and after a member was put out that does not know
it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.group.membership import (
    CommitRefusedError,
    GroupUnavailableError,
    MemberCommit,
    Ownership,
)
from ringleader.spark_bridge.values import Committed, CommitToken

Check = Callable[[dict[TopicPartition, int]], None]


@dataclass(eq=False)
class Member:
    """One member. ``owned``: what it takes for its own. ``generation``: what it is in, its share included
    or not yet."""

    name: str
    index: int
    ownership: Ownership
    generation: int = -1
    owned: frozenset[TopicPartition] = frozenset()
    joined: bool = False
    out: bool = False
    target: frozenset[TopicPartition] = frozenset()
    moving: frozenset[TopicPartition] | None = None
    giving_up: Future[None] | None = None

    def lose(self, partitions: frozenset[TopicPartition] | None) -> None:
        self.ownership.lost(self.index, partitions)


@dataclass
class Group:
    """Offsets, generation, and who is in. ``on_commit`` sees each commit before it is made."""

    partitions: list[TopicPartition]
    cooperative: bool
    on_commit: Check = lambda _: None
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    tokens: dict[TopicPartition, CommitToken | None] = field(default_factory=dict)
    generation: int = 0
    members: list[Member] = field(default_factory=list)
    joining: bool = False
    syncing: bool = False

    def rebalance(self) -> None:
        if not self.joining:
            self.joining, self.syncing = True, False
            for member in self.members:
                member.joined = False

    def add(self, member: Member) -> None:
        member.out = False
        self.members.append(member)
        self.rebalance()
        member.joined = True

    def remove(self, member: Member) -> None:
        if member in self.members:
            self.members.remove(member)
            self.rebalance()

    def settle(self) -> None:
        """Go on as far as the members let it, but never from the joins right to the shares."""
        if self.syncing:
            self.syncing = False
            for member in self.members:
                self._share(member)
        for member in self.members:
            self._give_up(member)
        if self.joining:
            for member in self.members:
                self._join(member)
            if all(member.joined for member in self.members):
                self._elect()
        self._nobody_shares_a_partition()

    def expire(self) -> None:
        """A member that still holds on to a partition that was asked for loses it."""
        for member in self.members:
            if member.giving_up is None or member.giving_up.done():
                continue
            member.lose(member.moving)
            member.giving_up = Future()
            member.giving_up.set_result(None)
            self._give_up(member)

    def fence(self, member: Member) -> None:
        """The group puts it out; it hears of that later, see ``notice``."""
        if member in self.members:
            member.out = True
            self.remove(member)

    def notice(self, member: Member) -> None:
        """It hears that it was put out, and joins again."""
        if not member.out:
            return
        member.lose(None)
        member.owned, member.giving_up, member.moving, member.generation = frozenset(), None, None, -1
        self.add(member)

    def stable(self) -> bool:
        return not self.joining and not self.syncing and all(m.giving_up is None for m in self.members)

    # -- steps of a rebalance

    def _join(self, member: Member) -> None:
        if member.joined or member.giving_up is not None:
            return
        if self.cooperative or not member.owned:
            member.joined = True
        else:
            member.moving = None
            member.giving_up = member.ownership.revoke(member.index, member.generation)
            self._give_up(member)

    def _give_up(self, member: Member) -> None:
        if member.giving_up is None or not member.giving_up.done():
            return
        member.giving_up = None
        if member.moving is None:
            member.owned, member.joined = frozenset(), True
        else:
            member.moving = None
            self._take(member)
            self.rebalance()
            member.joined = True

    def _elect(self) -> None:
        self.joining, self.syncing = False, True
        self.generation += 1
        taken = {tp: member for member in self.members for tp in member.owned}
        for place, member in enumerate(self.members):
            member.generation = self.generation
            ideal = {tp for n, tp in enumerate(self.partitions) if n % len(self.members) == place}
            member.target = frozenset(tp for tp in ideal if taken.get(tp, member) is member)

    def _share(self, member: Member) -> None:
        moving = member.owned - member.target
        if moving:
            member.moving = moving
            member.giving_up = member.ownership.revoke(member.index, member.generation, moving)
        else:
            self._take(member)

    def _take(self, member: Member) -> None:
        member.owned = member.target
        member.ownership.assigned(member.index, member.generation, member.name, member.target)

    def _nobody_shares_a_partition(self) -> None:
        """Of the members that the group counts, each partition belongs to one at most, in every moment."""
        held = [tp for member in self.members for tp in _all_of(member)]
        assert len(held) == len(set(held)), "a partition is with two members"


def _all_of(member: Member) -> list[TopicPartition]:
    """The partitions that its query has through this member, those included that wait for a batch."""
    state = member.ownership._state
    return [tp for tp, own in state.owned.items() if own.index == member.index]


class Members:
    """The members of one query's process, as the driver wants them."""

    def __init__(self, group: Group, name: str) -> None:
        self._group = group
        self._name = name
        self.members: list[Member] = []
        self.departed = False

    def empty(self) -> bool:
        return not self._group.members

    def start(self, ownership: Ownership, alone: bool) -> None:
        self.members = [
            Member(f"{self._name}-{index}", index, ownership) for index in range(ownership.member_count)
        ]
        for member in self.members:
            self._group.add(member)

    def commit(
        self, parts: Sequence[MemberCommit]
    ) -> list[CommitRefusedError | GroupUnavailableError | None]:
        return [self._commit(part) for part in parts]

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        offsets, tokens = self._group.offsets, self._group.tokens
        return {tp: Committed(offsets[tp], tokens.get(tp)) for tp in partitions if tp in offsets}

    def grow(self, member_count: int) -> None:
        ownership = self.members[0].ownership
        ownership.grow(member_count)
        for index in range(len(self.members), member_count):
            self.members.append(Member(f"{self._name}-{index}", index, ownership))
            self._group.add(self.members[-1])

    def rebalance(self, reason: str) -> None:
        raise AssertionError("there are no new partitions here")

    def stable(self) -> bool:
        return self._group.stable() and not any(member.out for member in self.members)

    def newest_generation(self) -> int:
        return max((member.generation for member in self.members), default=-1)

    def others(self) -> list[str]:
        return [member.name for member in self._group.members if member not in self.members]

    def leave(self, reason: str, for_good: bool = False) -> None:
        self.departed = True
        for member in self.members:
            self._group.remove(member)

    def everybody_here(self) -> bool:
        return all(member.ownership._members[member.index].has_assignment for member in self.members)

    def _commit(self, part: MemberCommit) -> CommitRefusedError | GroupUnavailableError | None:
        member = self.members[part.index]
        if member.out:
            self._group.notice(member)
            return CommitRefusedError("put out")
        if self._group.syncing or part.generation != self._group.generation:
            return CommitRefusedError("another generation, or between two")
        self._group.on_commit(dict(part.offsets))
        self._group.offsets.update(part.offsets)
        self._group.tokens.update(dict.fromkeys(part.offsets, part.token))
        return None
