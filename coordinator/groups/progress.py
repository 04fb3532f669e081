"""The journal's notes while a rebalance runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.journal.entries import (
    REASON_MAX_CHARS,
    Cause,
    DepartedMember,
    Departure,
    JournalEntry,
    Outcome,
    Present,
)
from ringleader.coordinator.machine import NOTHING
from ringleader.protocol.messages import GroupMetadataValue


@dataclass(slots=True, eq=False, repr=False)
class Progress(GroupDeadline):
    """Notes about one rebalance from its cause to its end; `entry` makes the journal entry of them. As a
    `Deadline`: how long the last followers are waited for."""

    kind: Kind = field(default=Kind.JOURNAL, init=False)
    cause: Cause
    cause_member: str
    reason: str
    started_ms: int
    members_before: tuple[str, ...]
    members: tuple[Member, ...] = ()
    """Of the new generation."""
    members_after: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    left: dict[str, DepartedMember] = field(default_factory=dict)
    last_heard_ms: dict[str, int] = field(default_factory=dict)
    """Unix time, of static members that came back."""
    join_last_member: str = ""
    joined_ms: int = -1
    leader: str = ""
    synced: int = 0
    leader_synced_ms: int = -1
    # --- what `ended` notes ---
    before: GroupMetadataValue | None = None
    stored: GroupMetadataValue | None = None
    """The generation's record, if it has one."""
    outcome: Outcome = Outcome.SUPERSEDED
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    position: int = NOTHING
    last_commit_ms: int = -1
    first_commit_ms: int = -1

    @classmethod
    def of(cls, group: Group, cause: Cause, member_id: str, reason: str, now_ms: int) -> Progress:
        """A rebalance begins now."""
        # Members whose removal began this rebalance are gone already, and a new member is in already.
        staying = [m.member_id for m in group.members.values() if not m.is_new]
        before = (*group.departed, *staying)
        return cls(group.group_id, cause, member_id, reason[:REASON_MAX_CHARS], now_ms, before)

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
        """The generation is known, and not stored."""
        self.joined_ms = now_ms
        self.before = group.synced
        self.leader = group.leader or ""
        self.members = tuple(group.members.values())
        self.members_after = tuple(group.members)
        before = set(self.members_before)
        self.joined = tuple(one for one in group.members if one not in before)
        self.left, group.departed = group.departed, {}
        self.join_last_member = next(
            (one for one, departure in self.left.items() if departure.why is Departure.NOT_REJOINED),
            self.join_last_member,
        )

    def ended(self, group: Group, outcome: Outcome) -> None:
        """The outcome is known; how long followers take for their shares is not."""
        self.outcome = outcome
        if outcome is Outcome.STABLE:
            self.stored = group.synced
        self.generation = group.generation
        self.protocol_type = group.protocol_type or ""
        self.protocol = group.protocol or ""
        self.position = group.position
        self.last_commit_ms = group.committed_ms

    def entry(self, group: Group, now_ms: int, to_unix_ms: int) -> JournalEntry:
        """The entry. Phases that were not reached are 0 long; the three sum to the duration. `to_unix_ms`:
        from the machine's clock to Unix time."""
        joined_ms = self.joined_ms if self.joined_ms >= 0 else now_ms
        synced_ms = self.leader_synced_ms if self.leader_synced_ms >= 0 else now_ms
        return JournalEntry(
            group_id=group.group_id,
            generation=self.generation,
            cause=self.cause,
            cause_member=self.cause_member,
            reason=self.reason,
            outcome=self.outcome,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader,
            members_before=self.members_before,
            members_after=self.members_after,
            joined=self.joined,
            left={one: departure.why for one, departure in self.left.items()},
            at_ms=now_ms + to_unix_ms,
            duration_ms=now_ms - self.started_ms,
            join_ms=joined_ms - self.started_ms,
            join_last_member=self.join_last_member,
            leader_ms=synced_ms - joined_ms,
            sync_ms=now_ms - synced_ms,
            synced=self.synced,
            members=tuple(self._present(group, to_unix_ms)),
            before=self.before,
            gone=self.left,
            last_commit_ms=self.last_commit_ms,
            first_commit_ms=self.first_commit_ms + to_unix_ms if self.first_commit_ms >= 0 else -1,
        )

    def _present(self, group: Group, to_unix_ms: int) -> Iterator[Present]:
        """Members of the generation, those that have gone since among them."""
        stored = iter(() if self.stored is None else self.stored.members)
        for member_id, member in zip(self.members_after, self.members, strict=True):
            joined = member.joined_ms >= self.started_ms
            synced = member_id not in group.owing_sync and member.synced_ms >= self.joined_ms
            record, departure = next(stored, None), group.departed.get(member_id)
            yield Present(
                member_id,
                departure.client_id if departure is not None else member.client_id,
                member.client_host,
                member.group_instance_id,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(self.protocol) if record is None else record.subscription,
                b"" if record is None else record.assignment,
                member.joined_ms + to_unix_ms if joined else -1,
                max(member.synced_ms, self.leader_synced_ms) + to_unix_ms if record and synced else -1,
                self.last_heard_ms.get(member_id, -1),
                departure.principal if departure is not None else member.principal,
            )
