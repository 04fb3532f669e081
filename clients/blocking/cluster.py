"""A small client that blocks: metadata, and the connections to the brokers of one cluster.

One thread per instance. Every failure that another try may cure is a ConnectionLostError; answers with error
codes are the caller's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TypeVar

from ringleader.clients.blocking.connection import BlockingConnection
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.metadata import metadata_request
from ringleader.clients.connection.requests import Request, in_parts
from ringleader.clients.errors import ClientError, ConnectionLostError
from ringleader.clients.model import TopicPartition
from ringleader.protocol.messages import MetadataResponse, MetadataResponseTopic
from ringleader.protocol.schema import ZERO_UUID, Message

logger = logging.getLogger("ringleader.clients.blocking")

R = TypeVar("R", bound=Message)


class BlockingCluster:
    """Connections to the brokers of one cluster, and who leads which partition."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connections: dict[int, BlockingConnection] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._bootstrap: BlockingConnection | None = None
        self._leaders: dict[TopicPartition, int] = {}
        self._ids: dict[str, bytes] = {}
        self._failures: dict[tuple[str, int], Failures] = {}

    def refresh(self, topics: Iterable[str], create: bool = False) -> dict[str, int]:
        """Ask who leads these topics' partitions; the error code of each topic that has one.

        ``create``: a broker that makes topics by itself may do so. Raises ConnectionLostError when none
        answers.
        """
        # Topics are not made by looking: a typo in 'subscribe' should be seen, not created.
        names = sorted(set(topics))
        found: list[MetadataResponseTopic] = []
        for part in in_parts(names):
            found += self._metadata(metadata_request(part, create)).topics
        for tp in [tp for tp in self._leaders if tp[0] in names]:
            del self._leaders[tp]
        for topic in found:
            if not topic.error_code:
                self._ids[topic.name or ""] = topic.topic_id
            for one in topic.partitions:
                self._leaders[topic.name or "", one.partition_index] = one.leader_id
        return {topic.name or "": topic.error_code for topic in found if topic.error_code}

    def topics(self) -> list[str]:
        """The names of all topics but internal ones. Raises ConnectionLostError when no broker answers."""
        answer = self._metadata(metadata_request(None))
        return sorted(topic.name or "" for topic in answer.topics if not topic.is_internal)

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """The partitions of these topics as of the last ``refresh``."""
        wanted = set(topics)
        return sorted(tp for tp in self._leaders if tp[0] in wanted)

    def leader(self, tp: TopicPartition) -> int | None:
        """The node that leads a partition as of the last ``refresh``; None when unknown or none."""
        node = self._leaders.get(tp)
        return node if node in self._brokers else None

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic as of the last ``refresh`` that found it; zero: it has none."""
        return self._ids.get(topic, ZERO_UUID)

    def forget(self, tp: TopicPartition) -> None:
        """A node answered that it does not lead this partition: ask again."""
        self._leaders.pop(tp, None)

    def connection(self, node: int) -> BlockingConnection:
        """The connection to a node, made when needed. Raises ConnectionLostError."""
        found = self._connections.get(node)
        if found is not None and found.stale and not found.waiting:
            self.drop(node)
            found = None
        if found is None:
            host, port = self._brokers[node]
            found = self._connections[node] = self.open(host, port)
        return found

    def open(self, host: str, port: int) -> BlockingConnection:
        """A connection of its own, which the caller closes. Raises as ``BlockingConnection`` does."""
        failures = self._failures.setdefault((host, port), Failures())

        def tell(error: ClientError) -> None:
            if (line := failures.failed(error, time.monotonic())) is not None:
                logger.warning("%s: %s", self._endpoint.client_id, line)

        found = BlockingConnection(host, port, self._endpoint, tell)
        if failures.works():
            logger.info("%s: connected to %s again", self._endpoint.client_id, found.name)
        return found

    def drop(self, node: int) -> None:
        """Close the connection to a node, for a fresh one next time."""
        found = self._connections.pop(node, None)
        if found is not None:
            found.close()

    def drop_waiting(self) -> None:
        """Close connections that still owe an answer: a later request would get the wrong one."""
        for node in [node for node, found in self._connections.items() if found.waiting]:
            self.drop(node)

    def close(self) -> None:
        """Close all connections."""
        for node in list(self._connections):
            self.drop(node)
        if self._bootstrap is not None:
            self._bootstrap.close()
            self._bootstrap = None

    def _metadata(self, request: Request) -> MetadataResponse:
        answer = self.ask_any(request, MetadataResponse)
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def ask_any(self, request: Request, response: type[R]) -> R:
        """Ask whichever broker answers. Raises ConnectionLostError when none does."""
        reasons: list[str] = []
        for node in list(self._connections):
            if self._connections[node].waiting:
                # The next answer on it belongs to another caller.
                continue
            try:
                return self.connection(node).ask_for(request, response)
            except ConnectionLostError as error:
                reasons.append(str(error))
                self.drop(node)
        for host, port in [*self._endpoint.servers, *self._brokers.values()]:
            if self._bootstrap is not None and self._bootstrap.stale:
                self._bootstrap.close()
                self._bootstrap = None
            try:
                if self._bootstrap is None:
                    self._bootstrap = self.open(host, port)
                return self._bootstrap.ask_for(request, response)
            except ConnectionLostError as error:
                reasons.append(str(error))
                if self._bootstrap is not None:
                    self._bootstrap.close()
                    self._bootstrap = None
        raise ConnectionLostError("; ".join(dict.fromkeys(reasons)))
