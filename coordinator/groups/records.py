"""The persisted records: Kafka's own key and value formats, and our few key types.

Offsets are by far the most frequent records, so their current layouts are read and written here with plain
structs; everything else goes through the declared messages. A test holds both against each other.

Our own key types stand in a range that Kafka does not use; its loader skips unknown key types, and so does
ours.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct

from ringleader.coordinator.groups.committed import CommittedOffset
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupMetadataValueMemberMetadata,
    OffsetCommitValue,
)
from ringleader.protocol.schema import ZERO_UUID
from ringleader.protocol.wire import write_uvarint

OFFSET_LEGACY = 0
OFFSET = 1
GROUP = 2
RESERVED_GENERATION = 0x5200
"""Ours. Key: int16 type, string group. Value: int16 version 0, int32 reserved generation: every generation
number up to it may have been used, so the next one is above it."""

UNCOMMITTED_OFFSET = 0x5201
"""Ours: an offset of an open transaction. Key: int16 type, string group, string topic, int32 partition, int64
producer id. Value: OffsetCommitValue."""

UNCOMMITTED_LATER = 0x5203
"""Ours: here the offset of an open transaction is later than the committed one. Key: int16 type, then as
UNCOMMITTED_OFFSET. Value: nothing. The offset's own record stays where it is: written again it would stand
behind the marker of its transaction, which may be in the log already."""

READ_BARRIER = 0x5202
"""Ours: says nothing; its append confirms that its shard's owner still owns it. Key: int16 type.
Value: nothing. One key for each shard, so a compacted log has one of them."""

GROUP_VALUE_VERSION = 3
"""Version of GroupMetadataValue that is written, as Kafka does."""

MAX_STRING_BYTES = 32_767
"""Longest string that the records can hold."""

_REMEMBERED_CHARS = 255
"""Keys of longer names are made again each time, so that the remembered ones have a bound in bytes: 16
MiB."""

_READABLE = frozenset(
    (OFFSET_LEGACY, OFFSET, GROUP, RESERVED_GENERATION, UNCOMMITTED_OFFSET, UNCOMMITTED_LATER)
)

_SHORT = Struct(">h")
_OFFSET_KINDS = frozenset(_SHORT.pack(kind) for kind in (OFFSET_LEGACY, OFFSET, UNCOMMITTED_OFFSET))
READ_BARRIER_RECORD = (_SHORT.pack(READ_BARRIER), b"")
_KEY_HEAD = Struct(">hh")
_KEY_TAIL = Struct(">i")
_UNCOMMITTED_KEY_TAIL = Struct(">iq")
_OFFSET_V4_HEAD = Struct(">hqi")  # version, offset, leader epoch
_OFFSET_HEAD_V1 = Struct(">hqh")  # version, offset, metadata length
_STAMP = Struct(">q")
_STAMPS = Struct(">qq")
_OFFSET_V3_NO_METADATA = Struct(">hqihq")
_OFFSET_V4_NO_METADATA = Struct(">hqiBq3s16s")  # ..., 1 for no metadata, stamp, `_ID_TAG`, topic id
_NO_ID, _ID_TAG = b"\0", b"\1\0\x10"
"""No tagged fields; one, with number 0 and 16 bytes: the topic id."""
_RESERVED_VALUE = Struct(">hi")


Key = tuple[int, str, str, int, int]
"""A decoded record key: type, group id, topic, partition, producer id ("" and -1 where the type has none)."""


def _string(text: str) -> bytes:
    raw = text.encode()
    return _SHORT.pack(len(raw)) + raw


def offset_key_prefix(group_id: str, topic: str) -> bytes:
    """The beginning of the keys of all partitions of a topic in a group; four bytes of partition follow."""
    short = len(group_id) <= _REMEMBERED_CHARS >= len(topic)
    return (_short_key_prefix if short else _key_prefix)(group_id, topic)


def _key_prefix(group_id: str, topic: str, kind: int = OFFSET) -> bytes:
    return _SHORT.pack(kind) + _string(group_id) + _string(topic)


_short_key_prefix = lru_cache(maxsize=8_192)(_key_prefix)


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """OffsetCommitKey v1."""
    return offset_key_prefix(group_id, topic) + _KEY_TAIL.pack(partition)


def pending_key(group_id: str, topic: str, partition: int, producer_id: int) -> bytes:
    """Key of an offset of an open transaction."""
    return _of_producer(UNCOMMITTED_OFFSET, group_id, topic, partition, producer_id)


def later_key(group_id: str, topic: str, partition: int, producer_id: int) -> bytes:
    """Key of what says that such an offset is later than the committed one."""
    return _of_producer(UNCOMMITTED_LATER, group_id, topic, partition, producer_id)


def _of_producer(kind: int, group_id: str, topic: str, partition: int, producer_id: int) -> bytes:
    short = len(group_id) <= _REMEMBERED_CHARS >= len(topic)
    head = (_short_key_prefix if short else _key_prefix)(group_id, topic, kind)
    return head + _UNCOMMITTED_KEY_TAIL.pack(partition, producer_id)


def encode_key(key: Key) -> bytes:
    """The bytes of a key, as `decode_key` reads them."""
    kind, group_id, topic, partition, producer_id = key
    if kind == OFFSET:
        return offset_key(group_id, topic, partition)
    if kind in (UNCOMMITTED_OFFSET, UNCOMMITTED_LATER):
        return _of_producer(kind, group_id, topic, partition, producer_id)
    return group_key(group_id) if kind == GROUP else reserved_key(group_id)


def group_key(group_id: str) -> bytes:
    """GroupMetadataKey v2."""
    return _SHORT.pack(GROUP) + GroupMetadataKey(group=group_id).encode(GROUP)


def reserved_key(group_id: str) -> bytes:
    """Key of a group's reserved generation."""
    return _SHORT.pack(RESERVED_GENERATION) + _string(group_id)


def key_partition(key: bytes) -> int:
    """The partition of an offset key."""
    partition: int = _KEY_TAIL.unpack_from(key, len(key) - 4)[0]
    return partition


def decode_key(key: bytes) -> Key | None:
    """A record key; None for types that are not ours to read. Raises `MalformedError`."""
    try:
        if _SHORT.unpack_from(key)[0] not in _READABLE:
            return None
        kind, length = _KEY_HEAD.unpack_from(key)
        end = 4 + length
        group_id = _text(key, 4, end)
        if kind in (GROUP, RESERVED_GENERATION):
            return kind, group_id, "", -1, -1
        start = end + 2
        end = start + _SHORT.unpack_from(key, end)[0]
        topic = _text(key, start, end)
        if kind in (UNCOMMITTED_OFFSET, UNCOMMITTED_LATER):
            return kind, group_id, topic, *_UNCOMMITTED_KEY_TAIL.unpack_from(key, end)
        return OFFSET, group_id, topic, _KEY_TAIL.unpack_from(key, end)[0], -1
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedError("record key", -1, "key", 0, str(error)) from error


def _text(raw: bytes, start: int, end: int) -> str:
    if not start <= end <= len(raw):
        raise struct.error("a length that does not fit")
    return raw[start:end].decode()


def offset_value(
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_ms: int,
    expire_ms: int,
    topic_id: bytes = ZERO_UUID,
) -> bytes:
    """OffsetCommitValue: v1 if there is an explicit expiry (which loses the leader epoch and the topic id),
    else v4, as Kafka.

    The fields are those of `CommittedOffset`.
    """
    if not metadata and expire_ms < 0 and topic_id != ZERO_UUID:
        return _OFFSET_V4_NO_METADATA.pack(4, offset, leader_epoch, 1, commit_ms, _ID_TAG, topic_id)
    expires = expire_ms >= 0
    head = offset_head(offset, leader_epoch, metadata, expires=expires)
    return head + offset_stamps(commit_ms, expire_ms) + offset_tail(topic_id, expires=expires)


def offset_head(offset: int, leader_epoch: int, metadata: str, *, expires: bool) -> bytes:
    """The beginning of an `offset_value`, before its stamps. `expires`: whether it has an explicit expiry."""
    raw = metadata.encode()
    if expires:
        return _OFFSET_HEAD_V1.pack(1, offset, len(raw)) + raw
    return _OFFSET_V4_HEAD.pack(4, offset, leader_epoch) + write_uvarint(len(raw) + 1) + raw


def offset_stamps(commit_ms: int, expire_ms: int) -> bytes:
    """The middle of an `offset_value`."""
    return _STAMPS.pack(commit_ms, expire_ms) if expire_ms >= 0 else _STAMP.pack(commit_ms)


def offset_tail(topic_id: bytes, *, expires: bool) -> bytes:
    """The end of an `offset_value`: the same for all partitions of a topic."""
    return b"" if expires else _NO_ID if topic_id == ZERO_UUID else _ID_TAG + topic_id


def is_plain_offset(value: bytes) -> bool:
    """Whether the value of an offset's record can be read, without reading it: it has no metadata."""
    size = len(value)
    if size == _OFFSET_V4_NO_METADATA.size:
        return value[14] == 1 and value[:2] == b"\0\4" and value[23:26] == _ID_TAG
    if size != _OFFSET_V3_NO_METADATA.size:
        return False
    if value[:2] == b"\0\3":
        return not value[14] | value[15]
    return value[:2] == b"\0\4" and value[14] == 1 and not value[23]


def check(key: bytes, value: bytes) -> None:
    """Whether the value of an offset's record can be read: they are kept as they are, and read when they are
    asked for. Raises `MalformedError`."""
    if key[:2] in _OFFSET_KINDS:
        decode_offset_value(value)


def decode_offset_value(value: bytes) -> CommittedOffset:
    """Any version of OffsetCommitValue. Raises `MalformedError`."""
    if len(value) == _OFFSET_V4_NO_METADATA.size:
        version, offset, epoch, length, stamp, tag, topic_id = _OFFSET_V4_NO_METADATA.unpack(value)
        if version == 4 and length == 1 and tag == _ID_TAG:
            return CommittedOffset(offset, epoch, "", stamp, -1, topic_id)
    elif len(value) == _OFFSET_V3_NO_METADATA.size:
        version, offset, epoch, length, stamp = _OFFSET_V3_NO_METADATA.unpack(value)
        if version == 3 and length == 0:
            return CommittedOffset(offset, epoch, "", stamp, -1)
    version = _version(value, "OffsetCommitValue", OffsetCommitValue.MAX_VERSION)
    message = OffsetCommitValue.decode(value, version, 2)
    return CommittedOffset(
        message.offset,
        message.leader_epoch if version >= 3 else -1,
        message.metadata,
        message.commit_timestamp,
        message.expire_timestamp if version == 1 else -1,
        message.topic_id,
    )


def _version(value: bytes, message: str, newest: int) -> int:
    if len(value) < 2:
        raise MalformedError(message, 0, "version", 0)
    version: int = _SHORT.unpack_from(value)[0]
    if not 0 <= version <= newest:
        raise MalformedError(message, version, "version", 0)
    return version


def reserved_value(generation: int) -> bytes:
    """Value of a reserved generation."""
    return _RESERVED_VALUE.pack(0, generation)


def decode_reserved_value(value: bytes) -> int:
    """The reserved generation. Raises `MalformedError`."""
    if len(value) < _RESERVED_VALUE.size or value[:2] != b"\0\0":
        raise MalformedError("ReservedGenerationValue", 0, "generation", 0)
    generation: int = _RESERVED_VALUE.unpack_from(value)[1]
    return generation


def group_value(
    group: Group, members: Iterable[tuple[Member, bytes]], since_unix_ms: int
) -> GroupMetadataValue:
    """GroupMetadataValue of the group as it is now, with these assignments. Per member it holds the metadata
    of the elected protocol, and only that (Kafka behaviour)."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=since_unix_ms,
        members=[
            GroupMetadataValueMemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignment,
            )
            for member, assignment in members
        ],
    )


def encode_group_value(value: GroupMetadataValue) -> bytes:
    """A group's record from the message."""
    return _SHORT.pack(GROUP_VALUE_VERSION) + value.encode(GROUP_VALUE_VERSION)


def empty_group_value(since_unix_ms: int) -> GroupMetadataValue:
    """GroupMetadataValue of a group that has just been made (Kafka behaviour: generation 0, nothing else)."""
    return GroupMetadataValue(current_state_timestamp=since_unix_ms, protocol=None, leader=None)


def decode_group_value(value: bytes) -> GroupMetadataValue:
    """Any version of GroupMetadataValue. Raises `MalformedError`."""
    version = _version(value, "GroupMetadataValue", GroupMetadataValue.MAX_VERSION)
    return GroupMetadataValue.decode(value, version, 2)


def uncommitted_keys(group: Group, topic: str, partition: int, producer_id: int) -> list[Key]:
    """Keys of what there is of the offset of one open transaction for one partition."""
    place = group.group_id, topic, partition, producer_id
    later = (producer_id, topic, partition) in group.later
    return (
        [(UNCOMMITTED_OFFSET, *place), (UNCOMMITTED_LATER, *place)]
        if later
        else [(UNCOMMITTED_OFFSET, *place)]
    )


def all_uncommitted_keys(group: Group, topic: str, partition: int) -> list[Key]:
    """Likewise of all open transactions."""
    return [
        key
        for producer_id in group.open_at.get((topic, partition), ())
        for key in uncommitted_keys(group, topic, partition, producer_id)
    ]


def offset_keys(group: Group, topic: str | None = None, topic_id: bytes = ZERO_UUID) -> Iterator[list[Key]]:
    """Keys of the group's offsets of a topic (None: of all), those of open transactions too, by partition:
    what is deleted of one has to go in one append, or an older offset counts in between. Not those of a
    partition that has one committed for another id than `topic_id`, if that is not zero."""
    group_id = group.group_id
    for one in group.offsets if topic is None else (topic,):
        for partition, value in group.offsets.get(one, {}).items():
            if topic_id != ZERO_UUID and decode_offset_value(value).topic_id not in (ZERO_UUID, topic_id):
                continue
            committed = OFFSET, group_id, one, partition, -1
            yield [*all_uncommitted_keys(group, one, partition), committed] if group.open_at else [committed]
    for one, partition in group.open_at:
        if topic in (None, one) and partition not in group.offsets.get(one, ()):
            yield all_uncommitted_keys(group, one, partition)


def keys_of(group: Group) -> list[Key]:
    """Keys of all that the log has of a group: its offsets, its record, its reserved generation."""
    found = [key for keys in offset_keys(group) for key in keys]
    if group.synced is not None:
        found.append((GROUP, group.group_id, "", -1, -1))
    if group.reserved_generation:
        found.append((RESERVED_GENERATION, group.group_id, "", -1, -1))
    return found
