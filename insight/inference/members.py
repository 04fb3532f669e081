"""Members as a classic group's record has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ringleader.insight.model import Member, TopicPartition
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import GroupMetadataValueMemberMetadata


def member_of(one: GroupMetadataValueMemberMetadata, protocol_type: str) -> Member:
    """One of the record; what cannot be read of it is left out."""
    topics: tuple[str, ...] = ()
    assigned: tuple[TopicPartition, ...] = ()
    if protocol_type == "consumer":
        topics, assigned = _topics(one.subscription), _assigned(one.assignment)
    return Member(
        one.member_id,
        one.client_id,
        one.client_host,
        one.group_instance_id,
        topics,
        assigned,
        one.session_timeout,
        one.rebalance_timeout if one.rebalance_timeout >= 0 else one.session_timeout,
    )


@lru_cache(maxsize=4_096)
def _topics(subscription: bytes) -> tuple[str, ...]:
    try:
        return tuple(sorted(Subscription.decode_topics(subscription))) if subscription else ()
    except MalformedError:
        return ()


@lru_cache(maxsize=4_096)
def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    try:
        found = Assignment.decode(assignment).partitions if assignment else {}
    except MalformedError:
        return ()
    return tuple(sorted((topic, number) for topic, numbers in found.items() for number in numbers))


def by_id(some: Iterable[Member]) -> dict[str, Member]:
    """By their ids."""
    return {one.member_id: one for one in some}


def taken_over(old: Mapping[str, Member], new: Mapping[str, Member]) -> dict[str, str]:
    """Old member id -> the new one, of static members that came back."""
    before = {one.instance_id: one.member_id for one in old.values() if one.instance_id}
    return {
        before[one.instance_id]: one.member_id
        for one in new.values()
        if one.instance_id in before and before[one.instance_id] != one.member_id
    }


def partition_counts(members: Iterable[Member], before: Mapping[str, int]) -> dict[str, int]:
    """Topic -> how many partitions assignments have had by now."""
    found = dict(before)
    for one in members:
        for topic, number in one.assigned:
            found[topic] = max(found.get(topic, 0), number + 1)
    return found
