"""A scripted broker on loopback: what a real one rarely does, on demand."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import decode_request_header, encode_response, request_class
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    FetchRequest,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ringleader.protocol.records import iter_batches
from ringleader.protocol.schema import Message
from tests.support.ports import free_ports

VERSIONS = {1: (4, 12), 2: (1, 7), 3: (0, 12), 17: (0, 1), 18: (0, 3), 36: (0, 2)}


class Partition:
    """One log: whole batches, and how it is described in answers."""

    def __init__(self, *batches: bytes, start: int = 0) -> None:
        self.batches = list(batches)
        self.start = start
        self.leader = 0
        self.errors: list[int] = []
        self.aborted: list[tuple[int, int]] = []
        self.stable: int | None = None

    @property
    def end(self) -> int:
        return max(
            [next(iter_batches(batch)).header.next_offset for batch in self.batches], default=self.start
        )

    def at(self, timestamp_ms: int, end: int) -> int:
        """As ListOffsets answers: -2 the start, -1 the end, else the first record that late, -1 for none."""
        if timestamp_ms < 0:
            return self.start if timestamp_ms == -2 else end
        records = [found for batch in self.batches for found in next(iter_batches(batch)).records()]
        late = [
            found.offset for found in records if found.timestamp_ms >= timestamp_ms and found.offset < end
        ]
        return min(late, default=-1)


class Broker:
    """Node ``node`` of a cluster of brokers that share ``topics``; each connection has its thread.

    ``tls``: it speaks TLS. ``users``: passwords of those who may come, by SASL PLAIN; None: everybody may.
    """

    def __init__(
        self,
        topics: dict[str, dict[int, Partition]],
        node: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        users: dict[str, str] | None = None,
        lifetime_ms: int = 0,
    ) -> None:
        self._tls = tls
        self._users = users
        self._lifetime_ms = lifetime_ms
        self.topics = topics
        self.node = node
        self.peers: list[Broker] = [self]
        self.versions = dict(VERSIONS)
        self.topic_errors: dict[str, list[int]] = {}
        """The errors that Metadata answers for a topic the next times, instead of its partitions."""
        self.fetches: list[FetchRequest] = []
        self.connections = 0
        # Called with each request; returning False closes the connection instead of an answer.
        self.script: Callable[[Message], bool] = lambda request: True
        self._listener = socket.create_server(("127.0.0.1", free_ports(1)[0]))
        self.host, self.port = self._listener.getsockname()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a connection goes on"

    def cut(self) -> None:
        """Break all connections."""
        for sock in self._open.copy():
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self._tls is not None:
                # Wrapped before anybody can cut it: the socket that came is an empty shell from here on.
                sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            self._open.add(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        known = self._users is None
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(OSError, EOFError))
            stack.callback(self._open.discard, sock)
            stack.enter_context(sock)
            if isinstance(sock, ssl.SSLSocket):
                sock.do_handshake()
            stream = sock.makefile("rb")
            with stream:
                while size := int.from_bytes(stream.read(4), "big"):
                    frame = stream.read(size)
                    header, position = decode_request_header(frame)
                    found = request_class(header.api_key)
                    assert found is not None
                    request = found.decode(frame, header.api_version, position)
                    if not self.script(request):
                        return
                    if isinstance(request, SaslAuthenticateRequest):
                        known = self._knows(request.auth_bytes)
                    elif not known and not isinstance(request, ApiVersionsRequest | SaslHandshakeRequest):
                        return
                    answer = self._answer(request)
                    sock.sendall(encode_response(answer, header.api_version, header.correlation_id))

    def _knows(self, credentials: bytes) -> bool:
        _, user, password = credentials.decode().split("\0")
        return (self._users or {}).get(user) == password

    def _answer(self, request: Message) -> Message:
        if isinstance(request, SaslHandshakeRequest):
            return SaslHandshakeResponse(mechanisms=["PLAIN"])
        if isinstance(request, SaslAuthenticateRequest):
            if self._knows(request.auth_bytes):
                return SaslAuthenticateResponse(session_lifetime_ms=self._lifetime_ms)
            return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)
        if isinstance(request, MetadataRequest):
            wanted = request.topics
            return self._metadata(
                list(self.topics) if wanted is None else [topic.name or "" for topic in wanted]
            )
        if isinstance(request, ListOffsetsRequest):
            return self._list(request)
        if isinstance(request, FetchRequest):
            self.fetches.append(request)
            return self._fetch(request)
        entries = [
            ApiVersionsResponseApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.versions.items()
        ]
        return ApiVersionsResponse(api_keys=entries)

    def _metadata(self, names: Sequence[str]) -> MetadataResponse:
        topics = []
        for name in names:
            wrong = 0 if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self.topic_errors.get(name):
                wrong = ErrorCode(self.topic_errors[name].pop(0))
            partitions = [
                MetadataResponsePartition(partition_index=number, leader_id=found.leader)
                for number, found in ({} if wrong else self.topics[name]).items()
            ]
            internal = name.startswith("__")
            topics.append(
                MetadataResponseTopic(
                    name=name, is_internal=internal, error_code=wrong, partitions=partitions
                )
            )
        brokers = [MetadataResponseBroker(node_id=p.node, host=p.host, port=p.port) for p in self.peers]
        return MetadataResponse(brokers=brokers, topics=topics)

    def _list(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            entries = []
            for wanted in topic.partitions:
                found = self.topics[topic.name][wanted.partition_index]
                end = found.end if found.stable is None or not request.isolation_level else found.stable
                wrong = found.errors.pop(0) if found.errors else 0
                if found.leader != self.node:
                    wrong = ErrorCode.NOT_LEADER_OR_FOLLOWER
                entries.append(
                    ListOffsetsResponseListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index,
                        error_code=wrong,
                        offset=-1 if wrong else found.at(wanted.timestamp, end),
                    )
                )
            topics.append(ListOffsetsResponseListOffsetsTopicResponse(name=topic.name, partitions=entries))
        return ListOffsetsResponse(topics=topics)

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        responses = []
        left = request.max_bytes
        for topic in request.topics:
            entries = []
            for wanted in topic.partitions:
                found = self.topics[topic.topic][wanted.partition]
                data = self._partition(found, wanted.fetch_offset, min(wanted.partition_max_bytes, left))
                data.partition_index = wanted.partition
                left = max(0, left - len(data.records or b""))
                entries.append(data)
            responses.append(FetchResponseFetchableTopicResponse(topic=topic.topic, partitions=entries))
        return FetchResponse(responses=responses)

    def _partition(self, found: Partition, offset: int, limit: int) -> FetchResponsePartitionData:
        wrong = found.errors.pop(0) if found.errors else 0
        if found.leader != self.node:
            wrong = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not found.start <= offset <= found.end:
            wrong = wrong or ErrorCode.OFFSET_OUT_OF_RANGE
        if wrong:
            return FetchResponsePartitionData(error_code=wrong, high_watermark=-1)
        records = b"".join(b for b in found.batches if next(iter_batches(b)).header.next_offset > offset)
        # An answer may end anywhere but in its first batch, as Kafka's limits are soft.
        first = next(iter_batches(records)).end if records else 0
        aborted = [FetchResponseAbortedTransaction(producer_id=p, first_offset=o) for p, o in found.aborted]
        return FetchResponsePartitionData(
            high_watermark=found.end,
            last_stable_offset=found.end,
            log_start_offset=found.start,
            aborted_transactions=aborted or None,
            records=records[: max(first, limit)] if limit else b"",
        )
