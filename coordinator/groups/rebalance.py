"""The rebalance engine: from the cause of a rebalance to the answers of its join phase, and its three timers.

The sequence and every special case follow Kafka's GroupMetadataManager; where this differs, it says so.
"""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import STORE_FULL, Part
from ringleader.coordinator.groups.deadlines import GroupDeadline
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import GivenOutId, Member
from ringleader.coordinator.groups.progress import Progress
from ringleader.coordinator.groups.states import CAN_REBALANCE, GroupState
from ringleader.coordinator.journal.entries import Cause, DepartedMember, Departure, Outcome
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse
from ringleader.protocol.refusals import FIRST_NULLABLE_PROTOCOL_NAME, join_refusal

DEPARTED_MAX = 10_000
"""Members whose going is noted for the journal, in one rebalance."""

_NONE = int(ErrorCode.NONE)
_UNKNOWN_MEMBER_ID = int(ErrorCode.UNKNOWN_MEMBER_ID)
_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)


class Rebalances(Part):
    """Starts, extends and completes rebalances of the groups of one shard."""

    # ---- starting ----

    def start(self, group: Group, cause: Cause, member_id: str, reason: str, now_ms: int) -> None:
        """Begin a rebalance, or carry on with the one that runs (Kafka `prepareRebalance` /
        `tryComplete`)."""
        if group.state in CAN_REBALANCE:
            self._prepare(group, cause, member_id, reason, now_ms)
        else:
            self.try_complete(group, now_ms)

    def _prepare(self, group: Group, cause: Cause, member_id: str, reason: str, now_ms: int) -> None:
        core = self.core
        if group.state is GroupState.COMPLETING:
            core.reports.end_rebalance(group, Outcome.SUPERSEDED, now_ms)
            self.answer_syncs_with_error(group, _REBALANCE_IN_PROGRESS, now_ms)
        core.reports.finish_rebalance(group, now_ms)
        group.progress = Progress.of(group, cause, member_id, reason, now_ms)
        group.owing_sync.clear()
        core.deadlines.cancel(group.sync_deadline)
        from_empty = group.state is GroupState.EMPTY
        group.transition(GroupState.PREPARING, core.unix_time.now_ms(now_ms))
        group.initial_remaining_ms = -1
        if from_empty:
            # KIP-134: wait for more members before the first assignment. The limit is the rebalance timeout
            # of the member that came first.
            delay_ms = core.settings.group_initial_rebalance_delay_ms
            group.new_member_added = False  # Kafka keeps a stale flag here, which costs one more delay
            group.initial_delay_ms = delay_ms
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            core.arm(group.join_deadline, now_ms + delay_ms)
        elif group.all_joined:
            self.complete(group, now_ms)
        else:
            core.arm(group.join_deadline, now_ms + max(group.rebalance_timeout_ms, 0))

    def try_complete(self, group: Group, now_ms: int) -> None:
        """Complete the join phase if everybody is here; never an initial one, whose delay is what it is
        for."""
        if group.state is not GroupState.PREPARING or group.previous is GroupState.EMPTY:
            return
        if group.all_joined:
            self.complete(group, now_ms)

    def join_timer_fired(self, deadline: GroupDeadline, now_ms: int) -> None:
        """The join phase has lasted its time."""
        group = self._group_of(deadline)
        if group is None or group.join_deadline is not deadline or group.state is not GroupState.PREPARING:
            return
        if group.initial_remaining_ms > 0 and group.new_member_added:
            # Somebody came during the last delay: wait once more, within the limit.
            group.new_member_added = False
            delay_ms = min(self.core.settings.group_initial_rebalance_delay_ms, group.initial_remaining_ms)
            group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
            group.initial_delay_ms = delay_ms
            self.core.arm(deadline, now_ms + delay_ms)
        else:
            self.complete(group, now_ms)

    def end_classic(self, group: Group, now_ms: int) -> None:
        """The group goes on as one of the consumer protocol. A member that waits has to join again, which it
        may under the id that it was given."""
        core = self.core
        if group.state is GroupState.COMPLETING:
            core.reports.end_rebalance(group, Outcome.SUPERSEDED, now_ms)
        core.reports.finish_rebalance(group, now_ms)
        for member in list(group.members.values()):
            core.deadlines.cancel(member)
            self.refuse_parked(group, member, _REBALANCE_IN_PROGRESS, member.member_id)
            group.remove(member)
        for member_id in list(group.given_out):
            core.take_back(group, member_id)
        for deadline in (group.join_deadline, group.sync_deadline):
            core.deadlines.cancel(deadline)
        group.end_classic()

    # ---- completing the join phase ----

    def complete(self, group: Group, now_ms: int) -> None:
        """End the join phase: a new generation, or an empty group (Kafka `completeClassicGroupJoin`)."""
        core = self.core
        core.deadlines.cancel(group.join_deadline)
        for member in group.not_joined():
            if member.group_instance_id is None:  # static members stay until their session ends (KIP-345)
                self.remove(group, member, Departure.NOT_REJOINED, now_ms)
        if group.members and not self._leader_has_joined(group):
            # At least 1 ms: a timeout of 0 must not make this come round for ever at the same time.
            core.arm(group.join_deadline, now_ms + max(group.rebalance_timeout_ms, 1))
            return
        group.last_generation += 1
        group.generation = group.last_generation
        if group.members:
            if group.generation > group.reserved_generation:
                core.reserve(group)
            self._enter_completing(group, now_ms)
        else:
            self._enter_empty(group, now_ms)

    def _leader_has_joined(self, group: Group) -> bool:
        """An absent leader is replaced by the longest-standing member that joined; False if none joined."""
        if group.awaiting_joins == 0:
            return False
        if not group.members[group.leader or ""].awaiting_join:
            group.leader = next(m.member_id for m in group.members.values() if m.awaiting_join)
        return True

    def _enter_completing(self, group: Group, now_ms: int) -> None:
        core = self.core
        group.protocol = group.elect_protocol()
        group.subscribed = group.compute_subscribed()
        group.transition(GroupState.COMPLETING, core.unix_time.now_ms(now_ms))
        if group.progress is not None:
            group.progress.join_phase_over(group, now_ms)
        group.owing_sync = dict.fromkeys(group.members)
        leader = group.leader or ""
        listed = self.member_list(group)
        for member in group.members.values():
            ticket = self.unpark_join(group, member)
            if ticket is not None:
                members = listed if member.member_id == leader else []
                success = self.join_success(group, member, members, ticket.api_version)
                core.out.answer(ticket, success, group.position)
            member.is_new = False
            core.arm_session(member, now_ms)
        core.arm(group.sync_deadline, now_ms + max(group.rebalance_timeout_ms, 0))

    def _enter_empty(self, group: Group, now_ms: int) -> None:
        core = self.core
        group.protocol = None
        if group.progress is not None:
            group.progress.join_phase_over(group, now_ms)
        value = records.group_value(group, (), core.unix_time.stamp_ms(now_ms))
        core.write_group(group, value, records.encode_group_value(value))
        group.follow_record()
        core.reports.end_rebalance(group, Outcome.EMPTY, now_ms)

    def member_list(self, group: Group) -> list[JoinGroupResponseMember]:
        """The list for the leader: all members, in join order, with their metadata of the elected
        protocol."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        ]

    def join_success(
        self, group: Group, member: Member, members: list[JoinGroupResponseMember], version: int
    ) -> JoinGroupResponse:
        """The answer for a member of the present generation. A protocol without a name is none (Kafka
        behaviour)."""
        return JoinGroupResponse(
            error_code=_NONE,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol or (None if version >= FIRST_NULLABLE_PROTOCOL_NAME else ""),
            leader=group.leader or "",
            skip_assignment=False,
            member_id=member.member_id,
            members=members,
        )

    # ---- the other timers ----

    def sync_timer_fired(self, deadline: GroupDeadline, now_ms: int) -> None:
        """Members that did not sync within the rebalance timeout go, static ones too (KAFKA-12890)."""
        group = self._group_of(deadline)
        if group is None or group.sync_deadline is not deadline or not group.owing_sync:
            return
        if group.state not in (GroupState.COMPLETING, GroupState.STABLE):
            return
        if self._owes_answers(group):
            self.core.arm(deadline, now_ms + max(group.rebalance_timeout_ms, 1))
            return
        missing = [group.members[member_id] for member_id in group.owing_sync]
        for member in missing:
            self.remove(group, member, Departure.NOT_SYNCED, now_ms)
        self._prepare(group, Cause.SYNC_MISSING, missing[0].member_id, "", now_ms)

    def _group_of(self, deadline: GroupDeadline) -> Group | None:
        return self.core.groups.get(deadline.group_id or "")

    def _owes_answers(self, group: Group) -> bool:
        """Whether the last answer to its members waits for the log: then we are silent, not they."""
        return group.position > self.core.out.durable

    def session_fired(self, member: Member, now_ms: int) -> None:
        """A member was silent for its session timeout, or waited too long for its first join phase."""
        group = self._group_of(member)
        if group is None or group.members.get(member.member_id) is not member:
            return
        if member.lives_without_heartbeat:
            return  # started afresh when its request is answered
        if self._owes_answers(group) or self.core.log_is_silent(now_ms):
            self.core.arm_session(member, now_ms)
        else:
            self.expire(member, now_ms)

    def expire(self, member: Member, now_ms: int) -> None:
        """The session is over: the member goes, and the group rebalances."""
        group = self._group_of(member)
        assert group is not None
        why = Departure.NEW_MEMBER_TIMEOUT if member.is_new else Departure.SESSION_EXPIRED
        self.remove(group, member, why, now_ms)
        if group.state is not GroupState.PREPARING:
            self._prepare(group, Cause.SESSION_EXPIRED, member.member_id, "", now_ms)
        elif group.all_joined:
            self.complete(group, now_ms)  # an initial phase too, as in Kafka

    def given_out_fired(self, unused: GivenOutId, now_ms: int) -> None:
        """A given-out member id was not used in time: forget it; it no longer holds up the join phase."""
        group = self._group_of(unused)
        if group is None or group.given_out.get(unused.member_id) is not unused:
            return
        group.take_back(unused.member_id)
        if group.state is GroupState.PREPARING and group.all_joined:
            self.complete(group, now_ms)
        self.core.forget_if_absent(group)

    # ---- members and parked requests ----

    def remove(self, group: Group, member: Member, why: Departure | None, now_ms: int) -> None:
        """Take a member out. Its parked requests are answered; a parked SyncGroup too, which Kafka forgets.
        `why` None: it was never really in."""
        if why is not None and len(group.departed) < DEPARTED_MAX:
            unix_time = self.core.unix_time
            group.departed[member.member_id] = DepartedMember(
                why,
                unix_time.now_ms(now_ms),
                unix_time.now_ms(member.seen_ms(now_ms)),
                member.client_id,
                member.client_host,
                member.group_instance_id,
                member.principal,
            )
        self.core.deadlines.cancel(member)
        self.refuse_parked(group, member, _UNKNOWN_MEMBER_ID, "")
        group.remove(member)

    def park_join(self, group: Group, member: Member, ticket: Ticket, now_ms: int) -> None:
        """Keep a JoinGroup unanswered. An older one of the member is never answered by Kafka; here its
        connection is closed, so that nobody waits for ever."""
        if member.join_ticket is not None:
            self._replace(member.join_ticket, ticket)
        member.join_ticket = ticket
        if not member.awaiting_join:
            member.joined_ms = now_ms
        group.set_awaiting_join(member, True)
        self.core.parked[ticket] = member
        if group.progress is not None and group.state is GroupState.PREPARING:
            group.progress.join_last_member = member.member_id

    def park_sync(self, member: Member, ticket: Ticket) -> None:
        """Keep a SyncGroup unanswered; an older one of the member as in `park_join`."""
        if member.sync_ticket is not None:
            self._replace(member.sync_ticket, ticket)
        member.sync_ticket = ticket
        member.awaiting_sync = True
        self.core.parked[ticket] = member

    def _replace(self, older: Ticket, newer: Ticket) -> None:
        self.core.parked.pop(older, None)
        if older.connection is not newer.connection:
            self.core.out.answer(older, None)

    def unpark_join(self, group: Group, member: Member) -> Ticket | None:
        """The member no longer waits in JoinGroup; the ticket to answer, if it is still there."""
        group.set_awaiting_join(member, False)
        ticket, member.join_ticket = member.join_ticket, None
        if ticket is not None:
            self.core.parked.pop(ticket, None)
        return ticket

    def unpark_sync(self, member: Member) -> Ticket | None:
        """The member no longer waits in SyncGroup; the ticket to answer, if it is still there."""
        member.awaiting_sync = False
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is not None:
            self.core.parked.pop(ticket, None)
        return ticket

    def refuse_parked(self, group: Group, member: Member, error: int, member_id: str) -> None:
        """The request in which the member waits is answered with an error; `member_id`: what JoinGroup
        echoes."""
        ticket = self.unpark_join(group, member)
        if ticket is not None:
            self.core.out.answer(ticket, join_refusal(ticket.api_version, error, member_id), group.position)
        self._refuse_sync(group, member, error)

    def _refuse_sync(self, group: Group, member: Member, error: int) -> None:
        refused = SyncGroupResponse(error_code=error)
        self.core.out.answer(self.unpark_sync(member), refused, group.position)

    def answer_syncs_with_error(self, group: Group, error: int, now_ms: int) -> None:
        """Every member that waits for an assignment gets an error; assignments are forgotten."""
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync:
                self._refuse_sync(group, member, error)
                self.core.arm_session(member, now_ms)

    # ---- a store without room ----

    def store_is_full(self, now_ms: int) -> None:
        """Every request that waits for a record which cannot be written is refused. New members may not know
        their ids yet, so they are forgotten, as if they had never come."""
        for group in self.core.groups.values():
            if group.state not in (GroupState.PREPARING, GroupState.COMPLETING):
                continue
            for member in list(group.members.values()):
                waited = member.awaiting_join or member.awaiting_sync
                self.refuse_parked(group, member, STORE_FULL, "" if member.is_new else member.member_id)
                if member.is_new:
                    self.remove(group, member, None, now_ms)
                elif waited:
                    self.core.arm_session(member, now_ms)


class Membership(Part):
    """A part whose requests begin rebalances, and wait in them."""

    def __init__(self, rebalances: Rebalances) -> None:
        super().__init__(rebalances.core)
        self.rebalances = rebalances
