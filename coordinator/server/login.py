"""One login: a client proves its name by SASL, at first or again (KIP-368).

Frames come one after the other, each of them short, and all of them within a time. ApiVersions is answered,
once, and SASL; anything else ends the connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from ringleader.coordinator.security import among_nodes
from ringleader.coordinator.security.exchange import Exchange, SaslFailedError, shortened_name
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.call import Answerable, Call, Message
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import API_VERSIONS_KEY
from ringleader.protocol.refusals import refusal

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.server.connection import Connection
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.sasl import Sasl
    from ringleader.coordinator.server.shared import Shared

HANDSHAKE_KEY: Final = kafka.SaslHandshakeRequest.API_KEY
AUTHENTICATE_KEY: Final = kafka.SaslAuthenticateRequest.API_KEY
HEAD_BYTES = 10
"""API key, version, correlation id, and the length of the client id: the least that a request has."""

_head = struct.Struct(">hhi").unpack_from


class Proof(NamedTuple):
    """How a client proved its name."""

    mechanism: str
    principal: Principal


class Reply(NamedTuple):
    """The request that an answer goes to."""

    route: Route
    call: Call


class LoggingIn(Answerable, Protocol):
    """The session of a login."""

    connection: Connection
    routes: dict[int, Route]
    proof: Proof | None
    """How the client authenticated before; None: it did not."""
    identified: bool
    """Whether a request came that could be read."""

    def read_header(self, frame: bytes, flexible: bool) -> tuple[str | None, int]:
        """The client id, and where the body begins. Raises `MalformedError`."""

    def encode(self, route: Route, call: Call, response: Message, out: list[bytes]) -> str:
        """Adds the response's frame to `out`. Returns why the connection must be closed, or ""."""

    def log_fields(self) -> dict[str, str]:
        """Peer and client, for a log line."""

    def authenticated(self, proof: Proof, limit_ms: int | None, *, node: bool) -> None:
        """The client proved its name, for that time; None: for as long as the connection lives. `node`: it
        is another node."""

    def failed(self) -> None:
        """The client did not prove its name."""


class Login:
    """See the module."""

    __slots__ = (
        "_connection",
        "_deadline",
        "_exchange",
        "_failing",
        "_mechanism",
        "_sasl",
        "_server",
        "_session",
        "_settings",
        "_stepping",
        "_versions_requested",
        "_with_headers",
        "_wrong_mechanism",
        "most_bytes",
    )

    def __init__(
        self, session: LoggingIn, server: Shared[Connection], sasl: Sasl, settings: Settings
    ) -> None:
        """`settings`: of the listener."""
        self._session = session
        self._connection = session.connection
        self._server = server
        self._sasl = sasl
        self._settings = settings
        self.most_bytes = settings.sasl_server_max_receive_size
        """See `Authentication`."""
        self._deadline: asyncio.TimerHandle | None = None
        """When authenticating has taken too long; after a failure, when the connection closes."""
        self._versions_requested = False
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._with_headers = False
        """Tokens come as SaslAuthenticate, not by themselves (KIP-152)."""
        self._wrong_mechanism = ""
        """The reason to refuse the next token, for any token."""
        self._stepping: asyncio.Future[bytes] | None = None
        """A slow step under way."""
        self._failing: list[bytes] = []
        """The answer that leaves before the connection closes."""

    def begin(self) -> None:
        """Bound it in bytes and time."""
        self._connection.max_input = self.most_bytes
        timeout_ms = self._settings.sasl_authentication_timeout_ms
        self._deadline = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._too_slow, timeout_ms)

    def _too_slow(self, timeout_ms: int) -> None:
        self._hang_up(f"not authenticated within {timeout_ms} ms (sasl.authentication.timeout.ms)")

    def end(self) -> None:
        """The connection is about to close, or the login is over."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._stepping is not None:
            self._stepping.cancel()

    # ---- frames ----

    def take(self, frame: bytes) -> None:
        """See `Authentication`."""
        if self._wrong_mechanism:
            self.fail(self._wrong_mechanism)
        elif self._exchange is not None and not self._with_headers:
            self._step(self._exchange, frame, None)
        else:
            self._request(frame)

    def _request(self, frame: bytes) -> None:
        session = self._session
        if len(frame) < HEAD_BYTES:
            self._hang_up(f"a request of {len(frame)} bytes before authentication")
            return
        api_key, version, correlation_id = _head(frame)
        route = session.routes.get(api_key)
        expected = (API_VERSIONS_KEY, HANDSHAKE_KEY, *((AUTHENTICATE_KEY,) if self._exchange else ()))
        if route is None or api_key not in expected:
            name = f"API {api_key}" if route is None else route.name
            self._hang_up(f"{name} before authentication")
            return
        route.requests += 1
        if not route.low <= version <= route.high:
            if api_key == API_VERSIONS_KEY and self._exchange is None:
                self._connection.write(self._server.versions_refusal(correlation_id))
            else:
                self._hang_up(f"{route.name} version {version}, served are {route.low} to {route.high}")
            return
        try:
            client_id, position = session.read_header(frame, version >= route.flexible)
            decode = route.decoders[version] or route.decoder(version)
            request, _ = decode(frame, position, route.budget)
        except MalformedError as error:
            self._hang_up(str(error))
            return
        session.identified = True
        call = Call(session, api_key, version, correlation_id, client_id, self._connection.host, request)
        self._requested(Reply(route, call), request)

    def _requested(self, reply: Reply, request: Message) -> None:
        match request:
            case kafka.SaslAuthenticateRequest():
                assert self._exchange is not None
                self._step(self._exchange, bytes(request.auth_bytes), reply)
            case _ if self._exchange is not None:
                answer = refusal(request, reply.call.api_version, ErrorCode.ILLEGAL_SASL_STATE)
                self.fail(f"Unexpected {reply.route.name} during SASL authentication.", reply, answer)
            case kafka.SaslHandshakeRequest():
                self.handshake(reply, request)
            case _ if self._versions_requested:
                self._hang_up("ApiVersions for the second time before authentication")
            case _:
                response = cast(kafka.ApiVersionsResponse, reply.route.handler(reply.call, request))
                self._versions_requested = not response.error_code
                self._answer(reply, response)

    def handshake(self, reply: Reply, request: kafka.SaslHandshakeRequest) -> None:
        """The client chose a mechanism."""
        mechanism, before = request.mechanism, self._session.proof
        self._with_headers = reply.call.api_version >= 1
        mechanisms = self._settings.mechanisms(self._session.listener)
        response = kafka.SaslHandshakeResponse(mechanisms=mechanisms)
        of_nodes = mechanism == among_nodes.MECHANISM and self._sasl.nodes is not None
        if mechanism not in mechanisms and not of_nodes:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answered = (reply, response) if before is None else ()  # as in Kafka
            self.fail(f"Unsupported SASL mechanism {shortened_name(mechanism)}", *answered)
            return
        if before is not None and before.mechanism != mechanism:
            self._wrong_mechanism = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{before.mechanism}'"
            )
        self._mechanism = mechanism
        self._exchange = self._sasl.exchange(mechanism, self._session.listener)
        self._answer(reply, response)

    # ---- steps ----

    def _step(self, exchange: Exchange, token: bytes, reply: Reply | None) -> None:
        if not exchange.slow:
            self._outcome(exchange, reply, lambda: exchange.step(token))
            return
        connection = self._connection
        connection.rest(len(token))
        if not connection.closing:
            self._stepping = self._sasl.slow_steps.add(connection.address, partial(exchange.step, token))
            self._stepping.add_done_callback(lambda done: self._slow_outcome(exchange, reply, done))

    def _slow_outcome(self, exchange: Exchange, reply: Reply | None, done: asyncio.Future[bytes]) -> None:
        self._stepping = None
        if not self._connection.closing and not done.cancelled():
            self._connection.wake()
            self._outcome(exchange, reply, done.result)
            self._connection.go_on()

    def _outcome(self, exchange: Exchange, reply: Reply | None, step: Callable[[], bytes]) -> None:
        again = "re-authentication" if self._session.proof is not None else "authentication"
        try:
            answer = step()
            if exchange.done:
                self._check_name(exchange)
        except SaslFailedError as error:
            text = error.answer or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{self._mechanism}"
            )
            response = kafka.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
            self.fail(str(error), reply, response)
            return
        except Exception:
            self._server.failures.tell("authentication failed by a fault of ours", peer=self._connection.peer)
            self._hang_up("authentication failed by a fault of ours")
            return
        lifetime_ms = self._passed(exchange) if exchange.done else None
        if reply is None:
            self._connection.write(len(answer).to_bytes(4, "big") + answer)
        else:
            response = kafka.SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms or 0)
            self._answer(reply, response)

    def _check_name(self, exchange: Exchange) -> None:
        if exchange.user == among_nodes.NODE.name and self._mechanism != among_nodes.MECHANISM:
            raise SaslFailedError("only nodes have that name")
        before = self._session.proof
        if before is not None and before.principal != Principal("User", exchange.user):
            text = (
                f"Cannot change principals during re-authentication from {before.principal.kind}."
                f"{before.principal.name}: User.{exchange.user}"
            )
            raise SaslFailedError(text, text)

    def _passed(self, exchange: Exchange) -> int | None:
        """The client proved its name. Returns for how long; None: as long as the connection."""
        limit_ms: int | None = self._settings.max_reauth_ms(self._mechanism) or None
        if self._mechanism == among_nodes.MECHANISM:
            limit_ms = None  # it stays a node of this cluster
        if exchange.expires_ms is not None:
            left_ms = max(0, exchange.expires_ms - self._sasl.wall_ms())
            limit_ms = left_ms if limit_ms is None else min(limit_ms, left_ms)
        self.end()
        self._sasl.succeeded += 1
        proof = Proof(self._mechanism, Principal("User", exchange.user))
        self._session.authenticated(proof, limit_ms, node=self._mechanism == among_nodes.MECHANISM)
        return limit_ms

    # ---- answers ----

    def _answer(self, reply: Reply, response: Message) -> None:
        if self._connection.parked is reply.call:
            reply.call.answer(response)
            return
        out: list[bytes] = []
        reason = self._session.encode(reply.route, reply.call, response, out)
        if out:
            self._connection.flush(out)
        if reason:
            self._connection.close(reason)

    def _count(self, reason: str) -> None:
        self._sasl.failed += 1
        log_fields = self._session.log_fields()
        if self._exchange is not None:
            log_fields |= {"mechanism": self._mechanism, "user": shortened_name(self._exchange.user)}
        listener = self._session.listener.name
        self._server.log.warning("authentication failed", reason=reason, listener=listener, **log_fields)

    def _hang_up(self, reason: str) -> None:
        """Close at once, as Kafka does where a client does not speak SASL."""
        self._count(reason)
        self._connection.close(quietly=True)

    def fail(self, reason: str, reply: Reply | None = None, response: Message = None) -> None:
        """See `Authentication`: guessing takes time. `response`: answered before the connection closes."""
        self._count(reason)
        self.end()
        connection = self._connection
        if reply is not None:
            self._session.encode(reply.route, reply.call, response, self._failing)
            connection.unsent = 0
        self._session.failed()
        connection.drop_input()
        connection.rest()
        delay_s = self._server.limits.connection_failed_authentication_delay_ms / 1000
        self._deadline = asyncio.get_running_loop().call_later(delay_s, self._failed)

    def _failed(self) -> None:
        if self._failing:
            self._connection.write(b"".join(self._failing))
        self._connection.close(quietly=True)
