"""Online migration (KIP-848): a classic group as one of the consumer protocol, and back.

Values only: the other form of a group, if it may have that. The caller writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ringleader.coordinator.consumer_groups import classic
from ringleader.coordinator.consumer_groups import records as consumer_records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, TwoHoldersError
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    ConsumerMember,
    Current,
    MemberState,
    Subscription,
    Target,
)
from ringleader.coordinator.consumer_groups.records import Record
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.commit import RECORD_OVERHEAD_BYTES
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.protocol import embedded
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError
from ringleader.protocol.messages import GroupMetadataValue

_BOTH = "bidirectional"


# ---- classic -> consumer ----


def upgraded(group: Group, settings: GroupSettings, topics: Topics) -> ConsumerGroup:
    """A classic group that has members, as one of the consumer protocol: in the generation that they know,
    with what was synced last. Raises `KafkaError` (GROUP_ID_NOT_FOUND) if it stays a classic one.

    All members are stable, but in the middle of a rebalance: a member that joined it with partitions which it
    did not get again may still have them, so they count as those that it has to give up. (In Kafka they are
    free.)"""
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
    subscriptions: dict[str, embedded.Subscription] = {}
    try:
        for member_id, member in group.members.items():
            subscriptions[member_id] = embedded.Subscription.decode(_metadata(group, member))
            found.subscribe(member_id, _described(member, subscriptions[member_id]))
            raw = assignments.get(member_id, b"")
            if raw:
                found.aim(member_id, _target(group, embedded.Assignment.decode(raw), topics))
        _move(found, subscriptions, topics, group.generation)
        found.index()
    except MalformedError:
        raise _refused(group, "the embedded consumer protocol is malformed.") from None
    except TwoHoldersError as error:  # what Kafka answers to it
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    found.metadata_hash = topics.metadata_hash(found.all_topics())
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


def _described(member: Member, subscription: embedded.Subscription) -> Subscription:
    offered = ClassicMember(member.session_timeout_ms, member.protocols)
    client, instance_id = (member.client_id, member.client_host), member.group_instance_id
    return classic.described(
        Subscription(), subscription, instance_id, client, member.rebalance_timeout_ms, offered
    )


def _move(
    found: ConsumerGroup, subscriptions: Mapping[str, embedded.Subscription], topics: Topics, generation: int
) -> None:
    """Each member has its target, but for what another one reported, and what it reported besides."""
    claims: dict[tuple[bytes, int], str] = {}
    reported = {
        member_id: {(topic_id, one) for topic_id, some in classic.owned(each, topics) for one in some}
        for member_id, each in subscriptions.items()
    }
    for member_id in sorted(
        subscriptions, key=lambda one: subscriptions[one].generation
    ):  # the latest report counts
        claims |= dict.fromkeys(reported[member_id], member_id)
    targets = {
        member_id: {(topic_id, one) for topic_id, some in member.target.items() for one in some}
        for member_id, member in found.members.items()
    }
    for member_id, target in targets.items():
        claims |= dict.fromkeys(target & reported[member_id], member_id)
    for member_id, target in targets.items():
        assigned = {place for place in target if claims.get(place, member_id) == member_id}
        pending = {place for place in reported[member_id] - target if claims[place] == member_id}
        state = MemberState.STABLE if assigned == target else MemberState.UNRELEASED_PARTITIONS
        if pending:
            state = MemberState.UNREVOKED_PARTITIONS
        had = _owned(assigned, generation), _owned(pending, generation)
        found.move(member_id, Current(generation, generation, state, *had))


def _owned(places: Iterable[tuple[bytes, int]], epoch: int) -> dict[bytes, dict[int, int]]:
    owned: dict[bytes, dict[int, int]] = {}
    for topic_id, partition in places:
        owned.setdefault(topic_id, {})[partition] = epoch
    return owned


def _bytes_of(written: Iterable[Record]) -> int:
    return sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in written)


def is_done(group: Group, found: ConsumerGroup, topics: Topics) -> bool:
    """Whether the classic group that becomes `found` is in no rebalance, and all partitions of its topics are
    somebody's. If not, it needs another target, also where the member that joins changes nothing: a static
    one that comes back. (Kafka leaves it with what it has.)"""
    had = sum(len(some) for member in found.members.values() for some in member.target.values())
    partitions = sum(
        topic.partitions for name in found.subscribers if (topic := topics.named(name)) is not None
    )
    stable = all(member.current.state is MemberState.STABLE for member in found.members.values())
    return stable and group.state in (GroupState.EMPTY, GroupState.STABLE) and had == partitions


# ---- consumer -> classic ----


def downgraded(
    consumer: ConsumerGroup,
    departed: Collection[str],
    generation: int,
    settings: GroupSettings,
    topics: Topics,
    unix_ms: int,
    leader: str | None,
) -> tuple[GroupMetadataValue, list[Member]] | None:
    """The record and the members of the group as a classic one without the members `departed`, with what each
    has, or has to give up, as its assignment: if an upgrade comes before the rebalance, a member that has not
    heard of either may still own that. (In Kafka it is the target.) None: it stays one of the consumer
    protocol. `unix_ms`: now. `leader`: None if a rebalance follows, also if the shard is loaded before that.
    """
    if not consumer.classic_members:
        return None
    staying = [one for one in consumer.members.values() if one.member_id not in departed]
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
            classic.assignment(_held(one), topics, member.metadata(draft.protocol))
            for one, member in zip(staying, members, strict=True)
        ]
    except ValueError:  # no common protocol, or one that is malformed, in a log that others wrote
        return None
    value = records.group_value(draft, zip(members, assignments, strict=True), unix_ms)
    value.leader = leader
    raw = records.encode_group_value(value)
    written = [*consumer_records.tombstones(consumer), (records.group_key(consumer.group_id), raw)]
    if _bytes_of(written) > settings.group_max_record_bytes:
        return None
    return value, members


def _held(one: ConsumerMember) -> Target:
    held: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in one.current.held():
        held[topic_id] = held.get(topic_id, frozenset()).union(partitions)
    return held


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
