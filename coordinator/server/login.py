"""Connections that have to say who they are: before they have (`SaslConnection`), and where that ends again
(`SessionConnection`, KIP-368). Once it is known for good, a connection is a `Connection` like all others.

A connection changes its class as it goes from one to the other, so that what asks nobody, and who is through,
pay nothing for it.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ringleader.coordinator.security import among_nodes
from ringleader.coordinator.security.exchange import Exchange, SaslFailedError, told_name
from ringleader.coordinator.security.listeners import Listener
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.peers import guess_protocol
from ringleader.coordinator.server.sasl import Sasl
from ringleader.coordinator.server.strangers import CONNECTION_BYTES, HANDSHAKE_BYTES, LONG_READ_BYTES
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import API_VERSIONS_KEY
from ringleader.protocol.refusals import refusal

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.shared import Shared

HANDSHAKE_KEY: Final = kafka.SaslHandshakeRequest.API_KEY
AUTHENTICATE_KEY: Final = kafka.SaslAuthenticateRequest.API_KEY
HEAD_BYTES = 10
"""API key, version, correlation id, and the length of the client id: the least that a request has."""
SHORT_READ_BYTES = 16_384
"""What logs in takes less at a time, and keeps TLS's buffers small."""
RENEWAL_INTERVAL_MS = 1_000
"""As in Kafka, nobody authenticates again within a second of the last time."""


_head = struct.Struct(">hhi").unpack_from


class Proof(NamedTuple):
    """How somebody proved who they are."""

    mechanism: str
    principal: Principal


@dataclass(slots=True, eq=False)
class Login:
    """What a connection of a listener with SASL knows of that."""

    sasl: Sasl
    settings: Settings
    """Of its listener."""
    deadline: asyncio.TimerHandle | None = None
    """While authenticating: when that has taken too long."""
    asked_versions: bool = False
    exchange: Exchange | None = None
    mechanism: str = ""
    with_headers: bool = False
    """Tokens come as SaslAuthenticate, not by themselves (KIP-152)."""
    wrong_mechanism: str = ""
    """Why the next token is refused whatever it is."""
    proved: Proof | None = None
    """As of the last time that it was through."""
    ends_ms: int | None = None
    """When that counts no more, by the server's clock; None: as long as the connection lives."""
    renewed_ms: int | None = None
    """When it began to authenticate again, the last time."""
    stepping: asyncio.Future[bytes] | None = None
    """A slow step under way."""
    failed: bool = False
    """Nothing is taken any more."""
    failing: list[bytes] = field(default_factory=list)
    """What leaves before the connection closes."""


class _Reply(NamedTuple):
    """To which request an answer goes."""

    route: Route
    call: Call


class SaslConnection(Connection):
    """One that is in the middle of saying who it is: at first, or again. It is told ApiVersions and SASL
    alone, one frame after the other, each of them short, and all of it within a time."""

    __slots__ = ()

    def __init__(self, server: Shared[Connection], listener: Listener) -> None:
        super().__init__(server, listener)
        assert server.sasl is not None
        self.login = Login(server.sasl, server.settings_of[listener.name])

    @property
    def _login(self) -> Login:
        return cast(Login, self.login)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `Connection`."""
        super().connection_made(transport)
        if not self.closing:
            self._begin()
            tls = self.listener.security_protocol.tls
            self._server.strangers.enter(self, HANDSHAKE_BYTES if tls else CONNECTION_BYTES)

    def _read_long(self) -> None:
        strangers = self._server.strangers
        if self.listener.security_protocol.tls and strangers.has(self):
            strangers.enter(self, HANDSHAKE_BYTES + LONG_READ_BYTES)

    def _later(self, data: bytes, now: int) -> None:
        if self._login.failed:  # one that is quiet is read from: it may hang up
            self._max_input = 0
            self._set_reading()
            self._read_long()  # by TLS, which is not asked, until its buffers are full
            return
        if len(data) > SHORT_READ_BYTES:
            self._read_long()
        super()._later(data, now)

    def _begin(self) -> None:
        self._max_input = self._login.settings.sasl_server_max_receive_size
        timeout_ms = self._login.settings.sasl_authentication_timeout_ms
        self._login.deadline = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._too_slow, timeout_ms
        )

    def _too_slow(self, timeout_ms: int) -> None:
        self._count(f"not authenticated within {timeout_ms} ms (sasl.authentication.timeout.ms)")
        self.close(quietly=True)

    def _lone_heartbeat(self, data: bytes, now: int) -> bool:
        return False

    def _leave_requests(self, queued: bytes) -> None:
        """Nobody knows whose they are."""

    def _end(self) -> None:
        if self._login.deadline is not None:
            self._login.deadline.cancel()
            self._login.deadline = None
        if self._login.stepping is not None:
            self._login.stepping.cancel()
        super()._end()

    # ---- frames ----

    def _run(self, data: bytes, position: int, now: int) -> None:
        most = self._login.settings.sasl_server_max_receive_size
        end = len(data)
        if end > SHORT_READ_BYTES:
            self._read_long()
        need = 4
        while end - position >= 4 and not (self.closing or self._resting or self._blocked):
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            if not 0 <= size <= most:
                told = guess_protocol(data[position:]) or f", at most {most:,} are taken here"
                self._fail(f"a frame of {size:,} bytes before authentication{told}")
                return
            stop = position + 4 + size
            if stop > end:
                need = 4 + size
                break
            self._take(data[position + 4 : stop])
            position = stop
            if type(self) is not SaslConnection:
                if position < end:
                    self._run(data, position, now)
                return
        if self.closing or self._login.failed or position >= end:
            return
        if self._resting or self._blocked:
            self._data, self._position = data, position
        else:
            self._more[:0] = data[position:]
            self._need = need
            self._weigh()
        self._weigh_waiting()

    def _take(self, frame: bytes) -> None:
        login = self._login
        if login.wrong_mechanism:
            self._fail(login.wrong_mechanism)
        elif login.exchange is not None and not login.with_headers:
            self._step(login.exchange, frame, None)
        else:
            self._request_of(frame)

    def _request_of(self, frame: bytes) -> None:
        login = self._login
        if len(frame) < HEAD_BYTES:
            self._hang_up(f"a request of {len(frame)} bytes before authentication")
            return
        api_key, version, correlation_id = _head(frame)
        route = self._routes.get(api_key)
        expected = (API_VERSIONS_KEY, HANDSHAKE_KEY, *((AUTHENTICATE_KEY,) if login.exchange else ()))
        if route is None or api_key not in expected:
            name = f"API {api_key}" if route is None else route.name
            self._hang_up(f"{name} before authentication")
            return
        route.requests += 1
        if not route.low <= version <= route.high:
            if api_key == API_VERSIONS_KEY and login.exchange is None:
                self._transport.write(self._server.versions_refusal(correlation_id))
            else:
                self._hang_up(f"{route.name} version {version}, served are {route.low} to {route.high}")
            return
        try:
            client_id, position = self._read_header(frame, version >= route.flexible)
            decode = route.decoders[version] or route.decoder(version)
            request, _ = decode(frame, position, route.budget)
        except MalformedError as error:
            self._hang_up(str(error))
            return
        self._identified = True
        call = Call(self, api_key, version, correlation_id, client_id, self.host, request)
        self._requested(_Reply(route, call), request)

    def _requested(self, reply: _Reply, request: Message) -> None:
        login = self._login
        match request:
            case kafka.SaslAuthenticateRequest():
                assert login.exchange is not None
                self._step(login.exchange, bytes(request.auth_bytes), reply)
            case _ if login.exchange is not None:
                answer = refusal(request, reply.call.api_version, ErrorCode.ILLEGAL_SASL_STATE)
                self._fail(f"Unexpected {reply.route.name} during SASL authentication.", reply, answer)
            case kafka.SaslHandshakeRequest():
                self._handshake(reply, request)
            case _ if login.asked_versions:
                self._hang_up("ApiVersions for the second time before authentication")
            case _:
                response = cast(kafka.ApiVersionsResponse, reply.route.handler(reply.call, request))
                login.asked_versions = not response.error_code
                self._answer(reply, response)

    def _handshake(self, reply: _Reply, request: kafka.SaslHandshakeRequest) -> None:
        login, asked = self._login, request.mechanism
        login.with_headers = reply.call.api_version >= 1
        mechanisms = login.settings.mechanisms(self.listener)
        response = kafka.SaslHandshakeResponse(mechanisms=mechanisms)
        of_nodes = asked == among_nodes.MECHANISM and login.sasl.nodes is not None
        if asked not in mechanisms and not of_nodes:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answered = (reply, response) if login.proved is None else ()  # as in Kafka
            self._fail(f"Unsupported SASL mechanism {told_name(asked)}", *answered)
            return
        if login.proved is not None and login.proved.mechanism != asked:
            login.wrong_mechanism = (
                f"SASL mechanism '{asked}' requested by client is not supported for re-authentication of "
                f"mechanism '{login.proved.mechanism}'"
            )
        login.mechanism = asked
        login.exchange = login.sasl.exchange(asked, self.listener)
        self._answer(reply, response)

    # ---- steps ----

    def _step(self, exchange: Exchange, token: bytes, reply: _Reply | None) -> None:
        if not exchange.slow:
            self._outcome(exchange, reply, lambda: exchange.step(token))
            return
        self._resting = True
        self._working = len(token)
        self._weigh()
        if not self.closing:
            login = self._login
            login.stepping = login.sasl.slow_steps.add(self.address, partial(exchange.step, token))
            login.stepping.add_done_callback(lambda done: self._slow_outcome(exchange, reply, done))

    def _slow_outcome(self, exchange: Exchange, reply: _Reply | None, done: asyncio.Future[bytes]) -> None:
        self._login.stepping = None
        if self.closing or done.cancelled():
            return
        self._resting = False
        self._working = 0
        self._weigh()
        self._outcome(exchange, reply, done.result)
        self._go_on()

    def _outcome(self, exchange: Exchange, reply: _Reply | None, step: Callable[[], bytes]) -> None:
        login = self._login
        again = "re-authentication" if login.proved is not None else "authentication"
        try:
            answer = step()
            if exchange.done:
                self._check_name(exchange)
        except SaslFailedError as error:
            told = error.answer or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{login.mechanism}"
            )
            response = kafka.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
            )
            self._fail(str(error), reply, response)
            return
        except Exception:
            self._server.failures.tell("authentication failed by a fault of ours", peer=self.peer)
            self._hang_up("authentication failed by a fault of ours")
            return
        lifetime_ms = self._through(exchange) if exchange.done else None
        of_node = login.mechanism == among_nodes.MECHANISM
        if reply is None:
            self._transport.write(len(answer).to_bytes(4, "big") + answer)
        else:
            response = kafka.SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms or 0)
            self._answer(reply, response)
        if exchange.done and not self.closing:
            if of_node:
                self._routes = {API_VERSIONS_KEY: self._routes[API_VERSIONS_KEY]}
            through = Connection if lifetime_ms is None else SessionConnection
            cast(Any, self).__class__ = NodeConnection if of_node else through

    def _check_name(self, exchange: Exchange) -> None:
        if exchange.user == among_nodes.NODE.name and self._login.mechanism != among_nodes.MECHANISM:
            raise SaslFailedError("only nodes have that name")
        proved = self._login.proved
        if proved is not None and proved.principal != Principal("User", exchange.user):
            text = (
                f"Cannot change principals during re-authentication from {proved.principal.kind}."
                f"{proved.principal.name}: User.{exchange.user}"
            )
            raise SaslFailedError(text, text)

    def _through(self, exchange: Exchange) -> int | None:
        """How long it lasts; None: as long as the connection."""
        login = self._login
        limit_ms: int | None = login.settings.max_reauth_ms(login.mechanism) or None
        if login.mechanism == among_nodes.MECHANISM:
            limit_ms = None  # it stays a node of this cluster
        if exchange.expires_ms is not None:
            left_ms = max(0, exchange.expires_ms - login.sasl.wall_ms())
            limit_ms = left_ms if limit_ms is None else min(limit_ms, left_ms)
        self.principal = Principal("User", exchange.user)
        login.proved = Proof(login.mechanism, self.principal)
        login.ends_ms = None if limit_ms is None else self._now_ms() + limit_ms
        login.exchange = None
        self._max_input = self._server.limits.connection_input_max_bytes
        if login.deadline is not None:
            login.deadline.cancel()
            login.deadline = None
        login.sasl.succeeded += 1
        self._server.strangers.leave(self)
        return limit_ms

    # ---- answers ----

    def _answer(self, reply: _Reply, response: Message) -> None:
        if self.parked is reply.call:
            reply.call.answer(response)
            return
        out: list[bytes] = []
        reason = self._encode(reply.route, reply.call, response, out)
        if out:
            self._flush(out)
        if reason:
            self.close(reason)

    def _count(self, reason: str) -> None:
        login = self._login
        login.sasl.failed += 1
        who = self._who()
        if login.exchange is not None:
            who |= {"mechanism": login.mechanism, "user": told_name(login.exchange.user)}
        self._server.log.warning("authentication failed", reason=reason, listener=self.listener.name, **who)

    def _hang_up(self, reason: str) -> None:
        """Close at once, as Kafka does where nobody speaks SASL."""
        self._count(reason)
        self.close(quietly=True)

    def _fail(self, reason: str, reply: _Reply | None = None, response: Message = None) -> None:
        """Say so, and close, after a while: guessing takes time."""
        login = self._login
        self._count(reason)
        if login.deadline is not None:
            login.deadline.cancel()
            login.deadline = None
        if reply is not None:
            self._encode(reply.route, reply.call, response, login.failing)
            self._unsent = 0
        login.failed = self._resting = True
        self._data, self._more = b"", bytearray()
        self._weigh()
        delay_s = self._server.limits.connection_failed_authentication_delay_ms / 1000
        login.deadline = asyncio.get_running_loop().call_later(delay_s, self._failed)

    def _failed(self) -> None:
        if self._login.failing:
            self._transport.write(b"".join(self._login.failing))
        self.close(quietly=True)


class NodeConnection(Connection):
    """One of another node: it asks for ApiVersions, and for nothing else."""

    __slots__ = ()

    def _lone_heartbeat(self, data: bytes, now: int) -> bool:
        return False

    def _known_heartbeats(self, data: bytes, position: int, out: list[bytes], now: int) -> int:
        return position

    def _leave_requests(self, queued: bytes) -> None:
        """A node is no member."""

    def mute(self, throttle_ms: int) -> None:
        """No quota keeps nodes from hearing each other."""


class SessionConnection(Connection):
    """One whose authentication ends: it takes no request then but to authenticate again."""

    __slots__ = ()

    @property
    def _login(self) -> Login:
        return cast(Login, self.login)

    def _expired(self, now: int) -> bool:
        ends_ms = self._login.ends_ms
        return ends_ms is not None and now > ends_ms

    @property
    def is_over(self) -> bool:
        """Whether the session is."""
        return self._expired(self._now_ms())

    def _lone_heartbeat(self, data: bytes, now: int) -> bool:
        return not self._expired(now) and super()._lone_heartbeat(data, now)

    def _leave_requests(self, queued: bytes) -> None:
        if not self.is_over:
            super()._leave_requests(queued)

    def _run(self, data: bytes, position: int, now: int) -> None:
        api_key = int.from_bytes(data[position + 4 : position + 6], "big", signed=True)
        if self._expired(now) and len(data) - position >= HEAD_BYTES and api_key != HANDSHAKE_KEY:
            self.close("the session is over, and this is no SaslHandshake")
            return
        super()._run(data, position, now)

    def renews(self) -> bool:
        """Whether it may begin to authenticate again now; then it counts as having begun."""
        login, now = self._login, self._now_ms()
        if login.renewed_ms is not None and now - login.renewed_ms < RENEWAL_INTERVAL_MS:
            return False
        login.renewed_ms = now
        return True

    def renew(self, call: Call, request: kafka.SaslHandshakeRequest) -> None:
        """Authenticate again, when the handler of this call, which parks, has returned."""
        asyncio.get_running_loop().call_soon(self._renew, call, request)

    def _renew(self, call: Call, request: kafka.SaslHandshakeRequest) -> None:
        if call.done:
            return
        login = self._login
        self.login = Login(login.sasl, login.settings, proved=login.proved, renewed_ms=login.renewed_ms)
        cast(Any, self).__class__ = SaslConnection
        connection = cast(SaslConnection, self)
        connection._begin()
        connection._handshake(_Reply(self._routes[HANDSHAKE_KEY], call), request)
