"""Retry topics: a failed record waits in a topic, the others go on, and it comes to the same handler."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ringleader import (
    GroupConsumer,
    Producer,
    Record,
    RecordTooLargeError,
    Retry,
    Skip,
    Stop,
    SyncProducer,
    dead_letters,
    retry_topics,
)
from ringleader.clients.process.dead_letters import origin_of
from ringleader.testing.coordinator import Coordinator
from tests.clients.process.test_process import idle, processing
from tests.support.consuming import PATIENCE_S, consumer, until
from tests.support.daemon import Daemon
from tests.support.retry_script import DELAYS_S, TOPIC

NAMES = ["t.retry.0.05s", "t.retry.0.1s"]
HOUR_MS = 3_600_000


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 4, "dead": 1, "far.3600s": 2, **dict.fromkeys(NAMES, 2)}) as found:
        yield found


class Failing:
    """A handler that keeps what it was called with, and fails the first times that a record comes."""

    def __init__(self, times: int) -> None:
        self.calls: dict[Any, list[tuple[float, Record]]] = defaultdict(list)
        self.done: list[Record] = []
        self._times = times

    async def __call__(self, record: Record) -> None:
        calls = self.calls[record.topic, record.partition, record.offset]
        calls.append((time.time(), record))
        if len(calls) <= self._times:
            raise ValueError(f"call {len(calls)}")
        self.done.append(record)


def header(record: Record, name: str) -> str:
    return (dict(record.headers)[name] or b"").decode()


@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
@pytest.mark.parametrize("before", [False, True])
async def test_a_record_comes_again_when_it_is_due_as_it_was(
    coordinator: Coordinator, kind: str, before: bool
) -> None:
    """With a Retry before, too."""
    coordinator.produce("t", b"first", b"v", key=b"k", partition=3, headers=[("own", b"1")], timestamp_ms=77)
    handler = Failing(times=4 if before else 2)
    made: Any = {"Producer": Producer, "SyncProducer": SyncProducer}[kind](coordinator.bootstrap)
    await asyncio.to_thread(made.start) if kind == "SyncProducer" else await made.start()
    policy: Any = retry_topics(made, "t.retry", delays_s=(0.05, 0.1))
    assert policy.topics == tuple(NAMES)
    failures = {ValueError: Retry(times=1, backoff_ms=1, backoff_max_ms=1, then=policy) if before else policy}
    async with (
        consumer(coordinator, topics=["t", *policy.topics]) as one,
        processing(one, handler, failures=failures),
    ):
        await until(lambda: len(handler.done) == 2 and idle(one))
        figures = one.metrics().processing
        assert figures is not None
        assert (figures.records_put_off, figures.records_done, figures.dead_letters) == (4, 6, 0)
        await one.commit()
        assert (await one.committed())["t", 3].offset == 2
    await asyncio.to_thread(made.stop) if kind == "SyncProducer" else await made.stop()
    assert set(handler.calls) == {("t", 3, 0), ("t", 3, 1)}
    for offset in (0, 1):
        calls = handler.calls["t", 3, offset]
        assert len(calls) == (5 if before else 3)
        for at_s, record in calls:
            assert (record.key, record.value) == (b"k", [b"first", b"v"][offset])
            assert (record.timestamp_ms, header(record, "own")) == (77, "1")
            if "retry.due-ms" in dict(record.headers):
                assert at_s * 1000 >= int(header(record, "retry.due-ms"))
        last = calls[-1][1]
        assert (header(last, "retry.attempt"), header(last, "retry.topic")) == ("2", "t")
        assert header(last, "retry.error") == "builtins.ValueError"
        assert len(last.headers) == len(dict(last.headers))  # those of the first attempt are not left


async def test_attempts_elsewhere_are_none_of_this_policy(coordinator: Coordinator) -> None:
    """An application that writes a record on has copied its headers, too."""
    copied = [("retry.attempt", b"2"), ("retry.tries", b"9"), ("retry.topic", b"u")]
    coordinator.produce("t", b"v", partition=3, headers=copied)
    handler = Failing(times=1)
    async with Producer(coordinator.bootstrap) as producer:
        policy = retry_topics(producer, "t.retry", delays_s=(0.05, 0.1))
        async with (
            consumer(coordinator, topics=["t", *policy.topics]) as one,
            processing(one, handler, failures={ValueError: policy}) as task,
        ):
            await until(lambda: task.done() or len(handler.done) == 1)
    [again] = coordinator.records(NAMES[0])
    found = {name: value for name, value in again.headers if name in ("retry.attempt", "retry.tries")}
    assert found == {"retry.attempt": b"1", "retry.tries": b"1"}


@pytest.mark.parametrize("then", ["letter", "skip", "stop"])
async def test_after_the_last_delay(coordinator: Coordinator, then: str) -> None:
    coordinator.produce("t", b"v", key=b"k", partition=3, headers=[("own", b"1")])
    handler = Failing(times=100)
    async with Producer(coordinator.bootstrap) as producer:
        policies: dict[str, Any] = {"letter": dead_letters(producer, "dead"), "skip": Skip(), "stop": Stop()}
        policy = retry_topics(producer, "t.retry", delays_s=(0.05, 0.1), then=policies[then])
        async with consumer(coordinator, topics=["t", *policy.topics]) as one:
            if then == "stop":
                with pytest.raises(ValueError, match="call 3"):
                    await one.process(handler, failures={ValueError: policy})
                return
            async with processing(one, handler, failures={ValueError: policy}):
                await until(lambda: (now := one.metrics().processing) is not None and now.records_done == 3)
                figures = one.metrics().processing
                assert figures is not None
                assert (figures.dead_letters, figures.records_skipped) == (then == "letter", then == "skip")
    if then == "letter":
        [letter] = coordinator.records("dead")
        found = Record(*(getattr(letter, name) for name in Record._fields))
        assert origin_of(found) == ("t", 3, 0)
        assert (header(found, "dead-letter.tries"), header(found, "own")) == ("3", "1")
        assert not [name for name, _ in found.headers if name.startswith("retry.")]


async def test_what_is_not_due_stays_in_the_log_and_holds_its_partition_alone(
    coordinator: Coordinator,
) -> None:
    """The member counts as polled meanwhile, and nothing of what waits is kept in memory."""
    now_ms = int(time.time() * 1000)
    for number, due_ms in enumerate((now_ms - 5, now_ms - 4, now_ms + HOUR_MS, now_ms - 3)):
        headers = [("retry.due-ms", b"%d" % due_ms), ("retry.attempt", b"1")]
        coordinator.produce("far.3600s", b"%d" % number, partition=0, headers=headers)
    coordinator.produce(
        "far.3600s", b"far", partition=1, headers=[("retry.due-ms", b"%d" % (now_ms + HOUR_MS))]
    )
    handler = Failing(times=0)
    async with Producer(coordinator.bootstrap) as producer:
        policy = retry_topics(producer, "far", delays_s=[3600])
        async with (
            consumer(coordinator, topics=["t", *policy.topics], max_poll_interval_ms=400) as one,
            processing(one, handler, failures={ValueError: policy}),
        ):
            await until(lambda: len(handler.done) == 2)
            for number in range(10):
                coordinator.produce("t", b"t%d" % number, partition=number % 4)
                await until(lambda: len(handler.done) == 3 + number)  # noqa: B023
            beats, handed_out = one.metrics().member.heartbeats, one.metrics().records
            await until(lambda: one.metrics().member.heartbeats > beats + 20)
            assert one.metrics().member.poll_expirations == 0
            assert one.metrics().records == handed_out
            assert idle(one)
            await one.commit()
            committed = {place: at.offset for place, at in (await one.committed()).items()}
            assert (committed["far.3600s", 0], committed["far.3600s", 1]) == (2, 0)
            one.seek(("far.3600s", 0), 3)
            await until(lambda: len(handler.done) == 13)
    assert [record.value for record in handler.done[:2]] == [b"0", b"1"]
    assert handler.done[-1].value == b"3"


async def test_what_no_deserializer_takes_waits_and_comes_again(coordinator: Coordinator) -> None:
    coordinator.produce("t", b"x1", key=b"k", partition=0)
    calls: Counter[bytes] = Counter()
    called_s: list[float] = []

    def read(data: bytes) -> int:
        calls[data] += 1
        called_s.append(time.time())
        if calls[data] < 4:
            raise ValueError("not yet")
        return int(data[1:])

    handler = Failing(times=0)
    async with Producer(coordinator.bootstrap) as producer:
        policy = retry_topics(producer, "t.retry", delays_s=(0.05, 0.1))
        async with (
            consumer(coordinator, topics=["t", *policy.topics], value_deserializer=read) as one,
            processing(one, handler, failures={Exception: policy}),
        ):
            await until(lambda: len(handler.done) == 1)
    [record] = handler.done
    assert (record.topic, record.offset, record.value) == ("t", 0, 1)
    assert calls[b"x1"] >= 4


async def test_a_partition_that_goes_takes_its_wait_along(coordinator: Coordinator) -> None:
    """Another member gets the record when it is due."""
    coordinator.produce("t", b"v", partition=0)
    handlers = Failing(times=1), Failing(times=0)
    async with Producer(coordinator.bootstrap) as producer:
        policy = retry_topics(producer, "t.retry", delays_s=(0.05, 0.1))
        topics = ["t", *policy.topics]
        first = consumer(coordinator, "a", topics=topics)
        await first.start()
        async with processing(first, handlers[0], failures={ValueError: policy}):
            await until(lambda: bool(handlers[0].calls))
            async with (
                consumer(coordinator, "b", topics=topics) as second,
                processing(second, handlers[1], failures={ValueError: policy}),
            ):
                await second.wait_assigned(PATIENCE_S)
                await first.stop()
                await until(lambda: bool(handlers[0].done or handlers[1].done))


async def test_a_record_that_cannot_be_put_off_is_not_done(coordinator: Coordinator) -> None:
    coordinator.produce("t", b"x" * 2_000, partition=0)
    async with Producer(coordinator.bootstrap, max_request_size=1_000) as producer:
        policy = retry_topics(producer, "t.retry", delays_s=(0.05, 0.1))
        async with consumer(coordinator, topics=["t", *policy.topics]) as one:
            with pytest.raises(RecordTooLargeError):
                await one.process(Failing(times=1), failures={ValueError: policy})
            await one.commit()
            assert (await one.committed())["t", 0].offset == 0


@pytest.mark.parametrize("reset", ["latest", "by_duration:PT1H"])
async def test_its_consumer_begins_at_the_beginning(coordinator: Coordinator, reset: str) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        policy = retry_topics(producer, "t.retry")
        assert policy.topics == ("t.retry.10s", "t.retry.60s", "t.retry.600s")
        async with GroupConsumer(
            coordinator.bootstrap, "g", ["t", *policy.topics], auto_offset_reset=reset
        ) as one:
            with pytest.raises(ValueError, match='auto_offset_reset="earliest"'):
                await one.process(lambda record: None, failures={ValueError: Retry(then=policy)})
        for wrong in ([], [0], [-1], ["1"], [float("inf")]):
            with pytest.raises(ValueError, match="delay"):
                retry_topics(producer, "t.retry", delays_s=wrong)  # type: ignore[arg-type]


async def test_killed_workers_lose_no_record_that_waits(tmp_path: Path, seed: int) -> None:
    """The daemon and its consumers are processes; consumers are killed while records wait."""
    rng, count = Random(seed), 120
    names = [f"{TOPIC}.{delay_s!r}s" for delay_s in DELAYS_S]
    with Daemon(tmp_path, topics=["t:3", *(f"{name}:2" for name in names)]) as daemon:
        async with Producer(daemon.bootstrap) as producer:
            for number in range(count):
                await producer.send("t", b"%d" % number, key=b"%d" % (number % 10), partition=number % 3)
        lines: list[tuple[int, int, int]] = []
        news = asyncio.Event()
        running: list[tuple[asyncio.subprocess.Process, asyncio.Task[None]]] = []

        async def read(process: asyncio.subprocess.Process) -> None:
            assert process.stdout is not None
            async for line in process.stdout:
                if line.endswith(b"\n"):
                    partition, offset, attempt = map(int, line.split())
                    lines.append((partition, offset, attempt))
                news.set()

        async def start() -> None:
            command = [sys.executable, "-m", "tests.support.retry_script", daemon.bootstrap, "w"]
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            running.append((process, asyncio.create_task(read(process))))

        async def kill() -> None:
            process, reading = running.pop(rng.randrange(len(running)))
            process.kill()
            await reading
            await process.wait()

        async def done(attempt: int, most: int) -> None:
            async with asyncio.timeout(2 * PATIENCE_S):
                while len({line[:2] for line in lines if line[2] == attempt}) < most:
                    news.clear()
                    await news.wait()

        try:
            await start()
            await start()
            for attempt, most in ((0, count // 3), (1, count // 3), (2, count // 3)):
                await done(attempt, most)
                await kill()
                await start()
            await done(len(DELAYS_S), count)
        finally:
            while running:
                await kill()
