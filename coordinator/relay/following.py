"""All topics of the cluster, kept current for groups of the consumer protocol.

A node computes assignments from the names, ids and numbers of partitions of topics, so they must never go
back: a group would begin another epoch, and members would give partitions up. Brokers hear of changes one
after the other, and each look may be at another broker. A topic that is new, or has more partitions than
before, counts at once. One that is missing, or has another id, counts when all brokers say so.

Nothing is looked at before a group of the protocol needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from ringleader.clients.errors import ClientError
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.logs import Log
from ringleader.coordinator.relay import topology
from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.run_queue import SLICE_ELEMENTS
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import MetadataResponse, MetadataResponseTopic
from ringleader.protocol.schema import ZERO_UUID

INTERVAL_S = 5.0
"""Least time from one look to the next."""
SHARE = 20
"""A look may take one part in this number of a node's time: clusters with very many topics are looked at less
often."""
NAMES_AT_A_TIME = 500


class Following:
    """Keeps `GroupRuntime.topics` current."""

    def __init__(self, known: Topology, runtime: GroupRuntime, log: Log) -> None:
        self._topology = known
        self._topics = runtime.topics
        self._log = log
        self._turn = asyncio.Lock()
        self._begun = 0
        """Number of looks."""
        self._wanted = asyncio.Event()
        self._topics.complete = False
        runtime.look_at_topics = self.look
        known.on_topic = self._saw

    async def watch(self, interval_s: float = INTERVAL_S) -> None:
        """Look again and again, from the first look on that anybody else wants."""
        await self._wanted.wait()
        now_s = asyncio.get_running_loop().time
        while True:
            began_s = now_s()
            try:
                await self.look()
            except KafkaError as error:
                self._log.debug("topics not looked at", reason=str(error))
            await asyncio.sleep(max(interval_s, SHARE * (now_s() - began_s)))

    async def look(self) -> None:
        """See `LookAtTopics`. All that ask while a look is under way share the next one."""
        self._wanted.set()
        begun_before = self._begun
        async with self._turn:
            if self._begun > begun_before:
                return
            self._begun += 1
            try:
                await self._look()
            except ClientError as error:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
            self._topics.complete = True

    # ---- what is new ----

    def _saw(self, topic: topology.Topic) -> None:
        self._learn(topic.name, topic.id, _racks(topic.replicas, self._topology.seen))

    def _learn(self, name: str, topic_id: bytes, racks: Racks) -> bool:
        """Whether that agrees with what is known."""
        if topic_id == ZERO_UUID:
            return True  # a cluster without topic ids: nothing of it can be assigned
        known = self._topics.named(name)
        if known is not None and known.topic_id != topic_id:
            return False
        has_grown = known is None or known.partitions < len(racks)
        if has_grown or (known is not None and known.partitions == len(racks) and any(racks)):
            self._topics.put(_topic(name, topic_id, racks))
        return True

    async def _look(self) -> None:
        """Raises ClientError."""
        found = await self._topology.metadata_of_all()
        seen = {**self._topology.seen, **{one.node_id: one.rack or "" for one in found.brokers}}
        present = set()
        doubted = []
        for number, topic in enumerate(found.topics, 1):
            if topic.name:
                present.add(topic.name)
                if not topic.error_code and not self._learn(
                    topic.name, topic.topic_id, _racks(_replicas(topic), seen)
                ):
                    doubted.append(topic.name)
            if not number % SLICE_ELEMENTS:
                await asyncio.sleep(0)
        doubted += [topic.name for topic in self._topics.all() if topic.name not in present]
        for start in range(0, len(doubted), NAMES_AT_A_TIME):
            await self._settle(doubted[start : start + NAMES_AT_A_TIME])

    # ---- what is gone, or another one ----

    async def _settle(self, names: Sequence[str]) -> None:
        """Believe of these topics whatever all brokers agree on. Raises ClientError: a later look decides."""
        first = await self._topology.metadata(names)
        self._topology.learn(first)
        views = [
            dict(_identities(await self._topology.metadata(names, broker)))
            for broker in list(self._topology.brokers.values())
        ]
        for name in names:
            identities = {view.get(name) for view in views}
            if len(identities) != 1:
                continue
            [one] = identities
            if one == _DELETED:
                self._topics.remove(name)
            elif one is not None:
                self._topics.put(_topic(name, one[0], self._racks_of(name, one[1])))

    def _racks_of(self, name: str, partitions: int) -> Racks:
        """As far as the last answer about the topic says it."""
        known = self._topology.describe(name)
        if known is None or known.partitions != partitions:
            return (frozenset(),) * partitions
        return _racks(known.replicas, self._topology.seen)


Racks = tuple[frozenset[str], ...]
"""By partition."""

_DELETED = (ZERO_UUID, 0)


def _topic(name: str, topic_id: bytes, racks: Racks) -> Topic:
    return Topic(name, topic_id, len(racks), racks if any(racks) else ())


def _racks(replicas: Sequence[Sequence[int]], seen: Mapping[int, str]) -> Racks:
    """Of each partition's replicas, as far as the brokers' racks are known. Equal ones are one object."""
    shared: dict[frozenset[str], frozenset[str]] = {}
    found = (frozenset(rack for one in brokers if (rack := seen.get(one))) for brokers in replicas)
    return tuple(shared.setdefault(one, one) for one in found)


def _replicas(topic: MetadataResponseTopic) -> list[list[int]]:
    found: list[list[int]] = [[]] * _count(topic)
    for one in topic.partitions:
        found[one.partition_index] = one.replica_nodes
    return found


def _identities(response: MetadataResponse) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """By name, the id and number of partitions of each topic of which the broker is sure."""
    for topic in response.topics:
        if not topic.name:
            continue
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            yield topic.name, _DELETED
        elif not topic.error_code and topic.topic_id != ZERO_UUID:
            yield topic.name, (topic.topic_id, _count(topic))


def _count(topic: MetadataResponseTopic) -> int:
    return 1 + max((one.partition_index for one in topic.partitions), default=-1)
