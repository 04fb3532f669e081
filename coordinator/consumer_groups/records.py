"""The records of a group of the consumer protocol, in Kafka's own formats (key types 3, 5 to 8 and 16).

A key is an int16 type, the group id and, but for types 3 and 6, a member id (a regular expression, for
type 16). A value is an int16 version and a flexible structure of `protocol.messages.persisted_modern`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ringleader.coordinator.consumer_groups.group import FIRST_EPOCH, ConsumerGroup, Regex
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    ConsumerMember,
    Current,
    MemberState,
    Owned,
    Subscription,
    Target,
)
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMemberMetadataValueClassicMemberMetadata,
    ConsumerGroupMemberMetadataValueClassicProtocol,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupRegularExpressionValueView,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMemberValueTopicPartition,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ringleader.protocol.schema import Message

M = TypeVar("M", bound=Message)

Record: TypeAlias = tuple[bytes, bytes | None]

GROUP_EPOCH = 3
SUBSCRIPTION = 5
TARGET_EPOCH = 6
TARGET = 7
CURRENT = 8
REGEX = 16

OF_GROUP = frozenset((GROUP_EPOCH, TARGET_EPOCH))
"""Types whose key is a group id alone."""
KINDS = frozenset((GROUP_EPOCH, SUBSCRIPTION, TARGET_EPOCH, TARGET, CURRENT, REGEX))

_SHORT = struct.Struct(">h")
_TWO_SHORTS = struct.Struct(">hh").pack
_VERSION = b"\0\0"
_START = 2
_NUMBERS = struct.Struct(">iib")
"""The beginning of record 8: the member's epoch, the one before, and its state."""


def key(kind: int, group_id: str, second: str = "") -> bytes:
    """A record's key. `second`: the member id or the regular expression, where the type has one."""
    raw = group_id.encode()
    first = _TWO_SHORTS(kind, len(raw)) + raw
    if kind in OF_GROUP:
        return first
    raw = second.encode()
    return first + _SHORT.pack(len(raw)) + raw


# ---- values ----


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Record 3."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return key(GROUP_EPOCH, group_id), _VERSION + value.encode(0)


def subscription(group_id: str, member_id: str, described: Subscription) -> Record:
    """Record 5."""
    classic = described.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=described.instance_id,
        rack_id=described.rack_id,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topic_names),
        subscribed_topic_regex=described.topic_regex,
        rebalance_timeout_ms=described.rebalance_timeout_ms,
        server_assignor=described.server_assignor,
        classic_member_metadata=None if classic is None else _classic(classic),
        leader_user_data=described.leader_user_data,
        principal=described.principal,
    )
    return key(SUBSCRIPTION, group_id, member_id), _VERSION + value.encode(0)


def _classic(offered: ClassicMember) -> ConsumerGroupMemberMetadataValueClassicMemberMetadata:
    return ConsumerGroupMemberMetadataValueClassicMemberMetadata(
        session_timeout_ms=offered.session_timeout_ms,
        supported_protocols=[
            ConsumerGroupMemberMetadataValueClassicProtocol(name=name, metadata=metadata)
            for name, metadata in offered.protocols
        ],
    )


def target_epoch(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Record 6."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=assigned_ms
    )
    return key(TARGET_EPOCH, group_id), _VERSION + value.encode(0)


def target(group_id: str, member_id: str, wanted: Target) -> Record:
    """Record 7."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValueTopicPartition(topic_id=topic_id, partitions=sorted(some))
            for topic_id, some in sorted(wanted.items())
        ]
    )
    return key(TARGET, group_id, member_id), _VERSION + value.encode(0)


def current(group_id: str, member_id: str, had: Current, before: ConsumerMember | None = None) -> Record:
    """Record 8. `before`: the member as it is, if it is one: most only come into another epoch, and the
    record says of their partitions what the last one said."""
    if before is not None and before.written and had.holds_as(before.current):
        numbers = _NUMBERS.pack(had.epoch, had.previous_epoch, had.state)
        value = before.written[:_START] + numbers + before.written[_START + _NUMBERS.size :]
        return key(CURRENT, group_id, member_id), value
    return key(CURRENT, group_id, member_id), _current_value(had)


def _current_value(had: Current) -> bytes:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=had.epoch,
        previous_member_epoch=had.previous_epoch,
        state=int(had.state),
        assigned_partitions=[*_with_epochs(had.assigned)],
        partitions_pending_revocation=[*_with_epochs(had.pending_revocation)],
    )
    return _VERSION + value.encode(0)


def _with_epochs(
    owned: Owned,
) -> Iterator[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions]:
    for topic_id, partitions in sorted(owned.items()):
        numbers = sorted(partitions)
        yield ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
            topic_id=topic_id, partitions=numbers, assignment_epochs=[partitions[one] for one in numbers]
        )


def regex(group_id: str, pattern: str, found: Regex) -> Record:
    """Record 16."""
    views = None
    if found.views is not None:
        different = {id(seen): seen for seen in found.views.values()}  # many principals see the same
        lists = {of: None if seen == found.topics else sorted(seen) for of, seen in different.items()}
        views = [
            ConsumerGroupRegularExpressionValueView(principal, lists[id(seen)])
            for principal, seen in sorted(found.views.items())
        ]
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(found.topics), version=found.version, timestamp=found.resolved_ms, views=views
    )
    return key(REGEX, group_id, pattern), _VERSION + value.encode(0)


def tombstones_of_member(group_id: str, member_id: str) -> list[Record]:
    """The records that delete a member, in Kafka's order."""
    return [(key(kind, group_id, member_id), None) for kind in (CURRENT, TARGET, SUBSCRIPTION)]


def tombstones(group: ConsumerGroup) -> list[Record]:
    """The records that delete a group, in Kafka's order."""
    name = group.group_id
    found: list[Record] = []
    for kind in (CURRENT, TARGET, SUBSCRIPTION):
        found += [(key(kind, name, member_id), None) for member_id in group.members]
        if kind is TARGET:
            found.append((key(TARGET_EPOCH, name), None))
    found += [(key(REGEX, name, pattern), None) for pattern in group.regexes]
    found.append((key(GROUP_EPOCH, name), None))
    return found


def all_records(group: ConsumerGroup) -> list[Record]:
    """The records that a group is read back from, in Kafka's order: for a group that is moved or made of
    another one."""
    name = group.group_id
    members = group.members.values()
    found = [subscription(name, one.member_id, one.subscription) for one in members]
    found.append(group_epoch(name, group.epoch, group.metadata_hash))
    found += [regex(name, pattern, one) for pattern, one in group.regexes.items()]
    found += [target(name, one.member_id, one.target) for one in members]
    found.append(target_epoch(name, group.assignment_epoch, group.assigned_ms))
    found += [current(name, one.member_id, one.current) for one in members]
    return found


# ---- reading ----


def decode_key(raw: bytes) -> tuple[int, str, str] | None:
    """Type, group id and member id or regular expression ("" where the type has none); None for the types of
    others. Raises `MalformedError`."""
    try:
        kind = _SHORT.unpack_from(raw)[0]
        if kind not in KINDS:
            return None
        group_id, end = _text(raw, _START)
        if kind in OF_GROUP:
            return kind, group_id, ""
        second, _ = _text(raw, end)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedError("record key", -1, "key", 0, str(error)) from error
    return kind, group_id, second


def _text(raw: bytes, start: int) -> tuple[str, int]:
    length = _SHORT.unpack_from(raw, start)[0]
    end = start + 2 + length
    if length < 0 or end > len(raw):
        raise struct.error("a length that does not fit")
    return raw[start + 2 : end].decode(), end


def apply(group: ConsumerGroup, kind: int, second: str, value: bytes | None) -> None:
    """One record takes effect. Any suffix of a compacted log may be applied (KAFKA-19862): the records of a
    member come in any order, and tombstones of what is not there change nothing. Raises `MalformedError`."""
    if value is not None and value[:_START] != _VERSION:
        raise MalformedError(f"record of type {kind}", 0, "version", 0)
    if kind == GROUP_EPOCH:
        deleted = ConsumerGroupMetadataValue(epoch=FIRST_EPOCH)
        epoch = deleted if value is None else _read(ConsumerGroupMetadataValue, value)
        group.epoch, group.metadata_hash = epoch.epoch, epoch.metadata_hash
    elif kind == SUBSCRIPTION:
        if value is None:
            group.unsubscribe(second)
        else:
            group.subscribe(second, _subscription(_read(ConsumerGroupMemberMetadataValue, value)))
    elif kind == TARGET_EPOCH:
        made = ConsumerGroupTargetAssignmentMetadataValue()
        if value is not None:
            made = _read(ConsumerGroupTargetAssignmentMetadataValue, value)
        group.assignment_epoch, group.assigned_ms = made.assignment_epoch, made.assignment_timestamp
    elif kind == TARGET:
        group.aim(second, None if value is None else _target(value))
    elif kind == CURRENT:
        group.move(second, None if value is None else _current(value))
    elif value is None:
        group.resolve(second, None)
    else:
        group.resolve(second, _regex(_read(ConsumerGroupRegularExpressionValue, value)))


def renamed(key: bytes, value: bytes | None, name: Callable[[str], str]) -> bytes | None:
    """The value of a record of any type, with other names of the principals in it. Raises
    `MalformedError`."""
    named = None if value is None else decode_key(key)
    if value is None or named is None:
        return value
    kind, group_id, second = named
    if kind == SUBSCRIPTION:
        described = _subscription(_read(ConsumerGroupMemberMetadataValue, value))
        if described.principal:
            return subscription(group_id, second, replace(described, principal=name(described.principal)))[1]
    elif kind == REGEX:
        found = _regex(_read(ConsumerGroupRegularExpressionValue, value))
        if found.views is not None:
            views = {name(principal): seen for principal, seen in found.views.items()}
            return regex(group_id, second, replace(found, views=views))[1]
    return value


def _read(message: type[M], value: bytes) -> M:
    return message.decode(value, 0, _START)


def _subscription(value: ConsumerGroupMemberMetadataValue) -> Subscription:
    classic = value.classic_member_metadata
    return Subscription(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        value.rebalance_timeout_ms,
        frozenset(value.subscribed_topic_names),
        value.subscribed_topic_regex or "",
        value.server_assignor,
        None if classic is None else _offered(classic),
        value.leader_user_data,
        value.principal,
    )


def _regex(value: ConsumerGroupRegularExpressionValue) -> Regex:
    topics = frozenset(value.topics)
    views = None
    if value.views is not None:
        some = {frozenset(one.topics) for one in value.views if one.topics is not None}
        shared = {one: one for one in some}  # many principals see the same
        views = {
            one.principal: topics if one.topics is None else shared[frozenset(one.topics)]
            for one in value.views
        }
    return Regex(topics, value.version, value.timestamp, views)


def _offered(classic: ConsumerGroupMemberMetadataValueClassicMemberMetadata) -> ClassicMember:
    protocols = tuple((one.name, one.metadata) for one in classic.supported_protocols)
    return ClassicMember(classic.session_timeout_ms, protocols)


def _target(value: bytes) -> Target:
    read = _read(ConsumerGroupTargetAssignmentMemberValue, value)
    return {one.topic_id: frozenset(one.partitions) for one in read.topic_partitions if one.partitions}


def _current(value: bytes) -> Current:
    read = _read(ConsumerGroupCurrentMemberAssignmentValue, value)
    try:
        state = MemberState(read.state)
    except ValueError:
        raise MalformedError("ConsumerGroupCurrentMemberAssignmentValue", 0, "state", 0) from None
    return Current(
        read.member_epoch,
        read.previous_member_epoch,
        state,
        _owned(read.assigned_partitions, read.member_epoch),
        _owned(read.partitions_pending_revocation, read.member_epoch),
    )


def _owned(
    topics: Iterable[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], member_epoch: int
) -> Owned:
    """Brokers before 4.3 wrote no assignment epochs: the member's own stands for them."""
    found: dict[bytes, dict[int, int]] = {}
    for one in topics:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [member_epoch] * len(one.partitions)
        if one.partitions:
            found[one.topic_id] = dict(zip(one.partitions, epochs, strict=True))
    return found
