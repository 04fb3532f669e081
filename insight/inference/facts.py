"""The inputs of inference: records of `__consumer_offsets`, and answers of polls.

`at_ms` of a record is the record's own timestamp (Unix ms), of a poll the time when its answer came:
conclusions do not depend on when it is read. Records come in the order of their partition; those of different
partitions, and polls among them, about in the order of time.

Outputs have an id; an output with the id of an earlier one replaces it:

- `Rebalance.id`, `Event.id`, `GroupState.group` (state "Dead": the group is deleted);
- `MemberSpan` by (group, member_id, since_ms), `Ownership` by (group, topic, partition, member_id, since_ms);
- `Commit` by (group, topic, partition, at_ms). Commits come out thinned: one for each partition and
  `COMMIT_EVERY_MS`, the last before and the first after each rebalance, and the newest once it is that old.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ringleader.insight.model import (
    Commit,
    Event,
    GroupState,
    Kind,
    Member,
    MemberSpan,
    Ownership,
    Rebalance,
)
from ringleader.protocol.messages import GroupMetadataValue

COMMIT_EVERY_MS = 10_000
"""Of each partition, commits nearer to each other than this are not kept, but around rebalances."""

Output = Rebalance | MemberSpan | Ownership | Event | GroupState | Commit


class Source(NamedTuple):
    """Where a record was read; gives `Rebalance.id`."""

    partition: int
    offset: int


class ClassicGroup(NamedTuple):
    """A group's record (key type 2): a generation is complete. `value` is None for a tombstone."""

    source: Source
    at_ms: int
    group: str
    value: GroupMetadataValue | None


class OffsetCommitted(NamedTuple):
    """An offset was committed (key types 0 and 1)."""

    source: Source
    at_ms: int
    group: str
    topic: str
    partition: int
    offset: int


class OffsetDeleted(NamedTuple):
    """A tombstone of a committed offset."""

    source: Source
    at_ms: int
    group: str
    topic: str
    partition: int


Partitions = Mapping[bytes, tuple[int, ...]]
"""Topic id -> partitions."""


class GroupEpoch(NamedTuple):
    """Consumer protocol (key type 3) and share groups (11): the group's epoch. None: a tombstone."""

    source: Source
    at_ms: int
    group: str
    kind: Kind
    epoch: int | None
    metadata_hash: int = 0
    """Of the subscribed topics; changes when partitions are added. 0: brokers before 4.1 do not say."""


class ModernMember(NamedTuple):
    """A member as it subscribed (key types 5 and 10). `deleted`: a tombstone, only the ids count."""

    source: Source
    at_ms: int
    group: str
    kind: Kind
    member_id: str
    deleted: bool
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rebalance_timeout_ms: int | None = None
    session_timeout_ms: int | None = None
    """Of a member that speaks the classic protocol in a consumer group; else the broker's setting rules."""


class TargetEpoch(NamedTuple):
    """The epoch that the assignor has computed for (key types 6 and 12). None: a tombstone."""

    source: Source
    at_ms: int
    group: str
    kind: Kind
    epoch: int | None


class TargetAssignment(NamedTuple):
    """The share that a member shall get (key types 7 and 13). None: a tombstone."""

    source: Source
    at_ms: int
    group: str
    kind: Kind
    member_id: str
    partitions: Partitions | None


class CurrentAssignment(NamedTuple):
    """The share that a member has (key types 8 and 14). `epoch` is None for a tombstone, -2 for a static
    member that is away for a moment."""

    source: Source
    at_ms: int
    group: str
    kind: Kind
    member_id: str
    epoch: int | None
    assigned: Partitions
    revoking: Partitions
    """It still has to give these up."""


class RegexResolved(NamedTuple):
    """The topics that a pattern matches (key type 16). None: a tombstone."""

    source: Source
    at_ms: int
    group: str
    regex: str
    topics: tuple[str, ...] | None


class FirstCommit(NamedTuple):
    """The first commit after a rebalance that the journal had reported already."""

    group: str
    generation: int
    at_ms: int


class StaticReturned(NamedTuple):
    """Another process took the place of a static member, and the group just went on."""

    group: str
    member: Member
    old_member_id: str
    last_heard_ms: int | None
    principal: str = ""
    """Its principal; "": not known."""


class InstanceFenced(NamedTuple):
    """A static member whose place another process has taken is still there, and sent a request. `times`: the
    number since the last such entry."""

    group: str
    member: Member
    times: int


class ClientReport(NamedTuple):
    """A report of a client about itself, as a member of a group (KIP-714): from Ringleader's journal, or from
    what a Kafka's reporter exports."""

    at_ms: int
    """When the broker got it."""
    group: str
    member_id: str
    """The member id at that time."""
    values: Mapping[str, float]
    """By the names of the journal, which end in the unit: `poll_interval_max_seconds`."""
    instance_id: str = ""
    """Of the client: the same for all its memberships. "": not known."""
    client_id: str = ""
    host: str = ""
    terminating: bool = False
    """The client reported that it ends."""
    error: str = ""
    """The last error that it met; only this package's clients report it and the fields below."""
    left_id: str = ""
    """The membership that it gave up by itself,"""
    left_reason: str = ""
    """why,"""
    left_ms: int | None = None
    """and when."""


class LaterReport(NamedTuple):
    """A report that a client sent after one of its memberships had ended."""

    group: str
    member_id: str
    report: ClientReport


class Journalled(NamedTuple):
    """An entry of Ringleader's own journal, which knows."""

    source: Source
    at_ms: int
    entry: Rebalance | Event | FirstCommit | StaticReturned | InstanceFenced | ClientReport | LaterReport
    topic: str = ""
    """That an event is about: polls see what becomes of topics, too."""
    reports: tuple[ClientReport, ...] = ()
    """With a rebalance: the last reports of the clients of departed members, as these members."""
    left_ms: Mapping[str, int] = {}
    """With a rebalance: when each member left."""


class DescribedMember(NamedTuple):
    """A member as DescribeGroups, ConsumerGroupDescribe or ShareGroupDescribe names it."""

    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None


class Described(NamedTuple):
    """An answer of DescribeGroups, ConsumerGroupDescribe or ShareGroupDescribe. Asked about once a second
    while a group moves, and of a group at rest as often as one likes."""

    at_ms: int
    group: str
    state: str
    """Kafka's word."""
    members: tuple[DescribedMember, ...]


class Topic(NamedTuple):
    """A topic as Metadata shows it. `topic_id` is 16 zero bytes where the broker has none."""

    partitions: int
    topic_id: bytes


class TopicsSeen(NamedTuple):
    """All topics of the cluster at a time: once before any record (groups of the consumer protocol name
    topics by id), then every few seconds, at once where something changed."""

    at_ms: int
    topics: Mapping[str, Topic]


class CoordinatorSeen(NamedTuple):
    """The leader of a partition of `__consumer_offsets`, and whether it answers; each time that changes. Of
    Ringleader's nodes: the node that claims a partition of their groups' topic, as often as it does."""

    at_ms: int
    offsets_partition: int
    broker: int
    leader_epoch: int
    reachable: bool
    is_node: bool = False


class SessionTimeouts(NamedTuple):
    """The brokers' settings `group.consumer.session.timeout.ms` and `group.share.session.timeout.ms`, which
    rule there and stand in no record. Given once before the records; else Kafka's default is assumed, and
    conclusions from it are called possible at best. None: they do not say, or have no such groups."""

    at_ms: int
    consumer_ms: int | None
    share_ms: int | None


RecordFact = (
    ClassicGroup
    | OffsetCommitted
    | OffsetDeleted
    | GroupEpoch
    | ModernMember
    | TargetEpoch
    | TargetAssignment
    | CurrentAssignment
    | RegexResolved
    | Journalled
)
Fact = RecordFact | ClientReport | Described | TopicsSeen | CoordinatorSeen | SessionTimeouts
