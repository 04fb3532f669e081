"""Offsets that belong to a transaction: TxnOffsetCommit (v0 to v3) and the end of the transaction (KIP-98,
KIP-447).

They are stored under keys of their own, one for each producer, so that they never overwrite what is
committed. The end of the transaction turns them into committed offsets, or drops them, in one append for each
group; no marker has to be kept, for what is left of it after a crash is ended again.

A commit outside of the transaction that came later wins, and so does the later of two transactions, whichever
ends first (Kafka compares log positions; here the order in which records take effect, which is the order of
the log).
"""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import STORE_FULL, Part
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import check_unknown_group, take_in
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.machine import Records, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_NONE = int(ErrorCode.NONE)


class TransactionalOffsets(Part):
    """Handles transactional offsets for one shard."""

    def commit(
        self, request: TxnOffsetCommitRequest, ticket: Ticket, now_ms: int
    ) -> TxnOffsetCommitResponse | None:
        """The answer; None while it waits for the records. That the transaction is open, and that the group
        belongs to it, has been checked before."""

        def key(topic: str, partition: int) -> bytes:
            return records.pending_key(request.group_id, topic, partition, request.producer_id)

        return take_in(
            self.core,
            request,
            ticket,
            self._check(request, ticket.api_version) or (self.core.full and STORE_FULL),
            key,
            self.core.unix_time.stamp_ms(now_ms),
            -1,
            (TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition),
            now_ms,
        )

    def _check(self, request: TxnOffsetCommitRequest, version: int) -> ErrorCode | int:
        """As for OffsetCommit, but who says nothing about a member is welcome in any state: producers did so
        before KIP-447. The session of a member is not kept alive by it."""
        generation = request.generation_id_or_member_epoch
        group = self.core.groups.get(request.group_id)
        if self.core.refusal or group is None or group.is_void:
            return check_unknown_group(self.core, request.group_id, generation, version)
        if generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        if generation < 0 and not request.member_id and request.group_instance_id is None:
            return _NONE
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        return _NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    # ---- the end ----

    def end(self, producer_id: int, committed: bool, ticket: Ticket) -> int | None:
        """A producer's transaction has ended (KIP-98): its offsets in all groups here are the committed ones,
        or go. An error code, after which to ask again; None: it comes as an `Answer` when that is durable.
        Nothing to end is no error."""
        core = self.core
        error = core.refusal or (core.full and STORE_FULL)
        if error:
            return error
        for group_id in list(core.transactional.get(producer_id, ())):
            group = core.groups[group_id]
            content: Records = []
            for topic, partition in group.uncommitted[producer_id]:
                if committed:
                    content += _committed(group, producer_id, topic, partition)
                content.append((records.pending_key(group_id, topic, partition, producer_id), None))
            core.write_offsets(group, content)
        # Asked again, it may be that the records of the first time are on their way.
        return core.reply(ticket, _NONE, core.out.emitted)


def _committed(group: Group, producer_id: int, topic: str, partition: int) -> Records:
    """The offset as committed, unless a later one is; then those of other open transactions that came later
    still, so that they stay the later ones in the log too."""
    own = group.uncommitted[producer_id][topic, partition]
    if own.superseded:
        return []
    content: Records = [(records.offset_key(group.group_id, topic, partition), own.value)]
    others = []
    for other_id, table in group.uncommitted.items():
        other = table.get((topic, partition))
        if other is not None and other.order > own.order and not other.superseded:
            others.append((other.order, other_id, other.value))
    for _, other_id, value in sorted(others):
        content.append((records.pending_key(group.group_id, topic, partition, other_id), value))
    return content
