"""Handlers with real topics behind them, without sockets: a request goes in, its encoded answer comes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.run_queue import RunQueue
from ringleader.coordinator.runtime.transactions import TransactionRuntime
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.principal import ANONYMOUS
from ringleader.coordinator.server.call import Answerable, Call, Message, NoAnswer
from ringleader.coordinator.server.handlers import admin, data, security, topics, transactions
from ringleader.coordinator.server.services import LocalServices
from ringleader.coordinator.topics import Topics
from ringleader.protocol.frames import response_class
from ringleader.protocol.messages import FetchRequest, ProduceRequest
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from tests.support.handled import handled
from tests.support.listening import listener_at
from tests.support.memory_store import MemoryStorage
from tests.support.topiclog import WallClock, give_out_ids

NODE, HOST, PORT = 5, "here.example", 9092
BY_NAME: Mapping[type[Message], int] = {
    FetchRequest: TOPIC_IDS_VERSION - 1,
    ProduceRequest: TOPIC_IDS_VERSION - 1,
}
"""The version of requests that name topics, where it is not the newest."""


class Deleted:
    """Of the group runtime: what these handlers use of it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.run_queue = RunQueue()

    async def forget_topic(self, topic: str, topic_id: bytes) -> None:
        """As `GroupRuntime.forget_topic`."""
        self.names.append(topic)


class NoOffsets:
    """Of the group runtime: what the transaction coordinator uses of it."""

    partitions = 50

    async def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> int:
        """As `GroupRuntime.end_transaction`."""
        return 0

    def open_producers(self) -> list[tuple[int, int]]:
        """As `GroupRuntime.open_producers`."""
        return []


class Ask:
    """Sends requests to handlers as a connection does."""

    def __init__(self, services: LocalServices) -> None:
        self.services = services
        self.topics = services.topics
        self.handlers = {
            **topics.register(services),
            **data.register(services),
            **admin.register(services),
            **transactions.register(services),
            **security.register(services),
        }

    def send(self, request: Message, version: int) -> Waiting:
        """Hand a request over."""
        return Waiting(self, request, version)

    async def __call__(self, request: Message, version: int | None = None) -> Any:
        """The answer to a request; it has gone through the bytes of that version."""
        newest = BY_NAME.get(type(request), request.MAX_VERSION)
        return await self.send(request, newest if version is None else version).answer()


class Waiting(Answerable):
    """A request in progress; also the connection it came over."""

    principal = ANONYMOUS
    listener = listener_at(HOST, PORT)

    def __init__(self, ask: Ask, request: Message, version: int) -> None:
        self._future: asyncio.Future[Message | NoAnswer] = asyncio.get_running_loop().create_future()
        self.request, self.version = request, version
        self.reason = ""
        self.call = Call(self, request.API_KEY, version, 1, "client", "/127.0.0.1")
        decoded = type(request).decode(request.encode(version), version)
        response = handled(ask.handlers[request.API_KEY], self.call, decoded)
        if response is not None:
            self.call.done = True
            self.call_answered(self.call, response)

    @property
    def done(self) -> bool:
        """Answered or refused."""
        return self._future.done()

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        self._future.set_result(response)

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("no handler makes frames")

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        self.reason = reason
        self._future.cancel()

    async def answer(self) -> Any:
        """The answer, from its bytes."""
        async with asyncio.timeout(20):
            response = await self._future
        if isinstance(response, NoAnswer):
            return response
        kind = response_class(self.request.API_KEY)
        assert kind is not None
        return kind.decode(response.encode(self.version), self.version)


@pytest.fixture
async def ask(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ask]:
    """All handlers but those of groups; settings from `@pytest.mark.parametrize(..., indirect)`."""
    settings = Settings(data_dir=tmp_path, **getattr(request, "param", {}))
    give_out_ids(tmp_path / "topics")
    log = Topics(tmp_path / "topics", settings, WallClock())
    await log.open()
    tasks: set[asyncio.Task[None]] = set()

    def spawn(call: Call | None, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        tasks.add(task)
        if call is not None:
            call.on_closed = task.cancel

    coordinator = TransactionRuntime(settings, MemoryStorage(), log, NoOffsets(), wall_ms=log.wall_ms)
    await coordinator.start()
    services = LocalServices(
        authorizer=AllowAll(),
        settings=settings,
        runtime=Deleted(),  # type: ignore[arg-type]
        topics=log,
        node_id=NODE,
        cluster_id="cluster",
        spawn=spawn,
        transactions=coordinator,
    )
    yield Ask(services)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await coordinator.stop()
    await log.close()
    failures = [result for result in results if isinstance(result, Exception)]
    assert not failures
