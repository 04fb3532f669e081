"""The topics of a cluster and their numbers of partitions: Metadata (API 3) without an object for each.

A pattern may need all topics of a cluster, every time. So the answers of versions 9 to 12 are walked over
rather than decoded; older ones are decoded as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import NamedTuple

from ringleader.protocol.frames import decode_response
from ringleader.protocol.messages import MetadataResponse, MetadataResponseTopic
from ringleader.protocol.wire import read_uvarint, skip_tags

FLAT_VERSION, NEWEST_VERSION = 9, 12
"""Versions of Metadata that are walked over."""
ZERO_ID = bytes(16)

_BROKER_PORT = Struct(">i")
_NUMBER_AND_LEADER = Struct(">ii").unpack_from
_PARTITION_BYTES = 14
"""Error code, number, leader and its epoch, from version 7 on."""


class TopicOverview(NamedTuple):
    """A topic at a glance. `id`: zero from brokers without ids. `leaders` and `replicas` (node ids, by
    partition) are there if they were asked for."""

    id: bytes
    partitions: int
    internal: bool
    error_code: int
    leaders: tuple[int, ...] = ()
    replicas: tuple[tuple[int, ...], ...] = ()


class BrokerOverview(NamedTuple):
    """A broker: where it listens, and its rack."""

    host: str
    port: int
    rack: str | None


class MetadataOverview(NamedTuple):
    """A cluster at a glance: topics by name, brokers by node id."""

    topics: Mapping[str, TopicOverview]
    brokers: Mapping[int, BrokerOverview]


def read_overview(frame: bytes, version: int, with_replicas: bool = False) -> MetadataOverview:
    """The overview in an answer to Metadata (header and body, without the size); `with_replicas`: also who
    leads and holds each partition. Raises MalformedError."""
    if version >= FLAT_VERSION:
        try:
            return _walk(frame, version, with_replicas)
        except (ValueError, IndexError, struct_error):
            pass  # something is wrong with it: the decoder says what
    response: MetadataResponse = decode_response(MetadataResponse, frame, version)[1]
    return MetadataOverview(
        {topic.name or "": _topic(topic, with_replicas) for topic in response.topics},
        {one.node_id: BrokerOverview(one.host, one.port, one.rack) for one in response.brokers},
    )


def _topic(topic: MetadataResponseTopic, with_replicas: bool) -> TopicOverview:
    found = TopicOverview(topic.topic_id, len(topic.partitions), topic.is_internal, topic.error_code)
    if not with_replicas:
        return found
    parts = sorted(topic.partitions, key=lambda part: part.partition_index)
    return found._replace(
        leaders=tuple(part.leader_id for part in parts),
        replicas=tuple(tuple(part.replica_nodes) for part in parts),
    )


# ---- walking over versions 9 to 12 ----


def _walk(data: bytes, version: int, with_replicas: bool) -> MetadataOverview:
    pos = skip_tags(data, 4) + 4  # correlation id, tags; throttle time
    brokers: dict[int, BrokerOverview] = {}
    count, pos = read_uvarint(data, pos)
    for _ in range(count - 1):
        (node_id,) = _BROKER_PORT.unpack_from(data, pos)
        host, pos = _text(data, pos + 4)
        (port,) = _BROKER_PORT.unpack_from(data, pos)
        rack, pos = _text(data, pos + 4)
        brokers[node_id] = BrokerOverview(host or "", port, rack)
        pos = skip_tags(data, pos)
    _, pos = _text(data, pos)  # cluster id
    pos += 4  # controller
    walk: Callable[[bytes, int, int], tuple[int, _Leaders, _Replicas]] = (
        _with_replicas if with_replicas else _counted
    )
    id_bytes = 16 if version >= 10 else 0
    topics: dict[str, TopicOverview] = {}
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
        topics[name or ""] = TopicOverview(topic_id, partitions, internal, error_code, leaders, replicas)
        pos = skip_tags(data, pos + 4)  # authorized operations
    skip_tags(data, pos + (4 if version <= 10 else 0))  # the cluster's authorized operations
    return MetadataOverview(topics, brokers)


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
    """The position after `count` partitions."""
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


def _with_replicas(data: bytes, pos: int, count: int) -> tuple[int, _Leaders, _Replicas]:
    """The position after `count` partitions, and their leaders and replicas."""
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
