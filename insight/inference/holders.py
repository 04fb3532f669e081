"""Who holds which partition of a group, and who is a member, since when."""

from __future__ import annotations

from typing import Any

from ringleader.insight.history.values import member_of, member_row
from ringleader.insight.inference.facts import Output
from ringleader.insight.model import Gone, Member, MemberSpan, Ownership, Rebalance, TopicPartition

_FREE_MAX = 100_000


class Holders:
    """Spans of members and of ownership, as `Rebalance`s tell them."""

    def __init__(self, group: str, out: list[Output]) -> None:
        self.group = group
        self._out = out
        self._spans: dict[str, tuple[Member, int]] = {}
        self._held: dict[TopicPartition, tuple[str, int, str]] = {}
        self._free: dict[TopicPartition, int] = {}

    def free_since_ms(self, partition: TopicPartition) -> int | None:
        """Since when nobody has a partition that somebody had; None if somebody has it, or never had."""
        return self._free.get(partition)

    def hold(self, rebalance: Rebalance) -> None:
        """What a rebalance changed."""
        at_ms = rebalance.at_ms
        now = {one.member_id: one for one in rebalance.members}
        for member_id in [one for one in self._spans if one not in now]:
            member, since_ms = self._spans.pop(member_id)
            gone = rebalance.left.get(member_id)
            self._out.append(self._span(member, since_ms, at_ms, gone, rebalance.id))
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
        self, member: Member, since_ms: int, until_ms: int, gone: Gone | None, rebalance_id: str
    ) -> MemberSpan:
        return MemberSpan(self.group, member._replace(assigned=()), since_ms, until_ms, gone, rebalance_id)

    def dump(self) -> dict[str, Any]:
        """JSON."""
        return {
            "spans": [[member_row(member), since_ms] for member, since_ms in self._spans.values()],
            "held": [[*partition, *held] for partition, held in self._held.items()],
            "free": [[*partition, since_ms] for partition, since_ms in self._free.items()],
        }

    def load(self, said: dict[str, Any]) -> None:
        """What `dump` made."""
        for row, since_ms in said["spans"]:
            member = member_of(row)
            self._spans[member.member_id] = (member, since_ms)
        self._held = {(topic, number): tuple(held) for topic, number, *held in said["held"]}
        self._free = {(topic, number): since_ms for topic, number, since_ms in said["free"]}
