"""An application whose task is cancelled at any await of the consumer goes on: no record is lost, none is
committed unseen, no call hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader import GroupConsumer, TopicPartition
from ringleader.clients.fetch.model import Batch
from ringleader.protocol.compression import Compression
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Source, consumer, until

PARTITIONS, COUNT = 4, 30
WAYS = ("at once", "with its answer")
"""The cancellation comes while something is waited for; or together with what was waited for."""


class CancelledAt(Coroutine[Any, Any, Any]):
    """A coroutine whose task is cancelled where it is suspended for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, Any], number: int, way: str) -> None:
        self._work = work
        self._left = number
        self._way = way
        self.reached = False

    def send(self, value: Any) -> Any:
        return self._counted(self._work.send(value))

    def throw(self, *error: Any) -> Any:
        return self._counted(self._work.throw(*error))

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise AssertionError("a task drives it")

    def _counted(self, waits_for: Any) -> Any:
        if self._left == 0 and not self.reached:
            self.reached = True
            task = asyncio.current_task()
            assert task is not None
            if waits_for is None or self._way == "at once":
                task.cancel()
            else:
                waits_for.add_done_callback(lambda _: task.cancel())
        self._left -= 1
        return waits_for


class Application:
    """Reads with the blocks that a test makes of it, and knows what it has."""

    def __init__(self, coordinator: Coordinator, group: str) -> None:
        self.one: GroupConsumer = consumer(
            coordinator, group=group, auto_commit_interval_ms=5, max_poll_records=7, request_timeout_ms=5_000
        )
        self.started = False
        self.next: dict[TopicPartition, int] = {}
        """Offset behind the last record, by partition."""
        self.seen: dict[TopicPartition, set[int]] = {}
        self.passed: dict[TopicPartition, int] = {}
        self._hand: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        if not self.started:
            await self.one.start(timeout_s=PATIENCE_S)
            self.started = True
        await self.one.wait_assigned(PATIENCE_S)

    async def ask(self, timeout_s: float = PATIENCE_S) -> int:
        self.passed |= self._hand
        self._hand = {}
        self._got(batches := await self.one.getmany(timeout_s=timeout_s))
        return sum(map(len, batches))

    def _got(self, batches: list[Batch]) -> None:
        for batch in batches:
            at, first = batch.topic_partition, batch.offsets[0]
            assert first <= self.next.get(at, 0), f"{at}: {first} follows {self.next.get(at, 0)}"
            self.next[at] = self._hand[at] = batch.next_offset
            self.seen.setdefault(at, set()).update(batch.offsets)

    def seek(self, at: TopicPartition, offset: int) -> None:
        self.one.seek(at, offset)
        self._hand.pop(at, None)
        self.next[at] = self.passed[at] = offset

    @property
    def has_all(self) -> bool:
        return sum(map(len, self.seen.values())) == PARTITIONS * COUNT

    async def commit(self) -> None:
        await self.one.commit(timeout_s=PATIENCE_S)

    async def until_shared(self, two: GroupConsumer) -> None:
        """Read on, until the other one has its part."""
        while not (len(self.one.assignment()) == len(two.assignment()) == PARTITIONS // 2):
            await self.ask(0.05)

    async def check(self, consumer: GroupConsumer | None = None) -> None:
        """Nothing is committed that the application has not had."""
        for at, to in (await (consumer or self.one).committed(timeout_s=PATIENCE_S)).items():
            assert to.offset <= max(self.passed.get(at, 0), self._hand.get(at, 0)), at

    async def go_on(self) -> None:
        """To the end: every record, and then every offset."""
        await self.start()
        await self.check()
        while not self.has_all:
            assert await self.ask()
        await self.commit()
        self.passed |= self._hand
        await self.check()
        committed = await self.one.committed(timeout_s=PATIENCE_S)
        assert {at: to.offset for at, to in committed.items()} == {("t", n): COUNT for n in range(PARTITIONS)}


Work = Callable[[Application], Coroutine[Any, Any, None]]


async def start(app: Application) -> None:
    await app.start()


async def read(app: Application) -> None:
    for _ in range(3):
        await app.ask()


async def look(app: Application) -> None:
    await app.ask()
    place = app.one.assignment()[0]
    await app.one.position(place, timeout_s=PATIENCE_S)
    await app.one.lag(timeout_s=PATIENCE_S)
    app.seek(place, 0)
    await app.one.position(place, timeout_s=PATIENCE_S)
    await app.ask()
    await app.one.offsets_for_times({place: 0}, timeout_s=PATIENCE_S)


async def commit(app: Application) -> None:
    for _ in range(2):
        await app.ask()
        await app.commit()
        await app.check()


async def subscribe(app: Application) -> None:
    await app.ask()
    await app.one.subscribe(["t", "u"], timeout_s=PATIENCE_S)
    await app.one.wait_assigned(PATIENCE_S)
    await app.ask()


async def stop(app: Application) -> None:
    await app.ask()
    await app.one.stop(timeout_s=PATIENCE_S)


async def cancelled_at(work: Coroutine[Any, Any, Any], number: int, way: str) -> bool:
    """Whether there was such an await."""
    driven = CancelledAt(work, number, way)
    task = asyncio.create_task(driven)
    done, _ = await asyncio.wait([task], timeout=PATIENCE_S)
    assert done, "it hangs"
    if not task.cancelled():
        task.result()
    return driven.reached


@pytest.fixture
def source(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Every batch is inflated in a thread, and waited for."""
    monkeypatch.setattr("ringleader.clients.fetch.buffer.INLINE_BYTES", 0)
    made = Source(coordinator)
    made.fill(partitions=PARTITIONS, batches=3, count=COUNT // 3, compression=Compression.GZIP)
    return made


@asynccontextmanager
async def stopped(app: Application) -> AsyncIterator[None]:
    try:
        yield
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await app.one.stop(timeout_s=PATIENCE_S / 2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("work", [start, read, look, commit, subscribe], ids=lambda work: work.__name__)
async def test_cancelled_at_any_await_it_goes_on(
    coordinator: Coordinator, source: Source, work: Work, way: str
) -> None:
    number, reached = 0, True
    while reached:
        app = Application(coordinator, f"g-{number}")
        async with stopped(app):
            if work is not start:
                await app.start()
            reached = await cancelled_at(work(app), number, way)
            async with asyncio.timeout(PATIENCE_S):
                await app.go_on()
        number += 1
    assert number > 1


@pytest.mark.parametrize("way", WAYS)
async def test_cancelled_at_any_await_of_the_end_it_can_be_ended_again(
    coordinator: Coordinator, source: Source, way: str
) -> None:
    """And nothing of it is left: no connection, no task, no member."""
    number, reached = 0, True
    while reached:
        app = Application(coordinator, f"g-{number}")
        await app.start()
        reached = await cancelled_at(stop(app), number, way)
        async with asyncio.timeout(PATIENCE_S):
            await app.one.stop(timeout_s=PATIENCE_S / 2)
        assert app.one.member.ended
        async with consumer(coordinator, group=f"g-{number}", auto_commit=False) as two:
            await app.check(two)
        number += 1
    assert number > 1


@pytest.mark.parametrize("way", WAYS)
async def test_cancelled_at_any_await_of_a_rebalance_it_goes_on(
    coordinator: Coordinator, source: Source, way: str
) -> None:
    """Another member comes and goes; records that were in hand may come twice."""
    number, reached = 0, True
    while reached:
        app = Application(coordinator, f"g-{number}")
        async with stopped(app):
            await app.start()
            await app.ask()
            async with consumer(coordinator, "b", group=f"g-{number}") as two:
                reached = await cancelled_at(app.until_shared(two), number, way)
                async with asyncio.timeout(PATIENCE_S):
                    await app.until_shared(two)
                await app.check()
            async with asyncio.timeout(PATIENCE_S):
                await app.go_on()
        number += 1
    assert number > 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_subscription_changes_as_a_whole_or_not_at_all(
    coordinator: Coordinator, source: Source, way: str
) -> None:
    number, reached = 0, True
    while reached:
        options = {"auto_offset_reset": "latest", "group": f"g-{number}"}
        async with consumer(coordinator, **options) as one:
            await one.wait_assigned(PATIENCE_S)
            assert one.member.subscription is not None
            reached = await cancelled_at(one.subscribe(["u"]), number, way)
            assert one.member.subscription.names == (("t",) if reached else ("u",))
            if not reached:
                await until(lambda: not one.assignment())
        number += 1
    assert number > 1
