"""Members of the classic protocol in a group of the consumer protocol (KIP-848): their JoinGroup, SyncGroup,
Heartbeat and LeaveGroup.

No member waits for others here, and none leads: JoinGroup is a step of the reconciliation, SyncGroup gives
out what that came to, and a heartbeat's REBALANCE_IN_PROGRESS asks for the next step. The checks and their
order are Kafka's (GroupMetadataManager.classicGroupJoinToConsumerGroup and the like, 4.3).
"""

from __future__ import annotations

from ringleader.coordinator.consumer_groups import classic, requests
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, ConsumerGroupState
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    ConsumerMember,
    MemberState,
    Subscription,
)
from ringleader.coordinator.consumer_groups.reconciliation import Reported
from ringleader.coordinator.deadlines import NEVER
from ringleader.coordinator.groups.changes import Changes, subscribe
from ringleader.coordinator.groups.consumer import ConsumerHandler
from ringleader.coordinator.groups.core import Part
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.static import FIRST_WITH_SKIP_ASSIGNMENT
from ringleader.coordinator.groups.vote import CONSUMER_TYPE, Protocols
from ringleader.coordinator.journal.entries import Cause, Departure
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.embedded import Subscription as EmbeddedSubscription
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError
from ringleader.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponseMemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ringleader.protocol.refusals import join_refusal

_FIRST_WITH_MEMBER_ID_REQUIRED = 4


class MixedHandler(Part):
    """Handles the requests of classic members in groups of the consumer protocol for one shard."""

    def __init__(self, consumer: ConsumerHandler) -> None:
        super().__init__(consumer.core)
        self._handler = consumer

    # ---- JoinGroup ----

    def join(
        self,
        group: Group,
        request: JoinGroupRequest,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        ticket: Ticket,
        member_id: str,
        now_ms: int,
    ) -> JoinGroupResponse:
        """The answer, which waits for `Group.position`. `member_id`: the request's, or a fresh one."""
        try:
            return self._join(group, request, protocols, rebalance_timeout_ms, ticket, member_id, now_ms)
        except KafkaError as error:
            echoed = member_id if error.code == ErrorCode.MEMBER_ID_REQUIRED else ""
            return join_refusal(ticket.api_version, int(error.code), echoed)

    def _join(
        self,
        group: Group,
        request: JoinGroupRequest,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        ticket: Ticket,
        member_id: str,
        now_ms: int,
    ) -> JoinGroupResponse:
        handler, consumer, instance_id = self._handler, _consumer(group), request.group_instance_id
        handler.check_room(consumer, request.member_id)
        names = [name for name, _ in protocols]
        if request.protocol_type != CONSUMER_TYPE or not classic.supports(consumer, names):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        dynamic = instance_id is None and ticket.api_version >= _FIRST_WITH_MEMBER_ID_REQUIRED
        if dynamic and not request.member_id:
            raise KafkaError(ErrorCode.MEMBER_ID_REQUIRED)  # any id is welcome: it is not remembered
        known = _find(consumer, request)
        try:
            subscription = EmbeddedSubscription.decode(protocols[0][1])
        except MalformedError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        if known is None and subscription.owned_partitions:
            # It was removed, and its partitions may be others'. (Kafka takes it in, and it reads on until its
            # SyncGroup.)
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        old = known.subscription if known is not None else Subscription()
        fresh = classic.described(
            old,
            subscription,
            instance_id,
            (ticket.client_id or "", ticket.client_host),
            rebalance_timeout_ms,
            ClassicMember(request.session_timeout_ms, protocols),
        )
        handler.check_memory(group, consumer, known, member_id, fresh, now_ms)
        # Whether it takes the place of a member of the consumer protocol, perhaps its own.
        replaces = instance_id is not None and known is not None and known.subscription.classic is None
        epoch, resolved_ms, changes = consumer.epoch, consumer.resolved_ms, Changes(self.core, group)
        if known is not None and known.member_id != member_id:
            handler.replace(group, changes, known, member_id)
        subscription_changed = subscribe(changes, member_id, fresh)
        reads_others = (
            handler.patterns.subscribed(changes, old, fresh) or fresh.topic_names != old.topic_names
        )
        member = changes.consumer.member(member_id)
        handler.targets.begin_epoch(changes, reads_others)
        owned = classic.owned(subscription, self.core.topics)
        if replaces:
            joined = self._downgrade(
                group, changes, member, owned, subscription_changed, epoch, ticket.api_version, now_ms
            )
            if joined is not None:
                return joined
        deadlines = handler.deadlines(group, member_id)
        self.core.deadlines.cancel(deadlines.join)
        self.core.arm(deadlines.sync, now_ms + max(0, rebalance_timeout_ms))
        handler.arm_session(group, member, now_ms)
        handler.advance(group, changes, member, owned, subscription_changed, now_ms)
        handler.patterns.look(group, resolved_ms, now_ms)
        return _joined(member)

    def _downgrade(
        self,
        group: Group,
        changes: Changes,
        member: ConsumerMember,
        owned: Reported,
        subscription_changed: bool,
        generation: int,
        version: int,
        now_ms: int,
    ) -> JoinGroupResponse | None:
        """A static member is back as a classic one: its answer, if the group is a classic one by that. It
        rebalances unless all members are where they have to be. (Kafka looks at the epochs alone, so that one
        member may get what another has not given up.) Without a rebalance this member leads, and knows that
        from v9 on (KIP-814): somebody has to watch the topics. (In Kafka nobody does.)"""
        handler, consumer = self._handler, changes.consumer
        if consumer.assignment_epoch == consumer.epoch:
            handler.reconcile(group, changes, member, owned, subscription_changed, now_ms)
        joined, stable = _joined(member), consumer.state is ConsumerGroupState.STABLE
        leader = member.member_id if stable else None
        found = handler.downgraded(consumer, (), generation, leader, now_ms)
        if found is None:
            return None
        handler.downgrade(group, changes, found, now_ms)
        if leader is None:
            reason = "a static member came back as a classic one"
            handler.rebalances.start(group, Cause.DOWNGRADED, member.member_id, reason, now_ms)
        elif version >= FIRST_WITH_SKIP_ASSIGNMENT:
            joined.leader, joined.skip_assignment = leader, True
            joined.members = handler.rebalances.member_list(group)
        return joined

    # ---- SyncGroup, Heartbeat ----

    def sync(self, group: Group, request: SyncGroupRequest, now_ms: int) -> SyncGroupResponse:
        """The answer, which waits for `Group.position`."""
        handler = self._handler
        try:
            member, offered = _member(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
            kind, name = request.protocol_type, request.protocol_name
            if kind not in (None, CONSUMER_TYPE) or name not in (None, offered.protocols[0][0]):
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        except KafkaError as error:
            return SyncGroupResponse(error_code=int(error.code))
        current = member.current
        is_behind = current.epoch < _consumer(group).assignment_epoch
        if is_behind and current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._ask_to_join(group, member, now_ms)
            return SyncGroupResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS))
        self.core.deadlines.cancel(handler.deadlines(group, member.member_id).sync)
        handler.arm_session(group, member, now_ms)
        return SyncGroupResponse(
            protocol_type=kind,
            protocol_name=name,
            assignment=classic.assignment(current.assigned, self.core.topics, offered.protocols[0][1]),
        )

    def heartbeat(
        self, group: Group, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> int:
        """The error code."""
        try:
            member, _ = _member(group, member_id, instance_id, generation)
        except KafkaError as error:
            return int(error.code)
        self._handler.arm_session(group, member, now_ms)
        if not self._is_behind(_consumer(group), member):
            return int(ErrorCode.NONE)
        self._ask_to_join(group, member, now_ms)
        return int(ErrorCode.REBALANCE_IN_PROGRESS)

    def _is_behind(self, consumer: ConsumerGroup, member: ConsumerMember) -> bool:
        """Whether it has to join again. A heartbeat of the classic protocol computes no target: where only
        classic members are left, for the migration policy keeps the group, one has to join for that. (In
        Kafka a topic that grows, or the partitions of a member that is gone, are nobody's then.)"""
        if classic.is_behind(consumer, member):
            return True
        if consumer.classic_members < len(consumer.members):
            return False
        topics = self.core.topics
        if consumer.checked_version != topics.version:
            if topics.metadata_hash(consumer.all_topics()) != consumer.metadata_hash:
                return True
            consumer.checked_version = topics.version
        return member.current.epoch < consumer.epoch

    def _ask_to_join(self, group: Group, member: ConsumerMember, now_ms: int) -> None:
        """Its time to join again runs from the first time that it was asked."""
        deadline = self._handler.deadlines(group, member.member_id).join
        if deadline.due_ms == NEVER:
            self.core.arm(deadline, now_ms + max(0, member.subscription.rebalance_timeout_ms))

    # ---- LeaveGroup ----

    def leave(
        self, group: Group, leaving: list[LeaveGroupRequestMemberIdentity], now_ms: int
    ) -> list[LeaveGroupResponseMemberResponse]:
        """Results in the order of the request. All leave in one event, members of the consumer protocol
        too."""
        consumer = _consumer(group)
        results, removed = [], dict[str, ConsumerMember]()
        reason = ""
        for one in leaving:
            error = 0
            member_id, instance_id = one.member_id, one.group_instance_id
            if not member_id and instance_id is not None:  # an operator names a static member by that alone
                member_id = consumer.static_members.get(instance_id, "")
            try:
                member = requests.present(consumer, member_id, instance_id)
                removed[member.member_id] = member
                reason = reason or one.reason or ""
            except KafkaError as refused:
                error = int(refused.code)
            results.append(LeaveGroupResponseMemberResponse(one.member_id, one.group_instance_id, error))
        if removed:
            self._handler.remove(group, removed.values(), Departure.LEFT, now_ms, reason)
        return results


def _consumer(group: Group) -> ConsumerGroup:
    assert group.consumer is not None
    return group.consumer


def _find(consumer: ConsumerGroup, request: JoinGroupRequest) -> ConsumerMember | None:
    """The member that a JoinGroup is of, or whose place it takes; None: a new one. Raises `KafkaError`."""
    instance_id = request.group_instance_id
    if instance_id is None:
        return consumer.members.get(request.member_id)
    if request.member_id:
        return requests.present(consumer, request.member_id, instance_id)
    return consumer.members.get(consumer.static_members.get(instance_id, ""))


def _member(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMember]:
    """The classic member that a request is of, and its offer. Raises `KafkaError`."""
    member = requests.present(_consumer(group), member_id, instance_id)
    offered = member.subscription.classic
    if offered is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.current.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, offered


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.subscription.classic is not None
    return JoinGroupResponse(
        generation_id=member.current.epoch,
        protocol_type=CONSUMER_TYPE,
        protocol_name=member.subscription.classic.protocols[0][0],
        member_id=member.member_id,
    )
