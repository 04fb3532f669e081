"""One member of a group, and one member id that was given out and has not joined yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringleader.coordinator.deadlines import NEVER
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.memory import member_bytes
from ringleader.coordinator.groups.vote import Protocols

if TYPE_CHECKING:
    from ringleader.coordinator.machine import Ticket
    from ringleader.protocol.messages import GroupMetadataValueMemberMetadata


@dataclass(slots=True, eq=False, repr=False)
class Member(GroupDeadline):
    """A member; as a `Deadline` it is its own session timer. Members are kept in join order by their
    group."""

    kind: Kind = field(default=Kind.MEMBER, init=False)
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    principal: str | None = None
    """The principal of its last JoinGroup, for the journal; None: before a restart, as records do not say
    it."""
    is_new: bool = False
    # A request counts as parked until it is answered, even when its connection (and so its ticket) is
    # gone: Kafka ties no membership to connections.
    awaiting_join: bool = False
    awaiting_sync: bool = False
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None
    # For the journal, by the machine's clock; -1: never.
    joined_ms: int = -1
    synced_ms: int = -1

    @classmethod
    def of_record(cls, group_id: str, one: GroupMetadataValueMemberMetadata, protocol: str | None) -> Member:
        """A member as the group's record has it: of what it offers, the elected protocol only."""
        return cls(
            group_id,
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.session_timeout,
            one.rebalance_timeout if one.rebalance_timeout >= 0 else one.session_timeout,
            ((protocol or "", one.subscription),),
        )

    def release(self) -> None:
        """It is out of its group. Its cancelled deadline may stay in the heap for a while, its bytes not."""
        self.protocols = ()
        self.assignment = b""
        self.client_id = ""
        self.principal = None

    @property
    def held_bytes(self) -> int:
        """See `memory.member_bytes`."""
        return member_bytes(self.member_id, self.group_instance_id, self.client_id, self.protocols)

    @property
    def lives_without_heartbeat(self) -> bool:
        """A member that waits for us in JoinGroup or SyncGroup is not expired (KAFKA-9752, 9232, 7196); a new
        one is, because a client that gave up on its first JoinGroup never comes back with that id
        (KAFKA-7610)."""
        return not self.is_new and (self.awaiting_join or self.awaiting_sync)

    def seen_ms(self, now_ms: int) -> int:
        """When it last asked anything. Its session says so: a heartbeat only starts that afresh."""
        if self.is_new:
            return max(self.joined_ms, 0)
        started_ms = (now_ms if self.due_ms == NEVER else self.due_ms) - self.session_timeout_ms
        return min(max(started_ms, self.joined_ms, self.synced_ms), now_ms)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for `protocol`; empty if it does not offer that."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""


@dataclass(slots=True, eq=False, repr=False)
class GivenOutId(GroupDeadline):
    """A member id that was given out with MEMBER_ID_REQUIRED (KIP-394); as a `Deadline` its own expiry."""

    kind: Kind = field(default=Kind.GIVEN_OUT, init=False)
    member_id: str

    @property
    def held_bytes(self) -> int:
        """As a member without an offer."""
        return member_bytes(self.member_id, None, "", ())
