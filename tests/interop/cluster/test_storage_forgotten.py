"""The ids that a cluster forgets: transactional ids that nobody uses, and producers that write nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import KafkaStorage
from ringleader.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponseProducerState,
)
from tests.interop.cluster.stores import Nodes, nodes, rows
from tests.interop.kafka_cluster import KafkaCluster

EXPIRATION_MS = 4_000


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker that forgets after seconds what others keep for days."""
    properties = {
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
        "producer.id.expiration.ms": str(EXPIRATION_MS),
        "producer.id.expiration.check.interval.ms": "200",
    }
    with KafkaCluster(tmp_path_factory.mktemp("forgetful"), brokers=1, properties=properties) as cluster:
        yield cluster


async def producers(cluster: Nodes, partition: int) -> dict[int, DescribeProducersResponseProducerState]:
    """Those that the leader of a partition knows, by id."""
    async with Cluster(cluster.brokers.bootstrap) as brokers:
        node = (await brokers.metadata([cluster.topic])).brokers[1]
        request = DescribeProducersRequestTopicRequest(cluster.topic, [partition])
        answer = await brokers.send(node, plain(DescribeProducersRequest([request])))
        return {one.producer_id: one for one in answer.topics[0].partitions[0].active_producers}


async def forgotten(cluster: Nodes, partition: int) -> None:
    """Returns when the leader knows no producer any more: it says so to nobody who does not ask."""
    known = await producers(cluster, partition)
    while known:
        await asyncio.sleep(0.2)
        known = await producers(cluster, partition)


def stop_claiming(store: KafkaStorage) -> None:
    """As if its process were stopped."""
    assert store._parts is not None
    store._parts.claims.cancel()


async def test_an_owner_whose_transactional_id_was_forgotten_is_fenced_all_the_same(
    forgetful: KafkaCluster,
) -> None:
    async with nodes(forgetful) as cluster, asyncio.timeout(60):
        first, second = await cluster.node(1), await cluster.node(2)
        epoch = await first.open(0, 0)
        [old] = await producers(cluster, 0)
        while True:  # until the cluster gives another producer id, and so an epoch that fences nobody
            await first.append([(0, epoch, [(b"a", b"1")])])
            other = await second.open(0, 0)
            if set(await producers(cluster, 0)) != {old}:
                break
            [old] = await producers(cluster, 0)
            epoch = await first.open(0, 0)
            await asyncio.sleep(1.5)
        assert other == 0
        assert (await producers(cluster, 0))[old].producer_epoch == 32_767
        with pytest.raises(StorageError) as fenced:
            await first.append([(0, epoch, [(b"a", b"2")])])
        assert fenced.value.failure is Failure.FENCED
        assert {value for _, value in await rows(second, 0)} == {b"1"}


async def test_an_idle_owner_is_not_forgotten(forgetful: KafkaCluster) -> None:
    async with nodes(forgetful) as cluster, asyncio.timeout(60):
        zombie, owner = await cluster.node(1), await cluster.node(2)
        old = await zombie.open(0, 0)
        epoch = await owner.open(0, 0)
        before = {one.producer_id: one.last_timestamp for one in (await producers(cluster, 0)).values()}
        assert len(before) == 1
        await asyncio.sleep(2 * EXPIRATION_MS / 1000)
        after = await producers(cluster, 0)
        assert set(after) == set(before)
        with pytest.raises(StorageError) as fenced:
            await zombie.append([(0, old, [(b"a", b"2")])])
        assert fenced.value.failure is Failure.FENCED
        await owner.append([(0, epoch, [(b"a", b"1")])])
        await zombie.open(0, 0)
        assert await rows(zombie, 0) == [(b"a", b"1")], "claims are no rows"


async def test_a_producer_that_may_be_forgotten_writes_no_more_and_is_left_out_if_it_did(
    forgetful: KafkaCluster,
) -> None:
    async with nodes(forgetful) as cluster, asyncio.timeout(60):
        zombie, owner = await cluster.node(1), await cluster.node(2)
        old = await zombie.open(0, 0)
        stop_claiming(zombie)
        epoch = await owner.open(0, 0)
        stop_claiming(owner)
        await owner.append([(0, epoch, [(b"a", b"1")])])
        await forgotten(cluster, 0)
        with pytest.raises(StorageError, match="its epoch may be forgotten") as away:
            await owner.append([(0, epoch, [(b"a", b"2")])])
        assert away.value.failure is Failure.AWAY
        # A zombie that does not look at the clock would be believed by the broker.
        assert zombie._parts is not None
        zombie._parts.sender.forgotten_s = 1e9
        await zombie.append([(0, old, [(b"a", b"stale"), (b"b", b"stale")])])
        heir = await cluster.node(3)
        await heir.open(0, 0)
        assert await rows(heir, 0) == [(b"a", b"1")]


async def test_sequence_numbers_begin_again_after_the_highest(forgetful: KafkaCluster) -> None:
    async with nodes(forgetful) as cluster, asyncio.timeout(60):
        store = await cluster.node(1)
        epoch = await store.open(0, 0)
        stop_claiming(store)
        await forgotten(cluster, 0)
        # The broker takes any number from one that it does not know.
        assert store._parts is not None
        store._parts.sender.forgotten_s = 1e9
        store._open[0].writer._sequence = 2**31 - 3
        for number in range(4):
            await store.append([(0, epoch, [(b"k", b"%d" % number), (b"l", b"%d" % number)])])
        [known] = (await producers(cluster, 0)).values()
        assert known.last_sequence == 4
        other = await cluster.node(2)
        await other.open(0, 0)
        assert [value for _, value in await rows(other, 0)] == [b"%d" % (n // 2) for n in range(8)]
