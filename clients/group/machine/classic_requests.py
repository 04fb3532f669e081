"""Requests of a member in the classic group protocol, and the contents of their answers in every version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

REASON_MAX_CHARACTERS = 255
"""Longer reasons are cut, as the Java client does (KIP-800)."""


# ---- JoinGroup (key 11), SyncGroup (key 14), Heartbeat (key 12): the same in all versions ----


def join_group(
    settings: MemberSettings, protocols: Sequence[MemberProtocol], member_id: str, reason: str
) -> Request:
    """Join or rejoin with the current metadata of the protocols."""
    return plain(
        JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=settings.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=protocol.name, metadata=protocol.current())
                for protocol in protocols
            ],
            reason=reason[:REASON_MAX_CHARACTERS],
        )
    )


def describe_group(group_id: str) -> Request:
    """Ask for the members of the group."""
    return plain(DescribeGroupsRequest(groups=[group_id]))


def sync_group(
    settings: MemberSettings,
    generation: int,
    member_id: str,
    protocol: str,
    assignments: Mapping[str, bytes],
) -> Request:
    """Ask for the assignment; the leader sends the assignments of all members, others send none."""
    return plain(
        SyncGroupRequest(
            group_id=settings.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=settings.protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
        )
    )


def heartbeat(settings: MemberSettings, generation: int, member_id: str) -> Request:
    """Keep the membership."""
    return plain(
        HeartbeatRequest(
            group_id=settings.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=settings.group_instance_id,
        )
    )


# ---- LeaveGroup (key 13): one member up to v2, a list from v3 on (KIP-345) ----


def leave_group(group_id: str, member_id: str, group_instance_id: str | None, reason: str) -> Request:
    """Leave; the reason goes along from v5 on (KIP-800)."""

    def build(version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id=group_id, member_id=member_id)
        me = LeaveGroupRequestMemberIdentity(
            member_id=member_id,
            group_instance_id=group_instance_id,
            reason=reason[:REASON_MAX_CHARACTERS] if version >= 5 and reason else None,
        )
        return LeaveGroupRequest(group_id=group_id, members=[me])

    return Request(LeaveGroupRequest, build)


def left_group(response: Any) -> int | None:
    """The error code for the one member that left; None when the answer is about several."""
    if response.error_code or not response.members:
        return int(response.error_code)
    return int(response.members[0].error_code) if len(response.members) == 1 else None
