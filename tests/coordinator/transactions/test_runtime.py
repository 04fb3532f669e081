"""The transaction coordinator with a store and partitions: what survives a stop, and what is tried again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.memory import MemoryStorage
from ringleader.coordinator.transactions.machine import Producer, Result
from ringleader.coordinator.transactions.runtime import TransactionRuntime
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import State
from ringleader.protocol.errors import ErrorCode, KafkaError

SETTINGS = TransactionSettings(transaction_retry_ms=1)


class Log:
    """A topic log that only counts markers; it can be made to fail, or to wait."""

    def __init__(self) -> None:
        self.markers: list[tuple[str, int, int, int, bool]] = []
        self.failures: list[int] = []
        self.orphans: list[tuple[str, int, int, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.next_id = 40

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """See `PartitionLog`."""
        await self.gate.wait()
        if self.failures:
            raise KafkaError(self.failures.pop())
        self.markers.append((topic, partition, producer_id, producer_epoch, committed))

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        """See `PartitionLog`."""
        return self.orphans

    async def new_producer_id(self) -> int:
        """See `PartitionLog`."""
        await asyncio.sleep(0)
        if self.failures:
            raise KafkaError(self.failures.pop())
        self.next_id += 1
        return self.next_id


class Groups:
    """Likewise for the offsets of groups."""

    partitions = 50

    def __init__(self) -> None:
        self.markers: list[tuple[int, int, int, bool]] = []
        self.failures: list[int] = []

    def end_transaction(
        self, partition: int, producer_id: int, epoch: int, committed: bool, done: Callable[[int], None]
    ) -> None:
        """See `GroupOffsets`."""
        if self.failures:
            done(self.failures.pop())
            return
        self.markers.append((partition, producer_id, epoch, committed))
        asyncio.get_running_loop().call_soon(done, 0)


class World:
    """A coordinator and what it stands on."""

    def __init__(self, storage: MemoryStorage, log: Log, groups: Groups) -> None:
        self.storage, self.log, self.groups = storage, log, groups
        self.failed: list[StorageError] = []
        self.runtime = TransactionRuntime(SETTINGS, storage, log, groups, on_failed=self.failed.append)

    async def init(self, name: str = "t", expected: Producer | None = None) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        await self.runtime.init_producer_id(name, 60_000, expected, future.set_result)
        return await future

    async def ask(self, method: str, *arguments: Any) -> int:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        getattr(self.runtime, method)(*arguments, future.set_result)
        async with asyncio.timeout(20):
            return (await future).error

    async def begin(self, name: str = "t") -> Producer:
        """A transaction with two partitions and a group."""
        error, producer_id, epoch = await self.init(name)
        assert error == 0
        producer = Producer(producer_id, epoch)
        assert await self.ask("add_partitions", name, producer, [("a", 0), ("b", 1)]) == 0
        assert await self.ask("add_group", name, producer, "g") == 0
        return producer

    async def settled(self, name: str = "t") -> State:
        """The state when nothing is being finished any more."""
        async with asyncio.timeout(20):
            while True:
                found = self.runtime.machine.find(name)
                assert found is not None
                if found.state not in (State.PREPARE_ABORT, State.PREPARE_COMMIT):
                    return found.state
                await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def coordinator(
    storage: MemoryStorage | None = None, log: Log | None = None, groups: Groups | None = None
) -> AsyncIterator[World]:
    world = World(storage or MemoryStorage(), log or Log(), groups or Groups())
    await world.runtime.start()
    try:
        yield world
    finally:
        await world.runtime.stop()


@pytest.mark.parametrize("committed", [True, False])
async def test_all_partitions_and_groups_get_the_marker(committed: bool) -> None:
    async with coordinator() as world:
        producer = await world.begin()
        assert world.runtime.verify("t", producer, ("a", 0)) == 0
        assert world.runtime.verify_group("t", producer, "g") == 0
        assert world.runtime.verify_group("t", producer, "h") == ErrorCode.INVALID_TXN_STATE
        assert await world.ask("end", "t", producer, committed) == 0
        expected = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        assert await world.settled() == expected
        assert world.log.markers == [("a", 0, 41, 0, committed), ("b", 1, 41, 0, committed)]
        assert world.groups.markers == [(3, 41, 0, committed)]


async def test_a_marker_that_fails_is_tried_again_and_only_that_one() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.log.failures = [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        world.groups.failures = [ErrorCode.NOT_COORDINATOR] * 2
        await world.ask("end", "t", producer, True)
        assert await world.settled() == State.COMPLETE_COMMIT
        assert sorted(world.log.markers) == [("a", 0, 41, 0, True), ("b", 1, 41, 0, True)]
        assert len(world.groups.markers) == 1


async def test_a_deleted_topic_needs_no_marker() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.log.failures = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await world.ask("end", "t", producer, True)
        assert await world.settled() == State.COMPLETE_COMMIT
        assert len(world.log.markers) == 1


@pytest.mark.parametrize("committed", [True, False])
async def test_a_decided_transaction_is_finished_by_the_next_process(committed: bool) -> None:
    log = Log()
    log.gate.clear()
    async with coordinator(log=log) as world:
        producer = await world.begin()
        assert await world.ask("end", "t", producer, committed) == 0
        assert (await world.init()).error == ErrorCode.CONCURRENT_TRANSACTIONS
    # What was not synced is lost: nothing, for all of it was.
    async with coordinator(world.storage.power_loss()) as after:
        assert await after.settled() == (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
        assert after.log.markers == [("a", 0, 41, 0, committed), ("b", 1, 41, 0, committed)]
        assert after.groups.markers == [(3, 41, 0, committed)]
        assert await after.init() == Result(0, 41, 1)


async def test_a_decision_that_is_not_durable_is_none() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.storage.hold()
        answer = asyncio.ensure_future(world.ask("end", "t", producer, True))
        for _ in range(9):
            await asyncio.sleep(0)
        assert (await world.init()).error == ErrorCode.CONCURRENT_TRANSACTIONS, "it is on its way"
        assert not answer.done()
        async with coordinator(world.storage.power_loss()) as after:
            assert after.runtime.verify("t", producer, ("a", 0)) == 0, "still open"
            assert after.log.markers == []
        world.storage.release()
        assert await answer == 0


async def test_a_failed_store_answers_and_goes_on() -> None:
    async with coordinator() as world:
        world.storage.fail_append(1)
        assert (await world.init()).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        producer = await world.begin()
        world.storage.fail_append(2)
        assert await world.ask("end", "t", producer, True) == 0
        assert await world.settled() == State.COMPLETE_COMMIT, "the end is stored at the second try"
        assert world.failed == []
        world.log.failures = [ErrorCode.KAFKA_STORAGE_ERROR]
        assert (await world.init("other")).error == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_store_that_cannot_be_trusted_decides_nothing_more() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.storage.fail_append(1, Failure.IO_ERROR)
        assert await world.ask("end", "t", producer, True) == ErrorCode.NOT_COORDINATOR
        assert [error.failure for error in world.failed] == [Failure.IO_ERROR]
        assert await world.ask("end", "t", producer, True) == ErrorCode.NOT_COORDINATOR
        assert await world.ask("add_group", "t", producer, "h") == ErrorCode.NOT_COORDINATOR
        assert (await world.init()).error == ErrorCode.NOT_COORDINATOR
        assert world.log.markers == []


async def test_records_whose_transaction_nobody_knows_are_aborted_at_the_start() -> None:
    async with coordinator() as world:
        await world.begin()
    log = Log()
    log.orphans = [("a", 0, 41, 0), ("a", 1, 41, 0), ("a", 0, 7, 3)]
    async with coordinator(world.storage, log):
        assert log.markers == [("a", 1, 41, 0, False), ("a", 0, 7, 3, False)]


async def test_many_at_once_are_one_write() -> None:
    async with coordinator() as world:
        await asyncio.gather(*(world.begin(f"t{number}") for number in range(50)))
        assert world.storage.appends < 60
        ends = [world.ask("end", f"t{number}", Producer(41 + number, 0), True) for number in range(50)]
        assert await asyncio.gather(*ends) == [0] * 50
        for number in range(50):
            assert await world.settled(f"t{number}") == State.COMPLETE_COMMIT
        assert len(set(world.log.markers)) == 100
