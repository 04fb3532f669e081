"""The listening sockets, their connections, and the limits that they share."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from typing import TYPE_CHECKING

from ringleader.coordinator.clock import Clock, monotonic_ms
from ringleader.coordinator.logs import Failures, Log, get_log
from ringleader.coordinator.measures import Spread
from ringleader.coordinator.security.listeners import Address, Listener
from ringleader.coordinator.security.quotas import Windows
from ringleader.coordinator.security.tls import Tls
from ringleader.coordinator.server.arriving import Arriving
from ringleader.coordinator.server.commits import CommitCache
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.handlers import Handler, TopicDirectory
from ringleader.coordinator.server.handshakes import Handshakes, TlsListener
from ringleader.coordinator.server.heartbeats import HeartbeatCache
from ringleader.coordinator.server.routes import Route, build_routes
from ringleader.coordinator.server.sasl import Sasl, SaslConnection
from ringleader.coordinator.server.strangers import Strangers
from ringleader.coordinator.server.throttle import Throttle
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import API_VERSIONS_KEY
from ringleader.protocol.wire import INT32_MAX

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.security.quotas import ClientQuotas

SWEEPS_PER_IDLE_TIME = 8
"""How often within `connections.max.idle.ms` idle connections are looked for."""

API_KEYS = 100
"""Those that we serve are below it."""

_REFUSAL = struct.Struct(">iihihhh").pack


class Server:
    """Accepts Kafka clients on all listeners."""

    def __init__(
        self,
        settings: Settings,
        runtime: GroupRuntime,
        *,
        now_ms: Clock = monotonic_ms,
        log: Log | None = None,
        authorizer: Authority,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self.limits = settings
        self.now_ms = now_ms
        self.log = log or get_log()
        self.failures = Failures(self.log, now_ms)
        self.runtime = runtime
        self.heartbeats = HeartbeatCache(runtime, authorizer)
        self._authorizer = authorizer
        self.commits: CommitCache
        self.run_queue = runtime.run_queue
        self.routes: dict[int, Route] = {}
        self.connections: set[Connection] = set()
        self.sasl: Sasl | None = None
        """How clients prove who they are; None: no listener asks them."""
        self._quotas = quotas
        self.throttle: Throttle | None = None
        """Holds requests against quotas; None: there are none of users or client ids."""
        self.throttles = 0
        """How often a connection was muted so far."""
        windows = Windows(settings.quota_window_num, settings.quota_window_size_seconds * 1000)
        rate = settings.max_connection_creation_rate
        most = None if rate == INT32_MAX else rate
        self.arriving = Arriving(quotas, most, windows, now_ms, self.log)
        self.waits: dict[int, Spread] | None = None
        """By API: how long requests waited that were not answered at once; None: nobody wants to know."""
        self.held_bytes = 0
        """What all connections hold: what has arrived, is being worked on, or is not taken by the peer."""
        self.swept_ms = now_ms()
        """When idle connections were last looked for: a cheap clock for stamps that need no more."""
        self._per_address: Counter[str] = Counter()
        self.listeners: tuple[Listener, ...] = ()
        """As bound."""
        self.settings_of: dict[str, Settings] = {}
        """As each listener has them, by its name."""
        self.strangers = Strangers(settings.connections_unauthenticated_max_bytes, now_ms, self.log)
        """Peers that have not proved who they are, on listeners that ask for it."""
        self.handshakes = Handshakes(self)
        self.tls: dict[str, Tls] = {}
        """By listener that speaks it."""
        self._accepting: list[asyncio.Server | TlsListener] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        if quotas is not None:
            quotas.observe(self._quotas_changed)
            self._quotas_changed()

    async def bind(self) -> tuple[Listener, ...]:
        """Take the addresses, so that it is known where clients will come; nobody is let in before `start`.
        Raises OSError, which names the listener."""
        bound = []
        for listener in self.limits.served():
            try:
                bound.append(await self._bind(listener))
            except (OSError, ValueError) as error:
                number, text = getattr(error, "errno", None), getattr(error, "strerror", None) or error
                raise OSError(number, f"{listener}: {text}") from error
        self.listeners = tuple(bound)
        return self.listeners

    async def _bind(self, listener: Listener) -> Listener:
        loop = asyncio.get_running_loop()
        host, port = listener.address
        if port == 0:
            # A name may stand for several addresses, and each would get a free port of its own.
            [(*_, address), *_] = await loop.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
            host = str(address[0])
        bound = listener
        accepting: asyncio.Server | TlsListener
        settings = self.settings_of[listener.name] = self.limits.for_listener(listener)
        if listener.security_protocol.tls:
            tls = self.tls[listener.name] = Tls(settings)
            accepting = TlsListener(self.handshakes, listener, tls, await _sockets(host, port))
        else:
            kind = SaslConnection if listener.security_protocol.sasl else Connection
            accepting = await loop.create_server(
                lambda: kind(self, bound),
                host,
                port,
                backlog=self.limits.socket_listen_backlog_size,
                start_serving=False,
            )
        self._accepting.append(accepting)
        for listening in accepting.sockets:
            # A peer whose machine is gone says nothing; while it is parked, nothing else would tell. What is
            # accepted inherits it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = accepting.sockets[0].getsockname()
        bound = listener.bound(Address(str(name[0]), int(name[1])), socket.gethostname())
        if bound.address.is_everywhere and not listener.advertised.host:
            self.log.warning(
                "clients are told to come to this machine's name; see advertised.listeners",
                host=bound.advertised.host,
                listener=bound.name,
            )
        if isinstance(accepting, TlsListener):
            accepting.listener = bound
        return bound

    async def start(self, handlers: dict[int, Handler], topics: TopicDirectory) -> tuple[Listener, ...]:
        """Listen; returns the listeners as bound. Raises OSError."""
        self.commits = CommitCache(self.runtime, topics, self._authorizer)
        self.routes = build_routes(handlers, self.limits)
        if not self.listeners:
            await self.bind()
        for accepting in self._accepting:
            await accepting.start_serving()
        self._sweep()
        return self.listeners

    def stop_accepting(self) -> None:
        """No new connections from here on."""
        for accepting in self._accepting:
            accepting.close()
        self._accepting.clear()
        self.handshakes.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    async def close_connections(self, grace_s: float) -> None:
        """Close all; those that have not taken their last answers after `grace_s` are cut off."""
        await self.handshakes.stopped()
        for connection in list(self.connections):
            connection.close(quietly=True)
        try:
            await asyncio.wait_for(self._empty.wait(), grace_s)
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._empty.wait()
        if self.sasl is not None:
            self.sasl.close()

    def measure(self) -> None:
        """Note from now on how long requests wait."""
        self.waits = {key: Spread() for key in range(API_KEYS)}

    def reload_certificates(self, *, unchanged: bool = False) -> None:
        """New handshakes get what the files hold now; connections stay as they are. A file that cannot be
        used changes nothing, but for a line in the log. `unchanged`: also where no file has changed. Reads
        files."""
        for name, tls in self.tls.items():
            if not unchanged and not tls.changed():
                continue
            try:
                tls.reload()
            except ValueError as error:
                self.log.error(
                    "certificates cannot be read; those from before stay", listener=name, reason=str(error)
                )
            else:
                self.log.info("certificates read again", listener=name)

    # ---- what connections ask ----

    def refusal(self, address: str) -> str:
        """Why one connection more from this address is too many, or "". A peer that has not authenticated
        makes room for it, if there is any."""
        if len(self.connections) + len(self.handshakes) >= self.limits.max_connections:
            return self._full("too many connections (max.connections)")
        at = self._per_address.get(address, 0) + self.handshakes.from_address(address)
        if at >= self.limits.max_connections_per_ip:
            return self._full("too many connections from this address (max.connections.per.ip)", address)
        return ""

    def _full(self, reason: str, address: str | None = None) -> str:
        return "" if self.strangers.make_room(reason, address) else reason

    def joined(self, connection: Connection) -> str:
        """A connection was made. Returns why it must go again, or ""."""
        refusal = ""
        if connection.listener.security_protocol.tls:  # which was asked before its handshake
            self.handshakes.through(connection)
        else:
            refusal = self.refusal(connection.address)
        self.connections.add(connection)
        self._empty.clear()
        self._per_address[connection.address] += 1
        return refusal

    def left(self, connection: Connection) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        self.heartbeats.left(connection)
        self.strangers.leave(connection)
        self._per_address[connection.address] -= 1
        if not self._per_address[connection.address]:
            del self._per_address[connection.address]
        if not self.connections:
            self._empty.set()

    def _quotas_changed(self) -> None:
        assert self._quotas is not None
        if not self._quotas.of_clients:
            self.throttle = None
        elif self.throttle is None:
            self.throttle = Throttle(self._quotas, self.now_ms)
        for connection in self.connections:
            connection.quotas_changed()

    def hold(self, more: int, connection: Connection, held: int) -> None:
        """A connection holds `more` bytes than before, `held` altogether. When all hold too much, those that
        hold most are closed: not who happens to go above the bound, and first those that have not logged
        in."""
        self.held_bytes += more
        connection.held_bytes = held
        self.strangers.weigh(connection, held)
        limit = self.limits.queued_max_request_bytes
        while more > 0 and self.held_bytes > limit:
            strangers = [one for one in self.connections if one.held_bytes and self.strangers.has(one)]
            most = max(strangers or self.connections, key=lambda one: one.held_bytes)
            most.abort(
                f"holds {most.held_bytes:,} bytes, the most of {self.held_bytes:,} "
                f"(queued.max.request.bytes is {limit:,})"
            )

    def versions_refusal(self, correlation_id: int) -> bytes:
        """The whole response frame to ApiVersions of an unknown version: v0 in every case, with the range of
        ApiVersions alone, so that the client can choose (KIP-511)."""
        route = self.routes[API_VERSIONS_KEY]
        return _REFUSAL(
            16, correlation_id, ErrorCode.UNSUPPORTED_VERSION, 1, API_VERSIONS_KEY, route.low, route.high
        )

    def _sweep(self) -> None:
        """Close the idle ones. Who waits for an answer of ours does not idle."""
        idle_ms = self.limits.connections_max_idle_ms
        now = self.swept_ms = self.now_ms()
        for connection in list(self.connections):
            if now - connection.moved_ms < idle_ms:
                continue
            if connection.closing:
                connection.abort()
            elif connection.parked is None:
                self.log.info(
                    "idle connection closed", peer=connection.peer, idle_ms=now - connection.moved_ms
                )
                connection.close(quietly=True)
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(idle_ms / SWEEPS_PER_IDLE_TIME / 1000, self._sweep)


async def _sockets(host: str, port: int) -> list[socket.socket]:
    """Bound to all addresses of `host`. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets
