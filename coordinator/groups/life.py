"""The beginning and the end of a shard's service: groups come back from their records, and go when it
unloads."""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Core, Phase
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.journal import Cause, Outcome
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.replies import join_error, sync_error
from ringleader.coordinator.groups.states import State
from ringleader.protocol.errors import ErrorCode

_NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)


def restore(group: Group, core: Core, rebalances: Rebalances, now_ms: int) -> None:
    """Make the live group of its durable part: in its last synced generation, every session full.

    Joins in progress, given-out member ids and a generation that was not synced are lost, as in Kafka. Other
    than in Kafka the next generation is above every number that may have been used. Raises `MalformedError`.
    """
    group.last_generation = group.floor
    if group.record is None:
        return
    value = records.decode_group_value(group.record)
    group.generation = value.generation
    group.last_generation = max(group.floor, value.generation)
    group.protocol_type = value.protocol_type or None
    if not value.members:
        group.enter(State.EMPTY, value.current_state_timestamp)
        return
    group.protocol = value.protocol
    for one in value.members:
        timeout_ms = one.rebalance_timeout if one.rebalance_timeout >= 0 else one.session_timeout
        member = Member(
            group,
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.session_timeout,
            timeout_ms,
            ((value.protocol or "", one.subscription),),  # only the elected protocol is in the record
        )
        member.assignment = one.assignment
        group.add(member, group.protocol_type or "")
        core.arm_session(member, now_ms)
    if value.leader in group.members:
        group.leader = value.leader
    group.subscribed = group.compute_subscribed()
    group.enter(State.STABLE, value.current_state_timestamp)
    if len(group.members) > core.settings.group_max_size:
        rebalances.start(group, Cause.GROUP_TOO_LARGE, "", "", now_ms)


def unload(core: Core, rebalances: Rebalances, now_ms: int) -> None:
    """Tell everybody who waits that this is no longer their coordinator, and forget everything."""
    core.phase = Phase.UNLOADED
    # What has not been handed out will not be written: whoever takes over must not find it later.
    core.outbox.appends.clear()
    for group in list(core.groups.values()):
        _end(group, core, rebalances, now_ms)
    core.abandon_writes(_NOT_COORDINATOR, now_ms)
    core.forget_everything()


def _end(group: Group, core: Core, rebalances: Rebalances, now_ms: int) -> None:
    core.end_rebalance(group, Outcome.ABANDONED, now_ms)
    for member in group.members.values():
        join_ticket = rebalances.unpark_join(group, member)
        if join_ticket is not None:
            core.answer(join_ticket, join_error(join_ticket.api_version, _NOT_COORDINATOR, member.member_id))
        sync_ticket = rebalances.unpark_sync(member)
        if sync_ticket is not None:
            core.answer(sync_ticket, sync_error(_NOT_COORDINATOR))
    # Before anybody is told: nobody is to begin anything any more.
    group.transition(State.DEAD, core.wall_ms(now_ms))
    blocked, group.blocked = group.blocked, []
    for call in blocked:
        call.refuse(_NOT_COORDINATOR)
    # The first one is in flight, and is decided with everything that is.
    first, queued, group.saves = group.saves[:1], group.saves[1:], []
    for save in queued:
        for done in save.waiting:
            done(_NOT_COORDINATOR, now_ms)
    group.saves = first
