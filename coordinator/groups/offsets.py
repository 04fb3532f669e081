"""OffsetCommit (v2 to v10), OffsetFetch and OffsetDelete: who may commit when, and what is read back.

Commits are accepted from members of the current generation, and without a member only into an empty group:
that is what keeps a consumer that lost its partitions from moving their positions (Kafka
OffsetMetadataManager behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import CommittedOffset
from ringleader.coordinator.groups.core import Call, Core, Phase
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.outbox import Records, Ticket
from ringleader.coordinator.groups.replies import commit_answer
from ringleader.coordinator.groups.states import State
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NONE = int(ErrorCode.NONE)
_TOO_LARGE = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
_FIRST_WITH_GROUP_ID_NOT_FOUND = 9

Wanted = Sequence[tuple[str, Sequence[int]]]
"""(topic, partitions) pairs."""


def phase_error(phase: Phase) -> int:
    """What a shard that does not serve answers to most requests; 0 when it serves."""
    if phase is Phase.SERVING:
        return _NONE
    loading = phase is Phase.LOADING
    return int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR)


def utf16_units(text: str) -> int:
    """Length as Java's String.length counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class Offsets:
    """Handles committed offsets for one shard."""

    __slots__ = ("core",)

    def __init__(self, core: Core) -> None:
        self.core = core

    # ---- OffsetCommit ----

    def commit(
        self, request: OffsetCommitRequest, ticket: Ticket, now_ms: int
    ) -> OffsetCommitResponse | None:
        """The answer; None while it waits for the records."""
        core = self.core
        group = core.groups.get(request.group_id)
        error = self._check_commit(group, request, ticket.api_version, now_ms)
        if error:
            return commit_answer(request, int(error))
        if group is None:
            group = core.find_or_add(request.group_id)
            if group is None:
                return commit_answer(request, int(ErrorCode.POLICY_VIOLATION))
        content: Records = []
        response = self._take_in(group.group_id, request, now_ms, content)
        if not content:
            core.forget_if_void(group)
            return response

        def decided(error: int, now_ms: int) -> None:
            core.answer(ticket, commit_answer(request, error) if error else response)

        core.write(group, content, decided)
        return None

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
        """`commit` in its plainest case, without messages: see `Shard.commit_one`."""
        core = self.core
        group = core.groups.get(group_id)
        if group is None or group.state is not State.STABLE or generation != group.generation:
            return False
        member = group.members.get(member_id)
        if member is None or group.exclusive or group.blocked:
            return False
        if instance_id is not None and instance_id != member.group_instance_id:
            return False
        core.arm_session(member, now_ms)
        key = records.offset_key(group_id, topic, partition)
        value = records.offset_value(offset, leader_epoch, "", core.wall_ms(now_ms), -1)

        def decided(error: int, now_ms: int) -> None:
            core.answer(ticket, error)

        core.write(group, [(key, value)], decided)
        return True

    def _check_commit(
        self, group: Group | None, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> ErrorCode | int:
        """Group-level validation in Kafka's order. A commit of a member keeps its session alive, as a
        heartbeat."""
        generation = request.generation_id_or_member_epoch
        if group is None or group.is_void:
            return self._check_unknown(request, version)
        if generation < 0 and group.state is State.EMPTY:
            return _NONE  # an operator's tool, or a consumer without group management; ids are not looked at
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        member = group.members[request.member_id]
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is State.COMPLETING:
            # Its partitions may be another's already (KAFKA-14201). While preparing, commits are welcome:
            # that is how consumers commit what they are about to hand over.
            return ErrorCode.REBALANCE_IN_PROGRESS
        self.core.arm_session(member, now_ms)
        return _NONE

    def _check_unknown(self, request: OffsetCommitRequest, version: int) -> ErrorCode | int:
        error = phase_error(self.core.phase)
        if error:
            return error
        if len(request.group_id.encode()) > records.MAX_STRING_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        if request.generation_id_or_member_epoch < 0:
            return _NONE  # makes a simple group: offsets only
        if version >= _FIRST_WITH_GROUP_ID_NOT_FOUND:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION  # what older clients know how to act on

    def _take_in(
        self, group_id: str, request: OffsetCommitRequest, now_ms: int, content: Records
    ) -> OffsetCommitResponse:
        """Records for every partition that is fine go to `content`; the answer for when they are durable."""
        commit_ms = self.core.wall_ms(now_ms)
        retention_ms = request.retention_time_ms
        expire_ms = commit_ms + retention_ms if retention_ms >= 0 else -1
        longest = self.core.settings.offset_metadata_max_bytes
        topics = []
        for topic in request.topics:
            results = []
            for one in topic.partitions:
                metadata = one.committed_metadata or ""
                error = _NONE
                if metadata and _is_too_long(metadata, longest):
                    error = _TOO_LARGE
                else:
                    key = records.offset_key(group_id, topic.name, one.partition_index)
                    value = records.offset_value(
                        one.committed_offset, one.committed_leader_epoch, metadata, commit_ms, expire_ms
                    )
                    content.append((key, value))
                results.append(
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
                )
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=results))
        return OffsetCommitResponse(topics=topics)

    # ---- OffsetFetch ----

    def fetch(
        self, group_id: str, wanted: Wanted | None, require_stable: bool, ticket: Ticket, now_ms: int
    ) -> OffsetFetchResponseGroup | None:
        """What is committed; with `require_stable`, after the commits that are on their way (KIP-447)."""
        core = self.core
        group = core.groups.get(group_id)
        if not require_stable or group is None or group.last_write is None:
            return self._read(group_id, wanted)

        def decided(error: int, now_ms: int) -> None:
            core.answer(ticket, self._read(group_id, wanted))

        group.last_write.after.append(decided)
        return None

    def _read(self, group_id: str, wanted: Wanted | None) -> OffsetFetchResponseGroup:
        error = phase_error(self.core.phase)
        if error:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
        group = self.core.groups.get(group_id)
        offsets = group.offsets if group is not None else {}
        if wanted is None:
            wanted = [(topic, list(partitions)) for topic, partitions in offsets.items()]
        topics = []
        for topic, partitions in wanted:
            known = offsets.get(topic, {})
            found = [_fetched(partition, known.get(partition)) for partition in partitions]
            topics.append(OffsetFetchResponseTopics(name=topic, partitions=found))
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=_NONE)

    # ---- OffsetDelete ----

    def delete(
        self, request: OffsetDeleteRequest, ticket: Ticket, now_ms: int
    ) -> OffsetDeleteResponse | None:
        """KIP-496. Goes alone (see core.py), so that no commit on its way comes back to life afterwards."""
        core = self.core
        if not request.group_id:
            return OffsetDeleteResponse(error_code=int(ErrorCode.INVALID_GROUP_ID))
        error = phase_error(core.phase)
        if error:
            return OffsetDeleteResponse(error_code=error)

        def run(now_ms: int) -> None:
            response = self._delete_now(request, ticket)
            if response is not None:
                core.answer(ticket, response)

        def refuse(error: int) -> None:
            core.answer(ticket, OffsetDeleteResponse(error_code=error))

        core.submit(core.find(request.group_id), Call(True, run, refuse), now_ms)
        return None

    def _delete_now(self, request: OffsetDeleteRequest, ticket: Ticket) -> OffsetDeleteResponse | None:
        group = self.core.find(request.group_id)
        if group is None:
            return OffsetDeleteResponse(error_code=int(ErrorCode.GROUP_ID_NOT_FOUND))
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER_TYPE:
            return OffsetDeleteResponse(error_code=int(ErrorCode.NON_EMPTY_GROUP))
        content: Records = []
        topics = []
        for topic in request.topics:
            protected = is_subscribed(group, topic.name)
            code = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if protected else _NONE
            known = group.offsets.get(topic.name, {})
            results = []
            for one in topic.partitions:
                if not protected and one.partition_index in known:
                    key = records.offset_key(group.group_id, topic.name, one.partition_index)
                    content.append((key, None))
                results.append(
                    OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
                )
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        response = OffsetDeleteResponse(error_code=_NONE, topics=topics)
        if not content:
            return response
        group.exclusive = True

        def decided(error: int, now_ms: int) -> None:
            group.exclusive = False
            self.core.answer(ticket, OffsetDeleteResponse(error_code=error) if error else response)

        self.core.write(group, content, decided)
        return None


def is_subscribed(group: Group, topic: str) -> bool:
    """Whether a member of a consumer group reads the topic; an unreadable subscription protects every
    topic."""
    if group.state is State.EMPTY or group.protocol_type != CONSUMER_TYPE:
        return False
    return group.subscribed is None or topic in group.subscribed


def _is_too_long(metadata: str, longest: int) -> bool:
    if utf16_units(metadata) > longest:
        return True
    return len(metadata) * 4 > records.MAX_STRING_BYTES and len(metadata.encode()) > records.MAX_STRING_BYTES


def _fetched(partition: int, offset: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if offset is None:  # never an error: clients take any code here for fatal
        return OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=-1, committed_leader_epoch=-1, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )
