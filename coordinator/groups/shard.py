"""One partition of __consumer_offsets as a machine: requests and time in, records and answers out.

Deterministic: the same calls give the same outcome, byte for byte. How a caller drives it says
`coordinator.machine.Machine`; its events are `JournalEntry`, `Notice` and `PatternsAsked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from ringleader.coordinator.consumer_groups.group import Regex
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.groups import offset_deletion
from ringleader.coordinator.groups.admin import AdminHandler
from ringleader.coordinator.groups.commit import CommitRequest, PreparedCommit, at_once, prepare
from ringleader.coordinator.groups.configs import GroupConfigs
from ringleader.coordinator.groups.consumer import ConsumerHandler
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.join import JoinHandler
from ringleader.coordinator.groups.leave import LeaveHandler
from ringleader.coordinator.groups.memory import MemoryTotal
from ringleader.coordinator.groups.mixed import MixedHandler
from ringleader.coordinator.groups.offset_deletion import PreparedDeletion
from ringleader.coordinator.groups.offsets import OffsetHandler
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.retention import Retention
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.states import HEARTBEAT_CODES, NOT_YET
from ringleader.coordinator.groups.steady import stay
from ringleader.coordinator.groups.sync import SyncHandler
from ringleader.coordinator.groups.transactions import TransactionalOffsets
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.coordinator.journal.entries import Cause
from ringleader.coordinator.machine import NOTHING, Drained, Phase, Ticket
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol import messages
from ringleader.protocol.errors import ErrorCode

DUE_AT_A_TIME = 50
"""Deadlines that one `tick` sees to: each may begin, extend or end a rebalance."""


class GroupFigures(NamedTuple):
    """A group in numbers."""

    group_id: str
    state: str
    generation: int
    members: int
    offsets: int
    """Partitions with a committed offset."""


class Shard:
    """One partition of __consumer_offsets: loading until `loaded` is called, serving until `unload`.

    `ids(prefix)` gives a fresh member id `<prefix>-<random UUID>`; it is injected so that runs can be
    repeated.
    """

    def __init__(
        self,
        partition: int,
        settings: GroupSettings,
        ids: Callable[[str], str],
        unix_time: UnixTime | None = None,
        *,
        confirmed_reads: bool = False,
        memory: MemoryTotal | None = None,
        topics: Topics | None = None,
        configs: GroupConfigs | None = None,
    ) -> None:
        """`unix_time`: what is known of it already, if anything. `confirmed_reads`: see
        `Storage.confirmed_reads` and `core`. `memory`: of all shards of the process; None: of this one
        alone. `topics`: those of the cluster, `configs`: those of single groups, both for groups of the
        consumer protocol; they change between calls only."""
        self.partition = partition
        core = self._core = Core(settings, ids, unix_time, confirmed_reads, memory, topics, configs)
        self._out = core.out
        self._groups = core.groups
        self._rebalances = rebalances = Rebalances(core)
        self._retention = Retention(core)
        self._confirming = GroupDeadline(None, Kind.CONFIRM)
        consumer = self._consumer = ConsumerHandler(rebalances)
        mixed = self._mixed = MixedHandler(consumer)
        admin, offsets = AdminHandler(core), OffsetHandler(core)
        transactions = self.transactions = TransactionalOffsets(core)
        # Requests that are not about one group, or are not asked in Kafka's own form.
        self.commit_one = offsets.commit_one
        self.fetch_offsets = offsets.fetch
        self.end_transaction = transactions.end
        self.topic_deleted = self._retention.topic_deleted
        self.describe = admin.describe
        self.describe_consumer = consumer.describe
        self.keep_alive = consumer.keep_alive
        self.stay = partial(stay, core)
        """The hot path of ConsumerGroupHeartbeat, as `heartbeat`; see `steady`."""
        self._patterns = consumer.patterns
        self.list_groups = admin.list_groups
        self.delete_group = admin.delete
        self._handlers: dict[type, Callable[[Any, Ticket, int], Any]] = {
            messages.JoinGroupRequest: JoinHandler(rebalances, mixed).join,
            messages.SyncGroupRequest: SyncHandler(rebalances, mixed).sync,
            messages.HeartbeatRequest: self._heartbeat,
            messages.LeaveGroupRequest: LeaveHandler(rebalances, mixed).leave,
            messages.OffsetCommitRequest: self._commit,
            messages.OffsetDeleteRequest: self._delete_offsets,
            messages.TxnOffsetCommitRequest: self._commit,
            messages.ConsumerGroupHeartbeatRequest: consumer.heartbeat,
        }
        self._commits: dict[type, Callable[[Any, PreparedCommit, Ticket, int], Any]] = {
            messages.OffsetCommitRequest: offsets.commit,
            messages.TxnOffsetCommitRequest: transactions.commit,
        }
        self._timers: dict[Kind, Callable[[Any, int], None]] = {
            Kind.MEMBER: rebalances.session_fired,
            Kind.GIVEN_OUT: rebalances.given_out_fired,
            Kind.JOIN: rebalances.join_timer_fired,
            Kind.SYNC: rebalances.sync_timer_fired,
            Kind.CLEANUP: self._retention.fired,
            Kind.CONFIRM: self._confirm,
            Kind.CONSUMER_SESSION: consumer.session_fired,
            Kind.CONSUMER_REVOCATION: consumer.revocation_fired,
            Kind.CONSUMER_JOIN: consumer.join_fired,
            Kind.CONSUMER_SYNC: consumer.sync_fired,
            Kind.CONSUMER_LEADER: consumer.targets.leader_fired,
            Kind.JOURNAL: core.journal_fired,
            Kind.WORK: core.work_fired,
        }

    @property
    def dirty(self) -> bool:
        """See `Machine`."""
        return self._out.dirty

    @property
    def changes(self) -> int:
        """See `Machine`."""
        return self._core.changes

    @property
    def phase(self) -> Phase:
        """Where it is in its life."""
        return self._core.phase

    @property
    def refusal(self) -> int:
        """Its answer to most requests while it does not serve; 0 when it serves."""
        return self._core.refusal

    @property
    def activity(self) -> tuple[int, int]:
        """How many deadlines it watches (about one for each member), and how often it has written so far."""
        return len(self._core.deadlines), self._out.emitted

    @property
    def has_consumer_members(self) -> bool:
        """Whether any group has members of the consumer protocol."""
        return any(group.consumer is not None and group.consumer.members for group in self._groups.values())

    # ---- life ----

    def replay(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """See `Machine`."""
        self._core.replay(rows)

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """See `Machine`. Every group is in its last synced generation, every member's session timer starts
        full. Joins in progress, given-out member ids and a generation that was not synced are lost, as in
        Kafka. Other than in Kafka the next generation is above every number that may have been used."""
        core = self._core
        core.unix_time.tell(now_ms, wall_ms)
        core.phase = Phase.SERVING
        for group in list(self._groups.values()):
            if group.synced is not None:
                group.follow_record()
            group.last_generation = max(group.reserved_generation, group.generation)
            for member in group.members.values():
                core.arm_session(member, now_ms)
            self._consumer.loaded(group, now_ms)
            if len(group.members) > core.settings.group_max_size:
                self._rebalances.start(group, Cause.GROUP_TOO_LARGE, "", "", now_ms)
            elif group.synced is not None and group.synced.members and group.synced.leader is None:
                self._rebalances.start(group, Cause.DOWNGRADED, "", "", now_ms)
            core.forget_if_absent(group)  # deleted again further on in the log
        self._retention.begin(now_ms)
        if self._out.confirms:
            core.arm(self._confirming, now_ms + core.settings.confirm_interval_ms)

    def _confirm(self, deadline: GroupDeadline, now_ms: int) -> None:
        """Ask the log whether the shard is still ours, if any member could be misled."""
        if self.has_consumer_members or any(group.members for group in self._groups.values()):
            self._out.confirmed(NOTHING)
        self._core.arm(deadline, now_ms + self._core.settings.confirm_interval_ms)

    def finish_journal(self, now_ms: int) -> None:
        """Tell of every rebalance whose followers are still awaited: the shard will be no more."""
        for group in self._groups.values():
            self._core.reports.finish_rebalance(group, now_ms)
            self._core.epochs.finish_all(group, now_ms)

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        """See `Machine`."""
        self._core.unix_time.tell(now_ms, wall_ms)

    def set_full(self, full: bool, now_ms: int) -> None:
        """See `Machine`. Heartbeats and reads go on; timers wait."""
        core = self._core
        if full and not core.full:
            self._rebalances.store_is_full(now_ms)
        elif core.full and not full:  # who was refused all the time could not keep its session alive
            core.arm_sessions(now_ms)
        core.full = full

    def abandon(self) -> list[Any]:
        """See `Machine`."""
        return self._out.abandon()

    def unload(self) -> None:
        """See `Machine`."""
        self.give_back()
        self._core.unload()

    def give_back(self) -> None:
        """It is not to be counted any more what its groups hold: its life is over, or another one takes its
        place."""
        self._core.memory.give_back()

    # ---- requests ----

    def handle(self, request: Any, ticket: Ticket, now_ms: int) -> Any | None:
        """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, TxnOffsetCommit or OffsetDelete request
        (all of one group).

        Returns the response message if it is free to go now; None if it comes later as an `Answer` from
        `drain()`.

        The server does before: authorization; group.id null; SyncGroup v5+ without protocol type or name
        (INCONSISTENT_GROUP_PROTOCOL, before authorization); topic checks; for TxnOffsetCommit, that the
        transaction is open and has the group. The three that name topics get only the topics and partitions
        that passed the server's checks (existence, authorization), and answer for exactly these, in the same
        order; the server merges the entries that it refused itself. With nothing left it does not call. A
        group-level error of a commit is on every partition; of OffsetDelete in `error_code`, with no topics.
        """
        response = self._handlers[type(request)](request, ticket, now_ms)
        if self._core.epochs.pending:
            self._core.epochs.settle(ticket, now_ms)
        self._core.look_at_log(now_ms)
        return response

    def commit(self, prepared: PreparedCommit, ticket: Ticket, now_ms: int) -> Any | None:
        """`handle` for an OffsetCommit or TxnOffsetCommit request that was made ready before."""
        request = prepared.request
        response = self._commits[type(request)](request, prepared, ticket, now_ms)
        self._core.look_at_log(now_ms)
        return response

    def _commit(self, request: CommitRequest, ticket: Ticket, now_ms: int) -> Any | None:
        return self.commit(at_once(prepare(request, self._core.settings)), ticket, now_ms)

    def delete_offsets(
        self, prepared: PreparedDeletion, ticket: Ticket, now_ms: int
    ) -> messages.OffsetDeleteResponse | None:
        """`handle` for an OffsetDelete request that was made ready before."""
        response = offset_deletion.delete(self._core, prepared, ticket, now_ms)
        self._core.look_at_log(now_ms)
        return response

    def _delete_offsets(
        self, request: messages.OffsetDeleteRequest, ticket: Ticket, now_ms: int
    ) -> messages.OffsetDeleteResponse | None:
        return self.delete_offsets(at_once(offset_deletion.prepare(request)), ticket, now_ms)

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> int:
        """The hot path of Heartbeat: the error code only, or `NOT_YET`: `handle` the request. Never writes
        a group's record (KIP-62 session timers)."""
        group = self._groups.get(group_id)
        # The stable case first: no writes, no heap, one store. A deadline only moves later here, since a
        # member's session was armed with this timeout when its join phase completed. While the group's record
        # is on its way to the log, it is not `quick`.
        if group is not None and generation == group.generation and group.quick:
            member = group.members.get(member_id)
            if member is not None and (instance_id is None or instance_id == member.group_instance_id):
                member.due_ms = now_ms + member.session_timeout_ms
                return 0
        if group is not None and group.position > self._out.durable:
            return NOT_YET
        code = self._heartbeat_otherwise(group, group_id, generation, member_id, instance_id, now_ms)
        if code and self._out.confirms and not self._core.refusal:
            return NOT_YET
        if code == ErrorCode.FENCED_INSTANCE_ID:
            request = messages.HeartbeatRequest(group_id, generation, member_id, instance_id)
            self._core.reports.fenced_instance(request, None, now_ms)
        return code

    def _heartbeat(
        self, request: messages.HeartbeatRequest, ticket: Ticket, now_ms: int
    ) -> messages.HeartbeatResponse | None:
        named = request.group_id, request.generation_id, request.member_id, request.group_instance_id
        code = self._heartbeat_otherwise(self._groups.get(request.group_id), *named, now_ms)
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._core.reports.fenced_instance(request, ticket, now_ms)
        response = messages.HeartbeatResponse(error_code=code)
        position = self._core.position_of(request.group_id)
        if not code and position <= self._out.durable:
            return response
        return self._core.reply(ticket, response, position)

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
        if group is None or group.is_absent:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.consumer is not None:
            return self._mixed.heartbeat(group, generation, member_id, instance_id, now_ms)
        error = group.check_member(member_id, instance_id)
        if error:
            return error
        if generation != group.generation:
            return int(ErrorCode.ILLEGAL_GENERATION)
        self._core.arm_session(group.members[member_id], now_ms)
        return HEARTBEAT_CODES[group.state]

    def committed_partitions(self, group_id: str) -> list[tuple[str, list[int]]]:
        """Topics and partitions for which a group has offsets, perhaps not yet durable: to ask for them in
        more than one go."""
        group = self._groups.get(group_id)
        return [] if group is None else [(topic, list(some)) for topic, some in group.offsets.items()]

    def group_ids(self) -> Iterable[str]:
        """All groups, those too that are about to be forgotten."""
        return self._groups.keys()

    def figures(self) -> list[GroupFigures]:
        """All groups in numbers, perhaps not durable ones: for measuring."""
        return [
            GroupFigures(
                group.group_id,
                group.state.value,
                group.generation,
                len(group.members),
                sum(map(len, group.offsets.values())),
            )
            for group in self._groups.values()
            if not group.is_absent
        ]

    def own_offsets(self, group_id: str) -> int | None:
        """How many offsets a group has that shares something else than topics, by its protocol type; None for
        all other groups, and for those that are not there."""
        group = self._groups.get(group_id)
        if group is None or group.protocol_type in (None, "", CONSUMER_TYPE):
            return None
        return sum(map(len, group.offsets.values()))

    def open_producers(self) -> list[int]:
        """Producer ids that have offsets of an open transaction here."""
        return list(self._core.transactional)

    def open_offsets(self, producer_id: int) -> set[tuple[str, str, int]]:
        """Group, topic and partition of what that producer has here of an open transaction."""
        return {
            (group_id, *place)
            for group_id in self._core.transactional.get(producer_id, ())
            for place in self._groups[group_id].uncommitted[producer_id]
        }

    def resolved(self, group_id: str, number: int, found: Mapping[str, Regex], now_ms: int) -> None:
        """The answer to `PatternsAsked`; see `Patterns.resolved`."""
        self._patterns.resolved(group_id, number, found, now_ms)
        if self._core.epochs.pending:
            self._core.epochs.settle(None, now_ms)
        self._core.look_at_log(now_ms)

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
        """See `Machine`. In order of deadline, then of arming."""
        core = self._core
        for deadline in islice(core.deadlines.due(now_ms), DUE_AT_A_TIME):
            if core.full:  # what is due may end in a record
                core.arm(deadline, now_ms + core.settings.group_full_retry_ms)
            else:
                self._timers[deadline.kind](deadline, now_ms)
                if core.epochs.pending:
                    core.epochs.settle(None, now_ms)
                if deadline.kind is Kind.WORK:
                    break  # there may be more of it, due at once
        core.look_at_log(now_ms)

    def next_deadline(self) -> int | None:
        """See `Machine`."""
        return self._core.deadlines.next_ms()

    def drain(self) -> Drained:
        """See `Machine`."""
        return self._core.drain()

    def durable(self, position: int, now_ms: int) -> None:
        """See `Machine`."""
        self._core.durable(position, now_ms)
