"""Offsets that belong to a transaction: TxnOffsetCommit (v0 to v3) and the end of the transaction (KIP-98,
KIP-447).

They are stored under keys of their own, one for each producer, so that they never overwrite what is
committed. The end of the transaction turns them into committed offsets, or drops them. It is idempotent, so a
long one is done in steps, each an append of its own, with other work in between; until the last step the rest
counts as open, and the producer begins nothing new. No marker has to be kept, for what is left of it after a
crash is ended again.

A commit outside of the transaction that came later wins, and so does the later of two transactions, whichever
ends first (Kafka compares log positions; here the order in which records take effect, which is the order of
the log).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.commit import RECORD_OVERHEAD_BYTES, PreparedCommit, write
from ringleader.coordinator.groups.core import STORE_FULL, Core, Part
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import check_unknown_group, got_later
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.machine import Records, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_NONE = int(ErrorCode.NONE)


class TransactionalOffsets(Part):
    """Handles transactional offsets for one shard."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.ending: set[int] = set()
        """Producers of which a transaction has ended in part."""

    def commit(
        self, request: TxnOffsetCommitRequest, prepared: PreparedCommit, ticket: Ticket, now_ms: int
    ) -> TxnOffsetCommitResponse | None:
        """The answer; None while it waits for the records. That the transaction is open, and that the group
        belongs to it, has been checked before, in the same turn."""
        error = self._check(request, ticket.api_version) or (self.core.full and STORE_FULL)
        commit_ms = self.core.unix_time.stamp_ms(now_ms)
        return write(self.core, prepared, ticket, error, commit_ms, now_ms)

    def _check(self, request: TxnOffsetCommitRequest, version: int) -> ErrorCode | int:
        """As for OffsetCommit, but who says nothing about a member is welcome in any state: producers did so
        before KIP-447. The session of a member is not kept alive by it."""
        generation = request.generation_id_or_member_epoch
        group = self.core.groups.get(request.group_id)
        if request.producer_id in self.ending and not self.core.refusal:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # every producer asks again after this one
        if self.core.refusal or group is None or group.is_absent:
            return check_unknown_group(self.core, request.group_id, generation, version)
        if generation < 0 and not request.member_id and request.group_instance_id is None:
            return _NONE
        if group.consumer is not None and group.consumer.members:
            return self._check_consumer(group.consumer, request)
        if generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        return _NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    def _check_consumer(self, consumer: ConsumerGroup, request: TxnOffsetCommitRequest) -> ErrorCode | int:
        """Of a member of the consumer protocol, whose epoch stands for the generation. Producers do not know
        STALE_MEMBER_EPOCH; one partition that is not the member's refuses all of them."""
        member, epoch = consumer.members.get(request.member_id), request.generation_id_or_member_epoch
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        current = member.current
        if epoch == current.epoch:
            return _NONE
        too_late = epoch > current.epoch or any(
            got_later(self.core.topics, current, epoch, topic.name, one.partition_index)
            for topic in request.topics
            for one in topic.partitions
        )
        return ErrorCode.ILLEGAL_GENERATION if too_late else _NONE

    # ---- the end ----

    def end(self, producer_id: int, committed: bool, ticket: Ticket, now_ms: int) -> int | None:
        """A producer's transaction has ended (KIP-98): its offsets in all groups here are the committed ones,
        or are dropped. An error code, after which the caller asks again; None: it comes as an `Answer` when
        all of it is durable. Nothing to end is no error."""
        core = self.core
        error = core.refusal or (core.full and STORE_FULL)
        return error or core.answer_after(self._steps(producer_id, committed), ticket, now_ms)

    def _steps(self, producer_id: int, committed: bool) -> Iterator[None]:
        core = self.core
        while producer_id in core.transactional:
            left = core.settings.offsets_per_step
            for group_id in list(core.transactional[producer_id]):
                left = self._end_some(core.groups[group_id], producer_id, committed, left)
                if left <= 0:
                    break
            if producer_id in core.transactional:
                self.ending.add(producer_id)
                yield
        self.ending.discard(producer_id)

    def _end_some(self, group: Group, producer_id: int, committed: bool, left: int) -> int:
        """End up to `left` offsets of a group, in one append that the store does not cut; how many more may
        be."""
        keys: list[records.Key] = []
        content: Records = []
        room = self.core.settings.group_max_record_bytes
        for topic, partition in islice(group.uncommitted[producer_id], left):
            changes = _committed(group, producer_id, topic, partition) if committed else []
            changes += ((key, None) for key in records.uncommitted_keys(group, topic, partition, producer_id))
            of_one: Records = [(records.encode_key(key), value) for key, value in changes]
            room -= sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in of_one)
            if content and room < 0:
                left = 0
                break
            keys += (key for key, _ in changes)
            content += of_one
            left -= 1
        self.core.write_offsets(group, content, keys)
        return left


def _committed(
    group: Group, producer_id: int, topic: str, partition: int
) -> list[tuple[records.Key, bytes | None]]:
    """The offset as committed, unless a later one is; and which of other open transactions came later still:
    their records stay where they are, before the markers of their transactions."""
    there = group.open_at[topic, partition]
    own = there[producer_id]
    if own.superseded:
        return []
    place = group.group_id, topic, partition
    changes: list[tuple[records.Key, bytes | None]] = [((records.OFFSET, *place, -1), own.value)]
    for other_id, other in there.items():
        if other.order > own.order and not other.superseded:
            changes.append(((records.UNCOMMITTED_LATER, *place, other_id), b""))
    return changes
