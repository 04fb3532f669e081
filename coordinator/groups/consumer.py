"""ConsumerGroupHeartbeat (v0, v1; KIP-848): members join, stay, give partitions up, get others, and leave.

One request is one event: all records that it makes are in one append, and its answer waits for them. The
order of the steps is Kafka's (GroupMetadataManager.consumerGroupHeartbeat, 4.3).
"""

from __future__ import annotations

from dataclasses import replace

from ringleader.coordinator.consumer_groups import records, requests
from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import (
    AWAY_EPOCH,
    LEFT_EPOCH,
    ConsumerMember,
    Current,
    MemberState,
    Subscription,
)
from ringleader.coordinator.consumer_groups.reconciliation import reconcile
from ringleader.coordinator.consumer_groups.records import Record
from ringleader.coordinator.consumer_groups.target import AssignorError, compute
from ringleader.coordinator.consumer_groups.topics import metadata_hash
from ringleader.coordinator.groups.core import STORE_FULL, Core, Part
from ringleader.coordinator.groups.deadlines import Kind, MemberDeadline, MemberDeadlines
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.records import group_key
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened
from ringleader.protocol.messages import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class Changes:
    """The records of one event: each takes effect at once, all are written in one append."""

    def __init__(self, core: Core, group: Group) -> None:
        if group.consumer is None:
            group.consumer = ConsumerGroup(group.group_id)
        self._core, self._group = core, group
        self.consumer = group.consumer
        self._records: list[Record] = []

    def add(self, *made: Record) -> None:
        """They take effect."""
        if not self._records:
            self._core.begin_change()
        for key, value in made:
            self._records.append((key, value))
            self._core.apply(key, value)

    def write(self) -> None:
        """Emit them, if there are any."""
        if self._records:
            self._core.write_consumer(self._group, self._records)


class ConsumerHandler(Part):
    """Handles the heartbeats of the consumer protocol for one shard."""

    # ---- requests ----

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """The answer; None while it waits for the records of the request."""
        core = self.core
        try:
            requests.check(request, ticket.api_version, ASSIGNORS)
            if core.refusal:
                raise KafkaError(core.refusal)
            if request.member_epoch < 0:
                response = self._leave(request, now_ms)
            else:
                response = self._stay(request, ticket, now_ms)
        except KafkaError as error:
            response = ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.detail or None
            )
            return core.reply(ticket, response, core.position_of(request.group_id))
        position = core.position_of(request.group_id)
        if response.assignment is None and position <= core.out.durable:
            return response  # a plain success: see `core`
        return core.reply(ticket, response, position)

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        core = self.core
        group = self._group(request)
        try:
            self._check_room(group, request)
            changes = Changes(core, group)
            member_id = request.member_id or core.ids("consumer")
            known = self._find(changes.consumer, member_id, request)
            self._check_regex(changes.consumer, request)
            fresh = requests.described(
                known.subscription if known is not None else Subscription(),
                request,
                ticket.client_id or "",
                ticket.client_host,
            )
            self._check_size(fresh)
        except KafkaError:
            core.forget_if_absent(group)
            raise
        before = known.current.assigned if known is not None else {}
        if group.synced is not None:  # it was a classic one
            changes.add((group_key(group.group_id), None))
        if known is not None and known.member_id != member_id:
            self._replace(group, changes, known, member_id)
        subscription_changed = _subscribe(changes, member_id, fresh)
        member = changes.consumer.member(member_id)
        try:
            self._aim(changes, now_ms, subscription_changed)
        except AssignorError as error:
            changes.write()
            self._arm_session(group, member_id, now_ms)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        self._reconcile(group, changes, member, request, subscription_changed, now_ms)
        changes.write()
        self._arm_session(group, member_id, now_ms)
        return requests.answer(request, member, before, core.settings.group_consumer_heartbeat_interval_ms)

    def _check_room(self, group: Group, request: ConsumerGroupHeartbeatRequest) -> None:
        members = {} if group.consumer is None else group.consumer.members
        bound = self.core.settings.group_consumer_max_size
        if len(members) >= bound and request.member_id not in members:
            text = f"The consumer group has reached its maximum capacity of {bound} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
        if self.core.full:
            raise KafkaError(STORE_FULL)

    def _group(self, request: ConsumerGroupHeartbeatRequest) -> Group:
        """The group, made by a member that joins. A classic group without members becomes one of the consumer
        protocol with the first record."""
        core = self.core
        group = core.find(request.group_id)
        is_classic = group is not None and group.consumer is None
        if group is not None and is_classic and not (group.is_empty and not group.given_out):
            text = f"Group {request.group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        if request.member_epoch != 0 and (group is None or group.consumer is None):
            raise _no_group(request)
        if group is None:
            group = core.find_or_add(request.group_id)
        if group is None:
            text = "The shard has as many groups as it may have."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
        return group

    def _find(
        self, consumer: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerMember | None:
        """The member that the request is of, or whose place it takes; None: a new one. Raises
        `KafkaError`."""
        if request.member_epoch != 0:
            member = _present(consumer, request)
            requests.check_epoch(member, request)
            return member
        instance_id = request.instance_id
        holder = member_id if instance_id is None else consumer.static_members.get(instance_id, member_id)
        known = consumer.members.get(holder)
        if known is None or holder == member_id or known.is_away or known.subscription.classic is not None:
            return known
        text = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {holder} member."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, text)

    def _check_regex(self, consumer: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> None:
        pattern = request.subscribed_topic_regex
        if pattern and pattern not in consumer.regex_subscribers:
            text = "Regular expressions that the server evaluates are not supported yet: name the topics."
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)

    # ---- steps of a heartbeat ----

    def _replace(self, group: Group, changes: Changes, old: ConsumerMember, member_id: str) -> None:
        """A static member is back under another id: it goes on with the partitions of its predecessor."""
        name = group.group_id
        self._forget_deadlines(group, old.member_id)
        changes.add(
            *records.tombstones_of_member(name, old.member_id),
            records.subscription(name, member_id, old.subscription),
            records.target(name, member_id, old.target),
            records.current(name, member_id, replace(old.current, epoch=0, previous_epoch=0)),
        )

    def _check_size(self, fresh: Subscription) -> None:
        size = sum(len(name) + 2 for name in fresh.topic_names) + len(fresh.topic_regex)
        bound = self.core.settings.member_max_metadata_bytes
        if size > bound:
            text = f"The subscription takes {size} bytes, more than member.max.metadata.bytes ({bound})."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)

    def _aim(self, changes: Changes, now_ms: int, subscription_changed: bool) -> None:
        """Begin another group epoch if what the target depends on changed, and compute the target if it is
        old enough. Raises `AssignorError`."""
        consumer, name, topics = changes.consumer, changes.consumer.group_id, self.core.topics
        if subscription_changed or consumer.checked_version != topics.version:
            found = metadata_hash(topics, consumer.subscribed_topics())
            if subscription_changed or found != consumer.metadata_hash:
                changes.add(records.group_epoch(name, consumer.epoch + 1, found))
            consumer.checked_version = topics.version
        if consumer.assignment_epoch >= consumer.epoch:
            return
        unix_ms = self.core.unix_time.stamp_ms(now_ms)
        interval_ms = self.core.settings.group_consumer_assignment_interval_ms
        if interval_ms and consumer.assigned_ms <= unix_ms < consumer.assigned_ms + interval_ms:
            return
        assignor = ASSIGNORS[consumer.preferred_assignor() or next(iter(ASSIGNORS))]
        shares = compute(consumer, topics, assignor)
        for member_id, wanted in shares.items():
            if wanted != consumer.members[member_id].target:
                changes.add(records.target(name, member_id, wanted))
        changes.add(records.target_epoch(name, consumer.epoch, unix_ms))

    def _reconcile(
        self,
        group: Group,
        changes: Changes,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        subscription_changed: bool,
        now_ms: int,
    ) -> None:
        consumer, before = changes.consumer, member.current
        if before.is_stable_at(consumer.assignment_epoch) and not subscription_changed:
            return  # most heartbeats: no set of topics is made for them

        def holder_is_other(topic_id: bytes, partition: int) -> bool:
            return consumer.holder(topic_id, partition) not in (None, member.member_id)

        owned = request.topic_partitions
        after = reconcile(
            before,
            member.target,
            consumer.assignment_epoch,
            self.core.topics.ids(consumer.topic_names(member)),
            holder_is_other,
            None if owned is None else [(one.topic_id, one.partitions) for one in owned],
            subscription_changed=subscription_changed,
        )
        if after == before:
            return
        changes.add(records.current(consumer.group_id, member.member_id, after))
        self._arm_revocation(group, member, after, now_ms)

    # ---- leaving ----

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> ConsumerGroupHeartbeatResponse:
        group = self.core.find(request.group_id)
        consumer = None if group is None else group.consumer
        if group is None or consumer is None:
            raise _no_group(request)
        member = _present(consumer, request)
        if self.core.full:
            raise KafkaError(STORE_FULL)
        if request.member_epoch == LEFT_EPOCH:
            self.remove(group, member)
        else:
            self._go_away(group, member)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _go_away(self, group: Group, member: ConsumerMember) -> None:
        """A static member leaves for a while: it keeps its partitions, and its successor may commit what it
        has read of them (KIP-1251)."""
        kept = {
            topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.current.assigned.items()
        }
        changes = Changes(self.core, group)
        away = replace(member.current, epoch=AWAY_EPOCH, assigned=kept, pending_revocation={})
        changes.add(records.current(group.group_id, member.member_id, away))
        changes.write()
        self.core.deadlines.cancel(self._deadlines(group, member.member_id).revocation)

    def remove(self, group: Group, member: ConsumerMember) -> None:
        """A member is gone: its partitions are free, and the group begins another epoch."""
        changes = Changes(self.core, group)
        consumer, name, pattern = changes.consumer, group.group_id, member.subscription.topic_regex
        self._forget_deadlines(group, member.member_id)
        changes.add(*records.tombstones_of_member(name, member.member_id))
        if pattern in consumer.regexes and pattern not in consumer.regex_subscribers:
            changes.add((records.key(records.REGEX, name, pattern), None))
        found = metadata_hash(self.core.topics, consumer.subscribed_topics())
        changes.add(records.group_epoch(name, consumer.epoch + 1, found))
        changes.write()

    # ---- operators' questions ----

    def describe(self, group_id: str, ticket: Ticket) -> ConsumerGroupDescribeResponseDescribedGroup | None:
        """ConsumerGroupDescribe of one group; None while its records are on the way to the log."""
        core = self.core
        described = ConsumerGroupDescribeResponseDescribedGroup(group_id=group_id)
        if core.refusal:
            described.error_code = core.refusal
            return described
        group = core.find(group_id)
        consumer = None if group is None else group.consumer
        if consumer is None:
            described.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            ending = "not found." if group is None else "is not a consumer group."
            described.error_message = shortened(f"Group {group_id} {ending}")
        else:
            described.group_state = consumer.state.value
            described.group_epoch = consumer.epoch
            described.assignment_epoch = consumer.assignment_epoch
            described.assignor_name = consumer.preferred_assignor() or next(iter(ASSIGNORS))
            described.members = [
                requests.described_member(one, core.topics) for one in consumer.members.values()
            ]
        return core.reply(ticket, described, core.position_of(group_id))

    # ---- time ----

    def loaded(self, group: Group, now_ms: int) -> None:
        """After a load every member has a full session, and a full time for what it still has to give up.
        Raises `TwoHoldersError`."""
        consumer = group.consumer
        if consumer is None:
            return
        consumer.index()
        for member in consumer.members.values():
            self._arm_session(group, member.member_id, now_ms)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                self._arm_revocation(group, member, member.current, now_ms)

    def session_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A member was silent for the session timeout."""
        self._expire(deadline, now_ms)

    def revocation_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A member did not give partitions up within its rebalance timeout."""
        self._expire(deadline, now_ms, deadline.epoch)

    def _expire(self, deadline: MemberDeadline, now_ms: int, epoch: int | None = None) -> None:
        group = self.core.groups.get(deadline.group_id or "")
        if group is None or group.consumer is None:
            return
        member = group.consumer.members.get(deadline.member_id)
        if member is not None and epoch in (None, member.current.epoch):
            self.remove(group, member)

    def _deadlines(self, group: Group, member_id: str) -> MemberDeadlines:
        found = group.consumer_deadlines.get(member_id)
        if found is None:
            found = group.consumer_deadlines[member_id] = MemberDeadlines(
                MemberDeadline(group.group_id, Kind.CONSUMER_SESSION, member_id),
                MemberDeadline(group.group_id, Kind.CONSUMER_REVOCATION, member_id),
            )
        return found

    def _forget_deadlines(self, group: Group, member_id: str) -> None:
        for deadline in group.consumer_deadlines.pop(member_id, ()):
            self.core.deadlines.cancel(deadline)

    def _arm_session(self, group: Group, member_id: str, now_ms: int) -> None:
        due_ms = now_ms + self.core.settings.group_consumer_session_timeout_ms
        self.core.arm(self._deadlines(group, member_id).session, due_ms)

    def _arm_revocation(self, group: Group, member: ConsumerMember, current: Current, now_ms: int) -> None:
        deadline = self._deadlines(group, member.member_id).revocation
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            deadline.epoch = current.epoch
            self.core.arm(deadline, now_ms + max(0, member.subscription.rebalance_timeout_ms))
        else:
            self.core.deadlines.cancel(deadline)


def _subscribe(changes: Changes, member_id: str, fresh: Subscription) -> bool:
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


def _present(consumer: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member that a request is of which does not join. Raises `KafkaError`."""
    if request.instance_id is not None:
        holder = consumer.static_members.get(request.instance_id)
        if holder is None:
            raise _unknown_instance(request.instance_id, consumer)
        if holder != request.member_id:
            raise _fenced_instance(request, holder)
    member = consumer.members.get(request.member_id)
    if member is None:
        raise _unknown(request.member_id, consumer)
    return member


def _unknown(member_id: str, consumer: ConsumerGroup) -> KafkaError:
    text = f"Member {member_id} is not a member of group {consumer.group_id}."
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)


def _no_group(request: ConsumerGroupHeartbeatRequest) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")


def _unknown_instance(instance_id: str, consumer: ConsumerGroup) -> KafkaError:
    text = f"Instance id {instance_id} is unknown in group {consumer.group_id}."
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)


def _fenced_instance(request: ConsumerGroupHeartbeatRequest, holder: str) -> KafkaError:
    text = (
        f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
        f"{holder}."
    )
    return KafkaError(ErrorCode.FENCED_INSTANCE_ID, text)
