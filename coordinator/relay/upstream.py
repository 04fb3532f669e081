"""The brokers' connections of one client's connection: opened when needed, closed with it.

A broker answers one request of a connection at a time, and throttles by connection. So each client's
connection has its own, and neither a Fetch that waits nor a throttled producer delays another client.
A large answer is received into memory of its own, which leaves as it is: no byte of it is copied here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.connection import Connection
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ConnectionLostError, RequestTimedOutError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.arrivals import Arrivals
from ringleader.protocol.frames import encode_request

SMALL_BYTES = 16_384
"""Received here, in every connection; a longer answer gets memory of its own, when there is room for it."""

CLIENT_LEFT = "the client is gone"


class DataConnection(Connection):
    """To one broker, for one client's connection: one request at a time."""

    def __init__(
        self,
        address: str,
        client_id: str | None,
        max_response_bytes: int,
        request_timeout_s: float,
        *,
        arrivals: Arrivals,
    ) -> None:
        super().__init__(address, client_id, max_response_bytes, request_timeout_s)
        self._arrivals = arrivals
        self._small = bytearray(SMALL_BYTES)
        self._have = 0
        """Bytes in `_small`."""
        self._large: bytearray | None = None
        self._filled = 0
        """Bytes in `_large`."""
        self._held = 0
        """Bytes taken of the arrivals."""
        self._wanted = True
        self._queued = False
        """Waits for its turn among the arrivals."""
        self.on_ended: Callable[[], None] | None = None
        """Called when the broker closes the connection."""

    # ---- asking ----

    async def send_only(self, request: Request, timeout_s: float) -> None:
        """Send a request without an answer (Produce, acks=0), and wait until the broker reads it. Raises
        ConnectionLostError, RequestTimedOutError, UnsupportedVersionError."""
        version = self.version_for(request)
        frame = encode_request(request.build(version), version, 0, request.client_id)
        try:
            async with asyncio.timeout(timeout_s):
                await self._turn(alone=False)
                if self._transport is None or self.ended.is_set():
                    raise self._lost(f"connection to {self.address} has ended")
                self._write(self._transport, frame)
                await self._writable.wait()
        except TimeoutError:
            self.close("it takes no more")
            raise RequestTimedOutError(f"{self.address} takes no more") from None

    def release(self) -> None:
        """The last answer is not needed here any more."""
        held, self._held = (0, self._held) if self._large is not None else (self._held, 0)
        if held:
            self._arrivals.give(held)

    @property
    def wanted(self) -> bool:
        """Whether a client waits for the answer. While none does, a large one stays at the broker."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: bool) -> None:
        was, self._wanted = self._wanted, wanted
        if wanted and not was and not self.ended.is_set():
            self._small_received()

    def retire(self) -> None:
        """Close when everything is sent that was to be."""
        transport = self._transport
        self.on_ended = None
        self._end(CLIENT_LEFT)
        if transport is not None:
            transport.close()

    def _write(self, transport: asyncio.Transport, frame: bytes) -> None:
        self._arrivals.sent_bytes += len(frame)
        super()._write(transport, frame)

    # ---- receiving ----

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return memoryview(self._large)[self._filled :]
        return memoryview(self._small)[self._have :]

    def buffer_updated(self, nbytes: int) -> None:
        self._arrivals.received_bytes += nbytes
        if self._large is None:
            self._have += nbytes
            self._small_received()
            return
        self._filled += nbytes
        if self._filled == len(self._large):
            frame, self._large = self._large, None
            self._answered(memoryview(frame)[4:])

    def _small_received(self) -> None:
        """Hand over whole answers; begin to receive a large one."""
        while self._have >= 4 and not self.ended.is_set():
            size = int.from_bytes(self._small[:4], "big", signed=True)
            if not 4 <= size <= self.wire.limit_bytes:
                self.close(f"{self.address} announced an answer of {size} bytes")
                return
            if 4 + size > SMALL_BYTES:
                if self._wanted and not self._queued:
                    self.release()
                    self._queued = True
                    self._arrivals.take(4 + size, self._granted)
                if self._large is None and self._transport is not None:
                    self._transport.pause_reading()
                return
            if self._have < 4 + size:
                return
            frame = bytes(self._small[4 : 4 + size])
            left = self._small[4 + size : self._have]
            self._small[: len(left)] = left
            self._have = len(left)
            self._answered(memoryview(frame))

    def _granted(self) -> bool:
        self._queued = False
        if self.ended.is_set() or self._transport is None:
            return False
        size = 4 + int.from_bytes(self._small[:4], "big")
        self._held = size
        self._large = bytearray(size)
        self._large[: self._have] = self._small[: self._have]
        self._filled, self._have = self._have, 0
        self._transport.resume_reading()
        return True

    def _kept(self, frame: memoryview) -> bytes | memoryview:
        return frame  # its memory is used by nothing else

    def _end(self, why: str, failure: Any = None) -> None:
        super()._end(why, failure)
        self._large = None
        self.release()
        on_ended, self.on_ended = self.on_ended, None
        if on_ended is not None:
            on_ended()


class Upstreams:
    """The brokers' connections of one client's connection, by broker."""

    def __init__(self, cluster: Cluster, arrivals: Arrivals) -> None:
        self._cluster = cluster
        self._arrivals = arrivals
        self._open: dict[tuple[Node, bool], DataConnection] = {}
        self._closed = False
        self.parked: dict[Node, Any] = {}
        """Requests that wait there from one request of the client to the next; each has a `task`."""
        self.watermarks: dict[tuple[str | bytes, int], Any] = {}
        """The last answer about a partition, by the name of its topic, or its id where the client has that,
        and partition."""

    async def connection(self, broker: Node, waiting: bool = False) -> DataConnection:
        """The one to that broker, opened if need be. `waiting`: the one for requests that may wait there
        while others are answered. Raises what `open_connection` raises."""
        found = self._open.get((broker, waiting))
        if found is not None and not found.ended.is_set():
            return found
        made = await self._cluster.connect(broker, self._make)
        assert isinstance(made, DataConnection)
        if self._closed:
            made.retire()
            raise ConnectionLostError(CLIENT_LEFT)
        self._open[broker, waiting] = made
        return made

    async def ask(self, broker: Node, request: Callable[[], Awaitable[Request]], timeout_s: float) -> Any:
        """Ask that broker and wait for the answer. `request()` makes the request, once there is a connection.
        Raises ClientError, and what `request` raises."""
        connection = await self.connection(broker)
        return await connection.ask(await request(), timeout_s, request_timeout_s=timeout_s)

    def want(self, broker: Node, wanted: bool) -> None:
        """Whether the client waits for the request that waits there."""
        connection = self._open.get((broker, True))
        if connection is not None:
            connection.wanted = wanted

    def drop(self, broker: Node) -> None:
        """Close the connection for requests that may wait at that broker; the next one opens another."""
        found = self._open.pop((broker, True), None)
        if found is not None:
            found.retire()

    def release(self) -> None:
        """The answers that came are handed over."""
        for connection in self._open.values():
            connection.release()

    def close(self) -> None:
        """The client is gone: nothing of it stays."""
        self._closed = True
        for waiting in self.parked.values():
            waiting.task.cancel()
        self.parked.clear()
        for connection in self._open.values():
            connection.retire()
        self._open.clear()

    def _make(
        self, address: str, client_id: str | None, max_response_bytes: int, request_timeout_s: float
    ) -> DataConnection:
        return DataConnection(
            address, client_id, max_response_bytes, request_timeout_s, arrivals=self._arrivals
        )
