"""Pings between nodes, in Kafka's own protocol: ApiVersions on a connection that is kept, over TLS and behind
a login where the nodes' listener asks for that."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ringleader.clients.connection.security.sasl import NONCE_CHARACTERS, scram_conversation
from ringleader.clients.connection.tls import tls_error
from ringleader.clients.errors import AuthenticationError
from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.suspicion import PING_INTERVAL_S, Suspicion
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.security.among_nodes import MECHANISM, NODE
from ringleader.coordinator.security.scram import SHA_256
from ringleader.protocol.errors import error_name
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ringleader.protocol.schema import Message

T = TypeVar("T")

MAX_ANSWER_BYTES = 65_536
RECONNECT_S = 0.05
HANG_UPS = 6
"""A node that hangs up this number of times without an answer is tried seldom from then on."""
DISBELIEF_S = 5.0
"""Between two tries with a node where another try will hardly change anything."""
HANDSHAKE_TIMEOUT_S = 10.0
"""Of TLS."""
PROOF_TIMEOUT_S = 5.0
"""A failed authentication is answered after a while (`connection.failed.authentication.delay.ms`)."""
HANGS_UP = (
    "it hangs up before it answers: its listener may have another security.protocol than this node's, or "
    "take no more connections"
)


@dataclass(frozen=True, slots=True)
class Greeting:
    """How the nodes' listeners are spoken to."""

    tls: Callable[[], ssl.SSLContext] | None = None
    """The TLS context of the next connection; None: plaintext."""
    password: Callable[[], str] | None = None
    """See `among_nodes.password_of`, of the next login; None: nodes do not authenticate."""

    def __repr__(self) -> str:
        return f"Greeting(tls={self.tls is not None}, login={self.password is not None})"


class Pings:
    """Pings all other nodes of the map, and reports the results to `suspicion`."""

    def __init__(
        self, node_id: int, suspicion: Suspicion, greeting: Greeting | None = None, log: Log | None = None
    ) -> None:
        self.suspicion = suspicion
        self.client_id = f"ringleader-node-{node_id}"
        self.greeting = greeting or Greeting()
        self.log = log or get_log()
        self._node_id = node_id
        self._peers: dict[NodeInfo, asyncio.Task[None]] = {}

    def follow(self, cluster: ClusterMap) -> None:
        """Another map."""
        self.suspicion.follow(cluster)
        others = {node for node in cluster.nodes if node.node_id != self._node_id}
        for node in self._peers.keys() - others:
            self._peers.pop(node).cancel()
        for node in others - self._peers.keys():
            peer = _Peer(self, node)
            self._peers[node] = asyncio.create_task(peer.run(), name=f"ping node {node.node_id}")

    async def stop(self) -> None:
        """No more pings."""
        tasks = list(self._peers.values())
        self._peers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _DisbelievedError(Exception):
    """It is there, but one does not believe the other who it is."""


class _Peer:
    """One of the others."""

    def __init__(self, pings: Pings, node: NodeInfo) -> None:
        self._node = node
        self._suspicion = pings.suspicion
        self._client_id = pings.client_id
        self._greeting = pings.greeting
        self._log = pings.log.bind(node=node.node_id, address=f"{node.host}:{node.port}")
        self._disbelieved = False
        self._hang_ups = 0
        """In a row, without an answer in between."""
        self._number = 0

    async def run(self) -> None:
        """Ping it until cancelled."""
        node_id = self._node.node_id
        while True:
            writer = None
            try:
                async with asyncio.timeout(PING_INTERVAL_S):
                    reader, writer = await asyncio.open_connection(self._node.host, self._node.port)
                await self._connected(reader, writer)
            except ConnectionRefusedError:
                self._suspicion.refused(node_id)
                await asyncio.sleep(PING_INTERVAL_S)
            except TimeoutError:
                self._suspicion.missed(node_id)
            except _DisbelievedError as error:
                self._suspicion.heard(node_id)
                await self._disbelieve(str(error))
            except (OSError, EOFError, ValueError):
                if writer is None:
                    self._suspicion.missed(node_id)
                    await asyncio.sleep(PING_INTERVAL_S)
                elif self._hang_ups < HANG_UPS:  # a reset: whether anybody still listens shows soon
                    self._hang_ups += 1
                    await asyncio.sleep(RECONNECT_S)
                else:
                    await self._disbelieve(HANGS_UP)
            finally:
                if writer is not None:
                    writer.transport.abort()

    async def _disbelieve(self, reason: str) -> None:
        if not self._disbelieved:
            self._log.warning("a node cannot be asked whether it is there", reason=reason)
        self._disbelieved = True
        await asyncio.sleep(DISBELIEF_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._greeting.tls is not None:
                await self._shake_hands(writer, self._greeting.tls())
            if self._greeting.password is not None:
                await self._log_in(reader, writer, self._greeting.password())
            while True:
                await self._ask(reader, writer, ApiVersionsRequest(), 0)
                if self._disbelieved:
                    self._disbelieved = False
                    self._log.info("a node can be asked again whether it is there")
                await asyncio.sleep(PING_INTERVAL_S)
        except ssl.SSLError as error:
            if (failure := tls_error(f"{self._node.host}:{self._node.port}", error)) is not None:
                raise _DisbelievedError(str(failure)) from None
            raise

    async def _shake_hands(self, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
        await self._patiently(
            writer.start_tls(tls, server_hostname=self._node.host, ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S)
        )
        # It is there, even if it does not take the certificate of this node, and hangs up.
        self._suspicion.heard(self._node.node_id)

    async def _log_in(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, password: str
    ) -> None:
        handshake = SaslHandshakeRequest(mechanism=MECHANISM)
        answer = decode_response(SaslHandshakeResponse, await self._ask(reader, writer, handshake, 1), 1)[1]
        if answer.error_code:
            name = error_name(answer.error_code)
            raise _DisbelievedError(f"it takes no logins of nodes: it answers {name}")
        nonce = secrets.token_urlsafe(NONCE_CHARACTERS)
        conversation = scram_conversation(NODE.name, password, SHA_256.hash, nonce)
        message = next(conversation)
        try:
            async with asyncio.timeout(PROOF_TIMEOUT_S):
                while True:
                    request = SaslAuthenticateRequest(auth_bytes=message)
                    frame = await self._ask(reader, writer, request, 2, silently=True)
                    proof = decode_response(SaslAuthenticateResponse, frame, 2)[1]
                    if proof.error_code:
                        raise _DisbelievedError("it does not believe that this is a node of its cluster")
                    message = conversation.send(proof.auth_bytes)
        except StopIteration:
            return
        except AuthenticationError as error:
            raise _DisbelievedError(f"it is no node of this cluster: {error}") from None

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: Message,
        version: int,
        *,
        silently: bool = False,
    ) -> bytes:
        """The answer; it was heard then. `silently`: it is not missed meanwhile."""
        self._number = (self._number + 1) % 2**31
        writer.write(encode_request(request, version, self._number, self._client_id))
        frame = await (_answer(reader) if silently else self._patiently(_answer(reader)))
        if int.from_bytes(frame[:4]) != self._number:
            raise ValueError("an answer to something else")
        self._suspicion.heard(self._node.node_id)
        self._hang_ups = 0
        return frame

    async def _patiently(self, work: Coroutine[Any, Any, T]) -> T:
        """As long as it takes: who wakes after a pause answers what was asked before it."""
        doing = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([doing], timeout=PING_INTERVAL_S))[0]:
                self._suspicion.missed(self._node.node_id)
            return doing.result()
        finally:
            doing.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, EOFError, ValueError):
                await doing


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """The next answer, without its size."""
    size = int.from_bytes(await reader.readexactly(4))
    if not 4 <= size <= MAX_ANSWER_BYTES:
        raise ValueError(f"an answer of {size} bytes")
    return await reader.readexactly(size)
