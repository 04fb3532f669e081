"""Share groups (KIP-932): to ask how far they are."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@struct
class DescribeShareGroupOffsetsRequestTopic:
    """One of `DescribeShareGroupOffsetsRequestGroup.topics`."""

    topic_name: str = field("string", default="")
    partitions: list[int] = array("int32", factory=list)


@struct
class DescribeShareGroupOffsetsRequestGroup:
    """One of `DescribeShareGroupOffsetsRequest.groups`. `topics`: None for all."""

    group_id: str = field("string", default="")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable=(0, LAST), factory=list
    )


@message(key=90, versions=(0, 1), flexible=0, kind="request")
class DescribeShareGroupOffsetsRequest(Message):
    """Ask where share groups are.

    DescribeShareGroupOffsets, API 90, v0-1; KIP-932, KIP-1226.
    """

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup, factory=list
    )


@struct
class DescribeShareGroupOffsetsResponsePartition:
    """One of `DescribeShareGroupOffsetsResponseTopic.partitions`. `lag`: in records; -1 where the broker does
    not know it."""

    partition_index: int = field("int32", default=0)
    start_offset: int = field("int64", default=0)
    leader_epoch: int = field("int32", default=0)
    lag: int = field("int64", versions=(1, LAST), default=-1, ignorable=True)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    """One of `DescribeShareGroupOffsetsResponseGroup.topics`."""

    topic_name: str = field("string", default="")
    topic_id: bytes = field("uuid", default=ZERO_UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition, factory=list
    )


@struct
class DescribeShareGroupOffsetsResponseGroup:
    """One of `DescribeShareGroupOffsetsResponse.groups`."""

    group_id: str = field("string", default="")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
        DescribeShareGroupOffsetsResponseTopic, factory=list
    )
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)


@message(key=90, versions=(0, 1), flexible=0, kind="response")
class DescribeShareGroupOffsetsResponse(Message):
    """Where each share group is.

    DescribeShareGroupOffsets, API 90, v0-1; KIP-932, KIP-1226.
    """

    throttle_time_ms: int = field("int32", default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup, factory=list
    )
