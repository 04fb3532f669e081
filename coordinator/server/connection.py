"""The bytes of one connection: frames in, answers out, in order.

All whole frames of one read are worked on in one go, and their answers leave in one write. A request that is
not answered at once parks the connection: what follows waits, and reading goes on up to a bound, so that a
peer that closes is noticed. A size from the wire is checked before anything of that size is kept; a peer that
sends a frame that cannot be read, or one that is too long, is cut off with one log line. A read with much in
it is worked on in slices. The meaning of frames is the session's: see `session`.
"""

from __future__ import annotations

import asyncio
import struct
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from ringleader.coordinator.groups.states import NOT_YET
from ringleader.coordinator.run_queue import TURN_S
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.heartbeats import API_KEY as HEARTBEAT_KEY
from ringleader.coordinator.server.heartbeats import FIRST_STAY, KINDS, STAY_KEY, kind_of, refused
from ringleader.coordinator.server.peers import guess_protocol, java_address
from ringleader.coordinator.server.phases import Phase
from ringleader.coordinator.server.strangers import HANDSHAKE_BYTES, LONG_READ_BYTES
from ringleader.protocol.errors import MalformedError

if TYPE_CHECKING:
    from ringleader.coordinator.run_queue import Slices
    from ringleader.coordinator.security.listeners import Listener
    from ringleader.coordinator.server.above import Above, Authentication
    from ringleader.coordinator.server.shared import Shared
    from ringleader.coordinator.server.throttle import Account
    from ringleader.protocol.messages import ConsumerGroupHeartbeatResponse

HEAD_BYTES = 12
"""Size, API key, version, correlation id: the least that a frame has, with its size."""

MIN_FRAME_BYTES = 8
"""The least that the size field may say: API key, version, correlation id."""

SHORT_FRAME_BYTES = 65_536
"""A frame of this size is waited for, of any API and from any peer."""

SHORT_READ_BYTES = 16_384
"""A peer that logs in sends less at a time, and keeps TLS's buffers small."""

FLUSH_BYTES = 262_144
"""Answers are handed to the transport at this size, so that a peer that does not read is noticed in time."""

TLS_UNREAD_BYTES = 65_536
"""Bytes that TLS holds, roughly, while a connection is not read from. Half of it is more than a record."""

UNWEIGHED_BYTES = 1_024
"""Not counted in what a connection holds: a parked request of at most this many bytes, and as many that wait
behind it. To count them costs more than they hold."""

ENTRY_BYTES = 64
"""An answer counts for this besides its body."""

PARKED: Final = 1
"""Later requests wait for the answer to one."""
BLOCKED: Final = 2
"""The peer does not read its answers."""
RESTING: Final = 4
"""Other connections have their turn, or a step of the login is under way."""
MUTED: Final = 8
"""A throttle is not over: no byte is read."""
CLOSING: Final = 16
STOPS: Final = 31
"""Any of these: no frame is worked on."""
METERED: Final = 32
"""A quota counts, or may count: the use of it is recorded."""
GUARDED: Final = 64
"""The session is asked about a request first, for now or from some time on."""

FOR_EVER: Final = 2**63
"""In milliseconds, later than any clock."""

read_head = struct.Struct(">ihhi").unpack_from
"""Size, API key, version, correlation id of the frame at an offset."""
read_kind = struct.Struct(">ii").unpack_from
"""The size, and API key and version as one number; see `kind_of`."""


class Connection(asyncio.Protocol):
    """See the module. A session makes one for each accepted socket."""

    __slots__ = (
        "_aborted",
        "_account",
        "_beats",
        "_by_partition",
        "_data",
        "_known",
        "_more",
        "_need",
        "_now_ms",
        "_open_until_ms",
        "_position",
        "_reading",
        "_routes",
        "_server",
        "_short_frame",
        "_state",
        "_stays",
        "_transport",
        "_untaken",
        "address",
        "held_bytes",
        "host",
        "listener",
        "making",
        "max_input",
        "moved_ms",
        "parked",
        "peer",
        "session",
        "unsent",
        "working",
    )

    def __init__(self, server: Shared[Connection], listener: Listener, session: Above) -> None:
        self._server = server
        self.listener = listener
        self.session = session
        self._beats = server.heartbeats
        self._known = server.heartbeats.known
        self._by_partition = server.runtime.heartbeats
        self._stays = server.runtime.stays
        self._routes = [server.routes[key] for key in (HEARTBEAT_KEY, STAY_KEY) if key in server.routes]
        self._now_ms = server.now_ms
        self._short_frame = min(SHORT_FRAME_BYTES, server.limits.socket_request_max_bytes)
        self.max_input = server.limits.connection_input_max_bytes
        """The bytes that may wait while a request is worked on."""
        self._transport: asyncio.Transport
        self.peer = "?"
        """Address and port, for log lines."""
        self.host = ""
        """Address as `Call.client_host`."""
        self.address = ""
        """Address alone, for the limit per address."""
        self.held_bytes = 0
        """The bytes that the server counts for this connection against `queued.max.request.bytes`."""
        self.working = 0
        """Of these, for the parked request."""
        self.making = 0
        """Of these, for the answer to it, as far as it is made."""
        self._untaken = 0
        """Of these, answers that the peer does not read."""
        self.moved_ms = server.now_ms()
        """When bytes last moved on this connection."""
        self._open_until_ms = 0
        """Until when any request may be handled without asking the session."""
        self.parked: Call | None = None
        """The request that later ones wait for."""
        self._account: Account | None = None
        self._state = GUARDED
        """The bits above. While there are none, and nothing is kept, heartbeats take a short way."""
        self._aborted = False
        """Answers that its peer has not read are not kept."""
        self._reading = True
        self._data = b""
        """While stopped: the read that was being worked on, if there is more in it."""
        self._position = 0
        """In `_data`: where the next frame begins."""
        self._more = bytearray()
        """The bytes that came after that; or, when not stopped, the beginning of a frame."""
        self._need = 0
        """When not stopped: bytes in `_more` from which on it is worth looking again."""
        self.unsent = 0
        """Bytes of answers that were not handed to the transport yet, roughly."""

    @property
    def closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return bool(self._state & CLOSING)

    @property
    def is_muted(self) -> bool:
        """Whether it is throttled."""
        return bool(self._state & MUTED)

    @property
    def account(self) -> Account | None:
        """Its use of quotas, while one counts for it, or may count for a connection without a request yet."""
        return self._account

    @account.setter
    def account(self, account: Account | None) -> None:
        self._account = account
        self._state = self._state & ~METERED if account is None else self._state | METERED

    def open_until(self, until_ms: int) -> None:
        """Until when any request may be handled without asking the session: 0 before authentication."""
        self._open_until_ms = until_ms
        self._state = self._state & ~GUARDED if until_ms == FOR_EVER else self._state | GUARDED

    # ---- asyncio.Protocol ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer connected; over TLS, after the handshake."""
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
        else:
            self.session.began(self._transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        now = self.moved_ms = self._now_ms()
        if self._state or self._more:
            self._received(data, now)
        else:
            self._heartbeats(data, 0, None, now)

    def _received(self, data: bytes, now: int) -> None:
        account = self._account
        if account is not None:
            account.enter()
        if self._state & STOPS or self._more:
            self._later(data, now)
        else:
            self._run(data, 0, [], now)
        if account is not None:
            account.leave()

    def eof_received(self) -> bool:
        """The peer sends no more: what it asked was answered or cannot be any more (as in Kafka, a peer that
        closes its half is gone). Closes after the answers were read."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone, from either side."""
        now = self._now_ms()
        queued = b""
        if not self.closing and now <= self._open_until_ms:
            queued = self._data[self._position :] + bytes(self._more)
        self._untaken = 0
        self._end()
        self._server.left(self)
        if queued:
            self.session.left_behind(queued, now)
            self._end()
        self.session.lost()
        # The session has this connection: without a circle both go at once, not when the collector comes.
        self._aborted = True
        self.account = None
        del self.session

    def pause_writing(self) -> None:
        """The peer does not read its answers: as in Kafka, it is not read from until it does."""
        self._state |= BLOCKED
        self._written()
        self._set_reading()

    def resume_writing(self) -> None:
        """The peer reads its answers again."""
        self._state &= ~BLOCKED
        self._untaken = 0
        self.weigh()
        self.moved_ms = self._now_ms()
        self.go_on()

    # ---- frames ----

    def _heartbeats(self, data: bytes, position: int, out: list[bytes] | None, now: int) -> int:
        """Answer the heartbeats at `position` that were seen before: most members send one of them, and
        nothing else, most of the time. Adds the answers to `out`, and returns where they end; None for `out`:
        sends them, and works on what follows."""
        end, answers = len(data), out
        while end - position >= HEAD_BYTES:
            size, kind = read_kind(data, position)
            stop = position + 4 + size
            if kind not in KINDS or stop > end:
                break
            heartbeat = self._known.get(data[position + HEAD_BYTES : stop])
            if heartbeat is None:
                break
            seen, before, behind, partition, group_id, generation, member_id, more = heartbeat
            if seen != kind:
                break
            is_stay = kind >= FIRST_STAY
            try:
                ask = self._stays[partition] if is_stay else self._by_partition[partition]
                code = ask(group_id, generation, member_id, more, now)
            except Exception:
                code = self._server.runtime.heartbeat_failed(partition, group_id)
            if code:
                if code == NOT_YET:
                    break
                self._server.runtime.touch(partition)
            self._routes[is_stay].requests += 1
            answer = before + data[position + 8 : position + HEAD_BYTES] + behind
            if code:
                answer = refused(kind, read_head(data, position)[-1], code)
            if answers is None:
                if stop == end:
                    self._transport.write(answer)
                    return end
                answers = []
            answers.append(answer)
            position = stop
        if out is None:
            self._run(data, position, answers or [], now, looked_at=position)
        return position

    def _run(self, data: bytes, position: int, out: list[bytes], now: int, *, looked_at: int = -1) -> None:
        """Work on the frames in `data` from `position` on, until its end, a stop or a bad frame; or until it
        takes too long. `out`: answers to the frames before. `looked_at`: where there is no heartbeat that
        `_heartbeats` answers."""
        if self.session.login is not None:
            self._run_login(self.session.login, data, position, now)
            return
        end = len(data)
        stop_s = 0.0
        reason = ""
        short = self._short_frame
        session = self.session
        while end - position >= HEAD_BYTES:
            size, api_key, version, correlation_id = read_head(data, position)
            if now > self._open_until_ms and (reason := session.refusal(api_key)):
                break
            stop = position + 4 + size
            if stop > end or size < MIN_FRAME_BYTES or (size > short and size > session.limit(api_key)):
                break
            frame = data[position + 4 : stop]
            account = self.account
            if now <= self._open_until_ms and kind_of(api_key, version) in KINDS:
                if position != looked_at and (account is None or not account.over):
                    after = self._heartbeats(data, position, out, now)
                    if after > position:
                        position = after
                        continue
                if api_key == HEARTBEAT_KEY:
                    try:
                        self._known = self._beats.learn(session, self.host, frame, version)
                    except MalformedError as error:
                        reason = str(error)
                        break
            if account is not None and account.fresh and session.rests_first(frame, api_key, version):
                break
            reason = session.request(frame, api_key, version, correlation_id, out, now)
            position = stop
            if reason or self._state & STOPS:
                break
            if position >= end:
                break
            now_s = perf_counter()
            stop_s = stop_s or now_s + TURN_S
            if now_s > stop_s:
                self._state |= RESTING
                self._server.run_queue.add(self._rest())
                break
        if out:
            self.flush(out)
        if self.closing:
            return
        if reason:
            self.close(reason)
        elif self._state & STOPS:
            self._need = 0
            if position < end:
                self._data, self._position = data, position
        elif position < end:
            self._keep(data[position:])
            self.weigh()
        self._weigh_waiting()

    def _run_login(self, login: Authentication, data: bytes, position: int, now: int) -> None:
        """The same while the client authenticates: one frame after the other, each of them short."""
        end = len(data)
        if end > SHORT_READ_BYTES:
            self._read_long()
        need = 4
        while end - position >= 4 and not self._state & STOPS:
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            if not 0 <= size <= login.most_bytes:
                text = guess_protocol(data[position:]) or f", at most {login.most_bytes:,} are taken here"
                login.fail(f"a frame of {size:,} bytes before authentication{text}")
                return
            stop = position + 4 + size
            if stop > end:
                need = 4 + size
                break
            login.take(data[position + 4 : stop])
            position = stop
            if self.session.login is None:
                if position < end and not self.closing:
                    self._run(data, position, [], now)
                return
        if self.closing or self.session.phase is Phase.FAILED or position >= end:
            return
        if self._state & STOPS:
            self._data, self._position = data, position
        else:
            self._more[:0] = data[position:]
            self._need = need
            self.weigh()
        self._weigh_waiting()

    def _rest(self) -> Slices:
        """Go on with what came in one read when others had their turn."""
        yield
        self.wake()
        self.go_on()

    def _keep(self, rest: bytes) -> None:
        """The beginning of a frame: check its size before waiting for the rest of it."""
        self._need = HEAD_BYTES
        if len(rest) >= 4:
            size = int.from_bytes(rest[:4], "big", signed=True)
            limit = self._server.limits.socket_request_max_bytes
            if len(rest) >= HEAD_BYTES:
                limit = self.session.limit(int.from_bytes(rest[4:6], "big", signed=True))
                self._need = size + 4
            if not MIN_FRAME_BYTES <= size <= limit:
                text = f", at most {limit:,} are taken here" if size > limit else ""
                self.close(f"a frame of {size:,} bytes{guess_protocol(rest) or text}")
                return
        self._more[:0] = rest

    def _later(self, data: bytes, now: int) -> None:
        """Keep what cannot be worked on yet: a frame's beginning, or requests behind a parked one."""
        if self.closing:
            return
        if self.session.phase is Phase.FAILED:  # a silent peer is read from: it may hang up
            self.max_input = 0
            self._set_reading()
            self._read_long()  # by TLS, which is not asked, until its buffers are full
            return
        if len(data) > SHORT_READ_BYTES:
            self._read_long()
        self._more += data
        if self._state & STOPS:
            self._weigh_waiting()
            self._set_reading()
        elif len(self._more) >= self._need:
            self._run_more(now)
        else:
            self.weigh()

    def _run_more(self, now: int) -> None:
        whole = bytes(self._more)
        self._more.clear()
        self._need = 0
        self._run(whole, 0, [], now)

    def _read_long(self) -> None:
        """A long read came, and TLS keeps buffers of its size: counted while the peer is a stranger."""
        if self.listener.security_protocol.tls and self._server.strangers.has(self):
            self._server.strangers.enter(self, HANDSHAKE_BYTES + LONG_READ_BYTES)

    def go_on(self) -> None:
        """A stop is over: work on what came meanwhile, unless there is another."""
        account = self.account
        if account is not None:
            account.enter()
        now = self._now_ms()
        while not self._state & STOPS:
            if self._data:
                data, position = self._data, self._position
                self._data = b""
                self._run(data, position, [], now)
            elif self._more and len(self._more) >= self._need:
                self._run_more(now)
            else:
                break
        if self.held_bytes:
            self.weigh()
        self._set_reading()
        if account is not None:
            account.leave()

    def learn_stay(self, call: Call, frame: bytes, response: ConsumerGroupHeartbeatResponse) -> None:
        """A heartbeat of the consumer protocol was answered at once: perhaps the next one is the same."""
        self._known = self._beats.learn_stay(call, frame, response) or self._known

    # ---- stops ----

    def park(self, call: Call) -> None:
        """Later requests wait for the answer to this one."""
        self.parked = call
        self._state |= PARKED

    def unpark(self) -> None:
        """The parked request is answered, or will not be."""
        self.parked = None
        self._state &= ~PARKED
        self.working = self.making = 0
        self.moved_ms = self._server.swept_ms

    def answered(self) -> None:
        """The answer to the parked request was written: go on, if there is anything to go on with."""
        if self._data or self._more or self.held_bytes or not self._reading:
            self.go_on()

    def rest(self, working: int = 0) -> None:
        """Work on no frame until `wake`. `working`: memory for the work that is done meanwhile."""
        self._state |= RESTING
        self.working = working
        self.weigh()

    def wake(self) -> None:
        """The rest is over; see `go_on`."""
        self._state &= ~RESTING
        if self.working:
            self.working = 0
            self.weigh()

    def mute(self, muted: bool) -> None:
        """Neither read nor work on anything; or do again."""
        if muted:
            self._state |= MUTED
            self._set_reading()
        else:
            self._state &= ~MUTED
            self.moved_ms = self._now_ms()
            self.go_on()

    def drop_input(self) -> None:
        """Forget the bytes that wait to be worked on."""
        self._data, self._more = b"", bytearray()

    def _set_reading(self) -> None:
        if self.closing or self._transport.is_closing():
            return
        waiting = len(self._more) + len(self._data) - self._position if self._data else len(self._more)
        stops = self._state
        full = stops & (BLOCKED | MUTED) or (stops & (PARKED | RESTING) and waiting >= self.max_input)
        if full and self._reading:
            self._reading = False
            self._transport.pause_reading()
        elif not full and not self._reading:
            self._reading = True
            self._transport.resume_reading()

    # ---- memory ----

    def _weigh_waiting(self) -> None:
        """Weigh if there is enough of it."""
        if self.held_bytes or self.working or len(self._more) + len(self._data) > UNWEIGHED_BYTES:
            self.weigh()

    def weigh(self) -> None:
        """Tell the server what this connection holds. Closes one, perhaps this, if all hold too much."""
        held = len(self._more) + len(self._data) + self.working + self.making + self._untaken
        self._server.hold(held - self.held_bytes, self, held)

    # ---- answers ----

    def flush(self, out: list[bytes]) -> None:
        """Send these answers."""
        self.unsent = 0
        self._transport.write(b"".join(out))
        out.clear()
        self._written()

    def write(self, *pieces: bytes | memoryview) -> None:
        """Send one answer in pieces. They are not joined, which would take as much memory again."""
        for piece in pieces:
            self._transport.write(piece)
        if self._state & BLOCKED:
            self._written()

    def _written(self) -> None:
        if self._state & BLOCKED and not self._aborted:
            self._untaken = self._transport.get_write_buffer_size()
            self.weigh()

    # ---- closing ----

    def give_way(self) -> None:
        """See `Stranger`."""
        self.abort()

    def close(self, reason: str = "", *, quietly: bool = False) -> None:
        """Send what was answered, then close. One log line, unless `quietly`."""
        if self.closing:
            return
        if not quietly:
            self._server.log.warning("connection closed", reason=reason, **self.session.log_fields())
        self._end()
        self._transport.close()

    def abort(self, reason: str = "") -> None:
        """Close without waiting for the peer to read its answers. One log line if there is a `reason`."""
        if self._aborted:
            return
        self._aborted = True
        if reason and not self.closing:
            self._server.log.warning("connection closed", reason=reason, **self.session.log_fields())
        self._untaken = 0
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        """Let go of everything but the answers that the peer may still read."""
        self._state |= CLOSING
        self.session.ended()
        self.drop_input()
        call = self.parked
        self.unpark()
        self.weigh()
        if call is not None:
            call.dropped()
