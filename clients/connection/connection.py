"""One connection to one broker: frames out, frames in, each answer to the one who asked."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ringleader.clients.connection.authentication import log_in, stay_logged_in
from ringleader.clients.connection.incoming import Incoming
from ringleader.clients.connection.low_water import LowWater, low_water
from ringleader.clients.connection.requests import GREETING, RawAnswer, Request
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.connection.tls import SPEAKS_TLS, speaks_plain, speaks_tls, tls_error, wants_sasl
from ringleader.clients.connection.wire import Wire
from ringleader.clients.errors import (
    AuthenticationError,
    BrokerError,
    ClientError,
    ConnectionLostError,
    RequestTimedOutError,
    TlsError,
    UnsupportedVersionError,
)
from ringleader.protocol.errors import EncodeError, ErrorCode, MalformedError, error_name
from ringleader.protocol.frames import response_class
from ringleader.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from ringleader.protocol.schema import Message

MAX_RESPONSE_BYTES = 100 * 1024 * 1024
"""A longer answer ends the connection before its memory is taken (Kafka's own limit for requests)."""
MAX_IN_FLIGHT = 256
"""Requests on their way on one connection; more wait for their turn."""
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT = 15, 5, 4
"""A broker that vanished without a word is noticed even while a JoinGroup may stay unanswered for minutes."""
API_VERSIONS_TRIES = 3
TLS_ALERT = b"\x15\x03"
"""How the answer begins when a TLS port gets something else."""
PROBE_TIMEOUT_S = 5.0


@dataclass(slots=True)
class _InFlight:
    answer: asyncio.Future[Any]
    response: type[Message]
    version: int
    request: Request
    overdue: str
    """The words of the error when the broker takes longer than it may."""
    until_s: float


class Connection(asyncio.BufferedProtocol):
    """An open connection with its versions negotiated. Make one with `open_connection`."""

    def __init__(
        self, address: str, client_id: str | None, max_response_bytes: int, request_timeout_s: float
    ) -> None:
        self.address = address
        self._request_timeout_s = request_timeout_s
        self.wire = Wire(address, client_id, max_response_bytes)
        self._in_flight: dict[int, _InFlight] = {}
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._writable = asyncio.Event()
        self._writable.set()
        self._incoming = Incoming()
        self._low_water: LowWater | None = None
        self._transport: asyncio.Transport | None = None
        self._why = ""
        self._throttled_until_s = 0.0
        self.ended = asyncio.Event()
        self._failure: ClientError | None = None
        """The error that ended it, when another try would end the same way."""
        self._silent: Callable[[], Awaitable[ClientError | None]] | None = None
        """Finds out why the broker hung up without an answer to anything but ApiVersions."""
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stays: asyncio.Task[None] | None = None
        self._session_ends_s = math.inf
        self._overdue: asyncio.TimerHandle | None = None
        self.when_overdue: Callable[[RequestTimedOutError], None] = lambda _error: None
        """Told when the broker took longer than it may, and the connection is closed for it."""

    # ---- asking ----

    @property
    def in_flight(self) -> int:
        """Requests without an answer yet."""
        return len(self._in_flight)

    def version_for(self, request: Request) -> int:
        """The highest version that both sides know. Raises UnsupportedVersionError."""
        return self.wire.version(request.message, request.max_version)

    async def ask(
        self,
        request: Request,
        timeout_s: float,
        *,
        request_timeout_s: float | None = None,
        alone: bool = False,
    ) -> Any:
        """Send and wait for the answer. `alone`: from inside of the block of that name.

        `timeout_s` is the caller's: when it is over he gets RequestTimedOutError, and an answer that comes
        later is dropped. `request_timeout_s` is the broker's, from the sending on (default: the
        connection's): one who takes longer is taken for dead, and the connection is closed. Raises
        ConnectionLostError, RequestTimedOutError, UnsupportedVersionError, AuthenticationError.
        """
        version = self.version_for(request)
        name = f"{request.message.__name__} to {self.address}"
        if timeout_s <= 0:
            raise RequestTimedOutError(f"no time was left to send {name}")
        broker_s = self._request_timeout_s if request_timeout_s is None else request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                try:
                    await self._wait_throttle()
                    answer = await self._sent(request, version, name, broker_s, alone)
                    return await answer
                except ConnectionLostError:
                    if (why := await self._why_silent()) is not None:
                        raise why from None
                    raise
        except TimeoutError:
            raise RequestTimedOutError(f"{name} was not answered within {round(timeout_s, 2):g} s") from None
        except EncodeError as error:
            text = f"{name} v{version} cannot say this: {error}"
            raise UnsupportedVersionError(text, ErrorCode.UNSUPPORTED_VERSION) from error

    async def _sent(
        self, request: Request, version: int, name: str, timeout_s: float, alone: bool
    ) -> asyncio.Future[Any]:
        """Where the answer will be. The request has its slot until then, even if no caller waits for it any
        more."""
        await self._slots.acquire()
        try:
            await self._turn(alone)
            return self._send(request.build(version), version, request, name, timeout_s)
        except BaseException:
            self._slots.release()
            raise

    async def _turn(self, alone: bool) -> None:
        """Until something may be sent; nothing is awaited between that and the sending."""
        now_s = asyncio.get_running_loop().time
        while not self.ended.is_set():
            if now_s() >= self._session_ends_s and not alone:
                self._open.clear()  # the broker would hang up; the renewal, which is late, opens it again
            if self._writable.is_set() and (alone or self._open.is_set()):
                return
            await self._writable.wait()
            if not alone:
                await self._open.wait()

    def _send(
        self, message: Message, version: int, request: Request, name: str, timeout_s: float
    ) -> asyncio.Future[Any]:
        if self._transport is None or self.ended.is_set():
            raise self._lost(f"connection to {self.address} has ended: {self._why}")
        response = response_class(message.API_KEY)
        assert response is not None
        correlation_id, frame = self.wire.request(message, version, request.client_id)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        # A broker answers in the order of the requests: this one's time does not end before that of the last.
        last = next(reversed(self._in_flight.values()), None)
        until_s = max(loop.time() + timeout_s, 0.0 if last is None else last.until_s)
        overdue = f"{name} was not answered within {timeout_s:g} s"
        self._in_flight[correlation_id] = _InFlight(answer, response, version, request, overdue, until_s)
        if self._overdue is None or self._overdue.when() > until_s:
            self._watch(until_s)
        self._idle.clear()
        self._write(self._transport, frame)
        return answer

    def _write(self, transport: asyncio.Transport, frame: bytes) -> None:
        transport.write(frame)

    def _watch(self, until_s: float) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = asyncio.get_running_loop().call_at(until_s, self._look)

    def _look(self) -> None:
        """Close if the first answer is overdue."""
        self._overdue = None
        first = next(iter(self._in_flight.values()), None)
        if first is None:
            return
        if asyncio.get_running_loop().time() < first.until_s:
            self._watch(first.until_s)
            return
        if not first.answer.done():
            first.answer.set_exception(RequestTimedOutError(first.overdue))
        self.close(first.overdue)
        self.when_overdue(RequestTimedOutError(f"{first.overdue}: its connection is closed"))

    async def _wait_throttle(self) -> None:
        wait_s = self._throttled_until_s - asyncio.get_running_loop().time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nobody else's requests are on their way until the end of the block: a broker that is asked anything
        else in the middle of an authentication ends the connection."""
        self._open.clear()
        try:
            await self._idle.wait()
            yield
        finally:
            self._open.set()

    def session(self, lifetime_ms: int) -> None:
        """From now on the broker accepts requests for this time; 0: as long as the connection lives."""
        ends_s = asyncio.get_running_loop().time() + lifetime_ms / 1000
        self._session_ends_s = ends_s if lifetime_ms else math.inf

    async def log_in(self, sasl: Sasl, timeout_s: float) -> None:
        """Authenticate, and go on doing so for as long as the connection lives (KIP-368)."""
        until_s = asyncio.get_running_loop().time() + timeout_s
        lifetime_ms = await log_in(self, sasl, timeout_s)
        self.session(lifetime_ms)
        if self.wire.half_known:
            await self.negotiate(until_s - asyncio.get_running_loop().time())
        if lifetime_ms and not self.ended.is_set():
            stay = stay_logged_in(self, sasl, self._request_timeout_s, lifetime_ms)
            self._stays = asyncio.get_running_loop().create_task(stay)

    def established(self) -> None:
        """The other side is known, with its versions: its answers may be long."""
        self.wire.established()

    def if_silent(self, why: Callable[[], Awaitable[ClientError | None]]) -> None:
        """Ask that if the broker hangs up before it has answered anything."""
        self._silent = why

    async def no_answer(self) -> ClientError:
        """The likely reasons when a broker hangs up as soon as TLS stands; some do so without a word."""
        return ConnectionLostError(
            f"{self.address} hung up after the TLS handshake: perhaps it asks for a client certificate "
            f"(load_cert_chain, ssl.keystore.location)"
        )

    async def _why_silent(self) -> ClientError | None:
        silent, self._silent = self._silent, None
        return None if silent is None else await silent()

    async def negotiate(self, timeout_s: float) -> None:
        """Learn which versions the broker serves (ApiVersions, KIP-35; downwards after error 35, KIP-511)."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + timeout_s
        self.wire.begin()
        version = ApiVersionsRequest.MAX_VERSION
        for _ in range(API_VERSIONS_TRIES):
            request = Request(ApiVersionsRequest, lambda _version: GREETING, max_version=version)
            response: ApiVersionsResponse = await self.ask(request, until_s - now_s())
            if response.error_code == ErrorCode.NONE:
                self.wire.learn(response)
                return
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
                name = error_name(response.error_code)
                raise BrokerError(f"{self.address} answered ApiVersions with {name}", response.error_code)
            key = ApiVersionsRequest.API_KEY
            highest = next((one.max_version for one in response.api_keys if one.api_key == key), 0)
            version = highest if highest < version else 0
        raise UnsupportedVersionError(f"{self.address} takes no version of ApiVersions")

    # ---- asyncio.BufferedProtocol ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none, and does as one
        self._low_water = low_water(transport)
        _keep_alive(transport.get_extra_info("socket"))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        incoming = self._incoming
        incoming.received(nbytes)
        while not self.ended.is_set():
            try:
                frame = incoming.frame(self.wire.limit_bytes)
            except ValueError as error:
                if incoming.starts_with(TLS_ALERT) and self._silent is not None:
                    self._end("TLS", TlsError(SPEAKS_TLS.format(self.address)))
                self.close(f"{self.address} announced {error}")
                return
            if frame is None:
                if self._low_water is not None:
                    self._low_water.expect(incoming.missing_bytes)
                return
            self._answered(frame)

    def connection_lost(self, error: Exception | None) -> None:
        failure = tls_error(self.address, error) if isinstance(error, ssl.SSLError) else None
        self._end(f"closed by {self.address}" if error is None else f"{error}", failure)

    def _answered(self, frame: memoryview) -> None:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._in_flight.pop(correlation_id, None)
        if waiting is None:
            self.close(
                f"{self.address} answered a request that was not made (correlation id {correlation_id})"
            )
            return
        self._slots.release()
        if not self._in_flight:
            self._idle.set()
        self._silent = None
        if waiting.answer.done():
            return
        version = waiting.version
        if waiting.request.raw:
            waiting.answer.set_result(RawAnswer(self._kept(frame), version))
            return
        try:
            keep = waiting.request.keep
            data = bytes(frame) if keep is None else frame
            response: Any = self.wire.answer(waiting.response, data, version)[1]
            if keep is not None and keep(response):
                self._incoming.lend()
        except MalformedError as error:
            waiting.answer.set_exception(ConnectionLostError(f"answer of {self.address}: {error}"))
            self.close(f"malformed answer: {error}")
            return
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until_s = asyncio.get_running_loop().time() + throttle_ms / 1000
        waiting.answer.set_result(response)

    def _kept(self, frame: memoryview) -> bytes | memoryview:
        """An answer that is handed over as it came: the buffer that it is in is used again."""
        return bytes(frame)

    # ---- the end ----

    def close(self, why: str = "closed") -> None:
        """Close at once; what is in flight fails with `why`."""
        self._silent = None
        self._end(why)
        if self._transport is not None:
            self._transport.abort()

    def _end(self, why: str, failure: ClientError | None = None) -> None:
        if self.ended.is_set():
            return
        self._why, self._failure = why, failure
        self.ended.set()
        self._writable.set()
        self._open.set()
        self._idle.set()
        if self._stays is not None:
            self._stays.cancel()
        if self._overdue is not None:
            self._overdue.cancel()
        waiting, self._in_flight = self._in_flight, {}
        for one in waiting.values():
            self._slots.release()
            if not one.answer.done():
                one.answer.set_exception(self._lost(f"lost the connection to {self.address}: {why}"))

    def _lost(self, text: str) -> ClientError:
        failure = self._failure
        return ConnectionLostError(text) if failure is None else type(failure)(str(failure), failure.code)


def _keep_alive(sock: socket.socket | None) -> None:
    if sock is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
            ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
            ("TCP_KEEPCNT", KEEPALIVE_COUNT),
        ):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def open_connection(
    host: str,
    port: int,
    *,
    client_id: str | None,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
    max_response_bytes: int = MAX_RESPONSE_BYTES,
    request_timeout_s: float = 30.0,
    make: Callable[[str, str | None, int, float], Connection] = Connection,
) -> Connection:
    """Connect, negotiate versions, and authenticate if `sasl` is given: all that within `timeout_s`. A broker
    that does not answer a request within `request_timeout_s` is taken for dead. `make`: what is opened.

    Raises ConnectionLostError, RequestTimedOutError, BrokerError, and what another try does not cure:
    AuthenticationError (TlsError for what has to do with TLS), UnsupportedVersionError.
    """
    now_s = asyncio.get_running_loop().time
    until_s = now_s() + timeout_s

    def left_s() -> float:
        return max(0.0, until_s - now_s())

    def probe_s() -> float:
        return min(left_s(), PROBE_TIMEOUT_S)

    made = partial(make, f"{host}:{port}", client_id, max_response_bytes, request_timeout_s)
    connection = await _connected(made, host, port, timeout_s, tls)
    try:
        if tls is None:
            connection.if_silent(lambda: speaks_tls(host, port, probe_s()))
        else:
            connection.if_silent(connection.no_answer)
        await connection.negotiate(left_s())
        if sasl is not None:
            await connection.log_in(sasl, left_s())
        else:
            connection.if_silent(lambda: wants_sasl(host, port, tls, PROBE_TIMEOUT_S))
        connection.established()
    except BaseException:
        connection.close("negotiation failed")
        raise
    return connection


async def _connected(
    make: Callable[[], Connection], host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None
) -> Connection:
    address = f"{host}:{port}"
    lost = ConnectionLostError(f"no connection to {address} within {round(timeout_s, 2):g} s")
    try:
        async with asyncio.timeout(timeout_s):
            try:
                _, connection = await asyncio.get_running_loop().create_connection(make, host, port, ssl=tls)
                return connection
            except OSError as error:
                lost = ConnectionLostError(f"cannot connect to {address}: {_words(error)}")
                failure = await _tls_failure(host, port, error, tls)
                raise failure or lost from error
    except TimeoutError:
        raise lost from None


def _words(error: OSError) -> str:
    if error.errno and not isinstance(error, ssl.SSLError | socket.gaierror):
        return os.strerror(error.errno)  # asyncio puts the address in the place of the reason
    return error.strerror or str(error) or repr(error)


async def _tls_failure(
    host: str, port: int, error: OSError, tls: ssl.SSLContext | None
) -> AuthenticationError | None:
    """The reason why the greeting failed, if it is TLS: a broker that expects none hangs up without a
    word."""
    if tls is None:
        return None
    if isinstance(error, ssl.SSLError) and (failure := tls_error(f"{host}:{port}", error)) is not None:
        return failure
    hung_up = isinstance(error, ConnectionError | ssl.SSLError) and not isinstance(
        error, ConnectionRefusedError
    )
    return await speaks_plain(host, port, PROBE_TIMEOUT_S) if hung_up else None
