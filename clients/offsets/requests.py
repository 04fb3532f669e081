"""OffsetCommit and OffsetFetch, and the contents of their answers in every version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ringleader.clients.connection.requests import Request, by_topic
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition, with_metadata
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

# ---- OffsetCommit (key 8) and OffsetFetch (key 9), with topic names ----


COMMIT_BYTES = 524_288
"""Bytes of the records of one commit. Brokers write a commit as one batch and refuse it when that is larger
than `max.message.bytes` of their topic of offsets, 1 MiB unless it is set."""
RECORD_BYTES = 64
"""Of the record of an offset besides the names in it and the metadata; the least, so that no request has more
entries than a node of Ringleader takes."""


def in_commits(group_id: str, offsets: Offsets) -> Iterator[dict[TopicPartition, int | OffsetAndMetadata]]:
    """These offsets, no more at a time than one commit may have."""
    part: dict[TopicPartition, int | OffsetAndMetadata] = {}
    left, names_bytes = COMMIT_BYTES, _size(group_id)
    for (topic, partition), value in offsets.items():
        metadata = value.metadata if isinstance(value, OffsetAndMetadata) else ""
        size = RECORD_BYTES + names_bytes + len(topic) + _size(metadata)
        if part and size > left:
            yield part
            part, left = {}, COMMIT_BYTES
        part[topic, partition] = value
        left -= size
    if part:
        yield part


def _size(text: str) -> int:
    """Bytes in a record. A text that cannot be sent is refused where it is encoded."""
    return len(text.encode(errors="surrogatepass"))


def offset_commit(
    group_id: str, generation: int, member_id: str, group_instance_id: str | None, offsets: Offsets
) -> Request:
    """Commit for a member; generation -1 and member id "" for no member (only into a group without any)."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), value in offsets.items():
        position = with_metadata(value)
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
    group_id: str,
    partitions: Sequence[TopicPartition] | None,
    require_stable: bool = True,
    member: tuple[int, str] | None = None,
) -> Request:
    """The group's committed offsets; None asks for all of them (v2+). `require_stable` (v7+, KIP-447):
    partitions with an open transactional commit are refused until it is over. `member`: epoch and member id
    of the caller (v9+, KIP-848), which the coordinator checks; None sends none."""
    epoch, member_id = (-1, None) if member is None else member
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
            group = OffsetFetchRequestGroup(
                group_id=group_id, member_id=member_id, member_epoch=epoch, topics=topics
            )
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
