"""Producers whose application is cancelled or interrupted anywhere: what was accepted is written once, in
order, and they go on."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from ringleader import Producer, SyncProducer, WithContext
from ringleader.testing.coordinator import Coordinator
from tests.clients.test_every_await import WAYS, CancelledAt
from tests.support.consuming import PATIENCE_S
from tests.support.interrupting import InterruptedByTestError, interrupts

CALLS = ("send", "send to a new topic", "send without room", "send and wait", "serialize", "flush")


def values(coordinator: Coordinator) -> list[bytes]:
    return [record.value or b"" for record in coordinator.records("t")]


async def later(given: bytes, _: object) -> bytes:
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return given


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_is_cancelled_anywhere(coordinator: Coordinator, call: str, way: str) -> None:
    """At each of its awaits in turn, until one has none left. A record of a cancelled `send` is not written;
    one of `send_and_wait` may be."""
    options: dict[str, Any] = {"linger_ms": 1}
    if call == "send without room":
        options |= {"buffer_memory": 600, "batch_size": 100}
    if call == "serialize":
        options["value_serializer"] = WithContext(later)
    expected: list[bytes] = []
    maybe: set[bytes] = set()
    number, reached = 0, True
    while reached:
        async with Producer(coordinator.bootstrap, **options) as producer:
            if call != "send to a new topic":
                await producer.partitions("t")
            value = b"%d" % number
            if call in ("flush", "send without room"):
                for one in range(2):
                    expected.append(b"%d before %d" % (one, number) + b"." * 200)
                    await producer.send("t", expected[-1], partition=0)
            work: Any
            if call == "flush":
                work = producer.flush()
            else:
                send = producer.send_and_wait if call == "send and wait" else producer.send
                work = send("t", value + b"." * 200, partition=0)
            cancelled = CancelledAt(work, number, way)
            task: asyncio.Task[Any] = asyncio.create_task(cancelled)
            await asyncio.wait([task])
            reached = cancelled.reached
            if task.cancelled():
                maybe |= {value + b"." * 200} if call == "send and wait" else set()
            else:
                task.result()
                expected += [] if call == "flush" else [value + b"." * 200]
            expected.append(b"after %d" % number)
            async with asyncio.timeout(PATIENCE_S):
                await producer.send_and_wait("t", expected[-1], partition=0)
                await producer.flush()
            assert producer.metrics().buffered_bytes == 0
        number += 1
    found = values(coordinator)
    assert number > 1
    assert [value for value in found if value not in maybe] == expected
    assert len(found) == len(set(found))


@pytest.mark.parametrize("seed", range(4), indirect=True)
def test_wherever_a_blocking_producer_is_interrupted_it_goes_on(coordinator: Coordinator, seed: int) -> None:
    chance, interrupted = random.Random(seed), 0
    sent: list[bytes] = []
    maybe: set[bytes] = set()
    with SyncProducer(coordinator.bootstrap, linger_ms=0) as producer:
        for number in range(200):
            value = b"%d" % number
            try:
                with interrupts(chance, chance.choice((0.01, 0.03, 0.1)), "clients/producer/sync.py"):
                    if chance.random() < 0.2:
                        producer.send("t", value, partition=0)
                    else:
                        producer.send_and_wait("t", value, partition=0)
                    if chance.random() < 0.1:
                        producer.flush()
            except InterruptedByTestError:
                interrupted += 1
                maybe.add(value)
            else:
                sent.append(value)
        producer.flush()
        producer.send_and_wait("t", b"last", partition=0)
    found = values(coordinator)
    assert interrupted
    assert [value for value in found if value not in maybe] == [*sent, b"last"]
    assert found[:-1] == sorted(set(found[:-1]), key=int)
