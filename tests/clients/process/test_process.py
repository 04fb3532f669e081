"""`consumer.process` against a coordinator: orders, failures, rebalances, ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import pytest

from ringleader import GroupConsumer, Record, SyncGroupConsumer
from ringleader.clients.fetch.errors import RecordDeserializationError
from ringleader.clients.process.policies import (
    DeadLetter,
    FailedRecord,
    RecordTimedOutError,
    Retry,
    Skip,
)
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, consumer, until

QUICK: Any = {"backoff_ms": 1, "backoff_max_ms": 5}


def fill(coordinator: Coordinator, count: int, partitions: int = 4, keys: int = 7) -> None:
    """`count` records in each partition, with that many keys in it."""
    for partition in range(partitions):
        for number in range(count):
            key = b"%d-%d" % (partition, number % keys)
            coordinator.produce("t", b"%d" % number, key=key, partition=partition)


class Log:
    """A handler that keeps what it was called with, and how many calls ran at a time."""

    def __init__(self, rng: Random | None = None) -> None:
        self.began: list[Record] = []
        self.ended: list[Record] = []
        self.most = 0
        self._running: Counter[Any] = Counter()
        self.beside: set[tuple[str, object]] = set()
        """Keys, and partitions, of which two records ran at a time."""
        self._rng = rng or Random(1)

    async def __call__(self, record: Record) -> None:
        """Takes a moment."""
        self.began.append(record)
        lanes = [("all", None), ("key", record.key), ("partition", record.partition)]
        for lane in lanes:
            self._running[lane] += 1
            if self._running[lane] > 1:
                self.beside.add(lane)
        self.most = max(self.most, self._running["all", None])
        await asyncio.sleep(self._rng.random() * 0.01)
        for lane in lanes:
            self._running[lane] -= 1
        self.ended.append(record)

    def once_each(self, count: int, partitions: int = 4) -> bool:
        """Whether each record was processed, and none twice."""
        seen = Counter((record.partition, record.offset) for record in self.ended)
        assert not [place for place, times in seen.items() if times > 1]
        return len(seen) == count * partitions

    def in_order_of(self, field: str) -> bool:
        """Whether the records of each key, or partition, were begun in the order of the log."""
        offsets = defaultdict(list)
        for record in self.began:
            offsets[record.partition, getattr(record, field)].append(record.offset)
        return all(found == sorted(found) for found in offsets.values())


@contextlib.asynccontextmanager
async def processing(one: GroupConsumer, handler: Any, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """`process` in a task of its own, cancelled at the end."""
    task = asyncio.create_task(one.process(handler, **options))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))


def idle(one: GroupConsumer) -> bool:
    """Whether nothing is asked for and not done."""
    figures = one.metrics().processing
    return figures is not None and figures.records_waiting == 0


@pytest.mark.parametrize("order", ["key", "partition", "none"])
async def test_each_record_once_in_the_order_that_is_asked_for(
    coordinator: Coordinator, order: Any, seed: int
) -> None:
    fill(coordinator, 60)
    log = Log(Random(seed))
    async with consumer(coordinator) as one, processing(one, log, concurrency=20, order=order):
        await until(lambda: log.once_each(60))
        figures = one.metrics().processing
    assert figures is not None
    assert figures.records_done == 240
    beside = {kind for kind, _ in log.beside}
    assert 4 if order == "partition" else 10 < log.most <= 20
    assert beside == {"key": {"all", "partition"}, "partition": {"all"}}.get(
        order, {"all", "partition", "key"}
    )
    if order != "none":
        assert log.in_order_of("key")
    if order == "partition":
        assert log.in_order_of("partition")


async def test_what_is_done_beyond_a_slow_record_is_not_done_again(coordinator: Coordinator) -> None:
    fill(coordinator, 20, keys=20)
    log, hold, later = Log(), asyncio.Event(), asyncio.Event()

    async def handler(record: Record) -> None:
        if record.offset == 3 and not hold.is_set():
            await hold.wait()
        if record.offset >= 10:
            await later.wait()
        await log(record)

    async with consumer(coordinator) as one, processing(one, handler):
        await until(lambda: len(log.ended) == 36)
        await one.commit()
        later.set()
        await until(lambda: len(log.ended) == 76)
    # The consumer was stopped with 4 records in hand: they were cancelled.
    assert {record.offset for record in log.ended} == set(range(20)) - {3}
    async with consumer(coordinator) as one:
        found = await one.committed()
        assert {at.offset for at in found.values()} == {3}
        assert {at.metadata for at in found.values()} == {"done:1,g"}
        hold.set()
        async with processing(one, handler):
            await until(lambda: log.once_each(20) and idle(one))
            await one.commit()
            assert {at.offset for at in (await one.committed()).values()} == {20}
            assert {at.metadata for at in (await one.committed()).values()} == {""}


async def test_the_next_owner_goes_on_where_handlers_ended(coordinator: Coordinator) -> None:
    fill(coordinator, 100)
    log = Log()
    async with consumer(coordinator, "a") as one, processing(one, log, concurrency=10):
        await until(lambda: len(log.ended) > 50)
        async with consumer(coordinator, "b") as two, processing(two, log, concurrency=10):
            await until(lambda: log.once_each(100))
            assert len(one.assignment()) == len(two.assignment()) == 2
    assert log.in_order_of("key")


async def test_a_revoked_partition_waits_for_its_handlers_and_only_for_them(coordinator: Coordinator) -> None:
    fill(coordinator, 50, keys=50)
    release, running, ended = asyncio.Event(), Counter[int](), Counter[int]()

    async def handler(record: Record) -> None:
        running[record.partition] += 1
        await release.wait()
        ended[record.partition] += 1

    async with consumer(coordinator, "a") as one, processing(one, handler, concurrency=200):
        await until(lambda: running.total() == 200)
        states = one._reader.states  # type: ignore[union-attr]
        async with consumer(coordinator, "b") as two:
            await until(lambda: any(state.suspended and state.running for state in states.values()))
            waiting = [place for place, state in states.items() if state.suspended and state.running]
            assert not set(waiting) & set(two.assignment())
            release.set()
            await until(lambda: set(waiting) <= set(two.assignment()))
            for place in waiting:
                assert await two.position(place) == ended[place[1]] > 0


async def test_records_of_a_lost_partition_do_not_count(coordinator: Coordinator) -> None:
    fill(coordinator, 5, partitions=1)
    hold = asyncio.Event()

    async def handler(record: Record) -> None:
        await hold.wait()

    async with consumer(coordinator) as one, processing(one, handler):
        await until(
            lambda: (figures := one.metrics().processing) is not None and figures.records_running == 5
        )
        state = one._reader.states["t", 0]  # type: ignore[union-attr]
        one._processing.drop([("t", 0)])  # type: ignore[union-attr]
        one._reader.drop([("t", 0)])  # type: ignore[union-attr]
        hold.set()
        await until(lambda: state.running == 0)
        assert await one.committed([("t", 0)]) == {}


async def test_a_handler_that_raises_ends_process_and_its_record_comes_again(
    coordinator: Coordinator,
) -> None:
    fill(coordinator, 10)
    log = Log()

    async def handler(record: Record) -> None:
        if (record.partition, record.offset) == (2, 5) and len(log.ended) < 40:
            raise KeyError("poison")
        await log(record)

    async with consumer(coordinator) as one:
        with pytest.raises(KeyError, match="poison") as raised:
            await one.process(handler)
        assert raised.value.__notes__ == ["raised by the handler of group 'g' for t-2 at offset 5"]
        before = len(log.ended)
        with pytest.raises(KeyError):
            await one.process(handler)
        assert before <= len(log.ended) < 40
        left = {(partition, offset) for partition in range(4) for offset in range(10)}
        left -= {(record.partition, record.offset) for record in log.ended}
        assert (2, 5) in left
        async with processing(one, log):
            await until(lambda: log.once_each(10))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_handler_that_exits_ends_process(
    coordinator: Coordinator, error: type[BaseException]
) -> None:
    fill(coordinator, 3)

    async def handler(_: Record) -> None:
        raise error()

    async with consumer(coordinator) as one:
        with pytest.raises(RuntimeError if error is asyncio.CancelledError else error):
            await one.process(handler)
        assert await one.getone(PATIENCE_S) is not None


async def test_a_record_is_tried_again_while_the_others_go_on(coordinator: Coordinator) -> None:
    fill(coordinator, 10)
    log, tries = Log(), Counter[tuple[int, int]]()

    async def handler(record: Record) -> None:
        tries[record.partition, record.offset] += 1
        if record.offset == 4 and tries[record.partition, 4] <= 3:
            raise OSError("not now")
        await log(record)

    failures = {OSError: Retry(times=3, **QUICK)}
    async with consumer(coordinator) as one, processing(one, handler, failures=failures, concurrency=3):
        await until(lambda: log.once_each(10))
        figures = one.metrics().processing
    assert figures is not None
    assert (figures.calls_failed, figures.records_skipped, figures.records_resting) == (12, 0, 0)
    assert {offset: times for (_, offset), times in tries.items()} == {**dict.fromkeys(range(10), 1), 4: 4}
    assert log.in_order_of("key")


async def test_after_its_tries_a_record_is_skipped_or_a_dead_letter(coordinator: Coordinator) -> None:
    fill(coordinator, 10)
    log, letters = Log(), list[FailedRecord]()

    async def send(letter: FailedRecord) -> None:
        letters.append(letter)

    async def handler(record: Record) -> None:
        if record.offset == 4:
            raise FileNotFoundError("gone")
        if record.offset == 5:
            raise ValueError("wrong")
        await log(record)

    failures = {OSError: Retry(times=2, then=DeadLetter(send), **QUICK), ValueError: Skip()}
    async with consumer(coordinator) as one, processing(one, handler, failures=failures):
        await until(lambda: len(log.ended) == 32 and len(letters) == 4 and idle(one))
        await one.commit()
        assert {at.offset for at in (await one.committed()).values()} == {10}
        figures = one.metrics().processing
    assert figures is not None
    assert (figures.dead_letters, figures.records_skipped, figures.records_done) == (4, 4, 40)
    assert {(letter.record.offset, letter.tries, type(letter.error)) for letter in letters} == {
        (4, 3, FileNotFoundError)
    }
    assert {(letter.raw_key, letter.raw_value) for letter in letters} == {
        (b"%d-4" % n, b"4") for n in range(4)
    }


async def test_a_dead_letter_that_cannot_be_sent_is_not_done(coordinator: Coordinator) -> None:
    fill(coordinator, 2, partitions=1)

    def send(letter: FailedRecord) -> None:
        raise ConnectionError("no")

    async def handler(_: Record) -> None:
        raise ValueError("wrong")

    async with consumer(coordinator) as one:
        with pytest.raises(ConnectionError):
            await one.process(handler, failures={Exception: DeadLetter(send)})
        await one.commit()
        assert {at.offset for at in (await one.committed()).values()} == {0}


@pytest.mark.parametrize("policy", ["skip", "letter", "stop"])
async def test_records_that_no_deserializer_takes(coordinator: Coordinator, policy: str) -> None:
    fill(coordinator, 10)
    coordinator.produce("t", b"poison", key=b"k", partition=1)
    fill(coordinator, 5)
    log, letters = Log(), list[FailedRecord]()
    policies = {"skip": Skip(), "letter": DeadLetter(letters.append)}
    failures = {RecordDeserializationError: policies[policy]} if policy in policies else {}
    async with consumer(coordinator, value_deserializer=int) as one:
        if policy == "stop":
            with pytest.raises(RecordDeserializationError):
                await one.process(log)
            return
        async with processing(one, log, failures=failures):
            await until(lambda: len(log.ended) == 60 and idle(one))
            await one.commit()
            assert (await one.committed())["t", 1].offset == 16
    if policy == "letter":
        assert [(letter.record.offset, letter.tries, letter.raw_value) for letter in letters] == [
            (10, 0, b"poison")
        ]


async def test_a_call_that_takes_too_long_fails(coordinator: Coordinator) -> None:
    fill(coordinator, 3)
    log = Log()

    async def handler(record: Record) -> None:
        if record.offset == 1:
            await asyncio.Event().wait()
        await log(record)

    options = {"record_timeout_s": 0.05, "failures": {RecordTimedOutError: Skip()}}
    async with consumer(coordinator) as one, processing(one, handler, **options):
        await until(lambda: len(log.ended) == 8 and idle(one))
        await one.commit()
        assert {at.offset for at in (await one.committed()).values()} == {3}


async def test_a_plain_handler_runs_in_threads(coordinator: Coordinator) -> None:
    fill(coordinator, 5)
    together, names = threading.Barrier(8), set[str]()

    def handler(_: Record) -> None:
        names.add(threading.current_thread().name)
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(1)

    async with consumer(coordinator) as one, processing(one, handler, concurrency=8):
        await until(lambda: (figures := one.metrics().processing) is not None and figures.records_done == 20)
    assert len(names) == 8
    assert threading.main_thread().name not in names


async def test_a_handler_may_run_in_processes(coordinator: Coordinator) -> None:
    fill(coordinator, 5)
    with ProcessPoolExecutor(2) as executor:
        async with consumer(coordinator) as one, processing(one, abs_of, executor=executor, concurrency=4):
            await until(
                lambda: (figures := one.metrics().processing) is not None and figures.records_done == 20
            )


def abs_of(record: Record) -> int:
    """Something for another process."""
    return abs(int(record.value))


async def test_a_slow_partition_leaves_room_for_the_others(coordinator: Coordinator) -> None:
    fill(coordinator, 200)
    log, hold = Log(), asyncio.Event()

    async def handler(record: Record) -> None:
        if record.partition == 0:
            await hold.wait()
        await log(record)

    options = {"order": "partition", "max_waiting_records": 40, "concurrency": 8}
    async with consumer(coordinator) as one, processing(one, handler, **options):
        await until(lambda: len(log.ended) == 600)
        figures = one.metrics().processing
        assert figures is not None
        assert figures.records_waiting <= 10
        hold.set()
        await until(lambda: log.once_each(200))


async def test_stop_lets_handlers_end(coordinator: Coordinator) -> None:
    fill(coordinator, 3)
    log, began = Log(), asyncio.Event()

    async def handler(record: Record) -> None:
        began.set()
        await asyncio.sleep(0.2)
        await log(record)

    one = consumer(coordinator)
    await one.start()
    task = asyncio.create_task(one.process(handler, concurrency=2))
    await began.wait()
    await one.stop()
    await task
    assert len(log.ended) == 2
    done = Counter(record.partition for record in log.ended)
    async with consumer(coordinator) as two:
        committed = {place[1]: at.offset for place, at in (await two.committed()).items() if at.offset}
    assert sum(committed.values()) <= done.total()


async def test_a_handler_cannot_stop_its_consumer_nor_ask_for_records(coordinator: Coordinator) -> None:
    fill(coordinator, 1, partitions=1)
    errors = list[str]()

    async def handler(_: Record) -> None:
        for call in (one.stop, one.getone, lambda: one.process(print)):
            with pytest.raises(RuntimeError) as raised:
                await call()
            errors.append(str(raised.value))

    async with consumer(coordinator) as one, processing(one, handler):
        await until(lambda: len(errors) == 3)
    assert ["cannot stop" in errors[0], "another task" in errors[1], "runs already" in errors[2]] == [
        True
    ] * 3


async def test_seek_in_the_middle_of_it(coordinator: Coordinator) -> None:
    fill(coordinator, 20, partitions=1)
    log, hold = Log(), asyncio.Event()

    async def handler(record: Record) -> None:
        await hold.wait()
        await log(record)

    async with consumer(coordinator) as one, processing(one, handler, concurrency=2):
        await until(
            lambda: (figures := one.metrics().processing) is not None and figures.records_running == 2
        )
        one.seek(("t", 0), 15)
        hold.set()
        await until(lambda: {15, 16, 17, 18, 19} <= {record.offset for record in log.ended} and idle(one))
        await one.commit()
        assert (await one.committed())["t", 0].offset == 20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"concurrency": 0}, "concurrency has to be above 0"),
        ({"order": "keys"}, "order has to be one of"),
        ({"failures": {ValueError: "skip"}}, "ValueError"),
        ({"failures": {"ValueError": Skip()}}, "no type of exception"),
        ({"record_timeout_s": -1}, "timeout_s"),
        ({"max_waiting_records": 0}, "max_waiting_records"),
    ],
)
async def test_options_that_cannot_work(
    coordinator: Coordinator, options: dict[str, Any], sentence: str
) -> None:
    async with consumer(coordinator) as one:
        with pytest.raises(ValueError, match=sentence):
            await one.process(print, **options)
        with pytest.raises(TypeError, match="did you mean 'concurrency'"):
            await one.process(print, concurency=3)  # type: ignore[call-arg]


def test_a_blocking_consumer_processes_in_threads(coordinator: Coordinator) -> None:
    fill(coordinator, 10)
    seen, errors = list[Record](), list[BaseException]()
    enough = threading.Event()

    def handler(record: Record) -> None:
        try:
            with pytest.raises(RuntimeError, match="cannot stop"):
                one.stop()
        except BaseException as error:
            errors.append(error)
        seen.append(record)
        if len(seen) == 40:
            enough.set()

    with SyncGroupConsumer(
        coordinator.bootstrap, "g", "t", auto_offset_reset="earliest", session_timeout_ms=6_000
    ) as one:
        thread = threading.Thread(target=one.process, args=(handler,), kwargs={"concurrency": 4})
        thread.start()
        assert enough.wait(PATIENCE_S)
        one.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert not errors
    assert len({(record.partition, record.offset) for record in seen}) == len(seen) == 40


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Threads of handlers end with `process`."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("process"):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
