"""SyncGroup, v0 to v5: the leader's assignment becomes durable, then everybody gets their part (KIP-559)."""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import STORE_FULL
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.mixed import MixedHandler
from ringleader.coordinator.groups.rebalance import Membership, Rebalances
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.journal.entries import Cause, Outcome
from ringleader.coordinator.machine import Phase, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import SyncGroupRequest, SyncGroupResponse


class SyncHandler(Membership):
    """Handles SyncGroup for one shard."""

    def __init__(self, rebalances: Rebalances, mixed: MixedHandler) -> None:
        super().__init__(rebalances)
        self._mixed = mixed

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now_ms: int) -> SyncGroupResponse | None:
        """The answer; None while it waits for the leader or for the record."""
        core = self.core
        group = core.find(request.group_id)
        response = None
        if group is not None and group.consumer is not None and not core.refusal:
            response = self._mixed.sync(group, request, now_ms)
        elif error := self._refuse(group, request):
            response = SyncGroupResponse(error_code=int(error))
        if group is None or response is not None:
            if response is not None and response.error_code == ErrorCode.FENCED_INSTANCE_ID:
                core.reports.fenced_instance(request, ticket, now_ms)
            return core.reply(ticket, response, core.position_of(request.group_id))
        if group.state is GroupState.COMPLETING and core.full:
            return SyncGroupResponse(error_code=STORE_FULL)
        member = group.members[request.member_id]
        core.begin_change()
        if member.member_id in group.owing_sync:
            del group.owing_sync[member.member_id]
            if group.progress is not None:
                group.progress.synced += 1
            elif group.finishing is not None:
                group.finishing.synced += 1
            member.synced_ms = now_ms
            if not group.owing_sync:
                core.deadlines.cancel(group.sync_deadline)
                core.reports.finish_rebalance(group, now_ms)
        if group.state is GroupState.STABLE:
            return core.reply(ticket, _success(group, member), group.position)
        self.rebalances.park_sync(member, ticket)
        if group.leader == member.member_id:
            self._assign(group, request, now_ms)
        return None

    def _refuse(self, group: Group | None, request: SyncGroupRequest) -> ErrorCode | int:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if self.core.phase is Phase.LOADING:
            # Java's consumer takes COORDINATOR_LOAD_IN_PROGRESS here for a fatal error; Kafka's former
            # coordinator answered this on purpose.
            return ErrorCode.REBALANCE_IN_PROGRESS
        if self.core.phase is Phase.UNLOADED:
            return ErrorCode.NOT_COORDINATOR
        if group is None or group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(request.protocol_type, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if _differs(request.protocol_name, group.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING else ErrorCode.NONE

    def _assign(self, group: Group, request: SyncGroupRequest, now_ms: int) -> None:
        """Write what the leader decided, and tell everybody. Ids that are not members have no effect; members
        it left out get nothing."""
        core = self.core
        if group.progress is not None:
            group.progress.leader_synced_ms = now_ms
        by_member = {one.member_id: one.assignment for one in request.assignments}
        assignments = [(member, by_member.get(member.member_id, b"")) for member in group.members.values()]
        value = records.group_value(group, assignments, core.unix_time.stamp_ms(now_ms))
        raw = records.encode_group_value(value)
        too_large = len(raw) > core.settings.group_max_record_bytes
        more_bytes = len(raw) - group.record_bytes
        if too_large or not core.has_memory(group, request.member_id, now_ms, record=more_bytes):
            error = int(ErrorCode.UNKNOWN_SERVER_ERROR)
            self.rebalances.answer_syncs_with_error(group, error, now_ms)
            self.rebalances.start(group, Cause.STORE_FAILED, group.leader or "", "", now_ms)
            return
        core.write_group(group, value, raw)
        group.follow_record()
        for member in group.members.values():
            if member.awaiting_sync:
                core.out.answer(self.rebalances.unpark_sync(member), _success(group, member), group.position)
                core.arm_session(member, now_ms)
        core.reports.end_rebalance(group, Outcome.STABLE, now_ms)


def _success(group: Group, member: Member) -> SyncGroupResponse:
    """The member's assignment as the leader sent it, byte for byte."""
    return SyncGroupResponse(
        error_code=int(ErrorCode.NONE),
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def _differs(reported: str | None, known: str | None) -> bool:
    return reported is not None and known is not None and reported != known
