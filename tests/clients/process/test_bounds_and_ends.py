"""`consumer.process` at its bounds, and what is left when records, partitions or all of it end early."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader import GroupConsumer, Producer, Record, dead_letters
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.fetch.errors import DeserializerUnavailableError, RecordDeserializationError
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.metrics import ProcessMetrics
from ringleader.clients.model import OffsetAndMetadata
from ringleader.clients.process.lanes import Lanes, Work
from ringleader.clients.process.policies import RecordTimedOutError, Retry, Skip
from ringleader.clients.process.processing import Processing
from ringleader.clients.process.settings import ProcessSettings
from ringleader.testing.coordinator import Coordinator
from tests.clients.process.test_process import QUICK, Log, fill, idle, processing
from tests.support.consuming import PATIENCE_S, consumer, until
from tests.support.reader_world import World, from_the_start, reader
from tests.support.tables import turns


def figures(one: GroupConsumer) -> ProcessMetrics:
    """Those of the present run; nothing before it begins."""
    return one.metrics().processing or ProcessMetrics(0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("bounds", "most"),
    [
        # Four partitions share the room: each asks for more than is left of it.
        ({"max_waiting_records": 20, "concurrency": 20}, 20),
        # One at a time; two of five bytes are as many as there may be.
        ({"max_waiting_records": 8, "concurrency": 2, "max_waiting_bytes": 10}, 2),
    ],
)
async def test_no_more_is_asked_for_than_may_wait(
    coordinator: Coordinator, bounds: dict[str, Any], most: int
) -> None:
    for partition in range(4):
        for number in range(100):
            coordinator.produce("t", b"%02d" % number, key=b"%03d" % number, partition=partition)
    log, waiting = Log(), Counter[int]()

    async def handler(record: Record) -> None:
        await log(record)
        waiting[figures(one).records_waiting] += 1

    async with consumer(coordinator) as one, processing(one, handler, **bounds):
        await until(lambda: log.once_each(100))
    assert max(waiting) == most


async def test_a_record_of_a_partition_that_goes_is_not_tried_again_here(coordinator: Coordinator) -> None:
    """The handlers that the rebalance waits for raise; their records are the next owner's."""
    fill(coordinator, 5)
    release, calls = asyncio.Event(), Counter[tuple[int, int]]()

    async def handler(record: Record) -> None:
        calls[record.partition, record.offset] += 1
        await release.wait()
        if record.offset == 1:
            raise ValueError("not yet")

    options: Any = {
        "concurrency": 200,
        "order": "none",
        "failures": {ValueError: Retry(3, **QUICK, then=Skip())},
    }
    async with consumer(coordinator, "a") as one, processing(one, handler, **options):
        await until(lambda: calls.total() == 20)
        states = one._reader.states  # type: ignore[union-attr]
        async with consumer(coordinator, "b") as two:
            await until(lambda: any(state.suspended and state.running for state in states.values()))
            leaving = {place[1] for place, state in states.items() if state.suspended and state.running}
            release.set()
            # Those that stay are tried to the end, long after those that go would have been.
            await until(lambda: leaving <= {place[1] for place in two.assignment()})
            staying = {place[1] for place in one.assignment()}
            await until(lambda: all(calls[number, 1] == 4 for number in staying))
        assert {calls[number, 1] for number in leaving} == {1}


async def test_what_ended_while_a_rebalance_waited_is_not_processed_again(coordinator: Coordinator) -> None:
    fill(coordinator, 5)
    release, ended = asyncio.Event(), Counter[tuple[int, int]]()

    async def handler(record: Record) -> None:
        await release.wait()
        ended[record.partition, record.offset] += 1

    async with consumer(coordinator, "a") as one, processing(one, handler, concurrency=200, order="none"):
        await until(lambda: figures(one).records_running == 20)
        states = one._reader.states  # type: ignore[union-attr]
        async with consumer(coordinator, "b") as two:
            await until(lambda: any(state.suspended and state.running for state in states.values()))
            leaving = [place for place, state in states.items() if state.suspended and state.running]
            release.set()
            await until(lambda: set(leaving) <= set(two.assignment()))
            assert {await two.position(place) for place in leaving} == {5}
    assert set(ended.values()) == {1}


async def test_the_pause_of_a_record_ends_with_its_partition(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    fill(coordinator, 1, partitions=2)
    calls, at_drop = Counter[int](), Counter[int]()

    async def handler(record: Record) -> None:
        calls[record.partition] += 1
        if len(calls) == 2 and not at_drop:
            at_drop.update(calls)
            one._processing.drop([("t", 1 - record.partition)])  # type: ignore[union-attr]
        raise ValueError("no")

    failures = {ValueError: Retry(1_000, backoff_ms=5, backoff_max_ms=5)}
    async with consumer(coordinator) as one, processing(one, handler, failures=failures):
        # Long after the pause of the other one would have been over.
        await until(lambda: bool(at_drop) and (calls - at_drop).total() >= 5)
        assert len(calls - at_drop) == 1
    assert not [line for line in caplog.messages if "exception" in line.lower()]


async def test_the_first_exception_is_the_one_that_is_raised(coordinator: Coordinator) -> None:
    fill(coordinator, 1, partitions=2)
    both, raised = asyncio.Barrier(2), list[int]()

    async def handler(record: Record) -> None:
        await both.wait()
        raised.append(record.partition)
        raise ValueError(f"of {record.partition}")

    async with consumer(coordinator) as one:
        with pytest.raises(ValueError, match="of ") as found:
            await one.process(handler)
    assert str(found.value) == f"of {raised[0]}"
    assert len(raised) == 2


async def test_the_exception_of_a_call_that_was_given_up_is_nobody_s(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    fill(coordinator, 1, partitions=1)
    release, calls = threading.Event(), list[int]()

    def handler(record: Record) -> None:
        calls.append(record.offset)
        if len(calls) == 1:
            release.wait()
            raise ValueError("late")

    # There is one thread: the first call is over when the second one begins. (A policy that gives the record
    # up would have a line in the log, which keeps all that the exception has seen.)
    failures = {RecordTimedOutError: Retry(1_000, **QUICK)}
    options: Any = {"concurrency": 1, "record_timeout_s": 0.1, "failures": failures}
    async with consumer(coordinator) as one, processing(one, handler, **options):
        await until(lambda: figures(one).calls_failed > 0)
        release.set()
        await until(lambda: figures(one).records_done == 1)
    await turns()
    gc.collect()
    assert not [line for line in caplog.messages if "never retrieved" in line]


async def test_a_record_that_has_rested_is_the_next(coordinator: Coordinator) -> None:
    fill(coordinator, 20, partitions=1)
    calls = list[int]()

    async def handler(record: Record) -> None:
        calls.append(record.offset)
        if calls == [0]:
            raise ValueError("once")
        if calls == [0, 1]:
            await until(lambda: figures(one).records_resting == 0)

    options: Any = {"concurrency": 1, "order": "none", "failures": {ValueError: Retry(1, **QUICK)}}
    async with consumer(coordinator) as one, processing(one, handler, **options):
        await until(lambda: len(calls) == 21 and idle(one))
    assert calls == [0, 1, 0, *range(2, 20)]


async def test_records_that_nobody_can_read_are_counted(coordinator: Coordinator) -> None:
    fill(coordinator, 2, partitions=1)
    coordinator.produce("t", b"poison", key=b"k", partition=0)
    fill(coordinator, 2, partitions=1)
    log = Log()
    failures = {RecordDeserializationError: Skip()}
    async with consumer(coordinator, value_deserializer=int) as one, processing(one, log, failures=failures):
        await until(lambda: len(log.ended) == 4 and idle(one))
        counted = figures(one)
    assert (counted.records_done, counted.records_skipped, counted.calls_failed) == (5, 1, 0)


def test_records_of_a_lane_that_come_again_wait_for_the_one_that_runs() -> None:
    """A partition that was lost comes back while a handler still has one of its records."""
    lanes, place = Lanes(), ("t", 0)

    def work(offset: int) -> Work:
        state = PartitionState(place)
        record = Record("t", 0, offset, -1, None, b"k", b"", ())
        one = Work(record, state, state.progress, lane=b"k", size_bytes=1)
        lanes.add(one)
        return one

    running, waiting = work(0), work(1)
    assert lanes.next() is running
    assert lanes.drop({place}) == {waiting}
    again = work(0)
    assert lanes.next() is None
    lanes.end(running)
    assert lanes.next() is again


async def test_a_revocation_waits_for_no_handler_of_an_earlier_time() -> None:
    """A partition was lost while a handler ran, and came back."""
    place = ("t", 0)
    one = Reader(Cluster("127.0.0.1:1"), ConsumerSettings(), from_the_start)
    one.add([place])
    one.take_up(one.states[place])
    one.drop([place])
    one.add([place])
    waiting = asyncio.create_task(one.until_processed([place]))
    await asyncio.sleep(0)
    assert waiting.done()
    await one.close()


async def test_a_revocation_goes_on_when_the_records_that_it_waits_for_are_put_off() -> None:
    world, batch = World(), None
    world.append(1)
    async with reader(world) as one:
        while batch is None:
            one.something.clear()
            if (batch := await one.pick(1)) is None:
                await one.something.wait()
        waiting = asyncio.create_task(one.until_processed([batch.topic_partition]))
        await asyncio.sleep(0)
        assert not waiting.done()
        one.put_off(batch, batch.offsets[0])
        await asyncio.wait([waiting], timeout=PATIENCE_S)
        assert waiting.done()


async def test_a_dead_letter_that_fails_again_says_why_once(coordinator: Coordinator) -> None:
    coordinator.create_topic("dead", 1)
    headers = [("dead-letter.topic", b"old"), ("dead-letter.error", b"Before"), ("own", b"1")]
    async with Producer(coordinator.bootstrap) as producer:
        await producer.send_and_wait("t", b"v", key=b"k", headers=headers, partition=0)

        async def handler(_: Record) -> None:
            raise ValueError("again")

        failures = {ValueError: dead_letters(producer, "dead")}
        async with consumer(coordinator) as one, processing(one, handler, failures=failures):
            await until(lambda: figures(one).dead_letters == 1)
    [letter] = coordinator.records("dead")
    names = Counter(name for name, _ in letter.headers)
    assert set(names.values()) == {1}
    assert dict(letter.headers)["dead-letter.error"] == b"builtins.ValueError"
    assert dict(letter.headers)["own"] == b"1"


class Slow:
    """A handler that ends when its record may."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.cut: list[int] = []
        self.may_end = [asyncio.Event() for _ in range(4)]

    async def __call__(self, record: Record) -> None:
        self.began.append(record.partition)
        try:
            await self.may_end[record.partition].wait()
        except asyncio.CancelledError:
            self.cut.append(record.partition)
            raise


async def test_handlers_have_the_time_that_stop_was_given(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where `process` itself has come to its end, as it waits for them with a time of its own."""
    monkeypatch.setattr("ringleader.clients.process.processing.DRAIN_S", 0.01)
    fill(coordinator, 1)
    slow = Slow()
    async with consumer(coordinator) as one, processing(one, slow, max_waiting_records=4) as task:
        await until(lambda: len(slow.began) == 4)
        stopping = asyncio.create_task(one.stop())
        for event in slow.may_end:
            await asyncio.wait((task, stopping), timeout=0.05)
            event.set()
        await stopping
        await task
    assert slow.cut == []
    assert coordinator.committed("g") == {("t", partition): 1 for partition in range(4)}


async def test_process_ends_though_stop_was_given_up(coordinator: Coordinator) -> None:
    """It waits for records that nobody will write."""
    coordinator.produce("t", b"0")
    slow = Slow()
    async with consumer(coordinator) as one, processing(one, slow) as task:
        await until(lambda: slow.began == [0])
        stopping = asyncio.create_task(one.stop())
        await turns()
        stopping.cancel()
        await asyncio.wait((stopping,))
        slow.may_end[0].set()
        await asyncio.wait_for(task, PATIENCE_S)
    assert slow.cut == []


def alone(state: PartitionState, **failures: Any) -> Processing:
    """A run that reads nothing by itself."""
    reads: Any = SimpleNamespace(
        states={state.topic_partition: state}, hold=lambda *_: None, fill=lambda *_: None
    )

    async def handler(_: Record) -> None: ...

    return Processing("g", reads, handler, ProcessSettings(**failures), Counter())


async def test_each_record_has_all_tries_of_its_deserializer() -> None:
    state, policy = PartitionState(("t", 0)), Retry(2, **QUICK)
    one = alone(state)

    def again(offset: int) -> bool:
        error = DeserializerUnavailableError("t", 0, offset, "value", b"k", b"v", OSError("away"))
        return one._retried_later(error, policy)

    assert [again(offset) for offset in (0, 7, 7, 7)] == [True, True, True, False]
    assert again(7), "it was given up, and comes again"
    assert again(7)
    one.drop([("t", 0)])
    assert again(7), "another share has the partition"
    one.drop([("t", 0)])


async def test_the_pauses_of_one_record_grow(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ringleader.clients.consumer")
    state = PartitionState(("t", 0))
    state.suspended = True
    one = alone(state, failures={ValueError: Retry(9, backoff_ms=1_000, backoff_max_ms=60_000)})
    work = Work(Record("t", 0, 0, 1, None, None, b"v", ()), state, state.progress, None, 1)
    one._lanes.add(work)
    assert one._lanes.next() is work
    for _ in range(4):
        await one._settled(work, ValueError("not yet"))
        work.began = True
    pauses_s = [float(line.split(" in ")[1].split(" s")[0]) for line in caplog.messages]
    assert pauses_s[0] <= 1.2
    assert pauses_s[3] >= 6.4


async def test_records_that_were_handed_out_and_not_begun_do_not_count_as_processed() -> None:
    state = PartitionState(("t", 0))
    state.set_position(0)
    one = alone(state)
    state.position, state.in_hand = 5, True
    one._changed.add(state)
    one.reach()
    assert state.consumed == OffsetAndMetadata(0)
