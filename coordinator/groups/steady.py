"""The hot path of ConsumerGroupHeartbeat: a member of a group at rest says that it is there, and no more.

`stay` takes it only where `ConsumerHandler.heartbeat` would do nothing but begin the member's session afresh,
and would answer as it did the last time; everything else goes there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import ConsumerMember, MemberState
from ringleader.coordinator.consumer_groups.requests import is_plain
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.rates import INTERVAL_MS, WEIGHTED
from ringleader.coordinator.groups.states import NOT_YET
from ringleader.coordinator.groups.targets import is_due
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_STABLE: Final = MemberState.STABLE


class Last(NamedTuple):
    """A plain heartbeat besides its member and epoch, with what is known of its connection; and the one
    thing in its answer that may change: when the next one is due."""

    instance_id: str | None
    client_id: str
    client_host: str
    interval_ms: int


def last_of(
    request: ConsumerGroupHeartbeatRequest,
    response: ConsumerGroupHeartbeatResponse,
    client_id: str | None,
    client_host: str,
) -> Last | None:
    """The part of a heartbeat to remember; None: there is news in it, or in its answer."""
    if response.error_code or response.assignment is not None or response.leader_task is not None:
        return None
    if response.member_epoch != request.member_epoch or not is_plain(request):
        return None
    return Last(request.instance_id, client_id or "", client_host, response.heartbeat_interval_ms)


def stay(
    core: Core, group_id: str, epoch: int, member_id: str, last: tuple[str | None, str, str, int], now_ms: int
) -> int:
    """0 if the member's heartbeat is answered as the last one: its session has begun afresh. Else `NOT_YET`:
    `handle` the request. `last`: a `Last`, or what is in it, as a plain tuple is taken apart faster."""
    instance_id, client_id, client_host, interval_ms = last
    group = core.groups.get(group_id)
    if group is None or (consumer := group.consumer) is None:
        return NOT_YET
    member = consumer.members.get(member_id)
    if member is None or (instance_id is not None and consumer.static_members.get(instance_id) != member_id):
        return NOT_YET
    current, described = member.current, member.subscription
    if (
        current.epoch != epoch
        or (
            (epoch != consumer.assignment_epoch or group.position > core.out.durable)
            and not is_put_off(core, group, consumer, member)
        )
        or current.state is not _STABLE
        or described.client_host != client_host
        or described.client_id != client_id
        or described.classic is not None
        or not is_calm(core, group, consumer, now_ms)
    ):
        return NOT_YET
    timers = group.consumer_deadlines.get(member_id)
    session_ms, configured_ms = core.beats(group_id)
    if timers is None or configured_ms != interval_ms:
        return NOT_YET
    session, due_ms = timers.session, now_ms + session_ms
    if session.due_ms > due_ms:  # the session is shorter than before, or does not run
        return NOT_YET
    session.due_ms = due_ms
    return 0


def is_put_off(core: Core, group: Group, consumer: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the member is to come into the next epoch, with the partitions that it has, when the target is
    in the log (see `ConsumerHandler.reconcile`): until then it goes on as it did."""
    if member.current.epoch == consumer.assignment_epoch:
        return False
    return group.moved_before_target <= core.out.durable < group.target_position and consumer.keeps(member)


def is_calm(core: Core, group: Group, consumer: ConsumerGroup, now_ms: int) -> bool:
    """Whether a member that says only that it is there, as the one that it was, makes nothing begin in its
    group: it has its session afresh, and takes its own step towards the target if there is one."""
    topics = core.topics
    if (
        consumer.checked_version != topics.version
        or not topics.complete
        or consumer.readers  # their expressions are looked at
        or (
            consumer.assignment_epoch != consumer.epoch
            and (group.computing is not None or is_due(core, consumer, now_ms))
        )
        or (group.looked_ms >= 0 and now_ms - group.looked_ms >= INTERVAL_MS)
    ):
        return False
    # One that left may have made `weighted` the assignor of the others: their offsets are looked at then.
    maybe = group.looked_ms < 0 and (consumer.assignors or core.default_assignor == WEIGHTED)
    return not (maybe and core.assignor(consumer) == WEIGHTED)
