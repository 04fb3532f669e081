"""The descriptions of topics and groups that `Admin` gives."""

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

_MEMBER_TYPES = {0: "classic", 1: "consumer"}
"""ConsumerGroupDescribe v1 (KIP-1099); -1 is unknown."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One setting of a topic. `set_by`: "topic", "broker", or "default"; `value` is None for a secret."""

    name: str
    value: str | None
    set_by: str


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One line of `list_groups`. `state` is empty from brokers that do not tell it (before ListGroups v4),
    and so is `group_type` (before v5, KIP-848): "classic", "consumer", "share" or "streams"."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str = ""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group. `assignment`: topic -> partitions for consumers, empty for other protocol types;
    of a classic group the bytes as they are in `raw_assignment` and `raw_metadata`.

    The fields after these are None in classic groups, but for the rack of consumers. `target_assignment` is
    what the member is to have when others have given it up; `subscribed_topic_regex` what it reads besides
    `topics`, as the coordinator understands it; `member_type` is "classic" for a member that uses the classic
    protocol in a group of the consumer protocol, "consumer" for the others (None from brokers that do not
    report it, before ConsumerGroupDescribe v1).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assignment: Mapping[str, list[int]]
    raw_metadata: bytes
    raw_assignment: bytes
    rack_id: str | None = None
    member_epoch: int | None = None
    member_type: str | None = None
    target_assignment: Mapping[str, list[int]] | None = None
    subscribed_topic_regex: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. A group that does not exist has state `Dead` and no members, as Kafka says it.

    `protocol` is what assigns: the protocol that the members of a classic group agreed on, the coordinator's
    assignor in one of the consumer protocol (KIP-848). `group_type` is "classic" or "consumer", empty for a
    group that does not exist; the epochs are None in classic groups. An `assignment_epoch` below
    `group_epoch`: the coordinator has yet to assign.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    coordinator: Node
    group_type: str = "classic"
    group_epoch: int | None = None
    assignment_epoch: int | None = None


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


def members_in_words(group: GroupDescription) -> str:
    """How many members there are, and which clients."""
    count = len(group.members)
    clients = sorted({f"{one.client_id} on {one.client_host.lstrip('/')}" for one in group.members})
    names = f" ({', '.join(clients[:3])}{', ...' if len(clients) > 3 else ''})" if clients else ""
    return f"{count} member{'' if count == 1 else 's'}{names}" if count else "members"


def described_config(config: Any) -> TopicConfig:
    """A setting of an answer to DescribeConfigs (API 32)."""
    return TopicConfig(config.name, config.value, _SOURCES.get(config.config_source, "default"))


def described_group(group: Any, coordinator: Node) -> GroupDescription:
    """A group of an answer to DescribeGroups (API 15)."""
    consumers = group.protocol_type == "consumer"
    members = tuple(_member(member, consumers) for member in group.members)
    return GroupDescription(
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        members,
        coordinator,
        "" if group.group_state == "Dead" else "classic",
    )


def described_consumer_group(group: Any, coordinator: Node) -> GroupDescription:
    """A group of an answer to ConsumerGroupDescribe (API 69)."""
    return GroupDescription(
        group.group_id,
        group.group_state,
        "consumer",
        group.assignor_name,
        tuple(map(_consumer_member, group.members)),
        coordinator,
        "consumer",
        group.group_epoch,
        group.assignment_epoch,
    )


def _consumer_member(member: Any) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        tuple(member.subscribed_topic_names),
        _partitions(member.assignment),
        b"",
        b"",
        member.rack_id or None,
        member.member_epoch,
        _MEMBER_TYPES.get(member.member_type),
        _partitions(member.target_assignment),
        member.subscribed_topic_regex or None,
    )


def _partitions(assignment: Any) -> dict[str, list[int]]:
    return {one.topic_name: sorted(one.partitions) for one in assignment.topic_partitions}


def _member(member: Any, consumer: bool) -> MemberDescription:
    topics: tuple[str, ...] = ()
    assignment: dict[str, list[int]] = {}
    rack_id = None
    if consumer:
        # The bytes are the members' own; what cannot be read is shown as nothing.
        with contextlib.suppress(MalformedError):
            subscription = Subscription.decode(member.member_metadata)
            topics, rack_id = tuple(subscription.topics), subscription.rack_id
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
        rack_id,
    )
