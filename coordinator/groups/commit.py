"""A commit of offsets, plain or in a transaction: made ready piece by piece, written in one append.

The records of a commit do not depend on its group, but for the stamps. So a long one is made ready first,
with other work in between; whether it may be written is asked when it is written, in the same turn. It is in
the log whole or not at all."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar, cast

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.machine import Records, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ringleader.protocol.schema import ZERO_UUID
from ringleader.protocol.wire import INT64_MAX

ENTRIES_AT_A_TIME = 500
"""How many are made ready between two `yield`s: about a millisecond."""

RECORD_OVERHEAD_BYTES = 48
"""Bytes of a record in the log besides its key and its value without stamps, at most."""

T = TypeVar("T")

CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest

_CLASSES: dict[type[CommitRequest], tuple[type[Any], type[Any], type[Any]]] = {
    OffsetCommitRequest: (OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition),
    TxnOffsetCommitRequest: (
        TxnOffsetCommitResponse,
        TxnOffsetCommitResponseTopic,
        TxnOffsetCommitResponsePartition,
    ),
}


class PreparedCommit:
    """A request, its records without stamps, and its answer, for when the group takes it."""

    __slots__ = ("content", "keys", "request", "response", "too_large")

    def __init__(self, request: CommitRequest) -> None:
        self.request = request
        self.response: Any = _CLASSES[type(request)][0]()
        self.content: list[tuple[bytes, bytes, bytes]] = []
        """Key, and what stands before and after the stamps of the value."""
        self.keys: list[records.Key] = []
        """The same keys, decoded."""
        self.too_large = False
        """The records are too many bytes for one append; there are none."""

    def refused(self, error_code: int) -> Any:
        """The answer if the group does not take it."""
        for topic in self.response.topics:
            for one in topic.partitions:
                one.error_code = error_code
        return self.response


def prepare(request: CommitRequest, settings: GroupSettings) -> Generator[None, None, PreparedCommit]:
    """Everything of a commit that does not depend on its group; returns it."""
    prepared = PreparedCommit(request)
    _, topic_class, partition_class = _CLASSES[type(request)]
    group_id, producer_id, expires = request.group_id, -1, False
    if isinstance(request, TxnOffsetCommitRequest):
        producer_id = request.producer_id
    else:
        expires = request.retention_time_ms >= 0
    kind = records.OFFSET if isinstance(request, OffsetCommitRequest) else records.UNCOMMITTED_OFFSET
    longest, left = settings.offset_metadata_max_bytes, settings.group_max_record_bytes
    if len(group_id.encode()) > records.MAX_STRING_BYTES:
        left = -1  # no group has this id, and no record could
    content, keys, count = prepared.content, prepared.keys, 0
    for topic in request.topics:
        results: list[Any] = []
        prepared.response.topics.append(topic_class(name=topic.name, partitions=results))
        # A transactional commit names no id: Kafka 4.3 stores none either.
        tail = records.offset_tail(getattr(topic, "topic_id", ZERO_UUID), expires=expires)
        for one in topic.partitions:
            count += 1
            if not count % ENTRIES_AT_A_TIME:
                yield
            metadata, error = one.committed_metadata or "", ErrorCode.NONE
            if metadata and _is_too_long(metadata, longest):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            elif left >= 0:
                named = kind, group_id, topic.name, one.partition_index, producer_id
                key = records.encode_key(named)
                head = records.offset_head(
                    one.committed_offset, one.committed_leader_epoch, metadata, expires=expires
                )
                left -= len(key) + len(head) + len(tail) + RECORD_OVERHEAD_BYTES
                content.append((key, head, tail))
                keys.append(named)
            results.append(partition_class(partition_index=one.partition_index, error_code=int(error)))
    if left < 0:
        prepared.too_large = True
        content.clear()
        keys.clear()
    return prepared


def at_once(steps: Generator[Any, None, T]) -> T:
    """The result of all steps, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast(T, stop.value)


def write(
    core: Core, prepared: PreparedCommit, ticket: Ticket, error: int, commit_ms: int, now_ms: int
) -> Any | None:
    """Write a commit that was checked. The answer; None while it waits for the records. `error`: the result
    of the check."""
    request = prepared.request
    if not error and prepared.too_large:
        error = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    retention_ms = getattr(request, "retention_time_ms", -1)
    expire_ms = min(commit_ms + retention_ms, INT64_MAX) if retention_ms >= 0 else -1
    stamps = records.offset_stamps(commit_ms, expire_ms)
    content: Records = [(key, head + stamps + tail) for key, head, tail in prepared.content]
    group = core.groups.get(request.group_id)
    if not error and (group is None or group.is_absent):  # a deletion on its way: what comes starts clean
        group = core.find_or_add(request.group_id)
        error = ErrorCode.NONE if group is not None else ErrorCode.POLICY_VIOLATION
    if error or group is None:
        return core.reply(ticket, prepared.refused(int(error)), core.position_of(request.group_id))
    if not prepared.content:
        core.forget_if_absent(group)
        return core.reply(ticket, prepared.response, group.position)
    core.begin_change()
    group.committed_ms = commit_ms
    position = core.write_offsets(group, content, prepared.keys)
    if group.no_commit_since is not None:
        core.reports.first_commit(group, request.member_id, now_ms, position)
    return core.reply(ticket, prepared.response, position)


def utf16_units(text: str) -> int:
    """Length as Java's String.length counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_too_long(metadata: str, longest: int) -> bool:
    if utf16_units(metadata) > longest:
        return True
    return len(metadata) * 4 > records.MAX_STRING_BYTES and len(metadata.encode()) > records.MAX_STRING_BYTES
