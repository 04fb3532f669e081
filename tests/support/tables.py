"""Shards with a machine of a few lines, a table of numbers, and their runtime: for tests of the latter."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import structlog

from ringleader.coordinator.machine import NOTHING, Drained, Outbox, Phase
from ringleader.coordinator.runtime.moving import MovingShards
from ringleader.protocol.errors import ErrorCode
from tests.support.memory_store import MemoryStorage
from tests.support.served import WAIT_S, until

PARTITIONS = 4
NOT_COORDINATOR, LOADING = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


class BugError(Exception):
    """An exception that leaves a machine."""


class Table:
    """A shard: keys with numbers. A test can choose which of its methods raises next."""

    def __init__(self, broken: dict[str, int]) -> None:
        self.phase = Phase.LOADING
        self.numbers: dict[bytes, int] = {}
        self.due_ms: int | None = None
        self.ticks = 0
        self.wall_times_ms: list[int] = []
        self.full = False
        self._out = Outbox()
        self._broken = broken
        """How often each method still raises."""

    def _maybe(self, method: str) -> None:
        if self._broken.get(method):
            self._broken[method] -= 1
            raise BugError(method)

    @property
    def dirty(self) -> bool:
        return self._out.dirty

    @property
    def changes(self) -> int:
        return self._out.changes

    def replay(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._maybe("replay")
        for key, value in rows:
            self.numbers[key] = int(value or b"0")

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        self.phase = Phase.SERVING

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        self.wall_times_ms.append(wall_ms)

    def set_full(self, full: bool, now_ms: int) -> None:
        self.full = full

    def abandon(self) -> list[Any]:
        return self._out.abandon()

    def unload(self) -> None:
        self.phase = Phase.UNLOADED

    def tick(self, now_ms: int) -> None:
        self._maybe("tick")
        self.ticks += 1
        self.due_ms = None

    def next_deadline(self) -> int | None:
        self._maybe("next_deadline")
        return self.due_ms

    def drain(self) -> Drained:
        self._maybe("drain")
        return self._out.take()

    def durable(self, position: int, now_ms: int) -> None:
        self._maybe("durable")
        self._out.advance(position, now_ms)

    # ---- requests ----

    def put(self, key: bytes, number: int, ticket: Ticket) -> None:
        """Answered with 0 when it is durable."""
        self._maybe("put")
        if self.phase is not Phase.SERVING:
            self._out.answer(ticket, LOADING if self.phase is Phase.LOADING else NOT_COORDINATOR)
        elif self.full:
            self._out.answer(ticket, NOT_AVAILABLE)
        else:
            self.numbers[key] = number
            self._out.answer(ticket, 0, self._out.emit([(key, b"%d" % number)]))
        self._maybe("put late")

    def get(self, key: bytes, ticket: Ticket) -> None:
        """The number, when all that was written before is durable."""
        if self.phase is not Phase.SERVING:
            self._out.answer(ticket, LOADING)
        else:
            position = self._out.emitted if key in self.numbers else NOTHING
            self._out.answer(ticket, (self.numbers.get(key, -1),), position)

    def park(self, ticket: Ticket) -> None:
        """Never answered."""


class Ticket:
    """Awaits its answer."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, response: Any) -> None:
        """It has come; a second one would raise."""
        self.future.set_result(response)

    def refuse(self, error_code: int) -> None:
        """Likewise."""
        self.future.set_result(int(error_code))

    async def result(self) -> Any:
        """The answer."""
        async with asyncio.timeout(WAIT_S):
            return await self.future


class DeafTicket(Ticket):
    """One whose connection has a bug."""

    def answer(self, response: Any) -> None:
        raise BugError("answer")

    def refuse(self, error_code: int) -> None:
        raise BugError("refuse")


class Tables(MovingShards[Table]):
    """The runtime, and what tests ask of it."""

    kind = Table

    storage: MemoryStorage

    def __init__(self, storage: Any, **more: Any) -> None:
        self.broken: list[dict[str, int]] = [{} for _ in range(PARTITIONS)]
        """By partition: how often which method raises."""
        self.storage = storage
        self.failures: list[Exception] = []
        self.lines: list[Mapping[str, Any]] = []
        self.now = 1_000
        super().__init__(
            storage,
            PARTITIONS,
            now_ms=lambda: self.now,
            log=structlog.wrap_logger(
                None, processors=[self._keep], wrapper_class=structlog.make_filtering_bound_logger(0)
            ),
            on_failed=self.failures.append,
            **more,
        )

    def _keep(
        self, logger: Any, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        self.lines.append({"level": method, **event})
        raise structlog.DropEvent

    def _make(self, partition: int) -> Table:
        return self.kind(self.broken[partition])

    def _event(self, partition: int, event: Any) -> None:
        raise BugError("no event was told")

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """Log lines of one event."""
        return [line for line in self.lines if line["event"] == name]

    def put(self, partition: int, key: bytes, number: int, ticket: Ticket | None = None) -> Ticket:
        """Ask; the ticket is answered later."""
        ticket = ticket or Ticket()
        self.call(
            partition, "put", key.decode(), ticket, lambda shard, now_ms: shard.put(key, number, ticket)
        )
        return ticket

    def get(self, partition: int, key: bytes) -> Ticket:
        """Likewise."""
        ticket = Ticket()
        self.call(partition, "get", key.decode(), ticket, lambda shard, now_ms: shard.get(key, ticket))
        return ticket

    def park(self, partition: int) -> Ticket:
        """Likewise, but nothing answers it."""
        ticket = Ticket()
        self.call(partition, "park", "", ticket, lambda shard, now_ms: shard.park(ticket))
        return ticket

    async def served(self, partition: int) -> None:
        """A shard serves (again)."""
        await until(lambda: self.shards[partition].phase is Phase.SERVING)


@contextlib.asynccontextmanager
async def tables(storage: MemoryStorage | None = None, **more: Any) -> AsyncIterator[Tables]:
    runtime = Tables(storage or MemoryStorage(), **more)
    await runtime.load_all()
    try:
        yield runtime
    finally:
        async with asyncio.timeout(WAIT_S):
            await runtime.stop()
        assert not any(runtime.pending), "whoever waited was told"


async def turns(count: int = 20) -> None:
    """Everything that needs nothing from outside goes on."""
    for _ in range(count):
        await asyncio.sleep(0)
