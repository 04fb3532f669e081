"""The answer that a request must get, worked out from the protocol's rules alone (Kafka's order of checks;
KIP-345, 389, 394). It reads the members of a group, and none of the machine's own judgements about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.states import GroupState
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)

if TYPE_CHECKING:
    from tests.simulation.world import Call

STORE_FULL = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_FIRST_WITH_PENDING = 4
_FIRST_BATCHED_LEAVE = 3
_FIRST_WITH_GROUP_ID_NOT_FOUND = 9
_LONGEST_STRING_BYTES = 32_767
"""A longer one is in no record."""
_GIVEN_UP_CHARS = 8_191
"""A string longer than this may not fit into a record."""


def holder_of(group: Group | None, instance_id: str | None) -> str:
    """The member that has a group instance id; "" if none has."""
    if group is None or instance_id is None:
        return ""
    return next((one for one, m in group.members.items() if m.group_instance_id == instance_id), "")


def member_code(group: Group, member_id: str, instance_id: str | None) -> int:
    """The code for the member that asks: 0, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    if instance_id is not None:
        holder = holder_of(group, instance_id)
        if not holder:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        if holder != member_id:
            return int(ErrorCode.FENCED_INSTANCE_ID)
    return 0 if member_id in group.members else int(ErrorCode.UNKNOWN_MEMBER_ID)


def expected(call: Call, group: Group | None, settings: GroupSettings, full: bool) -> int | list[int] | None:
    """The error code of the answer, 0 for a request that is accepted; of LeaveGroup one for each member.
    None: this cannot be said in advance. `full`: the store is."""
    request, version = call.request, call.api_version
    if isinstance(request, HeartbeatRequest):
        return _heartbeat(request, group)
    if isinstance(request, SyncGroupRequest):
        return _sync(request, group, full)
    if isinstance(request, LeaveGroupRequest):
        return STORE_FULL if full and request.group_id else _leave(request, version, group)
    if isinstance(request, OffsetCommitRequest):
        return _commit(request, version, group) or (STORE_FULL if full else 0)
    if isinstance(request, TxnOffsetCommitRequest):
        return _txn_commit(request, group) or (STORE_FULL if full else 0)
    if isinstance(request, JoinGroupRequest):
        return _join(request, call, group, settings, full)
    return None


def _heartbeat(request: HeartbeatRequest, group: Group | None) -> int:
    if not request.group_id:
        return int(ErrorCode.INVALID_GROUP_ID)
    if group is None:
        return int(ErrorCode.UNKNOWN_MEMBER_ID)
    code = member_code(group, request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return int(ErrorCode.ILLEGAL_GENERATION)
    return int(ErrorCode.REBALANCE_IN_PROGRESS) if group.state is GroupState.PREPARING else 0


def _sync(request: SyncGroupRequest, group: Group | None, full: bool) -> int:
    if not request.group_id:
        return int(ErrorCode.INVALID_GROUP_ID)
    if group is None or group.state is GroupState.EMPTY:
        return int(ErrorCode.UNKNOWN_MEMBER_ID)
    code = member_code(group, request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return int(ErrorCode.ILLEGAL_GENERATION)
    for reported, known in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol),
    ):
        if reported is not None and known is not None and reported != known:
            return int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is GroupState.PREPARING:
        return int(ErrorCode.REBALANCE_IN_PROGRESS)
    return STORE_FULL if full and group.state is GroupState.COMPLETING else 0


def _leave(request: LeaveGroupRequest, version: int, group: Group | None) -> list[int] | None:
    if not request.group_id:
        return None
    if version < _FIRST_BATCHED_LEAVE:
        named: list[tuple[str, str | None]] = [(request.member_id, None)]
    else:
        named = [(one.member_id, one.group_instance_id) for one in request.members]
    if len(set(named)) < len(named):
        return None  # what comes first decides about what comes later
    codes = []
    for member_id, instance_id in named:
        if group is None:
            codes.append(int(ErrorCode.UNKNOWN_MEMBER_ID))
            continue
        if not member_id and instance_id is not None:
            member_id = holder_of(group, instance_id)
        if member_id in group.given_out:
            codes.append(0)
        else:
            codes.append(member_code(group, member_id, instance_id))
    return codes


def _commit(request: OffsetCommitRequest, version: int, group: Group | None) -> int:
    generation = request.generation_id_or_member_epoch
    if group is None or group.is_absent:
        if generation < 0:
            return 0
        missing = version >= _FIRST_WITH_GROUP_ID_NOT_FOUND
        return int(ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.ILLEGAL_GENERATION)
    if generation < 0 and group.state is GroupState.EMPTY:
        return 0
    code = member_code(group, request.member_id, request.group_instance_id)
    if code:
        return code
    if generation != group.generation:
        return int(ErrorCode.ILLEGAL_GENERATION)
    return int(ErrorCode.REBALANCE_IN_PROGRESS) if group.state is GroupState.COMPLETING else 0


def _txn_commit(request: TxnOffsetCommitRequest, group: Group | None) -> int:
    generation = request.generation_id_or_member_epoch
    if group is None or group.is_absent:
        return 0 if generation < 0 else int(ErrorCode.ILLEGAL_GENERATION)
    if generation < 0 and (
        group.state is GroupState.EMPTY or not (request.member_id or request.group_instance_id)
    ):
        return 0
    code = member_code(group, request.member_id, request.group_instance_id)
    if code:
        return code
    return 0 if generation == group.generation else int(ErrorCode.ILLEGAL_GENERATION)


def _join(
    request: JoinGroupRequest, call: Call, group: Group | None, settings: GroupSettings, full: bool
) -> int | None:
    version = call.api_version
    if not request.group_id:
        return int(ErrorCode.INVALID_GROUP_ID)
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return int(ErrorCode.INVALID_SESSION_TIMEOUT)
    if len((call.client_id or "").encode()) > _LONGEST_STRING_BYTES:
        return int(ErrorCode.POLICY_VIOLATION)
    offer = {one.name: one.metadata for one in request.protocols}
    texts = [request.protocol_type, request.group_instance_id or "", call.client_id or "", *offer]
    size = sum(len(name) + len(metadata) for name, metadata in offer.items())
    if max(map(len, texts)) > _GIVEN_UP_CHARS or size > settings.member_max_metadata_bytes // 2:
        return None
    member_id, instance_id = request.member_id, request.group_instance_id
    if group is None or group.is_absent:
        if member_id:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        group = Group(request.group_id)
    if full:
        return STORE_FULL
    holder = holder_of(group, instance_id)
    comes_back = not member_id and bool(holder)
    if not _has_room(group, holder if comes_back else member_id, settings):
        return int(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not _is_supported(group, request.protocol_type, offer):
        return int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if comes_back:
        return 0
    if not member_id:
        if version < _FIRST_WITH_PENDING or instance_id is not None:
            return 0
        full = len(group.given_out) >= settings.group_max_pending_members
        return int(ErrorCode.GROUP_MAX_SIZE_REACHED if full else ErrorCode.MEMBER_ID_REQUIRED)
    if member_id in group.given_out:
        return 0 if instance_id is None else int(ErrorCode.UNKNOWN_SERVER_ERROR)
    return member_code(group, member_id, instance_id)


def _has_room(group: Group, member_id: str, settings: GroupSettings) -> bool:
    most = settings.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING:
        waiting = sum(one.awaiting_join for one in group.members.values())
        away = sum(
            one.group_instance_id is not None for one in group.members.values() if not one.awaiting_join
        )
        if member is not None:
            return member.awaiting_join or waiting < most
        return waiting + away < most  # who is away keeps its place
    return member is not None or len(group.members) < most


def _is_supported(group: Group, protocol_type: str, offer: dict[str, bytes]) -> bool:
    if group.state is GroupState.EMPTY:
        return bool(protocol_type) and bool(offer)
    if protocol_type != group.protocol_type:
        return False
    return any(
        all(any(name == own for own, _ in m.protocols) for m in group.members.values()) for name in offer
    )
