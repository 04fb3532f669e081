"""Static members (KIP-345): one that comes back without its member id takes its own place.

The new member id is in the group's record before a client learns of it, in whatever state the group is; from
then on the old one is fenced, restarts included. (Kafka stores it only for a stable group, so that after a
crash in mid-rebalance the old process may be let in again.) That holds for a member that has gone since the
last sync as well: the record still knows it.
"""

from __future__ import annotations

from dataclasses import replace as replaced

from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.memory import member_bytes
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.groups.vote import Protocols
from ringleader.coordinator.journal.entries import Cause, IncidentKind
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    GroupMetadataValue,
    JoinGroupRequest,
    JoinGroupResponse,
)
from ringleader.protocol.refusals import join_refusal

FIRST_WITH_SKIP_ASSIGNMENT = 9


def take_over(
    core: Core,
    group: Group,
    request: JoinGroupRequest,
    protocols: Protocols,
    fresh: str,
    members_bytes: int,
    now_ms: int,
) -> int:
    """Put the member id `fresh` where the group's record has another one for the request's instance id.
    `members_bytes`: what the group's members count more then. An error code: the record or the groups' memory
    would be too large, and nothing has changed."""
    found = _rewritten(group.synced, request, protocols, fresh)
    more_bytes = 0 if found is None else found[1]
    if not core.has_memory(group, request.member_id, now_ms, members=members_bytes, record=more_bytes):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if found is None:
        return ErrorCode.NONE
    if group.record_bytes + more_bytes > core.settings.group_max_record_bytes:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    core.replace_member(group, found[0], more_bytes, found[2], fresh)
    return ErrorCode.NONE


def _rewritten(
    value: GroupMetadataValue | None, request: JoinGroupRequest, protocols: Protocols, fresh: str
) -> tuple[GroupMetadataValue, int, str] | None:
    """And how many bytes longer its record is, and whose place it is. None if the record does not know this
    instance id."""
    for number, one in enumerate(() if value is None else value.members):
        if value is None or one.group_instance_id != request.group_instance_id:
            continue
        subscription = dict(protocols).get(value.protocol or "", one.subscription)
        members = list(value.members)
        members[number] = replaced(
            one,
            member_id=fresh,
            session_timeout=request.session_timeout_ms,
            rebalance_timeout=request.rebalance_timeout_ms,
            subscription=subscription,
        )
        led = value.leader == one.member_id
        id_bytes = len(fresh.encode()) - len(one.member_id.encode())
        more_bytes = id_bytes * (2 if led else 1) + len(subscription) - len(one.subscription)
        leader = fresh if led else value.leader
        return replaced(value, leader=leader, members=members), more_bytes, one.member_id
    return None


def refusal(group: Group, version: int, error: int) -> JoinGroupResponse:
    """The refusal of `take_over`. As in Kafka, the refusal says in which generation the group is."""
    refused = join_refusal(version, int(error), "")
    refused.generation_id = group.generation
    refused.protocol_type = group.protocol_type
    refused.protocol_name = group.protocol or refused.protocol_name
    return refused


def replace(
    core: Core,
    rebalances: Rebalances,
    group: Group,
    request: JoinGroupRequest,
    protocols: Protocols,
    ticket: Ticket,
    fresh: str,
    now_ms: int,
) -> JoinGroupResponse | None:
    """A JoinGroup without a member id of an instance id that is a member: `fresh` takes its place. The
    answer; None while it waits for the join phase."""
    instance_id = request.group_instance_id or ""
    old_id = group.static_members[instance_id]
    member = group.members[old_id]
    held = member_bytes(fresh, instance_id, member.client_id, protocols) - member.held_bytes
    error = take_over(core, group, request, protocols, fresh, held, now_ms)
    if error:
        return refusal(group, ticket.api_version, error)
    core.begin_change()
    # A request that waits under the old member id is answered that there is a newer one.
    rebalances.refuse_parked(group, member, int(ErrorCode.FENCED_INSTANCE_ID), old_id)
    leader_before = group.leader or ""
    core.reports.finish_rebalance(group, now_ms)
    last_heard_ms = core.unix_time.now_ms(member.seen_ms(now_ms))
    group.rename(member, fresh)
    if group.progress is not None:
        group.progress.rename(old_id, fresh)
    member.principal = ticket.principal
    unchanged = member.protocols == protocols
    group.update(member, protocols, request.session_timeout_ms, request.rebalance_timeout_ms)
    core.arm_session(member, now_ms)
    elects_anew = not unchanged and group.elect_protocol() != group.protocol
    if group.state is not GroupState.STABLE or elects_anew:
        rebalances.park_join(group, member, ticket, now_ms)
        rebalances.start(group, Cause.STATIC_MEMBER_REPLACED, fresh, request.reason or "", now_ms)
        if group.progress is not None:
            group.progress.last_heard_ms[fresh] = last_heard_ms
        return None
    if not unchanged:
        group.subscribed = group.compute_subscribed()
    text = f"static member {instance_id!r} is back, in place of {old_id!r}: no rebalance"
    core.reports.notice(group, fresh, text, now_ms)
    core.reports.incident(
        group.group_id,
        IncidentKind.STATIC_RETURNED,
        ticket,
        now_ms,
        member_id=fresh,
        old_member_id=old_id,
        group_instance_id=instance_id,
        last_heard_ms=last_heard_ms,
    )
    return _no_rebalance(rebalances, group, member, leader_before, ticket.api_version)


def _no_rebalance(
    rebalances: Rebalances, group: Group, member: Member, leader_before: str, version: int
) -> JoinGroupResponse:
    """The present generation. A leader gets it from v9 on (KIP-814), with the flag not to assign; an older
    one gets the leader's former id, so that it takes itself for a follower."""
    success = rebalances.join_success(group, member, [], version)
    if version < FIRST_WITH_SKIP_ASSIGNMENT:
        success.leader = leader_before
    elif group.leader == member.member_id:
        success.members = rebalances.member_list(group)
        success.skip_assignment = True
    return success
