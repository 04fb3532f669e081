"""The partitions that were there when a consumer began: later ones are new, and have nothing old in them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.metadata import ClusterMetadata
from ringleader.clients.errors import RetriableError
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode

CONFIRM_S = 0.2
"""A topic that seems to be missing is looked for again after this time: a broker that has just started may
not know it yet."""


class Baseline:
    """The topics that this process saw first, with their ids and numbers of partitions.

    The first sight of a topic counts, even if that was that there is none. A topic that was never looked for
    is not known, and nothing of it is new.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[bytes, int] | None] = {}
        self._unclear: set[str] = set()
        """Topics in trouble at the first sight: they are there, with as many partitions as a later sight
        tells."""
        self._all = False
        """All topics were looked at: what is not among them was not there."""

    def note(self, metadata: ClusterMetadata, topics: Iterable[str] | None) -> None:
        """The answer of the cluster about these topics; None: about all."""
        for name in metadata.topics if topics is None else topics:
            topic = metadata.topics.get(name)
            if topic is None or name in self._seen:
                continue
            if not topic.error_code:
                self._seen[name] = topic.id, len(topic.partitions)
                self._unclear.discard(name)
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._seen[name] = None
                self._unclear.discard(name)
            elif topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._unclear.add(name)
        self._all = self._all or topics is None

    async def look(self, cluster: Cluster, topics: Iterable[str] | None, timeout_s: float) -> None:
        """Ask the cluster about these topics, or about all (None). Raises BrokerError, RetriableError, also
        while a topic is in trouble."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        wanted = None if topics is None else [name for name in topics if name not in self._seen]
        if wanted == []:
            return
        metadata = await self._ask(cluster, wanted, deadline_s)
        missing = not metadata.topics or any(topic.error_code for topic in metadata.topics.values())
        if missing and asyncio.get_running_loop().time() + CONFIRM_S < deadline_s:
            await asyncio.sleep(CONFIRM_S)
            metadata = await self._ask(cluster, wanted, deadline_s)
        self.note(metadata, wanted)
        if unclear := sorted(self._unclear if wanted is None else self._unclear & set(wanted)):
            raise RetriableError(f"{len(unclear)} topics are in trouble: {', '.join(unclear[:3])}")

    @staticmethod
    async def _ask(cluster: Cluster, topics: list[str] | None, deadline_s: float) -> ClusterMetadata:
        backoff = Backoff(50, 1_000, random.random)
        return await retrying(deadline_s, backoff, lambda: cluster.metadata(topics, deadline_s=deadline_s))

    def is_new(self, partition: TopicPartition, topic_id: bytes) -> bool:
        """Whether it was certainly not there at first; `topic_id`: of its topic now."""
        topic, number = partition
        if topic not in self._seen:
            return self._all and topic not in self._unclear
        seen = self._seen[topic]
        return seen is None or seen[0] != topic_id or number >= seen[1]
