"""Committed offsets.

OffsetCommit (8) v2-9: v2-4 retention time, v3 throttle, v6 leader epoch, v7 instance id, v8 flexible.
OffsetFetch (9) v1-9: v2 all topics and a top-level error, v3 throttle, v5 leader epoch, v6 flexible, v7
stable offsets only, v8 several groups. OffsetDelete (47) v0.

The group machine knows groups, not topics: whether a topic and its partition exist is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ringleader.coordinator.server.handlers import Call, Handler, Services, existing
from ringleader.coordinator.server.parts import Gather, Part
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

Topics = Sequence[tuple[str, Sequence[int]]] | None


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Offsets(services)
    return {8: family.commit, 9: family.fetch, 47: family.delete}


class _Offsets:
    def __init__(self, services: Services) -> None:
        self._topics = services.topics
        self._runtime = services.runtime
        self._max_own = services.settings.group_max_own_offsets

    # ---- OffsetCommit ----

    def commit(self, call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | None:
        """Entries of unknown topics and partitions are refused, the others go on."""
        describe = self._topics.describe
        for topic in request.topics:
            info = describe(topic.name)
            count = 0 if info is None else info.partitions
            for entry in topic.partitions:
                if not 0 <= entry.partition_index < count:
                    return self._commit_apart(call, request)
        response: OffsetCommitResponse | None = self._runtime.handle(request, call)
        return response

    def _commit_apart(self, call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | None:
        accepted, refused = existing.split(
            self._topics,
            request,
            OffsetCommitRequestTopic,
            OffsetCommitResponsePartition,
            self._unknown(request.group_id),
        )

        def merged(response: OffsetCommitResponse) -> OffsetCommitResponse:
            existing.merge(response.topics, refused, OffsetCommitResponseTopic)
            return response

        if not accepted:
            return merged(OffsetCommitResponse())
        request.topics = accepted
        return existing.handle(self._runtime, call, request, merged)

    def _unknown(self, group_id: str, deleting: bool = False) -> ErrorCode:
        """The code for topics that do not exist."""
        count = self._runtime.shard_of(group_id).own_offsets(group_id) if self._max_own else None
        if count is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE if deleting or count < self._max_own else ErrorCode.POLICY_VIOLATION

    # ---- OffsetDelete ----

    def delete(self, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse | None:
        """Entries of unknown topics and partitions are refused, the others go on."""
        accepted, refused = existing.split(
            self._topics,
            request,
            OffsetDeleteRequestTopic,
            OffsetDeleteResponsePartition,
            self._unknown(request.group_id, deleting=True),
        )

        def merged(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
            if not response.error_code:
                existing.merge(response.topics, refused, OffsetDeleteResponseTopic)
            return response

        request.topics = accepted  # perhaps nothing: whether there is such a group is told in any case
        return existing.handle(self._runtime, call, request, merged)

    # ---- OffsetFetch ----

    def fetch(self, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse | None:
        """May wait: stable offsets are given out after the commits that are on their way."""
        version = call.api_version
        groups = request.groups if version >= 8 else [_as_group(request)]

        def finish(results: list[Any]) -> OffsetFetchResponse:
            if version >= 8:
                return OffsetFetchResponse(groups=results)
            return _single(results[0], version, request)

        gather = Gather(call, finish)
        for group in groups:
            gather.add(
                partial(self._fetch_group, group, request.require_stable),
                partial(self._runtime.ticket_closed, group.group_id),
            )
        return gather.answer()

    def _fetch_group(
        self, group: OffsetFetchRequestGroup, require_stable: bool, part: Part
    ) -> OffsetFetchResponseGroup | None:
        wanted: Topics = None
        if group.topics is not None:
            wanted = [(topic.name, topic.partition_indexes) for topic in group.topics]
        found: OffsetFetchResponseGroup | None = self._runtime.fetch_offsets(
            group.group_id, wanted, require_stable, part
        )
        return found


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The single group of v1-7 in the form of v8."""
    topics: list[OffsetFetchRequestTopics] | None = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _single(
    group: OffsetFetchResponseGroup, version: int, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """The answer of v8 in the form of v1-7. Where a group-level error goes: v2 and later have a field for it,
    v1 has it on every partition of the request."""
    if group.error_code:
        if version >= 2:
            return OffsetFetchResponse(error_code=group.error_code)
        return OffsetFetchResponse(
            topics=[_refused_topic(topic, group.error_code) for topic in request.topics or ()]
        )
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=entry.partition_index,
                        committed_offset=entry.committed_offset,
                        committed_leader_epoch=entry.committed_leader_epoch,
                        metadata=entry.metadata,
                        error_code=entry.error_code,
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in group.topics
        ]
    )


def _refused_topic(topic: OffsetFetchRequestTopic, error_code: int) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1, metadata="", error_code=error_code
            )
            for index in topic.partition_indexes
        ],
    )
