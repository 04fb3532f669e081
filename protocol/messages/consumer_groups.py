"""Groups of the consumer protocol (KIP-848): the one request of their members, and to describe them."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, OUR_TAG, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@struct
class ConsumerGroupHeartbeatRequestTopicPartitions:
    """One of `ConsumerGroupHeartbeatRequest.topic_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)


@struct
class ConsumerGroupHeartbeatRequestComputedMember:
    """One of `ConsumerGroupHeartbeatRequestComputedTarget.members`. `share`: see `leader_shares`; places in
    the target's `topic_ids`."""

    member_id: str = field("string", default="")
    share: list[int] = array("int32", factory=list)


@struct
class ConsumerGroupHeartbeatRequestComputedTarget:
    """A leader's answer to `ConsumerGroupHeartbeatResponseLeaderTask`: what each member is to have. `error`:
    why it could not compute that; null: it did."""

    group_epoch: int = field("int32", default=0)
    error: str | None = field("string", nullable=(0, LAST), default=None)
    topic_ids: list[bytes] = array("uuid", factory=list)
    members: list[ConsumerGroupHeartbeatRequestComputedMember] = array(
        ConsumerGroupHeartbeatRequestComputedMember, factory=list
    )


@message(key=68, versions=(0, 1), flexible=0, kind="request")
class ConsumerGroupHeartbeatRequest(Message):
    """Join a group of the consumer protocol, stay in it, tell what is owned, leave it.

    `member_epoch` 0 joins, -1 leaves, -2 leaves as a static member that will be back. The member makes its
    id, from version 1 on. Null, and -1 as `rebalance_timeout_ms`: as in the request before.

    Ours, not Kafka's: `leader_user_data`, which says that the member can lead and what its assignor is to
    know of it, and `computed_target` (docs/leader-side-assignors.md).

    ConsumerGroupHeartbeat, API 68, v0-1; KIP-848, KIP-1082.
    """

    group_id: str = field("string", default="")
    member_id: str = field("string", default="")
    member_epoch: int = field("int32", default=0)
    instance_id: str | None = field("string", nullable=(0, LAST), default=None)
    rack_id: str | None = field("string", nullable=(0, LAST), default=None)
    rebalance_timeout_ms: int = field("int32", default=-1)
    subscribed_topic_names: list[str] | None = array("string", nullable=(0, LAST), default=None)
    subscribed_topic_regex: str | None = field("string", versions=(1, LAST), nullable=(1, LAST), default=None)
    server_assignor: str | None = field("string", nullable=(0, LAST), default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = array(
        ConsumerGroupHeartbeatRequestTopicPartitions, nullable=(0, LAST), default=None
    )
    leader_user_data: bytes | None = field(
        "bytes", nullable=(0, LAST), default=None, tag=OUR_TAG, tagged=(0, LAST)
    )
    computed_target: ConsumerGroupHeartbeatRequestComputedTarget | None = field(
        ConsumerGroupHeartbeatRequestComputedTarget,
        nullable=(0, LAST),
        default=None,
        tag=OUR_TAG + 1,
        tagged=(0, LAST),
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions:
    """One of `ConsumerGroupHeartbeatResponseAssignment.topic_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)


@struct
class ConsumerGroupHeartbeatResponseAssignment:
    """`ConsumerGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions, factory=list
    )


@struct
class ConsumerGroupHeartbeatResponseTaskTopic:
    """One of `ConsumerGroupHeartbeatResponseLeaderTask.topics`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    name: str = field("string", default="")
    partitions: int = field("int32", default=0)


@struct
class ConsumerGroupHeartbeatResponseTaskSubscription:
    """One of `ConsumerGroupHeartbeatResponseLeaderTask.subscriptions`: places in its `topics`."""

    topics: list[int] = array("int32", factory=list)


@struct
class ConsumerGroupHeartbeatResponseTaskMember:
    """One of `ConsumerGroupHeartbeatResponseLeaderTask.members`. `subscription`: a place in the task's
    `subscriptions`; `owned`: what it was to have so far, see `leader_shares`, with places in the task's
    `topics`; `user_data`: null from a member that cannot lead."""

    member_id: str = field("string", default="")
    instance_id: str | None = field("string", nullable=(0, LAST), default=None)
    rack_id: str | None = field("string", nullable=(0, LAST), default=None)
    subscription: int = field("int32", default=0)
    owned: list[int] = array("int32", factory=list)
    user_data: bytes | None = field("bytes", nullable=(0, LAST), default=None)


@struct
class ConsumerGroupHeartbeatResponseLeaderTask:
    """All that a leader needs to compute the group's assignment. `assignor`: its name without `client:`;
    `target_epoch`: the epoch of what the members were to have so far, 0: nothing yet."""

    group_epoch: int = field("int32", default=0)
    target_epoch: int = field("int32", default=0)
    assignor: str = field("string", default="")
    topics: list[ConsumerGroupHeartbeatResponseTaskTopic] = array(
        ConsumerGroupHeartbeatResponseTaskTopic, factory=list
    )
    subscriptions: list[ConsumerGroupHeartbeatResponseTaskSubscription] = array(
        ConsumerGroupHeartbeatResponseTaskSubscription, factory=list
    )
    members: list[ConsumerGroupHeartbeatResponseTaskMember] = array(
        ConsumerGroupHeartbeatResponseTaskMember, factory=list
    )


@message(key=68, versions=(0, 1), flexible=0, kind="response")
class ConsumerGroupHeartbeatResponse(Message):
    """The member's epoch, when to beat again, and its assignment if there is news of it (null: none).

    Ours, not Kafka's: `leader_task`, for a member that is to compute the group's assignment.

    ConsumerGroupHeartbeat, API 68, v0-1; KIP-848, KIP-1082.
    """

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)
    member_id: str | None = field("string", nullable=(0, LAST), default=None)
    member_epoch: int = field("int32", default=0)
    heartbeat_interval_ms: int = field("int32", default=0)
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = field(
        ConsumerGroupHeartbeatResponseAssignment, nullable=(0, LAST), default=None
    )
    leader_task: ConsumerGroupHeartbeatResponseLeaderTask | None = field(
        ConsumerGroupHeartbeatResponseLeaderTask,
        nullable=(0, LAST),
        default=None,
        tag=OUR_TAG,
        tagged=(0, LAST),
    )


@message(key=69, versions=(0, 1), flexible=0, kind="request")
class ConsumerGroupDescribeRequest(Message):
    """Ask for the state and members of groups of the consumer protocol.

    ConsumerGroupDescribe, API 69, v0-1; KIP-848, KIP-1099.
    """

    group_ids: list[str] = array("string", factory=list)
    include_authorized_operations: bool = field("bool", default=False)


@struct
class ConsumerGroupDescribeResponseTopicPartitions:
    """One of `ConsumerGroupDescribeResponseAssignment.topic_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    topic_name: str = field("string", default="")
    partitions: list[int] = array("int32", factory=list)


@struct
class ConsumerGroupDescribeResponseAssignment:
    """An assignment of a `ConsumerGroupDescribeResponseMember`."""

    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = array(
        ConsumerGroupDescribeResponseTopicPartitions, factory=list
    )


@struct
class ConsumerGroupDescribeResponseMember:
    """One of `ConsumerGroupDescribeResponseDescribedGroup.members`.

    `assignment` is what it has, `target_assignment` what it is to have. `member_type` 0 is a member of the
    classic protocol, 1 one of the consumer protocol, -1 unknown.
    """

    member_id: str = field("string", default="")
    instance_id: str | None = field("string", nullable=(0, LAST), default=None)
    rack_id: str | None = field("string", nullable=(0, LAST), default=None)
    member_epoch: int = field("int32", default=0)
    client_id: str = field("string", default="")
    client_host: str = field("string", default="")
    subscribed_topic_names: list[str] = array("string", factory=list)
    subscribed_topic_regex: str | None = field("string", nullable=(0, LAST), default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = field(
        ConsumerGroupDescribeResponseAssignment, factory=ConsumerGroupDescribeResponseAssignment
    )
    target_assignment: ConsumerGroupDescribeResponseAssignment = field(
        ConsumerGroupDescribeResponseAssignment, factory=ConsumerGroupDescribeResponseAssignment
    )
    member_type: int = field("int8", versions=(1, LAST), default=-1, ignorable=True)


@struct
class ConsumerGroupDescribeResponseDescribedGroup:
    """One of `ConsumerGroupDescribeResponse.groups`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)
    group_id: str = field("string", default="")
    group_state: str = field("string", default="")
    group_epoch: int = field("int32", default=0)
    assignment_epoch: int = field("int32", default=0)
    assignor_name: str = field("string", default="")
    members: list[ConsumerGroupDescribeResponseMember] = array(
        ConsumerGroupDescribeResponseMember, factory=list
    )
    authorized_operations: int = field("int32", default=-2147483648)


@message(key=69, versions=(0, 1), flexible=0, kind="response")
class ConsumerGroupDescribeResponse(Message):
    """State and members of each group of the consumer protocol.

    ConsumerGroupDescribe, API 69, v0-1; KIP-848, KIP-1099.
    """

    throttle_time_ms: int = field("int32", default=0)
    groups: list[ConsumerGroupDescribeResponseDescribedGroup] = array(
        ConsumerGroupDescribeResponseDescribedGroup, factory=list
    )
