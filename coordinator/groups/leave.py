"""LeaveGroup, v0 to v5: one member, or from v3 a batch with a result each (KIP-345, KIP-800)."""

from __future__ import annotations

from ringleader.coordinator.groups.core import STORE_FULL
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.mixed import MixedHandler
from ringleader.coordinator.groups.rebalance import Membership, Rebalances
from ringleader.coordinator.journal.entries import Cause, Departure
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
)

_FIRST_BATCH = 3


class LeaveHandler(Membership):
    """Handles LeaveGroup for one shard."""

    def __init__(self, rebalances: Rebalances, mixed: MixedHandler) -> None:
        super().__init__(rebalances)
        self._mixed = mixed

    def leave(self, request: LeaveGroupRequest, ticket: Ticket, now_ms: int) -> LeaveGroupResponse | None:
        """The answer; None while it waits for the record of the group that it emptied."""
        core = self.core
        if not request.group_id:
            return LeaveGroupResponse(error_code=int(ErrorCode.INVALID_GROUP_ID))
        error = core.refusal or (core.full and STORE_FULL)
        if error:
            return LeaveGroupResponse(error_code=error)
        batch = ticket.api_version >= _FIRST_BATCH
        leaving = request.members if batch else [LeaveGroupRequestMemberIdentity(member_id=request.member_id)]
        group = core.find(request.group_id)
        if group is not None and group.consumer is not None:
            results = self._mixed.leave(group, leaving, now_ms)
        else:
            results = self._leave_all(group, leaving, now_ms)
        response = LeaveGroupResponse(members=results)
        if not batch:
            response = LeaveGroupResponse(error_code=results[0].error_code)
        return core.reply(ticket, response, core.position_of(request.group_id))

    def _leave_all(
        self, group: Group | None, leaving: list[LeaveGroupRequestMemberIdentity], now_ms: int
    ) -> list[LeaveGroupResponseMemberResponse]:
        """Results in the order of the request."""
        results = []
        first: tuple[str, str] | None = None  # member id and reason of the first that went, for the journal
        cause = Cause.PENDING_LEFT
        for one in leaving:
            member_id = _member_id(group, one)
            error, was_member = self._leave_one(group, member_id, one.group_instance_id, now_ms)
            if not error and (first is None or (was_member and cause is Cause.PENDING_LEFT)):
                first = member_id, one.reason or ""
                cause = Cause.MEMBER_LEFT if was_member else Cause.PENDING_LEFT
            results.append(
                LeaveGroupResponseMemberResponse(
                    member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=int(error)
                )
            )
        # In an empty group only given-out ids can leave, which changes nothing.
        if group is None or first is None or group.is_empty:
            return results
        # One good entry is enough. In an initial join phase this does nothing: its delay goes on (Kafka
        # behaviour).
        self.rebalances.start(group, cause, *first, now_ms)
        return results

    def _leave_one(
        self, group: Group | None, member_id: str, instance_id: str | None, now_ms: int
    ) -> tuple[ErrorCode | int, bool]:
        """(error, whether a full member went)."""
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, False
        if self.core.take_back(group, member_id):
            return ErrorCode.NONE, False
        error = group.check_member(member_id, instance_id)
        if error:
            return error, False
        self.core.begin_change()
        self.rebalances.remove(group, group.members[member_id], Departure.LEFT, now_ms)
        return ErrorCode.NONE, True


def _member_id(group: Group | None, one: LeaveGroupRequestMemberIdentity) -> str:
    """The member that an entry means: an operator names a static member, whose member id only itself knows,
    by its group instance id alone."""
    if group is None or one.member_id or one.group_instance_id is None:
        return one.member_id
    return group.static_members.get(one.group_instance_id, "")
