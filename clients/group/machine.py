"""The member as a machine: answers, time and the user's wishes in; requests, callbacks and words out.

It knows no socket, clock, thread or randomness of its own, so that members and a coordinator run together
on a simulated clock. How a driver runs it:

- After every call: `drain()` and do what it says, in order. One timer for `next_deadline()`, then `tick`.
- `Send`: the answer goes to `answer`, a transport error to `fail`, a request that cannot be made at all to
  `refuse`, each with the ticket. Old tickets are harmless.
- Callbacks run one after the other, in the order in which they came out. `TellRevoked` and
  `ComputeAssignment` want to be told their end (`revoked`, `computed`, `compute_failed`) with their round.
- If `prepares` is set, `PrepareJoin` comes before each join and wants to be told its end (`prepared`).
- `polled` tells the application's progress; `poll.polled` does so from another thread, and is enough unless
  the member is out of the group for lack of it (`rest_reason`).

What follows on each error code is what the Java consumer does with it in the classic protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ringleader.clients.connection.requests import find_coordinator, found_coordinator
from ringleader.clients.errors import (
    AssignmentFailedError,
    ClientError,
    InconsistentGroupProtocolError,
    MembershipError,
    MembershipUnsupportedError,
    fatal_error,
    is_retriable,
)
from ringleader.clients.group.actions import (
    Action,
    ComputeAssignment,
    PrepareJoin,
    TellAssigned,
)
from ringleader.clients.group.inconsistent import inconsistent
from ringleader.clients.group.leaving import COORDINATOR_GONE, Parting
from ringleader.clients.group.link import Pending
from ringleader.clients.group.requests import describe_group, heartbeat, join_group, sync_group
from ringleader.clients.group.state import ASLEEP, ENTERING, OVER, Election, Phase
from ringleader.clients.model import Assigned, MemberInfo
from ringleader.protocol.errors import ErrorCode, error_name

FOLLOW_UP_MS = 10
"""A cooperative rebalance is often followed by another one, in which others get what was given up, and until
then it has no owner: a member asks soon after the first, and then after twice as long each time, up to its
heartbeat interval."""
IMMEDIATE_REJOINS = 3
"""A refused join or sync is repeated at once so many times in a row; after that with backoff."""


class MemberMachine(Parting):
    """One member of one group, see the module for how it is driven."""

    # ---- what the user wants ----

    def start(self, now_ms: int) -> None:
        """Join the group."""
        if self.phase is not Phase.NEW:
            raise MembershipError(f"group {self.settings.group_id!r}: this member was started before")
        self.phase = Phase.UNJOINED
        self._contact_ms = self.link.not_before_ms = now_ms
        self._advance(now_ms)

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Make the group rebalance, for example because this member's metadata has changed: at once when
        stable, else after the rebalance under way."""
        if self.phase in OVER or self._leave_reason is not None:
            return
        self._rejoin_reason = reason
        self._advance(now_ms)

    # ---- what became of its actions ----

    def answer(self, ticket: int, response: Any, now_ms: int) -> None:
        """The response to a `Send`."""
        pending = self.link.take(ticket)
        if pending is not None:
            pending.handle(response, pending, now_ms)
            self._advance(now_ms)

    def fail(self, ticket: int, why: str, now_ms: int) -> None:
        """No answer to a `Send`: the connection ended, or time ran out. `why` in words."""
        pending = self.link.take(ticket)
        if pending is None:
            return
        if pending.name == "FindCoordinator":
            self.link.retry_later(f"no broker answers: {why}", now_ms)
        elif pending.name == "DescribeGroups":
            self._described(None, pending, now_ms)
        else:
            self.link.lost(f"{pending.name}: {why}", pending.found, now_ms)
            self._repeat(pending.name, f"{pending.name} got no answer", now_ms)
        self._advance(now_ms)

    def refuse(self, ticket: int, error: ClientError, now_ms: int) -> None:
        """A `Send` cannot be done at all: no common version, not expressible in it, not authenticated."""
        pending = self.link.take(ticket)
        if pending is not None and pending.name == "DescribeGroups":
            self._described(None, pending, now_ms)
        elif pending is not None:
            text = f"group {self.settings.group_id!r}: {pending.name} is not possible: {error}"
            kind = type(error) if isinstance(error, MembershipError) else MembershipUnsupportedError
            self._end(kind(text, error.code), now_ms)

    def revoked(self, round_: int, now_ms: int) -> None:
        """`on_revoked` of that round has ended."""
        if self.phase is Phase.REVOKING and round_ == self._round:
            self._given_up(now_ms)
            self._advance(now_ms)

    def prepared(self, number: int, now_ms: int) -> None:
        """What that `PrepareJoin` asked for is done, or given up."""
        if self.phase is Phase.PREPARING and number == self._preparation:
            self._prepared = True
            self.phase = Phase.UNJOINED
            self._advance(now_ms)

    def computed(self, round_: int, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """`assign` of that round gave this. Members without an entry get zero bytes."""
        if self.phase is not Phase.ASSIGNING or round_ != self._round or self._election is None:
            return
        strangers = sorted(set(assignments) - set(self._election.members))
        if strangers:
            self.compute_failed(round_, ValueError(f"assign named unknown member ids: {strangers}"), now_ms)
            return
        self._election.assignments = assignments
        self.phase = Phase.SYNCING
        self._advance(now_ms)

    def compute_failed(self, round_: int, error: BaseException, now_ms: int) -> None:
        """`assign` of that round raised this: the membership ends, so that another member may lead."""
        if self.phase is not Phase.ASSIGNING or round_ != self._round:
            return
        failure = AssignmentFailedError(f"group {self.settings.group_id!r}: assign failed: {error!r}")
        self._leave_failed(failure, error, "its assign callback failed", now_ms)
        self._advance(now_ms)

    def coordinator_lost(self, why: str, found: int, now_ms: int) -> None:
        """A request outside of this machine found the coordinator gone; `found`: `link.found` then."""
        if self.link.lost(why, found, now_ms):
            self._advance(now_ms)

    def offsets_refused(self, name: str, code: int, generation: int, member_id: str, now_ms: int) -> None:
        """OffsetCommit, or OffsetFetch, as that member of that generation was answered with this error."""
        entering = self.phase in ENTERING or self.link.waits_for(self.JOIN)
        if entering and code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            return  # The group is a step ahead of what this member has heard; its own answers will tell.
        self._refused(name, code, generation, member_id, now_ms)
        self._advance(now_ms)

    def contact(self, sent_ms: int) -> None:
        """The coordinator accepted something that this member sent at that time: its session goes on."""
        self._contact_ms = max(self._contact_ms, sent_ms)

    # ---- time ----

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        if self.phase is Phase.REVOKING and now_ms >= self.hold_until_ms:
            self._give_up_late(now_ms)
            self._given_up(now_ms)
        elif self.phase is Phase.PREPARING and now_ms >= self._prepare_until_ms:
            self._say(logging.WARNING, "joining without waiting for what was to be done before")
            self._prepared, self.phase = True, Phase.UNJOINED
        elif self.phase is Phase.LEAVING and now_ms >= self._leave_until_ms:
            self._say(logging.WARNING, "leaving without an answer: the session timeout will tell the group")
            self._parted(now_ms)
        self._advance(now_ms)

    def next_deadline(self) -> int | None:
        """When to call `tick` at the latest; None: nothing to wait for."""
        if self.phase in ASLEEP:
            return None
        link = self.link
        times = []
        if (poll_due_ms := self.poll.due_ms()) is not None:
            times.append(poll_due_ms)
        if self.phase is Phase.REVOKING:
            times.append(self.hold_until_ms)
        if self.phase is Phase.PREPARING:
            times.append(self._prepare_until_ms)
        if self.phase is Phase.LEAVING:
            times.append(self._leave_until_ms)
        if link.coordinator is None:
            if not link.waits_for("FindCoordinator"):
                times.append(link.not_before_ms)
        elif self._beats() and not link.waits_for(self.BEAT):
            times.append(max(self._beat_at_ms, link.not_before_ms))
        elif self.phase is Phase.UNJOINED or (
            self.phase is Phase.LEAVING and self.member_id and not link.waits_for(self.LEAVE)
        ):
            times.append(link.not_before_ms)
        return min(times, default=None)

    def drain(self) -> list[Action]:
        """What is to be done now, in order."""
        actions = self._actions.copy()
        self._actions.clear()
        return actions

    def _advance(self, now_ms: int) -> None:
        """Whatever this phase wants and time allows."""
        self._let_poll_clock_run(now_ms)
        polled_ms = self.poll.polled_ms  # before the look at the clock: another thread may write it meanwhile
        if self.poll.expired(now_ms):
            self._expire(polled_ms, now_ms)
        if self.phase is Phase.RESTING:
            self._wake(now_ms)
        if self.phase in ASLEEP:
            return
        if self.phase is Phase.STABLE and self._rejoin_reason is not None:
            reason, self._rejoin_reason = self._rejoin_reason, None
            self._rebalance(reason, now_ms + self.settings.rebalance_timeout_ms, now_ms)
        self._pursue(now_ms)
        self._let_poll_clock_run(now_ms)

    def _pursue(self, now_ms: int) -> None:
        phase, link = self.phase, self.link
        waited = now_ms >= link.not_before_ms
        if link.coordinator is None:
            if waited and not link.waits_for("FindCoordinator"):
                self._find(now_ms)
        elif phase is Phase.UNJOINED and waited:
            self._prepare(now_ms) if self.prepares and not self._prepared else self._join(now_ms)
        elif phase is Phase.SYNCING and not link.waits_for("SyncGroup"):
            self._sync(now_ms)
        elif phase is Phase.LEAVING and waited and self.member_id and not link.waits_for(self.LEAVE):
            self._send_leave(now_ms)
        elif self._beats() and waited and now_ms >= self._beat_at_ms and not link.waits_for(self.BEAT):
            self._beat(now_ms)

    # ---- finding the coordinator ----

    def _find(self, now_ms: int) -> None:
        request, timeout_ms = find_coordinator(self.settings.group_id), self.settings.request_timeout_ms
        self.link.send("FindCoordinator", request, self._found, self._identity(), now_ms, timeout_ms)

    def _found(self, response: Any, pending: Pending, now_ms: int) -> None:
        code, node = found_coordinator(response)
        if node is not None:
            self.link.arrived(node, now_ms)
        elif is_retriable(code):
            self.link.retry_later(f"the cluster names no coordinator ({error_name(code)})", now_ms)
        else:
            self._end(fatal_error("FindCoordinator", self.settings.group_id, code), now_ms)

    # ---- joining ----

    def _to_join(self, reason: str, now_ms: int) -> None:
        """Join again; a member that is to leave leaves instead."""
        if self.phase is Phase.LEAVING and not self.member_id:
            self._parted(now_ms)
        if self.phase in OVER or self.phase is Phase.LEAVING:
            return
        if self._leave_reason is not None:
            self._start_leaving(now_ms)
            return
        self._round += 1
        self._election = None
        self.link.forget(self.JOIN, "SyncGroup", self.BEAT)
        self.phase = Phase.UNJOINED
        self._prepared = False
        self._join_reason = reason

    def _prepare(self, now_ms: int) -> None:
        """Time for what has to be done before JoinGroup: no more than the rebalance leaves."""
        allowed_ms = now_ms + self.settings.request_timeout_ms
        until_ms = allowed_ms if self._join_until_ms is None else min(allowed_ms, self._join_until_ms)
        if until_ms <= now_ms:
            self._join(now_ms)
            return
        self.phase = Phase.PREPARING
        self._preparation += 1
        self._prepare_until_ms = until_ms
        self._actions.append(PrepareJoin(self._preparation, until_ms))

    def _join(self, now_ms: int) -> None:
        self.phase = Phase.JOINING
        self._join_until_ms = None
        self.counters.rebalancing(now_ms)
        self._rejoin_reason = None
        try:
            request = join_group(self.settings, self.protocols, self.member_id, self._join_reason)
        except Exception as error:
            # A metadata callable of the user; without metadata there is nothing to join with.
            text = f"group {self.settings.group_id!r}: metadata callback failed: {error!r}"
            self._leave_failed(MembershipError(text), error, "its metadata callback failed", now_ms)
            return
        timeout_ms = self.settings.parked_timeout_ms
        self.link.send(self.JOIN, request, self._joined, self._identity(), now_ms, timeout_ms)

    def _joined(self, response: Any, pending: Pending, now_ms: int) -> None:
        code = response.error_code
        if self.phase is Phase.LEAVING:
            self._named(response.member_id, now_ms)
        elif code == ErrorCode.NONE and self.phase is Phase.REVOKING:
            self._counted(response, now_ms)
        elif code == ErrorCode.NONE:
            self._elect(response, now_ms)
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self.generation = response.member_id, -1
            self.phase = Phase.UNJOINED
            self._refusals += 1
            if self._refusals > IMMEDIATE_REJOINS:
                self.link.retry_later("the coordinator keeps giving out member ids", now_ms)
        elif code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            self.counters.failed_rebalances += 1
            request, timeout_ms = describe_group(self.settings.group_id), self.settings.leave_timeout_ms
            self.link.send("DescribeGroups", request, self._described, self._identity(), now_ms, timeout_ms)
        else:
            self._refused_answer(code, pending, now_ms)

    def _described(self, response: Any, pending: Pending, now_ms: int) -> None:
        """What group it is that did not take this member's protocols."""
        self._end(inconsistent(self.settings, self.protocols, response), now_ms)

    def _elect(self, response: Any, now_ms: int) -> None:
        kind, name = response.protocol_type, response.protocol_name
        offered = {protocol.name for protocol in self.protocols}
        if kind not in (None, self.settings.protocol_type) or name not in offered:
            text = f"the group settled on protocol {name!r} of type {kind!r}, which this member did not offer"
            self._end(InconsistentGroupProtocolError(f"group {self.settings.group_id!r}: {text}"), now_ms)
            return
        self.link.well()
        self.contact(now_ms)
        self._refusals = 0
        self.generation, self.member_id = response.generation_id, response.member_id
        self._beat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        self._round += 1
        self._election = Election(name, response.leader, [m.member_id for m in response.members])
        if response.leader == response.member_id and not response.skip_assignment:
            self.phase = Phase.ASSIGNING
            members = [MemberInfo(m.member_id, m.group_instance_id, m.metadata) for m in response.members]
            self._actions.append(ComputeAssignment(self._round, name, members))
        else:
            self._election.members = []
            self.phase = Phase.SYNCING

    def _sync(self, now_ms: int) -> None:
        election = self._election
        assert election is not None
        assignments = {member: election.assignments.get(member, b"") for member in election.members}
        request = sync_group(self.settings, self.generation, self.member_id, election.protocol, assignments)
        timeout_ms = self.settings.parked_timeout_ms
        self.link.send("SyncGroup", request, self._synced, self._identity(), now_ms, timeout_ms)

    def _synced(self, response: Any, pending: Pending, now_ms: int) -> None:
        if response.error_code != ErrorCode.NONE:
            self._refused_answer(response.error_code, pending, now_ms)
            return
        election = self._election
        assert election is not None
        kind, name = response.protocol_type, response.protocol_name
        if kind not in (None, self.settings.protocol_type) or name not in (None, election.protocol):
            text = f"SyncGroup speaks of {name!r} of type {kind!r}, JoinGroup of {election.protocol!r}"
            self._end(InconsistentGroupProtocolError(f"group {self.settings.group_id!r}: {text}"), now_ms)
            return
        self.link.well()
        # The coordinator restarts the session as it hands out the assignment: contact is now, not at sending.
        self.contact(now_ms)
        self.phase = Phase.STABLE
        self._beat_after_ms = (
            FOLLOW_UP_MS if self.settings.cooperative else self.settings.heartbeat_interval_ms
        )
        self._next_beat(now_ms)
        held = Assigned(
            self.generation, self.member_id, election.leader_id, election.protocol, response.assignment
        )
        before, self.held = self.held, held
        if before is None:
            self.kept_since = held.generation
        self.last_held = held
        self.counters.rebalanced(now_ms)
        leads = " as its leader" if held.is_leader else ""
        took_s = (self.counters.last_rebalance_ms or 0) / 1000
        self._say(
            logging.INFO,
            f"in generation {held.generation}{leads} after {took_s:.1f} s, member id {held.member_id}, "
            f"protocol {held.protocol}",
        )
        given_up, moving = self.settings.given_up, None
        if given_up is not None and before is not None:
            try:
                moving = given_up(before.assignment, held.assignment)
            except Exception as error:
                text = f"group {self.settings.group_id!r}: given_up callback failed: {error!r}"
                self._leave_failed(MembershipError(text), error, "its given_up callback failed", now_ms)
                return
        if not moving:
            self._actions.append(TellAssigned(held))
        elif not self.cooperates(held.protocol):
            # An eager leader of another library did not ask: others have these already.
            self._lose_a_part(held, moving, f"the group has gone over to {held.protocol}, which does not ask")
            self._actions.append(TellAssigned(held))
        else:
            until_ms = now_ms + self.settings.rebalance_timeout_ms
            self._revoke("it moves to another member", until_ms, now_ms, moving)

    # ---- heartbeats ----

    def _beat(self, now_ms: int) -> None:
        request = heartbeat(self.settings, self.generation, self.member_id)
        timeout_ms = self.settings.heartbeat_timeout_ms
        self._next_beat(now_ms)
        self.link.send(self.BEAT, request, self._beaten, self._identity(), now_ms, timeout_ms)

    def _next_beat(self, now_ms: int) -> None:
        after_ms = min(self._beat_after_ms, self.settings.heartbeat_interval_ms)
        self._beat_at_ms = now_ms + after_ms
        self._beat_after_ms = 2 * after_ms

    def _beaten(self, response: Any, pending: Pending, now_ms: int) -> None:
        code = response.error_code
        if code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._refused_answer(code, pending, now_ms)
            return
        self.link.well()
        self.contact(pending.sent_ms)
        self.counters.beaten(pending.sent_ms, now_ms)
        if code == ErrorCode.NONE:
            return
        # It began after the heartbeat before this one, and the coordinator counts from there.
        began_ms = pending.sent_ms - self.settings.heartbeat_interval_ms
        rebalance_ms = self.settings.rebalance_timeout_ms
        # A rebalance timeout about as short as the heartbeat interval is no reason to revoke without a word.
        until_ms = max(
            began_ms + rebalance_ms - self.settings.hold_margin_ms, pending.sent_ms + rebalance_ms // 4
        )
        if self.phase is Phase.STABLE:
            self._rebalance("the group is rebalancing", until_ms, now_ms)
        elif self.phase is Phase.REVOKING:
            self.hold_until_ms = min(self.hold_until_ms, until_ms)
        elif self.phase is Phase.PREPARING:
            self._prepare_until_ms = min(self._prepare_until_ms, until_ms)

    # ---- refusals ----

    def _refused_answer(self, code: int, pending: Pending, now_ms: int) -> None:
        if code in COORDINATOR_GONE:
            why = f"{pending.name} was answered {error_name(code)}"
            self.link.lost(why, pending.found, now_ms)
            self._repeat(pending.name, why, now_ms)
        else:
            self._refused(pending.name, code, pending.generation, pending.member_id, now_ms)

    def _repeat(self, name: str, why: str, now_ms: int) -> None:
        """What went to a coordinator that is gone is done again when there is one."""
        if name in (self.JOIN, "SyncGroup"):
            self.counters.failed_rebalances += 1
        if name == self.BEAT or self.phase is Phase.REVOKING:
            self._beat_at_ms = now_ms
        elif name in (self.JOIN, "SyncGroup"):
            self._to_join(why, now_ms)

    def _refused(self, name: str, code: int, generation: int, member_id: str, now_ms: int) -> None:
        """An error about the membership, for what the member was when it sent the request."""
        if (generation, member_id) != self._identity() or self.phase in OVER:
            return  # About an earlier life: the present one is not touched.
        why = f"{name} was answered {error_name(code)}"
        self.counters.failed_rebalances += name in (self.JOIN, "SyncGroup")
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._lose(self._removal(now_ms), now_ms)
            self.member_id, self.generation = "", -1
            self._join_again(why, now_ms)
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self._lose(f"generation {generation} is over: the group went on without this member", now_ms)
            self.generation = -1
            self._join_again(why, now_ms)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.phase is Phase.STABLE:
                until_ms = now_ms + self.settings.rebalance_timeout_ms
                self._rebalance("the group is rebalancing", until_ms, now_ms)
            elif self.phase in (Phase.JOINING, Phase.SYNCING):
                self._join_again(why, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if name in (self.JOIN, "SyncGroup") and self.phase is not Phase.REVOKING:
                self._to_join(why, now_ms)
            self.link.retry_later("the coordinator is loading", now_ms)
        else:
            self._end(fatal_error(name, self.settings.group_id, code), now_ms)

    def _join_again(self, reason: str, now_ms: int) -> None:
        """At once, unless the coordinator keeps refusing."""
        self._refusals += 1
        if self._refusals > IMMEDIATE_REJOINS:
            self.link.retry_later(reason, now_ms)
        self._to_join(reason, now_ms)
