"""A Kafka cluster as seen by a client: its brokers, its topics, who coordinates a group.

Connections are opened when needed and come back after they ended."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ringleader.clients.checks import check, check_numbers, wire_text
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.connection import Connection, open_connection
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.metadata import (
    ClusterMetadata,
    TopicMetadata,
    metadata_request,
    read_metadata,
)
from ringleader.clients.connection.requests import (
    GROUP,
    Request,
    find_coordinator,
    found_coordinator,
    in_parts,
)
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    ConnectionLostError,
    CoordinatorUnavailableError,
    RequestTimedOutError,
    RetriableError,
    UnsupportedVersionError,
    is_retriable,
)
from ringleader.clients.model import Node
from ringleader.protocol.errors import error_name

logger = logging.getLogger("ringleader.clients.connection")

DEFAULT_PORT = 9092
CLOSED = "the client was closed"
NEXT_ADDRESS_S = 1.0
"""When no broker in particular is asked, the next address is tried in parallel to one that takes longer."""

T = TypeVar("T")
_Key = tuple[str, int, str]
"""Host, port, purpose."""


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[tuple[str, int]]:
    """("a:1,b:2" or a list) -> [("a", 1), ("b", 2)]; [::1]:9092 for IPv6, 9092 when no port is given. Raises
    ValueError."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = []
    for part in (part.strip() for part in parts):
        host, colon, port = part.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        bare = host.removeprefix("[").removesuffix("]")
        if bare == host and ":" in host:
            raise ValueError(f"an IPv6 address needs brackets, [ADDRESS]:PORT: {part!r}")
        host = bare
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"not an address of the form HOST:PORT: {part!r}")
        addresses.append((host, int(port)))
    if not addresses:
        raise ValueError("no bootstrap address given")
    return addresses


@dataclass(slots=True)
class _Address:
    """Where brokers listen, and how it went so far."""

    backoff: Backoff
    not_before_s: float = 0.0
    failures: Failures = field(default_factory=Failures)


class Cluster:
    """Connections to a cluster, opened when needed, one for each broker and purpose.

    A broker answers the requests of one connection in their order: so a request that may be held back there
    (JoinGroup, Fetch) gets a connection of its own, named by `purpose`. A caller that stops waiting, because
    its time is over or it is cancelled, leaves connections as they are, as others use them, too. Belongs to
    the event loop it is used on. Use as an async context manager, or `close()` it.

    All that wait take `deadline_s`, a time of the event loop (`loop.time()`): it bounds back-off, connecting
    and the answer together. Default: the request timeout from now on.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str | None = "ringleader",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        chance: Callable[[], float] = random.random,
        name: str = "bootstrap",
        groups: Cluster | None = None,
    ) -> None:
        """`groups`: who coordinates groups, where that is another address than the brokers'; it is closed
        with this one. `name`: what errors call the bootstrap addresses."""
        check("bootstrap", bootstrap, str | Sequence[str])
        check("client_id", client_id, str | None)
        wire_text("client_id", client_id or "")
        check("tls", tls, ssl.SSLContext | None)
        check("sasl", sasl, Sasl | None)
        check_numbers(1, request_timeout_ms=request_timeout_ms, connect_timeout_ms=connect_timeout_ms)
        self.bootstrap = parse_bootstrap(bootstrap)
        self.request_timeout_ms = request_timeout_ms
        self.groups = self if groups is None else groups
        """The cluster to ask about groups."""
        self._name = name
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._backoff_ms = (reconnect_backoff_ms, reconnect_backoff_max_ms)
        self._tls = tls
        self._sasl = sasl
        self._chance = chance
        self.features: Mapping[str, int] = {}
        """The features of the broker that was connected to last, and the level of each (KIP-584)."""
        self._brokers: dict[int, Node] = {}
        self._metadata: ClusterMetadata | None = None
        self._connections: dict[_Key, Connection] = {}
        self._opening: dict[_Key, asyncio.Task[Connection]] = {}
        self._addresses: dict[tuple[str, int], _Address] = {}
        self._next = 0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of its connections: that of the first use."""

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Requests in flight fail. Raises RuntimeError in another event loop, unless
        that of the connections has ended, and they with it."""
        if self._loop is None or not self._loop.is_closed():
            self._check_loop()
        else:
            self._connections.clear()
            self._opening.clear()
        self._closed = True
        if self.groups is not self:
            await self.groups.close()
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close(CLOSED)
        # Let the transports tell the event loop that they are gone.
        await asyncio.sleep(0)

    def disconnect(self, node: Node, purpose: str = "") -> None:
        """Close the connection to that node, if there is one; the next request opens a new one."""
        connection = self._connections.pop((node.host, node.port, purpose), None)
        if connection is not None:
            connection.close("closed to get past a parked request")

    def _check_loop(self) -> None:
        """Raises RuntimeError: connections belong to one event loop, and in another no answer ever comes."""
        running = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = running
        elif self._loop is not running:
            what = "has ended" if self._loop.is_closed() else "is not the one that runs here"
            raise RuntimeError(
                f"client {self._client_id!r} was first used in an event loop that {what}: its connections "
                f"belong to that loop ({self._loop!r}). Make a new client for this one"
            )

    # ---- asking ----

    async def send(
        self,
        node: Node | None,
        request: Request,
        *,
        deadline_s: float | None = None,
        request_timeout_ms: int | None = None,
        purpose: str = "",
    ) -> Any:
        """Send to that node, or to any broker, and wait for the answer, connecting first if needed.

        A broker that does not answer within `request_timeout_ms` (default: the cluster's) of the sending is
        taken for dead, and its connection closed: give requests more that it may hold back. Raises
        ConnectionLostError, RequestTimedOutError, UnsupportedVersionError, AuthenticationError. Error codes
        inside the answer are the caller's.
        """
        self._check_loop()
        now_s = asyncio.get_running_loop().time
        timeout_s = (self.request_timeout_ms if request_timeout_ms is None else request_timeout_ms) / 1000
        if deadline_s is None:
            deadline_s = now_s() + timeout_s
        if node is None:
            connection = await self._any(purpose, deadline_s)
        else:
            connection = await self._connected([(node.host, node.port)], purpose, deadline_s)
        return await connection.ask(request, deadline_s - now_s(), request_timeout_s=timeout_s)

    def offers(self, node: Node, purpose: str, message: Any) -> bool:
        """Whether that node serves this request, as its open connection of that purpose knows; without one:
        no."""
        connection = self._connections.get((node.host, node.port, purpose))
        if connection is None or connection.ended.is_set():
            return False
        try:
            connection.version_for(Request(message, message))
        except UnsupportedVersionError:
            return False
        return True

    async def ready(self, timeout_s: float) -> None:
        """Wait until a broker answers, and one that coordinates groups, trying all bootstrap addresses again
        and again.

        Raises ConnectionLostError with all of them and what is the matter with each, when none answers in
        time; AuthenticationError, UnsupportedVersionError and BrokerError at once.
        """
        self._check_loop()
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        try:
            await retrying(deadline_s, Backoff(50, 500, self._chance), lambda: self._any("", deadline_s))
        except ConnectionLostError as error:
            text = f"none of the {self._name} servers could be reached within {timeout_s:g} s: {error}"
            raise ConnectionLostError(text) from None
        if self.groups is not self:
            await self.groups.ready(max(0.0, deadline_s - asyncio.get_running_loop().time()))

    async def _any(self, purpose: str, deadline_s: float) -> Connection:
        """The one with the fewest requests on their way: so one that hangs is asked last."""
        live = [one for key, one in self._connections.items() if key[2] == purpose and not one.ended.is_set()]
        if live:
            return min(live, key=lambda one: one.in_flight)
        known = [(node.host, node.port) for node in self._brokers.values()]
        addresses = list(dict.fromkeys(known + self.bootstrap))
        self._next = (self._next + 1) % len(addresses)
        return await self._connected(addresses[self._next :] + addresses[: self._next], purpose, deadline_s)

    async def _connected(
        self, addresses: Sequence[tuple[str, int]], purpose: str, deadline_s: float
    ) -> Connection:
        """The first that stands. Each gets a little time before the next one is tried in parallel."""
        now_s = asyncio.get_running_loop().time
        left_s = deadline_s - now_s()
        opening: dict[asyncio.Task[Connection], tuple[str, int]] = {}
        why: dict[tuple[str, int], str] = {}
        to_come = iter(addresses)
        while len(why) < len(addresses) and now_s() < deadline_s:
            wait_s = deadline_s - now_s()
            if (address := next(to_come, None)) is not None:
                key = (*address, purpose)
                connection = self._connections.get(key)
                if connection is not None and not connection.ended.is_set():
                    return connection
                opening[self._open(key)] = address
                wait_s = min(wait_s, NEXT_ADDRESS_S) if len(opening) + len(why) < len(addresses) else wait_s
            done, _ = await asyncio.wait(opening, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                address = opening.pop(task)
                if task.cancelled():
                    raise ConnectionLostError(CLOSED)
                try:
                    return task.result()
                except RetriableError as error:
                    why[address] = str(error)
        raise ConnectionLostError("; ".join(why.get(one) or self._trouble(one, left_s) for one in addresses))

    def _trouble(self, address: tuple[str, int], waited_s: float) -> str:
        """The newest failure of that address, or that there was no connection in that time."""
        known = self._addresses.get(address)
        if known is None or known.failures.last is None:
            return f"no connection to {_text(address)} within {round(max(0, waited_s), 2):g} s"
        return str(known.failures.last)

    def _open(self, key: _Key) -> asyncio.Task[Connection]:
        """The one opening of it that is under way. It goes on, no matter which callers wait for it."""
        if self._closed:
            raise ConnectionLostError(CLOSED)
        task = self._opening.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._opened(key), name=f"connect to {key}")
            self._opening[key] = task
            task.add_done_callback(lambda done: self._no_longer(key, done))
        return task

    def _no_longer(self, key: _Key, task: asyncio.Task[Connection]) -> None:
        del self._opening[key]
        if not task.cancelled():
            task.exception()  # perhaps no caller waits for it any more

    async def connect(self, node: Node, make: Callable[..., Connection]) -> Connection:
        """A connection to that node for the caller alone, who has to close it; `make` is called as
        `Connection` is. Raises what `open_connection` raises."""
        self._check_loop()
        if self._closed:
            raise ConnectionLostError(CLOSED)
        return await self._connect(node.host, node.port, make)

    def know(self, brokers: Mapping[int, Node]) -> None:
        """These brokers can be asked, too, when any broker will do."""
        self._brokers = dict(brokers)

    async def _opened(self, key: _Key) -> Connection:
        host, port, _ = key
        connection = self._connections[key] = await self._connect(host, port, Connection)
        return connection

    async def _connect(self, host: str, port: int, make: Callable[..., Connection]) -> Connection:
        address = self._addresses.setdefault((host, port), _Address(Backoff(*self._backoff_ms, self._chance)))
        wait_s = address.not_before_s - time.monotonic()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        try:
            connection = await open_connection(
                host,
                port,
                client_id=self._client_id,
                timeout_s=self._connect_timeout_s,
                tls=self._tls,
                sasl=self._sasl,
                request_timeout_s=self.request_timeout_ms / 1000,
                make=make,
            )
        except ClientError as error:
            address.not_before_s = time.monotonic() + address.backoff.next_ms() / 1000
            self._failed(address, error)
            raise
        self.features = connection.wire.features
        address.backoff.reset()
        address.not_before_s = 0.0
        if address.failures.works():
            logger.info("%s: connected to %s again", self._client_id, _text((host, port)))
        connection.when_overdue = lambda error: self._failed(address, error)
        return connection

    def _failed(self, address: _Address, error: ClientError) -> None:
        if (line := address.failures.failed(error, time.monotonic())) is not None:
            logger.warning("%s: %s", self._client_id, line)

    # ---- what the cluster knows ----

    async def metadata(
        self,
        topics: Iterable[str] | None = None,
        *,
        max_age_ms: int = 0,
        deadline_s: float | None = None,
        create: bool = False,
    ) -> ClusterMetadata:
        """Brokers and topics: all topics (None) or those named; missing ones carry an error code. `create`: a
        broker that makes topics by itself may do so.

        An answer not older than `max_age_ms` that covers the topics is used again.
        """
        wanted = None if topics is None else sorted(set(topics))
        cached = self._metadata
        if (
            cached is not None
            and wanted is not None
            and (time.monotonic() - cached.requested_s) * 1000 < max_age_ms
            and all(name in cached.topics for name in wanted)
        ):
            return cached

        topics_found: dict[str, TopicMetadata] = {}
        for part in [None] if wanted is None else in_parts(wanted):
            response = await self.send(None, metadata_request(part, create), deadline_s=deadline_s)
            found = read_metadata(response)
            topics_found |= found.topics
        self._metadata = replace(found, topics=topics_found)
        self._brokers = dict(found.brokers)
        return self._metadata

    async def coordinator(self, key: str, *, key_type: int = GROUP, deadline_s: float | None = None) -> Node:
        """The node that coordinates the group, or the transactions of the id, now. Raises
        CoordinatorUnavailableError while there is none."""
        answer = await self.send(None, find_coordinator(key, key_type), deadline_s=deadline_s)
        code, node = found_coordinator(answer)
        if node is not None:
            return node
        what = "group" if key_type == GROUP else "transactional id"
        text = f"{what} {key!r}: the cluster names no coordinator ({error_name(code)})"
        raise (CoordinatorUnavailableError if is_retriable(code) else BrokerError)(text, code)

    async def controller(self, *, deadline_s: float | None = None) -> Node | None:
        """The node for changes of topics; None: any will do."""
        metadata = await self.metadata([], max_age_ms=self.request_timeout_ms, deadline_s=deadline_s)
        return metadata.brokers.get(metadata.controller_id)


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


async def retrying(deadline_s: float, backoff: Backoff, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat an async call while it raises RetriableError, until that time of the event loop; then raise the
    last one. The call itself has to end by then. If that cut the last one short, its error names the one
    before, too, which tells more."""
    loop = asyncio.get_running_loop()
    before: RetriableError | None = None
    while True:
        try:
            return await attempt()
        except RetriableError as error:
            wait_s = backoff.next_ms() / 1000
            if loop.time() + wait_s >= deadline_s:
                if before is not None and isinstance(error, RequestTimedOutError):
                    raise RequestTimedOutError(f"{error}; before that: {before}") from error
                raise
            before = error
            await asyncio.sleep(wait_s)
