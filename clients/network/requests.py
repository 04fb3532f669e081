"""Requests whose shape depends on the version, and what their answers say in every version.

The one place of the client library that knows such differences; the version itself is chosen per connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ringleader.clients.model import MemberProtocol, Node, OffsetAndMetadata, Offsets, TopicPartition
from ringleader.clients.settings import MemberSettings
from ringleader.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

REASON_MAX_CHARACTERS = 255
"""Longer reasons are cut, as the Java client does (KIP-800)."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of one API whose body is built when the version is known."""

    message: Any
    """The message class."""
    build: Callable[[int], Any]
    max_version: int = 32767
    raw: bool = False
    """The answer is wanted as a `RawAnswer`: it may be large, and is decoded elsewhere."""


class RawAnswer(NamedTuple):
    """An answer as it came: header and body, without the size."""

    frame: bytes
    version: int


def plain(message: Any) -> Request:
    """A request that is the same in all versions."""
    return Request(type(message), lambda _version: message)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> partitions, in the order of first appearance."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


# ---- FindCoordinator (key 10): one key up to v3, a list from v4 on (KIP-699) ----


def find_coordinator(group_id: str) -> Request:
    """Who coordinates the group."""

    def build(version: int) -> FindCoordinatorRequest:
        if version >= 4:
            return FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
        return FindCoordinatorRequest(key=group_id)

    return Request(FindCoordinatorRequest, build)


class FoundCoordinator(NamedTuple):
    """`node` is None when `code` is an error."""

    code: int
    node: Node | None


def found_coordinator(response: Any) -> FoundCoordinator:
    """The answer about the one group that was asked for."""
    answer = response.coordinators[0] if response.coordinators else response
    if answer.error_code:
        return FoundCoordinator(answer.error_code, None)
    return FoundCoordinator(0, Node(answer.node_id, answer.host, answer.port))


# ---- JoinGroup (key 11), SyncGroup (key 14), Heartbeat (key 12): the same in all versions ----


def join_group(
    settings: MemberSettings, protocols: Sequence[MemberProtocol], member_id: str, reason: str
) -> Request:
    """Join or rejoin with the protocols' metadata as of now."""
    return plain(
        JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=settings.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=protocol.name, metadata=protocol.current())
                for protocol in protocols
            ],
            reason=reason[:REASON_MAX_CHARACTERS],
        )
    )


def sync_group(
    settings: MemberSettings,
    generation: int,
    member_id: str,
    protocol: str,
    assignments: Mapping[str, bytes],
) -> Request:
    """Ask for the share; from the leader with everybody's assignments, from others with none."""
    return plain(
        SyncGroupRequest(
            group_id=settings.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=settings.protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
        )
    )


def heartbeat(settings: MemberSettings, generation: int, member_id: str) -> Request:
    """Still here."""
    return plain(
        HeartbeatRequest(
            group_id=settings.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
        )
    )


# ---- LeaveGroup (key 13): one member up to v2, a list from v3 on (KIP-345) ----


def leave_group(group_id: str, member_id: str, group_instance_id: str | None, reason: str) -> Request:
    """Leave; the reason goes along from v5 on (KIP-800)."""

    def build(version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id=group_id, member_id=member_id)
        me = LeaveGroupRequestMemberIdentity(
            member_id=member_id,
            group_instance_id=group_instance_id,
            reason=reason[:REASON_MAX_CHARACTERS] if version >= 5 and reason else None,
        )
        return LeaveGroupRequest(group_id=group_id, members=[me])

    return Request(LeaveGroupRequest, build)


def left_group(response: Any) -> int | None:
    """The error code for the one member that left; None when the answer is about several."""
    if response.error_code or not response.members:
        return int(response.error_code)
    return int(response.members[0].error_code) if len(response.members) == 1 else None


# ---- OffsetCommit (key 8) and OffsetFetch (key 9), with topic names ----


def offset_commit(
    group_id: str, generation: int, member_id: str, group_instance_id: str | None, offsets: Offsets
) -> Request:
    """Commit for a member; generation -1 and member id "" for no member (only into a group without any)."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), value in offsets.items():
        position = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
        entry = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=position.offset,
            committed_leader_epoch=position.leader_epoch,
            committed_metadata=position.metadata,
        )
        topics.setdefault(topic, []).append(entry)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    return Request(OffsetCommitRequest, lambda _version: message, max_version=9)


def commit_errors(response: Any) -> dict[TopicPartition, int]:
    """The partitions that were not committed, with their error codes."""
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code
    }


def offset_fetch(
    group_id: str, partitions: Sequence[TopicPartition] | None, require_stable: bool = True
) -> Request:
    """The group's committed offsets; None asks for all of them (v2+). `require_stable` (v7+, KIP-447):
    partitions with an open transactional commit are refused until it is over."""
    wanted = None if partitions is None else by_topic(partitions)

    def build(version: int) -> OffsetFetchRequest:
        stable = require_stable and version >= 7
        if version >= 8:
            topics = (
                None
                if wanted is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=parts)
                    for name, parts in wanted.items()
                ]
            )
            group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
            return OffsetFetchRequest(groups=[group], require_stable=stable)
        older = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=parts) for name, parts in wanted.items()
            ]
        )
        return OffsetFetchRequest(group_id=group_id, topics=older, require_stable=stable)

    return Request(OffsetFetchRequest, build, max_version=9)


class FetchedOffsets(NamedTuple):
    """`code`: the group's error. `offsets`: of partitions that have one. `errors`: by partition."""

    code: int
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    errors: Mapping[TopicPartition, int]


def fetched_offsets(response: Any) -> FetchedOffsets:
    """The answer about the one group that was asked for."""
    group = response.groups[0] if response.groups else response
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    errors: dict[TopicPartition, int] = {}
    for topic in group.topics:
        for part in topic.partitions:
            key = (topic.name, part.partition_index)
            if part.error_code:
                errors[key] = part.error_code
            elif part.committed_offset >= 0:
                offsets[key] = OffsetAndMetadata(
                    part.committed_offset, part.metadata or "", part.committed_leader_epoch
                )
    return FetchedOffsets(group.error_code, offsets, errors)
