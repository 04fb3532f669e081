"""The questions of a run to its cluster: a group's coordinator, a partition's leader, the controller, whether
all is in sync.

Each question goes to one address after the other until one answers; None where nobody does."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ringleader.coordinator.cluster.map import ClusterMap, MapError
from ringleader.protocol.errors import ErrorCode, MalformedError, error_name
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetFetchRequest,
)
from ringleader.protocol.schema import Message
from tests.support.rawclient import ConnectionClosedError, RawConnection, hand_frame

ANSWER_S = 2.0
READY_S = 90.0
AGAIN_S = 0.1
_METADATA, _FIND, _CREATE, _DESCRIBE, _FETCH, _QUORUM = 9, 3, 4, 4, 5, 55
_NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
_Found = TypeVar("_Found")


def _of_any(bootstrap: str, ask: Callable[[RawConnection], _Found | None]) -> _Found | None:
    for address in bootstrap.split(","):
        with (
            contextlib.suppress(OSError, ConnectionClosedError, MalformedError),
            RawConnection(address, timeout_s=ANSWER_S) as connection,
        ):
            found = ask(connection)
            if found is not None:
                return found
    return None


def _call(bootstrap: str, message: Message, version: int) -> Any:
    return _of_any(bootstrap, lambda connection: connection.call(message, version))


def coordinator(bootstrap: str, group: str) -> int | None:
    """The node id of the group's coordinator."""

    def ask(connection: RawConnection) -> int | None:
        answer = connection.call(FindCoordinatorRequest(key=group), _FIND)
        return None if answer.error_code else int(answer.node_id)

    return _of_any(bootstrap, ask)


def leader(bootstrap: str, topic: str, partition: int) -> int | None:
    """The node id of a partition's leader."""
    answer = _call(bootstrap, MetadataRequest(topics=None), _METADATA)
    for found in [] if answer is None else answer.topics:
        for one in found.partitions:
            if (found.name, one.partition_index) == (topic, partition) and one.leader_id >= 0:
                return int(one.leader_id)
    return None


def quorum_leader(bootstrap: str) -> int | None:
    """The broker that is Kafka's active controller: DescribeQuorum v0, by hand."""
    topic = b"__cluster_metadata"
    partitions = b"\x02" + struct.pack(">i", 0) + b"\0"
    body = b"\x02" + bytes([len(topic) + 1]) + topic + partitions + b"\0\0"

    def ask(connection: RawConnection) -> int | None:
        connection.send_bytes(hand_frame(_QUORUM, 0, body, flexible=True))
        answer = connection.receive_frame()
        # Correlation id, tags; error; one topic with its name; one partition: index, error, leader.
        at = 4 + 1 + 2 + 1 + 1 + len(topic) + 1 + 4
        error, found = struct.unpack_from(">hi", answer, at)
        return None if error or found < 0 else int(found)

    return _of_any(bootstrap, ask)


def cluster_map(brokers: str, nodes_group: str) -> ClusterMap | None:
    """The owners of all shards, as the newest member of the nodes' group knows them."""

    def ask(connection: RawConnection) -> ClusterMap | None:
        [group] = connection.call(DescribeGroupsRequest(groups=[nodes_group]), _DESCRIBE).groups
        maps = []
        for member in group.members:
            with contextlib.suppress(MapError):
                maps.append(ClusterMap.decode(member.member_assignment))
        return max(maps, key=lambda one: one.generation, default=None)

    return _of_any(brokers, ask)


def all_in_sync(bootstrap: str, brokers: int) -> bool:
    """Whether that many brokers are there, and every replica of every partition is in sync."""
    answer = _call(bootstrap, MetadataRequest(topics=None), _METADATA)
    return (
        answer is not None
        and len(answer.brokers) == brokers
        and all(
            one.leader_id >= 0 and len(one.isr_nodes) == len(one.replica_nodes)
            for topic in answer.topics
            for one in topic.partitions
        )
    )


def until(holds: Callable[[], bool], what: str, timeout_s: float = READY_S) -> None:
    """Ask again until it holds: nobody tells when. Raises ``TimeoutError``."""
    until_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > until_s:
            raise TimeoutError(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(AGAIN_S)


def create_topic(bootstrap: str, name: str, partitions: int, replicas: int, in_sync: int) -> None:
    """A topic that every broker knows with all its leaders: librdkafka, once it has read that there is none,
    asks again after five minutes. Raises ``TimeoutError``."""
    topic = CreateTopicsRequestCreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreateTopicsRequestCreatableTopicConfig(name="min.insync.replicas", value=str(in_sync))],
    )

    def created() -> bool:
        answer = _call(bootstrap, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), _CREATE)
        code = None if answer is None else answer.topics[0].error_code
        if code not in (None, 0, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_REPLICATION_FACTOR):
            raise RuntimeError(f"CreateTopics: {error_name(code)}")
        # A broker that has just started may not know of the others yet.
        return code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)

    def known(address: str) -> bool:
        answer = _call(address, MetadataRequest(topics=[MetadataRequestTopic(name=name)]), _METADATA)
        return (
            answer is not None
            and len(answer.topics[0].partitions) == partitions
            and all(one.leader_id >= 0 for one in answer.topics[0].partitions)
        )

    until(created, f"topic {name}")
    for address in bootstrap.split(","):
        until(lambda address=address: known(address), f"topic {name} at {address}")  # type: ignore[misc]


def await_groups(bootstrap: str, groups: Iterable[str]) -> None:
    """Until the coordinator of each group answers. Raises ``TimeoutError``."""

    def served(group: str) -> bool:
        def ask(connection: RawConnection) -> bool | None:
            found = connection.call(FindCoordinatorRequest(key=group), _FIND)
            if found.error_code:
                return None
            with RawConnection((found.host, found.port), timeout_s=ANSWER_S) as owner:
                answer = owner.call(OffsetFetchRequest(group_id=group, topics=[]), _FETCH)
            return None if answer.error_code in _NOT_YET else True

        return _of_any(bootstrap, ask) is True

    for group in groups:
        until(lambda group=group: served(group), f"the coordinator of {group}")  # type: ignore[misc]
