"""Answers that get lost, and requests that come late: the log has each record once, in its order."""

from __future__ import annotations

import asyncio
import random

import pytest

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.protocol.messages import (
    DescribeProducersRequest,
    FetchRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from tests.interop.cluster.proxies import proxies
from tests.interop.cluster.stores import nodes, rows
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.served import until


@pytest.mark.parametrize("seed", range(3))
async def test_appends_whose_answers_are_lost_are_in_the_log_once(
    one_broker: KafkaCluster, seed: int
) -> None:
    draw = random.Random(seed)
    async with proxies() as way, nodes(one_broker) as cluster:
        store = await cluster.node(1)
        epochs = [await store.open(partition, 0) for partition in range(3)]
        way.loses = lambda api_key: api_key == ProduceRequest.API_KEY and draw.random() < 0.3

        async def write(partition: int) -> list[int]:
            positions = []
            for start in range(0, 200, 5):
                calls = [
                    store.append([(partition, epochs[partition], [(b"k", b"%d" % number)])])
                    for number in range(start, start + 5)
                ]
                positions += [position for [position] in await asyncio.gather(*calls)]
            return positions

        for positions in await asyncio.gather(*(write(partition) for partition in range(3))):
            assert positions == list(range(1, 201)), "behind the claim, without a gap"
        assert way.lost > 10
        way.loses = lambda _api_key: False
        for partition in range(3):
            await store.open(partition, 0)
            found = await rows(store, partition)
            assert [value for _, value in found] == [b"%d" % number for number in range(200)]


async def test_a_partition_is_taken_over_though_answers_are_lost(one_broker: KafkaCluster) -> None:
    draw = random.Random(1)
    on_the_way = {
        kind.API_KEY
        for kind in (InitProducerIdRequest, DescribeProducersRequest, ProduceRequest, FetchRequest)
    }
    async with proxies() as way, nodes(one_broker) as cluster:
        first, second = await cluster.node(1), await cluster.node(2)
        epoch = await first.open(0, 0)
        for number in range(20):
            await first.append([(0, epoch, [(b"%d" % number, b"v")])])
        way.loses = lambda api_key: api_key in on_the_way and draw.random() < 0.4
        await second.open(0, 0)
        assert len(await rows(second, 0)) == 20
        assert way.lost > 0


async def test_an_append_that_was_on_its_way_when_another_node_took_over_is_refused(
    one_broker: KafkaCluster,
) -> None:
    async with proxies() as way, nodes(one_broker) as cluster:
        zombie = await cluster.node(1)
        epoch = await zombie.open(0, 0)
        await zombie.append([(0, epoch, [(b"a", b"1")])])
        way.holds = lambda api_key: api_key == ProduceRequest.API_KEY
        late = asyncio.ensure_future(zombie.append([(0, epoch, [(b"a", b"late")])]))
        await way.held.wait()
        way.holds = lambda _api_key: False  # but what is held stays so
        heir = await cluster.node(2)
        newer = await heir.open(0, 0)
        assert await rows(heir, 0) == [(b"a", b"1")]
        await heir.append([(0, newer, [(b"a", b"2")])])
        way.let_go()
        with pytest.raises(StorageError) as refused:
            await late
        assert refused.value.failure is Failure.FENCED
        await heir.open(0, 0)
        assert await rows(heir, 0) == [(b"a", b"1"), (b"a", b"2")]


async def test_an_append_of_a_node_that_is_cut_off_can_be_given_up_and_the_heir_finds_what_came_through(
    one_broker: KafkaCluster,
) -> None:
    async with proxies() as way, nodes(one_broker) as cluster:
        store = await cluster.node(1)
        epoch = await store.open(0, 0)
        way.loses = lambda _api_key: True
        calls = [
            asyncio.ensure_future(store.append([(0, epoch, [(b"%d" % number, b"1")])])) for number in range(3)
        ]
        await until(lambda: way.lost > 0)
        assert not any(call.done() for call in calls)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        await store.release(0)
        with pytest.raises(StorageError, match="partition 0 is not open"):
            await store.append([(0, epoch, [(b"4", b"1")])])
        way.loses = lambda _api_key: False
        heir = await cluster.node(2)
        await heir.open(0, 0)
        assert [key for key, _ in await rows(heir, 0)] == [b"0", b"1", b"2"]
