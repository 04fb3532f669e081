"""One session: what the frames of a connection mean, from its first phase to its last.

A session goes through the phases of `phases.TRANSITIONS`. While the client authenticates, frames go to a
login; once it is open each frame is a request, which is decoded, handled and answered. A handler that takes
long gives way to others in between, and so does the encoding of a long answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from ringleader.coordinator.security.mapping import NoMatchingRuleError, PrincipalMapper
from ringleader.coordinator.security.names import subject_of
from ringleader.coordinator.security.principal import ANONYMOUS, Principal
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message, NoAnswer
from ringleader.coordinator.server.commits import API_KEY as COMMIT_KEY
from ringleader.coordinator.server.connection import (
    ENTRY_BYTES,
    FLUSH_BYTES,
    FOR_EVER,
    HEAD_BYTES,
    MIN_FRAME_BYTES,
    SHORT_FRAME_BYTES,
    UNWEIGHED_BYTES,
    Connection,
    read_head,
)
from ringleader.coordinator.server.heartbeats import STAY_KEY
from ringleader.coordinator.server.login import HANDSHAKE_KEY, Login, Proof, Reply
from ringleader.coordinator.server.pace import Pace
from ringleader.coordinator.server.phases import Phase, check_transition
from ringleader.coordinator.server.strangers import CONNECTION_BYTES, HANDSHAKE_BYTES
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.frames import API_VERSIONS_KEY, decode_request_header
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatResponse,
    FetchResponse,
    LeaveGroupRequest,
    SaslHandshakeRequest,
)

if TYPE_CHECKING:
    from ringleader.coordinator.run_queue import Slices
    from ringleader.coordinator.security.listeners import Listener
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.shared import Shared

CLIENT_ID_CHARACTERS = 256
"""The beginning of a client id that is kept for log lines. A longer one is decoded from each request."""

NO_TAGS = b"\0"
"""The tagged fields of a request header that has none, as all known clients send it."""
LEAVE_KEY: Final = LeaveGroupRequest.API_KEY
RENEWAL_INTERVAL_MS: Final = 1_000
"""As in Kafka, no client authenticates again within a second of the last time."""


@dataclass(slots=True)
class _Refusal:
    reason: str


class Session:
    """See the module. `Answerable` says where answers go."""

    __slots__ = (
        "_client_id",
        "_early",
        "_header",
        "_mapper",
        "_renewed_ms",
        "_server",
        "_short_frame",
        "_since_ms",
        "_waits",
        "companion",
        "connection",
        "ends_ms",
        "identified",
        "listener",
        "login",
        "pace",
        "phase",
        "principal",
        "proof",
        "routes",
    )

    def __init__(
        self, server: Shared[Connection], listener: Listener, mapper: PrincipalMapper | None = None
    ) -> None:
        """`mapper`: from the name in a client's certificate to its principal."""
        self._server = server
        self._mapper = mapper
        self.listener = listener
        """See `Answerable`."""
        self.phase = Phase.ACCEPTED
        self.principal = ANONYMOUS
        """See `Answerable`."""
        self.companion: Any = None
        """See `Answerable`."""
        self.routes = server.routes
        self._short_frame = min(SHORT_FRAME_BYTES, server.limits.socket_request_max_bytes)
        self.login: Login | None = None
        """While the client authenticates."""
        self.proof: Proof | None = None
        """How the client authenticated the last time."""
        self.ends_ms: int | None = None
        """When that counts no more, by the server's clock; None: it counts while the connection lives."""
        self._renewed_ms: int | None = None
        """When it began to authenticate again, the last time."""
        self._client_id: str | None = None
        """Of the last request, for log lines: its beginning."""
        self._header = b""
        """Its bytes in the header, length included; nothing when it is a long one."""
        self.identified = False
        """Whether a request came that could be read."""
        self._since_ms = 0
        """When the parked request came."""
        self._waits = server.waits
        self._early: Message | NoAnswer | _Refusal | None = None
        """The answer of a call that was answered before its handler returned."""
        self.connection = Connection(server, listener, self)
        self.pace = Pace(server, self.connection)

    # ---- phases ----

    def _enter(self, phase: Phase) -> None:
        check_transition(self.phase, phase)
        self.phase = phase
        until_ms = 0
        if phase is Phase.OPEN:
            until_ms = FOR_EVER if self.ends_ms is None else self.ends_ms
        self.connection.open_until(until_ms)

    def began(self, transport: asyncio.Transport) -> None:
        """See `Above`."""
        protocol = self.listener.security_protocol
        self.pace.quotas_changed()
        if not protocol.tls:
            self.pace.come_in()
        if protocol.sasl:
            self._enter(Phase.SASL)
            self._log_in()
            self._server.strangers.enter(
                self.connection, HANDSHAKE_BYTES if protocol.tls else CONNECTION_BYTES
            )
            return
        if protocol.tls:
            try:
                self.principal = self._named(transport.get_extra_info("ssl_object"))
            except NoMatchingRuleError as error:
                self.connection.close(str(error))
                return
            except ValueError:
                self.connection.close("its certificate cannot be read")
                return
        self._enter(Phase.OPEN)

    def _named(self, tls: ssl.SSLObject) -> Principal:
        """The principal of a client's certificate. Raises ValueError."""
        certificate = tls.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        assert self._mapper is not None
        return Principal("User", self._mapper.name(subject_of(certificate)))

    def _log_in(self) -> Login:
        sasl = self._server.sasl
        assert sasl is not None
        login = self.login = Login(self, self._server, sasl, self._server.settings_of[self.listener.name])
        login.begin()
        return login

    def failed(self) -> None:
        """See `LoggingIn`."""
        self._enter(Phase.FAILED)

    def authenticated(self, proof: Proof, limit_ms: int | None, *, node: bool) -> None:
        """See `LoggingIn`."""
        self.principal = proof.principal
        self.proof = proof
        self.ends_ms = None if limit_ms is None else self._server.now_ms() + limit_ms
        self.login = None
        self.connection.max_input = self._server.limits.connection_input_max_bytes
        self._server.strangers.leave(self.connection)
        if node:
            self.routes = {API_VERSIONS_KEY: self.routes[API_VERSIONS_KEY]}
            self.pace.exempt = True
        self._enter(Phase.NODE if node else Phase.OPEN)

    def refusal(self, api_key: int) -> str:
        """See `Above`."""
        if self.phase is Phase.NODE or api_key == HANDSHAKE_KEY:
            return ""
        return "the session is over, and this is no SaslHandshake"

    def authenticates_again(self, call: Call, request: SaslHandshakeRequest) -> bool:
        """See `Answerable`."""
        if self.ends_ms is None:
            return False
        now = self._server.now_ms()
        if self._renewed_ms is None or now - self._renewed_ms >= RENEWAL_INTERVAL_MS:
            self._renewed_ms = now
            # When the handler of this call, which parks, has returned.
            asyncio.get_running_loop().call_soon(self._renew, call, request)
            return True
        if now > self.ends_ms:
            call.close("the session is over, and it was renewed less than a second ago")
            return True
        return False

    def _renew(self, call: Call, request: SaslHandshakeRequest) -> None:
        if not call.done:
            self._enter(Phase.RENEWING)
            self._log_in().handshake(Reply(self.routes[HANDSHAKE_KEY], call), request)

    def ended(self) -> None:
        """See `Above`."""
        if self.phase is not Phase.CLOSED:
            self._enter(Phase.CLOSED)
            self.pace.end()
            if self.login is not None:
                self.login.end()

    def close(self, reason: str) -> None:
        """See `Connection.close`."""
        self.connection.close(reason)

    def lost(self) -> None:
        """See `Above`."""
        self.login = None
        if self.companion is not None:
            self.companion.close()
            self.companion = None

    # ---- quotas ----

    def quotas_changed(self) -> None:
        """See `Above`."""
        self.pace.quotas_changed()

    def rests_first(self, frame: bytes, api_key: int, version: int) -> bool:
        """See `Above`. Otherwise a connection for each request would go round the quota."""
        route, throttle = self.routes.get(api_key), self._server.throttle
        if route is None or throttle is None or not route.low <= version <= route.high:
            return False
        try:
            client_id, _ = self.read_header(frame, version >= route.flexible)
        except MalformedError:
            return False
        connection = self.connection
        account = connection.account = throttle.account(self.pace, self.principal, client_id)
        if account is None or api_key == API_VERSIONS_KEY:  # whose answer some clients await for seconds only
            return False
        self.pace.mute(account.rests_ms())
        return connection.is_muted

    # ---- requests ----

    def limit(self, api_key: int) -> int:
        """See `Above`."""
        route = self.routes.get(api_key)
        limit = self._short_frame if route is None else route.max_frame_bytes
        if not self.identified:
            limit = min(limit, self._server.limits.connection_first_request_max_bytes)
        return max(limit, self._short_frame)

    def request(
        self, frame: bytes, api_key: int, version: int, correlation_id: int, out: list[bytes], now: int
    ) -> str:
        """See `Above`."""
        route = self.routes.get(api_key)
        if route is None:
            return f"unknown API {api_key}"
        route.requests += 1
        if not route.low <= version <= route.high:
            if api_key == API_VERSIONS_KEY:
                out.append(self._server.versions_refusal(correlation_id))
                return ""
            return f"{route.name} version {version}, served are {route.low} to {route.high}"
        connection = self.connection
        account = connection.account
        if api_key == COMMIT_KEY and (account is None or not account.over):
            try:
                taken = self._server.commits.take(self, connection.host, frame, version, correlation_id)
            except Exception:
                self._server.failures.tell("handler failed", **self.log_fields(route.name))
                return f"{route.name} failed"
            if taken is not None:
                connection.park(taken)
                self._since_ms = now
                return ""
        try:
            client_id, position = self.read_header(frame, version >= route.flexible)
            request, end = None, 0
            if api_key == STAY_KEY:
                request = self._server.heartbeats.request_of(self, frame, version)
            if request is None:
                decode = route.decoders[version] or route.decoder(version)
                request, end = decode(frame, position, route.budget)
        except MalformedError as error:
            return str(error)
        self.identified = True
        if self._server.throttle is not None:
            account = connection.account = self._server.throttle.account(self.pace, self.principal, client_id)
            if account is not None:
                account.begin(request, len(frame))
        if api_key == COMMIT_KEY:
            self._server.commits.learn(frame, version, end, client_id, request)
        call = Call(self, api_key, version, correlation_id, client_id, connection.host, request)
        try:
            response = route.handler(call, request)
            if isinstance(response, GeneratorType):
                response = self._first_slice(route, call, response)
        except Exception:
            call.done = True
            self._server.failures.tell("handler failed", **self.log_fields(route.name))
            return f"{route.name} failed"
        if response is None:
            if not call.done:
                connection.park(call)
                self._since_ms = now
                if len(frame) > UNWEIGHED_BYTES:
                    connection.working = route.held_bytes(len(frame))
                return ""
            response, self._early = self._early, None
            if isinstance(response, _Refusal):
                return f"{route.name}: {response.reason}"
        else:
            call.done = True
            if isinstance(response, ConsumerGroupHeartbeatResponse):
                connection.learn_stay(call, frame, response)
        if response is NO_ANSWER and connection.account is None:
            return ""
        return self.encode(route, call, response, out)

    def left_behind(self, frames: bytes, now: int) -> None:
        """See `Above`. A client that is stopped while its JoinGroup waits says LeaveGroup behind it and hangs
        up, as Java's does. Kafka comes to it when the join phase is over; here it counts at once."""
        position = 0
        while len(frames) - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = read_head(frames, position)
            stop = position + 4 + size
            if size < MIN_FRAME_BYTES or stop > len(frames):
                return
            if api_key == LEAVE_KEY:
                self.request(frames[position + 4 : stop], api_key, version, correlation_id, [], now)
            position = stop

    def _first_slice(self, route: Route, call: Call, handling: Slices) -> Message | NoAnswer | None:
        """Begin with a handler that gives way to others in between; None when it goes on in later turns."""
        try:
            next(handling)
        except StopIteration as stop:
            return stop.value
        account = self.connection.account
        timed = handling if account is None else account.timed(handling)
        self._server.run_queue.add(self._in_slices(route, call, timed))
        return None

    def _in_slices(self, route: Route, call: Call, handling: Slices) -> Slices:
        try:
            while not call.done:
                next(handling)
                yield
        except StopIteration as stop:
            if stop.value is not None:
                call.answer(stop.value)
        except Exception:
            self._server.failures.tell("handler failed", **self.log_fields(route.name))
            call.close("failed")

    def read_header(self, frame: bytes, flexible: bool) -> tuple[str | None, int]:
        """See `LoggingIn`."""
        known = self._header
        if known and frame.startswith(known, 8):
            # Most clients send the same id each time, and no tagged fields: compared, not decoded.
            position = 8 + len(known)
            if not flexible:
                return self._client_id, position
            if frame[position : position + 1] == NO_TAGS:
                return self._client_id, position + 1
        header, position = decode_request_header(frame)
        length = max(0, int.from_bytes(frame[8:10], "big", signed=True))
        self._header = frame[8 : 10 + length] if length <= CLIENT_ID_CHARACTERS else b""
        self._client_id = header.client_id and header.client_id[:CLIENT_ID_CHARACTERS]
        return header.client_id, position

    # ---- answers ----

    def encode(self, route: Route, call: Call, response: Message, out: list[bytes]) -> str:
        """See `LoggingIn`."""
        version, connection = call.api_version, self.connection
        try:
            if connection.account is not None:
                response = connection.account.answered(call, response)
                if response is NO_ANSWER:
                    return ""
            pieces = (route.encoders[version] or route.encoder(version))(response)
            body = next(pieces)
            more = next(pieces, None)
        except Exception:
            self._server.failures.tell("answer cannot be encoded", **self.log_fields(route.name))
            return f"{route.name} failed"
        if more is None:
            out.append(route.head(version, call.correlation_id, len(body)))
            out.append(body)
            connection.unsent += len(body) + ENTRY_BYTES
            if connection.unsent > FLUSH_BYTES:
                connection.flush(out)
        else:
            if out:
                connection.flush(out)
            connection.park(call)
            self._server.run_queue.first(self._long_answer(route, call, [body, more], pieces))
        return ""

    def _long_answer(self, route: Route, call: Call, done: list[bytes], pieces: Iterator[bytes]) -> Slices:
        """Encode the rest of an answer in slices; until it leaves, the connection waits."""
        connection = self.connection
        try:
            call.answer_bytes += sum(map(len, done))
            for piece in pieces:
                done.append(piece)
                call.answer_bytes += len(piece)
                self.call_takes(call)
                yield
                if connection.parked is not call:
                    return
            head = route.head(call.api_version, call.correlation_id, sum(map(len, done)))
        except Exception:
            self._server.failures.tell("answer cannot be encoded", **self.log_fields(route.name))
            connection.unpark()
            connection.close(f"{route.name} failed")
            return
        if connection.parked is call:
            connection.unpark()
            connection.write(head, *done)
            connection.go_on()

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        connection = self.connection
        if connection.parked is not call:
            self._early = response
            return
        account = connection.account
        if account is not None:
            account.enter()
        working = connection.working
        self._unpark(call)
        if response is not NO_ANSWER or account is not None:
            out: list[bytes] = []
            reason = self.encode(self.routes[call.api_key], call, response, out)
            if connection.parked is call:  # a long answer: all that it is made of stays until it is whole
                connection.working, connection.making = working, call.answer_bytes
            if out:
                connection.flush(out)
            if reason:
                connection.close(reason)
                return
        if account is not None:
            account.leave()
        connection.answered()

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""
        if self.connection.parked is call:
            self.connection.making = call.answer_bytes
            self.connection.weigh()

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        connection = self.connection
        assert connection.parked is call
        self._unpark(call)
        if connection.account is not None:
            throttle_ms = connection.account.frame_throttle_ms(call, sum(map(len, frame)))
            if throttle_ms:
                frame = self._throttled_fetch(call, throttle_ms)
        connection.write(*frame)
        connection.answered()

    def _throttled_fetch(self, call: Call, throttle_ms: int) -> tuple[bytes, bytes]:
        route, version = self.routes[call.api_key], call.api_version
        body = b"".join(route.encoder(version)(FetchResponse(throttle_time_ms=throttle_ms)))
        return route.head(version, call.correlation_id, len(body)), body

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        if self.connection.parked is not call:
            self._early = _Refusal(reason)
            return
        self.connection.unpark()
        self.connection.close(f"{self.routes[call.api_key].name}: {reason}")

    def _unpark(self, call: Call) -> None:
        self.connection.unpark()
        if self._waits is not None:
            self._waits[call.api_key].add(self._server.now_ms() - self._since_ms)

    def log_fields(self, api: str = "") -> dict[str, str]:
        """See `Above`."""
        named = ("peer", self.connection.peer), ("client_id", self._client_id), ("api", api or None)
        return {name: text for name, text in named if text is not None}
