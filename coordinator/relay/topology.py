"""The known state of the cluster: its brokers, and the leaders of partitions.

A topic is looked up when it is first wanted, and again after a broker answered that it does not lead it.
Answers to clients' own requests for metadata are learned from, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import (
    TRANSACTION,
    RawAnswer,
    Request,
    find_coordinator,
    found_coordinator,
    plain,
)
from ringleader.clients.errors import ClientError, ConnectionLostError, RetriableError
from ringleader.clients.model import Node
from ringleader.coordinator.bounded import BoundedCache
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.frames import decode_response
from ringleader.protocol.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ringleader.protocol.schema import ZERO_UUID

ABSENT_S = 1.0
"""A topic that does not exist is asked for again after this time."""
ABSENT_MAX_BYTES = 1024 * 1024
"""Memory for such names."""
ATTEMPTS, ATTEMPT_MS = 3, 3_000
"""Tries, and the time for each, when any broker will do."""
LONG_BYTES = 131_072
"""A longer answer is decoded on another thread."""
METADATA = "metadata"
"""The purpose of its connections: short answers, in time."""


class Topic(NamedTuple):
    """A topic of the cluster."""

    name: str
    id: bytes
    leaders: tuple[int, ...]
    """Broker ids by partition; -1 while there is none."""
    replicas: tuple[tuple[int, ...], ...]
    """Broker ids of each partition, and which of them are offline."""
    offline: tuple[tuple[int, ...], ...]

    @property
    def partitions(self) -> int:
        """Their number."""
        return len(self.leaders)


class Topology:
    """See the module. The directory of topics of a node whose topics live on a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.brokers: dict[int, Node] = {}
        """Brokers that are there."""
        self.seen: Mapping[int, str] = {}
        """All brokers that ever were, and the last rack of each; "": none."""
        self.controller_id = -1
        self._topics: dict[str, Topic] = {}
        self._stale: set[str] = set()
        self._ids: dict[bytes, str] = {}
        self._absent: BoundedCache[str | bytes, float] = BoundedCache(ABSENT_MAX_BYTES)
        self._asking: asyncio.Task[None] | None = None
        self._next: tuple[set[str], asyncio.Future[None]] | None = None
        self._coordinators: BoundedCache[str, int] = BoundedCache(ABSENT_MAX_BYTES)
        self.on_topic: Callable[[Topic], None] | None = None
        """Called with every topic that an answer describes."""

    # ---- topics ----

    def describe(self, name: str) -> Topic | None:
        """See `TopicDirectory`."""
        return self._topics.get(name)

    def describe_id(self, topic_id: bytes) -> Topic | None:
        """See `TopicDirectory`."""
        return self._topics.get(self._ids.get(topic_id, ""))

    def all(self) -> Sequence[Topic]:
        """Those that are known."""
        return list(self._topics.values())

    def leader(self, topic: str, partition: int) -> Node | ErrorCode:
        """The leader of a partition, as far as is known; else the error."""
        found = self._topics.get(topic)
        if found is None or not 0 <= partition < found.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self.brokers.get(found.leaders[partition]) or ErrorCode.LEADER_NOT_AVAILABLE

    def suspect(self, topics: Iterable[str]) -> None:
        """Their leaders have to be looked up before they are asked again."""
        self._stale.update(topics)

    async def find(self, names: Sequence[str]) -> None:
        """See `FindTopics`: look up these topics, now."""
        try:
            await self._look_up(names)
        except ClientError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    async def find_ids(self, ids: Sequence[bytes]) -> None:
        """See `FindTopicIds`: look up the topics with these ids, now."""
        now_s = asyncio.get_running_loop().time()
        due = [one for one in ids if now_s - self._absent.get(one, -ABSENT_S) >= ABSENT_S]
        try:
            found = await self.names(due) if due else {}
        except ClientError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        for one, name in found.items():
            if name is None:
                self._absent.remember(one, now_s)

    async def ensure(self, names: Iterable[str]) -> None:
        """Look up those of these topics whose leaders are not known. Raises ClientError."""
        await self._look_up(name for name in names if name in self._stale or name not in self._topics)

    async def _look_up(self, names: Iterable[str]) -> None:
        """But for those that were just found not to exist."""
        now_s = asyncio.get_running_loop().time()
        due = [
            name
            for name in names
            if name in self._stale or now_s - self._absent.get(name, -ABSENT_S) >= ABSENT_S
        ]
        if due:
            await self._ask(due)

    async def refresh(self) -> None:
        """Look up the brokers. Raises ClientError."""
        await self._ask([])

    async def _ask(self, names: Iterable[str]) -> None:
        """All that are wanted while one request is under way go into the next."""
        if self._next is None:
            self._next = set(), asyncio.get_running_loop().create_future()
            if self._asking is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask_on(), name="topology")
        wanted, answered = self._next
        wanted.update(names)
        await asyncio.shield(answered)

    async def _ask_on(self) -> None:
        try:
            while self._next is not None:
                (names, answered), self._next = self._next, None
                try:
                    self.learn(await self.metadata(sorted(names)))
                except BaseException as error:
                    cancelled = isinstance(error, asyncio.CancelledError)
                    answered.set_exception(ConnectionLostError("the node stops") if cancelled else error)
                    answered.exception()  # perhaps nothing waits for it any more
                    if not isinstance(error, ClientError):
                        raise
                else:
                    answered.set_result(None)
        finally:
            self._asking = None

    async def names(self, ids: Sequence[bytes]) -> dict[bytes, str | None]:
        """The current names of the topics with these ids; None: there is none. Raises ClientError."""
        topics = [MetadataRequestTopic(topic_id=one, name=None) for one in ids]
        message = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        response: MetadataResponse = await self.ask_any(plain(message))
        self.learn(response)
        return {topic.topic_id: topic.name or None for topic in response.topics}

    async def metadata(self, names: Sequence[str], broker: Node | None = None) -> MetadataResponse:
        """The answer of that broker, or of any, about these topics. Raises ClientError."""
        topics = [MetadataRequestTopic(name=name) for name in names]
        request = plain(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        response: MetadataResponse
        if broker is None:
            response = await self.ask_any(request)
        else:
            response = await self.ask(broker, request, METADATA, request_timeout_ms=ATTEMPT_MS)
        return response

    async def metadata_of_all(self) -> MetadataResponse:
        """The answer of any broker about all topics. Raises ClientError."""
        message = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        return await decoded(await self.ask_any(Request(MetadataRequest, lambda _version: message, raw=True)))

    def learn(self, response: MetadataResponse) -> None:
        """From an answer of version 10 or later."""
        self.brokers = {one.node_id: Node(one.node_id, one.host, one.port) for one in response.brokers}
        self._cluster.know(self.brokers)
        self.controller_id = response.controller_id
        self._see({one.node_id: one.rack or "" for one in response.brokers})
        shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        now_s = asyncio.get_running_loop().time()
        for topic in response.topics:
            name = topic.name
            if not name:
                continue
            self._stale.discard(name)
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._forget(name)
                self._absent.remember(name, now_s)
            elif not topic.error_code:
                count = 1 + max((one.partition_index for one in topic.partitions), default=-1)
                leaders = [-1] * count
                replicas: list[tuple[int, ...]] = [()] * count
                offline = replicas.copy()
                for one in topic.partitions:
                    leaders[one.partition_index] = one.leader_id
                    for kept, found in (replicas, one.replica_nodes), (offline, one.offline_replicas):
                        brokers = tuple(found)
                        kept[one.partition_index] = shared.setdefault(brokers, brokers)
                self._forget(name)
                known = self._topics[name] = Topic(
                    name, topic.topic_id or ZERO_UUID, tuple(leaders), tuple(replicas), tuple(offline)
                )
                if known.id != ZERO_UUID:
                    self._ids[known.id] = name
                if self.on_topic is not None:
                    self.on_topic(known)
                self._see(dict.fromkeys((one for one in leaders if one >= 0 and one not in self.seen), ""))
                if -1 in leaders:
                    self._stale.add(name)

    def _forget(self, name: str) -> None:
        known = self._topics.pop(name, None)
        if known is not None:
            self._ids.pop(known.id, None)

    def _see(self, racks: Mapping[int, str]) -> None:
        if not self.seen.items() >= racks.items():
            self.seen = {**self.seen, **racks}

    # ---- brokers ----

    async def ask(self, broker: Node | None, request: Request, purpose: str, **how: Any) -> Any:
        """Ask that broker, or any. Raises ClientError."""
        return await self._cluster.send(broker, request, purpose=purpose, **how)

    async def ask_any(self, request: Request) -> Any:
        """Ask any broker a question that may be repeated; one that hangs is not waited for. Raises
        ClientError."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self.ask(None, request, METADATA, request_timeout_ms=ATTEMPT_MS)
            except RetriableError:
                continue
        return await self.ask(None, request, METADATA, request_timeout_ms=ATTEMPT_MS)

    async def controller(self) -> Node | None:
        """The broker for changes of topics; None: any will do. Raises ClientError."""
        if self.controller_id not in self.brokers:
            await self.refresh()
        return self.brokers.get(self.controller_id)

    async def coordinator(self, transactional_id: str) -> Node:
        """The broker that coordinates a transactional id. Raises ClientError, KafkaError."""
        known = self.brokers.get(self._coordinators.get(transactional_id, -1))
        if known is not None:
            return known
        code, node = found_coordinator(await self.ask_any(find_coordinator(transactional_id, TRANSACTION)))
        if node is None:
            raise KafkaError(code)
        self._coordinators.remember(transactional_id, node.node_id)
        return node

    def suspect_coordinator(self, transactional_id: str) -> None:
        """It has moved, or cannot be reached: it is looked up before it is asked again."""
        self._coordinators.remember(transactional_id, -1)


async def decoded(answer: RawAnswer) -> MetadataResponse:
    """An answer with metadata, which may be long."""
    decode = partial(decode_response, MetadataResponse, answer.frame, answer.version)
    _, found = decode() if len(answer.frame) <= LONG_BYTES else await asyncio.to_thread(decode)
    return found
