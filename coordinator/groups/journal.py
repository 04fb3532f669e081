"""The journal: one entry per completed rebalance. The entry is data; the log line is rendered from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

REASON_MAX_CHARS = 255
"""A client's reason is cut here, as Kafka's clients cut it themselves (KIP-800)."""


class Cause(StrEnum):
    """Why a rebalance began. Closed list: every call of the rebalance engine names one of these."""

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
    GROUP_TOO_LARGE = "group above its maximum size"
    """A group was loaded that has more members than group.max.size allows."""


class Departure(StrEnum):
    """Why a member is no longer in the group."""

    LEFT = "left"
    SESSION_EXPIRED = "session expired"
    NOT_REJOINED = "did not rejoin in time"
    NOT_SYNCED = "did not sync in time"
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


@dataclass(slots=True, frozen=True)
class JournalEntry:
    """One completed rebalance of one group. Durations in milliseconds of the machine's monotonic clock; the
    three phases sum to `duration_ms`. Lists of member ids are in join order."""

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
    """Third phase: from the leader's SyncGroup until the assignment is durable and the waiting syncs are
    answered."""
    synced: int = 0
    """How many members had sent SyncGroup by the end."""

    def until(self, ended_ms: int, now_ms: int) -> JournalEntry:
        """The same, when what it says has become durable at `now_ms`: the third phase lasts until then."""
        more_ms = now_ms - ended_ms if self.outcome is Outcome.STABLE else 0
        return replace(
            self,
            at_ms=self.at_ms + more_ms,
            duration_ms=self.duration_ms + more_ms,
            sync_ms=self.sync_ms + more_ms,
        )

    def render(self) -> str:
        """One readable line. Text that came from clients is escaped (a reason may hold terminal control
        codes)."""
        said = [
            f"group '{printable(self.group_id)}' generation {self.generation} {self.outcome.value}",
            f"after {self.duration_ms} ms"
            f" (join {self._joined()}, leader {self.leader_ms}, sync {self.sync_ms})",
            f"because {self.cause.value}{self._who()}",
            f"members {len(self.members_before)} -> {len(self.members_after)}",
        ]
        if self.joined:
            said.append(f"joined {_some(self.joined)}")
        by_reason: dict[str, list[str]] = {}
        for member, why in self.left.items():
            by_reason.setdefault(why.value, []).append(member)
        said.extend(f"{why}: {_some(gone)}" for why, gone in by_reason.items())
        if self.leader:
            said.append(f"leader {printable(self.leader)}, protocol {printable(self.protocol)}")
        return "; ".join(said)

    def _joined(self) -> str:
        awaited = f" for {printable(self.join_last_member)}" if self.join_last_member and self.join_ms else ""
        return f"{self.join_ms}{awaited}"

    def _who(self) -> str:
        who = f" ({printable(self.cause_member)})" if self.cause_member else ""
        return f"{who}: '{printable(self.reason)}'" if self.reason else who


_MEMBERS_IN_LINE = 5
"""More members than this are counted, not named, in the rendered line; the entry has them all."""


def _some(members: Sequence[str]) -> str:
    named = ", ".join(printable(one) for one in members[:_MEMBERS_IN_LINE])
    more = len(members) - _MEMBERS_IN_LINE
    return f"{named} and {more} more" if more > 0 else named


def printable(text: str, limit: int = REASON_MAX_CHARS) -> str:
    """`text` with everything that is not printable escaped, and cut at `limit` characters."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
