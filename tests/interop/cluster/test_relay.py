"""Records through nodes before three real brokers: clients of several libraries, codecs, and a broker that
dies."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ringleader.clients.admin import Admin
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.relayed import relaying

PARTITIONS = 6
WAIT_S = 60.0


async def created(nodes: str, topic: str, **configs: str) -> None:
    """A topic, made through a node, whose leaders are there."""
    async with Admin(nodes) as admin:
        await admin.create_topic(topic, PARTITIONS, replication_factor=3, configs=configs)
        async with asyncio.timeout(WAIT_S):
            while True:
                [found] = await admin.describe_topics([topic])
                if all(one.leader >= 0 for one in found.partitions):
                    return
                await asyncio.sleep(0.05)


def produce(nodes: str, topic: str, values: list[bytes], **options: Any) -> None:
    """With librdkafka, all acknowledged, each once however often it is sent."""
    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": nodes, "linger.ms": 5, "enable.idempotence": True, **options})
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert not failed


def consume(nodes: str, topic: str, wanted: int) -> list[bytes]:
    """With librdkafka, from the beginning, without a group. An offset that is out of range is an error, and
    not passed over."""
    consumer = Consumer(
        {
            "bootstrap.servers": nodes,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < wanted and time.monotonic() < until_s:
        for record in consumer.consume(1_000, 1.0):
            assert record.error() is None, record.error()
            found.append(record.value() or b"")
    consumer.close()
    return found


def values_of(count: int, size: int) -> list[bytes]:
    chance = random.Random(size)
    return [b"%06d" % number + chance.randbytes(size) for number in range(count)]


@pytest.mark.timeout(300)
async def test_all_codecs_through_two_nodes(three_brokers: KafkaCluster) -> None:
    """Three brokers behind two nodes: most answers to Fetch are put together from several."""
    async with relaying(three_brokers.bootstrap, 2) as nodes:
        where = ",".join(node.bootstrap for node in nodes)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            topic = f"relay-{codec}"
            await created(where, topic)
            values = values_of(600, 500)
            options = {"compression.type": codec, "enable.idempotence": codec in ("none", "zstd")}
            await asyncio.to_thread(lambda: produce(where, topic, values, **options))  # noqa: B023
            assert sorted(await asyncio.to_thread(consume, where, topic, len(values))) == values


@pytest.mark.timeout(300)
async def test_clients_in_groups(three_brokers: KafkaCluster) -> None:
    async with relaying(three_brokers.bootstrap, 2) as nodes:
        where = ",".join(node.bootstrap for node in nodes)
        await created(where, "relay-groups")
        values = values_of(300, 100)
        await asyncio.to_thread(produce, where, "relay-groups", values)

        async def with_aiokafka() -> list[bytes]:
            consumer = aiokafka.AIOKafkaConsumer(
                "relay-groups", bootstrap_servers=where, group_id="aiokafka", auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                return [(await consumer.getone()).value for _ in values]
            finally:
                await consumer.stop()

        def with_kafka_python() -> list[bytes]:
            consumer = kafka.KafkaConsumer(
                "relay-groups",
                bootstrap_servers=where.split(","),
                group_id="kafka-python",
                auto_offset_reset="earliest",
            )
            try:
                return [next(consumer).value for _ in values]
            finally:
                consumer.close()

        async with asyncio.timeout(2 * WAIT_S):
            assert sorted(await with_aiokafka()) == values
            assert sorted(await asyncio.to_thread(with_kafka_python)) == values


@pytest.mark.timeout(300)
async def test_a_broker_is_killed_while_records_flow(three_brokers: KafkaCluster) -> None:
    """An idempotent producer goes on with the new leaders: nothing is lost, nothing is there twice."""
    async with relaying(three_brokers.bootstrap, 2) as nodes:
        where = ",".join(node.bootstrap for node in nodes)
        await created(where, "relay-killed", **{"min.insync.replicas": "2"})
        values = values_of(6_000, 1_000)
        producing = asyncio.create_task(
            asyncio.to_thread(lambda: produce(where, "relay-killed", values, **{"enable.idempotence": True}))
        )
        assert len(await asyncio.to_thread(consume, where, "relay-killed", 500)) >= 500
        await asyncio.to_thread(three_brokers.kill, 2)
        await producing
        found = await asyncio.to_thread(consume, where, "relay-killed", len(values))
        numbers = sorted(int(value[:6]) for value in found)
        missing = sorted(set(range(len(values))) - set(numbers))
        at_brokers = await asyncio.to_thread(consume, three_brokers.bootstrap, "relay-killed", len(values))
        assert (missing, len(found)) == ([], len(values)), f"the brokers have {len(at_brokers)}"
        assert sorted(found) == sorted(at_brokers) == values


@pytest.mark.timeout(300)
async def test_100_mb_pass_with_little_memory(three_brokers: KafkaCluster) -> None:
    async with relaying(three_brokers.bootstrap, 1) as [node]:
        await created(node.bootstrap, "relay-many")
        values = values_of(1_000, 100_000)
        held = 0

        async def watch() -> None:
            nonlocal held
            while True:
                held = max(held, node.server.held_bytes + node.relay.arrivals.taken_bytes)
                await asyncio.sleep(0.002)

        watching = asyncio.create_task(watch())
        await asyncio.to_thread(produce, node.bootstrap, "relay-many", values)
        found = await asyncio.to_thread(consume, node.bootstrap, "relay-many", len(values))
        watching.cancel()
        assert sorted(found) == values
        assert held < 32_000_000
