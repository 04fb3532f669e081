"""Committed offsets of groups."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@struct
class OffsetCommitRequestPartition:
    """One of `OffsetCommitRequestTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    committed_offset: int = field("int64", default=0)
    committed_leader_epoch: int = field("int32", versions=(6, LAST), default=-1, ignorable=True)
    committed_metadata: str | None = field("string", nullable=(2, LAST), default="")


@struct
class OffsetCommitRequestTopic:
    """One of `OffsetCommitRequest.topics`."""

    name: str = field("string", versions=(2, 9), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, factory=list)


@message(key=8, versions=(2, 10), flexible=8, kind="request")
class OffsetCommitRequest(Message):
    """Store the offsets up to which a group has processed partitions.

    Generation -1 with an empty member id is a commit from outside a group. `retention_time_ms` -1 leaves
    expiry to the node.

    OffsetCommit, API 8, v2-10; KIP-211, KIP-320, KIP-345, KIP-848.
    """

    group_id: str = field("string", default="")
    generation_id_or_member_epoch: int = field("int32", default=-1, ignorable=True)
    member_id: str = field("string", default="", ignorable=True)
    group_instance_id: str | None = field("string", versions=(7, LAST), nullable=(7, LAST), default=None)
    retention_time_ms: int = field("int64", versions=(2, 4), default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, factory=list)


@struct
class OffsetCommitResponsePartition:
    """One of `OffsetCommitResponseTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)


@struct
class OffsetCommitResponseTopic:
    """One of `OffsetCommitResponse.topics`."""

    name: str = field("string", versions=(2, 9), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, factory=list)


@message(key=8, versions=(2, 10), flexible=8, kind="response")
class OffsetCommitResponse(Message):
    """The outcome for each partition (OffsetCommit, API 8, v2-10; KIP-211, KIP-320, KIP-345, KIP-848)."""

    throttle_time_ms: int = field("int32", versions=(3, LAST), default=0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, factory=list)


@struct
class OffsetFetchRequestTopic:
    """One of `OffsetFetchRequest.topics`."""

    name: str = field("string", versions=(1, 7), default="")
    partition_indexes: list[int] = array("int32", versions=(1, 7), factory=list)


@struct
class OffsetFetchRequestTopics:
    """One of `OffsetFetchRequestGroup.topics`."""

    name: str = field("string", versions=(8, 9), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    partition_indexes: list[int] = array("int32", versions=(8, LAST), factory=list)


@struct
class OffsetFetchRequestGroup:
    """One of `OffsetFetchRequest.groups`."""

    group_id: str = field("string", versions=(8, LAST), default="")
    member_id: str | None = field(
        "string", versions=(9, LAST), nullable=(9, LAST), default=None, ignorable=True
    )
    member_epoch: int = field("int32", versions=(9, LAST), default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, versions=(8, LAST), nullable=(8, LAST), factory=list
    )


@message(key=9, versions=(1, 10), flexible=6, kind="request")
class OffsetFetchRequest(Message):
    """Ask for committed offsets.

    One group up to version 7, `groups` from version 8 on. Null topics ask for all that the group has.
    `require_stable` waits out open transactions (KIP-447).

    OffsetFetch, API 9, v1-10; KIP-320, KIP-447, KIP-709, KIP-848.
    """

    group_id: str = field("string", versions=(1, 7), default="")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, versions=(1, 7), nullable=(2, 7), factory=list
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions=(8, LAST), factory=list)
    require_stable: bool = field("bool", versions=(7, LAST), default=False)


@struct
class OffsetFetchResponsePartition:
    """One of `OffsetFetchResponseTopic.partitions`."""

    partition_index: int = field("int32", versions=(1, 7), default=0)
    committed_offset: int = field("int64", versions=(1, 7), default=0)
    committed_leader_epoch: int = field("int32", versions=(5, 7), default=-1, ignorable=True)
    metadata: str | None = field("string", versions=(1, 7), nullable=(1, 7), default="")
    error_code: int = field("int16", versions=(1, 7), default=0)


@struct
class OffsetFetchResponseTopic:
    """One of `OffsetFetchResponse.topics`."""

    name: str = field("string", versions=(1, 7), default="")
    partitions: list[OffsetFetchResponsePartition] = array(
        OffsetFetchResponsePartition, versions=(1, 7), factory=list
    )


@struct
class OffsetFetchResponsePartitions:
    """One of `OffsetFetchResponseTopics.partitions`."""

    partition_index: int = field("int32", versions=(8, LAST), default=0)
    committed_offset: int = field("int64", versions=(8, LAST), default=0)
    committed_leader_epoch: int = field("int32", versions=(8, LAST), default=-1, ignorable=True)
    metadata: str | None = field("string", versions=(8, LAST), nullable=(8, LAST), default="")
    error_code: int = field("int16", versions=(8, LAST), default=0)


@struct
class OffsetFetchResponseTopics:
    """One of `OffsetFetchResponseGroup.topics`."""

    name: str = field("string", versions=(8, 9), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(
        OffsetFetchResponsePartitions, versions=(8, LAST), factory=list
    )


@struct
class OffsetFetchResponseGroup:
    """One of `OffsetFetchResponse.groups`."""

    group_id: str = field("string", versions=(8, LAST), default="")
    topics: list[OffsetFetchResponseTopics] = array(
        OffsetFetchResponseTopics, versions=(8, LAST), factory=list
    )
    error_code: int = field("int16", versions=(8, LAST), default=0)


@message(key=9, versions=(1, 10), flexible=6, kind="response")
class OffsetFetchResponse(Message):
    """The committed offset of each partition; -1 where there is none.

    OffsetFetch, API 9, v1-10; KIP-320, KIP-447, KIP-709, KIP-848.
    """

    throttle_time_ms: int = field("int32", versions=(3, LAST), default=0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions=(1, 7), factory=list)
    error_code: int = field("int16", versions=(2, 7), default=0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions=(8, LAST), factory=list)


@struct
class OffsetDeleteRequestPartition:
    """One of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: int = field("int32", default=0)


@struct
class OffsetDeleteRequestTopic:
    """One of `OffsetDeleteRequest.topics`."""

    name: str = field("string", default="")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, factory=list)


@message(key=47, versions=(0, 0), kind="request")
class OffsetDeleteRequest(Message):
    """Forget committed offsets (OffsetDelete, API 47, v0; KIP-496)."""

    group_id: str = field("string", default="")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, factory=list)


@struct
class OffsetDeleteResponsePartition:
    """One of `OffsetDeleteResponseTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)


@struct
class OffsetDeleteResponseTopic:
    """One of `OffsetDeleteResponse.topics`."""

    name: str = field("string", default="")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, factory=list)


@message(key=47, versions=(0, 0), kind="response")
class OffsetDeleteResponse(Message):
    """The outcome for each partition (OffsetDelete, API 47, v0; KIP-496)."""

    error_code: int = field("int16", default=0)
    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, factory=list)
