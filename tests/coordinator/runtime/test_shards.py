"""The runtime of shards with a machine of a few lines: a table of numbers, in as many partitions as needed.

Acknowledged records are durable, failures are contained and answered, and one shard's end is no other one's.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ringleader.coordinator.machine import Phase
from ringleader.coordinator.runtime import shards
from ringleader.coordinator.runtime.shards import FAULT_WINDOW_MS
from ringleader.coordinator.storage.base import Batch, Failure, StorageError
from ringleader.protocol.errors import ErrorCode
from tests.support.memory_store import MemoryStorage
from tests.support.served import until
from tests.support.tables import (
    LOADING,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    PARTITIONS,
    BugError,
    DeafTicket,
    Table,
    Tables,
    Ticket,
    tables,
    turns,
)

# ---- durability ----


async def test_what_is_read_depends_on_what_was_written_before_it_and_on_nothing_else() -> None:
    async with tables() as runtime:
        runtime.storage.hold()
        written, read, other = runtime.put(0, b"a", 1), runtime.get(0, b"a"), runtime.get(1, b"a")
        assert await other.result() == (-1,)
        await turns()
        assert not written.future.done()
        assert not read.future.done()
        runtime.storage.resume()
        assert await written.result() == 0
        assert await read.result() == (1,)


async def test_a_restart_finds_what_was_acknowledged() -> None:
    async with tables() as runtime:
        for number in range(10):
            assert await runtime.put(number % PARTITIONS, b"%d" % number, number).result() == 0
    async with tables(runtime.storage.power_loss()) as runtime:
        for number in range(10):
            assert await runtime.get(number % PARTITIONS, b"%d" % number).result() == (number,)


class Shuffled(MemoryStorage):
    """Keeps the order of the log, and returns in any order that a test wants."""

    def __init__(self) -> None:
        super().__init__(pipeline=3)
        self.returns: list[asyncio.Event] = []

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        gate = asyncio.Event()
        self.returns.append(gate)
        positions = await super().append(batches)
        self.under_way += 1
        try:
            await gate.wait()
        finally:
            self.under_way -= 1
        return positions


async def test_appends_overlap_and_no_answer_leaves_before_what_it_depends_on() -> None:
    storage = Shuffled()
    async with tables(storage) as runtime:
        tickets = []
        for number in range(5):
            tickets += [runtime.put(0, b"a", number), runtime.get(0, b"a")]
            await turns()
        assert len(storage.returns) == 3, "as many as the store takes"
        storage.returns[2].set()
        storage.returns[1].set()
        await turns()
        assert not any(ticket.future.done() for ticket in tickets), "the first one may still fail"
        storage.returns[0].set()
        await turns()
        assert [ticket.future.done() for ticket in tickets] == [True] * 6 + [False] * 4
        for gate in storage.returns:
            gate.set()
        await turns()
        for gate in storage.returns:
            gate.set()
        results = [await ticket.result() for ticket in tickets]
        assert results == [found for number in range(5) for found in (0, (number,))]
        assert len(storage.returns) == 4, "the last two went together"


async def test_what_overlaps_a_failed_append_fails_with_it() -> None:
    storage = MemoryStorage(pipeline=3)
    async with tables(storage) as runtime:
        assert await runtime.put(0, b"a", 1).result() == 0
        storage.hold()
        storage.fail_append(1, Failure.BUSY)
        tickets = []
        for number in range(2, 5):
            tickets += [runtime.put(0, b"a", number), runtime.get(0, b"a")]
            await turns()
        storage.resume()
        assert [await ticket.result() for ticket in tickets] == [NOT_COORDINATOR] * 6
        await runtime.served(0)
        assert await runtime.get(0, b"a").result() == (1,)
        assert runtime.counters.reloads == 1
        assert runtime.failures == []


# ---- the end of a shard's life ----


@pytest.mark.parametrize("method", ["put late", "drain", "durable", "tick", "next_deadline"])
async def test_an_exception_of_a_machine_ends_that_shards_life_and_no_other_ones(method: str) -> None:
    async with tables() as runtime:
        assert await runtime.put(1, b"a", 1).result() == 0
        parked, elsewhere = runtime.park(1), runtime.park(2)
        runtime.broken[1][method] = 1
        if method == "tick":
            runtime.shards[1].due_ms = runtime.now
            runtime.wake()
        else:
            assert await runtime.put(1, b"b", 2).result() == NOT_COORDINATOR
        assert await parked.result() == NOT_COORDINATOR
        [line] = runtime.events("shard failed")
        assert line["partition"] == 1
        assert line["exc_info"]
        assert line["doing"] == method.removesuffix(" late")
        # A shard that shares the store's transactions with it is not harmed.
        assert await runtime.put(2, b"a", 2).result() == 0
        await runtime.served(1)
        assert await runtime.put(1, b"c", 3).result() == 0
        assert await runtime.get(1, b"a").result() == (1,)
        assert not elsewhere.future.done()
        assert (runtime.counters.faults, runtime.counters.reloads) == (1, 1)
        assert runtime.failures == []


async def test_an_exception_that_changed_nothing_ends_nothing() -> None:
    async with tables() as runtime:
        assert await runtime.put(1, b"a", 1).result() == 0
        parked = runtime.park(1)
        life, times = runtime.shards[1], 100
        runtime.broken[1]["put"] = times
        for _ in range(times):
            assert await runtime.put(1, b"a", 2).result() == ErrorCode.UNKNOWN_SERVER_ERROR
        [line] = runtime.events("request failed")
        assert (line["partition"], line["doing"], line["subject"]) == (1, "put", "a")
        assert line["exc_info"]
        assert runtime.events("shard failed") == []
        assert await runtime.get(1, b"a").result() == (1,)
        assert runtime.shards[1] is life
        assert not parked.future.done()
        counters = runtime.counters
        assert (counters.failed_requests, counters.faults, counters.reloads) == (times, 0, 0)
        assert runtime.failures == []


async def test_an_exception_at_nobodys_request_ends_the_shards_life() -> None:
    """Nobody would get an error, and nobody would ask again."""
    async with tables() as runtime:
        runtime.broken[1]["put"] = 1
        nobody = Ticket()
        runtime.call(1, "put", "a", None, lambda shard, _: shard.put(b"a", 1, nobody))
        assert runtime.counters.faults == 1
        await runtime.served(1)


async def test_a_shard_that_is_loaded_again_says_so_while_the_others_serve() -> None:
    storage = SlowReplay()
    async with tables(storage) as runtime:
        assert await runtime.put(0, b"a", 1).result() == 0
        storage.gate.clear()
        runtime.broken[0]["put late"] = 1
        assert await runtime.put(0, b"b", 2).result() == NOT_COORDINATOR
        for number in range(3):
            assert await runtime.put(0, b"a", number).result() == LOADING
            assert await runtime.put(1, b"a", number).result() == 0
        storage.gate.set()
        await runtime.served(0)
        assert await runtime.get(0, b"a").result() == (1,)


class SlowReplay(MemoryStorage):
    """Replays when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def replay(self, partition: int) -> AsyncIterator[list[Any]]:
        """See `Storage.replay`."""
        await self.gate.wait()
        async for rows in super().replay(partition):
            yield rows


async def test_records_of_the_former_life_that_are_on_their_way_are_loaded_too() -> None:
    async with tables() as runtime:
        runtime.storage.hold()
        first = runtime.put(0, b"a", 1)
        await turns()
        runtime.broken[0]["put late"] = 1
        second = runtime.put(0, b"b", 2)
        assert await first.result() == await second.result() == NOT_COORDINATOR
        await turns()
        assert runtime.shards[0].phase is Phase.LOADING, "they may still come"
        runtime.storage.resume()
        await runtime.served(0)
        assert await runtime.get(0, b"a").result() == (1,), "nobody was told, and it happened"
        assert await runtime.put(0, b"a", 3).result() == 0


async def test_records_of_the_former_life_that_are_not_on_their_way_are_never_written() -> None:
    async with tables() as runtime:
        runtime.storage.hold()
        elsewhere = runtime.put(1, b"a", 1)
        await turns()
        gathered = runtime.put(0, b"a", 1)
        await turns()
        runtime.broken[0]["put late"] = 1
        assert await runtime.put(0, b"b", 2).result() == await gathered.result() == NOT_COORDINATOR
        runtime.storage.resume()
        assert await elsewhere.result() == 0
        await runtime.served(0)
        assert await runtime.get(0, b"a").result() == (-1,)
        assert await runtime.put(0, b"c", 3).result() == 0
    async with tables(runtime.storage.power_loss()) as runtime:
        assert await runtime.get(0, b"a").result() == (-1,)


async def test_a_life_that_is_over_is_told_nothing() -> None:
    async with tables(MemoryStorage(pipeline=3)) as runtime:
        runtime.storage.hold()
        tickets = []
        for number in range(3):
            tickets.append(runtime.put(0, b"a", number))
            await turns()
        runtime.broken[0]["durable"] = 3
        runtime.storage.resume()
        assert [await ticket.result() for ticket in tickets] == [NOT_COORDINATOR] * 3
        await runtime.served(0)
        runtime.broken[0].clear()
        assert await runtime.get(0, b"a").result() == (2,), "nobody was told, and it happened"
        assert runtime.counters.faults == 1


@pytest.mark.parametrize(("between_ms", "stops"), [(FAULT_WINDOW_MS - 1, True), (FAULT_WINDOW_MS, False)])
async def test_the_same_shard_again_within_a_minute_stops_the_node(between_ms: int, stops: bool) -> None:
    async with tables() as runtime:
        for partition in (1, 0, 2):
            runtime.broken[partition]["durable" if partition else "put late"] = 1
            assert await runtime.put(partition, b"a", 1).result() == NOT_COORDINATOR
            await runtime.served(partition)
        assert runtime.failures == [], "three shards once is not one shard twice"
        runtime.now += between_ms
        parked = runtime.park(3)
        runtime.broken[0]["put late"] = 1
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        if not stops:
            await runtime.served(0)
            assert runtime.failures == []
            return
        assert await parked.result() == NOT_COORDINATOR
        assert [str(error) for error in runtime.failures] == ["shard 0 failed twice within a minute"]
        assert runtime.events("shard failed again")[0]["level"] == "critical"
        assert await runtime.put(3, b"a", 1).result() == NOT_COORDINATOR


async def test_a_shard_that_cannot_be_loaded_again_stops_the_node() -> None:
    async with tables() as runtime:
        assert await runtime.put(0, b"a", 1).result() == 0
        runtime.storage.fail_append(1, Failure.BUSY)
        runtime.broken[0]["replay"] = 1
        assert await runtime.put(0, b"a", 2).result() == NOT_COORDINATOR
        await until(lambda: bool(runtime.failures))
        assert isinstance(runtime.failures[0], BugError)
        assert runtime.events("shard cannot be loaded again")[0]["exc_info"]


async def test_a_connection_with_a_bug_harms_nobody_else() -> None:
    async with tables() as runtime:
        deaf = DeafTicket()
        runtime.put(0, b"a", 1, deaf)
        assert await runtime.put(0, b"b", 2).result() == 0
        assert runtime.events("answer not sent")[0]["exc_info"]
        runtime.broken[0]["put late"] = 1
        runtime.put(0, b"a", 1, DeafTicket())
        await runtime.served(0)
        assert await runtime.put(0, b"c", 3).result() == 0
        assert runtime.events("refusal not sent")[0]["exc_info"]
        assert runtime.counters.faults == 1


# ---- the store fails ----


async def test_a_failed_append_is_undone_by_loading_and_what_waited_is_refused() -> None:
    async with tables() as runtime:
        assert await runtime.put(0, b"a", 1).result() == 0
        parked, elsewhere = runtime.park(0), runtime.park(1)
        runtime.storage.fail_append(1, Failure.BUSY)
        written, read = runtime.put(0, b"a", 2), runtime.get(0, b"a")
        assert await written.result() == await read.result() == await parked.result() == NOT_COORDINATOR
        await runtime.served(0)
        assert await runtime.get(0, b"a").result() == (1,)
        assert not elsewhere.future.done()
        [line] = runtime.events("append failed")
        assert line["reason"] == "the database is locked by another program"
        assert (runtime.counters.failed_appends, runtime.counters.reloads) == (1, 1)


async def test_failed_appends_alone_never_stop_the_node() -> None:
    async with tables() as runtime:
        for _ in range(5):
            runtime.storage.fail_append(1, Failure.BUSY)
            assert await runtime.put(0, b"a", 2).result() == NOT_COORDINATOR
            await runtime.served(0)
        assert await runtime.put(0, b"a", 2).result() == 0
        assert runtime.failures == []


async def test_while_the_store_is_full_what_would_write_is_refused_and_it_opens_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "PROBE_INTERVAL_S", 0.001)
    async with tables() as runtime:
        for partition in range(PARTITIONS):
            assert await runtime.put(partition, b"a", 1).result() == 0
        parked = runtime.park(1)
        runtime.storage.full = True
        assert await runtime.put(0, b"a", 2).result() == NOT_COORDINATOR
        await runtime.served(0)
        appends = runtime.storage.appends
        for partition in range(PARTITIONS):
            assert await runtime.put(partition, b"a", 3).result() == NOT_AVAILABLE
            assert await runtime.get(partition, b"a").result() == (1,)
        assert runtime.storage.appends == appends
        await until(lambda: runtime.storage.probes >= 2)
        assert runtime.shards[3].full
        runtime.storage.full = False
        await until(lambda: not any(shard.full for shard in runtime.shards))
        for partition in range(PARTITIONS):
            assert await runtime.put(partition, b"a", 4).result() == 0
        assert not parked.future.done(), "that shard had nothing on its way"
        assert runtime.counters.reloads == 1
        assert len(runtime.events("store full")) == len(runtime.events("store has room")) == 1
        await until(lambda: not runtime._tasks)


async def test_a_full_store_is_told_once_however_many_appends_it_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "PROBE_INTERVAL_S", 0.001)
    async with tables() as runtime:
        runtime.storage.hold()
        runtime.storage.fail_append(1)
        refused = [runtime.put(0, b"a", 1)]
        await turns()
        refused.append(runtime.put(1, b"a", 1))
        await turns()
        runtime.storage.full = True
        runtime.storage.resume()
        assert [await one.result() for one in refused] == [NOT_COORDINATOR, NOT_COORDINATOR]
        runtime.storage.full = False
        await until(lambda: bool(runtime.events("store has room")))
        await until(lambda: not runtime._tasks)
        assert len(runtime.events("store full")) == len(runtime.events("store has room")) == 1


class Diary(Table):
    """One that writes whenever it is loaded."""

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        super().loaded(now_ms, wall_ms)
        if not self.full:
            self._out.emit([(b"loaded", b"1")])


async def test_a_shard_that_writes_when_it_is_loaded_is_loaded_once_into_a_full_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Tables, "kind", Diary)
    async with tables() as runtime:
        runtime.storage.full = True
        await until(lambda: bool(runtime.events("store full")))
        for partition in range(PARTITIONS):
            await runtime.served(partition)
        reloads = runtime.counters.reloads
        assert reloads <= PARTITIONS
        await turns(200)
        assert runtime.counters.reloads == reloads
        assert runtime.storage.appends == runtime.counters.failed_appends


async def test_a_store_that_cannot_be_trusted_ends_all_shards() -> None:
    async with tables() as runtime:
        parked = runtime.park(2)
        runtime.storage.fail_append(1, Failure.IO_ERROR)
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        assert await parked.result() == NOT_COORDINATOR
        assert await runtime.put(2, b"a", 1).result() == NOT_COORDINATOR
        [error] = runtime.failures
        assert isinstance(error, StorageError)
        assert error.failure is Failure.IO_ERROR
        assert runtime.events("storage failed")[0]["level"] == "critical"


class Broken(MemoryStorage):
    """Fails in a way that nobody foresaw."""

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        raise BugError("store")


async def test_a_store_with_a_bug_is_not_trusted() -> None:
    async with tables(Broken()) as runtime:
        assert await runtime.put(0, b"a", 1).result() == NOT_COORDINATOR
        assert len(runtime.failures) == 1
        [line] = runtime.events("store failed")
        assert line["doing"] == "append"
        assert line["exc_info"]


def _append(runtime: Tables) -> None:
    runtime.put(0, b"a", 1)


def _replay(runtime: Tables) -> None:
    runtime.broken[0]["put late"] = 1
    runtime.put(0, b"a", 1)


@pytest.mark.parametrize(("ask", "doing"), [(_append, "append"), (_replay, "replay")])
async def test_a_store_that_does_not_answer_stops_the_node(ask: Callable[[Tables], None], doing: str) -> None:
    storage = SlowReplay()
    async with tables(storage, storage_timeout_ms=20) as runtime:
        storage.hold()
        storage.gate.clear()
        ask(runtime)
        await until(lambda: bool(runtime.failures))
        [error] = runtime.failures
        assert isinstance(error, StorageError)
        assert error.failure is Failure.SILENT
        assert f"{doing} took longer than storage.timeout.ms (20)" in str(error)
    assert storage.is_open, "it is not waited for once more"


# ---- time ----


async def test_shards_that_serve_are_told_again_and_again_what_unix_time_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "WALL_CLOCK_INTERVAL_S", 0.001)
    times = itertools.count(1_000_000)
    async with tables(wall_ms=lambda: next(times)) as runtime:
        await until(lambda: all(len(shard.wall_times_ms) > 2 for shard in runtime.shards))
        for shard in runtime.shards:
            assert shard.wall_times_ms == sorted(set(shard.wall_times_ms)), "the time that it is by then"


async def test_an_earlier_deadline_is_met_though_a_later_one_is_waited_for() -> None:
    async with tables() as runtime:
        for partition, in_ms in enumerate((3_600_000, 0)):
            runtime.shards[partition].due_ms = runtime.now + in_ms
            runtime.touch(partition)
        await until(lambda: runtime.shards[1].ticks == 1)
        assert runtime.shards[0].ticks == 0


class Punctual(Table):
    """One that has something to do as soon as it is loaded."""

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        super().loaded(now_ms, wall_ms)
        self.due_ms = now_ms


async def test_what_is_due_when_a_shard_is_loaded_again_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tables, "kind", Punctual)
    monkeypatch.setattr(shards, "WALL_CLOCK_INTERVAL_S", 3_600)  # it would be found then
    async with tables() as runtime:
        await until(lambda: all(shard.ticks == 1 for shard in runtime.shards))
        runtime.broken[1]["put late"] = 1
        assert await runtime.put(1, b"a", 1).result() == NOT_COORDINATOR
        await runtime.served(1)
        await until(lambda: runtime.shards[1].ticks == 1)


# ---- the end ----


async def test_stop_finishes_what_is_on_its_way_and_refuses_what_waits() -> None:
    async with tables() as runtime:
        runtime.storage.hold()
        written, parked = runtime.put(0, b"a", 1), runtime.park(1)
        await turns()
        gathered = runtime.put(1, b"a", 2)
        stopping = asyncio.ensure_future(runtime.stop())
        await turns()
        assert not stopping.done()
        runtime.storage.resume()
        await stopping
        assert await written.result() == await gathered.result() == 0
        assert await parked.result() == NOT_COORDINATOR
        assert await runtime.put(0, b"b", 1).result() == NOT_COORDINATOR
        assert not runtime.storage.is_open
