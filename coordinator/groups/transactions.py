"""Offsets that belong to a transaction: TxnOffsetCommit (v0 to v3) and the end of the transaction (KIP-98,
KIP-447).

They are stored under keys of their own, one for each producer, so that they never overwrite what is
committed. The end of the transaction turns them into committed offsets, or drops them, in one append for each
group: there is no state in between, and no marker has to be kept.

A commit outside of the transaction that came later wins, and so does the later of two transactions, whichever
ends first (Kafka compares log positions; here the order in which records take effect, which is the order of
the log).
"""

from __future__ import annotations

from collections.abc import Callable

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Call, Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import check_unknown_group, take_in
from ringleader.coordinator.groups.outbox import Records, Ticket
from ringleader.coordinator.groups.replies import txn_commit_answer
from ringleader.coordinator.groups.states import State
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_NONE = int(ErrorCode.NONE)


class Transactions:
    """Handles transactional offsets for one shard."""

    __slots__ = ("core",)

    def __init__(self, core: Core) -> None:
        self.core = core

    def commit(
        self, request: TxnOffsetCommitRequest, ticket: Ticket, now_ms: int
    ) -> TxnOffsetCommitResponse | None:
        """The answer; None while it waits for the records. That the transaction is open, and that the group
        belongs to it, has been checked before."""
        core = self.core
        group = core.groups.get(request.group_id)
        error = self._check(group, request, ticket.api_version)
        if error:
            return txn_commit_answer(request, int(error))
        group = group or core.find_or_add(request.group_id)
        if group is None:
            return txn_commit_answer(request, int(ErrorCode.POLICY_VIOLATION))
        content: Records = []

        def key(topic: str, partition: int) -> bytes:
            return records.pending_key(request.group_id, topic, partition, request.producer_id)

        topics = take_in(
            core,
            request.topics,
            key,
            core.wall_ms(now_ms),
            -1,
            content,
            TxnOffsetCommitResponseTopic,
            TxnOffsetCommitResponsePartition,
        )
        response = TxnOffsetCommitResponse(topics=topics)
        if not content:
            core.forget_if_void(group)
            return response
        core.in_transaction(request.producer_id, group.group_id)

        def decided(error: int, now_ms: int) -> None:
            core.answer(ticket, txn_commit_answer(request, error) if error else response)

        core.write(group, content, decided)
        return None

    def _check(self, group: Group | None, request: TxnOffsetCommitRequest, version: int) -> ErrorCode | int:
        """As for OffsetCommit, but who says nothing about a member is welcome in any state: producers did so
        before KIP-447. The session of a member is not kept alive by it."""
        generation = request.generation_id_or_member_epoch
        if group is None or group.is_void:
            return check_unknown_group(self.core, request.group_id, generation, version)
        if generation < 0 and group.state is State.EMPTY:
            return _NONE
        if generation < 0 and not request.member_id and request.group_instance_id is None:
            return _NONE
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        return _NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    # ---- the end ----

    def end(self, producer_id: int, committed: bool, done: Callable[[int], None], now_ms: int) -> None:
        """The producer's transaction has ended: its offsets in all groups here count, or are dropped.
        `done(error code)` when that is durable everywhere; after an error it may be asked for again."""
        core = self.core
        group_ids = list(core.transactional.get(producer_id, ()))
        left, worst = len(group_ids), _NONE
        if not group_ids:
            done(_NONE)
            return

        def one_decided(error: int) -> None:
            nonlocal left, worst
            left -= 1
            worst = worst or error
            if left == 0:
                done(worst)

        for group_id in group_ids:
            ending = _Ending(core, group_id, producer_id, committed, one_decided)
            core.submit(core.groups.get(group_id), Call(True, ending.run, one_decided), now_ms)


class _Ending:
    """The end of a transaction for one group. It goes alone: what was committed before it is durable, what
    comes after waits for it."""

    __slots__ = ("committed", "core", "done", "group_id", "producer_id")

    def __init__(
        self, core: Core, group_id: str, producer_id: int, committed: bool, done: Callable[[int], None]
    ) -> None:
        self.core = core
        self.group_id = group_id
        self.producer_id = producer_id
        self.committed = committed
        self.done = done

    def run(self, now_ms: int) -> None:
        """Write what becomes of the offsets."""
        core = self.core
        group = core.groups.get(self.group_id)
        pending = {} if group is None else group.uncommitted.get(self.producer_id, {})
        if group is None or not pending:
            core.transaction_over(self.producer_id, self.group_id)
            self.done(_NONE)
            return
        content: Records = []
        for topic, partition in pending:
            if self.committed:
                content += self._committed(group, topic, partition)
            content.append((records.pending_key(self.group_id, topic, partition, self.producer_id), None))
        group.exclusive = True

        def decided(error: int, now_ms: int) -> None:
            group.exclusive = False
            if not error:
                core.transaction_over(self.producer_id, self.group_id)
            self.done(error)

        core.write(group, content, decided)

    def _committed(self, group: Group, topic: str, partition: int) -> Records:
        """The offset as committed, unless a later one is; then those of other open transactions that came
        later still, so that they stay the later ones in the log too."""
        own = group.uncommitted[self.producer_id][topic, partition]
        if own.superseded:
            return []
        content: Records = [(records.offset_key(self.group_id, topic, partition), own.value)]
        others = []
        for producer_id, table in group.uncommitted.items():
            other = table.get((topic, partition))
            if other is not None and other.order > own.order and not other.superseded:
                others.append((other.order, producer_id, other.value))
        for _, producer_id, value in sorted(others):
            content.append((records.pending_key(self.group_id, topic, partition, producer_id), value))
        return content
