"""OffsetDelete (KIP-496): made ready piece by piece and written in one append, as a commit is."""

from __future__ import annotations

from collections.abc import Generator

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.commit import ENTRIES_AT_A_TIME
from ringleader.coordinator.groups.core import STORE_FULL, Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import INCIDENT_PARTITIONS, is_subscribed
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.coordinator.journal.entries import IncidentKind
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

_NONE = int(ErrorCode.NONE)


class PreparedDeletion:
    """A request, what it names, and its answer, for when the group allows it."""

    __slots__ = ("group_id", "keys", "response")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.keys: list[records.Key] = []
        self.response = OffsetDeleteResponse(error_code=_NONE)


def prepare(request: OffsetDeleteRequest) -> Generator[None, None, PreparedDeletion]:
    """Everything of it that does not depend on its group; returns it."""
    prepared, count = PreparedDeletion(request.group_id), 0
    keys, answer = prepared.keys, OffsetDeleteResponsePartition
    for topic in request.topics:
        results: list[OffsetDeleteResponsePartition] = []
        prepared.response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        for one in topic.partitions:
            count += 1
            if not count % ENTRIES_AT_A_TIME:
                yield
            keys.append((records.OFFSET, request.group_id, topic.name, one.partition_index, -1))
            results.append(answer(partition_index=one.partition_index, error_code=_NONE))
    return prepared


def _reads_topics(group: Group) -> bool:
    """Whether it is known which topics its members read."""
    return group.consumer is not None or group.protocol_type == CONSUMER_TYPE


def delete(
    core: Core, prepared: PreparedDeletion, ticket: Ticket, now_ms: int
) -> OffsetDeleteResponse | None:
    """The answer; None while it waits for the tombstones."""
    group = core.find(prepared.group_id)
    error: ErrorCode | int = core.refusal
    if not prepared.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif not error and group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    elif not error and core.full:
        error = STORE_FULL
    elif not error and group is not None and not (group.is_empty or _reads_topics(group)):
        error = ErrorCode.NON_EMPTY_GROUP
    if error or group is None:
        refused = OffsetDeleteResponse(error_code=int(error))
        return core.reply(ticket, refused, core.position_of(prepared.group_id))
    response, wanted = prepared.response, prepared.keys
    for topic in response.topics:
        if is_subscribed(group, topic.name):
            for result in topic.partitions:
                result.error_code = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            wanted = [key for key in wanted if key[2] != topic.name]
    offsets, nothing = group.offsets, dict[int, bytes]()
    dead = [key for key in wanted if key[3] in offsets.get(key[2], nothing)]
    deleted = tuple(
        (name, partition, records.decode_offset_value(offsets[name][partition]).offset, None)
        for _, _, name, partition, _ in dead[:INCIDENT_PARTITIONS]
    )
    for _, _, name, partition, _ in wanted if group.open_at else ():
        dead += records.all_uncommitted_keys(group, name, partition)
    if not dead:
        # Whether the topic is subscribed may be what the record on its way says.
        return core.reply(ticket, response, max(group.position, group.offsets_position))
    position = core.write_tombstones(group, dead)
    core.reports.incident(group.group_id, IncidentKind.OFFSETS_DELETED, ticket, now_ms, partitions=deleted)
    return core.reply(ticket, response, position)
