"""What topics there are and how many partitions they have: Metadata (API 3) without a look at each partition.

A pattern may need all topics of a cluster, every time. So the answer is walked over rather than decoded, and
a long one is walked over in a thread: 100,000 partitions must not hold up a heartbeat.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import NamedTuple

from ringleader.clients.connection.aside import aside
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.requests import RawAnswer, Request
from ringleader.clients.errors import BrokerError, is_retriable
from ringleader.clients.model import Node
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import decode_response
from ringleader.protocol.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ringleader.protocol.wire import read_uvarint, skip_tags

FLAT_VERSION, NEWEST_VERSION = 9, 12
"""Versions of Metadata that are walked over; older answers are decoded as usual."""
INLINE_BYTES = 32_768
"""Longer answers go to a thread."""
ZERO_ID = bytes(16)

_BROKER_PORT = Struct(">i")
_NUMBER_AND_LEADER = Struct(">ii").unpack_from
_PARTITION_BYTES = 14
"""Error code, number, leader and its epoch, from version 7 on."""


class TopicSeen(NamedTuple):
    """A topic at a glance. `id`: zero from brokers without ids. `leaders` and `replicas` (node ids, by
    partition) are there if they were asked for."""

    id: bytes
    partitions: int
    internal: bool
    error_code: int
    leaders: tuple[int, ...] = ()
    replicas: tuple[tuple[int, ...], ...] = ()


def in_trouble(topic: TopicSeen) -> bool:
    """Whether nothing can be said about it for the moment; one that does not exist is not in trouble."""
    code = topic.error_code
    return code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_retriable(code)


class Overview(NamedTuple):
    """A cluster at a glance: topics by name, brokers and their racks by node id."""

    topics: Mapping[str, TopicSeen]
    brokers: Mapping[int, Node]
    racks: Mapping[int, str | None]

    def counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions, for those of the topics that can be seen."""
        found = self.topics
        return {name: one.partitions for name in topics if (one := found.get(name)) and not one.error_code}

    def partition_racks(self, topics: Iterable[str]) -> dict[str, list[frozenset[str]]]:
        """Topic -> for each partition the racks of its replicas. Needs an overview with places."""
        known: dict[tuple[int, ...], frozenset[str]] = {}

        def racks(replicas: tuple[int, ...]) -> frozenset[str]:
            found = known.get(replicas)
            if found is None:
                found = frozenset(rack for node in replicas if (rack := self.racks.get(node)))
                known[replicas] = found
            return found

        return {name: [racks(one) for one in self.topics[name].replicas] for name in self.counts(topics)}


async def overview(
    cluster: Cluster, topics: Iterable[str] | None, *, places: bool = False, timeout_ms: int
) -> Overview:
    """All topics (None) or those named, with one request; with `places` also who leads and holds what.

    Repeats what is retriable until the time is over. Raises ClientError.
    """
    wanted = None if topics is None else sorted(topics)

    def build(version: int) -> MetadataRequest:
        every: list[MetadataRequestTopic] | None = [] if version == 0 else None
        listed = every if wanted is None else [MetadataRequestTopic(name=name) for name in wanted]
        return MetadataRequest(topics=listed, allow_auto_topic_creation=version < 4)

    request = Request(MetadataRequest, build, max_version=NEWEST_VERSION, raw=True)

    async def ask() -> Overview:
        answer: RawAnswer = await cluster.send(None, request, deadline_s=deadline_s)
        if len(answer.frame) <= INLINE_BYTES:
            return read(answer, places)
        return await aside(lambda: read(answer, places))

    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    return await retrying(deadline_s, Backoff(100, 1_000, random.random), ask)


def read(answer: RawAnswer, places: bool = False) -> Overview:
    """The overview in a Metadata answer. Raises BrokerError for one that cannot be read."""
    if answer.version >= FLAT_VERSION:
        try:
            return _walk(answer.frame, answer.version, places)
        except (ValueError, IndexError, struct_error):
            pass  # something is wrong with it: the decoder says what
    try:
        response: MetadataResponse = decode_response(MetadataResponse, answer.frame, answer.version)[1]
    except MalformedError as error:
        raise BrokerError(f"an answer to Metadata cannot be read: {error}") from error
    return Overview(
        {topic.name or "": _seen(topic, places) for topic in response.topics},
        {one.node_id: Node(one.node_id, one.host, one.port) for one in response.brokers},
        {one.node_id: one.rack for one in response.brokers},
    )


def _seen(topic: MetadataResponseTopic, places: bool) -> TopicSeen:
    seen = TopicSeen(topic.topic_id, len(topic.partitions), topic.is_internal, topic.error_code)
    if not places:
        return seen
    parts = sorted(topic.partitions, key=lambda part: part.partition_index)
    return seen._replace(
        leaders=tuple(part.leader_id for part in parts),
        replicas=tuple(tuple(part.replica_nodes) for part in parts),
    )


# ---- walking over versions 9 to 12 ----


def _walk(data: bytes, version: int, places: bool) -> Overview:
    pos = skip_tags(data, 4) + 4  # correlation id, tags; throttle time
    brokers: dict[int, Node] = {}
    racks: dict[int, str | None] = {}
    count, pos = read_uvarint(data, pos)
    for _ in range(count - 1):
        (node_id,) = _BROKER_PORT.unpack_from(data, pos)
        host, pos = _text(data, pos + 4)
        (port,) = _BROKER_PORT.unpack_from(data, pos)
        racks[node_id], pos = _text(data, pos + 4)
        brokers[node_id] = Node(node_id, host or "", port)
        pos = skip_tags(data, pos)
    _, pos = _text(data, pos)  # cluster id
    pos += 4  # controller
    walk: Callable[[bytes, int, int], tuple[int, _Leaders, _Replicas]] = _placed if places else _counted
    id_bytes = 16 if version >= 10 else 0
    topics: dict[str, TopicSeen] = {}
    count, pos = read_uvarint(data, pos)
    for _ in range(count - 1):
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        name, pos = _text(data, pos + 2)
        topic_id = data[pos : pos + id_bytes] or ZERO_ID
        pos += id_bytes
        internal = data[pos] != 0
        partitions, pos = read_uvarint(data, pos + 1)
        partitions = max(partitions - 1, 0)
        pos, leaders, replicas = walk(data, pos, partitions)
        topics[name or ""] = TopicSeen(topic_id, partitions, internal, error_code, leaders, replicas)
        pos = skip_tags(data, pos + 4)  # authorized operations
    skip_tags(data, pos + (4 if version <= 10 else 0))  # the cluster's authorized operations
    return Overview(topics, brokers, racks)


_Leaders = tuple[int, ...]
_Replicas = tuple[tuple[int, ...], ...]


def _text(data: bytes, pos: int) -> tuple[str | None, int]:
    length, pos = read_uvarint(data, pos)
    if not length:
        return None, pos
    end = pos + length - 1
    if end > len(data):
        raise ValueError("a text goes beyond the data")
    return data[pos:end].decode(), end


def _counted(data: bytes, pos: int, count: int) -> tuple[int, _Leaders, _Replicas]:
    """Past so many partitions."""
    for _ in range(count):
        pos += _PARTITION_BYTES
        for _array in range(3):  # replicas, in sync, offline
            length = data[pos]
            if length < 128:
                pos += 1
            else:
                length, pos = read_uvarint(data, pos)
            if length > 1:
                pos += 4 * (length - 1)
        pos = pos + 1 if not data[pos] else skip_tags(data, pos)
    return pos, (), ()


def _placed(data: bytes, pos: int, count: int) -> tuple[int, _Leaders, _Replicas]:
    """Past so many partitions, and where they are."""
    if count > (len(data) - pos) // _PARTITION_BYTES:
        raise ValueError("more partitions than bytes")
    found: list[tuple[int, int, tuple[int, ...]]] = []
    known: dict[bytes, tuple[int, ...]] = {}
    for _ in range(count):
        number, leader = _NUMBER_AND_LEADER(data, pos + 2)
        length, start = read_uvarint(data, pos + _PARTITION_BYTES)
        replicas = data[start : start + 4 * (length - 1)]
        if replicas not in known:
            known[replicas] = unpack_from(f">{length - 1}i", data, start)
        found.append((number, leader, known[replicas]))
        pos, _, _ = _counted(data, pos, 1)
    found.sort()
    return pos, tuple([leader for _, leader, _ in found]), tuple([replicas for _, _, replicas in found])
