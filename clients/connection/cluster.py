"""A Kafka cluster as seen by a client: its brokers, its topics, who coordinates a group.

Connections are opened when needed and come back after they ended."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ringleader.clients.checks import check, check_numbers
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.connection import Connection, open_connection
from ringleader.clients.connection.requests import Request, find_coordinator, found_coordinator
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    ConnectionLostError,
    CoordinatorUnavailableError,
    RetriableError,
    is_retriable,
)
from ringleader.clients.model import Node
from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse

DEFAULT_PORT = 9092

T = TypeVar("T")


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
    """What the cluster says about itself (Metadata, API 3). Times: `asked_s` is `time.monotonic`."""

    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, Node]
    racks: Mapping[int, str | None]
    topics: Mapping[str, TopicMetadata]
    asked_s: float = field(default=0.0, compare=False)

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions, for those of the topics that exist."""
        return {
            name: len(self.topics[name].partitions)
            for name in topics
            if name in self.topics and not self.topics[name].error_code
        }

    def partition_racks(self, topics: Iterable[str]) -> dict[str, list[frozenset[str]]]:
        """Topic -> for each partition the racks of its replicas."""
        return {
            name: [
                frozenset(rack for node in partition.replicas if (rack := self.racks.get(node)))
                for partition in self.topics[name].partitions
            ]
            for name in self.partition_counts(topics)
        }


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[tuple[str, int]]:
    """("a:1,b:2" or a list) -> [("a", 1), ("b", 2)]; [::1]:9092 for IPv6, 9092 when no port is given. Raises
    ValueError."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = []
    for part in (part.strip() for part in parts):
        host, colon, port = part.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        bare = host.removeprefix("[").removesuffix("]")
        if bare == host and ":" in host:
            raise ValueError(f"an IPv6 address needs brackets, [ADDRESS]:PORT: {part!r}")
        host = bare
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"not an address of the form HOST:PORT: {part!r}")
        addresses.append((host, int(port)))
    if not addresses:
        raise ValueError("no bootstrap address given")
    return addresses


class Cluster:
    """Connections to a cluster, opened when needed, one for each broker and lane.

    Lanes keep what may be parked (JoinGroup holds back everything behind it) from the rest. Belongs to the
    event loop it is used on. Use as an async context manager, or `close()` it.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str | None = "ringleader",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        check("bootstrap", bootstrap, str | Sequence[str])
        check("client_id", client_id, str | None)
        check("tls", tls, ssl.SSLContext | None)
        check("sasl", sasl, Sasl | None)
        check_numbers(1, request_timeout_ms=request_timeout_ms, connect_timeout_ms=connect_timeout_ms)
        self.bootstrap = parse_bootstrap(bootstrap)
        self.request_timeout_ms = request_timeout_ms
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._backoff_ms = (reconnect_backoff_ms, reconnect_backoff_max_ms)
        self._tls = tls
        self._sasl = sasl
        self._chance = chance
        self._brokers: dict[int, Node] = {}
        self._metadata: ClusterMetadata | None = None
        self._connections: dict[tuple[str, int, str], Connection] = {}
        self._opening: dict[tuple[str, int, str], asyncio.Lock] = {}
        self._waits: dict[tuple[str, int], tuple[Backoff, float]] = {}
        self._next = 0
        self._closed = False

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. What is in flight fails."""
        self._closed = True
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close("the client was closed")
        # Let the transports tell the event loop that they are gone.
        await asyncio.sleep(0)

    def disconnect(self, node: Node, lane: str = "") -> None:
        """Close the connection to that node, if there is one; the next request opens a new one."""
        connection = self._connections.pop((node.host, node.port, lane), None)
        if connection is not None:
            connection.close("closed to get past a parked request")

    # ---- asking ----

    async def send(
        self, node: Node | None, request: Request, *, timeout_ms: int | None = None, lane: str = ""
    ) -> Any:
        """Send to that node, or to any broker, and wait for the answer, connecting first if needed.

        The timeout (default: the request timeout) counts from when the connection stands. Raises
        ConnectionLostError, RequestTimedOutError, UnsupportedVersionError. Error codes inside the answer are
        the caller's.
        """
        timeout_s = (self.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        if node is None:
            connection = await self._any(lane)
        else:
            connection = await self._connected(node.host, node.port, lane)
        return await connection.ask(request, timeout_s)

    async def _any(self, lane: str) -> Connection:
        for (_, _, its_lane), connection in self._connections.items():
            if its_lane == lane and not connection.ended.is_set():
                return connection
        known = [(node.host, node.port) for node in self._brokers.values()]
        addresses = list(dict.fromkeys(known + self.bootstrap))
        self._next += 1
        why: list[str] = []
        for index in range(len(addresses)):
            host, port = addresses[(self._next + index) % len(addresses)]
            try:
                return await self._connected(host, port, lane)
            except RetriableError as error:
                why.append(str(error))
        raise ConnectionLostError("; ".join(why))

    async def _connected(self, host: str, port: int, lane: str) -> Connection:
        key = (host, port, lane)
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:
            self._check_open()
            connection = self._connections.get(key)
            if connection is not None and not connection.ended.is_set():
                return connection
            connection = await self._open(host, port)
            try:
                self._check_open()
            except ConnectionLostError:
                connection.close("the client was closed")
                raise
            self._connections[key] = connection
            return connection

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionLostError("the client was closed")

    async def _open(self, host: str, port: int) -> Connection:
        backoff, not_before_s = self._waits.get((host, port), (Backoff(*self._backoff_ms, self._chance), 0.0))
        wait_s = not_before_s - time.monotonic()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        try:
            connection = await open_connection(
                host,
                port,
                client_id=self._client_id,
                timeout_s=self._connect_timeout_s,
                tls=self._tls,
                sasl=self._sasl,
            )
        except ClientError:
            self._waits[host, port] = (backoff, time.monotonic() + backoff.next_ms() / 1000)
            raise
        self._waits.pop((host, port), None)
        return connection

    async def ready(self, timeout_s: float) -> None:
        """Return when a broker has been reached. Raises what is in the way when time is over."""
        await retrying(int(timeout_s * 1000), Backoff(*self._backoff_ms, self._chance), lambda: self._any(""))

    # ---- what the cluster knows ----

    async def metadata(
        self, topics: Iterable[str] | None = None, *, max_age_ms: int = 0, create: bool = False
    ) -> ClusterMetadata:
        """Brokers and topics: all topics (None) or those named; missing ones carry an error code.

        An answer not older than `max_age_ms` that covers the topics is used again. `create`: let the broker
        create missing topics, if it is set up to.
        """
        wanted = None if topics is None else sorted(set(topics))
        cached = self._metadata
        if (
            cached is not None
            and wanted is not None
            and (time.monotonic() - cached.asked_s) * 1000 < max_age_ms
            and all(name in cached.topics for name in wanted)
        ):
            return cached

        def build(version: int) -> MetadataRequest:
            every: list[MetadataRequestTopic] | None = [] if version == 0 else None
            listed = every if wanted is None else [MetadataRequestTopic(name=name) for name in wanted]
            # Up to v3 the broker decides by itself; the field is not there.
            return MetadataRequest(topics=listed, allow_auto_topic_creation=create or version < 4)

        response = await self.send(None, Request(MetadataRequest, build))
        self._metadata = _metadata(response)
        self._brokers = dict(self._metadata.brokers)
        return self._metadata

    async def coordinator(self, group_id: str) -> Node:
        """The node that coordinates the group now. Raises CoordinatorUnavailableError while there is none."""
        code, node = found_coordinator(await self.send(None, find_coordinator(group_id)))
        if node is not None:
            return node
        text = f"group {group_id!r}: the cluster names no coordinator ({error_name(code)})"
        raise (CoordinatorUnavailableError if is_retriable(code) else BrokerError)(text, code)

    async def controller(self) -> Node | None:
        """The node for changes of topics; None: any will do."""
        metadata = await self.metadata([], max_age_ms=self.request_timeout_ms)
        return metadata.brokers.get(metadata.controller_id)


def _metadata(response: MetadataResponse) -> ClusterMetadata:
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
        response.cluster_id,
        response.controller_id,
        {broker.node_id: Node(broker.node_id, broker.host, broker.port) for broker in response.brokers},
        {broker.node_id: broker.rack for broker in response.brokers},
        topics,
        time.monotonic(),
    )


async def retrying(timeout_ms: int, backoff: Backoff, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat an async call while it raises RetriableError, until time is over; then raise the last one."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_ms / 1000
    while True:
        try:
            return await attempt()
        except RetriableError:
            wait_s = backoff.next_ms() / 1000
            if loop.time() + wait_s >= deadline_s:
                raise
            await asyncio.sleep(wait_s)
