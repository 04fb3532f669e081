"""Producers write by topic ids (KIP-516): they notice a topic that was made again under its name, and go on
in that one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader import Admin, Producer, SyncProducer
from ringleader.clients.blocking.cluster import BlockingCluster
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce import producer as blocking
from ringleader.clients.produce.batch_builder import BatchBuilder
from ringleader.clients.produce.partition_queue import OutgoingBatch, PartitionQueue
from ringleader.clients.produce.requests import answers, newest, topic_data
from ringleader.clients.produce.rows import Row, RowList
from ringleader.protocol.messages import (
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.schema import ZERO_UUID
from ringleader.testing.coordinator import Coordinator
from tests.clients.test_producer import SOON, written

OLD, OTHER = b"o" * 16, b"p" * 16


async def made_again(coordinator: Coordinator) -> None:
    """The topic `t`, empty."""
    async with Admin(coordinator.bootstrap) as admin:
        await admin.delete_topics(["t"])
        await admin.create_topic("t", 4)
    coordinator.faults.forget_seen()


def tries(coordinator: Coordinator) -> list[int]:
    """The versions of the Produce requests since then."""
    return [one.version for one in coordinator.faults.seen("Produce")]


@pytest.mark.parametrize("options", [{}, {"enable_idempotence": False}, {"transactional_id": "x"}])
async def test_a_producer_goes_on_in_the_topic_that_was_made_again(
    coordinator: Coordinator, options: dict[str, Any]
) -> None:
    async with Producer(coordinator.bootstrap, **SOON, **options) as producer:

        async def send(first: int) -> list[int]:
            sent = [await producer.send("t", b"%d" % n, partition=0) for n in range(first, first + 3)]
            return [(await one).offset for one in sent]

        async def write(first: int) -> list[int]:
            if "transactional_id" not in options:
                return await send(first)
            async with producer.transaction():
                return await send(first)

        assert await write(0) == [0, 1, 2]
        await made_again(coordinator)
        assert await write(3) == [0, 1, 2]
        assert set(tries(coordinator)) == {13}
        assert len(tries(coordinator)) > 1, "the first was refused"
        assert producer.metrics().retries > 0
    assert [record.value for record in await written(coordinator, 3)] == [b"3", b"4", b"5"]


async def test_a_transaction_goes_on_in_the_topic_that_was_made_again(coordinator: Coordinator) -> None:
    producer = Producer(coordinator.bootstrap, transactional_id="x", **SOON)
    async with producer, producer.transaction():
        assert (await producer.send_and_wait("t", b"0", partition=0)).offset == 0
        await made_again(coordinator)
        assert (await producer.send_and_wait("t", b"1", partition=0)).offset == 0
    assert [record.value for record in await written(coordinator, 1)] == [b"1"]


async def test_a_sync_producer_goes_on(coordinator: Coordinator) -> None:
    with SyncProducer(coordinator.bootstrap, **SOON) as producer:
        assert await asyncio.to_thread(lambda: producer.send_and_wait("t", b"0", partition=0).offset) == 0
        await made_again(coordinator)
        assert await asyncio.to_thread(lambda: producer.send_and_wait("t", b"1", partition=0).offset) == 0
    assert len(tries(coordinator)) > 1


async def test_the_writer_of_the_spark_sink_goes_on(coordinator: Coordinator) -> None:
    servers = ((coordinator.host, coordinator.port),)
    cluster = BlockingCluster(Endpoint(servers, "writer", request_timeout_ms=5_000))
    producer = blocking.Producer(cluster, blocking.ProduceSettings(retry_backoff_s=0.01))

    def write(*values: bytes) -> None:
        producer.write("t", RowList([Row(0, -1, None, value, partition=0) for value in values]))
        producer.flush()

    try:
        await asyncio.to_thread(write, b"0", b"1")
        await made_again(coordinator)
        await asyncio.to_thread(write, b"2", b"3")
    finally:
        producer.close()
        cluster.close()
    assert set(tries(coordinator)) == {13}
    assert len(tries(coordinator)) > 1
    assert [record.value for record in await written(coordinator, 2)] == [b"2", b"3"]


def test_one_topic_without_an_id_makes_the_request_one_by_name() -> None:
    batches = [OutgoingBatch(topic, n, 0, 1, b"", 0.0) for topic in ("a", "b") for n in range(2)]
    by_id = topic_data(batches, lambda name: {"a": OLD, "b": OTHER}[name])
    assert [(one.name, one.topic_id, len(one.partition_data)) for one in by_id] == [
        ("a", OLD, 2),
        ("b", OTHER, 2),
    ]
    assert (newest(by_id), newest(by_id, 11)) == (32767, 11)
    mixed = topic_data(batches, lambda name: {"a": OLD, "b": ZERO_UUID}[name])
    assert (newest(mixed), newest(mixed, 11)) == (12, 11)


def test_answers_are_found_by_id_and_by_name() -> None:
    requested = topic_data(
        [OutgoingBatch(topic, 0, 0, 1, b"", 0.0) for topic in "ab"], lambda name: {"a": OLD, "b": OTHER}[name]
    )
    answer, part = ProduceResponseTopicProduceResponse, ProduceResponsePartitionProduceResponse
    one, two = part(0, base_offset=1), part(0, base_offset=2)
    for first, second in ((("", OLD), ("", OTHER)), (("a", ZERO_UUID), ("b", ZERO_UUID))):
        response = ProduceResponse([answer(*first, [one]), answer(*second, [two])])
        assert answers(requested, response) == {("a", 0): one, ("b", 0): two}


def test_in_a_topic_that_was_made_again_one_batch_goes_ahead_alone() -> None:
    """Its leader takes any sequence of a producer that it does not know for the first."""
    queue = PartitionQueue("t", 0, BatchBuilder(1_000, 1_000), True)
    queue.batches = [OutgoingBatch("t", 0, number, 1, b"", 0.0) for number in range(4)]
    first, second, third, _ = queue.batches
    queue.sent(first, 1)
    queue.in_flight -= 1
    queue.taken(first, 0)
    queue.sent(second, 1)
    assert queue.may_send(1), "the leader knows the producer"
    queue.in_flight -= 1
    queue.made_again()
    queue.back(second)
    queue.sent(second, 1)
    assert not queue.may_send(1)
    queue.in_flight -= 1
    queue.taken(second, 0)
    queue.sent(third, 1)
    assert queue.may_send(1)
