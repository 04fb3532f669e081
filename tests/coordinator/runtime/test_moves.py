"""Shards that come and go: acquired, released, lost to another node. The node that has a shard answers for
it, nobody else does, and acknowledged records go with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from ringleader.coordinator.machine import Phase
from ringleader.coordinator.runtime.shards import FAULT_WINDOW_MS
from ringleader.coordinator.storage.base import Failure, StorageError
from tests.support.fenced_store import FencedLog, FencedStorage
from tests.support.served import WAIT_S, until
from tests.support.tables import (
    LOADING,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    PARTITIONS,
    BugError,
    Table,
    Tables,
    turns,
)


class Moving(Tables):
    """A node that has the shards that it was given, and its reports of those it lost."""

    def __init__(self, log: FencedLog | None = None, storage_timeout_ms: int = 30_000) -> None:
        self.store = FencedStorage(log)
        self.lost: list[tuple[int, BaseException]] = []
        super().__init__(
            self.store,
            storage_timeout_ms=storage_timeout_ms,
            on_lost=lambda partition, error: self.lost.append((partition, error)),
        )
        self.vouch = lambda _partition: True


@contextlib.asynccontextmanager
async def node(
    *partitions: int, log: FencedLog | None = None, storage_timeout_ms: int = 30_000
) -> AsyncIterator[Moving]:
    """One that has these shards."""
    runtime = Moving(log, storage_timeout_ms)
    await runtime.start_empty()
    for partition in partitions:
        await runtime.acquire(partition)
    try:
        yield runtime
    finally:
        async with asyncio.timeout(WAIT_S):
            await runtime.stop()
        assert not any(runtime.pending), "whoever waited was told"
        assert not runtime.store.is_open


# ---- acquire ----


async def test_a_node_that_starts_empty_serves_nothing() -> None:
    async with node() as runtime:
        assert runtime.serving == frozenset()
        for partition in range(PARTITIONS):
            assert await runtime.put(partition, b"a", 1).result() == NOT_COORDINATOR
        assert runtime.store.opened == []


async def test_a_shard_loads_then_serves_and_is_acquired_once() -> None:
    log = FencedLog()
    async with node(1, log=log) as first:
        for number in range(5):
            assert await first.put(1, b"%d" % number, number).result() == 0
    async with node(log=log) as runtime:
        runtime.store.replays.clear()
        acquiring = asyncio.ensure_future(runtime.acquire(1))
        await until(lambda: runtime.store.opened == [1])
        await turns()
        assert await runtime.put(1, b"a", 1).result() == LOADING
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        assert runtime.serving == frozenset()
        runtime.store.replays.set()
        assert await acquiring == 5
        assert runtime.serving == {1}
        assert await runtime.get(1, b"3").result() == (3,)
        assert await runtime.acquire(1) == 0
        assert runtime.store.opened == [1]
        [line] = runtime.events("shard acquired")
        assert (line["partition"], line["records"]) == (1, 5)


async def test_a_shard_that_cannot_be_opened_is_not_served_and_may_be_tried_again() -> None:
    async with node() as runtime:
        runtime.store.fail_open.append(Failure.AWAY)
        with pytest.raises(StorageError) as caught:
            await runtime.acquire(2)
        assert caught.value.failure is Failure.AWAY
        assert await runtime.put(2, b"a", 1).result() == NOT_COORDINATOR
        assert runtime.store.released == [2]
        assert runtime.lost == [], "who asked was told"
        await runtime.acquire(2)
        assert await runtime.put(2, b"a", 1).result() == 0


@pytest.mark.parametrize("method", ["replay", "next_deadline"])
async def test_a_machine_that_cannot_be_loaded_is_not_served(method: str) -> None:
    log = FencedLog()
    async with node(0, log=log) as first:
        assert await first.put(0, b"a", 1).result() == 0
    async with node(1, log=log) as runtime:
        runtime.broken[0][method] = 1
        with contextlib.suppress(BugError):
            await runtime.acquire(0)
        await turns()
        assert await runtime.put(0, b"b", 1).result() == NOT_COORDINATOR
        assert await runtime.put(1, b"b", 1).result() == 0
        assert runtime.serving == {1}
        assert runtime.store.released == [0]
        await runtime.acquire(0)
        assert await runtime.get(0, b"a").result() == (1,)
        assert runtime.failures == []


async def test_a_store_that_does_not_answer_an_acquire_ends_that_and_nothing_else() -> None:
    async with node(1, storage_timeout_ms=20) as runtime:
        runtime.store.replays.clear()
        with pytest.raises(StorageError) as caught:
            await runtime.acquire(0)
        assert caught.value.failure is Failure.AWAY
        assert "replay took longer than storage.timeout.ms (20)" in str(caught.value)
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        assert await runtime.put(1, b"a", 1).result() == 0
        assert runtime.failures == []


async def test_an_acquire_that_is_cancelled_leaves_nothing_behind() -> None:
    async with node() as runtime:
        runtime.store.replays.clear()
        acquiring = asyncio.ensure_future(runtime.acquire(0))
        await until(lambda: runtime.store.opened == [0])
        acquiring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acquiring
        assert runtime.store.released == [0]
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        runtime.store.replays.set()
        await runtime.acquire(0)
        assert await runtime.put(0, b"a", 1).result() == 0


async def test_a_machine_that_fails_while_it_loads_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async with node() as runtime:
        runtime.store.replays.clear()
        acquiring = asyncio.ensure_future(runtime.acquire(0))
        await until(lambda: runtime.store.opened == [0])
        runtime.broken[0]["put late"] = 1
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        runtime.store.replays.set()
        with pytest.raises(RuntimeError, match="shard 0 failed while it was loaded"):
            await acquiring
        assert runtime.serving == frozenset()
        assert runtime.shards[0].phase is Phase.UNLOADED
        assert runtime.lost == []


async def test_a_node_that_stops_ends_an_acquire_under_way() -> None:
    async with node() as runtime:
        runtime.store.replays.clear()
        acquiring = asyncio.ensure_future(runtime.acquire(0))
        await until(lambda: runtime.store.opened == [0])
        await runtime.stop()
        runtime.store.replays.set()
        with pytest.raises(StorageError, match="the store is closed"):
            await acquiring
        with pytest.raises(StorageError, match="the store is closed"):
            await runtime.acquire(1)
        assert (await runtime.put(0, b"a", 1).result(), runtime.store.opened) == (NOT_COORDINATOR, [0])


async def test_a_node_that_has_all_shards_writes_each_by_itself_too() -> None:
    log = FencedLog()
    for number in range(2):
        runtime = Moving(log)
        await runtime.load_all()
        tickets = [runtime.get(partition, b"a") for partition in range(PARTITIONS)]
        assert [await ticket.result() for ticket in tickets] == [(number - 1,)] * PARTITIONS
        runtime.store.hold(0)
        tickets = [runtime.put(partition, b"a", number) for partition in range(PARTITIONS)]
        assert [await ticket.result() for ticket in tickets[1:]] == [0] * (PARTITIONS - 1)
        assert not tickets[0].future.done()
        runtime.store.resume(0)
        assert await tickets[0].result() == 0
        await runtime.stop()


# ---- release ----


async def test_a_release_answers_what_is_on_its_way_and_refuses_the_rest() -> None:
    log = FencedLog()
    async with node(0, 1, log=log) as runtime:
        parked, elsewhere = runtime.park(0), runtime.park(1)
        runtime.store.hold(0)
        tickets = []
        for number in range(5):  # more than the store takes at once
            tickets += [runtime.put(0, b"%d" % number, number), runtime.get(0, b"%d" % number)]
            await turns()
        last = runtime.put(0, b"last", 7)
        releasing = asyncio.ensure_future(runtime.release(0))
        await turns()
        assert not any(ticket.future.done() for ticket in (*tickets, last))
        assert await runtime.put(0, b"late", 1).result() == NOT_COORDINATOR
        assert runtime.serving == {1}
        assert runtime.store.released == []
        runtime.store.resume(0)
        await releasing
        assert runtime.store.released == [0]
        results = [await ticket.result() for ticket in tickets]
        assert results == [found for number in range(5) for found in (0, (number,))]
        assert await last.result() == 0
        assert await parked.result() == NOT_COORDINATOR
        assert not elsewhere.future.done()
        await runtime.release(0)
        assert runtime.store.released == [0], "there is nothing to release"
        async with node(0, log=log) as heir:
            assert await heir.get(0, b"last").result() == (7,)
            assert await heir.get(0, b"late").result() == (-1,)


@pytest.mark.parametrize("failure", [Failure.FENCED, Failure.AWAY])
async def test_what_fails_during_a_release_is_refused(failure: Failure) -> None:
    async with node(0) as runtime:
        runtime.store.hold(0)
        tickets = []
        for number in range(3):
            tickets.append(runtime.put(0, b"a", number))
            await turns()
        releasing = asyncio.ensure_future(runtime.release(0))
        await turns()
        runtime.store.fail_append[0] = failure
        runtime.store.resume(0)
        await releasing
        assert [await ticket.result() for ticket in tickets] == [NOT_COORDINATOR] * 3
        assert runtime.lost == [], "it was given up anyway"
        assert runtime.store.released == [0]
        await runtime.acquire(0)
        assert await runtime.get(0, b"a").result() == (-1,)


@pytest.mark.parametrize("method", ["drain", "durable"])
async def test_a_machine_that_fails_during_a_release_is_gone_all_the_same(method: str) -> None:
    async with node(0) as runtime:
        runtime.store.hold(0)
        written = runtime.put(0, b"a", 1)
        await turns()
        parked = runtime.park(0)
        runtime.broken[0][method] = 1
        releasing = asyncio.ensure_future(runtime.release(0))
        await turns()
        runtime.store.resume(0)
        await releasing
        assert await parked.result() == NOT_COORDINATOR
        assert await written.result() in (0, NOT_COORDINATOR)
        assert runtime.counters.faults == 1
        assert runtime.serving == frozenset()
        await runtime.acquire(0)
        assert await runtime.get(0, b"a").result() == (1,)


async def test_acquire_and_release_of_a_shard_wait_for_each_other() -> None:
    async with node() as runtime:
        runtime.store.replays.clear()
        acquiring = asyncio.ensure_future(runtime.acquire(0))
        await until(lambda: runtime.store.opened == [0])
        releasing = asyncio.ensure_future(runtime.release(0))
        again = asyncio.ensure_future(runtime.acquire(0))
        await turns()
        assert not releasing.done()
        runtime.store.replays.set()
        await asyncio.gather(acquiring, releasing, again)
        assert runtime.store.opened == [0, 0]
        assert runtime.store.released == [0]
        assert runtime.serving == {0}


# ---- loss ----


async def test_a_node_that_is_fenced_gives_the_shard_up_at_once_and_keeps_the_others() -> None:
    log = FencedLog()
    async with node(0, 1, log=log) as former, node(0, log=log) as heir:
        parked, elsewhere = former.park(0), former.park(1)
        assert await heir.put(0, b"a", 1).result() == 0
        written, read = former.put(0, b"a", 2), former.get(0, b"a")
        assert await written.result() == await read.result() == await parked.result() == NOT_COORDINATOR
        await until(lambda: bool(former.lost))
        [(partition, error)] = former.lost
        assert partition == 0
        assert isinstance(error, StorageError)
        assert error.failure is Failure.FENCED
        assert former.serving == {1}
        assert await former.put(0, b"a", 3).result() == NOT_COORDINATOR
        assert await former.put(1, b"a", 3).result() == 0
        assert not elsewhere.future.done()
        await turns(200)
        assert former.store.opened == [0, 1], "nobody told it to acquire the shard"
        assert former.store.released == [0]
        assert former.failures == []
        assert await heir.get(0, b"a").result() == (1,)
        await former.acquire(0)
        assert await former.get(0, b"a").result() == (1,)
        assert await heir.put(0, b"a", 4).result() == NOT_COORDINATOR


async def test_nothing_that_gathered_is_written_once_the_shard_is_lost() -> None:
    async with node(0) as runtime:
        runtime.store.hold(0)
        tickets = []
        for number in range(5):
            tickets.append(runtime.put(0, b"%d" % number, number))
            await turns()
        assert runtime.store.appends[0] == runtime.store.pipeline
        runtime.store.fail_append[0] = Failure.AWAY
        runtime.store.resume(0)
        assert [await ticket.result() for ticket in tickets] == [NOT_COORDINATOR] * 5
        await until(lambda: runtime.store.released == [0])
        assert runtime.store.appends[0] == runtime.store.pipeline
        assert len(runtime.lost) == 1


async def test_a_shard_that_was_lost_is_acquired_when_nothing_of_its_former_life_is_on_its_way() -> None:
    async with node(0) as runtime:
        runtime.store.hold(0)
        written = runtime.put(0, b"a", 1)
        await turns()
        runtime.broken[0]["put late"] = 1
        refused = runtime.put(0, b"b", 2)
        asyncio.get_running_loop().call_later(0.01, runtime.store.resume, 0)
        assert await runtime.acquire(0) == 1, "the store would not open it before"
        assert await refused.result() == await written.result() == NOT_COORDINATOR
        assert await runtime.get(0, b"a").result() == (1,), "nobody was told, and it happened"
        assert await runtime.put(0, b"a", 3).result() == 0, "in a new epoch"


async def test_a_machine_that_raises_is_lost_and_the_node_goes_on_however_often() -> None:
    async with node(0, 1) as runtime:
        for times in range(1, 4):
            runtime.now += FAULT_WINDOW_MS // 10
            runtime.broken[0]["put late"] = 1
            assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
            await until(lambda: len(runtime.lost) == times)  # noqa: B023 - awaited here
            assert isinstance(runtime.lost[-1][1], BugError)
            assert await runtime.put(1, b"a", 1).result() == 0
            await runtime.acquire(0)
        assert await runtime.put(0, b"a", 1).result() == 0
        assert runtime.failures == []
        assert runtime.counters.faults == 3


async def test_a_partition_whose_log_is_late_is_kept_and_delays_no_other() -> None:
    async with node(0, 1, 2, storage_timeout_ms=100) as runtime:
        runtime.store.hold(0)
        slow = runtime.put(0, b"a", 1)
        parked = runtime.park(0)
        for number in range(20):
            assert await runtime.put(1, b"a", number).result() == 0
            assert await runtime.put(2, b"a", number).result() == 0
        assert await slow.result() == NOT_AVAILABLE
        assert runtime.late == {0}
        assert [shard.full for shard in runtime.shards].count(True) == 1
        emitted = runtime.store.appends[0]
        for _ in range(20):
            assert await runtime.put(0, b"a", 7).result() == NOT_AVAILABLE
            assert await runtime.get(0, b"a").result() == NOT_AVAILABLE
        assert runtime.store.appends[0] == emitted
        assert not parked.future.done(), "it does not wait for the log"
        assert runtime.serving == {0, 1, 2}
        assert (len(runtime.lost), len(runtime.failures)) == (0, 0)
        runtime.store.resume(0)
        await until(lambda: not runtime.late)
        assert not any(shard.full for shard in runtime.shards)
        assert await runtime.get(0, b"a").result() == (1,)
        assert await runtime.put(0, b"a", 2).result() == 0
        assert not runtime.events("answer not sent"), "who was refused is not answered later"


async def test_a_partition_that_may_be_another_nodes_is_lost_when_its_log_is_late() -> None:
    async with node(0, 1, storage_timeout_ms=20) as runtime:
        runtime.store.hold(0)
        slow = runtime.put(0, b"a", 1)
        await until(lambda: runtime.late == {0})
        assert await slow.result() == NOT_AVAILABLE
        runtime.vouch = lambda _partition: False
        await until(lambda: bool(runtime.lost))
        [(partition, error)] = runtime.lost
        assert partition == 0
        assert isinstance(error, StorageError)
        assert error.failure is Failure.AWAY
        assert runtime.serving == {1}
        assert runtime.failures == []
        runtime.store.resume(0)
        await runtime.acquire(0)
        assert await runtime.put(0, b"a", 2).result() == 0


async def test_a_partition_is_late_long_before_it_is_lost_if_it_is_this_nodes_for_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleader.coordinator.runtime.log.LATE_S", 0.01)
    monkeypatch.setattr("ringleader.coordinator.runtime.log.LATE_INTERVAL_S", 0.01)
    calls: list[int] = []
    certain = False

    def vouch(partition: int) -> bool:
        calls.append(partition)
        return certain

    async with node(0, 1) as runtime:
        runtime.vouch = vouch
        runtime.store.hold(0)
        slow = runtime.put(0, b"a", 1)
        await until(lambda: len(calls) >= 5)
        assert not runtime.late
        assert not slow.future.done()
        certain = True
        assert await slow.result() == NOT_AVAILABLE
        assert runtime.late == {0}
        certain = False
        calls.clear()
        await until(lambda: len(calls) >= 5)
        assert runtime.late == {0}
        assert runtime.lost == []
        runtime.store.resume(0)
        await until(lambda: not runtime.late)
        assert await runtime.get(0, b"a").result() == (1,)


async def test_a_partition_whose_log_is_late_can_be_given_up() -> None:
    async with node(0, 1, storage_timeout_ms=20) as runtime:
        runtime.store.hold(0)
        runtime.put(0, b"a", 1)
        await until(lambda: runtime.late == {0})
        await runtime.release(0)
        assert runtime.late == runtime.serving - {1} == set()
        runtime.store.resume(0)
        await runtime.acquire(0)
        assert await runtime.put(0, b"a", 2).result() == 0
        runtime.store.hold(0)
        runtime.put(0, b"a", 3)
        await until(lambda: runtime.late == {0})  # and the node stops


async def test_a_late_append_that_is_fenced_after_all_ends_the_shard() -> None:
    async with node(0, 1, storage_timeout_ms=20) as runtime:
        runtime.store.hold(0)
        runtime.put(0, b"a", 1)
        await until(lambda: runtime.late == {0})
        runtime.store.fail_append[0] = Failure.FENCED
        runtime.store.resume(0)
        await until(lambda: bool(runtime.lost))
        assert runtime.late == frozenset()
        assert runtime.serving == {1}


async def test_a_store_that_cannot_be_trusted_still_ends_everything() -> None:
    async with node(0, 1) as runtime:
        parked = runtime.park(1)
        runtime.store.fail_append[0] = Failure.IO_ERROR
        assert await runtime.put(0, b"a", 1).result() == await parked.result() == NOT_COORDINATOR
        assert len(runtime.failures) == 1
        assert runtime.lost == []
        with pytest.raises(StorageError, match="the store is closed"):
            await runtime.acquire(0)


class Lively(Table):
    """One whose deadline is soon, for ever."""

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        super().loaded(now_ms, wall_ms)
        self.due_ms = now_ms


async def test_the_timers_of_a_shard_come_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tables, "kind", Lively)
    async with node() as runtime:
        await runtime.acquire(0)
        first = runtime.shards[0]
        await until(lambda: first.ticks == 1)
        first.due_ms = runtime.now
        await runtime.release(0)
        runtime.wake()
        await turns()
        assert first.ticks == 1, "it is not asked any more"
        await runtime.acquire(0)
        await until(lambda: runtime.shards[0].ticks == 1)
