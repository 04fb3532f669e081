"""What the journal notes while a rebalance runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.journal import REASON_MAX_CHARS, Cause, Departure, JournalEntry, Outcome


@dataclass(slots=True)
class Progress:
    """Notes about one rebalance from its cause to its end; `entry` makes the journal entry of them."""

    cause: Cause
    cause_member: str
    reason: str
    started_ms: int
    members_before: tuple[str, ...]
    members_after: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    left: dict[str, Departure] = field(default_factory=dict)
    join_last_member: str = ""
    joined_ms: int = -1
    leader: str = ""
    synced: int = 0
    leader_synced_ms: int = -1

    @classmethod
    def of(cls, group: Group, cause: Cause, member_id: str, reason: str, now_ms: int) -> Progress:
        """A rebalance begins now."""
        # Members whose removal began this rebalance are gone already, and a new member is in already.
        staying = [m.member_id for m in group.members.values() if not m.is_new]
        return cls(cause, member_id, reason[:REASON_MAX_CHARS], now_ms, (*group.departed, *staying))

    def rename(self, old_id: str, member_id: str) -> None:
        """A static member goes on under another member id: it neither left nor joined."""
        if self.joined_ms >= 0:
            return  # that generation began with the old one
        self.members_before = tuple(member_id if one == old_id else one for one in self.members_before)
        if self.cause_member == old_id:
            self.cause_member = member_id
        if self.join_last_member == old_id:
            self.join_last_member = member_id

    def join_phase_over(self, group: Group, now_ms: int) -> None:
        """The generation is known."""
        self.joined_ms = now_ms
        self.leader = group.leader or ""
        self.members_after = tuple(group.members)
        before = set(self.members_before)
        self.joined = tuple(one for one in group.members if one not in before)
        self.left, group.departed = group.departed, {}
        self.join_last_member = next(
            (one for one, why in self.left.items() if why is Departure.NOT_REJOINED), self.join_last_member
        )

    def entry(self, group: Group, outcome: Outcome, now_ms: int, wall_ms: int) -> JournalEntry:
        """The entry. Phases that were not reached are 0 long; the three sum to the duration."""
        joined_ms = self.joined_ms if self.joined_ms >= 0 else now_ms
        synced_ms = self.leader_synced_ms if self.leader_synced_ms >= 0 else now_ms
        return JournalEntry(
            group_id=group.group_id,
            generation=group.generation,
            cause=self.cause,
            cause_member=self.cause_member,
            reason=self.reason,
            outcome=outcome,
            protocol_type=group.protocol_type or "",
            protocol=group.protocol or "",
            leader=self.leader,
            members_before=self.members_before,
            members_after=self.members_after,
            joined=self.joined,
            left=self.left,
            at_ms=wall_ms,
            duration_ms=now_ms - self.started_ms,
            join_ms=joined_ms - self.started_ms,
            join_last_member=self.join_last_member,
            leader_ms=synced_ms - joined_ms,
            sync_ms=now_ms - synced_ms,
            synced=self.synced,
        )
