"""Commits of one partition by a member of a group at work: the request that most clients send most often.

Such a request differs from the last one of that member in eight bytes, the offset, besides its correlation
id. So the decoded request is remembered by its other bytes, and the commit goes to the group machine, and its
answer to the peer, without messages being made. Everything else takes the general way.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.bounded import BoundedCache
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Answerable, Call, Message, NoAnswer
from ringleader.protocol.codec import encoder
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ringleader.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from ringleader.coordinator.groups.shard import Shard
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.server.services import TopicDirectory

API_KEY = OffsetCommitRequest.API_KEY

REMEMBERED_BYTES = 16 * 1024 * 1024
"""Memory for all remembered commits of a server, over all versions."""

LONGEST_BYTES = 512
"""A longer request takes the general way."""

_offset_at = struct.Struct(">q").unpack_from
_pack = struct.Struct(">ii").pack
_pack_flexible = struct.Struct(">iix").pack


def _bytes_from_offset(version: int) -> int:
    """From the offset to the end of the frame: the offset; from v6 on the leader epoch; the length of empty
    metadata; in flexible versions no tagged fields three times."""
    if version >= OffsetCommitRequest.FLEXIBLE_VERSION:
        return 8 + 4 + 1 + 3
    return 8 + 4 + 2 if version >= 6 else 8 + 2


FROM_OFFSET = tuple(_bytes_from_offset(version) for version in range(OffsetCommitRequest.MAX_VERSION + 1))
"""By version."""


class Plan:
    """A remembered request, but for its offset."""

    __slots__ = (
        "client_id",
        "flexible",
        "generation",
        "group_id",
        "instance_id",
        "leader_epoch",
        "member_id",
        "partition",
        "shard_partition",
        "success",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        shard_partition: int,
        request: OffsetCommitRequest,
        topic_name: str,
        version: int,
        client_id: str | None,
    ) -> None:
        [topic] = request.topics
        [entry] = topic.partitions
        self.shard_partition = shard_partition
        self.group_id = request.group_id
        self.generation = request.generation_id_or_member_epoch
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.topic = topic_name
        self.topic_id = topic.topic_id
        """Zero where the request has the name."""
        self.partition = entry.partition_index
        self.leader_epoch = entry.committed_leader_epoch
        self.client_id = client_id
        self.flexible = version >= OffsetCommitRequest.FLEXIBLE_VERSION
        self.success = encoder(OffsetCommitResponse, version)(self.response(0))

    def response(self, error: int) -> OffsetCommitResponse:
        """The answer as a message."""
        result = OffsetCommitResponsePartition(partition_index=self.partition, error_code=error)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(self.topic, self.topic_id, [result])])


class PlainCommit(Call):
    """The ticket of such a commit; the machine answers it with an error code."""

    __slots__ = ("plan",)

    plan: Plan

    def answer(self, response: Message | NoAnswer | None) -> None:
        """See `Call.answer`."""
        if self.done:
            return
        plan = self.plan
        if response is None or isinstance(response, NoAnswer):
            super().answer(response)
            return
        if response:
            super().answer(plan.response(response))
            return
        self.done = True
        body = plan.success
        if plan.flexible:
            head = _pack_flexible(len(body) + 5, self.correlation_id)
        else:
            head = _pack(len(body) + 4, self.correlation_id)
        self.connection.call_finished(self, head + body)

    def refuse(self, error_code: int) -> None:
        """See `Call.refuse`."""
        self.answer(error_code)


class CommitCache:
    """Remembered plain commits, for all connections of a server."""

    def __init__(self, runtime: GroupRuntime, topics: TopicDirectory, authorizer: Authority) -> None:
        self._authorizer = authorizer
        self._runtime = runtime
        self._topics = topics
        self._known: tuple[BoundedCache[bytes, Plan], ...] = tuple(
            BoundedCache(REMEMBERED_BYTES // len(FROM_OFFSET)) for _ in FROM_OFFSET
        )

    def take(
        self, connection: Answerable, host: str, frame: bytes, version: int, correlation_id: int
    ) -> Call | None:
        """Start the commit in this frame (without its size); None: it has to take the general way."""
        at = len(frame) - FROM_OFFSET[version]
        plan = self._known[version].get(frame[8:at] + frame[at + 8 :]) if at > 8 else None
        if plan is None:
            return None
        if not self._authorizer.is_open and not self._may(connection, host, plan):
            return None
        info = self._topics.describe(plan.topic)
        if info is None or plan.partition >= info.partitions or plan.topic_id not in (ZERO_UUID, info.id):
            return None
        call = PlainCommit(connection, API_KEY, version, correlation_id, plan.client_id, host)
        call.plan = plan
        offset, topic_id = _offset_at(frame, at)[0], info.id

        def commit(shard: Shard, now_ms: int) -> bool | None:
            taken = shard.commit_one(
                plan.group_id,
                plan.generation,
                plan.member_id,
                plan.instance_id,
                plan.topic,
                plan.partition,
                offset,
                plan.leader_epoch,
                call,
                now_ms,
                topic_id,
            )
            return None if taken else False  # what is taken is answered later

        number = plan.shard_partition
        response = self._runtime.call(number, "OffsetCommit", plan.group_id, call, commit)
        return call if response is None else None

    def _may(self, connection: Answerable, host: str, plan: Plan) -> bool:
        """Checked for each commit: the remembered request may be another client's. The authorizer remembers
        its verdicts."""
        may, caller, address = self._authorizer.authorize, connection.principal, host[1:]
        return may(caller, address, Operation.READ, ResourceType.GROUP, plan.group_id) and may(
            caller, address, Operation.READ, ResourceType.TOPIC, plan.topic
        )

    def learn(self, frame: bytes, version: int, end: int, client_id: str | None, request: Any) -> None:
        """Remember a decoded request if it is a plain one; `end`: where its body ended in the frame."""
        topics = request.topics
        if len(topics) != 1 or len(topics[0].partitions) != 1 or len(frame) > LONGEST_BYTES:
            return
        [entry] = topics[0].partitions
        at = len(frame) - FROM_OFFSET[version]
        plain = (
            not entry.committed_metadata
            and entry.partition_index >= 0
            and request.retention_time_ms < 0
            and end == len(frame)
            and _offset_at(frame, at)[0] == entry.committed_offset
        )
        if not plain:
            return
        [topic] = topics
        info = None if topic.topic_id == ZERO_UUID else self._topics.describe_id(topic.topic_id)
        name = topic.name if info is None else info.name
        if not name:  # an id that no topic has
            return
        plan = Plan(self._runtime.partition_of(request.group_id), request, name, version, client_id)
        parts = (plan.group_id, plan.member_id, plan.instance_id, plan.topic, client_id, plan.success)
        self._known[version].remember(frame[8:at] + frame[at + 8 :], plan, *parts)
