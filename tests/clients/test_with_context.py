"""Serializers and deserializers that get a context, and those that wait: for a registry, say."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from ringleader import (
    DeserializerUnavailableError,
    PartitionConsumer,
    Producer,
    RecordDeserializationError,
    Retry,
    SendTimeoutError,
    SerializationContext,
    SerializationError,
    SyncProducer,
    WithContext,
)
from ringleader.clients.errors import RequestTimedOutError, RetriableError
from ringleader.testing.coordinator import Coordinator
from tests.clients.process.test_process import processing
from tests.clients.test_bad_records import KINDS, Reads
from tests.support.consuming import PATIENCE_S, consumer, until
from tests.support.served import happens

SOON: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


class Registry:
    """Something that a deserializer needs, which is there or not."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.requested = asyncio.Event()
        self.calls: Counter[Any] = Counter()
        self.away: BaseException | None = None

    async def read(self, data: bytes, context: SerializationContext) -> str:
        """Waits until it is there, or raises what `away` is."""
        self.calls[data] += 1
        self.requested.set()
        if self.away is not None:
            raise self.away
        await self.there.wait()
        return f"{context.topic}:{data.decode()}"


def together(data: Any, context: SerializationContext) -> Any:
    return data, context.topic, context.field, list(context.headers)


async def together_later(data: Any, context: SerializationContext) -> Any:
    await asyncio.sleep(0)
    return together(data, context)


@pytest.mark.parametrize("call", [together, together_later])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_deserializer_gets_topic_field_and_headers(
    coordinator: Coordinator, kind: str, call: Any
) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        await producer.send_and_wait("t", b"v", key=b"k", partition=0, headers=[("a", b"1"), ("a", None)])
        await producer.send_and_wait("t", None, key=b"gone", partition=0)
    one = WithContext(call)
    reads = Reads(kind, coordinator, key_deserializer=one, value_deserializer=one)
    await reads.call("start")
    try:
        headers = [("a", b"1"), ("a", None)]
        found: list[Any] = []
        while len(found) < 2:
            batches = await reads.call("getmany", timeout_s=PATIENCE_S)
            found += [(record.key, record.value) for batch in batches for record in batch]
        assert found == [
            ((b"k", "t", "key", headers), (b"v", "t", "value", headers)),
            ((b"gone", "t", "key", []), None),
        ]
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", KINDS)
async def test_one_that_does_not_wait_runs_where_records_are_asked_for(
    coordinator: Coordinator, kind: str
) -> None:
    threads = []

    def read(data: bytes, _: SerializationContext) -> bytes:
        threads.append(threading.current_thread())
        return data

    coordinator.produce("t", b"v", partition=0)
    reads = Reads(kind, coordinator, value_deserializer=WithContext(read))
    await reads.call("start")
    try:
        assert await reads.ask() == [0]
        here = reads.thread.submit(threading.current_thread).result() if reads.blocks else None
        assert threads == [here or threading.current_thread()]
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("away", ["raises", "is slow"])
@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_wrong_with_a_record_whose_deserializer_is_not_available(
    coordinator: Coordinator, kind: str, away: str
) -> None:
    registry = Registry()
    registry.away = RetriableError("no registry") if away == "raises" else None
    coordinator.produce("t", b"v", key=b"k", partition=0, headers=[("h", b"1")])
    one = WithContext(registry.read, timeout_s=0.02)
    reads = Reads(kind, coordinator, value_deserializer=one)
    await reads.call("start")
    try:
        for _ in range(2):
            with pytest.raises(DeserializerUnavailableError, match="t-0 at offset 0: the value") as raised:
                await reads.ask()
            error = raised.value
            assert isinstance(error, RetriableError)
            assert not isinstance(error, RecordDeserializationError)
            expected = registry.away or RequestTimedOutError
            assert error.__cause__ is expected or isinstance(error.__cause__, RequestTimedOutError)
            assert (error.key, error.value, list(error.headers)) == (b"k", b"v", [("h", b"1")])
        registry.away = None
        registry.there.set()
        assert await reads.ask() == [0]
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_timeout_of_the_deserializers_own_is_its_record_s(
    coordinator: Coordinator, kind: str
) -> None:
    registry = Registry()
    registry.away = TimeoutError("mine")
    coordinator.produce("t", b"v", partition=0)
    reads = Reads(kind, coordinator, value_deserializer=WithContext(registry.read))
    await reads.call("start")
    try:
        with pytest.raises(RecordDeserializationError, match="mine") as raised:
            await reads.ask()
        await reads.call("skip", raised.value)
    finally:
        await reads.call("stop")


async def test_what_waits_holds_no_other_partition_and_not_the_loop(coordinator: Coordinator) -> None:
    """All partitions wait at the same time, and what came before the one that waits is handed out."""
    for partition in range(4):
        coordinator.produce("t", b"good" if partition % 2 else b"bad", partition=partition)
    together = asyncio.Barrier(4)

    async def read(data: bytes, _: SerializationContext) -> bytes:
        await together.wait()
        if data == b"bad":
            await asyncio.Event().wait()
        return data

    one = WithContext(read, timeout_s=0.5)
    where = [("t", partition) for partition in range(4)]
    async with PartitionConsumer(
        coordinator.bootstrap, where, auto_offset_reset="earliest", value_deserializer=one
    ) as reader:
        states = reader._reader.states.values() if reader._reader else ()
        await until(lambda: len([state for state in states if state.buffer]) == 4)
        batches = await reader.getmany(timeout_s=PATIENCE_S)
        assert [batch.values for batch in batches] == [[b"good"]] * 2
        for _ in range(2):
            with pytest.raises(DeserializerUnavailableError):
                await reader.getmany(timeout_s=PATIENCE_S)


@pytest.mark.parametrize("end", ["cancelled", "sought", "stopped"])
async def test_what_happens_while_a_deserializer_waits(coordinator: Coordinator, end: str) -> None:
    registry = Registry()
    for number in range(3):
        coordinator.produce("t", b"%d" % number, partition=0)
    one = PartitionConsumer(
        coordinator.bootstrap,
        [("t", 0)],
        auto_offset_reset="earliest",
        value_deserializer=WithContext(registry.read),
    )
    await one.start()
    try:
        asking = asyncio.create_task(one.getmany(timeout_s=PATIENCE_S))
        await registry.requested.wait()
        with pytest.raises(RuntimeError, match="another task is asking"):
            await one.getone()
        if end == "cancelled":
            asking.cancel()
            await asyncio.wait([asking])
            registry.there.set()
            [batch] = await one.getmany(timeout_s=PATIENCE_S)
            assert batch.values == ["t:0", "t:1", "t:2"]
        elif end == "sought":
            one.seek(("t", 0), 2)
            registry.there.set()
            [batch] = await asking
            assert batch.values == ["t:2"]
        else:
            await one.stop()
            registry.there.set()
            [batch] = await asking  # it was in the application's hands, and counts as not processed
            assert batch.values == ["t:0", "t:1", "t:2"]
    finally:
        await one.stop()


async def test_process_asks_again_as_its_policy_says(coordinator: Coordinator) -> None:
    """Other partitions go on meanwhile."""
    registry = Registry()
    registry.away = RetriableError("no registry")
    coordinator.produce("t", b"here", partition=0)
    coordinator.produce("t", b"good", partition=1)

    async def read(data: bytes, context: SerializationContext) -> str:
        return "good" if data == b"good" else await registry.read(data, context)

    done: list[Any] = []

    async def handler(record: Any) -> None:
        done.append(record.value)

    failures = {RetriableError: Retry(times=1_000, backoff_ms=1, backoff_max_ms=5)}
    async with (
        consumer(coordinator, value_deserializer=WithContext(read)) as one,
        processing(one, handler, failures=failures),
    ):
        await until(lambda: registry.calls[b"here"] >= 5 and done == ["good"])
        registry.away = None
        registry.there.set()
        await until(lambda: done == ["good", "t:here"])


async def test_each_record_has_the_tries_of_its_policy(coordinator: Coordinator) -> None:
    """A registry that is away once for each of them is away three times in a row."""
    for number in range(3):
        coordinator.produce("t", b"%d" % number, partition=0)
    calls, done = Counter[bytes](), list[Any]()

    async def read(data: bytes, _: SerializationContext) -> bytes:
        calls[data] += 1
        if calls[data] == 1:
            raise RetriableError("no registry")
        return data

    async def handler(record: Any) -> None:
        done.append(record.value)

    failures = {RetriableError: Retry(times=1, backoff_ms=1, backoff_max_ms=1)}
    async with (
        consumer(coordinator, value_deserializer=WithContext(read)) as one,
        processing(one, handler, failures=failures) as task,
    ):
        await until(lambda: task.done() or len(done) == 3)
        assert sorted(done) == [b"0", b"1", b"2"]


async def test_a_partition_whose_deserializer_is_away_is_held_alone(coordinator: Coordinator) -> None:
    """It is not asked before the pause is over, however often the others are."""
    registry = Registry()
    registry.away = RetriableError("no registry")
    coordinator.produce("t", b"here", partition=0)

    async def read(data: bytes, context: SerializationContext) -> bytes:
        return data if context.headers else (await registry.read(data, context)).encode()

    done = asyncio.Queue[bytes]()

    async def handler(record: Any) -> None:
        done.put_nowait(record.value)

    failures = {RetriableError: Retry(times=1_000, backoff_ms=600_000, backoff_max_ms=600_000)}
    async with (
        consumer(coordinator, value_deserializer=WithContext(read)) as one,
        processing(one, handler, failures=failures),
    ):
        await registry.requested.wait()
        for number in range(20):
            coordinator.produce("t", b"%d" % number, partition=number % 3 + 1, headers=[("h", b"")])
            async with asyncio.timeout(PATIENCE_S):
                assert await done.get() == b"%d" % number
        assert registry.calls[b"here"] == 1


@pytest.mark.parametrize("policy", ["none", "retry"])
async def test_process_ends_when_a_deserializer_stays_away(coordinator: Coordinator, policy: str) -> None:
    registry = Registry()
    registry.away = RetriableError("no registry")
    coordinator.produce("t", b"here", partition=0)
    failures = {} if policy == "none" else {RetriableError: Retry(times=2, backoff_ms=1, backoff_max_ms=1)}
    async with consumer(coordinator, value_deserializer=WithContext(registry.read)) as one:
        with pytest.raises(DeserializerUnavailableError):
            await one.process(lambda record: None, failures=failures)
        assert registry.calls[b"here"] == (1 if policy == "none" else 3)
        await one.commit()
        assert (await one.committed())["t", 0].offset == 0


# ---- producers ----


class Sends:
    """The calls of both kinds of producers."""

    def __init__(self, kind: str, coordinator: Coordinator, **options: Any) -> None:
        made = {"Producer": Producer, "SyncProducer": SyncProducer}[kind]
        self.producer: Any = made(coordinator.bootstrap, **SOON, **options)

    async def call(self, name: str, *args: Any, **named: Any) -> Any:
        found = await asyncio.to_thread(getattr(self.producer, name), *args, **named)
        return await found if asyncio.iscoroutine(found) else found


async def read_all(coordinator: Coordinator, count: int) -> list[tuple[Any, Any, Any]]:
    found: list[tuple[Any, Any, Any]] = []
    async with PartitionConsumer(coordinator.bootstrap, ["t"], auto_offset_reset="earliest") as one:
        while len(found) < count:
            batches = await one.getmany(timeout_s=PATIENCE_S)
            found += [(one.key, one.value, tuple(one.headers)) for batch in batches for one in batch]
    return found


@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_serializer_gets_topic_field_and_headers_and_adds_some(
    coordinator: Coordinator, kind: str, waits: bool
) -> None:
    def write(given: str, context: SerializationContext) -> bytes:
        context.headers.append((context.field, given.encode()))
        return f"{context.topic}/{context.field}/{given}".encode()

    async def write_later(given: str, context: SerializationContext) -> bytes:
        await asyncio.sleep(0)
        return write(given, context)

    one = WithContext(write_later if waits else write)
    sends = Sends(kind, coordinator, key_serializer=one, value_serializer=one)
    await sends.call("start")
    own = [("own", b"1")]
    await sends.call("send_and_wait", "t", "v", key="k", partition=0, headers=own)
    await sends.call("send_and_wait", "t", None, key="k", partition=0)
    await sends.call("stop")
    assert own == [("own", b"1")]
    assert await read_all(coordinator, 2) == [
        (b"t/key/k", b"t/value/v", (("own", b"1"), ("key", b"k"), ("value", b"v"))),
        (b"t/key/k", None, (("key", b"k"),)),
    ]


async def test_records_keep_the_order_of_the_calls_while_a_serializer_waits(
    coordinator: Coordinator,
) -> None:
    first, entered = asyncio.Event(), list[str]()

    async def write(given: str, _: SerializationContext) -> bytes:
        entered.append(given)
        if given == "0":
            await first.wait()
        return given.encode()

    async with Producer(coordinator.bootstrap, value_serializer=WithContext(write)) as producer:
        sends = [asyncio.create_task(producer.send_and_wait("t", str(n), partition=0)) for n in range(5)]
        assert not await happens(lambda: len(entered) > 1)
        assert entered == ["0"]
        first.set()
        assert [(await sent).offset for sent in sends] == [0, 1, 2, 3, 4]
    assert [value for _, value, _ in await read_all(coordinator, 5)] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
async def test_a_serializer_that_is_not_available_is_asked_again(coordinator: Coordinator, kind: str) -> None:
    calls: Counter[str] = Counter()

    def write(given: str, context: SerializationContext) -> bytes:
        calls[given] += 1
        context.headers.append(("call", b"%d" % calls[given]))
        if calls[given] < 3:
            raise RetriableError("no registry")
        return given.encode()

    sends = Sends(kind, coordinator, value_serializer=WithContext(write))
    await sends.call("start")
    await sends.call("send_and_wait", "t", "v", partition=0)
    await sends.call("stop")
    assert await read_all(coordinator, 1) == [(None, b"v", (("call", b"3"),))]


@pytest.mark.parametrize("away", ["raises", "is slow", "waits for another"])
@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
async def test_a_serializer_that_stays_away_is_not_waited_for_longer_than_max_block_ms(
    coordinator: Coordinator, kind: str, away: str
) -> None:
    async def write(given: str, _: SerializationContext) -> bytes:
        if away == "raises":
            raise RetriableError("no registry")
        await asyncio.Event().wait()
        return b""

    limit_s = 0.02 if away == "is slow" else 60.0
    one = WithContext(write, timeout_s=limit_s)
    sends = Sends(kind, coordinator, value_serializer=one, max_block_ms=500)
    await sends.call("start")
    why = {"raises": "no registry", "is slow": "did not end within 0.02 s", "waits for another": "500 ms"}
    for _ in range(2):
        with pytest.raises(SendTimeoutError, match=why[away]):
            await sends.call("send_and_wait", "t", "v")
    await sends.call("stop")
    assert sends.producer.metrics().records == 0


@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
async def test_what_a_serializer_refuses_is_not_tried_again(coordinator: Coordinator, kind: str) -> None:
    calls: list[Any] = []

    async def write(given: str, _: SerializationContext) -> bytes:
        calls.append(given)
        raise ValueError("no")

    sends = Sends(kind, coordinator, value_serializer=WithContext(write))
    await sends.call("start")
    with pytest.raises(SerializationError, match="ValueError") as raised:
        await sends.call("send_and_wait", "t", "v")
    assert (raised.value.origin, calls) == ("value", ["v"])
    await sends.call("stop")


async def test_a_call_that_is_cancelled_in_its_serializer_sends_nothing(coordinator: Coordinator) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def write(given: str, _: SerializationContext) -> bytes:
        begun.set()
        await go_on.wait()
        return given.encode()

    async with Producer(coordinator.bootstrap, value_serializer=WithContext(write)) as producer:
        first = asyncio.create_task(producer.send("t", "first", partition=0))
        await begun.wait()
        first.cancel()
        await asyncio.wait([first])
        go_on.set()
        await producer.send_and_wait("t", "second", partition=0)
    assert [value for _, value, _ in await read_all(coordinator, 1)] == [b"second"]


def test_its_parts_are_checked() -> None:
    with pytest.raises(ValueError, match="call has to be something that can be called"):
        WithContext("json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout_s is a number of seconds"):
        WithContext(together, timeout_s=-1)
