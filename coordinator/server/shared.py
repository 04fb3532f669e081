"""State that all connections of a server share: its limits, caches, counts, and the memory they hold."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ringleader.coordinator.clock import Clock, monotonic_ms
from ringleader.coordinator.logs import Failures, Log, get_log
from ringleader.coordinator.measures import Histogram
from ringleader.coordinator.security.quotas import Windows
from ringleader.coordinator.server.arriving import Arriving
from ringleader.coordinator.server.heartbeats import HeartbeatCache
from ringleader.coordinator.server.strangers import Stranger, Strangers
from ringleader.coordinator.server.throttle import Throttle
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import API_VERSIONS_KEY
from ringleader.protocol.wire import INT32_MAX

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.security.listeners import Listener
    from ringleader.coordinator.security.quotas import ClientQuotas
    from ringleader.coordinator.server.commits import CommitCache
    from ringleader.coordinator.server.routes import Route
    from ringleader.coordinator.server.sasl import Sasl

API_KEYS = 100
"""Above those that are served."""

_REFUSAL = struct.Struct(">iihihhh").pack


class Holding(Stranger, Protocol):
    """A connection, as the limits see it."""

    listener: Listener
    session: Any
    """An `Answerable`."""
    held_bytes: int

    def abort(self, reason: str = "") -> None:
        """Close without waiting for the peer to accept its answers."""


class Handshaking(Protocol):
    """TLS handshakes under way."""

    def __len__(self) -> int: ...

    def from_address(self, address: str) -> int:
        """Their number from one address."""

    def through(self, connection: object) -> None:
        """A handshake has become a connection, which counts from now on."""


C = TypeVar("C", bound=Holding)


class Shared(Generic[C]):
    """See the module. `handshakes` is set by the server."""

    handshakes: Handshaking

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
        self.connections: set[C] = set()
        self.sasl: Sasl | None = None
        """The mechanisms by which clients authenticate; None: no listener has SASL."""
        self._quotas = quotas
        self.throttle: Throttle | None = None
        """Holds requests against quotas; None: there are none of users or client ids."""
        self.throttles = 0
        """How often a connection was muted so far."""
        windows = Windows(settings.quota_window_num, settings.quota_window_size_seconds * 1000)
        rate = settings.max_connection_creation_rate
        most = None if rate == INT32_MAX else rate
        self.arriving = Arriving(quotas, most, windows, now_ms, self.log)
        self.waits: dict[int, Histogram] | None = None
        """By API: how long requests waited that were not answered at once; None: it is not measured."""
        self.held_bytes = 0
        """Bytes of all connections: received, being worked on, or not read by the peer."""
        self.swept_ms = now_ms()
        """When idle connections were last looked for: a cheap clock for stamps that need no more."""
        self._per_address: Counter[str] = Counter()
        self.settings_of: dict[str, Settings] = {}
        """As each listener has them, by its name."""
        self.strangers = Strangers(settings.connections_unauthenticated_max_bytes, now_ms, self.log)
        """Peers that have not authenticated, on listeners with SASL or TLS."""
        self._empty = asyncio.Event()
        self._empty.set()
        if quotas is not None:
            quotas.observe(self._quotas_changed)
            self._quotas_changed()

    def measure(self) -> None:
        """Note from now on how long requests wait."""
        self.waits = {key: Histogram() for key in range(API_KEYS)}

    # ---- for connections ----

    def refusal(self, address: str) -> str:
        """The reason to refuse one more connection from this address, or "". A peer that has not
        authenticated makes room for it, if there is any."""
        if len(self.connections) + len(self.handshakes) >= self.limits.max_connections:
            return self._full("too many connections (max.connections)")
        at = self._per_address.get(address, 0) + self.handshakes.from_address(address)
        if at >= self.limits.max_connections_per_ip:
            return self._full("too many connections from this address (max.connections.per.ip)", address)
        return ""

    def _full(self, reason: str, address: str | None = None) -> str:
        return "" if self.strangers.make_room(reason, address) else reason

    def joined(self, connection: C) -> str:
        """A connection was made. Returns the reason to close it, or ""."""
        refusal = ""
        if connection.listener.security_protocol.tls:  # checked before its handshake
            self.handshakes.through(connection)
        else:
            refusal = self.refusal(connection.address)
        self.connections.add(connection)
        self._empty.clear()
        self._per_address[connection.address] += 1
        return refusal

    def left(self, connection: C) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        self.heartbeats.left(connection.session)
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
            connection.session.quotas_changed()

    def hold(self, more: int, connection: C, held: int) -> None:
        """A connection holds `more` bytes than before, `held` altogether. When all hold too much, those that
        hold most are closed: not the one that happens to exceed the bound, and first those that have not
        authenticated."""
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
