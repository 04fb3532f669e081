"""The listening sockets, their connections, and the limits that they share."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from ringleader.coordinator.clock import Clock, monotonic_ms
from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.listeners import Address, Listener
from ringleader.coordinator.security.tls import Tls
from ringleader.coordinator.server.commits import CommitCache
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.handshakes import Handshakes, TlsListener
from ringleader.coordinator.server.routes import build_routes
from ringleader.coordinator.server.services import Handler, TopicDirectory
from ringleader.coordinator.server.session import Session
from ringleader.coordinator.server.shared import Shared

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.security.quotas import ClientQuotas

SWEEPS_PER_IDLE_TIME = 8
"""Sweeps for idle connections within `connections.max.idle.ms`."""


class Server(Shared[Connection]):
    """Accepts Kafka clients on all listeners."""

    handshakes: Handshakes

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
        super().__init__(settings, runtime, now_ms=now_ms, log=log, authorizer=authorizer, quotas=quotas)
        self.listeners: tuple[Listener, ...] = ()
        """As bound."""
        self.handshakes = Handshakes(self)
        self.tls: dict[str, Tls] = {}
        """By listener that speaks it."""
        self._accepting: list[asyncio.Server | TlsListener] = []
        self._sweeper: asyncio.TimerHandle | None = None

    async def bind(self) -> tuple[Listener, ...]:
        """Bind the addresses, so that they are known; no connection is accepted before `start`. Raises
        OSError, which names the listener."""
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
            accepting = await loop.create_server(
                lambda: Session(self, bound).connection,
                host,
                port,
                backlog=self.limits.socket_listen_backlog_size,
                start_serving=False,
            )
        self._accepting.append(accepting)
        for listening in accepting.sockets:
            # A peer whose machine is gone sends nothing; while a request of it is parked, nothing else would
            # show it. Accepted sockets inherit the option.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = accepting.sockets[0].getsockname()
        bound = listener.bound(Address(str(name[0]), int(name[1])), socket.gethostname())
        if bound.address.is_everywhere and not listener.advertised.host:
            self.log.warning(
                "clients are given this machine's name as address; see advertised.listeners",
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

    def _sweep(self) -> None:
        """Close the idle ones. A client that waits for an answer does not idle."""
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
