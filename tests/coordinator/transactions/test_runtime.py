"""The transaction coordinator with a store and partitions: what survives a stop, and what is tried again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ringleader.coordinator.machine import Phase
from ringleader.coordinator.run_queue import AT_A_TIME
from ringleader.coordinator.runtime.transactions import TransactionRuntime
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.transactions.machine import Producer, Result
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import State
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.memory_store import MemoryStorage
from tests.support.served import until

SETTINGS = TransactionSettings(transaction_retry_ms=1)


class Log:
    """A topic log that only counts markers; it can be made to fail, or to wait."""

    def __init__(self) -> None:
        self.markers: list[tuple[str, int, int, int, bool]] = []
        self.failures: list[int] = []
        self.orphans: list[tuple[str, int, int, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = 0
        """Markers, with those that wait."""
        self.next_id = 40

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """See `PartitionLog`."""
        self.begun += 1
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
        self.markers: list[tuple[int, int, bool]] = []
        self.failures: list[int] = []
        self.orphans: list[tuple[int, int]] = []

    async def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> int:
        """See `GroupOffsets`."""
        await asyncio.sleep(0)
        if self.failures:
            return self.failures.pop()
        self.markers.append((partition, producer_id, committed))
        return 0

    def open_producers(self) -> list[tuple[int, int]]:
        """See `GroupOffsets`."""
        return self.orphans


class Ticket:
    """Awaits its answer."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.answer = self._future.set_result

    def refuse(self, error_code: int) -> None:
        """The answer is an error."""
        self.answer(Result(error_code))

    async def result(self) -> Result:
        """The answer."""
        async with asyncio.timeout(20):
            return await self._future


class World:
    """A coordinator and what it stands on."""

    def __init__(self, storage: MemoryStorage, log: Log, groups: Groups) -> None:
        self.storage, self.log, self.groups = storage, log, groups
        self.failed: list[Exception] = []
        self.runtime = TransactionRuntime(SETTINGS, storage, log, groups, on_failed=self.failed.append)

    async def init(self, name: str = "t", expected: Producer | None = None) -> Result:
        ticket = Ticket()
        await self.runtime.init_producer_id(name, 60_000, expected, ticket)
        return await ticket.result()

    async def ask(self, method: str, *arguments: Any) -> int:
        ticket = Ticket()
        getattr(self.runtime, method)(*arguments, ticket)
        return (await ticket.result()).error

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
                found = self.runtime.shards[self.runtime.partition_of(name)].find(name)
                if found is not None and found.state not in (State.PREPARE_ABORT, State.PREPARE_COMMIT):
                    return found.state
                await asyncio.sleep(0.001)

    def same_shard(self, name: str) -> bool:
        """Whether this id is in the partition of "t"."""
        return self.runtime.partition_of(name) == self.runtime.partition_of("t")

    async def served(self, name: str = "t") -> None:
        """Its shard is loaded."""
        await until(lambda: self.runtime.shards[self.runtime.partition_of(name)].phase is Phase.SERVING)


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
        assert world.runtime.verify_group("t", producer, "h") == ErrorCode.TRANSACTION_ABORTABLE
        assert await world.ask("end", "t", producer, committed) == 0
        expected = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        assert await world.settled() == expected
        assert world.log.markers == [("a", 0, 41, 0, committed), ("b", 1, 41, 0, committed)]
        assert world.groups.markers == [(3, 41, committed)]


async def test_a_marker_that_fails_is_tried_again_and_only_that_one() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.log.failures = [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        world.groups.failures = [ErrorCode.NOT_COORDINATOR] * 2
        await world.ask("end", "t", producer, True)
        assert await world.settled() == State.COMPLETE_COMMIT
        assert sorted(world.log.markers) == [("a", 0, 41, 0, True), ("b", 1, 41, 0, True)]
        assert len(world.groups.markers) == 1


async def test_not_all_markers_begin_in_one_turn_of_the_loop() -> None:
    partitions = [("a", number) for number in range(1_000)]
    async with coordinator() as world:
        producer = await world.begin()
        assert await world.ask("add_partitions", "t", producer, partitions) == 0
        world.log.gate.clear()
        await world.ask("end", "t", producer, True)
        await until(lambda: world.log.begun > 0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert world.log.begun <= AT_A_TIME
        world.log.gate.set()
        assert await world.settled() == State.COMPLETE_COMMIT
        assert len(world.log.markers) == 1_001


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
    # Writes that were not synced are lost: nothing, for all of them were.
    async with coordinator(world.storage.power_loss()) as after:
        assert await after.settled() == (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
        assert after.log.markers == [("a", 0, 41, 0, committed), ("b", 1, 41, 0, committed)]
        assert after.groups.markers == [(3, 41, committed)]
        assert await after.init() == Result(0, 41, 1)


async def test_a_decision_that_is_not_durable_is_none() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.storage.hold()
        answer = asyncio.ensure_future(world.ask("end", "t", producer, True))
        begun = asyncio.ensure_future(world.init())
        for _ in range(9):
            await asyncio.sleep(0)
        assert not answer.done()
        assert not begun.done(), "that it is decided is not durable either"
        async with coordinator(world.storage.power_loss()) as after:
            assert after.runtime.verify("t", producer, ("a", 0)) == 0, "still open"
            assert after.log.markers == []
        world.storage.resume()
        assert await answer == 0
        assert (await begun).error == ErrorCode.CONCURRENT_TRANSACTIONS


async def test_a_failed_store_answers_and_goes_on() -> None:
    async with coordinator() as world:
        world.storage.fail_append(1, Failure.BUSY)
        assert (await world.init()).error == ErrorCode.NOT_COORDINATOR
        await world.served()
        producer = await world.begin()
        world.storage.fail_append(2, Failure.BUSY)
        assert await world.ask("end", "t", producer, True) == 0
        assert await world.settled() == State.COMPLETE_COMMIT, "the end is stored at the second try"
        assert world.log.markers == 2 * [("a", 0, 42, 0, True), ("b", 1, 42, 0, True)]
        assert world.failed == []
        assert world.runtime.counters.reloads == world.runtime.counters.failed_appends == 2
        world.log.failures = [ErrorCode.KAFKA_STORAGE_ERROR]
        assert (await world.init("other")).error == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_markers_that_are_being_written_are_not_written_twice_at_once() -> None:
    """A second set could end the next transaction of that producer before its time."""
    async with coordinator() as world:
        producer = await world.begin()
        world.log.gate.clear()
        assert await world.ask("end", "t", producer, True) == 0
        other = next(name for name in map(str, range(9_999)) if world.same_shard(name))
        world.storage.fail_append(1, Failure.BUSY)
        assert (await world.init(other)).error == ErrorCode.NOT_COORDINATOR
        await world.served()
        assert (await world.init()).error == ErrorCode.CONCURRENT_TRANSACTIONS, "found again, decided"
        world.log.gate.set()
        assert await world.settled() == State.COMPLETE_COMMIT
        assert world.log.markers == [("a", 0, 41, 0, True), ("b", 1, 41, 0, True)]


async def test_what_is_produced_while_the_last_transaction_ends_has_an_answer_before_its_markers() -> None:
    """KIP-890: the client asks again; a partition that cannot take its marker may be away for hours."""
    async with coordinator() as world:
        producer = await world.begin()
        world.log.gate.clear()
        assert await world.ask("end", "t", producer, True) == 0
        async with asyncio.timeout(20):
            joined = await world.runtime.join("t", producer, [("a", 0)])
        assert joined == ErrorCode.CONCURRENT_TRANSACTIONS
        world.log.gate.set()
        assert await world.settled() == State.COMPLETE_COMMIT
        assert await world.runtime.join("t", producer, [("a", 0)]) == 0


async def test_a_store_that_cannot_be_trusted_decides_nothing_more() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        world.storage.fail_append(1, Failure.IO_ERROR)
        assert await world.ask("end", "t", producer, True) == ErrorCode.NOT_COORDINATOR
        [error] = world.failed
        assert isinstance(error, StorageError)
        assert error.failure is Failure.IO_ERROR
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


@pytest.mark.parametrize("committed", [True, False])
async def test_a_marker_that_is_gone_is_written_again_as_the_store_knows_it(committed: bool) -> None:
    async with coordinator() as world:
        producer = await world.begin()
        assert await world.ask("end", "t", producer, committed) == 0
        await world.settled()
    log, groups = Log(), Groups()
    # Of this producer, of its epoch and of another one; of a producer that nobody knows.
    log.orphans = [("a", 0, 41, 0), ("a", 1, 41, 1), ("a", 0, 7, 0)]
    groups.orphans = [(3, 41), (3, 7)]
    async with coordinator(world.storage, log, groups):
        assert log.markers == [("a", 0, 41, 0, committed), ("a", 1, 41, 1, False), ("a", 0, 7, 0, False)]
        assert groups.markers == [(3, 41, committed), (3, 7, False)]


@pytest.mark.leaves("no producer id")
async def test_an_error_where_producer_ids_come_from_ends_no_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with coordinator() as world:
        producer = await world.begin("t")

        async def broken(_log: Log) -> int:
            assert await world.ask("end", "t", producer, True) == 0  # the shard changes meanwhile
            raise RuntimeError("a bug")

        other = next(name for name in map(str, range(1_000)) if world.same_shard(name))
        with monkeypatch.context() as patched:
            patched.setattr(Log, "new_producer_id", broken)
            assert (await world.init(other)).error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (world.runtime.counters.faults, world.failed) == (0, [])
        assert (await world.init(other)).error == ErrorCode.NONE


async def test_a_store_without_room_for_producer_ids_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with coordinator() as world:
        world.log.failures = [ErrorCode.KAFKA_STORAGE_ERROR] * 100
        for number in range(100):
            assert (await world.init(str(number))).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [record.getMessage() for record in caplog.records if "no producer id" in record.getMessage()] == [
        "no producer id reason='KAFKA_STORAGE_ERROR' left_out_before=0"
    ]


@pytest.mark.parametrize("order", [(False, True), (True, False, True)])
async def test_a_marker_that_is_gone_aborts_when_its_epoch_had_an_abort(order: tuple[bool, ...]) -> None:
    """The one that lost it may be that one. Starts in between do not make it forgotten."""
    storage = MemoryStorage()
    async with coordinator(storage) as world:
        error, producer_id, epoch = await world.init()
        assert error == 0
    producer = Producer(producer_id, epoch)
    for committed in order:
        async with coordinator(storage) as world:
            assert await world.ask("add_partitions", "t", producer, [("a", 0)]) == 0
            assert await world.ask("end", "t", producer, committed) == 0
            await world.settled()
    log, groups = Log(), Groups()
    log.orphans = [("a", 0, 41, 0)]
    groups.orphans = [(3, 41)]
    async with coordinator(storage, log, groups):
        assert log.markers == [("a", 0, 41, 0, False)]
        assert groups.markers == [(3, 41, False)]


async def test_a_marker_that_is_gone_aborts_when_its_producer_has_begun_again() -> None:
    async with coordinator() as world:
        producer = await world.begin()
        assert await world.ask("end", "t", producer, True) == 0
        await world.settled()
        await world.begin()
    log = Log()
    log.orphans = [("c", 0, 41, 0)]
    async with coordinator(world.storage, log):
        assert log.markers == [("c", 0, 41, 0, False)]


async def test_offsets_whose_transaction_nobody_knows_are_aborted_at_the_start() -> None:
    async with coordinator() as world:
        await world.begin()
    groups = Groups()
    groups.orphans = [(3, 41), (4, 41), (3, 7)]
    async with coordinator(world.storage, groups=groups):
        assert groups.markers == [(4, 41, False), (3, 7, False)]


async def test_many_at_once_are_one_write() -> None:
    async with coordinator() as world:
        await asyncio.gather(*(world.begin(f"t{number}") for number in range(50)))
        assert world.storage.appends < 60
        ends = [world.ask("end", f"t{number}", Producer(41 + number, 0), True) for number in range(50)]
        assert await asyncio.gather(*ends) == [0] * 50
        for number in range(50):
            assert await world.settled(f"t{number}") == State.COMPLETE_COMMIT
        assert len(set(world.log.markers)) == 100
