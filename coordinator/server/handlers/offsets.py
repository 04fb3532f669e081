"""Committed offsets.

OffsetCommit (8) v2-10: v2-4 retention time, v3 throttle, v6 leader epoch, v7 instance id, v8 flexible, v10
topic ids. OffsetFetch (9) v1-10: v2 all topics and a top-level error, v3 throttle, v5 leader epoch, v6
flexible, v7 stable offsets only, v8 several groups, v10 topic ids. OffsetDelete (47) v0.

The group machine knows groups, not topics: whether a topic and its partition exist is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, cast

from ringleader.coordinator.groups import offset_deletion
from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices, whole
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call, Message
from ringleader.coordinator.server.gather import Gather, Part
from ringleader.coordinator.server.handlers import existing
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.refusals import SEVERAL_GROUPS_VERSION, refusal
from ringleader.protocol.schema import ZERO_UUID

TOPIC_IDS_VERSION = 10
"""The first version of OffsetCommit and of OffsetFetch in which topics have ids instead of names."""
PLAIN_NUMBERS = 100
"""Partitions of a request that take as long to look through as one entry of another kind."""


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Offsets(services)
    return {8: family.commit, 9: family.fetch, 47: family.delete}


class _ById:
    """The ids of the topics of a commit, which its answer gives instead of their names."""

    def __init__(self, topics: Sequence[kafka.OffsetCommitRequestTopic]) -> None:
        self._ids = {topic.name: topic.topic_id for topic in topics if topic.name}
        self._unknown: dict[bytes, list[int]] = {}
        for topic in topics:
            if not topic.name:
                indexes = self._unknown.setdefault(topic.topic_id, [])
                indexes += [entry.partition_index for entry in topic.partitions]

    def complete(self, topics: list[kafka.OffsetCommitResponseTopic]) -> None:
        """Set the ids of the topics of an answer, and refuse those that no topic has."""
        for topic in topics:
            topic.topic_id = self._ids[topic.name]
        refused, code = kafka.OffsetCommitResponsePartition, ErrorCode.UNKNOWN_TOPIC_ID
        topics += [
            kafka.OffsetCommitResponseTopic(
                topic_id=topic_id, partitions=[refused(index, code) for index in indexes]
            )
            for topic_id, indexes in self._unknown.items()
        ]


class _Offsets:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._topics = services.topics
        self._runtime = services.runtime
        self._max_own = services.settings.group_max_own_offsets

    # ---- OffsetCommit ----

    def commit(self, call: Call, request: kafka.OffsetCommitRequest) -> Message | Slices | None:
        """Entries of unknown topics and partitions are refused, the others go on."""
        if not self._services.may(call, Operation.READ, ResourceType.GROUP, request.group_id):
            return refusal(request, call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if call.api_version < TOPIC_IDS_VERSION:
            return self._commit_named(call, request)
        then = partial(self._commit_by_id, call, request)
        return existing.named_first(self._services, call, request.topics, then)

    def _commit_by_id(self, call: Call, request: kafka.OffsetCommitRequest) -> Message | Slices | None:
        """Ids that no topic has are refused, whatever the caller may."""
        by_id = _ById(request.topics)
        request.topics = [topic for topic in request.topics if topic.name]
        return self._commit_named(call, request, by_id)

    def _commit_named(
        self, call: Call, request: kafka.OffsetCommitRequest, by_id: _ById | None = None
    ) -> Message | Slices | None:
        refused_class = kafka.OffsetCommitResponsePartition
        then = partial(self._commit_allowed, call, request, by_id)
        return existing.allowed_first(self._services, call, request, refused_class, then)

    def _commit_allowed(
        self,
        call: Call,
        request: kafka.OffsetCommitRequest,
        by_id: _ById | None,
        forbidden: existing.Refused,
    ) -> Message | Slices | None:
        if forbidden or by_id is not None or existing.missing_topics(self._topics, request):
            then = partial(self._commit_apart, call, request, by_id, forbidden)
            return existing.found_first(self._services, call, request, then)
        if existing.is_long(request.topics):
            return existing.commit(self._services, call, request)
        existing.give_ids(self._topics.describe, request)
        return self._runtime.handle(request, call)

    def _commit_apart(
        self,
        call: Call,
        request: kafka.OffsetCommitRequest,
        by_id: _ById | None,
        forbidden: existing.Refused,
    ) -> Message | Slices:
        unknown = self._unknown(request.group_id)
        accepted, refused = existing.split(
            self._topics, request, kafka.OffsetCommitResponsePartition, unknown
        )

        def merged(response: kafka.OffsetCommitResponse) -> kafka.OffsetCommitResponse:
            existing.merge(response.topics, {**refused, **forbidden}, kafka.OffsetCommitResponseTopic)
            if by_id is not None:
                by_id.complete(response.topics)
            return response

        if not accepted:
            return merged(kafka.OffsetCommitResponse())
        request.topics = accepted
        return existing.commit(self._services, call, request, merged)

    def _unknown(self, group_id: str, deleting: bool = False) -> ErrorCode:
        """The code for topics that do not exist."""
        count = self._runtime.own_offsets(group_id) if self._max_own else None
        if count is None:  # unless it only seems so, for the group is not here, or not yet
            refusal = self._runtime.refusal(group_id) if self._max_own else ErrorCode.NONE
            return ErrorCode(refusal) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE if deleting or count < self._max_own else ErrorCode.POLICY_VIOLATION

    # ---- OffsetDelete ----

    def delete(self, call: Call, request: kafka.OffsetDeleteRequest) -> Message | Slices | None:
        """Entries of unknown topics and partitions are refused, the others go on."""
        if not self._services.may(call, Operation.DELETE, ResourceType.GROUP, request.group_id):
            return refusal(request, call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        refused_class = kafka.OffsetDeleteResponsePartition
        then = partial(self._delete_allowed, call, request)
        return existing.allowed_first(self._services, call, request, refused_class, then)

    def _delete_allowed(
        self, call: Call, request: kafka.OffsetDeleteRequest, forbidden: existing.Refused
    ) -> Message | Slices | None:
        def then() -> Message | Slices | None:
            work = self._delete_existing(call, request, forbidden)
            return work if existing.is_long(request.topics) else whole(work)

        return existing.found_first(self._services, call, request, then)

    def _delete_existing(
        self, call: Call, request: kafka.OffsetDeleteRequest, forbidden: existing.Refused
    ) -> Slices:
        """In one append, whole or not at all."""
        unknown = self._unknown(request.group_id, deleting=True)
        accepted, refused = existing.split(
            self._topics, request, kafka.OffsetDeleteResponsePartition, unknown
        )

        def merged(response: kafka.OffsetDeleteResponse) -> kafka.OffsetDeleteResponse:
            if not response.error_code:
                existing.merge(response.topics, {**refused, **forbidden}, kafka.OffsetDeleteResponseTopic)
            return response

        request.topics = accepted  # perhaps nothing: an unknown group is an error in any case
        yield
        prepared = yield from offset_deletion.prepare(request)
        yield
        ask = partial(self._runtime.delete_offsets, prepared)
        return existing.handle(self._runtime, call, request, ask, merged)

    # ---- OffsetFetch ----

    def fetch(self, call: Call, request: kafka.OffsetFetchRequest) -> Message | Slices | None:
        """May wait: what it shows must be durable."""
        if call.api_version < TOPIC_IDS_VERSION:
            return self._fetch_named(call, request)
        named = [topic for group in request.groups for topic in group.topics or ()]
        then = partial(self._fetch_by_id, call, request)
        return existing.named_first(self._services, call, named, then)

    def _fetch_by_id(self, call: Call, request: kafka.OffsetFetchRequest) -> Slices | None:
        """After the ids of all topics were looked up of which a group is to show its offsets."""
        find = self._services.find_topics
        then = partial(self._fetch_named, call, request)
        every = [group.group_id for group in request.groups if group.topics is None]
        committed = (name for one in every for name, _ in self._runtime.committed_partitions(one))
        unknown = [] if find is None else [name for name in committed if self._topics.describe(name) is None]
        if find is None or not unknown:
            return then()
        existing.after(self._services, call, find(unknown), then)
        return None

    def _fetch_named(self, call: Call, request: kafka.OffsetFetchRequest) -> Slices:
        version = call.api_version
        groups = request.groups
        if version < SEVERAL_GROUPS_VERSION:
            # The topics of both forms have the same fields, but for ids; so have those of the answers.
            topics = cast(Any, request.topics)
            groups = [kafka.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]
        groups = yield from _once(groups)
        ids: dict[str, bytes] = {}
        if version >= TOPIC_IDS_VERSION:
            ids = {topic.name: topic.topic_id for group in groups for topic in group.topics or ()}
        slices: list[list[existing.Slice | None]] = []
        """Of each group, its slices."""
        hidden: list[list[kafka.OffsetFetchResponseTopics] | None] = []
        """Of each group, refusals of topics that the caller may not see; None: it names no topics."""

        def finish(parts: list[kafka.OffsetFetchResponseGroup]) -> Message:
            left = iter(parts)
            found = [_joined(some, list(islice(left, len(some)))) for some in slices]
            for group, refused in zip(found, hidden, strict=True):
                if not group.error_code:
                    if version >= TOPIC_IDS_VERSION:
                        group.topics = self._with_ids(group.topics, ids)
                    group.topics = (
                        self._seen(call, group.topics) if refused is None else group.topics + refused
                    )
            if version >= SEVERAL_GROUPS_VERSION:
                return kafka.OffsetFetchResponse(groups=found)
            if found[0].error_code:
                return refusal(request, version, found[0].error_code)
            return kafka.OffsetFetchResponse(topics=cast(Any, found[0].topics))

        gather = Gather(call, finish)
        work = 0
        for group in groups:
            slices.append([])
            hidden.append(self._take_hidden(call, group))
            if not self._services.may(call, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
                slices[-1].append(None)
                gather.add(partial(_not_seen, group.group_id), int)
                continue
            for wanted, entries in self._wanted(group):
                slices[-1].append(wanted)
                if work > SLICE_ELEMENTS:
                    work = 0
                    yield
                    if call.done:
                        return None
                gather.add(
                    partial(
                        self._runtime.fetch_offsets,
                        group.group_id,
                        wanted,
                        request.require_stable,
                        member_id=group.member_id,
                        member_epoch=group.member_epoch,
                        ids=ids,
                    ),
                    partial(_refused, group.group_id),
                    partial(self._runtime.ticket_closed, group.group_id),
                    partial(_count_metadata, call),
                )
                work += 10 + entries
                call.takes(entries * HELD_ENTRY_BYTES)
        return gather.answer()

    def _take_hidden(
        self, call: Call, group: kafka.OffsetFetchRequestGroup
    ) -> list[kafka.OffsetFetchResponseTopics] | None:
        """Take topics that the caller may not see, and ids that no topic has, out of a request; a refusal for
        each. None: no topics."""
        if group.topics is None:
            return None
        seen, refused = [], []
        by_id = call.api_version >= TOPIC_IDS_VERSION
        for topic in group.topics:
            if by_id and not topic.name:
                refused.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif self._services.may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                seen.append(topic)
            else:
                refused.append(_refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        group.topics = seen
        return refused

    def _with_ids(
        self, topics: list[kafka.OffsetFetchResponseTopics], ids: Mapping[str, bytes]
    ) -> list[kafka.OffsetFetchResponseTopics]:
        """The topics with the ids that were asked for, or their current ones; those without are left out."""
        for topic in topics:
            info = None if topic.name in ids else self._topics.describe(topic.name)
            topic.topic_id = ids.get(topic.name, ZERO_UUID) if info is None else info.id
        return [topic for topic in topics if topic.topic_id != ZERO_UUID]

    def _seen(
        self, call: Call, topics: list[kafka.OffsetFetchResponseTopics]
    ) -> list[kafka.OffsetFetchResponseTopics]:
        """Those of all topics that the caller may see."""
        may = partial(self._services.may, call, Operation.DESCRIBE, ResourceType.TOPIC, quietly=True)
        return [topic for topic in topics if may(topic.name)]

    def _wanted(self, group: kafka.OffsetFetchRequestGroup) -> Iterable[tuple[existing.Slice | None, int]]:
        """The question for the group machine, in slices, with the number of entries; None: for all there
        is."""
        if group.topics is not None:
            named = [(topic.name, topic.partition_indexes) for topic in group.topics]
            return ((some, _entries(some)) for some in existing.slices(named))
        committed = self._runtime.committed_partitions(group.group_id)
        count = _entries(committed)
        few = count <= SLICE_ELEMENTS
        return [(None, count)] if few else ((some, _entries(some)) for some in existing.slices(committed))


def _once(groups: list[kafka.OffsetFetchRequestGroup]) -> Slices:
    """The groups, each once, with each topic and partition once: an offset may have much metadata, which one
    request must not fetch over and over. The member that the last entry of a group names asks for all."""
    found: dict[str, dict[tuple[str, bytes], dict[int, None]] | None] = {}
    members: dict[str, tuple[str | None, int]] = {}
    work = 0
    for group in groups:
        members[group.group_id] = group.member_id, group.member_epoch
        topics = found.setdefault(group.group_id, {})
        if group.topics is None:
            topics = found[group.group_id] = None
        for topic in group.topics or ():
            # Topics of the older form have no ids.
            key = topic.name, getattr(topic, "topic_id", ZERO_UUID)
            indexes: dict[int, None] = {} if topics is None else topics.setdefault(key, {})
            for start in range(0, len(topic.partition_indexes), PLAIN_NUMBERS):
                indexes.update(dict.fromkeys(topic.partition_indexes[start : start + PLAIN_NUMBERS]))
                work += PLAIN_NUMBERS
                if work > PLAIN_NUMBERS * SLICE_ELEMENTS:
                    work = 0
                    yield
    wanted = kafka.OffsetFetchRequestTopics
    return [
        kafka.OffsetFetchRequestGroup(
            group_id,
            *members[group_id],
            topics=None
            if topics is None
            else [wanted(*topic, list(indexes)) for topic, indexes in topics.items()],
        )
        for group_id, topics in found.items()
    ]


def _entries(wanted: Iterable[tuple[str, Sequence[Any]]]) -> int:
    return sum(1 + len(partitions) for _, partitions in wanted)


def _count_metadata(call: Call, found: kafka.OffsetFetchResponseGroup) -> None:
    """A slice of the answer is there; the entries count since they were asked for."""
    call.takes(sum(len(one.metadata or "") for topic in found.topics for one in topic.partitions))


def _refused(group_id: str, error: int) -> kafka.OffsetFetchResponseGroup:
    return kafka.OffsetFetchResponseGroup(group_id=group_id, error_code=error)


def _not_seen(group_id: str, part: Part) -> kafka.OffsetFetchResponseGroup:
    return _refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)


def _refused_topic(topic: kafka.OffsetFetchRequestTopics, code: int) -> kafka.OffsetFetchResponseTopics:
    return kafka.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            kafka.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _joined(
    slices: Sequence[existing.Slice | None], parts: Sequence[kafka.OffsetFetchResponseGroup]
) -> kafka.OffsetFetchResponseGroup:
    """The slices of one group: an error of any is one of all."""
    for part in parts:
        if part.error_code:
            return part
    parts[0].topics = existing.join_topics(slices, parts)
    return parts[0]
