"""TLS before a connection begins: handshakes under way, bounded in time and number.

A handshake costs a thousand times as much as a heartbeat, and any peer that reaches the port may begin one.
So a peer that has sent no ClientHello costs a socket alone. From the ClientHello on it waits for its turn,
one address after the other; the number of turns at a time is bounded, and a turn is short: a slow peer goes
on with its handshake, but keeps no other peer waiting. Failures are logged, seldom enough that no peer fills
the log.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter, deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ringleader.coordinator.security.alerts import PEER, Peer
from ringleader.coordinator.security.listeners import Listener
from ringleader.coordinator.security.mapping import PrincipalMapper
from ringleader.coordinator.security.tls import Tls
from ringleader.coordinator.server.arriving import NO_DELAY, Delay
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.hello import hello
from ringleader.coordinator.server.session import Session
from ringleader.coordinator.server.strangers import CONNECTION_BYTES, HANDSHAKE_BYTES

if TYPE_CHECKING:
    from ringleader.coordinator.server.shared import Shared

SHUTDOWN_TIMEOUT_S = 5.0
"""Time for a peer to end TLS when a connection is closed."""
TURN_S = 0.25
"""The longest turn of a handshake: on most networks it is over in less. After it others have theirs while
this one waits for its peer, so that peers that never answer keep the next one waiting for a moment only."""
LOG_INTERVAL_S = 5.0
"""One line reports a failure; those within this time after it are counted in one more."""
ACCEPTED_PER_TURN = 100
ACCEPT_AGAIN_S = 1.0
"""After the process or the machine had no socket left."""

_PLAINTEXT = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL")


@dataclass(eq=False, slots=True)
class Arrival:
    """A peer whose handshake is not over."""

    client: Peer
    address: str
    peer: str
    listener: TlsListener
    task: asyncio.Task[None] | None = None
    connection: Connection | None = None
    """The connection that it becomes; from then on the socket is the event loop's."""
    turn: asyncio.TimerHandle | None = None
    """While it has its turn: when that ends at the latest."""

    def give_way(self) -> None:
        """See `Stranger`."""
        assert self.task is not None
        self.task.cancel()


class TlsListener:
    """Listening sockets whose peers begin with a handshake; in the form of `asyncio.Server`."""

    def __init__(
        self,
        handshakes: Handshakes,
        listener: Listener,
        tls: Tls,
        sockets: list[socket.socket],
    ) -> None:
        self._handshakes = handshakes
        self.listener = listener
        """Set to what is bound before it serves."""
        self.tls = tls
        self.mapper = PrincipalMapper(tls.settings.ssl_principal_mapping_rules)
        self.sockets = sockets

    def connection(self) -> Connection:
        """The connection of a peer whose handshake is about to begin."""
        return Session(self._handshakes.server, self.listener, self.mapper).connection

    async def start_serving(self) -> None:
        """Accept."""
        for listening in self.sockets:
            listening.listen(self._handshakes.server.limits.socket_listen_backlog_size)
            self._read(listening)

    def close(self) -> None:
        """Accept no more."""
        for listening in self.sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self.sockets = []

    def _read(self, listening: socket.socket) -> None:
        if listening in self.sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._handshakes.server.log.error("no connection can be accepted", reason=error.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_AGAIN_S, self._read, listening)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._handshakes.arrived(Arrival(Peer(accepted), str(peer[0]), f"{peer[0]}:{peer[1]}", self))


class Handshakes:
    """Handshakes of all listeners."""

    def __init__(self, server: Shared[Connection]) -> None:
        self.server = server
        self._most = server.limits.tls_max_handshakes
        self._timeout_s = server.limits.tls_handshake_timeout_ms / 1000
        self.failed = 0
        """How many so far."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._here: set[Arrival] = set()
        """Those that are not over."""
        self._becoming: dict[object, Arrival] = {}
        self._per_address: Counter[str] = Counter()
        self._busy = 0
        """How many have their turn."""
        self._waiting: dict[str, deque[tuple[Arrival, asyncio.Future[None]]]] = {}
        """For their turn: by address, the next one first."""
        self._unreported = 0
        self._quiet: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._here)

    def from_address(self, address: str) -> int:
        """How many there are from one address."""
        return self._per_address.get(address, 0)

    def stop(self) -> None:
        """End all."""
        for task in self._tasks:
            task.cancel()
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None

    async def stopped(self) -> None:
        """Returns when all are over."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- one after the other ----

    def arrived(self, arrival: Arrival) -> None:
        """A peer connected: begin, or wait."""
        refusal = self.server.refusal(arrival.address)
        if refusal:
            self._report(arrival, refusal)
            arrival.client.socket.close()
            return
        delay = self.server.arriving.delay(arrival.address)
        self._per_address[arrival.address] += 1
        work = self._work(arrival) if delay == NO_DELAY else self._later(arrival, delay)
        arrival.task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(arrival.task)
        self._here.add(arrival)
        arrival.task.add_done_callback(partial(self._ended, arrival))
        self.server.strangers.enter(arrival, CONNECTION_BYTES)

    def through(self, connection: object) -> None:
        """A handshake has become a connection: it counts as that alone from now on."""
        arrival = self._becoming.get(connection)
        if arrival is not None:
            self._leave(arrival)

    def _leave(self, arrival: Arrival) -> None:
        if arrival not in self._here:
            return
        self._here.discard(arrival)
        self._per_address[arrival.address] -= 1
        if not self._per_address[arrival.address]:
            del self._per_address[arrival.address]
        self.server.strangers.leave(arrival)
        self._over(arrival)

    def _ended(self, arrival: Arrival, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if arrival.connection is None:
            arrival.client.socket.close()
        else:
            del self._becoming[arrival.connection]
        self._leave(arrival)

    async def _later(self, arrival: Arrival, delay: Delay) -> None:
        """A peer that came too fast for a quota."""
        self.server.throttles += 1
        await asyncio.sleep(delay.ms / 1000)
        if not delay.refused:
            await self._work(arrival)

    async def _work(self, arrival: Arrival) -> None:
        late = "no ClientHello in time"
        try:
            async with asyncio.timeout(self._timeout_s):
                await hello(arrival.client.socket)
            late = "not over in time"
            await self._turn(arrival)
            async with asyncio.timeout(self._timeout_s):
                await self._shake(arrival)
        except TimeoutError:
            self._report(arrival, f"{late} (tls.handshake.timeout.ms)")
        except ssl.SSLError as error:
            self._report(arrival, _reason(error))
        except OSError:
            if arrival.client.spoke:
                self._report(
                    arrival, "the peer hung up in the middle of it; it may not trust the certificate"
                )
            else:
                self.failed += 1  # as quiet as on a plaintext port

    async def _turn(self, arrival: Arrival) -> None:
        """Wait until this one may begin."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(arrival.address, deque()).append((arrival, turn))
        self._next()
        await turn

    async def _shake(self, arrival: Arrival) -> None:
        come_in = arrival.listener
        connection = arrival.connection = come_in.connection()
        self._becoming[connection] = arrival
        PEER.set(arrival.client)
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: connection,
            arrival.client.socket,
            ssl=come_in.tls.context,
            ssl_handshake_timeout=2 * self._timeout_s,  # ours ends it
            ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )

    def _begin(self, arrival: Arrival) -> None:
        self._busy += 1
        arrival.turn = asyncio.get_running_loop().call_later(TURN_S, self._over, arrival)
        self.server.strangers.enter(arrival, HANDSHAKE_BYTES)

    def _over(self, arrival: Arrival) -> None:
        """Its turn, if it has it, is the next one's."""
        if arrival.turn is not None:
            arrival.turn.cancel()
            arrival.turn = None
            self._busy -= 1
            self._next()

    def _next(self) -> None:
        while self._waiting and self._busy < self._most:
            address = next(iter(self._waiting))
            arrivals = self._waiting.pop(address)
            arrival, turn = arrivals.popleft()
            if arrivals:
                self._waiting[address] = arrivals  # behind those of all others
            if not turn.done():
                self._begin(arrival)
                if not turn.done():  # it may have been closed for the memory it takes
                    turn.set_result(None)

    # ---- log ----

    def _report(self, arrival: Arrival, reason: str) -> None:
        self.failed += 1
        if self._quiet is not None:
            self._unreported += 1
            return
        name = arrival.listener.listener.name
        self.server.log.warning("TLS handshake failed", reason=reason, peer=arrival.peer, listener=name)
        self._quiet = asyncio.get_running_loop().call_later(LOG_INTERVAL_S, self._report_rest)

    def _report_rest(self) -> None:
        self._quiet = None
        if self._unreported:
            self.server.log.warning("more TLS handshakes failed", count=self._unreported)
            self._unreported = 0
            self._quiet = asyncio.get_running_loop().call_later(LOG_INTERVAL_S, self._report_rest)


def _reason(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in _PLAINTEXT:
        return "plaintext on a TLS port"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    return reason.replace("_", " ").lower() or str(error)
