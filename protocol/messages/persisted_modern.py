"""Values of the records in __consumer_offsets of groups that the broker itself assigns: the consumer protocol
(KIP-848, key types 3 and 5 to 8 and 16) and share groups (KIP-932, key types 10 to 14).

Stored with an int16 version in front, as in `persisted`. Their keys are a group id, or a group id and a
member id (a pattern, for type 16), in plain strings.
"""

from __future__ import annotations

from ringleader.protocol.fields import LAST, OUR_TAG, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupMetadataValue(Message):
    """A group's epoch (key type 3). `metadata_hash` changes with its topics' partitions; 0 before 4.1."""

    epoch: int = field("int32", default=0)
    metadata_hash: int = field("int64", default=0, tag=0, tagged=(0, LAST))


@struct
class ConsumerGroupMemberMetadataValueClassicProtocol:
    """One of `ConsumerGroupMemberMetadataValueClassicMemberMetadata.supported_protocols`."""

    name: str = field("string", default="")
    metadata: bytes = field("bytes", default=b"")


@struct
class ConsumerGroupMemberMetadataValueClassicMemberMetadata:
    """The offer of a member that speaks the classic protocol in a group of the consumer protocol."""

    session_timeout_ms: int = field("int32", default=0)
    supported_protocols: list[ConsumerGroupMemberMetadataValueClassicProtocol] = array(
        ConsumerGroupMemberMetadataValueClassicProtocol, factory=list
    )


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupMemberMetadataValue(Message):
    """A member as it subscribed (key type 5). `rebalance_timeout_ms` -1: not said. `leader_user_data` and
    `principal` are ours: Kafka passes over them. `principal`: of a member with a regular expression, which
    matches what that may see."""

    instance_id: str | None = field("string", nullable=(0, LAST), default="")
    rack_id: str | None = field("string", nullable=(0, LAST), default="")
    client_id: str = field("string", default="")
    client_host: str = field("string", default="")
    subscribed_topic_names: list[str] = array("string", factory=list)
    subscribed_topic_regex: str | None = field("string", nullable=(0, LAST), default="")
    rebalance_timeout_ms: int = field("int32", default=-1)
    server_assignor: str | None = field("string", nullable=(0, LAST), default="")
    classic_member_metadata: ConsumerGroupMemberMetadataValueClassicMemberMetadata | None = field(
        ConsumerGroupMemberMetadataValueClassicMemberMetadata,
        nullable=(0, LAST),
        default=None,
        tag=0,
        tagged=(0, LAST),
    )
    leader_user_data: bytes | None = field(
        "bytes", nullable=(0, LAST), default=None, tag=OUR_TAG, tagged=(0, LAST)
    )
    principal: str = field("string", default="", tag=OUR_TAG + 1, tagged=(0, LAST))


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """The epoch that the assignor has computed for (key type 6). `assignment_timestamp`: when it had, in ms
    since 1970; 0 before 4.3."""

    assignment_epoch: int = field("int32", default=0)
    assignment_timestamp: int = field("int64", default=0, tag=0, tagged=(0, LAST), ignorable=True)


@struct
class ConsumerGroupTargetAssignmentMemberValueTopicPartition:
    """One of `ConsumerGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """The partitions that a member shall get (key type 7)."""

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValueTopicPartition] = array(
        ConsumerGroupTargetAssignmentMemberValueTopicPartition, factory=list
    )


@struct
class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions:
    """Partitions of a topic in `ConsumerGroupCurrentMemberAssignmentValue`. `assignment_epochs`: since which
    epoch the member has each."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)
    assignment_epochs: list[int] | None = array(
        "int32", nullable=(0, LAST), default=None, tag=0, tagged=(0, LAST)
    )


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """The partitions that a member has (key type 8). `state`: 0 stable, 1 has to give partitions up, 2 waits
    for partitions of others."""

    member_epoch: int = field("int32", default=0)
    previous_member_epoch: int = field("int32", default=0)
    state: int = field("int8", default=0)
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, factory=list
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, factory=list
    )


@struct
class ConsumerGroupRegularExpressionValueView:
    """One of `ConsumerGroupRegularExpressionValue.views`. `topics` None: all of them."""

    principal: str = field("string", default="")
    topics: list[str] | None = array("string", nullable=(0, LAST), default=None)


@message(versions=(0, 0), flexible=0, kind="data")
class ConsumerGroupRegularExpressionValue(Message):
    """The topics that a pattern matches (key type 16). `timestamp`: ms since 1970. `views` is ours, and Kafka
    passes over it: which of them each principal may see; None: everybody sees all."""

    topics: list[str] = array("string", factory=list)
    version: int = field("int64", default=0)
    timestamp: int = field("int64", default=0)
    views: list[ConsumerGroupRegularExpressionValueView] | None = array(
        ConsumerGroupRegularExpressionValueView,
        nullable=(0, LAST),
        default=None,
        tag=OUR_TAG,
        tagged=(0, LAST),
    )


@message(versions=(0, 0), flexible=0, kind="data")
class ShareGroupMemberMetadataValue(Message):
    """A share group's member as it subscribed (key type 10)."""

    rack_id: str | None = field("string", nullable=(0, LAST), default="")
    client_id: str = field("string", default="")
    client_host: str = field("string", default="")
    subscribed_topic_names: list[str] = array("string", factory=list)


@message(versions=(0, 0), flexible=0, kind="data")
class ShareGroupMetadataValue(Message):
    """A share group's epoch (key type 11)."""

    epoch: int = field("int32", default=0)
    metadata_hash: int = field("int64", default=0)


@message(versions=(0, 0), flexible=0, kind="data")
class ShareGroupTargetAssignmentMetadataValue(Message):
    """The epoch that the assignor has computed for (key type 12); as
    `ConsumerGroupTargetAssignmentMetadataValue`."""

    assignment_epoch: int = field("int32", default=0)
    assignment_timestamp: int = field("int64", default=0, tag=0, tagged=(0, LAST), ignorable=True)


@struct
class ShareGroupTargetAssignmentMemberValueTopicPartition:
    """One of `ShareGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)


@message(versions=(0, 0), flexible=0, kind="data")
class ShareGroupTargetAssignmentMemberValue(Message):
    """The partitions that a share group's member shall get (key type 13)."""

    topic_partitions: list[ShareGroupTargetAssignmentMemberValueTopicPartition] = array(
        ShareGroupTargetAssignmentMemberValueTopicPartition, factory=list
    )


@struct
class ShareGroupCurrentMemberAssignmentValueTopicPartitions:
    """One of `ShareGroupCurrentMemberAssignmentValue.assigned_partitions`."""

    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[int] = array("int32", factory=list)


@message(versions=(0, 0), flexible=0, kind="data")
class ShareGroupCurrentMemberAssignmentValue(Message):
    """The partitions that a share group's member has (key type 14)."""

    member_epoch: int = field("int32", default=0)
    previous_member_epoch: int = field("int32", default=0)
    state: int = field("int8", default=0)
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = array(
        ShareGroupCurrentMemberAssignmentValueTopicPartitions, factory=list
    )
