"""Answers that say no, and the few that say yes in more than one place."""

from __future__ import annotations

from typing import Any

from ringleader.coordinator.groups.member import Member
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_FIRST_NULLABLE_PROTOCOL_NAME = 7


def no_protocol(version: int) -> str | None:
    """The protocol name of a JoinGroup answer that has none: below v7 it cannot be null on the wire."""
    return None if version >= _FIRST_NULLABLE_PROTOCOL_NAME else ""


def join_error(version: int, error: int, member_id: str) -> JoinGroupResponse:
    """A refused JoinGroup: generation -1, no leader, no members, no protocol type (KIP-559)."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=-1,
        protocol_type=None,
        protocol_name=no_protocol(version),
        member_id=member_id,
    )


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


def commit_answer(request: OffsetCommitRequest, error: int) -> OffsetCommitResponse:
    """The same code for every partition of the request."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_commit_answer(request: TxnOffsetCommitRequest, error: int) -> TxnOffsetCommitResponse:
    """The same code for every partition of the request."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def error_reply(request: Any, version: int, error: int) -> Any:
    """The answer to a queued request of any kind that cannot be served."""
    if isinstance(request, JoinGroupRequest):
        return join_error(version, error, "")
    if isinstance(request, SyncGroupRequest):
        return sync_error(error)
    if isinstance(request, OffsetCommitRequest):
        return commit_answer(request, error)
    if isinstance(request, TxnOffsetCommitRequest):
        return txn_commit_answer(request, error)
    return leave_error(error)
