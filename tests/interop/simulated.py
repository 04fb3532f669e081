"""The world of our own server without sockets and without waiting: the real server, handlers, runtime and
group machine on a loop whose clock jumps to the next thing that is due."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import structlog

from ringleader.coordinator.config import Settings
from ringleader.coordinator.runtime import GroupRuntime, TransactionRuntime
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.commits import CommitCache
from ringleader.coordinator.server.routes import build_routes
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.server.services import LocalServices
from ringleader.coordinator.server.session import Session
from ringleader.coordinator.server.tables import build
from ringleader.coordinator.topics.catalog import TopicInfo
from tests.interop.brokers import AFTER_RESTART, TOPICS, settings_of
from tests.interop.language import Answers, Entry, Scenario
from tests.interop.play import Player, Receiver
from tests.support.listening import listener_at
from tests.support.memory_store import MemoryStorage

T = TypeVar("T")

PARTITIONS = 5
"""The number of partitions of __consumer_offsets: fewer than usual, as each play makes all of them."""

WALL_START_MS = 1_700_000_000_000

SETTLE_S = 0.003
"""Longer than any timer that is set to "at once"."""


class _Jump(selectors.BaseSelector):
    """Nothing ever arrives from outside; instead of waiting, the clock is put forward."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that never comes")
        self.now_s += max(0.0, timeout)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time, which begins at 0."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds of simulated time."""
        return self._jump.now_s

    def now_ms(self) -> int:
        """The same in whole milliseconds, safe from what fractions lose."""
        return int(self._jump.now_s * 1000 + 0.001)


def simulate(work: Callable[[SimulatedLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in simulated time."""
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(work(loop))
    finally:
        loop.close()


def _nobody(_name: str, _info: TopicInfo | None) -> None:
    """Nobody is told yet."""


class _Catalogue:
    """Which topics there are, without any records: all that handlers of groups, offsets and transactions ask
    `Topics` for."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicInfo] = {}
        self._producers = self._ids = 0
        self.on_change: Callable[[str, TopicInfo | None], None] = _nobody
        for name, partitions in TOPICS.items():
            self.add(name, partitions)

    def add(self, name: str, partitions: int) -> None:
        self._ids += 1
        self._put(TopicInfo(name, self._ids.to_bytes(16, "big"), partitions))

    def grow(self, name: str, partitions: int) -> None:
        self._put(TopicInfo(name, self._topics[name].id, partitions))

    def _put(self, info: TopicInfo) -> None:
        self._topics[info.name] = info
        self.on_change(info.name, info)

    def remove(self, name: str) -> None:
        del self._topics[name]
        self.on_change(name, None)

    def tell(self, on_change: Callable[[str, TopicInfo | None], None]) -> None:
        """Of all topics, and of their changes from now on."""
        self.on_change = on_change
        for name, info in self._topics.items():
            on_change(name, info)

    def describe(self, name: str) -> TopicInfo | None:
        return self._topics.get(name)

    def describe_id(self, topic_id: bytes) -> TopicInfo | None:
        return next((info for info in self._topics.values() if info.id == topic_id), None)

    async def new_producer_id(self) -> int:
        self._producers += 1
        return self._producers

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        pass

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        return []


class _Transport(asyncio.Transport):
    """The server's end of a connection: what it writes goes to the player, whole frame by whole frame."""

    def __init__(self, receive: Receiver, lost: Callable[[], None]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self._receive, self._lost = receive, lost
        self._input = bytearray()
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._input += data
        while len(self._input) >= 4:
            end = 4 + int.from_bytes(self._input[:4], "big")
            if len(self._input) < end:
                break
            frame = bytes(self._input[4:end])
            del self._input[:end]
            self._receive(frame)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._lost)

    abort = close

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _Link:
    """The player's end."""

    def __init__(self, server: Server, receive: Receiver) -> None:
        self._connection = Session(server, listener_at()).connection
        self._receive = receive
        self._open = True
        self._connection.connection_made(_Transport(receive, self._lost))

    def _lost(self) -> None:
        if self._open:
            self._open = False
            self._connection.connection_lost(None)
            self._receive(None)

    def send(self, frame: bytes) -> None:
        """See `Link`."""
        asyncio.get_running_loop().call_soon(self._connection.data_received, frame)

    def close(self) -> None:
        """See `Link`."""
        if self._open:
            self._open = False
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)


class SimulatedWorld:
    """See `World`. Has a node of its own: `start`, then `stop`."""

    def __init__(self, broker: str, loop: SimulatedLoop) -> None:
        self._broker, self._loop = broker, loop
        self._log = structlog.wrap_logger(None, processors=[_drop])
        self._catalogue = _Catalogue()
        self._stores = MemoryStorage(), MemoryStorage()
        self._tasks: set[asyncio.Task[None]] = set()
        self.runtime: GroupRuntime
        self._transactions: TransactionRuntime
        self._server: Server

    def _wall_ms(self) -> int:
        return WALL_START_MS + self._loop.now_ms()

    def _spawn(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if call is not None:
            call.on_closed = task.cancel

    async def start(self, more: Mapping[str, str] | None = None) -> None:
        """As `Node.start`, but that nobody listens; with more settings than those of the scenario."""
        settings = Settings(**settings_of(self._broker, more))
        now_ms, wall_ms, log = self._loop.now_ms, self._wall_ms, self._log
        groups, transactions = self._stores
        self.runtime = GroupRuntime(
            settings,
            groups,
            partitions=PARTITIONS,
            now_ms=now_ms,
            wall_ms=wall_ms,
            log=log,
        )
        self._catalogue.tell(self.runtime.topic_changed)
        self._transactions = TransactionRuntime(
            settings,
            transactions,
            self._catalogue,
            self.runtime,
            now_ms=now_ms,
            wall_ms=wall_ms,
            log=log,
        )
        await self.runtime.start()
        await self._transactions.start()
        topics: Any = self._catalogue
        services = LocalServices(
            authorizer=AllowAll(),
            settings=settings,
            runtime=self.runtime,
            topics=topics,
            node_id=settings.node_id,
            cluster_id="simulated",
            spawn=self._spawn,
            transactions=self._transactions,
            now_ms=now_ms,
            wall_ms=wall_ms,
        )
        self._server = Server(settings, self.runtime, now_ms=now_ms, log=log, authorizer=AllowAll())
        self._server.commits = CommitCache(self.runtime, topics, AllowAll())
        self._server.routes = build_routes(build(services), settings)

    async def stop(self) -> None:
        """Everything ends."""
        await self._transactions.stop()
        await self.runtime.stop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def restart(self) -> None:
        """See `World`. As after a crash: what comes back is what was synced."""
        groups, transactions = self._stores
        found = groups.power_loss(), transactions.power_loss()
        await self.stop()
        self._stores = found
        await self.start(AFTER_RESTART)

    async def connect(self, receive: Receiver) -> _Link:
        """See `World`."""
        return _Link(self._server, receive)

    async def sleep(self, ms: int) -> None:
        """See `World`."""
        await asyncio.sleep(ms / 1000)

    async def answered(self, done: Callable[[], bool], *, surely: bool) -> bool:
        """See `World`. Comes at once, or not without more time passing than answers take; only what is
        surely to come, as at the end of an initial delay, is worth a wait."""
        for _ in range(2_000 if surely else 1):
            if done():
                return True
            await asyncio.sleep(SETTLE_S)
        return done()

    async def settle(self, group_id: str, arrived: Callable[[], int]) -> None:
        """See `World`."""
        await asyncio.sleep(SETTLE_S)

    async def create_topic(self, name: str, partitions: int) -> None:
        """See `World`."""
        self._catalogue.add(name, partitions)

    async def grow_topic(self, name: str, partitions: int) -> None:
        """See `World`."""
        self._catalogue.grow(name, partitions)

    async def topic_id(self, name: str) -> bytes:
        """See `World`."""
        info = self._catalogue.describe(name)
        assert info is not None
        return info.id

    async def delete_topic(self, name: str) -> None:
        """See `World`."""
        topic_id = await self.topic_id(name)
        self._catalogue.remove(name)
        await self.runtime.forget_topic(name, topic_id)


def _drop(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


def simulated(scenario: Scenario, player: Callable[[SimulatedWorld], Player]) -> list[Answers]:
    """The answers of our server to each step of a scenario."""

    async def run(loop: SimulatedLoop) -> list[Answers]:
        world = SimulatedWorld(scenario.broker, loop)
        await world.start()
        try:
            return await player(world).play()
        finally:
            await world.stop()

    return simulate(run)


def play_simulated(scenario: Scenario, entry: Entry) -> list[Answers]:
    """The same, at these versions."""
    return simulated(scenario, lambda world: Player(scenario, entry, world, "x"))
