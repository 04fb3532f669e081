"""ListOffsets (API 2): which offset stands where in a partition's time, asked of its leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ringleader.clients.connection.requests import Request, by_topic
from ringleader.clients.model import TopicPartition
from ringleader.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)


class ListedOffset(NamedTuple):
    """The first record at or after the time that was asked for; offset -1: there is none. `code`: the error
    that the leader answered with instead."""

    code: int
    offset: int
    timestamp: int
    leader_epoch: int


def list_offsets(
    times: Mapping[TopicPartition, int],
    *,
    epochs: Mapping[TopicPartition, int] | None = None,
    committed_only: bool = False,
    raw: bool = False,
) -> Request:
    """Of each partition the offset at that time (Unix ms, EARLIEST or LATEST).

    `epochs`: the leader epochs that the client knows, so that an old leader refuses. `committed_only`: LATEST
    is where the first open transaction begins. `raw`: the answer is wanted as it comes.
    """
    topics = [
        ListOffsetsRequestListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsRequestListOffsetsPartition(
                    partition_index=partition,
                    current_leader_epoch=-1 if epochs is None else epochs.get((topic, partition), -1),
                    timestamp=times[topic, partition],
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(times).items()
    ]
    message = ListOffsetsRequest(replica_id=-1, isolation_level=int(committed_only), topics=topics)
    return Request(ListOffsetsRequest, lambda _version: message, raw=raw)


def listed_offsets(response: Any) -> dict[TopicPartition, ListedOffset]:
    """The answer, by partition."""
    return {
        (topic.name, part.partition_index): ListedOffset(
            part.error_code, part.offset, part.timestamp, part.leader_epoch
        )
        for topic in response.topics
        for part in topic.partitions
    }
