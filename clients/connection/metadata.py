"""The brokers and topics of a cluster: Metadata (API 3)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ringleader.clients.connection.requests import Request
from ringleader.clients.model import Node
from ringleader.protocol.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Where a partition lives: node ids; leader -1 and `error_code` set while there is no leader."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic. `id`: its 128-bit id, zero from brokers without ids. `partitions` in order of number."""

    name: str
    id: bytes
    internal: bool
    partitions: tuple[PartitionMetadata, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The cluster's description of itself (Metadata, API 3). Times: `requested_s` is `time.monotonic`."""

    controller_id: int
    brokers: Mapping[int, Node]
    topics: Mapping[str, TopicMetadata]
    requested_s: float = field(default=0.0, compare=False)

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions, for those of the topics that exist."""
        return {
            name: len(self.topics[name].partitions)
            for name in topics
            if name in self.topics and not self.topics[name].error_code
        }


def metadata_request(topics: Sequence[str] | None, create: bool = False) -> Request:
    """Ask for all topics (None) or those named, no more than one request may have. `create`: a broker that
    makes topics by itself may do so."""

    def build(version: int) -> MetadataRequest:
        every: list[MetadataRequestTopic] | None = [] if version == 0 else None
        listed = every if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        # Up to v3 the broker decides by itself; the field is not there.
        return MetadataRequest(topics=listed, allow_auto_topic_creation=create or version < 4)

    return Request(MetadataRequest, build)


def read_metadata(response: MetadataResponse) -> ClusterMetadata:
    """Read the answer, which has just arrived."""
    topics = {}
    for topic in response.topics:
        partitions = tuple(
            PartitionMetadata(
                part.partition_index,
                part.leader_id,
                part.leader_epoch,
                tuple(part.replica_nodes),
                tuple(part.isr_nodes),
                part.error_code,
            )
            for part in sorted(topic.partitions, key=lambda part: part.partition_index)
        )
        name = topic.name or ""
        topics[name] = TopicMetadata(name, topic.topic_id, topic.is_internal, partitions, topic.error_code)
    return ClusterMetadata(
        response.controller_id,
        {broker.node_id: Node(broker.node_id, broker.host, broker.port) for broker in response.brokers},
        topics,
        time.monotonic(),
    )
