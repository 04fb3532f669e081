"""The reports of the groups to the journal and to the operator's log; each leaves when it is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ringleader.coordinator.deadlines import DeadlineHeap
from ringleader.coordinator.groups.deadlines import GroupDeadline
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.progress import Progress
from ringleader.coordinator.journal.entries import EpochEntry, FirstCommit, Incident, IncidentKind, Outcome
from ringleader.coordinator.machine import NOTHING, Notice, Outbox, Ticket
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode

FINISH_TIMEOUT_MS = 10_000
"""A rebalance whose followers have not come for their shares after this time is reported as it is."""


_REPORTED_OF_JOINS = frozenset(
    (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""Refusals of members that join by the consumer protocol that are journalled."""
_REPORTED = {
    int(ErrorCode.FENCED_INSTANCE_ID): IncidentKind.INSTANCE_FENCED,
    int(ErrorCode.FENCED_MEMBER_EPOCH): IncidentKind.EPOCH_REFUSED,
}
"""Likewise of all its members."""


class Reports:
    """Reports of one shard."""

    def __init__(
        self,
        out: Outbox,
        groups: Mapping[str, Group],
        deadlines: DeadlineHeap[GroupDeadline],
        unix_time: UnixTime,
        is_serving: Callable[[], bool],
    ) -> None:
        """The parts of the shard's core."""
        self._out = out
        self._groups = groups
        self._deadlines = deadlines
        self._unix_time = unix_time
        self._is_serving = is_serving

    def notice(self, group: Group, member_id: str, text: str, now_ms: int) -> None:
        """A line for the operator's log about something that belongs to normal operation."""
        notice = Notice(group.group_id, member_id, text, True)
        self._out.report(lambda _: notice, group.position, now_ms)

    def end_rebalance(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Hand over the journal entry, if a generation came of the rebalance, when that is durable."""
        progress, group.progress = group.progress, None
        if progress is None or progress.joined_ms < 0:
            return
        progress.ended(group, outcome)
        group.finishing = progress
        if outcome is Outcome.STABLE:
            group.no_commit_since = progress
            if group.owing_sync:
                self._deadlines.arm(progress, now_ms + FINISH_TIMEOUT_MS)
                return
        self.finish_rebalance(group, now_ms)

    def finish_rebalance(self, group: Group, now_ms: int) -> None:
        """The last member has its share, or is not waited for any longer."""
        progress, group.finishing = group.finishing, None
        if progress is None:
            return
        self._deadlines.cancel(progress)
        entry = progress.entry(group, now_ms, self._unix_time.difference_ms)
        answered = progress.position <= self._out.durable
        self._out.report(
            (lambda _: entry) if answered else partial(entry.until, now_ms), progress.position, now_ms
        )

    def finish_overdue(self, progress: Progress, now_ms: int) -> None:
        """The followers of a rebalance did not come in time."""
        group = self._groups.get(progress.group_id or "")
        if group is not None and group.finishing is progress:
            self.finish_rebalance(group, now_ms)

    def first_commit(self, group: Group, member_id: str, now_ms: int, position: int) -> None:
        """The first commit since the last assignment was stored; `position`: its own."""
        progress, group.no_commit_since = group.no_commit_since, None
        if progress is None:
            return
        progress.first_commit_ms = now_ms
        if progress is not group.finishing:
            unix_ms, after_ms = self._unix_time.now_ms(now_ms), now_ms - progress.leader_synced_ms
            first = FirstCommit(group.group_id, progress.generation, member_id, unix_ms, after_ms)
            self._out.report(lambda _: first, position, now_ms)

    def epoch_entry(self, group: Group, entry: EpochEntry, now_ms: int) -> None:
        """Hand over the journal entry of a group of the consumer protocol, when all of it is durable."""
        if self._is_serving():
            self._out.report(lambda _: entry, group.position, now_ms)

    def incident(
        self, group_id: str, kind: IncidentKind, ticket: Ticket | None, now_ms: int, **more: Any
    ) -> None:
        """Something that an operator asks about; `ticket`: of its request; `more`: see `Incident`."""
        if not self._is_serving():
            return
        if ticket is not None:
            more = {"client_id": ticket.client_id or "", "client_host": ticket.client_host, **more}
            more["principal"] = ticket.principal
        incident = Incident(group_id, kind, self._unix_time.now_ms(now_ms), **more)
        group = self._groups.get(group_id)
        position = NOTHING if group is None else max(group.position, group.offsets_position)
        self._out.report(lambda _: incident, position, now_ms)

    def fenced_instance(self, request: Any, ticket: Ticket | None, now_ms: int) -> None:
        """A request of a static member whose place another process has was refused."""
        self.incident(
            request.group_id,
            IncidentKind.INSTANCE_FENCED,
            ticket,
            now_ms,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            error=int(ErrorCode.FENCED_INSTANCE_ID),
        )

    def stale_epoch(self, request: Any, ticket: Ticket, now_ms: int) -> None:
        """A commit of another member epoch was refused."""
        self.incident(
            request.group_id,
            IncidentKind.EPOCH_REFUSED,
            ticket,
            now_ms,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            error=int(ErrorCode.STALE_MEMBER_EPOCH),
        )

    def refused_heartbeat(self, request: Any, ticket: Ticket, error: int, now_ms: int) -> None:
        """A heartbeat of the consumer protocol was refused: the journal has it if an operator may need it."""
        joins = request.member_epoch == 0 and error in _REPORTED_OF_JOINS
        kind = IncidentKind.JOIN_REFUSED if joins else _REPORTED.get(error)
        if kind is not None:
            self.incident(
                request.group_id,
                kind,
                ticket,
                now_ms,
                member_id=request.member_id,
                group_instance_id=request.instance_id,
                error=error,
            )
