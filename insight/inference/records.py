"""The records of `__consumer_offsets` of every key type that is about groups, as facts.

Source: Kafka's CoordinatorRecordType: 0 and 1 offsets, 2 classic groups, 3 to 8 and 16 the consumer protocol
(KIP-848), 10 to 15 share groups (KIP-932). The keys are an int16 type and plain strings. The groups' topic of
Ringleader's nodes has the same records, and `CLAIM`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Final, Protocol, TypeVar

from ringleader.insight.inference.facts import (
    ClassicGroup,
    CoordinatorSeen,
    CurrentAssignment,
    GroupEpoch,
    ModernMember,
    OffsetCommitted,
    OffsetDeleted,
    Partitions,
    RecordFact,
    RegexResolved,
    Source,
    TargetAssignment,
    TargetEpoch,
)
from ringleader.insight.model import Kind
from ringleader.protocol import json_text
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from ringleader.protocol.schema import Message

OFFSET_KEYS = frozenset((b"\0\0", b"\0\1"))
"""The beginnings of the keys of committed offsets."""
CLAIM: Final = 0x52FF
"""The key type with which a node says that it coordinates the partition from here on; the value is JSON."""

_M = TypeVar("_M", bound=Message)

_SHORT = Struct(">h")
_INT32 = Struct(">i")
_OFFSET_HEAD = Struct(">hq")
_OFFSET_VERSIONS = 4


def decode(
    partition: int, offset: int, at_ms: int, key: bytes, value: bytes | None
) -> RecordFact | CoordinatorSeen | None:
    """The fact in a record; None for key types that show nothing of the history (4, 15) or are not known. The
    tombstone of a record is `value` None. Raises `MalformedError`."""
    if key[:2] in OFFSET_KEYS:
        group, topic, number = offset_key(key)
        source = Source(partition, offset)
        if value is None:
            return OffsetDeleted(source, at_ms, group, topic, number)
        return OffsetCommitted(source, at_ms, group, topic, number, offset_value(value))
    if len(key) < 2:
        raise MalformedError("record key", -1, "type", 0)
    kind = _SHORT.unpack_from(key)[0]
    if kind == CLAIM:
        return None if value is None else _claim(partition, at_ms, value)
    read = _READERS.get(kind)
    return None if read is None else read(Source(partition, offset), at_ms, key, value)


def offset_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition of a committed offset's key. Raises `MalformedError`."""
    group, topic, end = _strings(key, 2)
    if len(key) < end + 4:
        raise MalformedError("record key", -1, "partition", end)
    return group, topic, _INT32.unpack_from(key, end)[0]


def offset_value(value: bytes) -> int:
    """The offset in an OffsetCommitValue: it stands in front in all versions. Raises `MalformedError`."""
    if len(value) < _OFFSET_HEAD.size:
        raise MalformedError("OffsetCommitValue", 0, "offset", 0)
    version, offset = _OFFSET_HEAD.unpack_from(value)
    if not 0 <= version <= _OFFSET_VERSIONS:
        raise MalformedError("OffsetCommitValue", version, "version", 0)
    return int(offset)


def _strings(key: bytes, count: int) -> tuple[Any, ...]:
    """`count` strings behind the key's type, and where they end."""
    found: list[Any] = []
    end = 2
    try:
        for _ in range(count):
            start = end + 2
            end = start + _SHORT.unpack_from(key, end)[0]
            if not start <= end <= len(key):
                raise struct.error("a length that does not fit")
            found.append(key[start:end].decode())
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedError("record key", -1, "key", end, str(error)) from error
    return (*found, end)


def _message(cls: type[_M], value: bytes) -> _M:
    if len(value) < 2:
        raise MalformedError(cls.NAME, 0, "version", 0)
    version: int = _SHORT.unpack_from(value)[0]
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise MalformedError(cls.NAME, version, "version", 0)
    return cls.decode(value, version, 2)


def _claim(partition: int, at_ms: int, value: bytes) -> CoordinatorSeen:
    try:
        node_id = int(json_text.loads(value)["node_id"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise MalformedError("Claim", -1, "value", 0, repr(error)) from None
    # A node claims what it has again, every hour: that is no change.
    return CoordinatorSeen(at_ms, partition, node_id, 0, reachable=True, is_node=True)


class _TopicPartitions(Protocol):
    topic_id: bytes
    partitions: list[int]


def _partitions(given: Iterable[_TopicPartitions]) -> Partitions:
    found: dict[bytes, tuple[int, ...]] = {}
    for one in given:
        found[one.topic_id] = found.get(one.topic_id, ()) + tuple(one.partitions)
    return found


def _classic(source: Source, at_ms: int, key: bytes, value: bytes | None) -> ClassicGroup:
    group, _ = _strings(key, 1)
    return ClassicGroup(source, at_ms, group, None if value is None else _message(GroupMetadataValue, value))


def _epoch(kind: Kind) -> Callable[[Source, int, bytes, bytes | None], GroupEpoch]:
    cls: type[ConsumerGroupMetadataValue | ShareGroupMetadataValue] = (
        ConsumerGroupMetadataValue if kind is Kind.CONSUMER else ShareGroupMetadataValue
    )

    def read(source: Source, at_ms: int, key: bytes, value: bytes | None) -> GroupEpoch:
        group, _ = _strings(key, 1)
        if value is None:
            return GroupEpoch(source, at_ms, group, kind, None)
        decoded = _message(cls, value)
        return GroupEpoch(source, at_ms, group, kind, decoded.epoch, decoded.metadata_hash)

    return read


def _consumer_member(source: Source, at_ms: int, key: bytes, value: bytes | None) -> ModernMember:
    group, member_id, _ = _strings(key, 2)
    if value is None:
        return ModernMember(source, at_ms, group, Kind.CONSUMER, member_id, deleted=True)
    decoded = _message(ConsumerGroupMemberMetadataValue, value)
    topics, session_timeout_ms = decoded.subscribed_topic_names, None
    if decoded.classic_member_metadata is not None:
        session_timeout_ms = decoded.classic_member_metadata.session_timeout_ms
        if not topics and decoded.classic_member_metadata.supported_protocols:
            metadata = decoded.classic_member_metadata.supported_protocols[0].metadata
            topics = Subscription.decode_topics(metadata)
    return ModernMember(
        source,
        at_ms,
        group,
        Kind.CONSUMER,
        member_id,
        deleted=False,
        client_id=decoded.client_id,
        host=decoded.client_host,
        instance_id=decoded.instance_id,
        topics=tuple(sorted(topics)),
        regex=decoded.subscribed_topic_regex or None,
        rebalance_timeout_ms=decoded.rebalance_timeout_ms if decoded.rebalance_timeout_ms >= 0 else None,
        session_timeout_ms=session_timeout_ms,
    )


def _share_member(source: Source, at_ms: int, key: bytes, value: bytes | None) -> ModernMember:
    group, member_id, _ = _strings(key, 2)
    if value is None:
        return ModernMember(source, at_ms, group, Kind.SHARE, member_id, deleted=True)
    decoded = _message(ShareGroupMemberMetadataValue, value)
    return ModernMember(
        source,
        at_ms,
        group,
        Kind.SHARE,
        member_id,
        deleted=False,
        client_id=decoded.client_id,
        host=decoded.client_host,
        topics=tuple(sorted(decoded.subscribed_topic_names)),
    )


def _target_epoch(kind: Kind) -> Callable[[Source, int, bytes, bytes | None], TargetEpoch]:
    cls: type[ConsumerGroupTargetAssignmentMetadataValue | ShareGroupTargetAssignmentMetadataValue] = (
        ConsumerGroupTargetAssignmentMetadataValue
        if kind is Kind.CONSUMER
        else ShareGroupTargetAssignmentMetadataValue
    )

    def read(source: Source, at_ms: int, key: bytes, value: bytes | None) -> TargetEpoch:
        group, _ = _strings(key, 1)
        epoch = None if value is None else _message(cls, value).assignment_epoch
        return TargetEpoch(source, at_ms, group, kind, epoch)

    return read


def _target(kind: Kind) -> Callable[[Source, int, bytes, bytes | None], TargetAssignment]:
    cls: type[ConsumerGroupTargetAssignmentMemberValue | ShareGroupTargetAssignmentMemberValue] = (
        ConsumerGroupTargetAssignmentMemberValue
        if kind is Kind.CONSUMER
        else ShareGroupTargetAssignmentMemberValue
    )

    def read(source: Source, at_ms: int, key: bytes, value: bytes | None) -> TargetAssignment:
        group, member_id, _ = _strings(key, 2)
        partitions = None if value is None else _partitions(_message(cls, value).topic_partitions)
        return TargetAssignment(source, at_ms, group, kind, member_id, partitions)

    return read


def _consumer_current(source: Source, at_ms: int, key: bytes, value: bytes | None) -> CurrentAssignment:
    group, member_id, _ = _strings(key, 2)
    if value is None:
        return CurrentAssignment(source, at_ms, group, Kind.CONSUMER, member_id, None, {}, {})
    decoded = _message(ConsumerGroupCurrentMemberAssignmentValue, value)
    assigned, revoking = (
        _partitions(decoded.assigned_partitions),
        _partitions(decoded.partitions_pending_revocation),
    )
    return CurrentAssignment(
        source, at_ms, group, Kind.CONSUMER, member_id, decoded.member_epoch, assigned, revoking
    )


def _share_current(source: Source, at_ms: int, key: bytes, value: bytes | None) -> CurrentAssignment:
    group, member_id, _ = _strings(key, 2)
    if value is None:
        return CurrentAssignment(source, at_ms, group, Kind.SHARE, member_id, None, {}, {})
    decoded = _message(ShareGroupCurrentMemberAssignmentValue, value)
    assigned = _partitions(decoded.assigned_partitions)
    return CurrentAssignment(source, at_ms, group, Kind.SHARE, member_id, decoded.member_epoch, assigned, {})


def _regex(source: Source, at_ms: int, key: bytes, value: bytes | None) -> RegexResolved:
    group, regex, _ = _strings(key, 2)
    topics = (
        None if value is None else tuple(sorted(_message(ConsumerGroupRegularExpressionValue, value).topics))
    )
    return RegexResolved(source, at_ms, group, regex, topics)


_READERS: Final[dict[int, Callable[[Source, int, bytes, bytes | None], RecordFact]]] = {
    2: _classic,
    3: _epoch(Kind.CONSUMER),
    5: _consumer_member,
    6: _target_epoch(Kind.CONSUMER),
    7: _target(Kind.CONSUMER),
    8: _consumer_current,
    10: _share_member,
    11: _epoch(Kind.SHARE),
    12: _target_epoch(Kind.SHARE),
    13: _target(Kind.SHARE),
    14: _share_current,
    16: _regex,
}
