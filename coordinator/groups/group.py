"""One group: its durable state, its members, and the bookkeeping that joins and votes need.

Two states are kept apart. `synced` is durable: the generation whose assignment is in the log. Members, state
and generation are how the group is seen: after a sync, and after a load, exactly what `synced` says
(`follow_record`); in a rebalance ahead of it, and lost with the process.

Nothing here decides when to rebalance (rebalance.py) or what to answer; these are the primitives, each O(1)
in the number of members where Kafka's were not (KAFKA-7142).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind, MemberDeadlines
from ringleader.coordinator.groups.member import GivenOutId, Member
from ringleader.coordinator.groups.memory import MemoryShare, group_bytes
from ringleader.coordinator.groups.states import HEARTBEAT_CODES, GroupState, check_transition
from ringleader.coordinator.groups.vote import CONSUMER_TYPE, Protocols, elect, subscribed_topics
from ringleader.coordinator.journal.entries import DepartedMember
from ringleader.coordinator.machine import NOTHING
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import GroupMetadataValue

if TYPE_CHECKING:
    from ringleader.coordinator.consumer_groups.group import ConsumerGroup
    from ringleader.coordinator.groups.committed import Uncommitted
    from ringleader.coordinator.groups.delegated import Delegation
    from ringleader.coordinator.groups.epoch_notes import EpochProgress
    from ringleader.coordinator.groups.patterns import Resolution
    from ringleader.coordinator.groups.progress import Progress

_NONE = int(ErrorCode.NONE)
_UNKNOWN_MEMBER_ID = int(ErrorCode.UNKNOWN_MEMBER_ID)
_FENCED_INSTANCE_ID = int(ErrorCode.FENCED_INSTANCE_ID)


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """A classic group. Fields are read by all modules of this room; members are changed by the methods
    only."""

    group_id: str
    share: MemoryShare = field(default_factory=MemoryShare)
    """Where it is counted what it holds."""
    member_bytes: int = 0  # of its members, and of the ids that were given out
    counted_bytes: int = 0
    # --- durable: changed by Core.apply only, live and while loading alike ---
    synced: GroupMetadataValue | None = None
    """The group's record: the last synced generation, or that it is empty."""
    record_bytes: int = 0  # of that record
    reserved_generation: int = 0  # any generation up to here may have been used
    offsets: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """Topic -> partition -> the record's value, read when it is asked for."""
    # Offsets of open transactions, by producer id. No table in it is empty.
    uncommitted: dict[int, dict[tuple[str, int], Uncommitted]] = field(default_factory=dict)
    open_at: dict[tuple[str, int], dict[int, Uncommitted]] = field(default_factory=dict)
    """The same ones by topic and partition, then by producer id."""
    later: set[tuple[int, str, int]] = field(default_factory=set)
    """Producer id, topic, partition: where the log says that such an offset is the later one."""
    consumer: ConsumerGroup | None = None
    """Its records as a group of the consumer protocol; None: it is a classic one."""
    # --- which log positions answers about it depend on ---
    position: int = NOTHING  # its record and reserved generation
    offsets_position: int = NOTHING
    target_position: int = NOTHING  # of its last target as a group of the consumer protocol
    moved_position: int = NOTHING  # of the last record of what a member of that protocol subscribes to or has
    moved_before_target: int = NOTHING  # what that was when it got the target
    # --- live: changes at once, lost on restart ---
    state: GroupState = GroupState.EMPTY
    previous: GroupState = GroupState.EMPTY
    on_its_way: bool = False
    """Its record, to the log."""
    quick: bool = False
    """Heartbeats of this generation are fine: they need no second look."""
    state_since_ms: int = -1  # Unix time; -1: not known
    generation: int = 0
    last_generation: int = 0  # the next generation is above this; after a load it is `reserved_generation`
    protocol_type: str | None = None  # None: a simple group, offsets only
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)  # in join order
    static_members: dict[str, str] = field(default_factory=dict)  # group instance id -> member id
    given_out: dict[str, GivenOutId] = field(default_factory=dict)  # member ids that were not used yet
    owing_sync: dict[str, None] = field(default_factory=dict)  # who owes a SyncGroup for this generation
    awaiting_joins: int = 0
    supporters: dict[str, int] = field(default_factory=dict)  # protocol name -> how many members offer it
    subscribed: frozenset[str] | None = None  # None: unknown; set at each completed join phase
    # --- timers of the two phases ---
    join_deadline: GroupDeadline = field(init=False)
    sync_deadline: GroupDeadline = field(init=False)
    new_member_added: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = -1  # -1: the present rebalance did not start from Empty
    consumer_deadlines: dict[str, MemberDeadlines] = field(default_factory=dict)
    """By the id of a member of the consumer protocol."""
    delegation: Delegation | None = None
    """Since its target was to be computed by a member for the first time."""
    computing: ConsumerGroup | None = None
    """This object of the group, while its target is computed in steps."""
    resolution: Resolution | None = None
    """Of the regular expressions of its members, since there are any."""
    looked_ms: int = -1
    """When its offsets were looked at for their rates; -1: not since the load."""
    rates: dict[str, dict[int, tuple[int, float]]] = field(default_factory=dict)
    """Topic -> partition -> the offset then, and records per second; negative: not known."""
    # --- journal ---
    progress: Progress | None = None
    finishing: Progress | None = None
    """Stored, and followers have not come for their shares yet."""
    no_commit_since: Progress | EpochProgress | None = None
    """Nobody has committed since this one was stored."""
    committed_ms: int = -1  # Unix time of the last commit since the shard was loaded
    departed: dict[str, DepartedMember] = field(default_factory=dict)  # since the last completed join phase

    def __post_init__(self) -> None:
        self.join_deadline = GroupDeadline(self.group_id, Kind.JOIN)
        self.sync_deadline = GroupDeadline(self.group_id, Kind.SYNC)

    # ---- state ----

    def transition(self, state: GroupState, unix_ms: int) -> None:
        """Move to `state`. Raises `IllegalTransitionError` for what the table does not have."""
        check_transition(self.group_id, self.state, state)
        self.previous = self.state
        self.state = state
        self.state_since_ms = unix_ms
        self.look()

    def look(self) -> None:
        """Work out `quick` after a change of what it depends on."""
        self.quick = not (self.on_its_way or HEARTBEAT_CODES[self.state])

    def follow_record(self) -> None:
        """Be what `synced` says: after a sync, where all its members are here already, when the last member
        went, and after a load."""
        value = self.synced
        assert value is not None
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol if value.members else None
        for one in value.members:
            member = self.members.get(one.member_id)
            if member is None:
                member = Member.of_record(self.group_id, one, value.protocol)
                self.add(member, value.protocol_type)
                self.subscribed = None
            member.assignment = one.assignment
        self.leader = value.leader if value.leader in self.members else next(iter(self.members), None)
        if self.subscribed is None:
            self.subscribed = self.compute_subscribed()
        state = GroupState.STABLE if value.members else GroupState.EMPTY
        if self.state is not state:
            self.transition(state, value.current_state_timestamp)
        self.state_since_ms = value.current_state_timestamp

    def end_classic(self) -> None:
        """It is no classic group any more, and has no members."""
        if self.state is not GroupState.EMPTY:
            self.transition(GroupState.EMPTY, -1)
        self.state_since_ms = -1
        self.protocol_type = self.protocol = self.subscribed = None
        self.progress = self.no_commit_since = None
        self.departed = {}

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and awaits none."""
        return self.state is GroupState.EMPTY and not (self.consumer and self.consumer.members)

    @property
    def is_absent(self) -> bool:
        """Nothing durable and nothing alive: for clients such a group does not exist."""
        if self.state is not GroupState.EMPTY or (self.consumer is not None and self.consumer.exists):
            return False
        return not (self.synced or self.offsets or self.uncommitted or self.given_out)

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for the partition."""
        return (topic, partition) in self.open_at

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members; 0 without members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        """Every member waits in JoinGroup and no given-out member id is outstanding."""
        return self.awaiting_joins == len(self.members) and not self.given_out

    # ---- members ----

    def check_member(self, member_id: str, group_instance_id: str | None) -> int:
        """Error code for a request that names this member: who it is comes before what it asks (KIP-345)."""
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                return _UNKNOWN_MEMBER_ID
            if holder != member_id:
                return _FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else _UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with this offer can be in the group. A known member's own present offer counts
        too."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        count, supporters = len(self.members), self.supporters
        for name, _ in protocols:  # noqa: SIM110 -- asked for every JoinGroup, and a generator takes longer
            if supporters.get(name, 0) == count:
                return True
        return False

    def add(self, member: Member, protocol_type: str) -> None:
        """A new member. The first one sets the protocol type; it leads if no member does (join order, not id
        order)."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count(member.protocols, 1)
        self._hold(member.held_bytes)

    def remove(self, member: Member) -> None:
        """A member goes. If it led, the member that has been here longest leads."""
        del self.members[member.member_id]
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        self.owing_sync.pop(member.member_id, None)
        self._count(member.protocols, -1)
        self._hold(-member.held_bytes)
        self.set_awaiting_join(member, False)
        member.release()
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member goes on under another member id, at its place in the join order (KIP-345)."""
        old_id = member.member_id
        self.members = {member_id if one == old_id else one: m for one, m in self.members.items()}
        before = member.held_bytes
        member.member_id = member_id
        self._hold(member.held_bytes - before)
        member.is_new = False
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member_id
        if old_id in self.owing_sync:
            self.owing_sync = {member_id if one == old_id else one: None for one in self.owing_sync}
        if self.leader == old_id:
            self.leader = member_id

    def update(
        self, member: Member, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        """Take over what a JoinGroup of a known member says."""
        if member.protocols != protocols:
            self._count(member.protocols, -1)
            self._count(protocols, 1)
            before = member.held_bytes
            member.protocols = protocols
            self._hold(member.held_bytes - before)
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def give_out(self, fresh: GivenOutId) -> None:
        """A member id is given out."""
        self.given_out[fresh.member_id] = fresh
        self._hold(fresh.held_bytes)

    def take_back(self, member_id: str) -> GivenOutId | None:
        """A member id is not given out any more; None if it was not."""
        taken = self.given_out.pop(member_id, None)
        if taken is not None:
            self._hold(-taken.held_bytes)
        return taken

    def set_awaiting_join(self, member: Member, awaiting: bool) -> None:
        """Keeps the count of members that wait in JoinGroup."""
        if member.awaiting_join != awaiting:
            member.awaiting_join = awaiting
            self.awaiting_joins += 1 if awaiting else -1

    def _count(self, protocols: Protocols, change: int) -> None:
        supporters = self.supporters
        for name, _ in protocols:
            left = supporters.get(name, 0) + change
            if left:
                supporters[name] = left
            else:
                supporters.pop(name, None)

    # ---- memory ----

    def set_record(self, value: GroupMetadataValue | None, size: int) -> None:
        """The group's record and its bytes; None and 0: there is none."""
        self.synced, self.record_bytes = value, size
        self._hold(0)

    def growth(self, members: int, record: int, consumer: int = 0) -> int:
        """By how much it would count more, if its members and its record took that much more; `consumer`:
        and it as one of the consumer protocol."""
        held = consumer if self.consumer is None else consumer + self.consumer.held_bytes
        return (
            held + group_bytes(self.member_bytes + members, self.record_bytes + record) - self.counted_bytes
        )

    def count_consumer(self) -> None:
        """After what changed it as one of the consumer protocol."""
        self._hold(0)

    def _hold(self, more: int) -> None:
        self.member_bytes += more
        change = self.growth(0, 0)
        self.counted_bytes += change
        self.share.change(change)

    # ---- the vote ----

    def elect_protocol(self) -> str:
        """The protocol of the next generation. Call it with a leader and members only."""
        members = self.members
        leader = members[self.leader or ""]
        offers = (m.protocols for m in members.values())
        return elect(offers, self.supporters, len(members), leader.protocols)

    def compute_subscribed(self) -> frozenset[str] | None:
        """Topics that the members subscribe to under the elected protocol; None: unknown (not a consumer
        group, or unreadable metadata). Used by OffsetDelete and expiry only."""
        if self.protocol_type != CONSUMER_TYPE:
            return None
        if self.protocol is None:
            return None
        return subscribed_topics(m.metadata(self.protocol) for m in self.members.values())

    @property
    def static_members_away(self) -> int:
        """How many static members have not sent JoinGroup in this join phase."""
        return sum(not self.members[one].awaiting_join for one in self.static_members.values())

    def not_joined(self) -> Sequence[Member]:
        """Members that have not sent JoinGroup in this join phase."""
        if self.awaiting_joins == len(self.members):
            return ()
        return [m for m in self.members.values() if not m.awaiting_join]
