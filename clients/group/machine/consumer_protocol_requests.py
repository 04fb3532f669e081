"""Requests of a member of the consumer protocol (KIP-848), and the contents of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.group.settings import MemberSettings
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    MetadataRequest,
    MetadataRequestTopic,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""The membership, with its partitions, is kept for the same group instance id until the session timeout."""

FIRST_WITH_REGEX = 1
"""The first version of ConsumerGroupHeartbeat whose coordinator matches regular expressions."""

Partitions = frozenset[tuple[bytes, int]]
"""By topic id."""

NO_PARTITIONS: Partitions = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """The contents of a heartbeat: the subscription and the owned partitions of the member."""

    topics: tuple[str, ...]
    owned: Partitions
    user_data: bytes | None = None
    """For the assignor of a leader; None: this member cannot lead."""
    regex: str | None = None
    """The expression that the coordinator matches, if any: ConsumerGroupHeartbeat v1 and later."""


# ---- ConsumerGroupHeartbeat (key 68) ----


def heartbeat(
    settings: MemberSettings,
    member_id: str,
    member_epoch: int,
    now: Report,
    before: Report | None,
    *,
    rack: str | None,
    server_assignor: str | None,
    computed: ConsumerGroupHeartbeatRequestComputedTarget | None,
    had_regex: bool,
) -> Request:
    """Join or go on. `before`: the report that the coordinator is known to have; None sends everything.
    `computed`: this member's answer as the leader, if it has one. `had_regex`: the coordinator may have an
    expression of this member, which stays until it is sent another one, or an empty one."""
    message = _from_member(settings, member_id, member_epoch)
    if before is None:
        message.rack_id, message.server_assignor = rack, server_assignor
        message.rebalance_timeout_ms = settings.rebalance_timeout_ms
    if before is None or before.topics != now.topics:
        message.subscribed_topic_names = list(now.topics)
    if before is None or before.owned != now.owned:
        message.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, partitions)
            for topic_id, partitions in _by_id(now.owned).items()
        ]
    if before is None or before.user_data != now.user_data:
        message.leader_user_data = now.user_data
    if before is None or before.regex != now.regex:
        message.subscribed_topic_regex = now.regex or ("" if had_regex else None)
    message.computed_target = computed
    cleared = message.subscribed_topic_regex == ""
    without = replace(message, subscribed_topic_regex=None) if cleared else message
    return Request(type(message), lambda version: without if version < FIRST_WITH_REGEX else message)


def leave(settings: MemberSettings, member_id: str, member_epoch: int) -> Request:
    """`LEAVE_EPOCH` or `STATIC_LEAVE_EPOCH`."""
    return plain(_from_member(settings, member_id, member_epoch))


def _from_member(
    settings: MemberSettings, member_id: str, member_epoch: int
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=settings.group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        instance_id=settings.group_instance_id,
    )


def target(assignment: Any) -> Partitions:
    """The partitions of `ConsumerGroupHeartbeatResponse.assignment`."""
    topics = assignment.topic_partitions
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)


def _by_id(partitions: Partitions) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        found.setdefault(topic_id, []).append(number)
    return found


# ---- Metadata (key 3) by topic id, from v12 on (KIP-516) ----


def topic_names(topic_ids: Iterable[bytes]) -> Request:
    """Ask for the names of these topics."""
    listed = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    return plain(MetadataRequest(topics=listed, allow_auto_topic_creation=False))


def named(response: Any) -> dict[bytes, str]:
    """Topic id -> name, of those that the broker knows already."""
    return {topic.topic_id: topic.name for topic in response.topics if not topic.error_code and topic.name}


def assignment_bytes(partitions: Partitions, names: Mapping[bytes, str]) -> bytes:
    """As Kafka's consumer Assignment, which the classic protocol's members get from their leader."""
    return Assignment({names[topic_id]: ps for topic_id, ps in _by_id(partitions).items()}).encode()
