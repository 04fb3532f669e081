"""The values of insight: groups, members, rebalances. Every room of it uses these; nothing here reads a
clock.

Times are Unix time in milliseconds (`at_ms`), lengths of time milliseconds (`join_ms`). A value that is not
known is None, never 0. Member ids are as Kafka has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Which protocol a group speaks."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""
    SHARE = "share"
    """KIP-932."""


class Confidence(StrEnum):
    """How sure a conclusion is. In the order of the members, the surest first."""

    EXACT = "exact"
    """The coordinator itself says so: it stands in Ringleader's journal."""
    CERTAIN = "certain"
    """The observations have no other explanation."""
    LIKELY = "likely"
    """The observations fit, and other explanations fit worse."""
    POSSIBLE = "possible"
    """One of several explanations that fit about as well."""
    UNKNOWN = "unknown"
    """No observation shows it."""


class Cause(StrEnum):
    """The cause of a rebalance. The journal's words (`coordinator.journal.entries.Cause`), and those that
    only inference needs."""

    MEMBER_JOINED = "member joined"
    MEMBER_CHANGED = "member changed its protocols"
    """Its subscription, for example."""
    LEADER_REJOINED = "leader rejoined"
    """Without anything to be seen that made it."""
    STATIC_MEMBER_REPLACED = "static member restarted"
    MEMBER_LEFT = "member left"
    PENDING_LEFT = "member id given back"
    SESSION_EXPIRED = "session expired"
    SYNC_MISSING = "sync missing"
    STORE_FAILED = "assignment not stored"
    GROUP_TOO_LARGE = "group above its maximum size"

    DOWNGRADED = "downgraded to the classic protocol"
    """The last member of the consumer protocol is gone, and classic ones stay."""
    NOT_REVOKED = "partitions not given up"
    """A member of the consumer protocol did not give partitions up within its rebalance timeout."""

    MEMBER_RESTARTED = "member restarted"
    """A dynamic member went, and one of the same client id came from the same host."""
    POLL_INTERVAL_EXCEEDED = "poll interval exceeded"
    """A member gave up its membership, or did not rejoin in time, since its application was busy."""
    TOPICS_CHANGED = "topics changed"
    """Partitions were added, or a topic that matters came or went: the leader asked for a rebalance."""
    INSTANCE_FENCED = "instance id used twice"
    """Two processes take the same static member from each other."""
    COORDINATOR_CHANGED = "coordinator changed"
    """The coordinator restarted, or another broker took over."""
    MEMBER_REMOVED = "member removed by an operator"
    REBALANCE_CONTINUED = "cooperative rebalance went on"
    """The second half of a cooperative rebalance: partitions given up in the first one are given out."""
    UNKNOWN = "unknown"


class Departure(StrEnum):
    """The way a member left a group. The journal's words, and those that only inference needs."""

    LEFT = "left"
    SESSION_EXPIRED = "session expired"
    NOT_REJOINED = "did not rejoin in time"
    NOT_SYNCED = "did not sync in time"
    NOT_REVOKED = "did not give up partitions in time"
    NEW_MEMBER_TIMEOUT = "waited too long for its first join"
    GROUP_FULL = "group full"
    POLL_INTERVAL_EXCEEDED = "poll interval exceeded"
    RESTARTED = "restarted"
    FENCED = "fenced"
    REMOVED = "removed by an operator"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """How a rebalance ended; as `coordinator.journal.entries.Outcome`."""

    STABLE = "stable"
    EMPTY = "empty"
    SUPERSEDED = "superseded"


TopicPartition = tuple[str, int]


class Member(NamedTuple):
    """A member in one generation."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    """Its subscription; empty where it cannot be read."""
    assigned: tuple[TopicPartition, ...] = ()
    """Sorted."""
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None

    @property
    def name(self) -> str:
        """The shortest that a person recognises: the instance id, or the client id and where it runs."""
        return self.instance_id or (
            f"{self.client_id}@{self.host.lstrip('/')}" if self.host else self.client_id
        )


class DepartureFinding(NamedTuple):
    """The reason why a member left the group, and how sure it is."""

    why: Departure
    confidence: Confidence
    silent_ms: int | None = None
    """Time since its last sign of life when it left."""
    evidence: tuple[str, ...] = ()


class Move(NamedTuple):
    """A partition that changed hands in a rebalance. `giver`, `heir` None: no member."""

    topic: str
    partition: int
    giver: str | None
    """Member id."""
    heir: str | None
    unowned_ms: int | None = None
    """Time during which no member owned it."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance of one group, from its cause to its end."""

    id: str
    """Where it was read: `journal-PARTITION-OFFSET` or `offsets-PARTITION-OFFSET`. The same however often it
    is read."""
    group: str
    kind: Kind
    generation: int
    """Of the classic protocol; else the group epoch."""
    at_ms: int
    """Its end."""
    cause: Cause
    confidence: Confidence
    """Of the cause."""
    evidence: tuple[str, ...] = ()
    """A sentence each: what was seen that tells the cause."""
    cause_members: tuple[str, ...] = ()
    """Ids of the members that caused it."""
    reason: str = ""
    """The client's own (KIP-800); only the coordinator knows it."""
    outcome: Outcome = Outcome.STABLE
    protocol_type: str = ""
    protocol: str = ""
    """The assignor."""
    leader: str = ""
    """Member id."""
    members: tuple[Member, ...] = ()
    """After it."""
    joined: tuple[str, ...] = ()
    """Member ids."""
    left: Mapping[str, DepartureFinding] = field(default_factory=dict)
    """By member id."""
    before: tuple[Member, ...] = ()
    """Members before it."""
    began_ms: int | None = None
    join_ms: int | None = None
    """First phase: waiting for JoinGroup of all members."""
    join_last_member: str = ""
    """The member that this phase waited longest for."""
    leader_ms: int | None = None
    """Second phase: until the leader had computed the assignment."""
    sync_ms: int | None = None
    """Third phase: until the last follower had its share."""
    moves: tuple[Move, ...] = ()
    unowned_ms: int | None = None
    """Summed over partitions: how long they had no owner. 60,000 is one partition-minute."""
    first_commit_ms: int | None = None
    """After it."""
    last_commit_ms: int | None = None
    """Before it."""
    principals: Mapping[str, str] = field(default_factory=dict)
    """Member id -> its principal, where clients authenticate and the journal has it."""

    @property
    def duration_ms(self) -> int | None:
        """From its beginning to its end."""
        return None if self.began_ms is None else self.at_ms - self.began_ms


class MemberSpan(NamedTuple):
    """The life of a member."""

    group: str
    member: Member
    """Its last known state; without partitions once it has left."""
    since_ms: int
    until_ms: int | None
    """None: it is there."""
    gone: DepartureFinding | None
    rebalance_id: str | None
    """In which it went."""


class Ownership(NamedTuple):
    """A partition in one member's hands."""

    group: str
    topic: str
    partition: int
    member_id: str
    since_ms: int
    until_ms: int | None
    """None: still."""
    rebalance_id: str
    """That gave it."""


class Commit(NamedTuple):
    """A committed offset at a point in time."""

    group: str
    topic: str
    partition: int
    at_ms: int
    offset: int


class Lag(NamedTuple):
    """How far a group was behind in a partition. `committed` is None where it had committed nothing."""

    group: str
    topic: str
    partition: int
    at_ms: int
    end_offset: int
    committed: int | None


class EventKind(StrEnum):
    """The kinds of events other than rebalances."""

    OFFSETS_RESET = "offsets reset"
    """A committed offset went back, or far ahead at once, in many partitions."""
    OFFSETS_DELETED = "offsets deleted"
    GROUP_DELETED = "group deleted"
    COORDINATOR_AWAY = "coordinator away"
    COORDINATOR_BACK = "coordinator back"
    PARTITIONS_ADDED = "partitions added"
    TOPIC_CREATED = "topic created"
    TOPIC_DELETED = "topic deleted"
    COMMITS_STOPPED = "commits stopped"
    """Of a member that is in the group."""
    JOIN_REFUSED = "join refused"
    """Only Ringleader's journal knows."""
    EPOCH_REFUSED = "member epoch refused"
    """Likewise: a request of another epoch than the member of the consumer protocol has."""
    STATIC_AWAY = "static member away"
    """Likewise: one of the consumer protocol left for a while, and keeps its partitions."""
    REVOCATION_AWAITED = "revocation awaited"
    """Likewise: members wait for partitions that another one has not given up yet."""
    ASSIGNOR_FELL_BACK = "assignor fell back"
    """Likewise: no member computed the assignment that members are to compute, the coordinator did."""
    REFUSED = "refused"
    """A request was not authorized. Only Ringleader's journal knows, likewise of CHANGED."""
    CHANGED = "changed"
    """The configuration or records of a topic, an ACL, a user or a quota were changed."""
    HISTORY_GAP = "history gap"
    """Records were gone before they were read: the history of that time is not known."""
    DEPLOY_BEGAN = "deploy began"
    """Marked by an operator (`ringleader deploy`), as DEPLOY_ENDED is; the text is the label."""
    DEPLOY_ENDED = "deploy ended"
    CLIENT_REPORTED = "client told"
    """The last report of a member's client about itself (KIP-714). One event for each member."""
    INCIDENT = "incident"
    """A problem of which people are notified (`insight.notices`)."""


class Event(NamedTuple):
    """An event other than a rebalance. `group` is "" for one of the whole cluster."""

    id: str
    """The same however often it is read."""
    group: str
    at_ms: int
    kind: EventKind
    text: str
    """One sentence."""
    member: str = ""
    """The name (`Member.name`) of the member or client that it is about, if Ringleader's journal has it."""
    reason: str = ""
    """Likewise Kafka's name of the error that was answered, or why the coordinator did it."""


def report_id(group: str, member_id: str) -> str:
    """The id of the event that has the last report of a member's client."""
    return f"told-{group}-{member_id}"


class GroupState(NamedTuple):
    """A group as it is now, as far as it was read."""

    group: str
    kind: Kind
    state: str
    """Kafka's word: Stable, Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Dead."""
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[Member, ...]
    since_ms: int
    """When it got into this generation."""
