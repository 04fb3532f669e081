"""The records that the Spark sink writes to Apache Kafka: read by Kafka's own consumer, next to those of
Kafka's own producer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaConsumer

from ringleader.clients.admin import Admin
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.errors import ProduceError
from ringleader.protocol.compression import Compression
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings, close_clusters
from ringleader.spark_bridge.sink.rows import sink_rows
from tests.interop.kafka import KafkaBroker, tool

TOOLS = "org.apache.kafka.tools."
PARTITIONS = 7
SMALL_BYTES = 20_000
KEYS = [f"key-{'x' * (number % 9)}{number}" for number in range(300)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that makes no topics by itself."""
    properties = {"auto.create.topics.enable": "false"}
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker", properties=properties) as running:
        topics = dict.fromkeys(
            ("java", "ours", "plain", *(f"c-{c.name.lower()}" for c in Compression)), PARTITIONS
        )
        asyncio.run(make(running.bootstrap, topics))
        yield running
    close_clusters()


async def make(bootstrap: str, topics: dict[str, int]) -> None:
    async with Admin(bootstrap, timeout_ms=30_000) as admin:
        for name, partitions in topics.items():
            await admin.create_topic(name, partitions)
        await admin.create_topic("small", 1, configs={"max.message.bytes": str(SMALL_BYTES)})


def settings(broker: KafkaBroker, topic: str) -> SinkSettings:
    return SinkSettings(endpoint=Endpoint(((broker.host, broker.port),)), topic=topic, max_block_s=5.0)


def write(chosen: SinkSettings, *parts: ArrowRows) -> None:
    producer = SinkProducer(chosen)
    try:
        for part in parts:
            producer.write_rows(part)
        producer.flush()
    finally:
        producer.close()


def rows(values: Sequence[str], keys: Sequence[str] | None = None) -> ArrowRows:
    headers = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
    columns = {"value": pa.array(values, pa.string())}
    if keys is not None:
        columns["key"] = pa.array(keys, pa.string())
        some = [[{"key": "source", "value": b"spark"}] if n % 2 else None for n in range(len(keys))]
        columns["headers"] = pa.array(some, headers)
    return sink_rows(pa.RecordBatch.from_pydict(columns), False)


def java_reads(broker: KafkaBroker, topic: str, count: int) -> list[tuple[int, str, str, str]]:
    """(partition, headers, key, value) of all records, by Kafka's console consumer."""
    shown = [f"--formatter-property=print.{name}=true" for name in ("partition", "headers", "key")]
    done = tool(
        f"{TOOLS}consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(count), "--timeout-ms", "20000"),
        *shown,
    )
    assert done.returncode == 0, done.stderr
    found = []
    for line in done.stdout.splitlines():
        partition, headers, key, value = line.split("\t")
        found.append((int(partition.removeprefix("Partition:")), headers, key, value))
    assert len(found) == count, done.stderr
    return found


def test_keyed_rows_are_where_kafkas_own_producer_puts_them(broker: KafkaBroker) -> None:
    lines = "".join(f"{key}\tv{number}\n" for number, key in enumerate(KEYS))
    done = tool(
        f"{TOOLS}ConsoleProducer",
        *("--bootstrap-server", broker.bootstrap, "--topic", "java", "--reader-property", "parse.key=true"),
        stdin=lines,
    )
    assert done.returncode == 0, done.stderr
    write(settings(broker, "ours"), rows([f"v{number}" for number in range(len(KEYS))], KEYS))
    theirs = java_reads(broker, "java", len(KEYS))
    ours = java_reads(broker, "ours", len(KEYS))
    assert {(key, partition) for partition, _, key, _ in ours} == {
        (key, partition) for partition, _, key, _ in theirs
    }
    assert len({partition for partition, *_ in ours}) == PARTITIONS
    values = {key: f"v{number}" for number, key in enumerate(KEYS)}
    for _, headers, key, value in ours:
        number = KEYS.index(key)
        assert value == values[key]
        assert headers == ("source:spark" if number % 2 else "NO_HEADERS")


@pytest.mark.parametrize("codec", list(Compression))
def test_kafkas_consumer_reads_every_codec(broker: KafkaBroker, codec: Compression) -> None:
    topic = f"c-{codec.name.lower()}"
    values = [f"{number:05d}{'.' * 100}" for number in range(5_000)]
    write(replace(settings(broker, topic), codec=codec, batch_bytes=100_000), rows(values))
    found = java_reads(broker, topic, len(values))
    assert sorted(value for *_, value in found) == values
    assert len({partition for partition, *_ in found}) > 1


async def test_another_client_reads_keys_values_and_headers(broker: KafkaBroker) -> None:
    written = rows([f"v{number}" for number in range(len(KEYS))], KEYS)
    await asyncio.to_thread(write, settings(broker, "plain"), written)
    consumer = AIOKafkaConsumer("plain", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        found: dict[str, tuple[str, tuple[tuple[str, bytes], ...]]] = {}
        while len(found) < len(KEYS):
            message = await asyncio.wait_for(consumer.getone(), 20)
            found[message.key.decode()] = (message.value.decode(), message.headers)
    finally:
        await consumer.stop()
    for number, key in enumerate(KEYS):
        assert found[key] == (f"v{number}", (("source", b"spark"),) if number % 2 else ())


def test_batches_too_large_for_a_topic_are_cut(broker: KafkaBroker) -> None:
    values = [f"{number:05d}{'.' * 1_000}" for number in range(700)]
    write(settings(broker, "small"), rows(values))
    assert [value for *_, value in java_reads(broker, "small", len(values))] == values
    with pytest.raises(ProduceError, match=r"a record for topic small takes 30\d\d\d bytes"):
        write(settings(broker, "small"), rows(["." * 30_000]))


def test_a_topic_that_nobody_makes_is_a_sentence(broker: KafkaBroker, tmp_path: Path) -> None:
    with pytest.raises(ProduceError, match="topic nowhere does not exist, and the brokers do not make it"):
        write(replace(settings(broker, "nowhere"), max_block_s=0.2), rows(["a"]))
