"""How a member leaves its group: for good, or until its application makes progress again."""

from __future__ import annotations

import logging

from ringleader.clients.errors import InternalError, MembershipError
from ringleader.clients.group.machine.holding import lose, over, revoke
from ringleader.clients.group.machine.phases import ASLEEP, OVER, Phase
from ringleader.clients.group.machine.state import MemberState

LEAST_LEAVE_WAIT_MS = 1_000
POLL_EXPIRED = "consumer poll timeout has expired"
"""The Java consumer's words, so that it is found in the journal of any coordinator."""


# ---- for good ----


def leave(state: MemberState, reason: str, now_ms: int, timeout_ms: int, silently: bool) -> None:
    """Give up the assignment, then leave, all within `timeout_ms`. A part of it is kept for the coordinator's
    answer, which has 1 s at least, though the caller may not wait for it, and `leave_timeout_ms` at most.
    Silently: without LeaveGroup, as a static member does that will be back."""
    if state.phase in OVER or state.leave_reason is not None:
        return
    state.leave_reason, state.leave_silently = reason, silently
    state.leave_by_ms = now_ms + max(timeout_ms, LEAST_LEAVE_WAIT_MS)
    hold_ms = timeout_ms - min(LEAST_LEAVE_WAIT_MS, timeout_ms // 4)
    hold_until_ms = now_ms + min(hold_ms, state.settings.rebalance_timeout_ms)
    if state.phase is Phase.REVOKING:
        state.hold_until_ms = min(state.hold_until_ms, hold_until_ms)
    elif state.phase is Phase.RESTING:
        over(state)
    elif state.phase is Phase.LEAVING:  # for lack of progress: now for good
        state.leave_until_ms = min(state.leave_until_ms, answer_by(state, now_ms))
    elif state.held is not None:
        # A parked JoinGroup is not cut off before the work in hand has ended: the coordinator may have
        # counted it, and the group would go on to a generation that this member does not know of.
        if not (state.phase is Phase.JOINING and state.link.waits_for(state.rules.names.join)):
            state.rules.stop_joining()
        revoke(state, f"leaving: {reason}", hold_until_ms, now_ms)
    else:
        start_leaving(state, now_ms)


def broke(state: MemberState, cause: BaseException, now_ms: int) -> None:
    """This library's own code raised `cause`: trying again would raise it again."""
    if state.phase not in OVER:
        leave_failed(state, _internal_error(state, cause), cause, "an internal error", now_ms)


def fell(state: MemberState, cause: BaseException) -> None:
    """End as `broke`, at once: this machine is not run any more."""
    if state.error is None:
        state.error = _internal_error(state, cause)
        state.error.__cause__ = cause
    state.enter(Phase.FAILED)
    state.held = None


def leave_failed(
    state: MemberState, failure: MembershipError, cause: BaseException, reason: str, now_ms: int
) -> None:
    """The membership ends, as it cannot go on without what raised `cause`; others in the group go on."""
    failure.__cause__ = cause
    lose(state, str(failure), now_ms)
    state.error = failure
    state.leave_reason = reason
    start_leaving(state, now_ms)


def start_leaving(state: MemberState, now_ms: int) -> None:
    """Leave, with no assignment in hand."""
    awaits_id = (
        state.phase is Phase.JOINING and not state.member_id and state.link.waits_for(state.rules.names.join)
    )
    if awaits_id and not state.leave_silently:
        # Its answer brings a member id, and the group would wait a whole session for the member with it.
        state.round += 1
        state.enter(Phase.LEAVING)
        state.leave_until_ms = min(answer_by(state, now_ms), now_ms + LEAST_LEAVE_WAIT_MS)
        return
    _leave_now(state, state.leave_silently, now_ms)


def answer_by(state: MemberState, now_ms: int) -> int:
    """How long the answer to the request that leaves is waited for."""
    until_ms = now_ms + state.settings.leave_timeout_ms
    return until_ms if state.leave_by_ms is None else min(until_ms, state.leave_by_ms)


def parted(state: MemberState, now_ms: int) -> None:
    """The member is out of the group: for good, or to rest."""
    if state.rest_reason and state.leave_reason is None:
        _rest(state)
    else:
        over(state)


def _leave_now(state: MemberState, silently: bool, now_ms: int) -> None:
    state.rules.stop_joining()
    state.link.forget(state.rules.names.heartbeat)  # it says nothing more about an assignment
    state.round += 1
    state.enter(Phase.LEAVING)
    state.leave_until_ms = answer_by(state, now_ms)
    if state.rules.leaves_silently(silently):
        parted(state, now_ms)


def _internal_error(state: MemberState, cause: BaseException) -> InternalError:
    return InternalError(f"{state.group}: an error in this library has ended the membership: {cause!r}")


# ---- until the application makes progress ----


def let_poll_clock_run(state: MemberState, now_ms: int) -> None:
    """Count the time without progress while the application has an assignment to work on."""
    working = state.held is not None and state.phase not in (Phase.REVOKING, Phase.LEAVING, *ASLEEP)
    state.poll.let_run(working, now_ms)


def expire(state: MemberState, polled_ms: int | None, now_ms: int) -> None:
    """No progress for the whole interval: the partitions go to others (KIP-62). A static member sends
    nothing, as the Java consumer's does: its session timeout decides (KIP-345)."""
    interval_ms, idle_ms = state.poll.interval_ms or 0, state.poll.idle_ms(now_ms)
    state.rest_polled_ms = polled_ms
    state.rest_reason = (
        f"{POLL_EXPIRED}: no progress for {idle_ms / 1000:.1f} s, "
        f"max_poll_interval_ms is {interval_ms / 1000:g} s"
    )
    state.counters.poll_expirations += 1
    lose(state, state.rest_reason, now_ms)
    state.rejoin_reason = None
    _leave_now(state, state.settings.group_instance_id is not None, now_ms)


def _rest(state: MemberState) -> None:
    state.link.forget_all()
    state.rules.out_of_group()
    state.generation = -1
    state.enter(Phase.RESTING)
    state.say(logging.WARNING, "out of the group: joining again when the application makes progress")


def wake(state: MemberState, now_ms: int) -> None:
    """Join again, if there was progress since the member left."""
    if state.poll.polled_ms == state.rest_polled_ms:
        return
    state.rest_reason = ""
    state.poll.restart(now_ms)
    state.prepared = False
    state.enter(Phase.UNJOINED)
    state.join_reason = "the application makes progress again"
    state.say(logging.INFO, f"joining again: {state.join_reason}")
