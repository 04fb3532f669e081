"""The member as a machine: answers, time and the user's wishes in; requests, callbacks and log lines out.

It knows no socket, clock, thread or randomness of its own, so that members and a coordinator run together
on a simulated clock. How a driver runs it:

- After every call: `drain()` and do each action, in order. One timer for `next_deadline()`, then `tick`.
- `Send`: the answer goes to `answer`, a transport error to `fail`, a request that cannot be made at all to
  `refuse`, each with the ticket. Old tickets are harmless.
- Callbacks run one after the other, in the order in which they came out. The end of `TellRevoked` and
  `ComputeAssignment` is reported (`revoked`, `computed`, `compute_failed`) with their round; that of
  `ComputeTarget` with the action (`delegated`).
- If `state.prepares` is set, `PrepareJoin` comes before each join; its end is reported (`prepared`).
- `polled` reports the application's progress; `state.poll.polled` does so from another thread, and is enough
  unless the member is out of the group for lack of it (`state.rest_reason`).

The machine holds a `MemberState`, which anybody may read; `Classic` and `ConsumerProtocol` are the rules of
the two group protocols.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ringleader.clients.connection.requests import find_coordinator, found_coordinator
from ringleader.clients.errors import ClientError, MembershipError, fatal_error, is_retriable
from ringleader.clients.group.machine import joining, leaving
from ringleader.clients.group.machine.actions import Action, ComputeTarget
from ringleader.clients.group.machine.holding import end, give_up_late
from ringleader.clients.group.machine.link import Pending
from ringleader.clients.group.machine.phases import ASLEEP, OVER, Phase
from ringleader.clients.group.machine.state import Identity, MemberState
from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequestComputedTarget

FIND = "FindCoordinator"


class MemberMachine:
    """One member of one group, see the module for how it is driven. Runs the state that `classic` or
    `consumer_protocol` has made."""

    def __init__(self, state: MemberState) -> None:
        self.state = state

    # ---- what the user wants ----

    def start(self, now_ms: int) -> None:
        """Join the group."""
        state = self.state
        if state.phase is not Phase.NEW:
            raise MembershipError(f"{state.group}: this member was started before")
        state.enter(Phase.UNJOINED)
        state.contact_ms = state.link.not_before_ms = now_ms
        self._advance(now_ms)

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Make the group rebalance, for example because this member's metadata has changed: at once when
        stable, else after the rebalance under way."""
        if self.state.phase not in OVER and self.state.leave_reason is None:
            self.state.rejoin_reason = reason
            self._advance(now_ms)

    def leave(self, reason: str, now_ms: int, timeout_ms: int = 0, silently: bool = False) -> None:
        """Give up the assignment, then leave, all within `timeout_ms`: see `leaving.leave`."""
        leaving.leave(self.state, reason, now_ms, timeout_ms, silently)
        self._advance(now_ms)

    def polled(self, now_ms: int) -> None:
        """The application makes progress: a member that left for lack of it joins again."""
        self.state.poll.polled(now_ms)
        self._advance(now_ms)

    # ---- the outcome of its actions ----

    def answer(self, ticket: int, response: Any, now_ms: int) -> None:
        """The response to a `Send`."""
        pending = self.state.link.take(ticket)
        if pending is not None:
            pending.handle(response, pending, now_ms)
            self._advance(now_ms)

    def fail(self, ticket: int, why: str, now_ms: int) -> None:
        """No answer to a `Send`: the connection ended, or time ran out. `why` in words."""
        state = self.state
        pending = state.link.take(ticket)
        if pending is None:
            return
        if pending.unanswered is not None:
            pending.unanswered(why, now_ms)
        else:
            state.link.lost(f"{pending.name}: {why}", pending.found, now_ms)
            state.rules.repeat(pending.name, f"{pending.name} got no answer", now_ms)
        self._advance(now_ms)

    def refuse(self, ticket: int, error: ClientError, now_ms: int) -> None:
        """A `Send` cannot be done at all: no common version, not expressible in it, not authenticated."""
        pending = self.state.link.take(ticket)
        if pending is None:
            return
        if pending.optional:
            assert pending.unanswered is not None
            pending.unanswered(str(error), now_ms)
        else:
            end(self.state, self.state.rules.impossible(pending.name, error), now_ms)

    def revoked(self, round_: int, now_ms: int) -> None:
        """`on_revoked` of that round has ended."""
        if self.state.phase is Phase.REVOKING and round_ == self.state.round:
            self.state.rules.given_up(now_ms)
            self._advance(now_ms)

    def prepared(self, number: int, now_ms: int) -> None:
        """The preparation of that number has ended."""
        if self.state.phase is Phase.PREPARING and number == self.state.preparation:
            joining.prepared(self.state)
            self._advance(now_ms)

    def computed(self, round_: int, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """`assign` of that round gave this. Members without an entry get zero bytes."""
        joining.computed(self.state, round_, assignments, now_ms)
        self._advance(now_ms)

    def compute_failed(self, round_: int, error: BaseException, now_ms: int) -> None:
        """`assign` of that round raised this: the membership ends, so that another member may lead."""
        joining.compute_failed(self.state, round_, error, now_ms)
        self._advance(now_ms)

    def delegated(
        self, action: ComputeTarget, answer: ConsumerGroupHeartbeatRequestComputedTarget, now_ms: int
    ) -> None:
        """The answer that a `ComputeTarget` asked for."""
        action.done(answer, now_ms)
        self._advance(now_ms)

    def coordinator_lost(self, why: str, found: int, now_ms: int) -> None:
        """A request outside of this machine found the coordinator gone; `found`: `link.found` then."""
        if self.state.link.lost(why, found, now_ms):
            self._advance(now_ms)

    def offsets_refused(self, name: str, code: int, identity: Identity, now_ms: int) -> None:
        """OffsetCommit, or OffsetFetch, under that identity was answered with this error."""
        self.state.rules.offsets_refused(name, code, identity, now_ms)
        self._advance(now_ms)

    def broke(self, cause: BaseException, now_ms: int) -> None:
        """This library's own code raised `cause`: trying again would raise it again."""
        leaving.broke(self.state, cause, now_ms)
        self._advance(now_ms)

    def fell(self, cause: BaseException) -> None:
        """As `broke`, with nothing more to be done by this machine."""
        leaving.fell(self.state, cause)

    # ---- time ----

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        state = self.state
        if state.phase is Phase.REVOKING and now_ms >= state.hold_until_ms:
            give_up_late(state, now_ms)
            state.rules.given_up(now_ms)
        elif state.phase is Phase.PREPARING and now_ms >= state.prepare_until_ms:
            state.say(logging.WARNING, "joining without waiting for what was to be done before")
            joining.prepared(state)
        elif state.phase is Phase.LEAVING and now_ms >= state.leave_until_ms:
            state.say(logging.WARNING, "leaving without an answer: the session timeout ends the membership")
            leaving.parted(state, now_ms)
        self._advance(now_ms)

    def next_deadline(self) -> int | None:
        """When to call `tick` at the latest; None: nothing to wait for."""
        state, link = self.state, self.state.link
        if state.phase in ASLEEP:
            return None
        times = [state.poll.due_ms(), state.rules.deadline_ms()]
        if state.phase is Phase.REVOKING:
            times.append(state.hold_until_ms)
        elif state.phase is Phase.PREPARING:
            times.append(state.prepare_until_ms)
        elif state.phase is Phase.LEAVING:
            times.append(state.leave_until_ms)
        if link.coordinator is None:
            if not link.waits_for(FIND):
                times.append(link.not_before_ms)
        elif self._may_send_heartbeat():
            times.append(max(state.heartbeat_at_ms, link.not_before_ms))
        elif state.phase is Phase.UNJOINED or self._may_send_leave():
            times.append(link.not_before_ms)
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def drain(self) -> list[Action]:
        """The actions that are due, in order."""
        actions = self.state.actions.copy()
        self.state.actions.clear()
        return actions

    def _advance(self, now_ms: int) -> None:
        """Do what the phase wants and time allows."""
        state = self.state
        leaving.let_poll_clock_run(state, now_ms)
        polled_ms = state.poll.polled_ms  # first: another thread may write it meanwhile
        if state.poll.expired(now_ms):
            leaving.expire(state, polled_ms, now_ms)
        if state.phase is Phase.RESTING:
            leaving.wake(state, now_ms)
        if state.phase in ASLEEP:
            return
        if state.phase is Phase.STABLE and state.rejoin_reason is not None:
            reason, state.rejoin_reason = state.rejoin_reason, None
            state.rules.rebalance(reason, now_ms + state.settings.rebalance_timeout_ms, now_ms)
        self._pursue(now_ms)
        leaving.let_poll_clock_run(state, now_ms)

    def _pursue(self, now_ms: int) -> None:
        state, link = self.state, self.state.link
        waited = now_ms >= link.not_before_ms
        if link.coordinator is None:
            if waited and not link.waits_for(FIND):
                self._find(now_ms)
        elif state.phase is Phase.UNJOINED and waited:
            if state.prepares and not state.prepared:
                joining.prepare(state, now_ms)
            else:
                state.rules.join(now_ms)
        elif waited and self._may_send_leave():
            state.rules.leave(now_ms)
        elif waited and self._may_send_heartbeat() and now_ms >= state.heartbeat_at_ms:
            state.rules.heartbeat(now_ms)
        state.rules.pursue(now_ms)

    def _may_send_heartbeat(self) -> bool:
        state = self.state
        return state.beats and not state.link.waits_for(state.rules.names.heartbeat)

    def _may_send_leave(self) -> bool:
        state = self.state
        wants = state.phase is Phase.LEAVING and bool(state.member_id)
        return wants and not state.link.waits_for(state.rules.names.leave)

    # ---- finding the coordinator ----

    def _find(self, now_ms: int) -> None:
        link, settings = self.state.link, self.state.settings
        self.state.send(
            FIND,
            find_coordinator(settings.group_id),
            self._found,
            now_ms,
            settings.request_timeout_ms,
            lambda why, now_ms: link.retry_later(f"no broker answers: {why}", now_ms),
        )

    def _found(self, response: Any, pending: Pending, now_ms: int) -> None:
        state = self.state
        code, node = found_coordinator(response)
        if node is not None:
            state.link.arrived(node, now_ms)
        elif is_retriable(code):
            state.link.retry_later(f"the cluster names no coordinator ({error_name(code)})", now_ms)
        else:
            end(state, fatal_error(FIND, state.settings.group_id, code), now_ms)
