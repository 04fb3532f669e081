"""Members of a group at the level of requests."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.support.served import Client

JOIN_VERSION = 3
"""Before MEMBER_ID_REQUIRED: one request joins."""


@dataclass
class Member:
    """The ids of a member, after it joined."""

    group_id: str
    member_id: str
    generation: int

    def heartbeat(self) -> HeartbeatRequest:
        """Its heartbeat."""
        return HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )

    def commit(self, offset: int, topic: str = "orders", partition: int = 0) -> OffsetCommitRequest:
        """Its commit of one partition."""
        entry = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[entry])],
        )


def join_request(group_id: str, member_id: str = "", session_timeout_ms: int = 30_000) -> JoinGroupRequest:
    """A JoinGroup of a consumer."""
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")],
    )


async def form(client: Client, group_id: str) -> Member:
    """A group of one, stable."""
    joined = await client.call(join_request(group_id), JOIN_VERSION)
    assert joined.error_code == 0
    member = Member(group_id, joined.member_id, joined.generation_id)
    synced = await client.call(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=member.generation,
            member_id=member.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")],
        ),
        3,
    )
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    return member
