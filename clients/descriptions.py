"""What `Admin` tells of topics and groups."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringleader.clients.model import Node
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError

_SOURCES = {1: "topic", 2: "broker", 3: "broker", 4: "broker"}
"""DescribeConfigs (KIP-226): of the topic itself, of one broker, of all brokers, of a broker's file."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One setting of a topic. `set_by`: "topic", "broker", or "default"; `value` is None for a secret."""

    name: str
    value: str | None
    set_by: str


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One line of `list_groups`. `state` is empty from brokers that do not tell it (before ListGroups v4)."""

    group_id: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group. `assignment`: topic -> partitions for consumers, empty for other protocol types;
    the bytes as they are in `raw_assignment` and `raw_metadata`."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assignment: Mapping[str, list[int]]
    raw_metadata: bytes
    raw_assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. A group that does not exist has state `Dead` and no members, as Kafka says it."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    coordinator: Node


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is in a partition; None where there is no committed offset, or no such partition."""

    topic: str
    partition: int
    committed: int | None
    start: int | None
    end: int | None
    metadata: str = ""

    @property
    def lag(self) -> int | None:
        """Records between the committed offset and the end; for a group without one, all that are there."""
        if self.end is None:
            return None
        position = self.committed if self.committed is not None else self.start
        return None if position is None else max(0, self.end - position)


def described_config(config: Any) -> TopicConfig:
    """A setting of an answer to DescribeConfigs (API 32)."""
    return TopicConfig(config.name, config.value, _SOURCES.get(config.config_source, "default"))


def described_group(group: Any, coordinator: Node) -> GroupDescription:
    """A group of an answer to DescribeGroups (API 15)."""
    consumers = group.protocol_type == "consumer"
    members = tuple(_member(member, consumers) for member in group.members)
    return GroupDescription(
        group.group_id, group.group_state, group.protocol_type, group.protocol_data, members, coordinator
    )


def _member(member: Any, consumer: bool) -> MemberDescription:
    topics: tuple[str, ...] = ()
    assignment: dict[str, list[int]] = {}
    if consumer:
        # The bytes are the members' own; what cannot be read is shown as nothing.
        with contextlib.suppress(MalformedError):
            topics = tuple(Subscription.decode(member.member_metadata).topics)
        with contextlib.suppress(MalformedError):
            assignment = Assignment.decode(member.member_assignment).partitions
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        topics,
        assignment,
        member.member_metadata,
        member.member_assignment,
    )
