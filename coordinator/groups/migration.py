"""Online migration (KIP-848): a classic group as one of the consumer protocol, and back.

Values only: the other form of a group, if it may have that. The caller writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ringleader.coordinator.consumer_groups import classic
from ringleader.coordinator.consumer_groups import records as consumer_records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, TwoHoldersError
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    ConsumerMember,
    Current,
    Subscription,
    Target,
)
from ringleader.coordinator.consumer_groups.records import Record
from ringleader.coordinator.consumer_groups.topics import Topics, metadata_hash
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.commit import RECORD_OVERHEAD_BYTES
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.protocol import embedded
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError
from ringleader.protocol.messages import GroupMetadataValue

_BOTH = "bidirectional"


# ---- classic -> consumer ----


def upgraded(group: Group, settings: GroupSettings, topics: Topics) -> ConsumerGroup:
    """A classic group that has members, as one of the consumer protocol: all of them stable, in the
    generation that they know, with what was synced last. Raises `KafkaError` (GROUP_ID_NOT_FOUND) if it
    stays a classic one."""
    if settings.group_consumer_migration_policy not in (_BOTH, "upgrade"):
        raise _refused(group, "online upgrade is disabled.")
    if group.protocol_type != CONSUMER_TYPE:
        raise _refused(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > settings.group_consumer_max_size:
        raise _refused(group, "the group size exceeds the consumer group maximum size.")
    # Also numbers that were given out before a restart, and not synced, are not used again.
    found = ConsumerGroup(group.group_id, epoch=group.last_generation, assignment_epoch=group.generation)
    synced = () if group.synced is None else group.synced.members
    assignments = {one.member_id: one.assignment for one in synced}
    try:
        for member in group.members.values():
            said = embedded.Subscription.decode(_metadata(group, member))
            raw = assignments.get(member.member_id, b"")
            target = _target(group, embedded.Assignment.decode(raw), topics) if raw else {}
            _put(found, member, said, target, group.generation)
        found.index()
    except MalformedError:
        raise _refused(group, "the embedded consumer protocol is malformed.") from None
    except TwoHoldersError as error:  # what Kafka answers to it
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    found.metadata_hash = metadata_hash(topics, found.subscribed_topics())
    if _bytes_of(consumer_records.all_records(found)) > settings.group_max_record_bytes:
        raise _refused(group, "the group takes more bytes than group.max.record.bytes.")
    return found


def _refused(group: Group, why: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _metadata(group: Group, member: Member) -> bytes:
    """Of the elected protocol. In the first join phase there is none yet (Kafka answers UNKNOWN_SERVER_ERROR
    then), and a member that came later need not offer it; all that a member offers say the same."""
    return dict(member.protocols).get(group.protocol or "", member.protocols[0][1])


def _target(group: Group, given: embedded.Assignment, topics: Topics) -> Target:
    if given.user_data:
        more = "Please refer to the documentation or switch to a default assignor before re-attempting the"
        raise _refused(group, f"an unsupported custom assignor is in use. {more} upgrade.")
    return classic.assigned(given, topics)


def _put(
    found: ConsumerGroup, member: Member, said: embedded.Subscription, target: Target, generation: int
) -> None:
    offered = ClassicMember(member.session_timeout_ms, member.protocols)
    client, instance_id = (member.client_id, member.client_host), member.group_instance_id
    timeout_ms = member.rebalance_timeout_ms
    described = classic.described(Subscription(), said, instance_id, client, timeout_ms, offered)
    owned = {topic_id: dict.fromkeys(partitions, generation) for topic_id, partitions in target.items()}
    found.subscribe(member.member_id, described)
    found.aim(member.member_id, target)
    found.move(member.member_id, Current(generation, generation, assigned=owned))


def _bytes_of(written: Iterable[Record]) -> int:
    return sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in written)


# ---- consumer -> classic ----


def downgraded(
    consumer: ConsumerGroup,
    gone: Collection[str],
    generation: int,
    settings: GroupSettings,
    topics: Topics,
    unix_ms: int,
) -> tuple[GroupMetadataValue, list[Member]] | None:
    """The record and the members of the group as a classic one without the members `gone`, with the targets
    as their assignments; None: it stays one of the consumer protocol. `unix_ms`: now."""
    staying = [one for one in consumer.members.values() if one.member_id not in gone]
    if not staying or settings.group_consumer_migration_policy not in (_BOTH, "downgrade"):
        return None
    if len(staying) > settings.group_max_size:
        return None
    draft = Group(consumer.group_id)
    for one in staying:
        member = _member(consumer.group_id, one)
        if member is None:
            return None
        draft.add(member, CONSUMER_TYPE)
    draft.generation = generation
    members = list(draft.members.values())
    try:
        draft.protocol = draft.elect_protocol()
        assignments = [
            classic.assignment(one.target, topics, member.metadata(draft.protocol))
            for one, member in zip(staying, members, strict=True)
        ]
    except ValueError:  # no common protocol, or one that is malformed, in a log that others wrote
        return None
    value = records.group_value(draft, zip(members, assignments, strict=True), unix_ms)
    raw = records.encode_group_value(value)
    written = [*consumer_records.tombstones(consumer), (records.group_key(consumer.group_id), raw)]
    if _bytes_of(written) > settings.group_max_record_bytes:
        return None
    return value, members


def _member(group_id: str, one: ConsumerMember) -> Member | None:
    described = one.subscription
    if described.classic is None:
        return None
    session_timeout_ms, timeout_ms = described.classic.session_timeout_ms, described.rebalance_timeout_ms
    return Member(
        group_id,
        one.member_id,
        described.instance_id,
        described.client_id,
        described.client_host,
        session_timeout_ms,
        timeout_ms if timeout_ms >= 0 else session_timeout_ms,
        described.classic.protocols,
    )
