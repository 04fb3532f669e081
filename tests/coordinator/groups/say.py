"""Answers and records in few words, for scenario files."""

from __future__ import annotations

from typing import Any

from ringleader.coordinator.groups import records
from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import (
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsResponseDescribedGroup,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponseListedGroup,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponseGroup,
    SyncGroupResponse,
    TxnOffsetCommitResponse,
)


def say(response: Any, version: int) -> str:
    """One answer."""
    return str(_SAY[type(response)](response, version))


def _text(raw: bytes) -> str:
    """Assignments of scripts are text; everything else shows as its length."""
    return raw.decode() if raw.isascii() and raw.decode().isprintable() and raw else f"{len(raw)} bytes"


def _join(response: JoinGroupResponse, version: int) -> str:
    if response.error_code:
        text = f"{error_name(response.error_code)} id={response.member_id or '-'}"
        return text if response.protocol_type is None else f"{text} type={response.protocol_type}"
    members = ""
    if response.members:
        members = " members=" + ",".join(member.member_id for member in response.members)
    if response.skip_assignment:
        members += " skip assignment"
    return (
        f"ok generation={response.generation_id} type={response.protocol_type}"
        f" protocol={response.protocol_name} leader={response.leader} id={response.member_id}{members}"
    )


def _sync(response: SyncGroupResponse, version: int) -> str:
    if response.error_code:
        return error_name(response.error_code)
    return f"ok {response.protocol_type}/{response.protocol_name} assignment={_text(response.assignment)}"


def _heartbeat(response: HeartbeatResponse, version: int) -> str:
    return error_name(response.error_code) if response.error_code else "ok"


def _leave(response: LeaveGroupResponse, version: int) -> str:
    top = error_name(response.error_code) if response.error_code else "ok"
    each = [f"{one.member_id or '-'}:{error_name(one.error_code)}" for one in response.members]
    return " ".join([top, *each]) if version >= 3 else top


def _commit(
    response: OffsetCommitResponse | TxnOffsetCommitResponse | OffsetDeleteResponse, version: int
) -> str:
    return " ".join(
        f"{topic.name}/{one.partition_index}:{error_name(one.error_code)}"
        for topic in response.topics
        for one in topic.partitions
    )


def _fetch(group: OffsetFetchResponseGroup, version: int) -> str:
    if group.error_code:
        return error_name(group.error_code)
    each = [
        f"{topic.name}/{one.partition_index}@{one.committed_offset}"
        + (f" epoch={one.committed_leader_epoch}" if one.committed_leader_epoch >= 0 else "")
        + (f" {one.metadata!r}" if one.metadata else "")
        + (f" {error_name(one.error_code)}" if one.error_code else "")
        for topic in group.topics
        for one in topic.partitions
    ]
    return " ".join(each) or "nothing"


def _offset_delete(response: OffsetDeleteResponse, version: int) -> str:
    if response.error_code:
        return error_name(response.error_code)
    return _commit(response, version)


def _describe(group: DescribeGroupsResponseDescribedGroup, version: int) -> str:
    if group.error_code:
        return error_name(group.error_code)
    members = "".join(
        f" | {m.member_id} client={m.client_id}{m.client_host}"
        f" metadata={len(m.member_metadata)} bytes assignment={_text(m.member_assignment)}"
        for m in group.members
    )
    return f"{group.group_state} type={group.protocol_type!r} protocol={group.protocol_data!r}{members}"


def _listed(group: ListGroupsResponseListedGroup, version: int) -> str:
    return f"{group.group_id}({group.protocol_type or '-'},{group.group_state})"


def _deleted(result: DeleteGroupsResponseDeletableGroupResult, version: int) -> str:
    return error_name(result.error_code) if result.error_code else "ok"


def _list(groups: list[ListGroupsResponseListedGroup], version: int) -> str:
    return " ".join(_listed(one, version) for one in groups) or "nothing"


def _code(error: int, version: int) -> str:
    return error_name(error)


_SAY: dict[type, Any] = {
    int: _code,
    list: _list,
    JoinGroupResponse: _join,
    SyncGroupResponse: _sync,
    HeartbeatResponse: _heartbeat,
    LeaveGroupResponse: _leave,
    OffsetCommitResponse: _commit,
    OffsetFetchResponseGroup: _fetch,
    TxnOffsetCommitResponse: _commit,
    OffsetDeleteResponse: _offset_delete,
    DescribeGroupsResponseDescribedGroup: _describe,
    DeleteGroupsResponseDeletableGroupResult: _deleted,
}


def say_record(key: bytes, value: bytes) -> str:
    """One record of the log."""
    decoded = records.decode_key(key)
    if decoded is None:
        return f"unknown {key.hex()}"
    kind, group_id, topic, partition, producer_id = decoded
    if kind == records.OFFSET:
        offset = records.decode_offset_value(value)
        return f"offset {group_id} {topic}/{partition}@{offset.offset}"
    if kind == records.UNCOMMITTED_OFFSET:
        offset = records.decode_offset_value(value)
        return f"pending {group_id} {topic}/{partition}@{offset.offset} of producer {producer_id}"
    if kind == records.UNCOMMITTED_LATER:
        return f"later {group_id} {topic}/{partition} of producer {producer_id}"
    if kind == records.GROUP:
        group = records.decode_group_value(value)
        members = " ".join(f"{m.member_id}={_text(m.assignment)}" for m in group.members)
        return (
            f"group {group_id} type={group.protocol_type!r} generation={group.generation}"
            f" protocol={group.protocol} leader={group.leader} members=[{members}]"
        )
    return f"reserved {group_id} {records.decode_reserved_value(value)}"
