"""The consumer protocol (KIP-848): one request does all, the coordinator assigns.

The user sees what a member of the classic protocol shows. The differences inside:

- Its generation is the member epoch. Its member id is its own, and stays.
- ConsumerGroupHeartbeat joins, reports what is owned and brings the assignment, by topic id. Partitions of
  topics whose names are not known yet wait until Metadata names them.
- Partitions that are not in the assignment any more are revoked first, with heartbeats going on; then the new
  ones are taken, and a heartbeat reports at once all that is owned. The others stay with their members.

The reaction to each error code is that of the Java consumer under `group.protocol=consumer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import (
    ClientError,
    InconsistentGroupProtocolError,
    InvalidRegularExpressionError,
    MembershipError,
    MembershipUnsupportedError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
    fatal_error,
)
from ringleader.clients.group.machine.actions import ComputeTarget, TellAssigned
from ringleader.clients.group.machine.consumer_protocol_requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_PARTITIONS,
    STATIC_LEAVE_EPOCH,
    Partitions,
    Report,
    assignment_bytes,
    heartbeat,
    leave,
    named,
    target,
    topic_names,
)
from ringleader.clients.group.machine.holding import end, lose, revoke, shrink
from ringleader.clients.group.machine.joining import (
    COORDINATOR_MOVED,
    FOLLOW_UP_MS,
    begin_join,
    concerns,
    coordinator_moved,
    impossible,
    join_again,
    to_join,
)
from ringleader.clients.group.machine.leaving import parted, start_leaving
from ringleader.clients.group.machine.link import Pending
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.machine.state import Identity, MemberState, RequestNames, new_state
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import Assigned, MemberProtocol
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
)

FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
"""The partitions of this member are not its own any more; it joins again."""
LEFT_ANYWAY = frozenset({ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND, *FENCED})

HEARTBEAT = "ConsumerGroupHeartbeat"
NAMES = RequestNames(f"joining ({HEARTBEAT})", HEARTBEAT, f"leaving ({HEARTBEAT})")
CLASSIC = 'group_protocol="classic"'


def consumer_protocol(
    settings: MemberSettings,
    member_id: str,
    topics: Callable[[], Sequence[str]],
    random: Callable[[], float],
    *,
    regex: Callable[[], str | None] = lambda: None,
    server_assignor: str | None = None,
    rack: str | None = None,
    user_data: Callable[[], bytes] | None = None,
) -> MemberState:
    """A member of the consumer protocol. `topics` gives the current names to subscribe to; `random` gives
    numbers from 0 to 1. `regex`: the current expression that the coordinator matches, if any.
    `server_assignor` None leaves the choice to the coordinator. `user_data`: of a member that can lead, what
    its assignor is to know of it."""
    state = new_state(settings, [MemberProtocol(server_assignor or "consumer")], random)
    state.member_id = member_id
    backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
    state.rules = ConsumerProtocol(state, topics, regex, backoff, server_assignor, rack, user_data)
    return state


@dataclass(slots=True, eq=False)
class ConsumerProtocol:
    """The rules of the consumer protocol, and what only they know, for one member."""

    names: ClassVar[RequestNames] = NAMES

    state: MemberState
    topics: Callable[[], Sequence[str]]
    regex: Callable[[], str | None]
    names_backoff: Backoff
    server_assignor: str | None
    rack: str | None
    user_data: Callable[[], bytes] | None

    entered: bool = False
    """Whether the coordinator may know this member."""
    had_regex: bool = False
    """Whether the coordinator may have an expression of it, or of a former member with its instance id."""
    reported: Report | None = None
    """The report that the coordinator has answered; None: it may have another one."""
    reporting: Report | None = None
    """The report of the newest heartbeat."""
    computing: int | None = None
    """The group epoch for which this member computes the group's assignment; None: it does not."""
    computed: ConsumerGroupHeartbeatRequestComputedTarget | None = None
    """Its answer to a task, until the coordinator has it."""
    computed_sent: ConsumerGroupHeartbeatRequestComputedTarget | None = None
    """The answer in the newest heartbeat."""
    target: Partitions | None = None
    partitions: Partitions = NO_PARTITIONS
    giving_up: Partitions = NO_PARTITIONS
    give_up_until_ms: int = 0
    empty_until_ms: int = 0
    """Until then an empty assignment may be one that waits for others to give up partitions."""
    known_names: dict[bytes, str] = field(default_factory=dict)
    unnamed: frozenset[bytes] = frozenset()
    complained_of: frozenset[bytes] = frozenset()
    names_at_ms: int = 0

    # ---- heartbeats ----

    def join(self, now_ms: int) -> None:
        """Send the heartbeat that joins."""
        begin_join(self.state, now_ms)
        self.entered = True
        self.reported = self.computed = None
        self._send_heartbeat(NAMES.join, JOIN_EPOCH, now_ms)

    def heartbeat(self, now_ms: int) -> None:
        """Send a heartbeat."""
        self._send_heartbeat(NAMES.heartbeat, self.state.generation, now_ms)

    def _send_heartbeat(self, name: str, epoch: int, now_ms: int) -> None:
        state, report = self.state, self._report()
        is_static = state.settings.group_instance_id is not None
        self.had_regex = self.had_regex or report.regex is not None or is_static
        request = heartbeat(
            state.settings,
            state.member_id,
            epoch,
            report,
            self.reported,
            rack=self.rack,
            server_assignor=self.server_assignor,
            computed=self.computed,
            had_regex=self.had_regex,
        )
        self.computed_sent = self.computed
        # Without an answer it is unknown which report the coordinator has: the next heartbeat is a full one.
        self.reporting, self.reported = report, None
        timeout_ms = state.settings.heartbeat_timeout_ms
        state.send(name, request, self._beaten, now_ms, timeout_ms)
        state.heartbeat_at_ms = now_ms + timeout_ms

    def _beaten(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, code = self.state, response.error_code
        if coordinator_moved(state, code, pending, now_ms):
            return
        if code != ErrorCode.NONE:
            self._refused(pending.name, code, pending.identity, now_ms, response.error_message or "")
            return
        state.link.well()
        state.contact(pending.sent_ms)
        state.refusals = 0
        self.reported = self.reporting
        if self.computed is self.computed_sent:
            self.computed = None
        state.generation = response.member_epoch
        if state.held is not None and state.held.generation != state.generation:
            state.held = replace(state.held, generation=state.generation)
        if state.phase is Phase.JOINING:
            state.enter(Phase.STABLE)
            state.heartbeat_after_ms = FOLLOW_UP_MS
            self.empty_until_ms = now_ms + response.heartbeat_interval_ms
        else:
            state.counters.beaten(pending.sent_ms, now_ms)
        if response.assignment is not None:
            before, self.target = self.target, target(response.assignment)
            if self.target != before:  # some coordinators repeat it in every answer
                state.heartbeat_after_ms = FOLLOW_UP_MS
            self._find_unnamed()
            if self.target != self.partitions and state.counters.began_ms is None:
                state.counters.began_ms = now_ms
            rebalance_ms = state.settings.rebalance_timeout_ms
            self.give_up_until_ms = pending.sent_ms + rebalance_ms - state.settings.hold_margin_ms
        # The first assignment may be but a part, until others have given up the rest: it asks soon again.
        after_ms = min(state.heartbeat_after_ms, response.heartbeat_interval_ms)
        state.heartbeat_at_ms, state.heartbeat_after_ms = now_ms + after_ms, 2 * after_ms
        self._reconcile(now_ms)
        if response.leader_task is not None:
            self._lead(response.leader_task)
        self._report_news(now_ms)

    def _lead(self, task: ConsumerGroupHeartbeatResponseLeaderTask) -> None:
        """Compute the group's assignment, unless that is under way."""
        answered = self.computed is not None and self.computed.group_epoch == task.group_epoch
        if self.computing != task.group_epoch and not answered:
            self.computing = task.group_epoch
            self.state.actions.append(ComputeTarget(task, self._has_computed))

    def _has_computed(self, answer: ConsumerGroupHeartbeatRequestComputedTarget, now_ms: int) -> None:
        if self.computing == answer.group_epoch:
            self.computing, self.computed = None, answer
            self.state.heartbeat_at_ms = now_ms

    def _report_news(self, now_ms: int) -> None:
        """Send a heartbeat at once if there is something to report; one that is on its way comes first."""
        if self.reported is not None and self.reported != self._report():
            self.state.heartbeat_at_ms = now_ms

    def _report(self) -> Report:
        user_data = None if self.user_data is None else self.user_data()
        return Report(tuple(self.topics()), self.partitions, user_data, self.regex())

    def rebalance(self, reason: str, hold_until_ms: int, now_ms: int) -> None:
        """Report what this member subscribes to now, and ask what is new, soon again too: the coordinator may
        compute a little later."""
        self.state.heartbeat_at_ms, self.state.heartbeat_after_ms = now_ms, FOLLOW_UP_MS

    # ---- from the assignment to what is owned ----

    def _reconcile(self, now_ms: int) -> None:
        """Give up what is not assigned any more; without such take what is new, as far as its topics have
        names."""
        state = self.state
        if state.phase is not Phase.STABLE or self.target is None:
            return
        if removed := self.partitions - self.target:
            self.giving_up = removed
            moving = assignment_bytes(removed, self.known_names)
            revoke(state, "it moves to another member", self.give_up_until_ms, now_ms, moving)
            return
        if self.reported is None:
            # The heartbeat on its way may say that they are not here: then the coordinator gives them away.
            return
        present = frozenset(one for one in self.target if one[0] in self.known_names)
        if present != self.partitions or (state.held is None and self._has_none(now_ms)):
            self._take(present, now_ms)

    def _has_none(self, now_ms: int) -> bool:
        """Whether the first assignment is really empty, and not only until others have given up something."""
        return not self.target and now_ms >= self.empty_until_ms

    def _take(self, present: Partitions, now_ms: int) -> None:
        state = self.state
        before = state.held
        self.partitions = present
        state.held = state.last_held = self._assigned()
        if before is None:
            state.kept_since = state.generation
        state.counters.rebalanced(now_ms)
        text = f"in epoch {state.generation} with {len(present)} partitions, member id {state.member_id}"
        state.say(logging.INFO, text)
        state.actions.append(TellAssigned(state.held))
        self._report_news(now_ms)

    def _assigned(self) -> Assigned:
        state, protocol = self.state, self.server_assignor or ""
        assignment = assignment_bytes(self.partitions, self.known_names)
        return Assigned(state.generation, state.member_id, "", protocol, assignment)

    def given_up(self, now_ms: int) -> None:
        """Go on with what stays, or leave, after a revocation; a member that leaves gives up the rest
        first."""
        state = self.state
        moved, state.moving = state.moving, b""
        removed, self.giving_up = self.giving_up, NO_PARTITIONS
        state.counters.revoked(now_ms)
        if not moved or state.held is None:
            self.partitions, state.held = NO_PARTITIONS, None
            state.counters.assigned_ms = None
            start_leaving(state, now_ms)
            return
        self.partitions -= removed
        state.held = left = self._assigned()
        shrink(state)
        state.enter(Phase.STABLE)
        self._report_news(now_ms)
        if state.leave_reason is None:
            self._reconcile(now_ms)
        if state.held is left:
            state.counters.rebalanced(now_ms)
            state.actions.append(TellAssigned(left))
        if state.leave_reason is not None:
            revoke(state, f"leaving: {state.leave_reason}", state.hold_until_ms, now_ms)

    def lost(self) -> None:
        """No partition is owned any more, and the next assignment is not known yet."""
        self.target = None
        self.unnamed = frozenset()
        self.partitions = self.giving_up = NO_PARTITIONS

    # ---- names of topics ----

    def pursue(self, now_ms: int) -> None:
        """Ask for the names of assigned topics."""
        if not self._wants_names() or now_ms < self.names_at_ms:
            return
        state, request = self.state, topic_names(sorted(self.unnamed))
        state.send(
            "Metadata",
            request,
            self._named_topics,
            now_ms,
            state.settings.request_timeout_ms,
            lambda _why, now_ms: self._ask_names_later(now_ms),
        )

    def deadline_ms(self) -> int | None:
        """When to ask for names again."""
        return self.names_at_ms if self._wants_names() else None

    def _find_unnamed(self) -> None:
        self.unnamed = frozenset(one for one, _ in self.target or () if one not in self.known_names)

    def _wants_names(self) -> bool:
        settled = self.state.phase in (Phase.STABLE, Phase.REVOKING)
        return settled and bool(self.unnamed) and not self.state.link.waits_for("Metadata")

    def _named_topics(self, response: Any, _pending: Pending, now_ms: int) -> None:
        before = self.unnamed
        needed = {topic_id for topic_id, _ in self.partitions | (self.target or NO_PARTITIONS)}
        known = self.known_names | named(response)
        self.known_names = {one: name for one, name in known.items() if one in needed}
        self._find_unnamed()
        if self.unnamed:
            if self.unnamed == before != self.complained_of:
                self.complained_of = before
                text = f"{len(before)} assigned topics have no name yet: they wait"
                self.state.say(logging.WARNING, text)
            self._ask_names_later(now_ms)
        else:
            self.names_backoff.reset()
        self._reconcile(now_ms)

    def _ask_names_later(self, now_ms: int) -> None:
        self.names_at_ms = now_ms + self.names_backoff.next_ms()

    # ---- rejections ----

    def repeat(self, name: str, why: str, now_ms: int) -> None:
        """Join again, or send the next heartbeat, as soon as there is a coordinator."""
        if name == NAMES.join:
            to_join(self.state, why, now_ms)
        elif name == NAMES.heartbeat:
            self.state.heartbeat_at_ms = now_ms

    def _refused(self, name: str, code: int, identity: Identity, now_ms: int, reason: str = "") -> None:
        """React to an error about the membership, sent to that identity; one of an earlier membership
        changes nothing. `reason`: the coordinator's own words."""
        state = self.state
        if not concerns(state, identity):
            return
        why = f"{name} was answered {error_name(code)}" + (f" ({reason})" if reason else "")
        joins = name == NAMES.join
        state.counters.failed_rebalances += joins
        if code in FENCED or (code == ErrorCode.GROUP_ID_NOT_FOUND and not joins):
            silent_s = (now_ms - state.contact_ms) / 1000
            lose(state, f"removed: {why}, {silent_s:.1f} s after the last contact", now_ms)
            state.generation = -1
            self.entered = False
            join_again(state, why, now_ms)
        elif code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            if why != state.link.trouble:
                state.say(logging.WARNING, why)
            if joins:
                to_join(state, why, now_ms)
            state.heartbeat_at_ms = now_ms
            state.link.retry_later(why, now_ms)
        else:
            end(state, self._fatal(code, name, reason), now_ms)

    def offsets_refused(self, name: str, code: int, identity: Identity, now_ms: int) -> None:
        """As any other answer; after STALE_MEMBER_EPOCH the next heartbeat brings the newer epoch, if its
        answer is not on its way already."""
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            self.state.heartbeat_at_ms = now_ms
        else:
            self._refused(name, code, identity, now_ms)

    def _fatal(self, code: int, request: str, reason: str) -> MembershipError:
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return self._unsupported(reason or error_name(code))
        group_id, instance_id = self.state.settings.group_id, self.state.settings.group_instance_id
        known: dict[int, tuple[type[MembershipError], str]] = {
            ErrorCode.UNSUPPORTED_ASSIGNOR: (
                MembershipUnsupportedError,
                f"the coordinator has no assignor {self.server_assignor!r} (its group.consumer.assignors)",
            ),
            ErrorCode.GROUP_ID_NOT_FOUND: (
                InconsistentGroupProtocolError,
                f"its members are of another protocol, and cannot be moved to this one: use {CLASSIC}",
            ),
            ErrorCode.UNRELEASED_INSTANCE_ID: (
                UnreleasedInstanceIdError,
                f"another member has the group instance id {instance_id!r}: end it, or "
                "wait until its session timeout is over",
            ),
            ErrorCode.INVALID_REGULAR_EXPRESSION: (
                InvalidRegularExpressionError,
                f"the coordinator does not take the SubscriptionPattern {self.regex()!r}: the syntax is that "
                "of RE2, not that of Python's re",
            ),
        }
        error = fatal_error(request, group_id, code)
        if code in known:
            kind, why = known[code]
            error = kind(f"group {group_id!r}: {why} ({error_name(code)})", code)
        return type(error)(f"{error}: {reason}", code) if reason else error

    def _unsupported(self, why: str) -> MembershipUnsupportedError:
        text = f"the coordinator does not serve the consumer protocol (KIP-848): use {CLASSIC}"
        return MembershipUnsupportedError(
            f"{self.state.group}: {text} ({why})", ErrorCode.UNSUPPORTED_VERSION
        )

    def impossible(self, name: str, error: ClientError) -> MembershipError:
        """The error of a member whose request cannot be sent: a coordinator without this protocol."""
        if name == "FindCoordinator" or isinstance(error, MembershipError):
            return impossible(self.state, name, error)
        if self.regex() is not None and isinstance(error, UnsupportedVersionError):
            text = (
                "the coordinator matches no SubscriptionPattern (ConsumerGroupHeartbeat v1): give the text "
                f"or a compiled pattern, which this client matches, or names ({error})"
            )
            return MembershipUnsupportedError(f"{self.state.group}: {text}", ErrorCode.UNSUPPORTED_VERSION)
        return self._unsupported(str(error))

    def fetches_offsets_as(self) -> Identity | None:
        """The coordinator checks epoch and member id."""
        return self.state.identity if self.state.generation > 0 else None

    # ---- leaving ----

    def stop_joining(self) -> None:
        """Nothing is parked. Requests on their way are in front of the leaving, on the same connection."""
        self.state.link.forget(NAMES.join)

    def leaves_silently(self, wanted: bool) -> bool:
        """Only a member that never entered. A static member reports that it will be back, where a classic one
        is silent."""
        return not self.entered

    def leave(self, now_ms: int) -> None:
        """Send the heartbeat that leaves, for good or to be back."""
        state = self.state
        static, resting = state.settings.group_instance_id is not None, state.leave_reason is None
        back = static and (state.leave_silently or resting)
        request = leave(state.settings, state.member_id, STATIC_LEAVE_EPOCH if back else LEAVE_EPOCH)
        state.send(NAMES.leave, request, self._left, now_ms, state.settings.leave_timeout_ms)

    def _left(self, response: Any, pending: Pending, now_ms: int) -> None:
        state, code = self.state, response.error_code
        if code in COORDINATOR_MOVED:
            state.link.lost("leaving found it gone", pending.found, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            state.link.retry_later("the coordinator is loading", now_ms)
        else:
            if code not in LEFT_ANYWAY:
                state.say(logging.WARNING, f"{pending.name} was answered {error_name(code)}")
            parted(state, now_ms)

    def out_of_group(self) -> None:
        """The member id stays for the next join."""
        self.entered = False
