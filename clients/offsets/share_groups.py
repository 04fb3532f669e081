"""How far share groups are: DescribeShareGroupOffsets (API 90, v0-1; KIP-932, KIP-1226), built and read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.model import TopicPartition
from ringleader.protocol.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)


class ShareOffset(NamedTuple):
    """Where a share group is in a partition."""

    start: int
    """Everything before it is done; after it records are done in any order."""
    lag: int | None
    """Records up to the end that are not done; None: the broker does not know it (before 4.2, or no member
    has fetched there yet)."""
    error_code: int


class ShareOffsets(NamedTuple):
    """The answer for one group."""

    partitions: dict[TopicPartition, ShareOffset]
    error_code: int
    message: str | None


def share_offsets(groups: Iterable[str]) -> Request:
    """Ask for all partitions of these groups; to be sent to their coordinator."""
    wanted = [DescribeShareGroupOffsetsRequestGroup(one, None) for one in groups]
    return plain(DescribeShareGroupOffsetsRequest(wanted))


def described_share_offsets(answer: Any) -> dict[str, ShareOffsets]:
    """By group."""
    return {
        group.group_id: ShareOffsets(
            {
                (topic.topic_name, one.partition_index): ShareOffset(
                    one.start_offset, None if one.lag < 0 else one.lag, one.error_code
                )
                for topic in group.topics
                for one in topic.partitions
            },
            group.error_code,
            group.error_message,
        )
        for group in answer.groups
    }
