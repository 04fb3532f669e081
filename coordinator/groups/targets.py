"""Targets of the groups of the consumer protocol of a shard: when one is due, and who computes it."""

from __future__ import annotations

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS
from ringleader.coordinator.consumer_groups.assignors.model import Shares
from ringleader.coordinator.consumer_groups.member import ConsumerMember
from ringleader.coordinator.consumer_groups.names import is_delegated
from ringleader.coordinator.consumer_groups.target import AssignorError, compute
from ringleader.coordinator.consumer_groups.topics import metadata_hash
from ringleader.coordinator.groups.changes import Changes
from ringleader.coordinator.groups.configs import ASSIGNMENT
from ringleader.coordinator.groups.core import Core, Part
from ringleader.coordinator.groups.delegated import Delegation, Delegations, Fallback, Task
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest


class Targets(Part):
    """Begins group epochs, and gets their targets."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.delegations = Delegations(core)

    def begin_epoch(self, changes: Changes, news: bool) -> None:
        """Begin another group epoch if what the target depends on changed. `news`: a member says so."""
        consumer, name, topics = changes.consumer, changes.consumer.group_id, self.core.topics
        if news or consumer.checked_version != topics.version:
            found = metadata_hash(topics, consumer.subscribed_topics())
            if news or found != consumer.metadata_hash:
                changes.add(records.group_epoch(name, consumer.epoch + 1, found))
            consumer.checked_version = topics.version

    def aim(
        self,
        changes: Changes,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest | None,
        now_ms: int,
    ) -> Task | None:
        """Get the target if it is of an earlier epoch and old enough. The task, if the member is to compute
        it. Raises `AssignorError`."""
        consumer, name = changes.consumer, changes.consumer.group_id
        if consumer.assignment_epoch >= consumer.epoch:
            return None
        unix_ms = self.core.unix_time.stamp_ms(now_ms)
        interval_ms = self.core.config(name, ASSIGNMENT)
        if interval_ms and consumer.assigned_ms <= unix_ms < consumer.assigned_ms + interval_ms:
            return None
        assignor = consumer.preferred_assignor()
        if assignor is None or not is_delegated(assignor):
            self._compute(changes, now_ms)
            return None
        if not consumer.assignment_epoch:
            # The epoch before gives nobody anything: a member has to be in one before it can lead.
            changes.add(records.target_epoch(name, consumer.epoch - 1, 0))
        found = self.delegations.target(changes.group, consumer, assignor, member, request, now_ms)
        if found is Fallback.COMPUTE:
            self._compute(changes, now_ms)
        elif isinstance(found, dict):
            self._install(changes, found, now_ms)
        return found if isinstance(found, Task) else None

    def _compute(self, changes: Changes, now_ms: int) -> None:
        consumer = changes.consumer
        assignor = ASSIGNORS[consumer.server_assignor() or next(iter(ASSIGNORS))]
        self._install(changes, compute(consumer, self.core.topics, assignor), now_ms)

    def _install(self, changes: Changes, shares: Shares, now_ms: int) -> None:
        consumer, name = changes.consumer, changes.consumer.group_id
        for member_id, wanted in shares.items():
            if wanted != consumer.members[member_id].target:
                changes.add(records.target(name, member_id, wanted))
        changes.add(records.target_epoch(name, consumer.epoch, self.core.unix_time.stamp_ms(now_ms)))
        self.delegations.done(changes.group)

    def leader_fired(self, deadline: Delegation, now_ms: int) -> None:
        """The member that was to compute a target has not done so in time."""
        group = self.core.groups.get(deadline.group_id or "")
        if group is None or group.delegation is not deadline:
            return
        if self.delegations.overdue(group, deadline, now_ms):
            changes = Changes(self.core, group)
            try:
                self._compute(changes, now_ms)
            except AssignorError as error:
                self.core.reports.notice(group, "", str(error), now_ms)
            changes.write()
