"""The topic log under real clients: every codec from each client to each, and SIGKILL while producing."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.columns import decode_columns
from tests.support.daemon import Daemon

with warnings.catch_warnings():
    # It uses a function of the standard library that is on its way out.
    warnings.simplefilter("ignore")
    kafka_python: Any = importlib.import_module("kafka")

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
COUNT = 300
WAIT_S = 30.0


def value(number: int) -> bytes:
    """A record's value: compresses well, and is long enough for several blocks together."""
    return json.dumps({"number": number, "text": "as before " * 30}).encode()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node with one topic per codec."""
    settings = Settings(
        listen="127.0.0.1:0",
        data_dir=tmp_path,
        topic=tuple(f"{codec}:1" for codec in CODECS),
    )
    async with Node(settings) as running:
        yield running


async def with_aiokafka(node: Node, codec: str) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=node.bootstrap,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=True,
    ) as producer:
        sent = [await producer.send(codec, value(number), key=b"k") for number in range(COUNT)]
        results = await asyncio.gather(*sent)
        assert [result.offset for result in results] == list(
            range(results[0].offset, results[0].offset + COUNT)
        )


async def with_librdkafka(node: Node, codec: str) -> None:
    def produce() -> None:
        config = {"bootstrap.servers": node.bootstrap, "compression.type": codec, "enable.idempotence": True}
        producer = Producer(config)
        for number in range(COUNT):
            producer.produce(codec, value(number), key=b"k")
        assert producer.flush(WAIT_S) == 0

    await asyncio.to_thread(produce)


async def with_kafka_python(node: Node, codec: str) -> None:
    def produce() -> None:
        # Its other codecs need further packages.
        kind = "gzip" if codec == "gzip" else None
        producer = kafka_python.KafkaProducer(bootstrap_servers=node.bootstrap, compression_type=kind)
        try:
            sent = [producer.send(codec, value(number), key=b"k") for number in range(COUNT)]
            for future in sent:
                future.get(WAIT_S)
        finally:
            producer.close()

    await asyncio.to_thread(produce)


async def read_aiokafka(node: Node, codec: str, count: int) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=node.bootstrap) as consumer:
        partition = TopicPartition(codec, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning()
        found: list[bytes] = []
        async with asyncio.timeout(WAIT_S):
            while len(found) < count:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [record.value for record in records]
        return found


async def read_librdkafka(node: Node, codec: str, count: int) -> list[bytes]:
    def read() -> list[bytes]:
        consumer = Consumer(
            {"bootstrap.servers": node.bootstrap, "group.id": "reader", "enable.auto.commit": False}
        )
        try:
            consumer.assign([ConfluentPartition(codec, 0, 0)])
            found: list[bytes] = []
            while len(found) < count:
                records = consumer.consume(count - len(found), WAIT_S)
                assert records, "nothing more comes"
                found += [record.value() or b"" for record in records]
            return found
        finally:
            consumer.close()

    return await asyncio.to_thread(read)


async def read_columns(node: Node, codec: str, count: int) -> list[bytes]:
    found: list[bytes | None] = []
    offset = 0
    while len(found) < count:
        columns = decode_columns(
            (await node.topics.read(node.topics.partition(codec, 0), offset, 1_000_000)), offset
        )
        found += columns.values
        offset = columns.next_offset
    return [record or b"" for record in found]


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
@pytest.mark.parametrize("codec", CODECS)
async def test_every_client_reads_the_records_of_any_other(node: Node, codec: str) -> None:
    producers: list[Callable[[Node, str], Any]] = [with_aiokafka, with_librdkafka, with_kafka_python]
    for produce in producers:
        await produce(node, codec)
    due = [value(number) for number in range(COUNT)] * len(producers)
    assert node.topics.partition(codec, 0).high_watermark == len(due)
    for read in (read_aiokafka, read_librdkafka, read_columns):
        assert await read(node, codec, len(due)) == due


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon in a process of its own, with small files so that it opens many."""
    with Daemon(tmp_path, topics=["orders:2"], options=["--log-segment-bytes", "65536"]) as running:
        yield running


async def test_a_kill_while_producing_loses_and_repeats_nothing_that_was_acknowledged(daemon: Daemon) -> None:
    acknowledged: dict[tuple[int, int], bytes] = {}
    numbers = itertools.count()
    async with AIOKafkaProducer(
        bootstrap_servers=daemon.bootstrap, enable_idempotence=True, linger_ms=2, retry_backoff_ms=50
    ) as producer:

        async def produce() -> None:
            while True:
                number = next(numbers)
                record = await producer.send_and_wait("orders", value(number), partition=number % 2)
                acknowledged[record.partition, record.offset] = value(number)

        tasks = [asyncio.ensure_future(produce()) for _ in range(16)]
        try:
            for goal in (300, 700, 1_100):
                await reached(acknowledged, goal, tasks)
                await asyncio.to_thread(daemon.restart)
            await reached(acknowledged, 1_400, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    found = await all_records(daemon)
    assert {place: found.get(place) for place in acknowledged} == acknowledged
    values = list(found.values())
    assert len(values) == len(set(values)), "an idempotent producer's record is there twice"


async def reached(
    acknowledged: dict[tuple[int, int], bytes], goal: int, tasks: Sequence[asyncio.Future[None]]
) -> None:
    """Wait until `count` records were acknowledged."""
    async with asyncio.timeout(WAIT_S):
        while len(acknowledged) < goal:
            done, _ = await asyncio.wait(tasks, timeout=0.02)
            for task in done:
                task.result()


async def all_records(daemon: Daemon) -> dict[tuple[int, int], bytes]:
    """Everything in the topic by partition and offset."""
    async with AIOKafkaConsumer(bootstrap_servers=daemon.bootstrap) as consumer:
        partitions = [TopicPartition("orders", index) for index in range(2)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        found: dict[tuple[int, int], bytes] = {}
        async with asyncio.timeout(WAIT_S):
            while len(found) < sum(ends.values()):
                for partition, records in (await consumer.getmany(timeout_ms=500)).items():
                    found |= {(partition.partition, record.offset): record.value for record in records}
        return found


async def test_a_consumer_that_waits_is_told_of_new_records_at_once(node: Node) -> None:
    async with AIOKafkaConsumer(
        bootstrap_servers=node.bootstrap, fetch_max_wait_ms=20_000, auto_offset_reset="latest"
    ) as consumer:
        consumer.assign([TopicPartition("none", 0)])
        assert await consumer.position(TopicPartition("none", 0)) == 0
        waiting = asyncio.ensure_future(consumer.getone())
        partition = node.topics.partition("none", 0)
        async with asyncio.timeout(WAIT_S):
            while not partition.waiters:
                await asyncio.wait([waiting], timeout=0.01)
        await with_kafka_python(node, "none")
        async with asyncio.timeout(WAIT_S / 2):
            assert (await waiting).value == value(0)
