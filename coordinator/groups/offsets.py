"""OffsetCommit (v2 to v10) and OffsetFetch: who may commit when, and what is read back.

Commits are accepted from members of the current generation, and without a member only into an empty group:
that is what keeps a consumer that lost its partitions from moving their positions (Kafka
OffsetMetadataManager behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import ConsumerMember, Current
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.commit import PreparedCommit, write
from ringleader.coordinator.groups.core import STORE_FULL, Core, Part
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.coordinator.journal.entries import IncidentKind, OffsetChange
from ringleader.coordinator.machine import NOTHING, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ringleader.protocol.schema import ZERO_UUID

_NONE = int(ErrorCode.NONE)
_FIRST_WITH_GROUP_ID_NOT_FOUND = 9
_FIRST_WITH_EPOCHS = 9
"""Members of the consumer protocol have to commit with this version or a later one."""

INCIDENT_PARTITIONS = 1_000
"""The most partitions that one journal entry names whose offsets an operator reset or deleted."""

Wanted = Sequence[tuple[str, Sequence[int]]]
"""(topic, partitions) pairs."""


class OffsetHandler(Part):
    """Handles committed offsets for one shard."""

    # ---- OffsetCommit ----

    def commit(
        self, request: OffsetCommitRequest, prepared: PreparedCommit, ticket: Ticket, now_ms: int
    ) -> OffsetCommitResponse | None:
        """The answer; None while it waits for the records."""
        commit_ms = self.core.unix_time.stamp_ms(now_ms)
        error = self._check_commit(request, ticket.api_version, now_ms)
        if not error:
            error = self._check_old(request, prepared)
        reset = () if error or prepared.too_large else self._reset(request)
        response = write(self.core, prepared, ticket, error, commit_ms, now_ms)
        # Last, for until something is written nothing is to change.
        group = self.core.groups.get(request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if member is not None and not error:  # when a full store has room, all sessions start afresh
            self.core.arm_session(member, now_ms)
        if reset:
            kind = IncidentKind.OFFSETS_RESET
            self.core.reports.incident(request.group_id, kind, ticket, now_ms, partitions=reset)
        elif error == ErrorCode.FENCED_INSTANCE_ID:
            self.core.reports.fenced_instance(request, ticket, now_ms)
        elif error == ErrorCode.STALE_MEMBER_EPOCH:
            self.core.reports.stale_epoch(request, ticket, now_ms)
        return response

    def _reset(self, request: OffsetCommitRequest) -> tuple[OffsetChange, ...]:
        """The changes by a commit without a member in a group that had members once: an operator made
        them."""
        group = self.core.groups.get(request.group_id)
        if request.generation_id_or_member_epoch >= 0 or group is None or not group.protocol_type:
            return ()
        changes = (
            (topic.name, one.partition_index, _offset_of(group, topic.name, one), one.committed_offset)
            for topic in request.topics
            for one in topic.partitions
        )
        return tuple(islice(changes, INCIDENT_PARTITIONS))

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
        topic_id: bytes = ZERO_UUID,
    ) -> bool:
        """The hot path of OffsetCommit: one partition, no metadata, no expiry, a member of a stable group.
        True: the error code comes as `Answer(ticket, code)`. False: the case is not that plain and
        nothing was done; `commit` the request."""
        core = self.core
        group = core.groups.get(group_id)
        if group is None or group.state is not GroupState.STABLE or generation != group.generation:
            return False
        member = group.members.get(member_id)
        if member is None or core.full:
            return False
        if instance_id is not None and instance_id != member.group_instance_id:
            return False
        key = records.offset_key(group_id, topic, partition)
        stamp_ms = core.unix_time.stamp_ms(now_ms)
        value = records.offset_value(offset, leader_epoch, "", stamp_ms, -1, topic_id)
        core.arm_session(member, now_ms)
        group.committed_ms = stamp_ms
        position = core.write_offsets(group, [(key, value)])
        if group.no_commit_since is not None:
            core.reports.first_commit(group, member_id, now_ms, position)
        core.out.answer(ticket, _NONE, position)
        core.look_at_log(now_ms)
        return True

    def _check_commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | int:
        """Group-level validation in Kafka's order. A commit of a member keeps its session alive, as a
        heartbeat."""
        generation = request.generation_id_or_member_epoch
        group = self.core.groups.get(request.group_id)
        if self.core.refusal or group is None or group.is_absent:
            return check_unknown_group(self.core, request.group_id, generation, version)
        if group.consumer is not None and group.consumer.members:
            return self._check_consumer(group.consumer, request, version)
        if generation < 0 and group.state is GroupState.EMPTY:
            # An operator's tool, or a consumer without group management; ids are not looked at.
            return STORE_FULL if self.core.full else _NONE
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.COMPLETING:
            # Its partitions may be another's already (KAFKA-14201). While preparing, commits are welcome:
            # that is how consumers commit what they are about to hand over.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return STORE_FULL if self.core.full else _NONE

    def _check_consumer(
        self, consumer: ConsumerGroup, request: OffsetCommitRequest, version: int
    ) -> ErrorCode | int:
        """Likewise in a group of the consumer protocol. A commit of an older epoch is checked for each of its
        partitions: see `_check_old`."""
        member = consumer.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if version < _FIRST_WITH_EPOCHS and member.subscription.classic is None:
            return ErrorCode.UNSUPPORTED_VERSION
        if request.generation_id_or_member_epoch > member.current.epoch:
            return _other_epoch(member)
        return STORE_FULL if self.core.full else _NONE

    def _check_old(self, request: OffsetCommitRequest, prepared: PreparedCommit) -> ErrorCode:
        """A member's commit of an older epoch counts if it has had all its partitions since then (KIP-1251):
        it may have crossed the answer that gave it the new epoch."""
        group = self.core.groups.get(request.group_id)
        consumer = None if group is None else group.consumer
        member = None if consumer is None else consumer.members.get(request.member_id)
        epoch = request.generation_id_or_member_epoch
        if member is None or epoch >= member.current.epoch:
            return ErrorCode.NONE
        is_stale = partial(got_later, self.core.topics, member.current, epoch)
        too_late = any(is_stale(topic, partition) for _, _, topic, partition, _ in prepared.keys)
        return _other_epoch(member) if too_late else ErrorCode.NONE

    # ---- OffsetFetch ----

    def fetch(
        self,
        group_id: str,
        wanted: Wanted | None,
        require_stable: bool,
        ticket: Ticket,
        member_id: str | None = None,
        member_epoch: int = -1,
        ids: Mapping[str, bytes] | None = None,
    ) -> OffsetFetchResponseGroup | None:
        """OffsetFetch for one group, in the v8+ form (the server turns it into the older forms, fills in
        `topic_id` for v10 and reports topics that it refused itself); None: it comes as an `Answer`, when
        the commits that it shows are durable.

        `wanted` None: all committed offsets. Unknown group, topic or partition: offset -1 without error.
        `require_stable`: those of open transactions are UNSTABLE_OFFSET_COMMIT (KIP-447). `member_id` and
        `member_epoch` (v9): those of a group of the consumer protocol are answered to a member at its epoch.
        `ids` (v10): of topics that are asked for by id. An offset that was stored for another id, of a topic
        that had the name before, is not shown.
        """
        core = self.core
        if core.refusal:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=core.refusal)
        group = core.groups.get(group_id)
        position = NOTHING if group is None else group.offsets_position
        if group is not None and group.consumer is not None and (member_id is not None or member_epoch >= 0):
            position = max(position, group.position)
            error = _check_reader(group.consumer, member_id, member_epoch)
            if error:
                refused = OffsetFetchResponseGroup(group_id=group_id, error_code=int(error))
                return core.reply(ticket, refused, position)
        offsets = group.offsets if group is not None else {}
        if wanted is None:
            wanted = [(topic, list(partitions)) for topic, partitions in offsets.items()]
        topics = []
        for topic, partitions in wanted:
            known = offsets.get(topic, {})
            topic_id = ZERO_UUID if ids is None else ids.get(topic, ZERO_UUID)
            found = [_fetched(partition, known.get(partition), topic_id) for partition in partitions]
            if require_stable and group is not None and group.uncommitted:
                found = [
                    _unstable(one) if group.is_unstable(topic, one.partition_index) else one for one in found
                ]
            topics.append(OffsetFetchResponseTopics(name=topic, partitions=found))
        response = OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=_NONE)
        return core.reply(ticket, response, position)


def _check_reader(consumer: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """The error of an OffsetFetch that names a member (ConsumerGroup.validateOffsetFetch)."""
    member = None if member_id is None else consumer.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.current.epoch else _other_epoch(member)


def got_later(topics: Topics, current: Current, epoch: int, name: str, partition: int) -> bool:
    """Whether a member got the partition after that epoch only, or does not have it: what it commits for it
    under that epoch does not count (KIP-1251)."""
    topic = topics.named(name)
    since = None if topic is None else current.assignment_epoch(topic.topic_id, partition)
    return since is None or since > epoch


def _other_epoch(member: ConsumerMember) -> ErrorCode:
    """For a commit or a fetch of another epoch than the member's own."""
    is_classic = member.subscription.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def check_unknown_group(core: Core, group_id: str, generation: int, version: int) -> ErrorCode | int:
    """The error code of a commit to a group that does not exist; 0: it makes a simple group, offsets only."""
    if core.refusal:
        return core.refusal
    if len(group_id.encode()) > records.MAX_STRING_BYTES:
        return ErrorCode.INVALID_GROUP_ID
    if generation < 0:
        return STORE_FULL if core.full else _NONE
    if version >= _FIRST_WITH_GROUP_ID_NOT_FOUND:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION  # what older clients know how to act on


def is_subscribed(group: Group, topic: str) -> bool:
    """Whether a member of a consumer group reads the topic; an unreadable subscription protects every
    topic."""
    if group.consumer is not None:
        return group.consumer.subscribes(topic)
    if group.state is GroupState.EMPTY or group.protocol_type != CONSUMER_TYPE:
        return False
    return group.subscribed is None or topic in group.subscribed


def _offset_of(group: Group, topic: str, entry: Any) -> int | None:
    """The committed offset of the partition that an entry of a request is for."""
    value = group.offsets.get(topic, {}).get(entry.partition_index)
    return None if value is None else records.decode_offset_value(value).offset


def _unstable(found: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartitions:
    """KIP-447: an open transaction may change it, so a caller that wants to be sure asks again."""
    return OffsetFetchResponsePartitions(
        partition_index=found.partition_index,
        committed_offset=-1,
        committed_leader_epoch=-1,
        metadata="",
        error_code=int(ErrorCode.UNSTABLE_OFFSET_COMMIT),
    )


def _fetched(partition: int, value: bytes | None, topic_id: bytes) -> OffsetFetchResponsePartitions:
    offset = None if value is None else records.decode_offset_value(value)
    if offset is None or (ZERO_UUID not in (topic_id, offset.topic_id) and topic_id != offset.topic_id):
        # Never an error: clients take any code here for fatal.
        return OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=-1, committed_leader_epoch=-1, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )
