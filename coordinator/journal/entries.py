"""The journal: one entry per completed rebalance, and what else an operator asks about. An entry is data; the
log line and the record of the journal's topic (`record`) are rendered from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from ringleader.host.printable import printable as escaped
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import GroupMetadataValue

REASON_MAX_CHARS = 255
"""A client's reason is cut here, as Kafka's clients cut it themselves (KIP-800)."""


class Cause(StrEnum):
    """The cause of a rebalance. Closed list: every call of the rebalance engine names one of these."""

    MEMBER_JOINED = "member joined"
    """A member that was not in the group joined."""
    MEMBER_CHANGED = "member changed its protocols"
    """A known member re-joined with other protocols or metadata (its subscription changed, for example)."""
    LEADER_REJOINED = "leader rejoined"
    """The leader re-joined; always a rebalance, even unchanged: this is how a leader asks for one."""
    STATIC_MEMBER_REPLACED = "static member restarted"
    """A static member came back without its member id, and the group could not just go on: it was in the
    middle of a rebalance, or the elected protocol changes with what the member offers now (KIP-345)."""
    MEMBER_LEFT = "member left"
    """LeaveGroup, by the member itself or by an operator."""
    PENDING_LEFT = "member id given back"
    """LeaveGroup of a member id that never joined, in a group at work: Kafka rebalances here, so do we."""
    SESSION_EXPIRED = "session expired"
    """A member was silent for its session timeout."""
    SYNC_MISSING = "sync missing"
    """Members did not send SyncGroup within the rebalance timeout."""
    STORE_FAILED = "assignment not stored"
    """The leader's assignment is larger than a record may be."""
    NOT_REVOKED = "partitions not given up"
    """A member of the consumer protocol did not give partitions up within its rebalance timeout."""
    TOPICS_CHANGED = "topics changed"
    """Topics that members of the consumer protocol subscribe to came, went or grew."""
    GROUP_TOO_LARGE = "group above its maximum size"
    """A group was loaded that has more members than group.max.size allows."""
    DOWNGRADED = "downgraded to the classic protocol"
    """The last member of the consumer protocol is gone, and classic ones stay (KIP-848)."""


class Departure(StrEnum):
    """The reason for which a member is no longer in the group."""

    LEFT = "left"
    SESSION_EXPIRED = "session expired"
    NOT_REJOINED = "did not rejoin in time"
    NOT_SYNCED = "did not sync in time"
    NOT_REVOKED = "did not give up partitions in time"
    NEW_MEMBER_TIMEOUT = "waited too long for its first join"
    GROUP_FULL = "group full"


class Outcome(StrEnum):
    """How a rebalance ended."""

    STABLE = "stable"
    """The leader's assignment is in the log."""
    EMPTY = "empty"
    """No members are left."""
    SUPERSEDED = "superseded"
    """The next rebalance began before the leader's assignment was durable."""


class DepartedMember(NamedTuple):
    """A member that went. Times are Unix time."""

    why: Departure
    at_ms: int
    last_heard_ms: int
    """When it last sent a heartbeat, JoinGroup, SyncGroup or commit, or its session began afresh."""
    client_id: str
    client_host: str
    group_instance_id: str | None
    principal: str | None = None
    """Its principal (`User:alice`); None: not known."""


class Present(NamedTuple):
    """A member of a generation. Times are Unix time, -1 where it was not."""

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: bytes
    """Its metadata for the elected protocol."""
    assignment: bytes
    joined_ms: int
    """Its JoinGroup came."""
    synced_ms: int
    """It had asked for its share, and the share was there."""
    last_heard_ms: int
    """Of a static member that came back in this rebalance: the last request of its former process."""
    principal: str | None = None
    """Its principal (`User:alice`); None: not known."""


@dataclass(slots=True, frozen=True)
class JournalEntry:
    """One completed rebalance of one group. Durations in milliseconds of the machine's monotonic clock; the
    three phases sum to `duration_ms`. Lists of members are in join order."""

    group_id: str
    generation: int
    cause: Cause
    cause_member: str
    """Member id that caused it; "" where none did."""
    reason: str
    """The client's own reason (KIP-800); "" when not provided."""
    outcome: Outcome
    protocol_type: str
    protocol: str
    """The elected protocol; "" for an empty group."""
    leader: str
    """Member id of the leader; "" for an empty group."""
    members_before: tuple[str, ...]
    members_after: tuple[str, ...]
    joined: tuple[str, ...]
    """Members of this generation that were not members when the rebalance began."""
    left: dict[str, Departure] = field(default_factory=dict)
    """Members that went, and why, from the event that began the rebalance to its end."""
    at_ms: int = 0
    """Wall clock (Unix time) of the end."""
    duration_ms: int = 0
    """From the event that began the rebalance to its end."""
    join_ms: int = 0
    """First phase: waiting for JoinGroup of the members."""
    join_last_member: str = ""
    """The member that the first phase waited longest for: the last one to join, or one that never did."""
    leader_ms: int = 0
    """Second phase: from the answers to JoinGroup to the leader's SyncGroup."""
    sync_ms: int = 0
    """Third phase: from the leader's SyncGroup until the assignment is durable and the last member has its
    share; or until the next rebalance begins, or it is waited for no longer (`FINISH_TIMEOUT_MS`)."""
    synced: int = 0
    """How many members had sent SyncGroup by the end."""
    members: tuple[Present, ...] = ()
    """Of this generation."""
    before: GroupMetadataValue | None = None
    """The last generation that was stored before; None: there was none."""
    gone: dict[str, DepartedMember] = field(default_factory=dict)
    """Those of `left`."""
    last_commit_ms: int = -1
    """Unix time of the group's last commit before the assignment was stored; -1: none is known."""
    first_commit_ms: int = -1
    """Likewise of the first one after; -1: none by the end."""
    told: Mapping[str, ClientReport] = field(default_factory=dict)
    """The last reports of the clients of those of `gone`."""

    def until(self, ended_ms: int, now_ms: int) -> JournalEntry:
        """The same, when what it says has become durable at `now_ms`: the third phase lasts until then."""
        more_ms = now_ms - ended_ms if self.outcome is Outcome.STABLE else 0
        if not more_ms:
            return self
        return replace(
            self,
            at_ms=self.at_ms + more_ms,
            duration_ms=self.duration_ms + more_ms,
            sync_ms=self.sync_ms + more_ms,
            members=tuple(
                one._replace(synced_ms=self.at_ms + more_ms) if one.synced_ms >= 0 else one
                for one in self.members
            ),
        )

    def render(self) -> str:
        """One readable line. Text that came from clients is escaped (a reason may hold terminal control
        codes)."""
        parts = [
            f"group '{printable(self.group_id)}' generation {self.generation} {self.outcome.value}",
            f"after {self.duration_ms} ms"
            f" (join {self._joined()}, leader {self.leader_ms}, sync {self.sync_ms})",
            f"because {self.cause.value}{self._cause_text()}",
            f"members {len(self.members_before)} -> {len(self.members_after)}",
        ]
        if self.joined:
            parts.append(f"joined {_some(self.joined)}")
        by_reason: dict[str, list[str]] = {}
        for member, why in self.left.items():
            by_reason.setdefault(why.value, []).append(member)
        parts.extend(f"{why}: {_some(departed)}" for why, departed in by_reason.items())
        if self.leader:
            parts.append(f"leader {printable(self.leader)}, protocol {printable(self.protocol)}")
        return "; ".join(parts)

    def _joined(self) -> str:
        awaited = f" for {printable(self.join_last_member)}" if self.join_last_member and self.join_ms else ""
        return f"{self.join_ms}{awaited}"

    def _cause_text(self) -> str:
        member = f" ({printable(self.cause_member)})" if self.cause_member else ""
        return f"{member}: '{printable(self.reason)}'" if self.reason else member


class Seated(NamedTuple):
    """A member of a group of the consumer protocol."""

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: frozenset[str]
    """Names that it subscribes to."""
    epoch: int
    """The one that it has reached; -2: it is static, and away."""
    assigned: Mapping[bytes, Iterable[int]]
    """By topic id."""
    principal: str | None = None


class Wait(NamedTuple):
    """A member waits for partitions that another one has to give up. Times are Unix time."""

    waiter: str
    holder: str
    places: tuple[tuple[bytes, int], ...]
    since_ms: int
    until_ms: int = -1


@dataclass(slots=True, frozen=True)
class EpochEntry:
    """One rebalance of a group of the consumer protocol: from a group epoch until every member has what the
    target of that epoch gives it. Names, units and the order of lists are those of `JournalEntry`."""

    group_id: str
    generation: int
    """The group epoch."""
    cause: Cause
    cause_member: str
    outcome: Outcome
    protocol: str
    """The assignor; "" for an empty group."""
    members: tuple[Seated, ...]
    before: tuple[Seated, ...]
    """When it began."""
    joined: tuple[str, ...]
    gone: dict[str, DepartedMember]
    at_ms: int
    duration_ms: int
    leader_ms: int
    """Until the target was computed."""
    sync_ms: int
    """From then until the last member had what it gives."""
    moves: Mapping[tuple[bytes, int], tuple[str | None, str | None, int | None]]
    """By topic id and partition, in no order: giver, heir, and how long no member had it."""
    waits: tuple[Wait, ...]
    topics: dict[bytes, str]
    """The names of the topics in it that exist."""
    last_commit_ms: int = -1
    told: Mapping[str, ClientReport] = field(default_factory=dict)

    def render(self) -> str:
        """One readable line, as `JournalEntry.render`."""
        member = f" ({printable(self.cause_member)})" if self.cause_member else ""
        parts = [
            f"group '{printable(self.group_id)}' epoch {self.generation} {self.outcome.value}",
            f"after {self.duration_ms} ms (target {self.leader_ms}, reconciliation {self.sync_ms})",
            f"because {self.cause.value}{member}",
            f"members {len(self.before)} -> {len(self.members)}",
            f"{len(self.moves)} partitions moved",
        ]
        if self.waits:
            longest = max(self.waits, key=lambda one: one.until_ms - one.since_ms)
            waited_ms = longest.until_ms - longest.since_ms
            parts.append(f"waited longest for {printable(longest.holder)}: {waited_ms} ms")
        return "; ".join(parts)


@dataclass(slots=True, frozen=True)
class FirstCommit:
    """A group commits for the first time in a generation whose entry is in the journal already."""

    group_id: str
    generation: int
    member_id: str
    at_ms: int
    """Unix time."""
    after_ms: int
    """Since the assignment was stored."""


class IncidentKind(StrEnum):
    """The other events of a group."""

    JOIN_REFUSED = "join refused"
    INSTANCE_FENCED = "instance fenced"
    """A request of a static member whose place another process has."""
    STATIC_RETURNED = "static member returned"
    """Another process took the place of a static member, without a rebalance."""
    EPOCH_REFUSED = "member epoch refused"
    """Consumer protocol: a heartbeat (FENCED_MEMBER_EPOCH) or commit (STALE_MEMBER_EPOCH) of another epoch
    than the member's."""
    STATIC_AWAY = "static member away"
    """Consumer protocol: a static member left for a while, and keeps its partitions."""
    REVOCATION_AWAITED = "revocation awaited"
    """Consumer protocol: members wait for partitions that another one has not given up yet."""
    ASSIGNOR_FELL_BACK = "assignor fell back"
    """Consumer protocol: no member computed the assignment (`client:NAME`), the coordinator did."""
    OFFSETS_RESET = "offsets reset"
    """A commit without a member, for a group that had members once."""
    OFFSETS_DELETED = "offsets deleted"
    OFFSETS_EXPIRED = "offsets expired"
    GROUP_DELETED = "group deleted"
    GROUP_EXPIRED = "group expired"


OffsetChange = tuple[str, int, int | None, int | None]
"""Topic, partition, offset before and after; None: none."""


@dataclass(slots=True, frozen=True)
class Incident:
    """Something besides rebalances that an operator asks about."""

    group_id: str
    kind: IncidentKind
    at_ms: int
    """Unix time."""
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    group_instance_id: str | None = None
    error: int = ErrorCode.NONE
    old_member_id: str = ""
    """Of STATIC_RETURNED: who it was until then."""
    last_heard_ms: int = -1
    """Unix time; of STATIC_RETURNED: the last request of that one."""
    partitions: tuple[OffsetChange, ...] = ()
    principal: str = ""
    """The caller's principal (`User:alice`); "" where there is no caller."""
    waiting: tuple[str, ...] = ()
    """Of REVOCATION_AWAITED: ids of the members that wait."""
    since_ms: int = -1
    """Unix time; likewise: since when."""
    reason: str = ""
    """Of ASSIGNOR_FELL_BACK."""


class ClientReport(NamedTuple):
    """The last report of a client about itself, as a member of a group (KIP-714)."""

    group_id: str
    member_id: str
    client_id: str
    client_host: str
    """Java's form, `/127.0.0.1`."""
    at_ms: int
    """Unix time."""
    values: dict[str, float]
    """By the names of `coordinator.telemetry.MEASURES`."""
    instance_id: str = ""
    """Of the client (KIP-714), in hexadecimal: the same for all its memberships."""
    terminating: bool = False
    """The client reported that it ends."""
    error: str = ""
    """The last error that the client met. Only this package's clients report it and the fields below."""
    left_id: str = ""
    """The member id that the client gave up by itself,"""
    left_reason: str = ""
    """why,"""
    left_ms: int = -1
    """and when (Unix time); -1: it reported none."""


@dataclass(slots=True, frozen=True)
class ReportEntry:
    """The report of a client, as an event of its group."""

    report: ClientReport
    old_member_id: str = ""
    """Earlier member id of this client, of a departure that is in the journal already; "": none."""

    @property
    def group_id(self) -> str:
        """The group."""
        return self.report.group_id

    @property
    def at_ms(self) -> int:
        """Unix time."""
        return self.report.at_ms


class ChangeKind(StrEnum):
    """The kinds of events that do not come from groups."""

    CHANGED = "changed"
    REFUSED = "refused"


@dataclass(slots=True, frozen=True)
class ChangeRecord:
    """A change by a principal, or one that it was not allowed to make."""

    kind: ChangeKind
    event: str
    """In words, such as "topic created"."""
    at_ms: int
    """Unix time."""
    principal: str
    client_id: str
    client_host: str
    subject: str
    """The object of the change: the name of a topic, an ACL in words, the name of a user."""
    detail: str = ""
    """The outcome; of a refusal, the operation."""
    group_id: str = ""
    """The group that it concerns; "": none."""
    member_id: str = ""
    group_instance_id: str | None = None
    error: int = ErrorCode.NONE


_MEMBERS_IN_LINE = 5
"""More members than this are counted, not named, in the rendered line; the entry has them all."""


def _some(members: Sequence[str]) -> str:
    named = ", ".join(printable(one) for one in members[:_MEMBERS_IN_LINE])
    more = len(members) - _MEMBERS_IN_LINE
    return f"{named} and {more} more" if more > 0 else named


def printable(text: str, limit: int = REASON_MAX_CHARS) -> str:
    """`text` with everything that is not printable escaped, and cut at `limit` characters."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return escaped(cut)
