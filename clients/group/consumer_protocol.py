"""The member machine of the consumer protocol (KIP-848): one request does all, the coordinator assigns.

It is driven as `MemberMachine` is, and tells the user the same. What differs:

- Its generation is the member epoch. Its member id is its own, and stays.
- ConsumerGroupHeartbeat joins, tells what is owned and brings the assignment, by topic id. Partitions of
  topics whose names are not known yet wait until Metadata names them.
- What is not in the assignment any more is revoked first, with heartbeats going on; then what is new is
  taken, and a heartbeat tells at once what is owned now. All else stays with its members.

What follows on each error code is what the Java consumer does with it under `group.protocol=consumer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import (
    ClientError,
    InconsistentGroupProtocolError,
    MembershipError,
    MembershipUnsupportedError,
    UnreleasedInstanceIdError,
    fatal_error,
)
from ringleader.clients.group.actions import TellAssigned
from ringleader.clients.group.consumer_protocol_requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_PARTITIONS,
    STATIC_LEAVE_EPOCH,
    Partitions,
    Told,
    assignment_bytes,
    heartbeat,
    leave,
    named,
    target,
    topic_names,
)
from ringleader.clients.group.leaving import COORDINATOR_GONE
from ringleader.clients.group.link import Pending
from ringleader.clients.group.machine import FOLLOW_UP_MS, MemberMachine
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.group.state import OVER, Phase
from ringleader.clients.model import Assigned, MemberProtocol
from ringleader.protocol.errors import ErrorCode, error_name

FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
"""Whatever this member had is not its own any more; it joins again."""
GONE_ANYWAY = frozenset({ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND, *FENCED})

CLASSIC = 'group_protocol="classic"'


class ConsumerProtocolMachine(MemberMachine):
    """One member of one group. `topics` gives the names to subscribe to as of now; `random` gives numbers
    from 0 to 1. `server_assignor` None leaves the choice to the coordinator."""

    BEAT = "ConsumerGroupHeartbeat"
    JOIN, LEAVE = f"joining ({BEAT})", f"leaving ({BEAT})"

    def __init__(
        self,
        settings: MemberSettings,
        member_id: str,
        topics: Callable[[], Sequence[str]],
        random: Callable[[], float],
        *,
        server_assignor: str | None = None,
        rack: str | None = None,
    ) -> None:
        super().__init__(settings, [MemberProtocol(server_assignor or "consumer")], random)
        self.member_id = member_id
        self._topics = topics
        self._server_assignor = server_assignor
        self._rack = rack
        self._entered = False  # whether the coordinator may know this member
        self._told: Told | None = None
        self._telling: Told | None = None
        self._target: Partitions | None = None
        self._partitions = NO_PARTITIONS
        self._giving_up = NO_PARTITIONS
        self._give_up_until_ms = 0
        self._names: dict[bytes, str] = {}
        self._unnamed: frozenset[bytes] = frozenset()
        self._complained_of = self._unnamed
        self._names_backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._names_at_ms = 0
        self._empty_until_ms = 0

    # ---- what became of its actions ----

    def fail(self, ticket: int, why: str, now_ms: int) -> None:
        """No answer to a `Send`."""
        pending = self.link.peek(ticket)
        if pending is None or pending.name != "Metadata":
            super().fail(ticket, why, now_ms)
            return
        self.link.take(ticket)
        self._ask_names_later(now_ms)
        self._advance(now_ms)

    def refuse(self, ticket: int, error: ClientError, now_ms: int) -> None:
        """A `Send` cannot be done at all."""
        pending = self.link.peek(ticket)
        if pending is None or pending.name == "FindCoordinator" or isinstance(error, MembershipError):
            super().refuse(ticket, error, now_ms)
        else:
            self.link.take(ticket)
            self._end(self._unsupported(str(error)), now_ms)

    @property
    def fetches_offsets_as(self) -> tuple[int, str] | None:
        """Epoch and member id that OffsetFetch tells; None: as nobody."""
        return self._identity() if self.generation > 0 else None

    def offsets_refused(self, name: str, code: int, generation: int, member_id: str, now_ms: int) -> None:
        """OffsetCommit or OffsetFetch as that member in that epoch was answered with this error."""
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            # The answer with the newer epoch is on its way, or was lost: then the next heartbeat brings it.
            self._beat_at_ms = now_ms
        else:
            self._refused(name, code, generation, member_id, now_ms)
        self._advance(now_ms)

    # ---- time ----

    def next_deadline(self) -> int | None:
        """When to call `tick` at the latest; None: nothing to wait for."""
        due_ms = super().next_deadline()
        if not self._wants_names():
            return due_ms
        return self._names_at_ms if due_ms is None else min(due_ms, self._names_at_ms)

    def _pursue(self, now_ms: int) -> None:
        super()._pursue(now_ms)
        if self._wants_names() and now_ms >= self._names_at_ms:
            request = topic_names(sorted(self._unnamed))
            timeout_ms = self.settings.request_timeout_ms
            self.link.send("Metadata", request, self._named_topics, self._identity(), now_ms, timeout_ms)

    # ---- heartbeats ----

    def _join(self, now_ms: int) -> None:
        self.phase = Phase.JOINING
        self._join_until_ms = None
        self._rejoin_reason = None
        self._entered = True
        self._told = None
        self.counters.rebalancing(now_ms)
        self._send_heartbeat(self.JOIN, JOIN_EPOCH, now_ms)

    def _beat(self, now_ms: int) -> None:
        self._send_heartbeat(self.BEAT, self.generation, now_ms)

    def _send_heartbeat(self, name: str, epoch: int, now_ms: int) -> None:
        telling = self._to_tell()
        request = heartbeat(
            self.settings,
            self.member_id,
            epoch,
            telling,
            self._told,
            rack=self._rack,
            server_assignor=self._server_assignor,
        )
        # Without an answer nobody knows what the coordinator has been told: next time it is told everything.
        self._telling, self._told = telling, None
        timeout_ms = self.settings.heartbeat_timeout_ms
        self.link.send(name, request, self._beaten, self._identity(), now_ms, timeout_ms)
        self._beat_at_ms = now_ms + timeout_ms

    def _beaten(self, response: Any, pending: Pending, now_ms: int) -> None:
        code = response.error_code
        if code in COORDINATOR_GONE:
            self._refused_answer(code, pending, now_ms)
            return
        if code != ErrorCode.NONE:
            said = response.error_message or ""
            self._refused(pending.name, code, pending.generation, pending.member_id, now_ms, said)
            return
        self.link.well()
        self.contact(pending.sent_ms)
        self._refusals = 0
        self._told = self._telling
        self.generation = response.member_epoch
        if self.held is not None and self.held.generation != self.generation:
            self.held = replace(self.held, generation=self.generation)
        if self.phase is Phase.JOINING:
            self.phase = Phase.STABLE
            self._beat_after_ms = FOLLOW_UP_MS
            self._empty_until_ms = now_ms + response.heartbeat_interval_ms
        else:
            self.counters.beaten(pending.sent_ms, now_ms)
        if response.assignment is not None:
            self._beat_after_ms = FOLLOW_UP_MS
            self._target = target(response.assignment)
            self._find_unnamed()
            if self._target != self._partitions and self.counters.began_ms is None:
                self.counters.began_ms = now_ms
            rebalance_ms = self.settings.rebalance_timeout_ms
            self._give_up_until_ms = pending.sent_ms + rebalance_ms - self.settings.hold_margin_ms
        # What is assigned first may be but a part, until others have given up the rest: it asks soon again.
        after_ms = min(self._beat_after_ms, response.heartbeat_interval_ms)
        self._beat_at_ms, self._beat_after_ms = now_ms + after_ms, 2 * after_ms
        self._reconcile(now_ms)
        self._tell_news(now_ms)

    def _tell_news(self, now_ms: int) -> None:
        """What is to be told is told at once; if a heartbeat is on its way, after that."""
        if self._told is not None and self._told != self._to_tell():
            self._beat_at_ms = now_ms

    def _to_tell(self) -> Told:
        return Told(tuple(self._topics()), self._partitions)

    def _rebalance(self, reason: str, hold_until_ms: int, now_ms: int) -> None:
        """The coordinator is told what this member subscribes to now, and asked what is new, soon again
        too: it may compute a little later."""
        self._beat_at_ms, self._beat_after_ms = now_ms, FOLLOW_UP_MS

    # ---- from the assignment to what is owned ----

    def _reconcile(self, now_ms: int) -> None:
        """Give up what is not assigned any more; without such take what is new, as far as its topics have
        names."""
        if self.phase is not Phase.STABLE or self._target is None:
            return
        if gone := self._partitions - self._target:
            self._giving_up = gone
            moving = assignment_bytes(gone, self._names)
            self._revoke("it moves to another member", self._give_up_until_ms, now_ms, moving)
            return
        if self._told is None:
            # The heartbeat on its way may say that they are not here: then the coordinator gives them away.
            return
        present = frozenset(one for one in self._target if one[0] in self._names)
        if present != self._partitions or (self.held is None and self._has_none(now_ms)):
            self._take(present, now_ms)

    def _has_none(self, now_ms: int) -> bool:
        """Whether the first assignment is really empty, and not only until others have given up something."""
        return not self._target and now_ms >= self._empty_until_ms

    def _take(self, present: Partitions, now_ms: int) -> None:
        before = self.held
        self._partitions = present
        self.held = self.last_held = self._assigned()
        if before is None:
            self.kept_since = self.generation
        self.counters.rebalanced(now_ms)
        text = f"in epoch {self.generation} with {len(present)} partitions, member id {self.member_id}"
        self._say(logging.INFO, text)
        self._actions.append(TellAssigned(self.held))
        self._tell_news(now_ms)

    def _assigned(self) -> Assigned:
        protocol = self._server_assignor or ""
        assignment = assignment_bytes(self._partitions, self._names)
        return Assigned(self.generation, self.member_id, "", protocol, assignment)

    def _given_up(self, now_ms: int) -> None:
        moved, self._moving = self._moving, b""
        gone, self._giving_up = self._giving_up, NO_PARTITIONS
        self.counters.revoked(now_ms)
        if not moved or self.held is None:
            self._partitions, self.held = NO_PARTITIONS, None
            self.counters.assigned_ms = None
            self._start_leaving(now_ms)
            return
        self._partitions -= gone
        self.held = left = self._assigned()
        self._shrunk()
        self.phase = Phase.STABLE
        self._tell_news(now_ms)
        if self._leave_reason is None:
            self._reconcile(now_ms)
        if self.held is left:
            self.counters.rebalanced(now_ms)
            self._actions.append(TellAssigned(left))
        if self._leave_reason is not None:
            self._revoke(f"leaving: {self._leave_reason}", self.hold_until_ms, now_ms)

    def _lose(self, reason: str, now_ms: int) -> None:
        super()._lose(reason, now_ms)
        self._target = None
        self._unnamed = frozenset()
        self._partitions = self._giving_up = NO_PARTITIONS

    # ---- names of topics ----

    def _find_unnamed(self) -> None:
        self._unnamed = frozenset(one for one, _ in self._target or () if one not in self._names)

    def _wants_names(self) -> bool:
        settled = self.phase in (Phase.STABLE, Phase.REVOKING)
        return settled and bool(self._unnamed) and not self.link.waits_for("Metadata")

    def _named_topics(self, response: Any, _pending: Pending, now_ms: int) -> None:
        before = self._unnamed
        needed = {topic_id for topic_id, _ in self._partitions | (self._target or NO_PARTITIONS)}
        self._names = {one: name for one, name in (self._names | named(response)).items() if one in needed}
        self._find_unnamed()
        if self._unnamed:
            if self._unnamed == before != self._complained_of:
                self._complained_of = before
                self._say(logging.WARNING, f"{len(before)} assigned topics have no name yet: they wait")
            self._ask_names_later(now_ms)
        else:
            self._names_backoff.reset()
        self._reconcile(now_ms)

    def _ask_names_later(self, now_ms: int) -> None:
        self._names_at_ms = now_ms + self._names_backoff.next_ms()

    # ---- refusals ----

    def _repeat(self, name: str, why: str, now_ms: int) -> None:
        if name == self.JOIN:
            self._to_join(why, now_ms)
        elif name == self.BEAT:
            self._beat_at_ms = now_ms

    def _refused(
        self, name: str, code: int, generation: int, member_id: str, now_ms: int, said: str = ""
    ) -> None:
        if (generation, member_id) != self._identity() or self.phase in OVER:
            return  # About an earlier life: the present one is not touched.
        why = f"{name} was answered {error_name(code)}" + (f" ({said})" if said else "")
        joins = name == self.JOIN
        self.counters.failed_rebalances += joins
        if code in FENCED or (code == ErrorCode.GROUP_ID_NOT_FOUND and not joins):
            silent_s = (now_ms - self._contact_ms) / 1000
            self._lose(f"removed: {why}, {silent_s:.1f} s after the last contact", now_ms)
            self.generation = -1
            self._entered = False
            self._join_again(why, now_ms)
        elif code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            if why != self.link.trouble:
                self._say(logging.WARNING, why)
            if joins:
                self._to_join(why, now_ms)
            self._beat_at_ms = now_ms
            self.link.retry_later(why, now_ms)
        else:
            self._end(self._fatal(code, name, said), now_ms)

    def _fatal(self, code: int, request: str, said: str) -> MembershipError:
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return self._unsupported(said or error_name(code))
        known: dict[int, tuple[type[MembershipError], str]] = {
            ErrorCode.UNSUPPORTED_ASSIGNOR: (
                MembershipUnsupportedError,
                f"the coordinator has no assignor {self._server_assignor!r} (its group.consumer.assignors)",
            ),
            ErrorCode.GROUP_ID_NOT_FOUND: (
                InconsistentGroupProtocolError,
                f"its members are of another protocol, and cannot be moved to this one: use {CLASSIC}",
            ),
            ErrorCode.UNRELEASED_INSTANCE_ID: (
                UnreleasedInstanceIdError,
                f"another member has the group instance id {self.settings.group_instance_id!r}: end it, or "
                "wait until its session timeout is over",
            ),
        }
        error = fatal_error(request, self.settings.group_id, code)
        if code in known:
            kind, why = known[code]
            error = kind(f"group {self.settings.group_id!r}: {why} ({error_name(code)})", code)
        return type(error)(f"{error}: {said}", code) if said else error

    def _unsupported(self, why: str) -> MembershipUnsupportedError:
        text = f"the coordinator does not serve the consumer protocol (KIP-848): use {CLASSIC}"
        code = ErrorCode.UNSUPPORTED_VERSION
        return MembershipUnsupportedError(f"group {self.settings.group_id!r}: {text} ({why})", code)

    # ---- leaving ----

    def _stop_joining(self) -> None:
        """Nothing is parked. What is on its way is in front of the leaving, on the same connection."""
        self.link.forget(self.JOIN, self.BEAT)

    def _goes_unsaid(self, silently: bool) -> bool:
        """A static member says that it will be back, where a classic one says nothing."""
        return not self._entered

    def _send_leave(self, now_ms: int) -> None:
        static, resting = self.settings.group_instance_id is not None, self._leave_reason is None
        back = static and (self._leave_silently or resting)
        request = leave(self.settings, self.member_id, STATIC_LEAVE_EPOCH if back else LEAVE_EPOCH)
        timeout_ms = self.settings.leave_timeout_ms
        self.link.send(self.LEAVE, request, self._left, self._identity(), now_ms, timeout_ms)

    def _left(self, response: Any, pending: Pending, now_ms: int) -> None:
        code = response.error_code
        if code in COORDINATOR_GONE:
            self.link.lost("leaving found it gone", pending.found, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.link.retry_later("the coordinator is loading", now_ms)
        else:
            if code not in GONE_ANYWAY:
                self._say(logging.WARNING, f"{pending.name} was answered {error_name(code)}")
            self._parted(now_ms)

    def _parted(self, now_ms: int) -> None:
        self._entered = False
        super()._parted(now_ms)

    def _rest(self, now_ms: int) -> None:
        member_id = self.member_id
        super()._rest(now_ms)
        self.member_id = member_id
