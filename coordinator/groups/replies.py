"""Answers that say no, and the few that say yes in more than one place."""

from __future__ import annotations

from ringleader.coordinator.groups.member import Member
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import LeaveGroupResponse, SyncGroupResponse
from ringleader.protocol.refusals import FIRST_NULLABLE_PROTOCOL_NAME


def no_protocol(version: int) -> str | None:
    """The protocol name of a JoinGroup answer that has none."""
    return None if version >= FIRST_NULLABLE_PROTOCOL_NAME else ""


def sync_error(error: int) -> SyncGroupResponse:
    """A refused SyncGroup: no assignment, no protocol."""
    return SyncGroupResponse(error_code=error)


def sync_success(member: Member, protocol_type: str | None, protocol: str | None) -> SyncGroupResponse:
    """The member's assignment as the leader sent it, byte for byte."""
    return SyncGroupResponse(
        error_code=int(ErrorCode.NONE),
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignment=member.assignment,
    )


def leave_error(error: int) -> LeaveGroupResponse:
    """A LeaveGroup that failed as a whole."""
    return LeaveGroupResponse(error_code=error)
