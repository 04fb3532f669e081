"""Members of the classic protocol in a group of the consumer protocol (KIP-848, "Migration").

They talk in the embedded protocol, whose structures name topics; the group keeps ids of topics. Such a member
reports in its Subscription what it owns, and its Assignment is what the reconciliation gave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    ConsumerMember,
    MemberState,
    Owned,
    Subscription,
    Target,
)
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.protocol import embedded


def described(
    before: Subscription,
    subscription: embedded.Subscription,
    instance_id: str | None,
    client: tuple[str, str],
    rebalance_timeout_ms: int,
    offered: ClassicMember,
) -> Subscription:
    """The member after its JoinGroup. `subscription`: what its first protocol says, for all of them say the
    same; `client`: its id and host. A member of the consumer protocol that sends it becomes a classic one,
    which has no regular expression."""
    return replace(
        before,
        instance_id=before.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=client[0],
        client_host=client[1],
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        principal="",
        classic=offered,
    )


def owned(subscription: embedded.Subscription, topics: Topics) -> list[tuple[bytes, Sequence[int]]]:
    """The partitions that a Subscription reports, of topics that exist."""
    return [
        (topic.topic_id, partitions)
        for name, partitions in subscription.owned_partitions.items()
        if (topic := topics.named(name)) is not None
    ]


def assigned(given: embedded.Assignment, topics: Topics) -> Target:
    """The partitions of an Assignment, of topics that exist."""
    return {
        topic.topic_id: frozenset(partitions)
        for name, partitions in given.partitions.items()
        if partitions and (topic := topics.named(name)) is not None
    }


def assignment(some: Target | Owned, topics: Topics, metadata: bytes) -> bytes:
    """The same as an Assignment, in the version of a member's metadata. Raises `MalformedError`."""
    version = embedded.Subscription.decode_version(metadata)
    named = {
        topic.name: sorted(partitions)
        for topic_id, partitions in sorted(some.items())
        if (topic := topics.of_id(topic_id)) is not None
    }
    return embedded.Assignment(named).encode(version)


def supports(group: ConsumerGroup, names: Sequence[str]) -> bool:
    """Whether a member with this offer can be among the classic members of the group."""
    return any(group.classic_protocols[name] == group.classic_members for name in names)


def is_behind(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is news that a member gets when it joins again: another target, partitions to be given
    up, or all that it waits for is free."""
    current = member.current
    if current.epoch < group.assignment_epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return current.state is MemberState.UNRELEASED_PARTITIONS and not any(
        group.holder(topic_id, one) is not None
        for topic_id, partitions in member.target.items()
        for one in partitions.difference(current.assigned.get(topic_id, ()))
    )
