"""Real clients go on through throttles: everything arrives, and nothing twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from tests.support.quota_scripts import altering
from tests.support.served import connected

pytestmark = pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")

TOPIC = "orders"
COUNT = 60
VALUE = bytes(5_000)
RATE = 150_000.0
WAIT_S = 60.0
WINDOWS = 2
"""The least: rates are those of a second or two."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    settings = Settings(listen="127.0.0.1:0", data_dir=tmp_path, topic=f"{TOPIC}:1", quota_window_num=WINDOWS)
    async with Node(settings) as started:
        async with connected(started.host, started.port) as administrator:
            rates: dict[str, float | None] = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
            answer = await administrator.call(altering(({"client-id": "slow"}, rates)), 1, "administrator")
            assert [entry.error_code for entry in answer.entries] == [0]
        yield started


def values() -> list[bytes]:
    return [number.to_bytes(4, "big") + VALUE for number in range(COUNT)]


def produced_by_librdkafka(bootstrap: str, client_id: str = "slow") -> int:
    """The longest throttle time that it was given."""
    throttled_s = [0.0]
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "batch.size": 50_000,
            "throttle_cb": lambda event: throttled_s.append(event.throttle_time),
        }
    )
    failed: list[Any] = []
    for value in values():
        producer.produce(TOPIC, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    return int(max(throttled_s) * 1000)


def produced_by_kafka_python(bootstrap: str) -> int:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=bootstrap, client_id="slow", batch_size=50_000, acks="all"
    )
    sent = [producer.send(TOPIC, value) for value in values()]
    for one in sent:
        one.get(timeout=WAIT_S)
    producer.close()
    return 0


@pytest.mark.parametrize("produce", [produced_by_librdkafka, produced_by_kafka_python])
async def test_everything_that_is_produced_arrives_once(node: Node, produce: Callable[[str], int]) -> None:
    throttled = asyncio.ensure_future(_throttled(node))
    longest_ms = await asyncio.to_thread(produce, node.bootstrap)
    assert await throttled
    if produce is produced_by_librdkafka:
        assert longest_ms > 0
    assert await asyncio.to_thread(read_by_librdkafka, node.bootstrap, "fast") == values()


async def _throttled(node: Node) -> bool:
    """Whether some connection is, at some time."""
    async with asyncio.timeout(WAIT_S):
        while not any(connection.is_muted for connection in node.server.connections):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    return True


def read_by_librdkafka(bootstrap: str, client_id: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([TOPIC])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < COUNT and time.monotonic() < until_s:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
    consumer.close()
    return found


async def test_everything_that_is_fetched_comes_once_and_in_order(node: Node) -> None:
    await asyncio.to_thread(produced_by_librdkafka, node.bootstrap, "fast")
    throttled = asyncio.ensure_future(_throttled(node))
    assert await asyncio.to_thread(read_by_librdkafka, node.bootstrap, "slow") == values()
    assert await throttled


async def test_a_member_that_is_throttled_stays_in_its_group(node: Node) -> None:
    await asyncio.to_thread(produced_by_librdkafka, node.bootstrap, "fast")
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=node.bootstrap,
        client_id="slow",
        group_id="team",
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=200,
    )
    await consumer.start()
    try:
        found: list[bytes | None] = []
        async with asyncio.timeout(WAIT_S):
            while len(found) < COUNT:
                found.append((await consumer.getone()).value)
                generation = consumer._coordinator.generation
        assert found == values()
        await consumer.commit()
        assert generation == consumer._coordinator.generation
    finally:
        await consumer.stop()
