"""How a member leaves its group: for good, or until its application makes progress again."""

from __future__ import annotations

import logging
from typing import Any

from ringleader.clients.errors import InternalError, MembershipError
from ringleader.clients.group.actions import Disconnect
from ringleader.clients.group.link import Pending
from ringleader.clients.group.requests import leave_group
from ringleader.clients.group.requests import left_group as left_code
from ringleader.clients.group.state import ASLEEP, OVER, MemberState, Phase
from ringleader.protocol.errors import ErrorCode, error_name

COORDINATOR_GONE = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
LEAST_LEAVE_WAIT_MS = 1_000
POLL_EXPIRED = "consumer poll timeout has expired"
"""As the Java consumer says it, so that it is found in the journal of any coordinator."""


class Parting(MemberState):
    """The part of the machine that leaves."""

    def _advance(self, now_ms: int) -> None:
        raise NotImplementedError

    # ---- for good ----

    def leave(self, reason: str, now_ms: int, timeout_ms: int = 0, silently: bool = False) -> None:
        """Give up the assignment, then leave, all within `timeout_ms`. A part of it is kept for the
        coordinator's answer, which has 1 s at least, though nobody may wait for it, and `leave_timeout_ms` at
        most. Silently: without LeaveGroup, as a static member that will be back does."""
        if self.phase in OVER or self._leave_reason is not None:
            return
        self._leave_reason, self._leave_silently = reason, silently
        self._leave_by_ms = now_ms + max(timeout_ms, LEAST_LEAVE_WAIT_MS)
        hold_ms = timeout_ms - min(LEAST_LEAVE_WAIT_MS, timeout_ms // 4)
        hold_until_ms = now_ms + min(hold_ms, self.settings.rebalance_timeout_ms)
        if self.phase is Phase.REVOKING:
            self.hold_until_ms = min(self.hold_until_ms, hold_until_ms)
        elif self.phase is Phase.RESTING:
            self._over()
        elif self.phase is Phase.LEAVING:  # for lack of progress: now for good
            self._leave_until_ms = min(self._leave_until_ms, self._answer_by(now_ms))
        elif self.held is not None:
            # A parked JoinGroup is not cut off before the work in hand has ended: the coordinator may have
            # counted it, and the group would go on to a generation that this member does not know of.
            if not (self.phase is Phase.JOINING and self.link.waits_for(self.JOIN)):
                self._stop_joining()
            self._revoke(f"leaving: {reason}", hold_until_ms, now_ms)
        else:
            self._start_leaving(now_ms)
        self._advance(now_ms)

    def broke(self, cause: BaseException, now_ms: int) -> None:
        """This library's own code raised `cause`: trying again would raise it again."""
        if self.phase in OVER:
            return
        text = (
            f"group {self.settings.group_id!r}: an error in this library has ended the membership: {cause!r}"
        )
        self._leave_failed(InternalError(text), cause, "an internal error", now_ms)
        self._advance(now_ms)

    def fell(self, cause: BaseException) -> None:
        """As `broke`, with nothing more to be done by this machine."""
        if self.error is None:
            self.error = self._internal_error(cause)
            self.error.__cause__ = cause
        self.phase, self.held = Phase.FAILED, None

    def _internal_error(self, cause: BaseException) -> InternalError:
        text = f"group {self.settings.group_id!r}: an error in this library has ended the membership"
        return InternalError(f"{text}: {cause!r}")

    def _leave_failed(self, failure: MembershipError, cause: BaseException, reason: str, now_ms: int) -> None:
        """What the membership cannot do without raised `cause`: it ends, and others go on."""
        failure.__cause__ = cause
        self._lose(str(failure), now_ms)
        self.error = failure
        self._leave_reason = reason
        self._start_leaving(now_ms)

    def _stop_joining(self) -> None:
        parked = self.phase in (Phase.JOINING, Phase.SYNCING) or self.link.waits_for(self.JOIN)
        if parked and self.link.coordinator is not None:
            self._actions.append(Disconnect(self.link.coordinator))
        self.link.forget(self.JOIN, "DescribeGroups", "SyncGroup", self.BEAT)

    def _start_leaving(self, now_ms: int) -> None:
        asks_for_id = self.phase is Phase.JOINING and not self.member_id and self.link.waits_for(self.JOIN)
        if asks_for_id and not self._leave_silently:
            # Its answer brings a member id, and the group would wait a whole session for whoever has it.
            self._round += 1
            self.phase = Phase.LEAVING
            self._leave_until_ms = min(self._answer_by(now_ms), now_ms + LEAST_LEAVE_WAIT_MS)
            return
        self._stop_joining()
        self._round += 1
        self.phase = Phase.LEAVING
        self._leave_until_ms = self._answer_by(now_ms)
        if self._goes_unsaid(self._leave_silently):
            self._parted(now_ms)

    def _answer_by(self, now_ms: int) -> int:
        """How long the answer to LeaveGroup is waited for."""
        until_ms = now_ms + self.settings.leave_timeout_ms
        return until_ms if self._leave_by_ms is None else min(until_ms, self._leave_by_ms)

    def _goes_unsaid(self, silently: bool) -> bool:
        """Whether nothing is sent to leave."""
        return silently or not self.member_id

    def _named(self, member_id: str, now_ms: int) -> None:
        """What the first join came to, after this member had begun to leave."""
        self.member_id = member_id
        self._leave_until_ms = self._answer_by(now_ms)
        if not member_id:
            self._parted(now_ms)

    def _counted(self, response: Any, now_ms: int) -> None:
        """A member on its way out was counted in: it belongs to that generation until its work has ended."""
        self.link.well()
        self._contact_ms = now_ms
        self.generation, self.member_id = response.generation_id, response.member_id
        self._beat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        if not self.cooperates(response.protocol_name):
            self._lose(f"the group has gone over to {response.protocol_name}, which does not ask", now_ms)
            self._start_leaving(now_ms)

    def _send_leave(self, now_ms: int) -> None:
        settings = self.settings
        reason = self.rest_reason or self._leave_reason or ""
        request = leave_group(settings.group_id, self.member_id, settings.group_instance_id, reason)
        timeout_ms = settings.leave_timeout_ms
        self.link.send(self.LEAVE, request, self._left, self._identity(), now_ms, timeout_ms)

    def _left(self, response: Any, pending: Pending, now_ms: int) -> None:
        code = left_code(response)
        if code in COORDINATOR_GONE:
            self.link.lost("LeaveGroup found it gone", pending.found, now_ms)
        elif code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.link.retry_later("the coordinator is loading", now_ms)
        else:
            if code is None:
                self._say(logging.WARNING, "the answer to LeaveGroup is not about this member alone")
            elif code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
                self._say(logging.WARNING, f"LeaveGroup was answered {error_name(code)}")
            else:
                self.link.well()
            self._parted(now_ms)

    def _parted(self, now_ms: int) -> None:
        if self.rest_reason and self._leave_reason is None:
            self._rest(now_ms)
        else:
            self._over()

    # ---- until the application makes progress ----

    def polled(self, now_ms: int) -> None:
        """The application makes progress: a member that left for lack of it joins again."""
        self.poll.polled(now_ms)
        self._advance(now_ms)

    def _let_poll_clock_run(self, now_ms: int) -> None:
        working = self.held is not None and self.phase not in (Phase.REVOKING, Phase.LEAVING, *ASLEEP)
        self.poll.let_run(working, now_ms)

    def _expire(self, polled_ms: int | None, now_ms: int) -> None:
        """No progress for the whole interval: others shall have its partitions (KIP-62). A static member says
        nothing, as the Java consumer's does: its session timeout decides (KIP-345)."""
        interval_ms, idle_ms = self.poll.interval_ms or 0, self.poll.idle_ms(now_ms)
        self._rest_polled_ms = polled_ms
        self.rest_reason = (
            f"{POLL_EXPIRED}: no progress for {idle_ms / 1000:.1f} s, "
            f"max_poll_interval_ms is {interval_ms / 1000:g} s"
        )
        self.counters.poll_expirations += 1
        self._lose(self.rest_reason, now_ms)
        self._stop_joining()
        self._round += 1
        self._rejoin_reason = None
        self.phase = Phase.LEAVING
        self._leave_until_ms = self._answer_by(now_ms)
        if self._goes_unsaid(self.settings.group_instance_id is not None):
            self._rest(now_ms)

    def _rest(self, now_ms: int) -> None:
        self.link.forget_all()
        self.member_id, self.generation = "", -1
        self.phase = Phase.RESTING
        self._say(logging.WARNING, "out of the group: joining again when the application makes progress")

    def _wake(self, now_ms: int) -> None:
        """Progress again?"""
        if self.poll.polled_ms == self._rest_polled_ms:
            return
        self.rest_reason = ""
        self.poll.restart(now_ms)
        self._prepared = False
        self.phase, self._join_reason = Phase.UNJOINED, "the application makes progress again"
        self._say(logging.INFO, f"joining again: {self._join_reason}")
