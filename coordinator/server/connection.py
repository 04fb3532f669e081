"""One connection: frames in, answers out, in order.

All whole frames of one read are worked on in one go, and their answers leave in one write. A request that is
not answered at once parks the connection: what follows waits, and reading goes on up to a bound, so that a
peer that closes is noticed. Nothing from the wire is believed before it is checked; whoever sends something
that cannot be read, or more than is taken, is cut off with one log line. What is long is worked on in slices.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import GeneratorType
from typing import TYPE_CHECKING, Any, cast

from ringleader.coordinator.groups.shard import NOT_YET
from ringleader.coordinator.run_queue import TURN_S
from ringleader.coordinator.security.principal import ANONYMOUS
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message, NoAnswer
from ringleader.coordinator.server.commits import API_KEY as COMMIT_KEY
from ringleader.coordinator.server.heartbeats import API_KEY as HEARTBEAT_KEY
from ringleader.coordinator.server.heartbeats import MAX_VERSION as HEARTBEAT_MAX_VERSION
from ringleader.coordinator.server.heartbeats import PACK as HEARTBEAT_PACK
from ringleader.coordinator.server.peers import guess_protocol, java_address
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.frames import API_VERSIONS_KEY, decode_request_header
from ringleader.protocol.messages import FetchResponse

if TYPE_CHECKING:
    from ringleader.coordinator.run_queue import Slices
    from ringleader.coordinator.security.listeners import Listener
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.shared import Shared
    from ringleader.coordinator.server.throttle import Account

LEAVE_KEY = 13

HEAD_BYTES = 12
"""Size, API key, version, correlation id: the least that a frame has, with its size."""

MIN_FRAME_BYTES = 8
"""The least that the size field may say: API key, version, correlation id."""

SHORT_FRAME_BYTES = 65_536
"""A frame of this size is waited for, whatever it is of and whoever sends it."""

FLUSH_BYTES = 262_144
"""Answers are handed to the transport at this size, so that a peer that does not read is noticed in time."""

TLS_UNREAD_BYTES = 65_536
"""What TLS holds, roughly, while a connection is not read from. Half of it is more than a record."""

CLIENT_ID_CHARACTERS = 256
"""What is kept of a client id for log lines. A longer one is decoded from each request."""

NO_TAGS = b"\0"
"""The tagged fields of a request header that has none, as all known clients send it."""

UNWEIGHED_BYTES = 1_024
"""Not counted in what a connection holds: a parked request of at most this many bytes, and as many that wait
behind it. To count them costs more than they hold."""

ENTRY_BYTES = 64
"""What an answer counts for besides its body."""

_head = struct.Struct(">ihhi").unpack_from


@dataclass(slots=True)
class _Refusal:
    reason: str


class Connection(asyncio.Protocol):
    """See the module. `Server` makes one for each accepted socket."""

    __slots__ = (
        "_aborted",
        "_blocked",
        "_by_partition",
        "_client_id",
        "_data",
        "_early",
        "_header",
        "_heartbeats",
        "_identified",
        "_making",
        "_max_input",
        "_more",
        "_muted",
        "_need",
        "_now_ms",
        "_position",
        "_reading",
        "_resting",
        "_routes",
        "_server",
        "_short_frame",
        "_since_ms",
        "_transport",
        "_unsent",
        "_untaken",
        "_waits",
        "_working",
        "account",
        "address",
        "closing",
        "companion",
        "held_bytes",
        "host",
        "listener",
        "login",
        "moved_ms",
        "parked",
        "peer",
        "principal",
    )

    def __init__(self, server: Shared[Connection], listener: Listener) -> None:
        self._server = server
        self.listener = listener
        """See `Answerable`."""
        self._routes = server.routes
        self._heartbeats = server.heartbeats.known
        self._by_partition = server.runtime.heartbeats
        self._now_ms = server.now_ms
        self._short_frame = min(SHORT_FRAME_BYTES, server.limits.socket_request_max_bytes)
        self._max_input = server.limits.connection_input_max_bytes
        self._transport: asyncio.Transport
        self.peer = "?"
        """Address and port, for log lines."""
        self.host = ""
        """Address as `Call.client_host`."""
        self.address = ""
        """Address alone, for the limit per address."""
        self.principal = ANONYMOUS
        """See `Answerable`."""
        self.login: Any = None
        """A `Login`, on a listener with SASL."""
        self._client_id: str | None = None
        """Of the last request, for log lines: its beginning."""
        self._header = b""
        """Its bytes in the header, length included; nothing when it is a long one."""
        self._identified = False
        """Whether a request came that could be read."""
        self.held_bytes = 0
        """What the server counts for this connection against `queued.max.request.bytes`."""
        self._working = 0
        """Of these, for the parked request."""
        self._making = 0
        """Of these, for the answer to it, as far as it is made."""
        self._untaken = 0
        """Of these, answers that the peer does not take."""
        self.moved_ms = server.now_ms()
        """When bytes last moved on this connection."""
        self.parked: Call | None = None
        self._since_ms = 0
        """When it came."""
        self._waits = server.waits
        """The request that later ones wait for."""
        self.account: Account | None = None
        """What it uses, while a quota counts for it, or may count for a connection that has not asked yet."""
        self.companion: Any = None
        """See `Answerable`."""
        self.closing = False
        self._aborted = False
        """What its peer has not taken is not kept."""
        self._blocked = False
        """The peer does not take its answers."""
        self._resting = False
        """Others have their turn; or a throttle is not over."""
        self._muted: asyncio.TimerHandle | None = None
        """Until a throttle is over: no byte is read."""
        self._reading = True
        self._data = b""
        """While busy: the read that was being worked on, if there is more in it."""
        self._position = 0
        """In `_data`: where the next frame begins."""
        self._more = bytearray()
        """What came after that; or, when not busy, the beginning of a frame."""
        self._need = 0
        """When not busy: bytes in `_more` from which on it is worth looking again."""
        self._unsent = 0
        """Bytes of answers that were not handed to the transport yet, roughly."""
        self._early: Message | NoAnswer | _Refusal | None = None
        """The answer of a call that was answered before its handler returned."""

    # ---- asyncio.Protocol ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer connected."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and len(peer) >= 2:
            self.address = str(peer[0])
            self.host = java_address(self.address)
            self.peer = f"{self.address}:{peer[1]}"
        if self.listener.security_protocol.tls:
            self._transport.set_read_buffer_limits(high=TLS_UNREAD_BYTES, low=TLS_UNREAD_BYTES // 2)  # type: ignore[attr-defined]
        self._transport.set_write_buffer_limits(high=self._server.limits.connection_output_max_bytes)
        refusal = self._server.joined(self)
        if refusal:
            self.close(refusal)
            return
        self.quotas_changed()
        if not self.listener.security_protocol.tls:
            self._come_in()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        now = self.moved_ms = self._now_ms()
        if self.account is not None:
            self._metered(self.account, data, now)
        elif self._more or self.parked is not None or self._blocked or self._resting or self.closing:
            self._later(data, now)
        elif not self._lone_heartbeat(data, now):
            self._run(data, 0, now)

    def _metered(self, account: Account, data: bytes, now: int) -> None:
        """The same, with what it takes on an account."""
        account.enter()
        if self._more or self.parked is not None or self._blocked or self._resting or self.closing:
            self._later(data, now)
        elif account.over or not self._lone_heartbeat(data, now):
            self._run(data, 0, now)
        account.leave()

    def _lone_heartbeat(self, data: bytes, now: int) -> bool:
        """What most members send most of the time: one heartbeat that was seen before, and nothing else.
        Whether it was that, and is answered."""
        if len(data) < HEAD_BYTES:
            return False
        size, api_key, version, correlation_id = _head(data, 0)
        if api_key != HEARTBEAT_KEY or size != len(data) - 4 or not 0 <= version <= HEARTBEAT_MAX_VERSION:
            return False
        heartbeat = self._heartbeats[version].get(data[HEAD_BYTES:])
        if heartbeat is None:
            return False
        partition, group_id, generation, member_id, instance_id = heartbeat
        try:
            code = self._by_partition[partition](group_id, generation, member_id, instance_id, now)
        except Exception:
            code = self._server.runtime.heartbeat_failed(partition, group_id)
        if code:
            if code == NOT_YET:
                return False
            self._server.runtime.touch(partition)
        self._routes[HEARTBEAT_KEY].requests += 1
        self._transport.write(HEARTBEAT_PACK[version](correlation_id, code))
        return True

    def eof_received(self) -> bool:
        """The peer sends no more: what it asked was answered or cannot be any more (as in Kafka, a peer that
        closes its half is gone). Closes after the answers were taken."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone, from either side."""
        queued = b"" if self.closing else self._data[self._position :] + bytes(self._more)
        self._untaken = 0
        self._end()
        if self.companion is not None:
            self.companion.close()
            self.companion = None
        self._server.left(self)
        if queued:
            self._leave_requests(queued)

    def _leave_requests(self, queued: bytes) -> None:
        """A client that is stopped while its JoinGroup waits says LeaveGroup behind it and hangs up, as
        Java's does. Kafka comes to it when the join phase is over; here it counts at once."""
        position, now = 0, self._now_ms()
        while len(queued) - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = _head(queued, position)
            stop = position + 4 + size
            if size < MIN_FRAME_BYTES or stop > len(queued):
                return
            if api_key == LEAVE_KEY:
                self._request(queued[position + 4 : stop], api_key, version, correlation_id, [], now)
                self._end()
            position = stop

    def pause_writing(self) -> None:
        """The peer does not take its answers: as in Kafka, it is not read from until it does."""
        self._blocked = True
        self._written()
        self._set_reading()

    def resume_writing(self) -> None:
        """The peer takes its answers again."""
        self._blocked = False
        self._untaken = 0
        self._weigh()
        self.moved_ms = self._now_ms()
        self._go_on()

    # ---- frames ----

    def _later(self, data: bytes, now: int) -> None:
        """Keep what cannot be worked on yet: a frame's beginning, or requests behind a parked one."""
        if self.closing:
            return
        self._more += data
        if self.parked is not None or self._blocked or self._resting:
            self._weigh_waiting()
            self._set_reading()
        elif len(self._more) >= self._need:
            self._run_more(now)
        else:
            self._weigh()

    def _run_more(self, now: int) -> None:
        whole = bytes(self._more)
        self._more.clear()
        self._need = 0
        self._run(whole, 0, now)

    def _weigh_waiting(self) -> None:
        """Weigh if there is enough of it."""
        if self.held_bytes or self._working or len(self._more) + len(self._data) > UNWEIGHED_BYTES:
            self._weigh()

    def _weigh(self) -> None:
        """Tell the server what this connection holds. Closes one, perhaps this, if all hold too much."""
        held = len(self._more) + len(self._data) + self._working + self._making + self._untaken
        self._server.hold(held - self.held_bytes, self, held)

    def _run(self, data: bytes, position: int, now: int) -> None:
        """Work on the frames in `data` from `position` on, until its end, a parked request or a bad frame; or
        until it takes too long."""
        out: list[bytes] = []
        end = len(data)
        stop_s = 0.0
        reason = ""
        short = self._short_frame
        while end - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = _head(data, position)
            stop = position + 4 + size
            if stop > end or size < MIN_FRAME_BYTES or (size > short and size > self._limit(api_key)):
                break
            if api_key == HEARTBEAT_KEY and 0 <= version <= HEARTBEAT_MAX_VERSION:
                after = self._known_heartbeats(data, position, out, now)
                if after > position:
                    position = after
                    continue
                try:
                    self._heartbeats = self._server.heartbeats.learn(
                        self, self.host, data[position + 4 : stop], version
                    )
                except MalformedError as error:
                    reason = str(error)
                    break
            if self.account is not None and self.account.fresh and self._rests_first(data, position, stop):
                break
            reason = self._request(data[position + 4 : stop], api_key, version, correlation_id, out, now)
            position = stop
            if reason or self.parked is not None or self._blocked or self._resting:
                break
            if position >= end:
                break
            now_s = perf_counter()
            stop_s = stop_s or now_s + TURN_S
            if now_s > stop_s:
                self._resting = True
                self._server.run_queue.add(self._rest())
                break
        if out:
            self._flush(out)
        if self.closing:
            return
        if reason:
            self.close(reason)
        elif self.parked is not None or self._blocked or self._resting:
            self._need = 0
            if position < end:
                self._data, self._position = data, position
        elif position < end:
            self._keep(data[position:])
            self._weigh()
        self._weigh_waiting()

    def _known_heartbeats(self, data: bytes, position: int, out: list[bytes], now: int) -> int:
        """Answer the heartbeats at `position` that were seen before, one after the other. Where it ends."""
        if self.account is not None and self.account.over:
            return position
        head, known, by_partition = _head, self._heartbeats, self._by_partition
        key, newest, before, pack = HEARTBEAT_KEY, HEARTBEAT_MAX_VERSION, HEAD_BYTES, HEARTBEAT_PACK
        end = len(data)
        answered = len(out)
        while end - position >= before:
            size, api_key, version, correlation_id = head(data, position)
            stop = position + 4 + size
            if api_key != key or not 0 <= version <= newest or stop > end:
                break
            heartbeat = known[version].get(data[position + before : stop])
            if heartbeat is None:
                break
            partition, group_id, generation, member_id, instance_id = heartbeat
            try:
                code = by_partition[partition](group_id, generation, member_id, instance_id, now)
            except Exception:
                code = self._server.runtime.heartbeat_failed(partition, group_id)
            if code:
                if code == NOT_YET:
                    break
                self._server.runtime.touch(partition)
            out.append(pack[version](correlation_id, code))
            position = stop
        self._routes[key].requests += len(out) - answered
        return position

    def _rest(self) -> Slices:
        """Go on with what came in one read when others had their turn."""
        yield
        self._resting = False
        self._go_on()

    def _limit(self, api_key: int) -> int:
        """The longest frame that is waited for."""
        route = self._routes.get(api_key)
        limit = self._short_frame if route is None else route.max_frame_bytes
        if not self._identified:
            limit = min(limit, self._server.limits.connection_first_request_max_bytes)
        return max(limit, self._short_frame)

    def _keep(self, rest: bytes) -> None:
        """The beginning of a frame: check its size before waiting for the rest of it."""
        self._need = HEAD_BYTES
        if len(rest) >= 4:
            size = int.from_bytes(rest[:4], "big", signed=True)
            limit = self._server.limits.socket_request_max_bytes
            if len(rest) >= HEAD_BYTES:
                limit = self._limit(int.from_bytes(rest[4:6], "big", signed=True))
                self._need = size + 4
            if not MIN_FRAME_BYTES <= size <= limit:
                told = f", at most {limit:,} are taken here" if size > limit else ""
                self.close(f"a frame of {size:,} bytes{guess_protocol(rest) or told}")
                return
        self._more[:0] = rest

    def _go_on(self) -> None:
        """What made the connection wait is over: work on what came meanwhile."""
        account = self.account
        if account is not None:
            account.enter()
        now = self._now_ms()
        while not (self.closing or self._blocked or self._resting) and self.parked is None:
            if self._data:
                data, position = self._data, self._position
                self._data = b""
                self._run(data, position, now)
            elif self._more and len(self._more) >= self._need:
                self._run_more(now)
            else:
                break
        if self.held_bytes:
            self._weigh()
        self._set_reading()
        if account is not None:
            account.leave()

    def _set_reading(self) -> None:
        if self.closing or self._transport.is_closing():
            return
        waiting = len(self._more) + len(self._data) - self._position if self._data else len(self._more)
        busy = self.parked is not None or self._resting
        full = self._blocked or self._muted is not None or (busy and waiting >= self._max_input)
        if full and self._reading:
            self._reading = False
            self._transport.pause_reading()
        elif not full and not self._reading:
            self._reading = True
            self._transport.resume_reading()

    # ---- quotas ----

    def quotas_changed(self) -> None:
        """Who has which is to be found out anew."""
        throttle = self._server.throttle
        if throttle is None:
            self.account = None
        elif self.account is None:
            self.account = throttle.unknown(self)
        else:
            self.account.over = True

    def _come_in(self) -> None:
        """Over TLS that is done before the handshake."""
        delay = self._server.arriving.delay(self.address)
        if delay.refused:
            self._server.throttles += 1
            self._resting = True
            close = partial(self.close, quietly=True)
            self._muted = asyncio.get_running_loop().call_later(delay.ms / 1000, close)
            self._set_reading()
        else:
            self.mute(delay.ms)

    def mute(self, throttle_ms: int) -> None:
        """Neither read nor work on anything for so long (KIP-219)."""
        if self.closing or not throttle_ms:
            return
        if self._muted is not None:
            self._muted.cancel()
        self._server.throttles += 1
        self._resting = True
        self._muted = asyncio.get_running_loop().call_later(throttle_ms / 1000, self._unmute)
        self._set_reading()

    def _rests_first(self, data: bytes, position: int, stop: int) -> bool:
        """Whether the first request of this connection waits, since others of its user or client id are
        beyond request_percentage: else a connection for each request gets round it."""
        _, api_key, version, _ = _head(data, position)
        route, throttle = self._routes.get(api_key), self._server.throttle
        if route is None or throttle is None or not route.low <= version <= route.high:
            return False
        try:
            client_id, _ = self._read_header(data[position + 4 : stop], version >= route.flexible)
        except MalformedError:
            return False
        account = self.account = throttle.account(self, client_id)
        if account is None or api_key == API_VERSIONS_KEY:  # whose answer some clients await for seconds only
            return False
        self.mute(account.rests_ms())
        return self._muted is not None

    def _unmute(self) -> None:
        account = self.account
        more_ms = 0 if account is None else account.rests_ms()
        if more_ms:
            self._muted = asyncio.get_running_loop().call_later(more_ms / 1000, self._unmute)
            return
        self._muted = None
        self._resting = False
        self.moved_ms = self._now_ms()
        self._go_on()

    @property
    def is_muted(self) -> bool:
        """Whether it is throttled."""
        return self._muted is not None

    # ---- requests ----

    def _request(
        self, frame: bytes, api_key: int, version: int, correlation_id: int, out: list[bytes], now: int
    ) -> str:
        """One request: adds its answer to `out`, or parks the connection. Returns why the connection must be
        closed, or ""."""
        route = self._routes.get(api_key)
        if route is None:
            return f"unknown API {api_key}"
        route.requests += 1
        if not route.low <= version <= route.high:
            if api_key == API_VERSIONS_KEY:
                out.append(self._server.versions_refusal(correlation_id))
                return ""
            return f"{route.name} version {version}, served are {route.low} to {route.high}"
        if api_key == COMMIT_KEY and (self.account is None or not self.account.over):
            try:
                taken = self._server.commits.take(self, self.host, frame, version, correlation_id, now)
            except Exception:
                self._server.failures.tell("handler failed", **self._who(route.name))
                return f"{route.name} failed"
            if taken is not None:
                self.parked = taken
                self._since_ms = now
                return ""
        try:
            client_id, position = self._read_header(frame, version >= route.flexible)
            decode = route.decoders[version] or route.decoder(version)
            request, end = decode(frame, position, route.budget)
        except MalformedError as error:
            return str(error)
        self._identified = True
        if self._server.throttle is not None:
            self.account = self._server.throttle.account(self, client_id)
            if self.account is not None:
                self.account.begin(request, len(frame))
        if api_key == COMMIT_KEY:
            self._server.commits.learn(frame, version, end, client_id, request)
        call = Call(self, api_key, version, correlation_id, client_id, self.host, request)
        try:
            response = route.handler(call, request)
            if isinstance(response, GeneratorType):
                response = self._first_slice(route, call, response)
        except Exception:
            call.done = True
            self._server.failures.tell("handler failed", **self._who(route.name))
            return f"{route.name} failed"
        if response is None:
            if not call.done:
                self.parked = call
                self._since_ms = now
                if len(frame) > UNWEIGHED_BYTES:
                    self._working = route.held_bytes(len(frame))
                return ""
            response, self._early = self._early, None
            if isinstance(response, _Refusal):
                return f"{route.name}: {response.reason}"
        else:
            call.done = True
        if response is NO_ANSWER and self.account is None:
            return ""
        return self._encode(route, call, response, out)

    def _first_slice(self, route: Route, call: Call, handling: Slices) -> Message | NoAnswer | None:
        """Begin with a handler that gives way to others in between; None when it goes on in later turns."""
        try:
            next(handling)
        except StopIteration as stop:
            return stop.value
        timed = handling if self.account is None else self.account.timed(handling)
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
            self._server.failures.tell("handler failed", **self._who(route.name))
            call.close("failed")

    def _read_header(self, frame: bytes, flexible: bool) -> tuple[str | None, int]:
        """The client id, and where the body begins. Raises `MalformedError`."""
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

    def _encode(self, route: Route, call: Call, response: Message, out: list[bytes]) -> str:
        """Adds the response's frame to `out`. Returns why the connection must be closed, or ""."""
        version = call.api_version
        try:
            if self.account is not None:
                response = self.account.answered(call, response)
                if response is NO_ANSWER:
                    return ""
            pieces = (route.encoders[version] or route.encoder(version))(response)
            body = next(pieces)
            more = next(pieces, None)
        except Exception:
            self._server.failures.tell("answer cannot be encoded", **self._who(route.name))
            return f"{route.name} failed"
        if more is None:
            out.append(route.head(version, call.correlation_id, len(body)))
            out.append(body)
            self._unsent += len(body) + ENTRY_BYTES
            if self._unsent > FLUSH_BYTES:
                self._flush(out)
        else:
            if out:
                self._flush(out)
            self.parked = call
            self._server.run_queue.first(self._long_answer(route, call, [body, more], pieces))
        return ""

    def _long_answer(self, route: Route, call: Call, done: list[bytes], pieces: Iterator[bytes]) -> Slices:
        """Encode the rest of an answer in slices; until it leaves, the connection waits."""
        try:
            call.answer_bytes += sum(map(len, done))
            for piece in pieces:
                done.append(piece)
                call.answer_bytes += len(piece)
                self.call_takes(call)
                yield
                if self.parked is not call:
                    return
            head = route.head(call.api_version, call.correlation_id, sum(map(len, done)))
        except Exception:
            self._server.failures.tell("answer cannot be encoded", **self._who(route.name))
            self._unpark()
            self.close(f"{route.name} failed")
            return
        if self.parked is call:
            self._unpark()
            for piece in (head, *done):  # not joined, which would take as much memory again
                self._transport.write(piece)
            self._written()
            self._go_on()

    def _flush(self, out: list[bytes]) -> None:
        self._unsent = 0
        self._transport.write(b"".join(out))
        out.clear()
        self._written()

    def _written(self) -> None:
        if self._blocked and not self._aborted:
            self._untaken = self._transport.get_write_buffer_size()
            self._weigh()

    def _unpark(self) -> None:
        self.parked = None
        self._working = self._making = 0
        self.moved_ms = self._server.swept_ms

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        if self.parked is not call:
            self._early = response
            return
        account = self.account
        if account is not None:
            account.enter()
        working = self._working
        self._unpark()
        if self._waits is not None:
            self._waits[call.api_key].add(self._now_ms() - self._since_ms)
        if response is not NO_ANSWER or account is not None:
            out: list[bytes] = []
            reason = self._encode(self._routes[call.api_key], call, response, out)
            if self.parked is call:  # it is a long answer: all that it is made of stays until it is whole
                self._working, self._making = working, call.answer_bytes
            if out:
                self._flush(out)
            if reason:
                self.close(reason)
                return
        if account is not None:
            account.leave()
        if self._data or self._more or self.held_bytes or not self._reading:
            self._go_on()

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""
        if self.parked is call:
            self._making = call.answer_bytes
            self._weigh()

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        assert self.parked is call
        self._unpark()
        if self._waits is not None:
            self._waits[call.api_key].add(self._now_ms() - self._since_ms)
        if self.account is not None:
            throttle_ms = self.account.frame_throttle_ms(call, sum(map(len, frame)))
            if throttle_ms:
                frame = self._throttled_fetch(call, throttle_ms)
        for piece in frame:
            self._transport.write(piece)
        if self._data or self._more or self.held_bytes or not self._reading:
            self._go_on()

    def _throttled_fetch(self, call: Call, throttle_ms: int) -> tuple[bytes, bytes]:
        route, version = self._routes[call.api_key], call.api_version
        body = b"".join(route.encoder(version)(FetchResponse(throttle_time_ms=throttle_ms)))
        return route.head(version, call.correlation_id, len(body)), body

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        if self.parked is not call:
            self._early = _Refusal(reason)
            return
        self._unpark()
        self.close(f"{self._routes[call.api_key].name}: {reason}")

    def authenticates_again(self, call: Call, request: Message) -> bool:
        """See `Answerable`."""
        return False

    # ---- closing ----

    def give_way(self) -> None:
        """See `Stranger`."""
        self.abort()

    def _who(self, api: str = "") -> dict[str, str]:
        who = {"peer": self.peer}
        if self._client_id is not None:
            who["client_id"] = self._client_id
        if api:
            who["api"] = api
        return who

    def close(self, reason: str = "", *, quietly: bool = False) -> None:
        """Send what was answered, then close. One log line, unless `quietly`."""
        if self.closing:
            return
        if not quietly:
            self._server.log.warning("connection closed", reason=reason, **self._who())
        self._end()
        self._transport.close()

    def abort(self, reason: str = "") -> None:
        """Close without waiting for the peer to take its answers. One log line if there is a `reason`."""
        if self._aborted:
            return
        self._aborted = True
        if reason and not self.closing:
            self._server.log.warning("connection closed", reason=reason, **self._who())
        self._untaken = 0
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        """Let go of everything but the answers that the peer may still take."""
        self.closing = True
        if self._muted is not None:
            self._muted.cancel()
            self._muted = None
        self._data = b""
        self._more = bytearray()
        call = self.parked
        self._unpark()
        self._weigh()
        if call is not None:
            call.dropped()
