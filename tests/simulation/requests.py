"""Requests of the simulated members and operators, and how each reaches the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from tests.simulation.world import Call

TOPICS: Mapping[str, int] = {"t": 4, "u": 2}
"""Topic -> partitions."""


class Fetch:
    """Stands for an OffsetFetch of everything in one group."""

    def __init__(self, group_id: str, stable: bool) -> None:
        self.group_id = group_id
        self.stable = stable

    def __repr__(self) -> str:
        return f"Fetch({self.group_id!r}, stable={self.stable})"


class Delete:
    """Stands for a DeleteGroups of one group."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    def __repr__(self) -> str:
        return f"Delete({self.group_id!r})"


def hand_over(shard: Shard, call: Call, now_ms: int) -> Any:
    """The shard's immediate answer, or None. Like the server it takes the hot paths where they exist; the
    call's own coin decides, so that both ways are taken."""
    request = call.request
    if isinstance(request, Fetch):
        wanted = [(topic, range(count)) for topic, count in TOPICS.items()]
        return shard.fetch_offsets(request.group_id, wanted, request.stable, call, now_ms)
    if isinstance(request, Delete):
        return shard.delete_group(request.group_id, call, now_ms)
    if isinstance(request, HeartbeatRequest) and call.coin:
        code = shard.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id, now_ms
        )
        return HeartbeatResponse(error_code=code)
    if isinstance(request, OffsetCommitRequest) and call.coin and _is_plain(request):
        topic = request.topics[0]
        one = topic.partitions[0]
        taken = shard.commit_one(
            group_id=request.group_id,
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            topic=topic.name,
            partition=one.partition_index,
            offset=one.committed_offset,
            leader_epoch=one.committed_leader_epoch,
            ticket=call,
            now_ms=now_ms,
        )
        if taken:
            return None
    return shard.handle(request, call, now_ms)


def _is_plain(request: OffsetCommitRequest) -> bool:
    partitions = [one for topic in request.topics for one in topic.partitions]
    return len(partitions) == 1 and not partitions[0].committed_metadata and request.retention_time_ms < 0


def commit_request(
    group: str,
    generation: int,
    member_id: str,
    offsets: Iterable[tuple[str, int, int, str]],
    instance_id: str | None = None,
) -> OffsetCommitRequest:
    """A commit of (topic, partition, offset, metadata)."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic, partition, offset, metadata in offsets:
        one = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(topic, []).append(one)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )


def delete_request(group: str, topic: str, partitions: Iterable[int]) -> OffsetDeleteRequest:
    """An OffsetDelete of one topic."""
    entries = [OffsetDeleteRequestPartition(partition_index=one) for one in partitions]
    return OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=entries)]
    )
