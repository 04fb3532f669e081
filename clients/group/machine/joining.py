"""How a member comes to join, first and again, in both group protocols."""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.clients.errors import (
    AssignmentFailedError,
    ClientError,
    MembershipError,
    MembershipUnsupportedError,
)
from ringleader.clients.group.machine.actions import PrepareJoin
from ringleader.clients.group.machine.leaving import leave_failed, parted, start_leaving
from ringleader.clients.group.machine.link import Pending
from ringleader.clients.group.machine.phases import OVER, Phase
from ringleader.clients.group.machine.state import MemberState
from ringleader.protocol.errors import ErrorCode, error_name

COORDINATOR_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
FOLLOW_UP_MS = 10
"""A cooperative rebalance is often followed by another one, in which others get what was given up, and until
then it has no owner: a member asks soon after the first, and then after twice as long each time, up to its
heartbeat interval."""
IMMEDIATE_REJOINS = 3
"""How often in a row a rejected join or sync is repeated at once; after that with backoff."""


def prepare(state: MemberState, now_ms: int) -> None:
    """Let the driver do what has to be done before the join, for no longer than the rebalance leaves."""
    allowed_ms = now_ms + state.settings.request_timeout_ms
    until_ms = allowed_ms if state.join_until_ms is None else min(allowed_ms, state.join_until_ms)
    if until_ms <= now_ms:
        state.rules.join(now_ms)
        return
    state.enter(Phase.PREPARING)
    state.preparation += 1
    state.prepare_until_ms = until_ms
    state.actions.append(PrepareJoin(state.preparation, until_ms))


def prepared(state: MemberState) -> None:
    """The preparation has ended, or its time is over: join."""
    state.prepared = True
    state.enter(Phase.UNJOINED)


def begin_join(state: MemberState, now_ms: int) -> None:
    """The request that joins is about to be sent."""
    state.enter(Phase.JOINING)
    state.join_until_ms = None
    state.rejoin_reason = None
    state.counters.rebalancing(now_ms)


def to_join(state: MemberState, reason: str, now_ms: int) -> None:
    """Join again; a member that is to leave leaves instead."""
    if state.phase is Phase.LEAVING and not state.member_id:
        parted(state, now_ms)
    if state.phase in OVER or state.phase is Phase.LEAVING:
        return
    if state.leave_reason is not None:
        start_leaving(state, now_ms)
        return
    state.round += 1
    state.link.forget(state.rules.names.join, "SyncGroup", state.rules.names.heartbeat)
    state.enter(Phase.UNJOINED)
    state.prepared = False
    state.join_reason = reason


def computed(state: MemberState, round_: int, assignments: Mapping[str, bytes], now_ms: int) -> None:
    """The leader's assignment of that round is computed. Members without an entry get zero bytes."""
    election = state.election
    if state.phase is not Phase.ASSIGNING or round_ != state.round or election is None:
        return
    strangers = sorted(set(assignments) - set(election.members))
    if strangers:
        compute_failed(state, round_, ValueError(f"assign named unknown member ids: {strangers}"), now_ms)
        return
    election.assignments = assignments
    state.enter(Phase.SYNCING)


def compute_failed(state: MemberState, round_: int, error: BaseException, now_ms: int) -> None:
    """The computation of that round raised this: the membership ends, so that another member may lead."""
    if state.phase is Phase.ASSIGNING and round_ == state.round:
        failure = AssignmentFailedError(f"{state.group}: assign failed: {error!r}")
        leave_failed(state, failure, error, "its assign callback failed", now_ms)


def join_again(state: MemberState, reason: str, now_ms: int) -> None:
    """Join again at once, unless the coordinator keeps rejecting this member."""
    state.refusals += 1
    if state.refusals > IMMEDIATE_REJOINS:
        state.link.retry_later(reason, now_ms)
    to_join(state, reason, now_ms)


def coordinator_moved(state: MemberState, code: int, pending: Pending, now_ms: int) -> bool:
    """Whether that answer says that its sender is no coordinator; the request is repeated at the next one."""
    if code not in COORDINATOR_MOVED:
        return False
    why = f"{pending.name} was answered {error_name(code)}"
    state.link.lost(why, pending.found, now_ms)
    state.rules.repeat(pending.name, why, now_ms)
    return True


def concerns(state: MemberState, identity: tuple[int, str]) -> bool:
    """Whether an error that was sent to that identity is about the present membership."""
    return identity == state.identity and state.phase not in OVER


def impossible(state: MemberState, name: str, error: ClientError) -> MembershipError:
    """The error of a member whose request cannot be sent: no common version, not expressible in it, not
    authenticated."""
    kind = type(error) if isinstance(error, MembershipError) else MembershipUnsupportedError
    return kind(f"{state.group}: {name} is not possible: {error}", error.code)
