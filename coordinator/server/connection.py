"""One connection: frames in, answers out, in order.

All whole frames of one read are worked on in one go, and their answers leave in one write. A request that is
not answered at once parks the connection: what follows waits, and reading goes on up to a bound, so that a
peer that closes is noticed. Nothing from the wire is believed before it is checked; whoever sends something
that cannot be read is cut off with one log line.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ringleader.coordinator.server.beats import API_KEY as HEARTBEAT_KEY
from ringleader.coordinator.server.beats import MAX_VERSION as HEARTBEAT_MAX_VERSION
from ringleader.coordinator.server.beats import PACK as HEARTBEAT_PACK
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message, NoAnswer
from ringleader.coordinator.server.commits import API_KEY as COMMIT_KEY
from ringleader.coordinator.server.peers import guess_protocol, java_address
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.frames import API_VERSIONS_KEY, decode_request_header

if TYPE_CHECKING:
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.server import Server

LEAVE_KEY = 13

HEAD_BYTES = 12
"""Size, API key, version, correlation id: the least that a frame has, with its size."""

MIN_FRAME_BYTES = 8
"""The least that the size field may say: API key, version, correlation id."""

FLUSH_BYTES = 262_144
"""Answers are handed to the transport at this size, so that a peer that does not read is noticed in time."""

NO_TAGS = b"\0"
"""The tagged fields of a request header that has none, as all known clients send it."""

ENTRY_BYTES = 64
"""What an answer counts for besides its body."""

_head = struct.Struct(">ihhi").unpack_from


@dataclass(slots=True)
class _Refusal:
    reason: str


class Connection(asyncio.Protocol):
    """See the module. `Server` makes one for each accepted socket."""

    __slots__ = (
        "_beats",
        "_blocked",
        "_data",
        "_early",
        "_header",
        "_max_frame",
        "_max_input",
        "_more",
        "_need",
        "_now_ms",
        "_position",
        "_reading",
        "_routes",
        "_server",
        "_transport",
        "_unsent",
        "address",
        "client_id",
        "closing",
        "host",
        "moved_ms",
        "parked",
        "peer",
    )

    def __init__(self, server: Server) -> None:
        self._server = server
        self._routes = server.routes
        self._beats = server.beats.known
        self._now_ms = server.now_ms
        self._max_frame = server.limits.socket_request_max_bytes
        self._max_input = server.limits.connection_input_max_bytes
        self._transport: asyncio.Transport
        self.peer = "?"
        """Address and port, for log lines."""
        self.host = ""
        """Address as `Call.client_host`."""
        self.address = ""
        """Address alone, for the limit per address."""
        self.client_id: str | None = None
        """Of the last request."""
        self._header = b""
        """Its bytes in the header, length included."""
        self.moved_ms = server.now_ms()
        """When bytes last moved on this connection."""
        self.parked: Call | None = None
        """The request that later ones wait for."""
        self.closing = False
        self._blocked = False
        """The peer does not take its answers."""
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
        self._transport.set_write_buffer_limits(high=self._server.limits.connection_output_max_bytes)
        refusal = self._server.joined(self)
        if refusal:
            self.close(refusal)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        now = self.moved_ms = self._now_ms()
        if self._more or self.parked is not None or self._blocked or self.closing:
            self._later(data, now)
        elif not self._beat_alone(data, now):
            self._run(data, 0, now)

    def _beat_alone(self, data: bytes, now: int) -> bool:
        """What most members send most of the time: one heartbeat that was seen before, and nothing else.
        Whether it was that, and is answered."""
        if len(data) < HEAD_BYTES:
            return False
        size, api_key, version, correlation_id = _head(data, 0)
        if api_key != HEARTBEAT_KEY or size != len(data) - 4 or not 0 <= version <= HEARTBEAT_MAX_VERSION:
            return False
        beat = self._beats[version].get(data[HEAD_BYTES:])
        if beat is None:
            return False
        heartbeat, group_id, generation, member_id, instance_id = beat
        try:
            code = heartbeat(group_id, generation, member_id, instance_id, now)
        except Exception:
            return False  # once more, the long way, which logs it
        if code:
            self._server.beats.unusual(group_id)
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
        self.closing = True
        self._server.queued_bytes -= len(self._more)
        self._more = bytearray()
        self._data = b""
        self._server.left(self)
        call, self.parked = self.parked, None
        if call is not None:
            call.dropped()
        if queued:
            self._farewells(queued)

    def _farewells(self, queued: bytes) -> None:
        """A client that is stopped while its JoinGroup waits says LeaveGroup behind it and hangs up, as
        Java's does. Kafka comes to it when the join phase is over; here it counts at once."""
        position, now = 0, self._now_ms()
        while len(queued) - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = _head(queued, position)
            stop = position + 4 + size
            if not MIN_FRAME_BYTES <= size <= self._max_frame or stop > len(queued):
                return
            if api_key == LEAVE_KEY:
                self._request(queued[position + 4 : stop], api_key, version, correlation_id, [], now)
                call, self.parked = self.parked, None
                if call is not None:
                    call.dropped()
            position = stop

    def pause_writing(self) -> None:
        """The peer does not take its answers: as in Kafka, it is not read from until it does."""
        self._blocked = True
        self._set_reading()

    def resume_writing(self) -> None:
        """The peer takes its answers again."""
        self._blocked = False
        self.moved_ms = self._now_ms()
        self._go_on()

    # ---- frames ----

    def _later(self, data: bytes, now: int) -> None:
        """Keep what cannot be worked on yet: a frame's beginning, or requests behind a parked one."""
        if self.closing:
            return
        more = self._more
        more += data
        server = self._server
        server.queued_bytes += len(data)
        if server.queued_bytes > server.limits.queued_max_request_bytes:
            self.close("too many bytes of requests are waiting (queued.max.request.bytes)")
        elif self.parked is not None or self._blocked:
            self._set_reading()
        elif len(more) >= self._need:
            whole = bytes(more)
            server.queued_bytes -= len(more)
            more.clear()
            self._need = 0
            self._run(whole, 0, now)

    def _run(self, data: bytes, position: int, now: int) -> None:
        """Work on the frames in `data` from `position` on, until its end, a parked request or a bad frame."""
        out: list[bytes] = []
        end = len(data)
        reason = ""
        heartbeats = 0
        while end - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = _head(data, position)
            if not MIN_FRAME_BYTES <= size <= self._max_frame:
                break
            stop = position + 4 + size
            if stop > end:
                break
            if api_key == HEARTBEAT_KEY and 0 <= version <= HEARTBEAT_MAX_VERSION:
                try:
                    beat = self._beats[version].get(data[position + HEAD_BYTES : stop])
                    if beat is None:
                        beat = self._server.beats.learn(data[position + 4 : stop], version)
                    heartbeat, group_id, generation, member_id, instance_id = beat
                    code = heartbeat(group_id, generation, member_id, instance_id, now)
                except MalformedError as error:
                    reason = str(error)
                    break
                except Exception:
                    self._server.log.exception("handler failed", **self._who("Heartbeat"))
                    reason = "Heartbeat failed"
                    break
                if code:
                    self._server.beats.unusual(group_id)
                out.append(HEARTBEAT_PACK[version](correlation_id, code))
                heartbeats += 1
                position = stop
                continue
            reason = self._request(data[position + 4 : stop], api_key, version, correlation_id, out, now)
            position = stop
            if reason or self.parked is not None or self._blocked:
                break
        if heartbeats:
            self._routes[HEARTBEAT_KEY].requests += heartbeats
        if out:
            self._flush(out)
        if reason:
            self.close(reason)
        elif self.parked is not None or self._blocked:
            self._need = 0
            if position < end:
                self._data, self._position = data, position
        elif position < end:
            self._keep(data[position:])

    def _keep(self, rest: bytes) -> None:
        """The beginning of a frame: check its size before waiting for the rest of it."""
        need = 4
        if len(rest) >= 4:
            size = int.from_bytes(rest[:4], "big", signed=True)
            if not MIN_FRAME_BYTES <= size <= self._max_frame:
                self.close(f"a frame of {size:,} bytes{guess_protocol(rest)}")
                return
            need = size + 4
        self._more[:0] = rest
        self._server.queued_bytes += len(rest)
        self._need = need

    def _go_on(self) -> None:
        """What made the connection wait is over: work on what came meanwhile."""
        now = self._now_ms()
        while not (self.closing or self._blocked) and self.parked is None:
            if self._data:
                data, position = self._data, self._position
                self._data = b""
                self._run(data, position, now)
            elif self._more and len(self._more) >= self._need:
                whole = bytes(self._more)
                self._server.queued_bytes -= len(whole)
                self._more.clear()
                self._need = 0
                self._run(whole, 0, now)
            else:
                break
        self._set_reading()

    def _set_reading(self) -> None:
        if self.closing or self._transport.is_closing():
            return
        waiting = len(self._more) + len(self._data) - self._position if self._data else len(self._more)
        full = self._blocked or (self.parked is not None and waiting >= self._max_input)
        if full and self._reading:
            self._reading = False
            self._transport.pause_reading()
        elif not full and not self._reading:
            self._reading = True
            self._transport.resume_reading()

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
        if api_key == COMMIT_KEY:
            try:
                taken = self._server.commits.take(self, self.host, frame, version, correlation_id, now)
            except Exception:
                self._server.log.exception("handler failed", **self._who(route.name))
                return f"{route.name} failed"
            if taken is not None:
                self.parked = taken
                return ""
        try:
            position = self._read_header(frame, version >= route.flexible)
            request, end = (route.decoders[version] or route.decoder(version))(frame, position)
        except MalformedError as error:
            return str(error)
        if api_key == COMMIT_KEY:
            self._server.commits.learn(frame, version, end, self.client_id, request)
        call = Call(self, api_key, version, correlation_id, self.client_id, self.host)
        try:
            response = route.handler(call, request)
        except Exception:
            call.done = True
            self._server.log.exception("handler failed", **self._who(route.name))
            return f"{route.name} failed"
        if response is None:
            if not call.done:
                self.parked = call
                return ""
            response, self._early = self._early, None
            if isinstance(response, _Refusal):
                return f"{route.name}: {response.reason}"
        else:
            call.done = True
        if response is NO_ANSWER:
            return ""
        return self._encode(route, call, response, out)

    def _read_header(self, frame: bytes, flexible: bool) -> int:
        """Take the client id; returns where the body begins. Raises `MalformedError`."""
        known = self._header
        if known and frame.startswith(known, 8):
            # Most clients send the same id each time, and no tagged fields: compared, not decoded.
            position = 8 + len(known)
            if not flexible:
                return position
            if frame[position : position + 1] == NO_TAGS:
                return position + 1
        header, position = decode_request_header(frame)
        self.client_id = header.client_id
        self._header = frame[8 : 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))]
        return position

    def _encode(self, route: Route, call: Call, response: Message, out: list[bytes]) -> str:
        """Adds the response's frame to `out`. Returns why the connection must be closed, or ""."""
        version = call.api_version
        try:
            head, body = (route.framers[version] or route.framer(version))(response, call.correlation_id)
        except Exception:
            self._server.log.exception("answer cannot be encoded", **self._who(route.name))
            return f"{route.name} failed"
        out.append(head)
        out.append(body)
        self._unsent += len(body) + ENTRY_BYTES
        if self._unsent > FLUSH_BYTES:
            self._flush(out)
        return ""

    def _flush(self, out: list[bytes]) -> None:
        self._unsent = 0
        self._transport.write(b"".join(out))
        out.clear()

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        if self.parked is not call:
            self._early = response
            return
        self.parked = None
        self.moved_ms = self._server.swept_ms
        if response is not NO_ANSWER:
            out: list[bytes] = []
            reason = self._encode(self._routes[call.api_key], call, response, out)
            if out:
                self._flush(out)
            if reason:
                self.close(reason)
                return
        if self._data or self._more or not self._reading:
            self._go_on()

    def call_finished(self, call: Call, frame: bytes) -> None:
        """See `Answerable`."""
        assert self.parked is call
        self.parked = None
        self.moved_ms = self._server.swept_ms
        self._transport.write(frame)
        if self._data or self._more or not self._reading:
            self._go_on()

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        if self.parked is not call:
            self._early = _Refusal(reason)
            return
        self.parked = None
        self.close(f"{self._routes[call.api_key].name}: {reason}")

    # ---- closing ----

    def _who(self, api: str = "") -> dict[str, str]:
        who = {"peer": self.peer}
        if self.client_id is not None:
            who["client_id"] = self.client_id
        if api:
            who["api"] = api
        return who

    def close(self, reason: str = "", *, quietly: bool = False) -> None:
        """Send what was answered, then close. One log line, unless `quietly`."""
        if self.closing:
            return
        self.closing = True
        if not quietly:
            self._server.log.warning("connection closed", reason=reason, **self._who())
        self._data = b""
        self._server.queued_bytes -= len(self._more)
        self._more = bytearray()
        call, self.parked = self.parked, None
        if call is not None:
            call.dropped()
        self._transport.close()

    def abort(self) -> None:
        """Close without waiting for the peer to take its answers."""
        self.closing = True
        self._transport.abort()
