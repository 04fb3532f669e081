"""ConsumerGroupHeartbeat (v0, v1; KIP-848): members join, stay, give partitions up, get others, and leave.

One request is one event: all records that it makes are in one append, and its answer waits for them. The
order of the steps is Kafka's (GroupMetadataManager.consumerGroupHeartbeat, 4.3). Members of the classic
protocol in such a group: see `mixed`; a group that changes its protocol: see `migration`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ringleader.coordinator.consumer_groups import records, requests
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import (
    AWAY_EPOCH,
    LEFT_EPOCH,
    ConsumerMember,
    Current,
    MemberState,
    Subscription,
)
from ringleader.coordinator.consumer_groups.names import is_delegated
from ringleader.coordinator.consumer_groups.reconciliation import Reported, reconcile
from ringleader.coordinator.consumer_groups.target import AssignorError
from ringleader.coordinator.groups.changes import Changes, subscribe
from ringleader.coordinator.groups.configs import HEARTBEAT
from ringleader.coordinator.groups.core import STORE_FULL
from ringleader.coordinator.groups.deadlines import Kind, MemberDeadline, MemberDeadlines
from ringleader.coordinator.groups.delegated import Task
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.migration import downgraded, is_done, upgraded
from ringleader.coordinator.groups.patterns import Patterns
from ringleader.coordinator.groups.rates import Rates
from ringleader.coordinator.groups.rebalance import Membership, Rebalances
from ringleader.coordinator.groups.records import encode_group_value, group_key
from ringleader.coordinator.groups.steady import is_calm, is_put_off
from ringleader.coordinator.groups.targets import Targets
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.coordinator.journal.entries import Cause, Departure
from ringleader.coordinator.machine import Phase, Ticket
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened
from ringleader.protocol.messages import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    GroupMetadataValue,
)

Downgraded = tuple[GroupMetadataValue, list[Member]]
"""See `migration.downgraded`."""


class ConsumerHandler(Membership):
    """Handles the heartbeats of the consumer protocol for one shard, and what happens to its groups."""

    def __init__(self, rebalances: Rebalances) -> None:
        super().__init__(rebalances)
        self.targets = Targets(self.core)
        self.rates = Rates(self.core)
        self.patterns = Patterns(self.core)

    # ---- requests ----

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """The answer; None while it waits for the records of the request."""
        core = self.core
        try:
            response = self._step(request, ticket, now_ms)
            if response is None:
                requests.check(request, ticket.api_version, core.settings.group_consumer_assignors)
                if core.refusal:
                    raise KafkaError(core.refusal)
                if core.full and (still := self.keep_alive(request, now_ms)) is not None:
                    return still
                if request.member_epoch < 0:
                    response = self._leave(request, now_ms)
                else:
                    response = self._stay(request, ticket, now_ms)
        except KafkaError as error:
            response = ConsumerGroupHeartbeatResponse(0, error.code, error.detail or None)
            core.reports.refused_heartbeat(request, ticket, error.code, now_ms)
            return core.reply(ticket, response, core.position_of(request.group_id))
        position = core.position_of(request.group_id)
        news = response.assignment is not None or response.leader_task is not None
        if not news and (position <= core.out.durable or self._is_put_off(request)):
            return response  # a plain success: see `core`
        return core.reply(ticket, response, position)

    def _is_put_off(self, request: ConsumerGroupHeartbeatRequest) -> bool:
        group = self.core.groups.get(request.group_id)
        consumer = None if group is None else group.consumer
        member = None if consumer is None else consumer.members.get(request.member_id)
        if group is None or consumer is None or member is None:
            return False
        return member.current.epoch == request.member_epoch and is_put_off(self.core, group, consumer, member)

    def keep_alive(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """The plain success of a heartbeat that brings no news, while nothing can be written: the member goes
        on as it did. None for any other."""
        group = self.core.find(request.group_id)
        consumer = None if group is None else group.consumer
        if group is None or consumer is None or not requests.is_plain(request):
            return None
        member_id, instance_id = request.member_id, request.instance_id
        member = consumer.members.get(member_id)
        known = instance_id is None or consumer.static_members.get(instance_id) == member_id
        if member is None or not known or member.current.epoch != request.member_epoch:
            return None
        self.arm_session(group, member, now_ms)
        interval_ms = self.core.config(group.group_id, HEARTBEAT)
        return requests.answer(request, member, member.current.assigned, interval_ms, None)

    def _step(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """The answer to most heartbeats of a rebalance: the member says only that it is there, and perhaps
        what it owns, and takes its own step towards the target. None: it is another one, see `_stay`."""
        core, member_id, epoch = self.core, request.member_id, request.member_epoch
        group = core.groups.get(request.group_id)
        consumer = None if group is None else group.consumer
        if group is None or consumer is None or core.full or core.phase is not Phase.SERVING:
            return None
        member, instance_id = consumer.members.get(member_id), request.instance_id
        if member is None or member.current.epoch != epoch or not requests.is_report(request):
            return None
        if instance_id is not None and consumer.static_members.get(instance_id) != member_id:
            return None
        described, client = member.subscription, (ticket.client_id or "", ticket.client_host)
        if described.classic is not None or (described.client_id, described.client_host) != client:
            return None
        if not is_calm(core, group, consumer, now_ms):
            return None
        before, changes = member.current.assigned, Changes(core, group)
        self.arm_session(group, member, now_ms)
        owned = _reported(request)
        self.reconcile(group, changes, member, owned, False, now_ms, may_wait=owned is None)
        changes.write()
        return requests.answer(request, member, before, self.targets.interval_ms(group), None)

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        core = self.core
        group = self._group(request)
        try:
            consumer = self._consumer(group)
            self.check_room(consumer, request.member_id)
            member_id = request.member_id or core.ids("consumer")
            known = self._find(consumer, member_id, request)
            resolved_ms = consumer.resolved_ms
            self.patterns.check(consumer, request.subscribed_topic_regex or "")
            old = known.subscription if known is not None else Subscription()
            fresh = requests.described(
                old, request, ticket.client_id or "", ticket.client_host, ticket.principal
            )
            if fresh is not old:
                self._check_size(fresh)
                self.check_memory(group, consumer, known, member_id, fresh, now_ms)
        except KafkaError:
            core.forget_if_absent(group)
            raise
        before = known.current.assigned if known is not None else {}
        unfinished = group.consumer is None and not is_done(group, consumer, core.topics)
        changes = self._begin(group, consumer, now_ms)
        if known is not None and known.subscription.classic is not None:  # it is none any more
            self._forget_deadlines(group, known.member_id)
        if known is not None and known.member_id != member_id:
            self.replace(group, changes, known, member_id)
        subscription_changed = reads_others = False
        if fresh is not old:
            subscription_changed = subscribe(changes, member_id, fresh)
            reads_others = self.patterns.subscribed(changes, old, fresh)
            reads_others |= fresh.topic_names != old.topic_names
        delegates = is_delegated(changes.consumer.preferred_assignor())
        user_data_changed = delegates and fresh.leader_user_data != old.leader_user_data
        member = changes.consumer.member(member_id)
        self.arm_session(group, member, now_ms)
        self.rates.look(group, now_ms)
        reported = _reported(request)
        self.targets.delegations.heard(group, member_id, request)
        self.targets.begin_epoch(changes, reads_others or user_data_changed or unfinished)
        task = self.advance(group, changes, member, reported, subscription_changed, now_ms, request)
        self.patterns.look(group, resolved_ms, now_ms)
        return requests.answer(request, member, before, self.targets.interval_ms(group), task)

    def check_room(self, consumer: ConsumerGroup, member_id: str) -> None:
        """Raises `KafkaError` if there is no room for a member that is not in the group, or for a record."""
        bound = self.core.settings.group_consumer_max_size
        if len(consumer.members) >= bound and member_id not in consumer.members:
            text = f"The consumer group has reached its maximum capacity of {bound} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
        if self.core.full:
            raise KafkaError(STORE_FULL)

    def _group(self, request: ConsumerGroupHeartbeatRequest) -> Group:
        """The group, made by a member that joins; perhaps still a classic one."""
        core = self.core
        group = core.find(request.group_id)
        if request.member_epoch != 0 and (group is None or group.consumer is None):
            raise _no_group(request) if group is None else _no_consumer_group(request)
        if group is None:
            group = core.find_or_add(request.group_id)
        if group is None:
            text = "The shard has as many groups as it may have."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
        return group

    def _consumer(self, group: Group) -> ConsumerGroup:
        """The group as one of the consumer protocol, which it may have to become. Raises `KafkaError`."""
        if group.consumer is not None:
            return group.consumer
        if group.is_empty:
            return ConsumerGroup(group.group_id)
        return upgraded(group, self.core.settings, self.core.topics)

    def _begin(self, group: Group, consumer: ConsumerGroup, now_ms: int) -> Changes:
        """Begin to write to the group, which becomes what `_consumer` said of it. The requests in which its
        classic members wait are answered that they have to join again."""
        core, was_classic = self.core, group.consumer is None
        changes = Changes(core, group)
        if not was_classic:
            return changes
        if group.synced is not None:
            changes.add((group_key(group.group_id), None))
        self.rebalances.end_classic(group, now_ms)
        if consumer.exists:
            changes.add(*records.all_records(consumer))
        for member in consumer.members.values():
            self.arm_session(group, member, now_ms)
        return changes

    def _find(
        self, consumer: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerMember | None:
        """The member that the request is of, or whose place it takes; None: a new one. Raises
        `KafkaError`."""
        if request.member_epoch != 0:
            member = requests.present(consumer, request.member_id, request.instance_id)
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

    # ---- steps of a heartbeat ----

    def replace(self, group: Group, changes: Changes, old: ConsumerMember, member_id: str) -> None:
        """A static member is back under another id: it goes on with the partitions of its predecessor."""
        name = group.group_id
        self._forget_deadlines(group, old.member_id)
        self.targets.delegations.left(group, old.member_id)
        changes.add(
            *records.tombstones_of_member(name, old.member_id),
            records.subscription(name, member_id, old.subscription),
            records.target(name, member_id, old.target),
            records.current(name, member_id, replace(old.current, epoch=0, previous_epoch=0)),
        )

    def _check_size(self, fresh: Subscription) -> None:
        size = sum(len(name) + 2 for name in fresh.topic_names) + len(fresh.topic_regex)
        size += len(fresh.leader_user_data or b"")
        bound = self.core.settings.member_max_metadata_bytes
        if size > bound:
            text = f"The subscription takes {size} bytes, more than member.max.metadata.bytes ({bound})."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)

    def check_memory(
        self,
        group: Group,
        consumer: ConsumerGroup,
        known: ConsumerMember | None,
        member_id: str,
        fresh: Subscription,
        now_ms: int,
    ) -> None:
        """Raises `KafkaError` for a member, or a larger subscription, that there is no memory for. `known`:
        the member, or the one whose place it takes."""
        more = consumer.growth(known, member_id, fresh, self.core.topics)
        if not self.core.has_memory(group, member_id, now_ms, consumer=more):
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, "All memory for groups is taken.")

    def advance(
        self,
        group: Group,
        changes: Changes,
        member: ConsumerMember,
        owned: Reported | None,
        subscription_changed: bool,
        now_ms: int,
        request: ConsumerGroupHeartbeatRequest | None = None,
    ) -> Task | None:
        """The group's target if it is due, then the member's step towards it, and all is written. `owned`:
        what the member reports. `request`: None of a classic member. The task, if the member is to compute
        the target. Raises `KafkaError` if there is no target: then what came before is written."""
        try:
            task = self.targets.aim(changes, member, request, now_ms)
        except AssignorError as error:
            changes.write()
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        self.reconcile(group, changes, member, owned, subscription_changed, now_ms)
        changes.write()
        return task

    def reconcile(
        self,
        group: Group,
        changes: Changes,
        member: ConsumerMember,
        owned: Reported | None,
        subscription_changed: bool,
        now_ms: int,
        *,
        may_wait: bool = False,
    ) -> None:
        """One step of the member towards its target. `owned`: what it reports. `may_wait`: there is
        none while the target is on its way to the log, if the member keeps the partitions that it has: those
        that give some up, or get some, do not stand behind the steps and records of a thousand others."""
        consumer, before = changes.consumer, member.current
        if before.is_stable_at(consumer.assignment_epoch) and not subscription_changed:
            return  # most heartbeats: no set of topics is made for them
        if may_wait and group.target_position > self.core.out.durable and consumer.keeps(member):
            return

        def holder_is_other(topic_id: bytes, partition: int) -> bool:
            return consumer.holder(topic_id, partition) not in (None, member.member_id)

        after = reconcile(
            before,
            member.target,
            consumer.assignment_epoch,
            self.core.topics.ids(consumer.topic_names(member)),
            holder_is_other,
            owned,
            subscription_changed=subscription_changed,
        )
        if after == before:
            return
        changes.move(member.member_id, after)
        if member.subscription.classic is None:  # classic ones have to join and to sync in time instead
            self._arm_revocation(group, member, after, now_ms)

    # ---- leaving ----

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> ConsumerGroupHeartbeatResponse:
        group = self.core.find(request.group_id)
        consumer = None if group is None else group.consumer
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        if consumer is None:
            raise _no_consumer_group(request)
        member = requests.present(consumer, request.member_id, request.instance_id)
        if self.core.full:
            raise KafkaError(STORE_FULL)
        if request.member_epoch == LEFT_EPOCH:
            self.remove(group, [member], Departure.LEFT, now_ms)
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
        self.targets.delegations.left(group, member.member_id)
        self.core.deadlines.cancel(self.deadlines(group, member.member_id).revocation)

    def remove(
        self,
        group: Group,
        members: Collection[ConsumerMember],
        why: Departure,
        now_ms: int,
        reason: str = "",
    ) -> None:
        """Members are gone: their partitions are free, and the group begins another epoch. If only classic
        ones stay, it is a classic group again, and rebalances. `why` and `reason`: for the journal."""
        for member in members:
            due_ms = self.deadlines(group, member.member_id).session.due_ms
            self.core.epochs.going(group, member, why, due_ms, now_ms)
        changes = Changes(self.core, group)
        consumer, name = changes.consumer, group.group_id
        departed = [one.member_id for one in members]
        found = self.downgraded(consumer, departed, consumer.epoch, None, now_ms)
        if found is not None:
            self.downgrade(group, changes, found, now_ms)
            text = f"the last member of the consumer protocol is gone: {reason or why.value}"
            self.rebalances.start(group, Cause.DOWNGRADED, departed[0], text, now_ms)
            return
        for member in members:
            pattern = member.subscription.topic_regex
            self._forget_deadlines(group, member.member_id)
            self.targets.delegations.left(group, member.member_id)
            changes.add(*records.tombstones_of_member(name, member.member_id))
            self.patterns.forget(changes, pattern)
        hashed = self.core.topics.metadata_hash(consumer.all_topics())
        changes.add(records.group_epoch(name, consumer.epoch + 1, hashed))
        changes.write()

    def downgraded(
        self,
        consumer: ConsumerGroup,
        departed: Collection[str],
        generation: int,
        leader: str | None,
        now_ms: int,
    ) -> Downgraded | None:
        """See `migration.downgraded`."""
        core = self.core
        unix_ms = core.unix_time.stamp_ms(now_ms)
        return downgraded(consumer, departed, generation, core.settings, core.topics, unix_ms, leader)

    def downgrade(self, group: Group, changes: Changes, found: Downgraded, now_ms: int) -> None:
        """The group is a classic one from here on, in a stable generation."""
        value, members = found
        self.targets.delegations.done(group)
        for member_id in list(group.consumer_deadlines):
            self._forget_deadlines(group, member_id)
        changes.add(*records.tombstones(changes.consumer))
        changes.add((group_key(group.group_id), encode_group_value(value)))
        changes.write()
        for member in members:
            group.add(member, CONSUMER_TYPE)
            self.core.arm_session(member, now_ms)
        group.follow_record()
        group.last_generation = max(group.last_generation, group.generation)

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
        if not group_id:
            described.error_code = int(ErrorCode.INVALID_GROUP_ID)
        elif consumer is None:
            described.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            ending = "not found." if group is None else "is not a consumer group."
            described.error_message = shortened(f"Group {group_id} {ending}")
        else:
            described.group_state = consumer.state.value
            described.group_epoch = consumer.epoch
            described.assignment_epoch = consumer.assignment_epoch
            described.assignor_name = (
                consumer.preferred_assignor() or core.settings.group_consumer_assignors[0]
            )
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
            self.arm_session(group, member, now_ms)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                self._arm_revocation(group, member, member.current, now_ms)

    def session_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A member was silent for the session timeout."""
        self._expire(deadline, Departure.SESSION_EXPIRED, now_ms)

    def revocation_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A member did not give partitions up within its rebalance timeout."""
        self._expire(deadline, Departure.NOT_REVOKED, now_ms, deadline.epoch)

    def join_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A classic member did not join again within its rebalance timeout."""
        self._expire(deadline, Departure.NOT_REJOINED, now_ms)

    def sync_fired(self, deadline: MemberDeadline, now_ms: int) -> None:
        """A classic member did not fetch its assignment within its rebalance timeout."""
        self._expire(deadline, Departure.NOT_SYNCED, now_ms)

    def _expire(
        self, deadline: MemberDeadline, why: Departure, now_ms: int, epoch: int | None = None
    ) -> None:
        group = self.core.groups.get(deadline.group_id or "")
        if group is None or group.consumer is None:
            return
        member = group.consumer.members.get(deadline.member_id)
        if member is not None and epoch in (None, member.current.epoch):
            self.remove(group, [member], why, now_ms)

    def deadlines(self, group: Group, member_id: str) -> MemberDeadlines:
        """The timers of a member."""
        found = group.consumer_deadlines.get(member_id)
        if found is None:
            found = group.consumer_deadlines[member_id] = MemberDeadlines(
                MemberDeadline(group.group_id, Kind.CONSUMER_SESSION, member_id),
                MemberDeadline(group.group_id, Kind.CONSUMER_REVOCATION, member_id),
                MemberDeadline(group.group_id, Kind.CONSUMER_JOIN, member_id),
                MemberDeadline(group.group_id, Kind.CONSUMER_SYNC, member_id),
            )
        return found

    def _forget_deadlines(self, group: Group, member_id: str) -> None:
        for deadline in group.consumer_deadlines.pop(member_id, ()):
            self.core.deadlines.cancel(deadline)

    def arm_session(self, group: Group, member: ConsumerMember, now_ms: int) -> None:
        """Start the member's session afresh."""
        due_ms = now_ms + self.core.session_ms(group.group_id, member.subscription)
        self.core.arm(self.deadlines(group, member.member_id).session, due_ms)

    def _arm_revocation(self, group: Group, member: ConsumerMember, current: Current, now_ms: int) -> None:
        deadline = self.deadlines(group, member.member_id).revocation
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            deadline.epoch = current.epoch
            self.core.arm(deadline, now_ms + max(0, member.subscription.rebalance_timeout_ms))
        else:
            self.core.deadlines.cancel(deadline)


def _reported(request: ConsumerGroupHeartbeatRequest) -> Reported | None:
    owned = request.topic_partitions
    return None if owned is None else [(one.topic_id, one.partitions) for one in owned]


def _no_group(request: ConsumerGroupHeartbeatRequest) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")


def _no_consumer_group(request: ConsumerGroupHeartbeatRequest) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
