"""A small synchronous client: connections, versions, metadata. Used where Spark calls and waits.

Executors fetch through it and the driver-side worker asks it for log ends. One thread per instance.
Every failure that another try may cure is a WireError; answers with error codes are the caller's.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Iterable
from typing import TypeVar, cast

from ringleader.clients.errors import ConnectionLostError
from ringleader.protocol.errors import ErrorCode, MalformedError, error_name
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.network.endpoint import Endpoint
from ringleader.spark_bridge.sharing.offsets import TopicPartition

# A fetch limit is soft: one batch larger than the limits still comes whole. Brokers cap a batch far
# below this; the bound is against a peer that is no Kafka at all.
MAX_FRAME_BYTES = 512 * 1024 * 1024
# The same before the broker has answered who it is.
MAX_GREETING_BYTES = 1024 * 1024
CONNECT_TIMEOUT_S = 10.0
# A larger answer gets memory of its own, or it would be kept for good.
KEPT_BYTES = 32 * 1024 * 1024

_LENGTH = struct.Struct(">i")
R = TypeVar("R", bound=Message)


class WireError(ConnectionLostError):
    """A connection could not be made or broke, or an answer did not come in time."""


class Connection:
    """One connection to one broker. Requests may be sent ahead; answers come in the order of requests.

    Raises WireError from every method; the connection is of no use after that. To make one raises SourceError
    too: the broker does not let this client in, or is not the one it should be.
    """

    def __init__(self, host: str, port: int, endpoint: Endpoint) -> None:
        self.name = f"{host}:{port}"
        self._client_id = endpoint.client_id
        self._correlation = itertools.count(1)
        self._pending: list[tuple[int, int]] = []
        self._room = bytearray()
        try:
            self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        except OSError as error:
            raise WireError(f"cannot connect to {self.name}: {error}") from error
        self._encrypted = False
        self._limit_bytes = MAX_GREETING_BYTES
        self._use_until_s: float | None = None
        try:
            self._set_up(endpoint.request_timeout_ms)
            if endpoint.security:
                self._secure(host, endpoint)
            else:
                self._versions = self._ask_versions()
        except BaseException:
            self.close()
            raise
        self._limit_bytes = MAX_FRAME_BYTES

    def version(self, request: type[Message], highest: int | None = None) -> int:
        """The highest version of an API that both sides (and ``highest``) allow."""
        low, high = self._versions.get(request.API_KEY, (0, -1))
        best = min(high, request.MAX_VERSION if highest is None else highest)
        if best < max(low, request.MIN_VERSION):
            raise WireError(f"{self.name} serves {request.NAME} {low} to {high}; no version fits")
        return best

    def send(self, request: Message, version: int) -> None:
        """Send without waiting for the answer."""
        correlation = next(self._correlation)
        frame = encode_request(request, version, correlation, self._client_id)
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise WireError(f"{self.name} broke the connection: {error}") from error
        self._pending.append((correlation, version))

    def receive(self, response: type[R], in_place: bool = False) -> R:
        """The answer to the oldest request that has none yet.

        ``in_place``: for messages with records, which then are parts of memory that the next such call
        fills again. To get new memory for each answer, and to copy the records, costs more than to
        receive them.
        """
        correlation, version = self._pending.pop(0)
        (size,) = _LENGTH.unpack(self._read(4))
        if not 4 <= size <= self._limit_bytes:
            raise WireError(f"{self.name} announced an answer of {size} bytes")
        try:
            frame = self._read_in_place(size) if in_place else self._read(size)
            got, message = decode_response(response, frame, version)
        except MalformedError as error:
            raise WireError(f"{self.name} sent an answer that does not parse: {error}") from error
        if got != correlation:
            raise WireError(f"{self.name} answered request {got}, not {correlation}")
        return message

    def ask(self, request: Message, response: type[R], version: int | None = None) -> R:
        """Send, and wait for the answer."""
        self.send(request, self.version(type(request)) if version is None else version)
        return self.receive(response)

    @property
    def stale(self) -> bool:
        """Whether the session that the broker granted is nearly over: time for a new connection."""
        return self._use_until_s is not None and time.monotonic() > self._use_until_s

    @property
    def waiting(self) -> int:
        """How many answers are outstanding."""
        return len(self._pending)

    def close(self) -> None:
        """Close; may be called twice."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _set_up(self, timeout_ms: int) -> None:
        sock = self._socket
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A kernel timeout on a blocking socket lets MSG_WAITALL fill one buffer in one call.
        sock.settimeout(None)
        value = struct.pack("ll", timeout_ms // 1000, timeout_ms % 1000 * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)

    def _secure(self, host: str, endpoint: Endpoint) -> None:
        from ringleader.spark_bridge.network import secure

        security = secure.security_of(endpoint.security)
        timeout_s = endpoint.request_timeout_ms / 1000
        try:
            if security.tls is not None:
                # With TLS no call fills more than one record: the socket's own timeout serves as well.
                self._socket.settimeout(timeout_s)
                self._socket = secure.encrypted(self._socket, host, security.tls, self.name)
                self._encrypted = True
            self._versions = self._ask_versions()
            if security.sasl is not None:
                lifetime_s = secure.authenticate(self, security.sasl, timeout_s)
                if lifetime_s is not None:
                    self._use_until_s = time.monotonic() + lifetime_s
                if MetadataRequest.API_KEY not in self._versions:
                    # It tells strangers only what they need to prove who they are.
                    self._versions = self._ask_versions()
        except OSError as error:
            raise WireError(f"no secure connection to {self.name}: {error}") from error

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        # Version 0 is answered by every broker there is.
        answer = self.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        if answer.error_code:
            raise WireError(f"{self.name} refused ApiVersions: {error_name(answer.error_code)}")
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _read(self, size: int) -> bytes:
        if self._encrypted:
            return self._read_encrypted(size)
        parts: list[bytes] = []
        left = size
        while left:
            try:
                part = self._socket.recv(left, socket.MSG_WAITALL)
            except BlockingIOError:
                raise WireError(f"{self.name} did not answer in time") from None
            except OSError as error:
                raise WireError(f"{self.name} broke the connection: {error}") from error
            if not part:
                raise WireError(f"{self.name} closed the connection")
            left -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_encrypted(self, size: int) -> bytes:
        whole = bytearray(size)
        self._fill(memoryview(whole))
        return bytes(whole)

    def _read_in_place(self, size: int) -> bytes:
        if size > KEPT_BYTES:
            return self._read(size)
        if len(self._room) < size:
            self._room = bytearray(size)
        whole = memoryview(self._room)[:size]
        self._fill(whole)
        # What reads records takes any buffer.
        return cast(bytes, whole)

    def _fill(self, left: memoryview) -> None:
        flags = 0 if self._encrypted else socket.MSG_WAITALL
        while left:
            try:
                count = self._socket.recv_into(left, 0, flags)
            except (TimeoutError, BlockingIOError):
                raise WireError(f"{self.name} did not answer in time") from None
            except OSError as error:
                raise WireError(f"{self.name} broke the connection: {error}") from error
            if not count:
                raise WireError(f"{self.name} closed the connection")
            left = left[count:]


class Wire:
    """Connections to the brokers of one cluster, and who leads which partition."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connections: dict[int, Connection] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._bootstrap: Connection | None = None
        self._leaders: dict[TopicPartition, int] = {}

    def refresh(self, topics: Iterable[str], create: bool = False) -> dict[str, int]:
        """Ask who leads these topics' partitions; the error code of each topic that has one.

        ``create``: a broker that makes topics by itself may do so. Raises WireError when none answers.
        """
        # Topics are not made by looking: a typo in 'subscribe' should be seen, not created.
        names = sorted(set(topics))
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create
        )
        answer = self._metadata(request)
        for tp in [tp for tp in self._leaders if tp[0] in names]:
            del self._leaders[tp]
        for topic in answer.topics:
            for found in topic.partitions:
                self._leaders[topic.name or "", found.partition_index] = found.leader_id
        return {topic.name or "": topic.error_code for topic in answer.topics if topic.error_code}

    def topics(self) -> list[str]:
        """The names of all topics but internal ones. Raises WireError when no broker answers."""
        answer = self._metadata(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return sorted(topic.name or "" for topic in answer.topics if not topic.is_internal)

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """The partitions of these topics as of the last ``refresh``."""
        wanted = set(topics)
        return sorted(tp for tp in self._leaders if tp[0] in wanted)

    def leader(self, tp: TopicPartition) -> int | None:
        """The node that leads a partition as of the last ``refresh``; None when unknown or none."""
        node = self._leaders.get(tp)
        return node if node in self._brokers else None

    def forget(self, tp: TopicPartition) -> None:
        """A node said that it does not lead this partition: ask anew."""
        self._leaders.pop(tp, None)

    def connection(self, node: int) -> Connection:
        """The connection to a node, made when needed. Raises WireError."""
        found = self._connections.get(node)
        if found is not None and found.stale and not found.waiting:
            self.drop(node)
            found = None
        if found is None:
            host, port = self._brokers[node]
            found = self._connections[node] = Connection(host, port, self._endpoint)
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

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        answer = self.ask_any(request, MetadataResponse)
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def ask_any(self, request: Message, response: type[R], highest: int | None = None) -> R:
        """Ask whichever broker answers, in version ``highest`` at most. Raises WireError when none does."""
        reasons: list[str] = []
        for node in list(self._connections):
            if self._connections[node].waiting:
                # The next answer on it belongs to somebody else.
                continue
            try:
                found = self.connection(node)
                return found.ask(request, response, found.version(type(request), highest))
            except WireError as error:
                reasons.append(str(error))
                self.drop(node)
        for host, port in [*self._endpoint.servers, *self._brokers.values()]:
            if self._bootstrap is not None and self._bootstrap.stale:
                self._bootstrap.close()
                self._bootstrap = None
            try:
                if self._bootstrap is None:
                    self._bootstrap = Connection(host, port, self._endpoint)
                found = self._bootstrap
                return found.ask(request, response, found.version(type(request), highest))
            except WireError as error:
                reasons.append(str(error))
                if self._bootstrap is not None:
                    self._bootstrap.close()
                    self._bootstrap = None
        raise WireError("; ".join(dict.fromkeys(reasons)))


def retriable(code: int) -> bool:
    """Whether Kafka's client would try again after this error code."""
    try:
        return ErrorCode(code).retriable
    except ValueError:
        return False
