"""Requests of the simulated members and operators, and how each reaches the machine."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import NOT_YET
from ringleader.protocol.errors import KafkaError
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
)
from ringleader.protocol.wire import INT64_MAX
from tests.support.extremes import BITS, spoil_some

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

TOPICS: Mapping[str, int] = {"t": 4, "u": 2}
"""Topic -> partitions."""


@dataclass(frozen=True, eq=False)
class Fetch:
    """Stands for an OffsetFetch of everything in one group."""

    group_id: str
    stable: bool


@dataclass(frozen=True, eq=False)
class Delete:
    """Stands for a DeleteGroups of one group."""

    group_id: str


@dataclass(frozen=True, eq=False)
class Describe:
    """Stands for a DescribeGroups of one group."""

    group_id: str


@dataclass(frozen=True, eq=False)
class ListGroups:
    """Stands for the part of a ListGroups that one partition answers."""

    partition: int


@dataclass(frozen=True, eq=False)
class EndTransaction:
    """The transaction coordinator's word to one partition."""

    partition: int
    producer_id: int
    committed: bool


@dataclass(frozen=True, eq=False)
class ForgetTopic:
    """The part of a topic's deletion that is one partition's."""

    partition: int
    topic: str


def hand_over(shard: Shard, call: Call, now_ms: int) -> Any:
    """The shard's immediate answer, or None. Like the server it takes the hot paths where they exist; the
    call's own coin decides, so that both ways are taken."""
    request = call.request
    if isinstance(request, Fetch):
        wanted = [(topic, range(count)) for topic, count in TOPICS.items()]
        return shard.fetch_offsets(request.group_id, wanted, request.stable, call)
    if isinstance(request, Delete):
        return shard.delete_group(request.group_id, call, now_ms)
    if isinstance(request, Describe):
        return shard.describe(request.group_id, call.api_version, call)
    if isinstance(request, ListGroups):
        try:
            return shard.list_groups((), (), call)
        except KafkaError as error:
            return refusal(request, int(error.code))
    if isinstance(request, EndTransaction):
        return shard.end_transaction(request.producer_id, request.committed, call, now_ms)
    if isinstance(request, ForgetTopic):
        return shard.topic_deleted(request.topic, call, now_ms)
    if isinstance(request, HeartbeatRequest) and call.coin:
        code = shard.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id, now_ms
        )
        if code != NOT_YET:
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


def refusal(request: Any, code: int) -> Any:
    """The answer of the runtime for a shard that is gone. Operators' requests: just the code."""
    if isinstance(request, JoinGroupRequest):
        return JoinGroupResponse(error_code=code, generation_id=-1, protocol_name="", member_id="")
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(error_code=code)
    if isinstance(request, HeartbeatRequest):
        return HeartbeatResponse(error_code=code)
    return LeaveGroupResponse(error_code=code)  # the caller looks at nothing else


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


def spoiled(world: World, request: Any, version: int) -> Any:
    """The same with some of its numbers at their extremes. Offsets are still used once each, the server lets
    only partitions through that exist, and the transaction coordinator only a producer with its own id."""
    changed = copy.deepcopy(request)  # its protocols may be a member's own
    spoil_some(world.rng, changed, version, 3, BITS)
    if isinstance(changed, OffsetCommitRequest) and world.keep_offsets:
        changed.retention_time_ms = -1
    if isinstance(changed, TxnOffsetCommitRequest):
        changed.producer_id = request.producer_id
    if isinstance(changed, OffsetCommitRequest | TxnOffsetCommitRequest):
        topics: list[Any] = list(changed.topics)
        for topic, before in zip(topics, request.topics, strict=True):
            for one, other in zip(topic.partitions, before.partitions, strict=True):
                one.partition_index = other.partition_index
                if world.rng.random() < 0.5:
                    extreme = INT64_MAX - world.checks.fresh_offset()
                    one.committed_offset = world.rng.choice([extreme, -extreme])
                else:
                    one.committed_offset = other.committed_offset
    return changed
