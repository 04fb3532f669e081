"""Plain values that the rooms of the client library hand each other, and the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, NamedTuple

from ringleader.clients.checks import MAX_INT32, in_range, offset_in_log, wire_text
from ringleader.clients.with_context import WithContext

TopicPartition = tuple[str, int]
"""Topic name and partition number."""
EARLIEST, LATEST = -2, -1
"""Times of ListOffsets: of the first record that is still there; of the next one to be written."""
Deserializer = Callable[[bytes], Any] | WithContext
"""Makes a key or a value out of its bytes. Not asked where a record has none: None stays."""
Isolation = Literal["read_uncommitted", "read_committed"]
OffsetReset = str
"""`"earliest"`, `"latest"`, `"none"`, or `"by_duration:"` with an ISO 8601 duration (KIP-1106)."""


class Node(NamedTuple):
    """One broker or coordinator: its id and where it listens."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (node {self.node_id})"


@dataclass(frozen=True, slots=True)
class MemberProtocol:
    """A way to assign that this member supports: the name that the group votes on, and the metadata of this
    member for the leader. A callable is called at every join, in the driver's thread: keep it quick."""

    name: str
    metadata: bytes | Callable[[], bytes] = b""
    eager: bool = False
    """Of a cooperative member (`given_up`): this protocol takes without asking. When the group has settled on
    it, the member gives up everything before it joins again."""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a protocol's name is a text, not {self.name!r}")
        wire_text("a protocol's name", self.name)
        if not callable(self.metadata) and not isinstance(self.metadata, bytes):
            raise ValueError(f"a protocol's metadata is bytes or a callable, not {self.metadata!r}")

    def current(self) -> bytes:
        """The current metadata. Raises TypeError if a callable gives no bytes, and what it raises."""
        found = self.metadata() if callable(self.metadata) else self.metadata
        if not isinstance(found, bytes):
            raise TypeError(f"metadata has to be bytes, not {found!r}")
        return found


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """One member as the leader sees it; `metadata` is the one of the protocol that won the vote."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Assigned:
    """This member's assignment in one generation of the group."""

    generation: int
    member_id: str
    leader_id: str
    protocol: str
    assignment: bytes

    @property
    def is_leader(self) -> bool:
        """Whether this member computed the assignments of this generation."""
        return self.member_id == self.leader_id


@dataclass(frozen=True, slots=True)
class Revoked:
    """The assignment is to be given up; commits still count until the callback is over. `reason` in words."""

    generation: int
    member_id: str
    assignment: bytes
    reason: str
    partial: bool = False
    """A cooperative member keeps the rest of its assignment: `assignment` is only what moves away."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The assignment is gone: others may have it already, commits are refused. `reason` in words."""

    generation: int
    member_id: str
    assignment: bytes
    reason: str
    partial: bool = False
    """A cooperative member keeps the rest of its assignment."""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed position: the offset of the next record to read, a text of the application, and the leader
    epoch of the last record read (-1: unknown)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A consumer's place in its group, under which a transaction commits its offsets (KIP-447). `generation`:
    with the consumer protocol, the member epoch."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionPattern:
    """A regular expression in the syntax of RE2 that the coordinator matches with the names of all topics, in
    place of a client (KIP-848; `SubscriptionPattern` in Java). It has to match a whole name.

    For `pattern=` with group_protocol="consumer". Raises ValueError for what cannot be sent; whether it is
    an expression, the coordinator says: `InvalidRegularExpressionError`.
    """

    pattern: str

    def __post_init__(self) -> None:
        if not wire_text("a SubscriptionPattern", self.pattern):
            raise ValueError("a SubscriptionPattern is not empty: it would match no topic")


TopicPattern = str | re.Pattern[str] | SubscriptionPattern
"""Which topics: a regular expression of Python's `re`, which the client matches, or one of RE2, which the
coordinator does."""

Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]
"""The argument of `commit`."""


def with_metadata(value: int | OffsetAndMetadata) -> OffsetAndMetadata:
    """A position as `commit` takes it, with all that belongs to one."""
    return value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)


def checked(offsets: Offsets) -> dict[TopicPartition, int | OffsetAndMetadata]:
    """A copy. Raises ValueError for what is no {(topic, partition): offset}, or no offset of any log."""
    if not isinstance(offsets, Mapping):
        raise ValueError(f"offsets are {{(topic, partition): offset}}, not {type(offsets).__name__}")
    for place, value in offsets.items():
        try:
            topic, partition = place
            index(partition)
            index(with_metadata(value).offset)
            right = isinstance(topic, str)
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(f"offsets are {{(topic, partition): offset}}, not {{{place!r}: {value!r}}}")
        position, name = with_metadata(value), f"{wire_text('the name of a topic', topic)}-{partition}"
        in_range("a partition", partition, 0, MAX_INT32)
        offset_in_log(f"the offset of {name}", position.offset)
        in_range(f"the leader epoch of {name}", position.leader_epoch, -1, MAX_INT32)
        wire_text(f"the metadata of {name}", position.metadata)
    return dict(offsets)


def checked_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """A copy. Raises ValueError for what is no list of (topic, partition)."""
    found = list(partitions) if isinstance(partitions, Iterable) else [partitions]
    for one in found:
        pair = isinstance(one, tuple) and len(one) == 2
        if not pair or not isinstance(one[0], str) or isinstance(one[1], bool) or not isinstance(one[1], int):
            raise ValueError(f"partitions are [(topic, partition), ...], not {one!r}")
        wire_text("the name of a topic", one[0])
        in_range("a partition", one[1], 0, MAX_INT32)
    return found
