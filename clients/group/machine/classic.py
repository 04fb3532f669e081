"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup; a leader assigns.

The reaction to each error code is that of the Java consumer in the classic protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ringleader.clients.errors import (
    ClientError,
    InconsistentGroupProtocolError,
    MembershipError,
    fatal_error,
)
from ringleader.clients.group.machine.actions import ComputeAssignment, Disconnect, TellAssigned
from ringleader.clients.group.machine.classic_requests import (
    describe_group,
    heartbeat,
    join_group,
    leave_group,
    left_group,
    sync_group,
)
from ringleader.clients.group.machine.holding import end, lose, lose_part, revoke, shrink
from ringleader.clients.group.machine.inconsistent import inconsistent
from ringleader.clients.group.machine.joining import (
    COORDINATOR_MOVED,
    FOLLOW_UP_MS,
    IMMEDIATE_REJOINS,
    begin_join,
    concerns,
    coordinator_moved,
    impossible,
    join_again,
    to_join,
)
from ringleader.clients.group.machine.leaving import answer_by, leave_failed, parted, start_leaving
from ringleader.clients.group.machine.link import Pending
from ringleader.clients.group.machine.phases import ENTERING, Phase
from ringleader.clients.group.machine.state import Election, Identity, MemberState, RequestNames, new_state
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol
from ringleader.protocol.errors import ErrorCode, error_name

JOIN, SYNC, HEARTBEAT, LEAVE, DESCRIBE = "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "DescribeGroups"


def classic(
    settings: MemberSettings, protocols: Sequence[MemberProtocol], random: Callable[[], float]
) -> MemberState:
    """A member of the classic protocol. Raises ValueError for protocols that cannot work."""
    state = new_state(settings, protocols, random)
    state.rules = Classic(state)
    return state


class Classic:
    """The rules of the classic protocol, for one member."""

    names: ClassVar[RequestNames] = RequestNames(JOIN, HEARTBEAT, LEAVE)

    def __init__(self, state: MemberState) -> None:
        self._state = state

    # ---- JoinGroup ----

    def join(self, now_ms: int) -> None:
        """Send JoinGroup. Its metadata may fail: it comes from the application."""
        state = self._state
        begin_join(state, now_ms)
        try:
            request = join_group(state.settings, state.protocols, state.member_id, state.join_reason)
        except Exception as error:
            failure = MembershipError(f"{state.group}: metadata callback failed: {error!r}")
            leave_failed(state, failure, error, "its metadata callback failed", now_ms)
            return
        state.send(JOIN, request, self._joined, now_ms, state.settings.parked_timeout_ms)

    def _joined(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, code = self._state, response.error_code
        if state.phase is Phase.LEAVING:
            self._named(response.member_id, now_ms)
        elif code == ErrorCode.NONE and state.phase is Phase.REVOKING:
            self._counted(response, now_ms)
        elif code == ErrorCode.NONE:
            self._elect(response, now_ms)
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            state.member_id, state.generation = response.member_id, -1
            state.enter(Phase.UNJOINED)
            state.refusals += 1
            if state.refusals > IMMEDIATE_REJOINS:
                state.link.retry_later("the coordinator keeps giving out member ids", now_ms)
        elif code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            state.counters.failed_rebalances += 1
            request, timeout_ms = describe_group(state.settings.group_id), state.settings.leave_timeout_ms
            state.send(
                DESCRIBE,
                request,
                lambda response, _pending, now_ms: self._end_inconsistent(response, now_ms),
                now_ms,
                timeout_ms,
                lambda _why, now_ms: self._end_inconsistent(None, now_ms),
                optional=True,
            )
        else:
            self._refused_answer(code, pending, now_ms)

    def _end_inconsistent(self, described: Any | None, now_ms: int) -> None:
        """End a member whose protocols the group did not accept; the error describes the group."""
        state = self._state
        end(state, inconsistent(state.settings, state.protocols, described), now_ms)

    def _named(self, member_id: str, now_ms: int) -> None:
        """The answer to the first join of a member that has begun to leave meanwhile."""
        state = self._state
        state.member_id = member_id
        state.leave_until_ms = answer_by(state, now_ms)
        if not member_id:
            parted(state, now_ms)

    def _counted(self, response: Any, now_ms: int) -> None:
        """A member on its way out is part of the new generation: it belongs to it until its work has
        ended."""
        state = self._state
        state.link.well()
        state.contact(now_ms)
        self._enter_generation(response, now_ms)
        if not state.cooperates(response.protocol_name):
            why = f"the group has gone over to {response.protocol_name}, which does not ask"
            lose(state, why, now_ms)
            start_leaving(state, now_ms)

    def _enter_generation(self, response: Any, now_ms: int) -> None:
        state = self._state
        state.generation, state.member_id = response.generation_id, response.member_id
        state.heartbeat_at_ms = now_ms + state.settings.heartbeat_interval_ms

    def _elect(self, response: Any, now_ms: int) -> None:
        state = self._state
        kind, name = response.protocol_type, response.protocol_name
        offered = {protocol.name for protocol in state.protocols}
        if kind not in (None, state.settings.protocol_type) or name not in offered:
            text = f"the group settled on protocol {name!r} of type {kind!r}, which this member did not offer"
            end(state, InconsistentGroupProtocolError(f"{state.group}: {text}"), now_ms)
            return
        state.link.well()
        state.contact(now_ms)
        self._enter_generation(response, now_ms)
        state.round += 1
        state.election = Election(name, response.leader, [m.member_id for m in response.members])
        if response.leader == response.member_id and not response.skip_assignment:
            state.enter(Phase.ASSIGNING)
            members = [MemberInfo(m.member_id, m.group_instance_id, m.metadata) for m in response.members]
            state.actions.append(ComputeAssignment(state.round, name, members))
        else:
            state.election.members = []
            state.enter(Phase.SYNCING)

    # ---- SyncGroup ----

    def pursue(self, now_ms: int) -> None:
        """Send SyncGroup, when it is time for it."""
        state = self._state
        link = state.link
        if state.phase is not Phase.SYNCING or link.coordinator is None or link.waits_for(SYNC):
            return
        election, settings = state.election, state.settings
        assert election is not None
        assignments = {member: election.assignments.get(member, b"") for member in election.members}
        request = sync_group(settings, state.generation, state.member_id, election.protocol, assignments)
        state.send(SYNC, request, self._synced, now_ms, settings.parked_timeout_ms)

    def deadline_ms(self) -> int | None:
        """SyncGroup never waits for the clock."""
        return None

    def _synced(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, election = self._state, self._state.election
        if response.error_code != ErrorCode.NONE:
            self._refused_answer(response.error_code, pending, now_ms)
            return
        assert election is not None
        kind, name = response.protocol_type, response.protocol_name
        if kind not in (None, state.settings.protocol_type) or name not in (None, election.protocol):
            text = f"SyncGroup speaks of {name!r} of type {kind!r}, JoinGroup of {election.protocol!r}"
            end(state, InconsistentGroupProtocolError(f"{state.group}: {text}"), now_ms)
            return
        state.link.well()
        # The coordinator restarts the session as it hands out the assignment: contact is now, not at sending.
        state.contact(now_ms)
        state.refusals = 0
        state.enter(Phase.STABLE)
        cooperative, interval_ms = state.settings.cooperative, state.settings.heartbeat_interval_ms
        state.heartbeat_after_ms = FOLLOW_UP_MS if cooperative else interval_ms
        self._next_heartbeat(now_ms)
        held = Assigned(
            state.generation, state.member_id, election.leader_id, election.protocol, response.assignment
        )
        before, state.held, state.last_held = state.held, held, held
        if before is None:
            state.kept_since = held.generation
        state.counters.rebalanced(now_ms)
        leads = " as its leader" if held.is_leader else ""
        took_s = (state.counters.last_rebalance_ms or 0) / 1000
        state.say(
            logging.INFO,
            f"in generation {held.generation}{leads} after {took_s:.1f} s, member id {held.member_id}, "
            f"protocol {held.protocol}",
        )
        self._hand_over(before, held, now_ms)

    def _hand_over(self, before: Assigned | None, held: Assigned, now_ms: int) -> None:
        """Report the new assignment, after what is in the one before and not in this one is given up."""
        state, moving = self._state, None
        if state.settings.given_up is not None and before is not None:
            try:
                moving = state.settings.given_up(before.assignment, held.assignment)
            except Exception as error:
                failure = MembershipError(f"{state.group}: given_up callback failed: {error!r}")
                leave_failed(state, failure, error, "its given_up callback failed", now_ms)
                return
        if moving and state.cooperates(held.protocol):
            until_ms = now_ms + state.settings.rebalance_timeout_ms
            revoke(state, "it moves to another member", until_ms, now_ms, moving)
            return
        if moving:
            # An eager leader of another library did not ask: others have these already.
            lose_part(state, held, moving, f"the group has gone over to {held.protocol}, which does not ask")
        state.actions.append(TellAssigned(held))

    def given_up(self, now_ms: int) -> None:
        """Join again, or leave, after a revocation; a member that leaves gives up the rest first."""
        state = self._state
        moved, state.moving = state.moving, b""
        state.counters.revoked(now_ms)
        if not moved:
            state.held = None
            state.counters.assigned_ms = None
        elif state.held is not None:
            shrink(state)
            state.actions.append(TellAssigned(state.held))
            if state.leave_reason is not None:
                revoke(state, f"leaving: {state.leave_reason}", state.hold_until_ms, now_ms)
                return
        to_join(state, state.join_reason, now_ms)

    def lost(self) -> None:
        """A lost assignment leaves nothing else behind."""

    # ---- Heartbeat ----

    def heartbeat(self, now_ms: int) -> None:
        """Send Heartbeat."""
        state = self._state
        request = heartbeat(state.settings, state.generation, state.member_id)
        self._next_heartbeat(now_ms)
        state.send(HEARTBEAT, request, self._beaten, now_ms, state.settings.heartbeat_timeout_ms)

    def _next_heartbeat(self, now_ms: int) -> None:
        state = self._state
        after_ms = min(state.heartbeat_after_ms, state.settings.heartbeat_interval_ms)
        state.heartbeat_at_ms = now_ms + after_ms
        state.heartbeat_after_ms = 2 * after_ms

    def _beaten(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, code = self._state, response.error_code
        if code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._refused_answer(code, pending, now_ms)
            return
        state.link.well()
        state.contact(pending.sent_ms)
        state.counters.beaten(pending.sent_ms, now_ms)
        if code == ErrorCode.NONE:
            return
        # It began after the heartbeat before this one, and the coordinator counts from there.
        began_ms = pending.sent_ms - state.settings.heartbeat_interval_ms
        rebalance_ms = state.settings.rebalance_timeout_ms
        # A rebalance timeout about as short as the heartbeat interval is no reason to revoke without a word.
        until_ms = max(
            began_ms + rebalance_ms - state.settings.hold_margin_ms, pending.sent_ms + rebalance_ms // 4
        )
        if state.phase is Phase.STABLE:
            self.rebalance("the group is rebalancing", until_ms, now_ms)
        elif state.phase is Phase.REVOKING:
            state.hold_until_ms = min(state.hold_until_ms, until_ms)
        elif state.phase is Phase.PREPARING:
            state.prepare_until_ms = min(state.prepare_until_ms, until_ms)

    def rebalance(self, reason: str, hold_until_ms: int, now_ms: int) -> None:
        """Join again; an eager member gives up its assignment first."""
        state = self._state
        state.join_until_ms = hold_until_ms
        if state.held is not None and state.cooperates(state.held.protocol):
            text = f"joining again with generation {state.generation} in hand: {reason}"
            state.say(logging.INFO, text)
            to_join(state, reason, now_ms)
        else:
            revoke(state, reason, hold_until_ms, now_ms)

    # ---- rejections ----

    def _refused_answer(self, code: int, pending: Pending, now_ms: int) -> None:
        if not coordinator_moved(self._state, code, pending, now_ms):
            self._refused(pending.name, code, pending.identity, now_ms)

    def repeat(self, name: str, why: str, now_ms: int) -> None:
        """Join again, or send the next heartbeat, as soon as there is a coordinator."""
        state = self._state
        if name in (JOIN, SYNC):
            state.counters.failed_rebalances += 1
        if name == HEARTBEAT or state.phase is Phase.REVOKING:
            state.heartbeat_at_ms = now_ms
        elif name in (JOIN, SYNC):
            to_join(state, why, now_ms)

    def _refused(self, name: str, code: int, identity: Identity, now_ms: int) -> None:
        """React to an error about the membership, sent to that identity; one of an earlier membership
        changes nothing."""
        state = self._state
        if not concerns(state, identity):
            return
        why = f"{name} was answered {error_name(code)}"
        state.counters.failed_rebalances += name in (JOIN, SYNC)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            lose(state, self._removal(now_ms), now_ms)
            state.member_id, state.generation = "", -1
            join_again(state, why, now_ms)
        elif code == ErrorCode.ILLEGAL_GENERATION:
            text = f"generation {state.generation} is over: the group went on without this member"
            lose(state, text, now_ms)
            state.generation = -1
            join_again(state, why, now_ms)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            if state.phase is Phase.STABLE:
                until_ms = now_ms + state.settings.rebalance_timeout_ms
                self.rebalance("the group is rebalancing", until_ms, now_ms)
            elif state.phase in (Phase.JOINING, Phase.SYNCING):
                join_again(state, why, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if name in (JOIN, SYNC) and state.phase is not Phase.REVOKING:
                to_join(state, why, now_ms)
            state.link.retry_later("the coordinator is loading", now_ms)
        else:
            end(state, fatal_error(name, state.settings.group_id, code), now_ms)

    def _removal(self, now_ms: int) -> str:
        state = self._state
        silent_ms, session_ms = now_ms - state.contact_ms, state.settings.session_timeout_ms
        if silent_ms >= session_ms:
            return f"removed: silent for {silent_ms / 1000:.1f} s, session timeout {session_ms / 1000:g} s"
        return (
            "removed: the coordinator does not know this member id (somebody removed it, it was late for a "
            "rebalance, or the coordinator lost its state)"
        )

    def offsets_refused(self, name: str, code: int, identity: Identity, now_ms: int) -> None:
        """As any other answer, but the group may be a step ahead of this member while it enters: then the
        answers that it waits for bring the news."""
        state = self._state
        entering = state.phase in ENTERING or state.link.waits_for(JOIN)
        if not (entering and code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)):
            self._refused(name, code, identity, now_ms)

    def impossible(self, name: str, error: ClientError) -> MembershipError:
        """The error of a member whose request cannot be sent."""
        return impossible(self._state, name, error)

    def fetches_offsets_as(self) -> Identity | None:
        """The coordinator of a classic group does not check who fetches offsets."""
        return None

    # ---- LeaveGroup ----

    def stop_joining(self) -> None:
        """Cut off a parked request, and what else is on its connection: LeaveGroup would wait behind it."""
        state = self._state
        parked = state.phase in (Phase.JOINING, Phase.SYNCING) or state.link.waits_for(JOIN)
        if parked and state.link.coordinator is not None:
            state.actions.append(Disconnect(state.link.coordinator))
            state.link.forget(HEARTBEAT)
        state.link.forget(JOIN, DESCRIBE, SYNC)

    def leaves_silently(self, wanted: bool) -> bool:
        """Also a member without an id, which the coordinator does not know."""
        return wanted or not self._state.member_id

    def leave(self, now_ms: int) -> None:
        """Send LeaveGroup."""
        state, settings = self._state, self._state.settings
        reason = state.rest_reason or state.leave_reason or ""
        request = leave_group(settings.group_id, state.member_id, settings.group_instance_id, reason)
        state.send(LEAVE, request, self._left, now_ms, settings.leave_timeout_ms)

    def _left(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, code = self._state, left_group(response)
        if code in COORDINATOR_MOVED:
            state.link.lost("LeaveGroup found it gone", pending.found, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            state.link.retry_later("the coordinator is loading", now_ms)
        else:
            if code is None:
                state.say(logging.WARNING, "the answer to LeaveGroup is not about this member alone")
            elif code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
                state.say(logging.WARNING, f"LeaveGroup was answered {error_name(code)}")
            else:
                state.link.well()
            parted(state, now_ms)

    def out_of_group(self) -> None:
        """The next join asks for a new member id."""
        self._state.member_id = ""
