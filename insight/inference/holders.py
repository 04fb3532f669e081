"""The members of a group and the owners of its partitions, and since when."""

from __future__ import annotations

from ringleader.insight.inference.facts import Output
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.model import (
    DepartureFinding,
    Member,
    MemberSpan,
    Ownership,
    Rebalance,
    TopicPartition,
)

_FREE_MAX = 100_000


class Holders(Restorable):
    """Spans of members and of ownership, as `Rebalance`s show them."""

    _spans: Kept[dict[str, tuple[Member, int]]]
    """Member id -> the member, and since when."""
    _held: Kept[dict[TopicPartition, tuple[str, int, str]]]
    """Partition -> its owner, since when, and by which rebalance."""
    _free: Kept[dict[TopicPartition, int]]
    """Partition without an owner -> since when."""

    def __init__(self, group: str, out: list[Output]) -> None:
        self.group = group
        self._out = out
        self._spans, self._held, self._free = {}, {}, {}

    def there_since_ms(self, member_id: str) -> int | None:
        """Since when a member is there; None if it is not."""
        found = self._spans.get(member_id)
        return None if found is None else found[1]

    def free_since_ms(self, partition: TopicPartition) -> int | None:
        """The time since which no member has this partition; None if a member has it, or none ever had."""
        return self._free.get(partition)

    def hold(self, rebalance: Rebalance) -> None:
        """Report the spans that a rebalance began and ended."""
        at_ms = rebalance.at_ms
        now = {one.member_id: one for one in rebalance.members}
        for member_id in [one for one in self._spans if one not in now]:
            member, since_ms = self._spans.pop(member_id)
            departure = rebalance.left.get(member_id)
            self._out.append(self._span(member, since_ms, at_ms, departure, rebalance.id))
        for member_id, member in now.items():
            had = self._spans.get(member_id)
            if had is None or had[0] != member:
                since_ms = at_ms if had is None else had[1]
                self._spans[member_id] = (member, since_ms)
                self._out.append(MemberSpan(self.group, member, since_ms, None, None, None))
        idle = {(one.topic, one.partition): one.unowned_ms for one in rebalance.moves}
        has = {partition: one.member_id for one in rebalance.members for partition in one.assigned}
        for partition in [one for one, held in self._held.items() if has.get(one) != held[0]]:
            member_id, since_ms, given = self._held.pop(partition)
            until_ms = max(since_ms, at_ms - (idle.get(partition) or 0))
            self._out.append(Ownership(self.group, *partition, member_id, since_ms, until_ms, given))
            if partition not in has and len(self._free) < _FREE_MAX:
                self._free[partition] = until_ms
        for partition, member_id in has.items():
            self._free.pop(partition, None)
            if partition not in self._held:
                self._held[partition] = (member_id, at_ms, rebalance.id)
                self._out.append(Ownership(self.group, *partition, member_id, at_ms, None, rebalance.id))

    def end(self, at_ms: int) -> None:
        """The group is deleted."""
        for member, since_ms in self._spans.values():
            self._out.append(
                MemberSpan(self.group, member._replace(assigned=()), since_ms, at_ms, None, None)
            )
        for partition, (member_id, since_ms, given) in self._held.items():
            self._out.append(Ownership(self.group, *partition, member_id, since_ms, at_ms, given))
        self._spans, self._held, self._free = {}, {}, {}

    def _span(
        self,
        member: Member,
        since_ms: int,
        until_ms: int,
        departure: DepartureFinding | None,
        rebalance_id: str,
    ) -> MemberSpan:
        return MemberSpan(
            self.group, member._replace(assigned=()), since_ms, until_ms, departure, rebalance_id
        )
