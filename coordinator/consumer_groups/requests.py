"""ConsumerGroupHeartbeat as a group reads it: what is wrong with a request in itself, and the answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import (
    AWAY_EPOCH,
    LEFT_EPOCH,
    ConsumerMember,
    Owned,
    Subscription,
    Target,
    contains,
)
from ringleader.coordinator.consumer_groups.names import is_delegated
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

_FIRST_WITH_OWN_IDS = 1
"""From this version on a member makes its id itself (KIP-1082)."""


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises `KafkaError` for a request that no state of the group could accept, in Kafka's order."""
    epoch = request.member_epoch
    if not request.member_id and (version >= _FIRST_WITH_OWN_IDS or epoch > 0 or epoch == LEFT_EPOCH):
        raise _invalid("MemberId can't be empty.")
    if not request.group_id:
        raise _invalid("GroupId can't be empty.")
    if request.instance_id == "":
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id == "":
        raise _invalid("RackId can't be empty.")
    if epoch == 0:
        _check_join(request)
    elif epoch == AWAY_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < AWAY_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors and not is_delegated(assignor):
        known = ", ".join(assignors)
        text = f"ServerAssignor {assignor} is not supported. Supported assignors: {known}."
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, text)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def present(consumer: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that a request is of which does not join. Raises `KafkaError`."""
    if instance_id is not None:
        holder = consumer.static_members.get(instance_id)
        if holder is None:
            raise _unknown_instance(instance_id)
        if holder != member_id:
            raise _fenced_instance(member_id, instance_id, holder)
    member = consumer.members.get(member_id)
    if member is None:
        raise _unknown(member_id, consumer)
    return member


def _unknown(member_id: str, consumer: ConsumerGroup) -> KafkaError:
    text = f"Member {member_id} is not a member of group {consumer.group_id}."
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)


def _unknown_instance(instance_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")


def _fenced_instance(member_id: str, instance_id: str, holder: str) -> KafkaError:
    text = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}."
    return KafkaError(ErrorCode.FENCED_INSTANCE_ID, text)


def check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raises `KafkaError` (FENCED_MEMBER_EPOCH) unless the request is of the member's present epoch, joins
    again, or shows that the answer to the last one was lost."""
    epoch, current = request.member_epoch, member.current
    if epoch == 0 or epoch == current.epoch:
        return
    if epoch > current.epoch:
        raise _fenced("greater", epoch, current.epoch)
    lost = epoch == current.previous_epoch and request.topic_partitions is not None
    owned = request.topic_partitions or ()
    if not lost or not contains(current.assigned, ((one.topic_id, one.partitions) for one in owned)):
        raise _fenced("smaller", epoch, current.epoch)


def _fenced(how: str, epoch: int, known: int) -> KafkaError:
    text = f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group "
    more = f"coordinator ({known}). The member must abandon all its partitions and rejoin."
    return KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, text + more)


_ALL_NULL = (None,) * 5


def described(
    before: Subscription,
    request: ConsumerGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
    principal: str,
) -> Subscription:
    """The member after the request, `before` itself if nothing changes: null fields stay as they were. A
    member of the classic protocol that sends it becomes one of the consumer protocol."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    pattern = before.topic_regex if regex is None else regex
    fields = (names, regex, request.rack_id, request.server_assignor, request.leader_user_data)
    if (
        fields == _ALL_NULL
        and request.rebalance_timeout_ms == -1
        and request.instance_id in (None, before.instance_id)
        and (client_id, client_host) == (before.client_id, before.client_host)
        and before.principal == (principal if pattern else "")
        and before.classic is None
    ):
        return before
    return replace(
        before,
        instance_id=_given(request.instance_id, before.instance_id),
        rack_id=_given(request.rack_id, before.rack_id),
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        topic_names=before.topic_names if names is None else frozenset(names),
        topic_regex=pattern,
        server_assignor=_given(request.server_assignor, before.server_assignor),
        classic=None,
        leader_user_data=(
            before.leader_user_data if request.leader_user_data is None else request.leader_user_data
        ),
        principal=principal if pattern else "",
    )


def _given(fresh: str | None, before: str | None) -> str | None:
    return before if fresh is None else fresh


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says all that a member can say: its answer then has the whole assignment."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def is_report(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says nothing but that the member is there, and perhaps what it owns."""
    return (
        request.member_epoch > 0
        and request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.leader_user_data is None
        and request.computed_target is None
        and request.server_assignor is None
        and request.rack_id is None
    )


def is_plain(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says nothing but that the member is there."""
    return request.topic_partitions is None and is_report(request)


def answer(
    request: ConsumerGroupHeartbeatRequest,
    member: ConsumerMember,
    before: Owned,
    interval_ms: int,
    task: ConsumerGroupHeartbeatResponseLeaderTask | None,
) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat that succeeded. `before`: the partitions that the member had before it. The
    assignment is in it if it changed, or the member cannot know it. `task`: what the member is to compute."""
    assigned = member.current.assigned
    news = request.member_epoch == 0 or is_full(request) or not member.current.has_same(before)
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment(assigned) if news else None,
        leader_task=task,
    )


def assignment(assigned: Owned) -> ConsumerGroupHeartbeatResponseAssignment:
    """As the answer carries it."""
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(assigned.items())
        ]
    )


CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""Types of members in ConsumerGroupDescribe v1 (KIP-1099)."""


def described_member(member: ConsumerMember, topics: Topics) -> ConsumerGroupDescribeResponseMember:
    """As ConsumerGroupDescribe shows it. Its assignment has what it still has to give up. Topics that were
    deleted are left out. Both as in Kafka."""
    known, held = member.subscription, dict[bytes, frozenset[int]]()
    for topic_id, partitions in member.current.held():
        held[topic_id] = held.get(topic_id, frozenset()).union(partitions)
    return ConsumerGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=known.instance_id,
        rack_id=known.rack_id,
        member_epoch=member.current.epoch,
        client_id=known.client_id,
        client_host=known.client_host,
        subscribed_topic_names=sorted(known.topic_names),
        subscribed_topic_regex=known.topic_regex,
        assignment=_named(held, topics),
        target_assignment=_named(member.target, topics),
        member_type=CONSUMER_MEMBER if known.classic is None else CLASSIC_MEMBER,
    )


def _named(some: Target, topics: Topics) -> ConsumerGroupDescribeResponseAssignment:
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopicPartitions(
                topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions)
            )
            for topic_id, partitions in some.items()
            if (topic := topics.of_id(topic_id)) is not None
        ]
    )
