"""An assignment that ends: given up when asked, or lost without asking; and the end of the membership."""

from __future__ import annotations

import logging

from ringleader.clients.errors import MembershipError
from ringleader.clients.group.machine.actions import CancelRevoked, Over, TellLost, TellRevoked
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.machine.state import MemberState
from ringleader.clients.model import Assigned, Lost, Revoked


def revoke(state: MemberState, reason: str, hold_until_ms: int, now_ms: int, moving: bytes = b"") -> None:
    """Ask the user to give up the assignment, or only the part of it that moves to another member."""
    held, bound_ms = state.held, state.settings.quiesce_timeout_ms
    assert held is not None
    state.enter(Phase.REVOKING)
    state.round += 1
    if bound_ms is not None:
        hold_until_ms = min(hold_until_ms, now_ms + bound_ms)
    state.hold_until_ms = hold_until_ms
    state.counters.revoking_ms = now_ms
    state.join_reason = reason
    state.moving = moving
    # Work that does not end leaves on_revoked a quarter of the time, so that it is called in any case: also
    # where other work holds the event loop up for a while.
    work_until_ms = hold_until_ms - min(1_000, max(0, hold_until_ms - now_ms) // 4)
    part = "a part of " if moving else ""
    state.say(logging.INFO, f"giving up {part}generation {held.generation}: {reason}")
    revoked = Revoked(held.generation, held.member_id, moving or held.assignment, reason, bool(moving))
    state.actions.append(TellRevoked(state.round, revoked, work_until_ms))


def lose(state: MemberState, reason: str, now_ms: int) -> None:
    """The assignment, if there is one, is gone without asking."""
    held, state.held = state.held, None
    state.moving = b""
    state.counters.assigned_ms = None
    state.counters.revoked(now_ms)
    if held is not None:
        state.counters.times_lost += 1
        if state.phase is Phase.REVOKING:
            state.actions.append(CancelRevoked(state.round))
        state.say(logging.WARNING, f"lost generation {held.generation}: {reason}")
        state.actions.append(TellLost(Lost(held.generation, held.member_id, held.assignment, reason)))
    state.rules.lost()


def give_up_late(state: MemberState, now_ms: int) -> None:
    """`on_revoked` did not end in time: what it was to give up is lost."""
    why, held, moving = "on_revoked did not end in time: going on without it", state.held, state.moving
    if held is None or not moving:
        lose(state, why, now_ms)
        return
    state.actions.append(CancelRevoked(state.round))
    lose_part(state, held, moving, why)


def lose_part(state: MemberState, held: Assigned, lost: bytes, why: str) -> None:
    """This part of the assignment is gone without asking."""
    state.counters.times_lost += 1
    shrink(state)
    state.say(logging.WARNING, f"lost a part of generation {held.generation}: {why}")
    state.actions.append(TellLost(Lost(held.generation, held.member_id, lost, why, partial=True)))


def shrink(state: MemberState) -> None:
    """A part of the assignment is gone: a commit that was asked for before may not outlast this
    generation."""
    state.kept_since = state.generation
    state.shrinks += 1


def end(state: MemberState, error: MembershipError, now_ms: int) -> None:
    """End the membership with an error that no retry cures."""
    state.error = error
    lose(state, str(error), now_ms)
    over(state)


def over(state: MemberState) -> None:
    """End the membership."""
    state.link.forget_all()
    state.held = None
    state.generation = -1
    state.counters.assigned_ms = None
    if state.error is None:
        state.enter(Phase.LEFT)
        state.say(logging.INFO, f"left: {state.leave_reason}")
    else:
        state.enter(Phase.FAILED)
        state.say(logging.ERROR, f"the membership is over: {state.error}")
    state.actions.append(Over(state.error))
