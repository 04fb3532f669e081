"""Produce through a node."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from tests.support.relayed import relaying
from tests.support.scripted_broker import CLOSE
from tests.support.served import connected, until
from tests.support.two_brokers import TwoBrokers, two_brokers

NEWEST = 9


def ask(*partitions: int, records: bytes = b"batch", acks: int = -1, topic: str = "orders") -> ProduceRequest:
    data = [ProduceRequestPartitionProduceData(one, records) for one in partitions]
    return ProduceRequest("txn", acks, 1_000, [ProduceRequestTopicProduceData(topic, partition_data=data)])


def written(request: ProduceRequest, *_: int, throttle_ms: int = 0) -> ProduceResponse:
    return ProduceResponse(
        [
            ProduceResponseTopicProduceResponse(
                topic.name,
                partition_responses=[
                    ProduceResponsePartitionProduceResponse(one.index, base_offset=10 + one.index)
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
        throttle_ms,
    )


def by_partition(response: ProduceResponse) -> dict[int, Any]:
    [topic] = response.responses
    return {one.index: one for one in topic.partition_responses}


def batches(cluster: TwoBrokers, broker: int) -> list[tuple[int, bytes | None]]:
    return [
        (one.index, one.records)
        for request, _ in cluster.brokers[broker].requests
        if isinstance(request, ProduceRequest)
        for topic in request.topic_data
        for one in topic.partition_data
    ]


@pytest.mark.parametrize("version", range(3, NEWEST + 1))
async def test_batches_go_to_their_leaders_as_they_are(version: int) -> None:
    records = os.urandom(100_000)
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(0, written, lambda request, *_: written(request, throttle_ms=70))
        async with connected("127.0.0.1", node.port) as client:
            answer = await client.call(ask(0, 1, 2, records=records), version)
            assert {one.base_offset for one in by_partition(answer).values()} == {10, 11, 12}
            assert answer.throttle_time_ms == 70
        assert batches(cluster, 1) == [(0, records), (2, records)]
        assert batches(cluster, 2) == [(1, records)]
        [(request, sent_version)] = [
            one for one in cluster.brokers[2].requests if isinstance(one[0], ProduceRequest)
        ]
        assert (request.transactional_id, request.acks, request.timeout_ms) == ("txn", -1, 1_000)
        assert sent_version == version
        await until(lambda: node.server.held_bytes == 0)


async def test_partitions_without_a_leader_and_the_nodes_own_topic_are_refused() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders |= {"orders": [1, -1], "__ringleader_groups": [1]}
        cluster.on(0, written)
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0, 1, 2), NEWEST))
            assert found[0].error_code == 0
            assert found[1].error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert found[2].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer = await client.call(ask(0, topic="__ringleader_groups"), NEWEST)
            assert by_partition(answer)[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert batches(cluster, 1) == [(0, b"batch")]


async def test_what_nobody_knows_is_told_as_that() -> None:
    """The broker hangs up instead of an answer: perhaps it wrote the batch."""
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(0, lambda *_: CLOSE, written)
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0, 1), NEWEST))
            assert (found[0].error_code, found[1].error_code) == (ErrorCode.REQUEST_TIMED_OUT, 0)
            await cluster.brokers[2].__aexit__(None, None, None)
            found = by_partition(await client.call(ask(1), NEWEST))
            assert found[1].error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
            found = by_partition(await client.call(ask(1), NEWEST))
            assert found[1].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            async with cluster.brokers[2]:
                assert not by_partition(await client.call(ask(1), NEWEST))[1].error_code


async def test_without_acks_all_batches_arrive_in_their_order() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(0, lambda *_: None)
        async with connected("127.0.0.1", node.port) as client:
            sent = [os.urandom(50_000) for _ in range(40)]
            for number, records in enumerate(sent):
                client.send(ask(number % 2, records=records, acks=0), NEWEST)
            await until(lambda: len(batches(cluster, 1)) == len(batches(cluster, 2)) == 20)
        assert [records for _, records in batches(cluster, 1)] == sent[::2]
        assert [records for _, records in batches(cluster, 2)] == sent[1::2]


async def test_without_acks_an_error_closes_the_connection() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(0, lambda *_: CLOSE)
        port = node.port
        for partition in (0, 9):
            async with connected("127.0.0.1", port) as client:
                client.send(ask(partition, acks=0), NEWEST)
                assert await client.rest() == b""


async def test_a_broker_that_takes_nothing_is_waited_for_without_more_memory() -> None:
    """acks 0 into a broker that does not read: the client's next request stays in its socket."""
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        stop = asyncio.Event()

        async def never(*_: Any) -> None:
            await stop.wait()

        cluster.on(0, never)
        async with connected("127.0.0.1", node.port) as client:

            async def send() -> None:
                for _ in range(200):
                    client.send(ask(0, records=bytes(1_000_000), acks=0), NEWEST)
                    await client.writer.drain()

            sending = asyncio.create_task(send())
            await until(lambda: node.server.held_bytes > 1_000_000)
            for _ in range(50):
                await asyncio.sleep(0.002)
                assert node.server.held_bytes < 8_000_000
            assert not sending.done()
            sending.cancel()
        stop.set()
        await until(lambda: not node.server.connections)
        assert node.server.held_bytes == 0
