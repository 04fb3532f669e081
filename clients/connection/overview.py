"""The topics and their partition counts: Metadata (API 3) without a look at each partition.

A pattern may need all topics of a cluster, every time. So the answer is read at a glance
(`protocol.overview`), and a long one in a thread: 100,000 partitions must not hold up a heartbeat.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ringleader.clients.connection.aside import aside
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.metadata import metadata_request
from ringleader.clients.connection.requests import RawAnswer, in_parts
from ringleader.clients.errors import BrokerError, is_retriable
from ringleader.clients.model import Node
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.overview import NEWEST_VERSION, TopicOverview, read_overview

INLINE_BYTES = 32_768
"""Longer answers go to a thread."""


def in_trouble(topic: TopicOverview) -> bool:
    """Whether nothing is known about it for the moment; one that does not exist is not in trouble."""
    code = topic.error_code
    return code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_retriable(code)


class Overview(NamedTuple):
    """A cluster at a glance: topics by name, brokers and their racks by node id."""

    topics: Mapping[str, TopicOverview]
    brokers: Mapping[int, Node]
    racks: Mapping[int, str | None]

    def counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions, for those of the topics that can be seen."""
        found = self.topics
        return {name: one.partitions for name in topics if (one := found.get(name)) and not one.error_code}

    def partition_racks(self, topics: Iterable[str]) -> dict[str, list[frozenset[str]]]:
        """Topic -> for each partition the racks of its replicas. Needs an overview with replicas."""
        known: dict[tuple[int, ...], frozenset[str]] = {}

        def racks(replicas: tuple[int, ...]) -> frozenset[str]:
            found = known.get(replicas)
            if found is None:
                found = frozenset(rack for node in replicas if (rack := self.racks.get(node)))
                known[replicas] = found
            return found

        return {name: [racks(one) for one in self.topics[name].replicas] for name in self.counts(topics)}


async def overview(
    cluster: Cluster, topics: Iterable[str] | None, *, with_replicas: bool = False, timeout_ms: int
) -> Overview:
    """All topics (None) or those named; with `with_replicas` also who leads and holds each partition.

    Repeats what is retriable until the time is over. Raises ClientError.
    """
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000

    async def ask(part: Sequence[str] | None) -> Overview:
        request = replace(metadata_request(part), max_version=NEWEST_VERSION, raw=True)
        answer: RawAnswer = await cluster.send(None, request, deadline_s=deadline_s)
        if len(answer.frame) <= INLINE_BYTES:
            return read(answer, with_replicas)
        return await aside(lambda: read(answer, with_replicas))

    found: dict[str, TopicOverview] = {}
    for part in [None] if topics is None else in_parts(sorted(topics)):
        backoff = Backoff(100, 1_000, random.random)
        seen = await retrying(deadline_s, backoff, partial(ask, part))
        found |= seen.topics
    return seen._replace(topics=found)


def read(answer: RawAnswer, with_replicas: bool = False) -> Overview:
    """The overview in a Metadata answer. Raises BrokerError for one that cannot be read."""
    try:
        topics, brokers = read_overview(bytes(answer.frame), answer.version, with_replicas)
    except MalformedError as error:
        raise BrokerError(f"an answer to Metadata cannot be read: {error}") from error
    nodes = {node_id: Node(node_id, one.host, one.port) for node_id, one in brokers.items()}
    return Overview(topics, nodes, {node_id: one.rack for node_id, one in brokers.items()})
