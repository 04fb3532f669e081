"""A recorded group as all that was written says it, in either protocol: lines of a trace have the rows of its
members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, ConsumerMember, Owned, Target
from ringleader.coordinator.groups.records import (
    decode_group_value,
    decode_reserved_value,
    group_key,
    reserved_key,
)
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.messages import GroupMetadataValue, GroupMetadataValueMemberMetadata
from tests.spec.traces import Line

if TYPE_CHECKING:
    from tests.spec.recorder import RecordedWorld

STATES = ("stable", "unrevoked", "unreleased")
SILENT: Line = {"at": 0, "owned": set()}
EVER = 1
"""Stands for "in whatever epoch": see GoAway in docs/spec."""


class Logged:
    """The group of one world."""

    def __init__(self, world: RecordedWorld) -> None:
        self._world = world
        self._consumer = ConsumerGroup(world.group_id)
        self._classic: GroupMetadataValue | None = None
        self._reserved = 0
        """The last generation of a classic group."""
        self._rows: dict[str, Any] = {}

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self._classic is not None

    @property
    def ids(self) -> set[str]:
        """The ids of its members."""
        classic = self._classic.members if self._classic else ()
        return {*self._consumer.members, *(one.member_id for one in classic)}

    @property
    def away(self) -> set[str]:
        """Likewise of the static members that went away."""
        return {one for one, member in self._consumer.members.items() if member.is_away}

    def apply(self, rows: Any) -> None:
        """Records take effect."""
        for key, value in rows:
            named = records.decode_key(key)
            if key == group_key(self._world.group_id):
                self._classic = None if value is None else decode_group_value(value)
            elif key == reserved_key(self._world.group_id):
                self._reserved = 0 if value is None else decode_reserved_value(value)
            elif named is not None:
                records.apply(self._consumer, named[0], named[2], value)

    def state(self) -> Line:
        """The epochs, the names that are there, and the members that changed since the last call."""
        world, group, value = self._world, self._consumer, self._classic
        names = world.names_of
        rows = {names[one]: self._consumer_row(member) for one, member in group.members.items()}
        epochs, seen = (group.epoch, group.assignment_epoch), world.seen_by[group.metadata_hash]
        if value is not None:
            rows = {names[one.member_id]: self._classic_row(one, value.generation) for one in value.members}
            epochs, seen = (max(self._reserved, value.generation), value.generation), set()
        removed = {one: self.row(None, 0) for one in self._rows.keys() - rows.keys()}
        changed = {one: row for one, row in {**rows, **removed}.items() if row != self._rows.get(one)}
        self._rows = rows
        return {
            "protocol": "consumer" if value is None else "classic",
            "led": value is not None and (value.leader is not None or not value.members),
            "epoch": epochs[0],
            "aim": epochs[1],
            "seen": seen,
            "in": set(rows),
            "away": {names[one] for one in self.away},
            "rows": changed,
        }

    def row(self, member: ConsumerMember | None, life: int) -> Line:
        """A member of the consumer protocol; None: it is not there."""
        names = self._world.place_names

        def epochs(some: Owned) -> dict[str, int]:
            return {
                name: epoch or EVER
                for topic_id, partitions in some.items()
                for number, epoch in partitions.items()
                for name in names(topic_id, (number,))
            }

        def places(some: Target) -> set[str]:
            return {name for topic_id, numbers in some.items() for name in names(topic_id, numbers)}

        found = ConsumerMember("") if member is None else member
        current = found.current
        return {
            "target": places(found.target),
            "at": 0 if current.epoch == AWAY_EPOCH else current.epoch,
            "prev": 0 if current.previous_epoch == AWAY_EPOCH else current.previous_epoch,
            "state": STATES[current.state],
            "life": life,
            "got": epochs(current.assigned),
            "due": epochs(current.pending_revocation),
            "reports": SILENT,
        }

    def _consumer_row(self, member: ConsumerMember) -> Line:
        row, offered = self.row(member, self._world.life_of[member.member_id]), member.subscription.classic
        if offered is not None and self._world.migrates:  # elsewhere it is of no use
            row["reports"] = self._report(offered.protocols[0][1])
        return row

    def _classic_row(self, one: GroupMetadataValueMemberMetadata, generation: int) -> Line:
        given = Assignment.decode(one.assignment).partitions if one.assignment else {}
        row, places = self.row(None, self._world.life_of[one.member_id]), self._places(given)
        row |= {"target": places, "at": generation, "prev": generation}
        return {**row, "got": dict.fromkeys(places, generation), "reports": self._report(one.subscription)}

    def _report(self, metadata: bytes) -> Line:
        subscription = Subscription.decode(metadata)
        return {"at": max(0, subscription.generation), "owned": self._places(subscription.owned_partitions)}

    def _places(self, some: Any) -> set[str]:
        return {
            place
            for name, numbers in some.items()
            if (topic := self._world.topics.named(name)) is not None
            for place in self._world.place_names(topic.topic_id, numbers)
        }
