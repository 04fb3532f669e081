"""Which broker leads which partition of the groups' topic: looked up again when a caller reports that it
moved."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import ClusterMetadata, read_metadata
from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.errors import ClientError, ConnectionLostError
from ringleader.clients.model import Node
from ringleader.protocol.messages import MetadataRequest, MetadataRequestTopic
from ringleader.protocol.schema import ZERO_UUID

NEXT_MS = 700
"""A broker that takes longer may be the one that is the reason for asking: the next one is asked beside
it."""

SUSPICIOUS_S = 0.7
"""Time without an answer of a leader after which the others are asked whether it still is one."""

AGAIN_MS, AGAIN_MAX_MS, CALM_S = 10, 250, 2.0
"""Back-off while what is known does not help; it starts small again after this time without one."""


class Leaders:
    """By partition. `news()` is called whenever the cluster has reported them."""

    def __init__(self, cluster: Cluster, topic: str, news: Callable[[], None]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._news = news
        self.known: dict[int, Node] = {}
        """The leaders, where there is one."""
        self.complete = False
        """Whether there was one of each partition."""
        self.topic_ids: set[bytes] = set()
        """All that the topic ever had here: more than one, and it was deleted and made again."""
        self.brokers: list[Node] = []
        """All that the cluster names."""
        self._task: asyncio.Task[None] | None = None
        self._backoff = Backoff(AGAIN_MS, AGAIN_MAX_MS, random.random)
        self._requested_s = 0.0
        self._learnt = asyncio.Event()

    def of(self, partition: int) -> Node | None:
        """The leader; None: not known, or there is none at the moment."""
        return self.known.get(partition)

    def learn(self, metadata: ClusterMetadata) -> None:
        """The cluster's present answer."""
        found = metadata.topics.get(self._topic)
        self.brokers = list(metadata.brokers.values())
        if found is not None and found.partitions:
            brokers = metadata.brokers
            leaders = {part.partition: brokers.get(part.leader) for part in found.partitions}
            self.known = {partition: node for partition, node in leaders.items() if node is not None}
            self.complete = len(self.known) == len(leaders)
            self.topic_ids |= {found.id} - {ZERO_UUID}
        self._learnt.set()
        self._learnt = asyncio.Event()
        self._news()

    def moved(self) -> None:
        """The known leader is not right any more: ask again, in a moment if that was just done."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._ask())

    async def found(self, partition: int) -> Node:
        """The leader, when there is one."""
        while (node := self.known.get(partition)) is None:
            await self.next_news()
        return node

    async def ask(
        self, node: Node, partitions: Iterable[int], request: Request, *, timeout_ms: int, purpose: str
    ) -> Any:
        """Ask the leader of these partitions. Raises ClientError; also, long before the timeout, when another
        broker leads one of them by now."""
        asking = asyncio.ensure_future(
            self._cluster.send(node, request, request_timeout_ms=timeout_ms, purpose=purpose)
        )
        try:
            while not (await asyncio.wait([asking], timeout=SUSPICIOUS_S))[0]:
                self.moved()
                if any(self.of(partition) not in (node, None) for partition in partitions):
                    self._cluster.disconnect(node, purpose)
                    raise ConnectionLostError(f"{node} does not answer, and another broker leads")
            return await asking
        finally:
            asking.cancel()

    async def ask_any(self, request: Request, purpose: str) -> Any:
        """The first answer of any broker: those that are known are asked one after the other, without giving
        up those before, then those to begin with. Raises the last ClientError."""
        nodes: list[Node | None] = [*random.sample(self.brokers, len(self.brokers)), None]
        asking: set[asyncio.Task[Any]] = set()
        failed: ClientError | None = None
        try:
            while nodes or asking:
                if nodes:
                    sending = self._cluster.send(nodes.pop(0), request, purpose=purpose)
                    asking.add(asyncio.get_running_loop().create_task(sending))
                patience_s = NEXT_MS / 1000 if nodes else None
                done, asking = await asyncio.wait(
                    asking, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
                )
                errors = {task: task.exception() for task in done}
                for task, error in errors.items():
                    if not isinstance(error, ClientError):
                        return task.result()
                    failed = error
        finally:
            for task in asking:
                task.cancel()
        assert failed is not None
        raise failed

    async def next_news(self) -> None:
        """Until the cluster has been asked again, and has answered."""
        learnt = self._learnt
        self.moved()
        await learnt.wait()

    async def look(self) -> None:
        """Ask now. Raises ClientError."""
        self.learn(await self._metadata())

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _ask(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._requested_s > CALM_S:
            self._backoff.reset()
        self._requested_s = now_s
        try:
            metadata = None
            while metadata is None:
                await asyncio.sleep(self._backoff.next_ms() / 1000)
                metadata = await self._answer()
        finally:
            self._task = None
        self.learn(metadata)

    async def _answer(self) -> ClusterMetadata | None:
        try:
            return await self._metadata()
        except ClientError:
            return None

    async def _metadata(self) -> ClusterMetadata:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False
        )
        return read_metadata(await self.ask_any(plain(request), "leaders"))
