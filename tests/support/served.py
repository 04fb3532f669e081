"""The server room by itself: sockets, group machine and handlers of groups and offsets, in this process.

Topics are a table, the store is memory: a test can fail it, hold it back, or cut its power.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import struct
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from ringleader.coordinator.config import Settings
from ringleader.coordinator.nodes import Nodes
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers import groups, offsets, versions
from ringleader.coordinator.server.sasl import Sasl
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.storage.base import Storage
from ringleader.protocol.frames import decode_response, encode_request, response_class
from ringleader.protocol.schema import Message
from tests.support import leftovers
from tests.support.memory_store import MemoryStorage

WAIT_S = 20.0


@dataclass
class TopicTable:
    """Which topics there are, with their numbers of partitions."""

    partitions: dict[str, int] = field(default_factory=lambda: {"orders": 8})
    ids: dict[str, bytes] = field(default_factory=dict)
    """Of topics that were deleted and created again."""

    def describe(self, name: str) -> Any:
        """As `Topics.describe`."""
        count = self.partitions.get(name)
        topic_id = self.ids.get(name, hashlib.sha256(name.encode()).digest()[:16])
        return None if count is None else _Info(name, count, topic_id)

    def describe_id(self, topic_id: bytes) -> Any:
        """As `Topics.describe_id`."""
        found = (self.describe(name) for name in self.partitions)
        return next((info for info in found if info.id == topic_id), None)


@dataclass
class _Info:
    name: str
    partitions: int
    id: bytes


@dataclass
class Served:
    """A running server and everything behind it."""

    server: Server
    runtime: GroupRuntime
    storage: Storage
    topics: TopicTable
    log: list[Mapping[str, Any]]
    """Every log line, as its fields."""
    host: str
    port: int
    clock: Clock

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """Log lines of one event."""
        return [line for line in self.log if line["event"] == name]

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        """A connection to it."""
        async with connected(self.host, self.port) as client:
            yield client


@contextlib.asynccontextmanager
async def connected(host: str, port: int) -> AsyncIterator[Client]:
    """A connection to any server."""
    client = Client(*await asyncio.open_connection(host, port))
    try:
        yield client
    finally:
        await client.close()


LARGE_BYTES = 100_000


class Clock:
    """Milliseconds that a test can push forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) + self.ahead_ms


class Client:
    """One connection that does what a test asks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._number = 0

    def send(self, message: Message, version: int, client_id: str = "client") -> int:
        """Send a request; returns its correlation id."""
        self._number += 1
        self.writer.write(encode_request(message, version, self._number, client_id))
        return self._number

    async def call(self, message: Message, version: int, client_id: str = "client") -> Any:
        """Send a request and wait for its answer."""
        number = self.send(message, version, client_id)
        answered, response = await self.receive(type(message), version)
        assert answered == number
        return response

    async def receive(self, request: type[Message], version: int) -> tuple[int, Any]:
        """The next answer, to a request of this class: correlation id and message."""
        response = response_class(request.API_KEY)
        assert response is not None
        frame = await self.frame()
        if len(frame) < LARGE_BYTES:
            return decode_response(response, frame, version)
        # The turns of a server in the same loop are watched.
        return await asyncio.to_thread(decode_response, response, frame, version)

    async def frame(self) -> bytes:
        """The next answer's bytes without the size field."""
        async with asyncio.timeout(WAIT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        async with asyncio.timeout(WAIT_S):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def close(self) -> None:
        """Close the connection."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def spawn(call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
    """As `Services.spawn`, for handlers of tests."""
    task = asyncio.ensure_future(coroutine)
    if call is not None:
        call.on_closed = task.cancel


@contextlib.asynccontextmanager
async def serving(
    storage: Storage | None = None,
    handlers: Callable[[Services], dict[int, Handler]] | None = None,
    directory: Nodes | None = None,
    acquired: Iterable[int] | None = None,
    sasl: Sasl | None = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """A server on a free port. `handlers` adds to those of groups and offsets. `acquired`: the only
    shards that it has."""
    lines: list[Mapping[str, Any]] = []

    def keep(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        lines.append({"level": method, **event})
        if "exc_info" in event:
            leftovers.note(f"logged by the server: {lines[-1]}\n{traceback.format_exc()}")
        raise structlog.DropEvent

    log = structlog.wrap_logger(
        None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0)
    )
    listening = {"listen": "127.0.0.1:0", "advertised_address": "advertised.example:9092"}
    given = {
        **({} if "listeners" in settings else listening),
        "group_initial_rebalance_delay_ms": 0,
        **settings,
    }
    chosen = Settings(**given)
    store = storage or MemoryStorage()
    clock = Clock()
    runtime = GroupRuntime(chosen, store, now_ms=clock, log=log, storage_timeout_ms=chosen.storage_timeout_ms)
    if acquired is None:
        await runtime.start()
    else:
        await runtime.start_empty()
        for partition in acquired:
            await runtime.acquire(partition)
    server = Server(chosen, runtime, now_ms=clock, log=log, authorizer=AllowAll())
    server.sasl = sasl
    table = TopicTable()
    services = Services(
        authorizer=AllowAll(),
        settings=chosen,
        runtime=runtime,
        topics=table,
        node_id=7,
        cluster_id="cluster",
        spawn=spawn,
        now_ms=clock,
        cluster=directory,
    )
    found = {**groups.register(services), **offsets.register(services)}
    if handlers is not None:
        found.update(handlers(services))
    found.update(versions.register(services, tuple(found)))
    try:
        listener, *_ = await server.start(found, table)
        host, port = listener.address
        yield Served(server, runtime, store, table, lines, host, port, clock)
        await _nothing_is_held(server, runtime)
    finally:
        server.stop_accepting()
        await runtime.stop()
        await server.close_connections(1.0)


async def _nothing_is_held(server: Server, runtime: GroupRuntime) -> None:
    """When the last client is gone, nothing is kept or counted for any. (A test may have left one there.)"""
    for _ in range(50):
        if not server.connections and not len(server.handshakes):
            break
        await asyncio.sleep(0.001)
    else:
        return
    held = {
        "bytes of connections": server.held_bytes,
        "bytes of strangers": server.strangers.held_bytes,
        "requests that wait": sum(map(len, runtime.pending)),
    }
    if any(held.values()):
        leftovers.note(f"left by clients that are gone: {held}")


async def happens(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes to hold, after time enough for it: for what must not happen."""
    try:
        async with asyncio.timeout(0.3):
            await until(condition)
    except TimeoutError:
        return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
