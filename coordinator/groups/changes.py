"""Changes of a group of the consumer protocol: records that take effect one by one, and are one append."""

from __future__ import annotations

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import Current, Subscription
from ringleader.coordinator.consumer_groups.records import Record
from ringleader.coordinator.consumer_groups.target import Aimed
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.group import Group


class Changes:
    """The records of one event: each takes effect at once, all are written in one append."""

    def __init__(self, core: Core, group: Group) -> None:
        self._core, self.group = core, group
        self._records: list[Record] = []
        self._has_target = self._moves = False

    @property
    def consumer(self) -> ConsumerGroup:
        """The group as it is by now. It may be another object than before: one that loses its only member in
        epoch 0, to a successor, is gone for a moment."""
        group = self.group
        if group.consumer is None:
            group.consumer = ConsumerGroup(group.group_id)
        return group.consumer

    def add(self, *made: Record) -> None:
        """They take effect."""
        if not self._records:
            self._core.begin_change()
        for key, value in made:
            self._moves |= self._core.epochs.about(self.group, key) and value is not None
            self._records.append((key, value))
            self._core.apply(key, value)

    def aim(self, made: list[Aimed]) -> None:
        """Members' targets take effect. They need not be read from their records: a large group has
        thousands."""
        self._has_target = True
        if not made:
            return
        if not self._records:
            self._core.begin_change()
        self._records += (one.record for one in made)
        consumer = self.consumer
        for one in made:
            consumer.aim(one.member.member_id, one.wanted)
        self.group.count_consumer()

    def move(self, member_id: str, after: Current) -> None:
        """A member's partitions and its epoch take effect, likewise: when a large group gets a target, all of
        its members come to be in another epoch."""
        if not self._records:
            self._core.begin_change()
        self._core.epochs.about_member(self.group, member_id)
        self._moves = True
        consumer = self.consumer
        record = records.current(consumer.group_id, member_id, after, consumer.members.get(member_id))
        self._records.append(record)
        consumer.move(member_id, after, record[1] or b"")
        self.group.count_consumer()

    def write(self) -> None:
        """Emit them, if there are any."""
        if not self._records:
            return
        group = self.group
        self._core.write_consumer(group, self._records)
        if self._has_target:
            group.target_position, group.moved_before_target = group.position, group.moved_position
        if self._moves:
            group.moved_position = group.position


def subscribe(changes: Changes, member_id: str, fresh: Subscription) -> bool:
    """The member describes itself; whether it subscribes to other topics than before."""
    consumer = changes.consumer
    member = consumer.members.get(member_id)
    old = Subscription() if member is None else member.subscription
    if member is None or fresh != old:
        changes.add(records.subscription(consumer.group_id, member_id, fresh))
    return fresh.topic_names != old.topic_names or fresh.topic_regex != old.topic_regex


def end_consumer(core: Core, group: Group) -> None:
    """Emit what deletes the group as one of the consumer protocol. Its offsets stay."""
    changes = Changes(core, group)
    changes.add(*records.tombstones(changes.consumer))
    changes.write()
