"""One partition of __consumer_offsets as a machine: requests and time in, records and answers out.

Deterministic: the same calls give the same outcome, byte for byte. How a caller drives it:

- Every call that takes `now_ms` gets the same monotonic clock; calls never go back in time.
- After any call look at `dirty`; if it is set, `drain()` once per loop turn: write `appends` (in order, each
  all or none), send `answers`, log `journal` and `notices`. When the records are durable: `appended`, then
  drain again.
- One timer for `next_deadline()`; when it is due (it may be already): `tick`.
- The machine is never entered twice at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ringleader.coordinator.groups.admin import Admin
from ringleader.coordinator.groups.cleanup import Cleanup
from ringleader.coordinator.groups.core import Call, Core, Phase
from ringleader.coordinator.groups.deadlines import Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.join import Joins
from ringleader.coordinator.groups.leave import Leaves
from ringleader.coordinator.groups.life import restore, unload
from ringleader.coordinator.groups.member import Member, PendingMember
from ringleader.coordinator.groups.offsets import Offsets, phase_error
from ringleader.coordinator.groups.outbox import Answer, Append, Outbox, Ticket
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.replies import error_reply
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.sync import Syncs
from ringleader.coordinator.groups.transactions import Transactions
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)

__all__ = ["Answer", "Append", "GroupSettings", "Outbox", "Shard", "Ticket"]


class Shard:
    """One partition of __consumer_offsets: loading until `loaded` is called, serving until `unload`.

    `ids(prefix)` gives a fresh member id `<prefix>-<random UUID>`; it is injected so that runs can be
    repeated.
    """

    __slots__ = (
        "_admin",
        "_cleanup",
        "_core",
        "_groups",
        "_handlers",
        "_offsets",
        "_rebalances",
        "_transactions",
        "partition",
    )

    def __init__(self, partition: int, settings: GroupSettings, ids: Callable[[str], str]) -> None:
        self.partition = partition
        core = self._core = Core(settings, ids)
        self._groups = core.groups
        self._rebalances = rebalances = Rebalances(core)
        self._offsets = Offsets(core)
        self._cleanup = Cleanup(core)
        self._transactions = Transactions(core)
        self._admin = Admin(core)
        self._handlers: dict[type, Callable[[Any, Ticket, int], Any]] = {
            JoinGroupRequest: Joins(core, rebalances).join,
            SyncGroupRequest: Syncs(core, rebalances).sync,
            LeaveGroupRequest: Leaves(core, rebalances).leave,
            OffsetCommitRequest: self._offsets.commit,
            TxnOffsetCommitRequest: self._transactions.commit,
        }

    @property
    def dirty(self) -> bool:
        """Whether `drain()` has anything. Cheap: look at it after every call."""
        return self._core.dirty

    # ---- life ----

    def replay(self, key: bytes, value: bytes | None) -> None:
        """One record of the log, in order, while loading. Unknown key types are skipped, as Kafka's loader
        does. Raises `MalformedError` for a record that cannot be read."""
        self._core.apply(key, value)

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """All records were replayed: start to serve. Every member's session timer starts full. `wall_ms`:
        Unix time."""
        core = self._core
        core.wall_difference_ms = wall_ms - now_ms
        core.phase = Phase.SERVING
        self._groups.update(core.loading)
        core.loading = {}
        for group in list(self._groups.values()):
            restore(group, core, self._rebalances, now_ms)
            core.forget_if_void(group)  # deleted again further on in the log
        self._cleanup.begin(now_ms)

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        """Tell what Unix time is now. Commit stamps are `now_ms` plus the difference told last, so that the
        machine needs no clock; call it now and then (each timer turn is fine). Timers never use it."""
        self._core.wall_difference_ms = wall_ms - now_ms

    def unload(self, now_ms: int) -> None:
        """The partition moves away or the node stops: parked requests and those waiting for records get
        NOT_COORDINATOR (drain once more to send them), all groups and timers go, later calls answer
        NOT_COORDINATOR."""
        unload(self._core, self._rebalances, now_ms)

    # ---- requests ----

    def handle(self, request: Any, ticket: Ticket, now_ms: int) -> Any | None:
        """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, TxnOffsetCommit or OffsetDelete request
        (all of one group).

        Returns the response message if it is free to go now; None if it comes later as an `Answer` from
        `drain()`.

        What the server does before: authorization; group.id null; SyncGroup v5+ without protocol type or name
        (INCONSISTENT_GROUP_PROTOCOL, before authorization); topic checks; for TxnOffsetCommit, that the
        transaction is open and has the group. The three that name topics get only the topics and partitions
        that passed the server's checks (existence, authorization), and answer for exactly these, in the same
        order; the server merges the entries that it refused itself. With nothing left it does not call. A
        group-level error of a commit is on every partition; of OffsetDelete in `error_code`, with no topics.
        """
        kind = type(request)
        handler = self._handlers.get(kind)
        if handler is not None:
            group = self._groups.get(request.group_id)
            if group is not None and (group.exclusive or group.blocked):
                self._queue(group, request, ticket, handler)
                return None
            return handler(request, ticket, now_ms)
        if kind is HeartbeatRequest:
            code = self.heartbeat(
                request.group_id, request.generation_id, request.member_id, request.group_instance_id, now_ms
            )
            return HeartbeatResponse(error_code=code)
        if kind is OffsetDeleteRequest:
            return self._offsets.delete(request, ticket, now_ms)
        raise TypeError(f"no group request: {kind.__name__}")

    def _queue(
        self, group: Group, request: Any, ticket: Ticket, handler: Callable[[Any, Ticket, int], Any]
    ) -> None:
        """A deletion is on its way: the request waits until that is decided."""
        core = self._core
        if isinstance(request, TxnOffsetCommitRequest):
            # The end of its transaction must not pass it by.
            core.in_transaction(request.producer_id, request.group_id)

        def run(now_ms: int) -> None:
            response = handler(request, ticket, now_ms)
            if response is not None:
                core.answer(ticket, response)

        def refuse(error: int) -> None:
            core.answer(ticket, error_reply(request, ticket.api_version, error))

        group.blocked.append(Call(False, run, refuse))

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> int:
        """The hot path of Heartbeat: the error code only. Never writes, never parks (KIP-62 session
        timers)."""
        group = self._groups.get(group_id)
        # The stable case first: no writes, no heap, one store. A deadline only moves later here, since a
        # member's session was armed with this timeout when its join phase completed.
        if group is not None and generation == group.generation and not group.heartbeat_code:
            member = group.members.get(member_id)
            if member is not None and (instance_id is None or instance_id == member.group_instance_id):
                member.due_ms = now_ms + member.session_timeout_ms
                return 0
        return self._heartbeat_otherwise(group, group_id, generation, member_id, instance_id, now_ms)

    def _heartbeat_otherwise(
        self,
        group: Group | None,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        now_ms: int,
    ) -> int:
        if not group_id:
            return int(ErrorCode.INVALID_GROUP_ID)
        if self._core.phase is not Phase.SERVING:
            # While loading nobody is to be alarmed: a blind success (Kafka behaviour).
            loading = self._core.phase is Phase.LOADING
            return int(ErrorCode.NONE if loading else ErrorCode.NOT_COORDINATOR)
        if group is None:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        error = group.check_member(member_id, instance_id)
        if error:
            return error
        if generation != group.generation:
            return int(ErrorCode.ILLEGAL_GENERATION)
        self._core.arm_session(group.members[member_id], now_ms)
        return group.heartbeat_code

    def commit_one(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        topic: str,
        partition: int,
        offset: int,
        leader_epoch: int,
        ticket: Ticket,
        now_ms: int,
    ) -> bool:
        """The hot path of OffsetCommit: one partition, no metadata, no expiry, a member of a stable group.
        True: the error code comes as `Answer(ticket, code)`. False: the case is not that plain and
        nothing was done; `handle` the request."""
        return self._offsets.commit_one(
            group_id,
            generation,
            member_id,
            instance_id,
            topic,
            partition,
            offset,
            leader_epoch,
            ticket,
            now_ms,
        )

    def fetch_offsets(
        self,
        group_id: str,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        require_stable: bool,
        ticket: Ticket,
        now_ms: int,
    ) -> Any | None:
        """OffsetFetch for one group: an `OffsetFetchResponseGroup` (the v8+ form; the server turns it into
        the older forms, fills in `topic_id` for v10 and reports topics that it refused itself).

        `topics`: (name, partitions) pairs, or None for all committed offsets. Unknown group, topic or
        partition: offset
        -1 without error. With `require_stable` (KIP-447) and commits of this group on their way to the log:
        None, and the group comes as `Answer(ticket, OffsetFetchResponseGroup)`; for a request of several
        groups hand in a ticket for each part.
        """
        return self._offsets.fetch(group_id, topics, require_stable, ticket, now_ms)

    def own_offsets(self, group_id: str) -> int | None:
        """How many offsets a group has that shares something else than topics, by its protocol type; None for
        all other groups, and for those that are not there."""
        group = self._groups.get(group_id)
        if group is None or group.protocol_type in (None, "", CONSUMER_TYPE):
            return None
        return sum(map(len, group.offsets.values()))

    def describe(self, group_id: str, version: int) -> Any:
        """One `DescribeGroupsResponseDescribedGroup`. Missing: state Dead, and from v6 on
        GROUP_ID_NOT_FOUND."""
        return self._admin.describe(group_id, version)

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Any]:
        """All groups as `ListGroupsResponseListedGroup`, in order of creation. Filters (KIP-518, KIP-848):
        compared without case; no filter = all. While loading: raises
        KafkaError(COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._admin.list_groups(states, types)

    def delete_group(self, group_id: str, ticket: Ticket, now_ms: int) -> Any | None:
        """DeleteGroups for one group: a `DeleteGroupsResponseDeletableGroupResult`, or None and it comes as
        `Answer(ticket, DeleteGroupsResponseDeletableGroupResult)` when the deletion is durable."""
        return self._admin.delete(group_id, ticket, now_ms)

    def end_transaction(
        self, producer_id: int, committed: bool, done: Callable[[int], None], now_ms: int
    ) -> None:
        """A producer's transaction has ended (KIP-98): its offsets in this shard become the committed ones,
        or go. `done(error code)` is called once, perhaps at once, when that is durable; after an error ask
        again. Nothing to end is no error."""
        error = phase_error(self._core.phase)
        if error:
            done(error)
        else:
            self._transactions.end(producer_id, committed, done, now_ms)

    def topic_deleted(self, topic: str, now_ms: int) -> None:
        """A topic is gone: forget its offsets in all groups (tombstones go out with the next drain)."""
        self._cleanup.topic_deleted(topic, now_ms)

    def expire_member(self, group_id: str, member_id: str, now_ms: int) -> None:
        """End a member's session now, whatever it does. Raises KeyError for a member that there is not."""
        member = self._groups[group_id].members[member_id]
        self._rebalances.expire(member, now_ms)

    def ticket_closed(self, ticket: Ticket) -> None:
        """The ticket's connection is gone. A parked request of it is dropped; the membership is not touched
        (Kafka ties no membership to connections). Answers that wait for records may still come out: ignore
        them."""
        member = self._core.parked.pop(ticket, None)
        if member is None:
            return
        if member.join_ticket is ticket:
            member.join_ticket = None
        elif member.sync_ticket is ticket:
            member.sync_ticket = None

    # ---- time and storage ----

    def tick(self, now_ms: int) -> None:
        """Everything that is due, in order of deadline, then of arming."""
        rebalances = self._rebalances
        for deadline in self._core.deadlines.due(now_ms):
            match deadline.kind:
                case Kind.MEMBER:
                    assert isinstance(deadline, Member)
                    rebalances.session_fired(deadline, now_ms)
                case Kind.PENDING:
                    assert isinstance(deadline, PendingMember)
                    rebalances.pending_fired(deadline, now_ms)
                case Kind.JOIN:
                    rebalances.join_timer_fired(deadline, now_ms)
                case Kind.SYNC:
                    rebalances.sync_timer_fired(deadline, now_ms)
                case Kind.SAVE:
                    rebalances.save_timer_fired(deadline, now_ms)
                case Kind.CLEANUP:
                    self._cleanup.fired(deadline, now_ms)

    def next_deadline(self) -> int | None:
        """When to call `tick` next (may be early, never late; may be in the past); None: nothing to wait
        for."""
        return self._core.deadlines.next_ms()

    def drain(self) -> Outbox:
        """Hand over everything that is to be done, and forget it."""
        return self._core.take_outbox()

    def appended(self, position: int, now_ms: int) -> None:
        """All appends up to and including `position` (but for those reported as failed) are durable: they
        take effect now, their answers are in the next `drain`."""
        self._core.appended(position, now_ms)

    def append_failed(self, position: int, error: int, now_ms: int) -> None:
        """The append at `position` is certainly not in the log and never will be. `error`: a Kafka error
        code, as Kafka's log would give it (KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE ...); it
        is mapped for the clients as Kafka maps it. Only the operation that asked for it is undone."""
        self._core.append_failed(position, error, now_ms)
