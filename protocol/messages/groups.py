"""Membership of groups: find the coordinator, join, sync, heartbeat, leave; describe, list, delete groups."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@message(key=10, versions=(0, 4), flexible=3, kind="request")
class FindCoordinatorRequest(Message):
    """Ask which node coordinates a group or a transactional id.

    `key_type` 0 is a group, 1 a transactional id. One key up to version 3, several from version 4 on.

    FindCoordinator, API 10, v0-4; KIP-699.
    """

    key: str = field("string", versions=(0, 3), default="")
    key_type: int = field("int8", versions=(1, LAST), default=0)
    coordinator_keys: list[str] = array("string", versions=(4, LAST), factory=list)


@struct
class FindCoordinatorResponseCoordinator:
    """One of `FindCoordinatorResponse.coordinators`."""

    key: str = field("string", versions=(4, LAST), default="")
    node_id: int = field("int32", versions=(4, LAST), default=0)
    host: str = field("string", versions=(4, LAST), default="")
    port: int = field("int32", versions=(4, LAST), default=0)
    error_code: int = field("int16", versions=(4, LAST), default=0)
    error_message: str | None = field(
        "string", versions=(4, LAST), nullable=(4, LAST), default="", ignorable=True
    )


@message(key=10, versions=(0, 4), flexible=3, kind="response")
class FindCoordinatorResponse(Message):
    """The node that coordinates each key (FindCoordinator, API 10, v0-4; KIP-699)."""

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    error_code: int = field("int16", versions=(0, 3), default=0)
    error_message: str | None = field("string", versions=(1, 3), nullable=(1, 3), default="", ignorable=True)
    node_id: int = field("int32", versions=(0, 3), default=0)
    host: str = field("string", versions=(0, 3), default="")
    port: int = field("int32", versions=(0, 3), default=0)
    coordinators: list[FindCoordinatorResponseCoordinator] = array(
        FindCoordinatorResponseCoordinator, versions=(4, LAST), factory=list
    )


@struct
class JoinGroupRequestProtocol:
    """One of `JoinGroupRequest.protocols`."""

    name: str = field("string", default="")
    metadata: bytes = field("bytes", default=b"")


@message(key=11, versions=(0, 9), flexible=6, kind="request")
class JoinGroupRequest(Message):
    """Ask to be a member of a group, or to stay one through a rebalance.

    JoinGroup, API 11, v0-9; KIP-62, KIP-345, KIP-394, KIP-559, KIP-800, KIP-814.
    """

    group_id: str = field("string", default="")
    session_timeout_ms: int = field("int32", default=0)
    rebalance_timeout_ms: int = field("int32", versions=(1, LAST), default=-1, ignorable=True)
    member_id: str = field("string", default="")
    group_instance_id: str | None = field("string", versions=(5, LAST), nullable=(5, LAST), default=None)
    protocol_type: str = field("string", default="")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, factory=list)
    reason: str | None = field("string", versions=(8, LAST), nullable=(8, LAST), default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    """One of `JoinGroupResponse.members`."""

    member_id: str = field("string", default="")
    group_instance_id: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )
    metadata: bytes = field("bytes", default=b"")


@message(key=11, versions=(0, 9), flexible=6, kind="response")
class JoinGroupResponse(Message):
    """The generation joined; the members and what they said, for the leader only.

    JoinGroup, API 11, v0-9; KIP-62, KIP-345, KIP-394, KIP-559, KIP-800, KIP-814.
    """

    throttle_time_ms: int = field("int32", versions=(2, LAST), default=0, ignorable=True)
    error_code: int = field("int16", default=0)
    generation_id: int = field("int32", default=-1)
    protocol_type: str | None = field(
        "string", versions=(7, LAST), nullable=(7, LAST), default=None, ignorable=True
    )
    protocol_name: str | None = field("string", nullable=(7, LAST), default="")
    leader: str = field("string", default="")
    skip_assignment: bool = field("bool", versions=(9, LAST), default=False)
    member_id: str = field("string", default="")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, factory=list)


@struct
class SyncGroupRequestAssignment:
    """One of `SyncGroupRequest.assignments`."""

    member_id: str = field("string", default="")
    assignment: bytes = field("bytes", default=b"")


@message(key=14, versions=(0, 5), flexible=4, kind="request")
class SyncGroupRequest(Message):
    """Ask for the assignment; the leader brings everybody's (SyncGroup, API 14, v0-5; KIP-345, KIP-559)."""

    group_id: str = field("string", default="")
    generation_id: int = field("int32", default=0)
    member_id: str = field("string", default="")
    group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default=None)
    protocol_type: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )
    protocol_name: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, factory=list)


@message(key=14, versions=(0, 5), flexible=4, kind="response")
class SyncGroupResponse(Message):
    """The bytes that the leader assigned to this member (SyncGroup, API 14, v0-5; KIP-345, KIP-559)."""

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    error_code: int = field("int16", default=0)
    protocol_type: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )
    protocol_name: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )
    assignment: bytes = field("bytes", default=b"")


@message(key=12, versions=(0, 4), flexible=4, kind="request")
class HeartbeatRequest(Message):
    """Say that the member is alive (Heartbeat, API 12, v0-4; KIP-345)."""

    group_id: str = field("string", default="")
    generation_id: int = field("int32", default=0)
    member_id: str = field("string", default="")
    group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default=None)


@message(key=12, versions=(0, 4), flexible=4, kind="response")
class HeartbeatResponse(Message):
    """Whether the member is still of this generation, and whether to rejoin.

    Heartbeat, API 12, v0-4; KIP-345.
    """

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    error_code: int = field("int16", default=0)


@struct
class LeaveGroupRequestMemberIdentity:
    """One of `LeaveGroupRequest.members`."""

    member_id: str = field("string", versions=(3, LAST), default="")
    group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default=None)
    reason: str | None = field("string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True)


@message(key=13, versions=(0, 5), flexible=4, kind="request")
class LeaveGroupRequest(Message):
    """Leave the group, or remove members from it (LeaveGroup, API 13, v0-5; KIP-345, KIP-800)."""

    group_id: str = field("string", default="")
    member_id: str = field("string", versions=(0, 2), default="")
    members: list[LeaveGroupRequestMemberIdentity] = array(
        LeaveGroupRequestMemberIdentity, versions=(3, LAST), factory=list
    )


@struct
class LeaveGroupResponseMemberResponse:
    """One of `LeaveGroupResponse.members`."""

    member_id: str = field("string", versions=(3, LAST), default="")
    group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default="")
    error_code: int = field("int16", versions=(3, LAST), default=0)


@message(key=13, versions=(0, 5), flexible=4, kind="response")
class LeaveGroupResponse(Message):
    """The result for each leaving member (LeaveGroup, API 13, v0-5; KIP-345, KIP-800)."""

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    error_code: int = field("int16", default=0)
    members: list[LeaveGroupResponseMemberResponse] = array(
        LeaveGroupResponseMemberResponse, versions=(3, LAST), factory=list
    )


@message(key=15, versions=(0, 6), flexible=5, kind="request")
class DescribeGroupsRequest(Message):
    """Ask for the state and members of groups (DescribeGroups, API 15, v0-6; KIP-345, KIP-430,
    KIP-1043)."""

    groups: list[str] = array("string", factory=list)
    include_authorized_operations: bool = field("bool", versions=(3, LAST), default=False)


@struct
class DescribeGroupsResponseDescribedGroupMember:
    """One of `DescribeGroupsResponseDescribedGroup.members`."""

    member_id: str = field("string", default="")
    group_instance_id: str | None = field(
        "string", versions=(4, LAST), nullable=(4, LAST), default=None, ignorable=True
    )
    client_id: str = field("string", default="")
    client_host: str = field("string", default="")
    member_metadata: bytes = field("bytes", default=b"")
    member_assignment: bytes = field("bytes", default=b"")


@struct
class DescribeGroupsResponseDescribedGroup:
    """One of `DescribeGroupsResponse.groups`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", versions=(6, LAST), nullable=(6, LAST), default=None)
    group_id: str = field("string", default="")
    group_state: str = field("string", default="")
    protocol_type: str = field("string", default="")
    protocol_data: str = field("string", default="")
    members: list[DescribeGroupsResponseDescribedGroupMember] = array(
        DescribeGroupsResponseDescribedGroupMember, factory=list
    )
    authorized_operations: int = field("int32", versions=(3, LAST), default=-2147483648)


@message(key=15, versions=(0, 6), flexible=5, kind="response")
class DescribeGroupsResponse(Message):
    """State and members of each group (DescribeGroups, API 15, v0-6; KIP-345, KIP-430,
    KIP-1043)."""

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    groups: list[DescribeGroupsResponseDescribedGroup] = array(
        DescribeGroupsResponseDescribedGroup, factory=list
    )


@message(key=16, versions=(0, 5), flexible=3, kind="request")
class ListGroupsRequest(Message):
    """Ask for the groups of this node (ListGroups, API 16, v0-5; KIP-518, KIP-848)."""

    states_filter: list[str] = array("string", versions=(4, LAST), factory=list)
    types_filter: list[str] = array("string", versions=(5, LAST), factory=list)


@struct
class ListGroupsResponseListedGroup:
    """One of `ListGroupsResponse.groups`."""

    group_id: str = field("string", default="")
    protocol_type: str = field("string", default="")
    group_state: str = field("string", versions=(4, LAST), default="", ignorable=True)
    group_type: str = field("string", versions=(5, LAST), default="", ignorable=True)


@message(key=16, versions=(0, 5), flexible=3, kind="response")
class ListGroupsResponse(Message):
    """The groups of this node (ListGroups, API 16, v0-5; KIP-518, KIP-848)."""

    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    error_code: int = field("int16", default=0)
    groups: list[ListGroupsResponseListedGroup] = array(ListGroupsResponseListedGroup, factory=list)


@message(key=42, versions=(0, 2), flexible=2, kind="request")
class DeleteGroupsRequest(Message):
    """Delete groups that have no members (DeleteGroups, API 42, v0-2; KIP-229)."""

    groups_names: list[str] = array("string", factory=list)


@struct
class DeleteGroupsResponseDeletableGroupResult:
    """One of `DeleteGroupsResponse.results`."""

    group_id: str = field("string", default="")
    error_code: int = field("int16", default=0)


@message(key=42, versions=(0, 2), flexible=2, kind="response")
class DeleteGroupsResponse(Message):
    """The result for each group (DeleteGroups, API 42, v0-2; KIP-229)."""

    throttle_time_ms: int = field("int32", default=0)
    results: list[DeleteGroupsResponseDeletableGroupResult] = array(
        DeleteGroupsResponseDeletableGroupResult, factory=list
    )
