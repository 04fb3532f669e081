"""A partition of the groups' topic that goes from one owner to the next, on a leader that keeps producers as
Kafka's does: also where the cluster has forgotten the former one's transactional id, so that the fence is
another producer id."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader.clients.model import Node as Broker
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from ringleader.coordinator.storage.kafka import store as module
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import ZERO_UUID
from tests.simulation.nodes.kafka import TOPIC, Kafka
from tests.support.scripted_broker import VERSIONS, ScriptedBroker

SPANS: dict[Any, tuple[int, int]] = {
    kafka.ProduceRequest: (3, 9),
    kafka.FetchRequest: (4, 12),
    kafka.ListOffsetsRequest: (1, 7),
    kafka.FindCoordinatorRequest: (0, 4),
    kafka.InitProducerIdRequest: (0, 4),
    kafka.DescribeConfigsRequest: (1, 4),
    kafka.DescribeProducersRequest: (0, 0),
}


class Cluster:
    """The simulation's brokers, as one that listens."""

    def __init__(self) -> None:
        quiet: Any = SimpleNamespace(
            rng=random.Random(0), trouble=False, checks=SimpleNamespace(appended=lambda *_: None)
        )
        self.brokers = Kafka(quiet, 1)
        self.topic_id = ZERO_UUID
        handlers = {kind.API_KEY: self._answer for kind in SPANS} | {3: self._metadata}
        versions = {kind.API_KEY: span for kind, span in SPANS.items()}
        self.broker = ScriptedBroker(handlers, {**VERSIONS, **versions})

    def _answer(self, request: Any, _version: int, _correlation_id: int) -> Any:
        node: Any = None
        return self.brokers.answer(node, request, 1)

    def _metadata(self, _request: Any, _version: int, _correlation_id: int) -> kafka.MetadataResponse:
        part = kafka.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
        )
        return kafka.MetadataResponse(
            brokers=[kafka.MetadataResponseBroker(1, "127.0.0.1", self.broker.port)],
            controller_id=1,
            topics=[kafka.MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=[part])],
        )


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """It listens."""
    made = Cluster()
    async with made.broker as broker:
        made.brokers.brokers = {1: Broker(1, "127.0.0.1", broker.port)}
        yield made


@asynccontextmanager
async def node(cluster: Cluster, node_id: int) -> AsyncIterator[KafkaStorage]:
    """A node's store."""
    store = KafkaStorage(
        cluster.broker.address,
        Claim(node_id, f"node-{node_id}", 9092, "1.0"),
        topic=TOPIC,
        partitions=1,
        replication_factor=1,
        timeout_ms=5_000,
    )
    try:
        await store.start()
        yield store
    finally:
        await store.close()


async def rows(store: KafkaStorage) -> list[tuple[bytes, bytes | None]]:
    """The rows of a replay."""
    return [(key, value) async for chunk in store.replay(0) for _, _, key, value in chunk]


@pytest.mark.parametrize("written", [0, 1, 2], ids=["its claim alone", "one record", "two records"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
async def test_a_former_owner_writes_no_more(cluster: Cluster, written: int, forgotten: bool) -> None:
    async with node(cluster, 1) as former, node(cluster, 2) as heir:
        epoch = await former.open(0, 0)
        records = [(b"key %d" % number, b"value") for number in range(written)]
        for record in records:
            await former.append([(0, epoch, [record])])
        if forgotten:
            cluster.brokers.forget_ids()
        heirs_epoch = await heir.open(0, 0)
        with pytest.raises(StorageError) as refused:
            await former.append([(0, epoch, [(b"zombie", b"value")])])
        assert refused.value.failure is Failure.FENCED
        assert await rows(heir) == records
        await heir.append([(0, heirs_epoch, [(b"heir", b"value")])])
        await heir.open(0, 0)
        assert await rows(heir) == [*records, (b"heir", b"value")]


async def test_a_node_that_opens_again_writes_under_its_new_epoch_alone(cluster: Cluster) -> None:
    async with node(cluster, 1) as store:
        before = await store.open(0, 0)
        now = await store.open(0, 0)
        with pytest.raises(StorageError) as refused:
            await store.append([(0, before, [(b"key", b"of the life before")])])
        assert refused.value.failure is Failure.FENCED
        await store.append([(0, now, [(b"key", b"of this one")])])
        await store.open(0, 0)
        assert await rows(store) == [(b"key", b"of this one")]


async def test_epochs_that_begin_again_refuse_those_of_the_opening_before(cluster: Cluster) -> None:
    async with node(cluster, 1) as store:
        await store.open(0, 0)
        before = await store.open(0, 0)
        cluster.brokers.forget_ids()
        now = await store.open(0, 0)
        assert now < before
        with pytest.raises(StorageError) as refused:
            await store.append([(0, before, [(b"key", b"of the life before")])])
        assert refused.value.failure is Failure.FENCED


async def test_a_topic_that_gets_its_id_when_the_cluster_is_upgraded_is_the_same(cluster: Cluster) -> None:
    async with node(cluster, 1) as store:
        epoch = await store.open(0, 0)
        await store.append([(0, epoch, [(b"key", b"value")])])
        cluster.topic_id = b"0123456789abcdef"
        await store.open(0, 0)
        assert await rows(store) == [(b"key", b"value")]


async def test_batches_so_large_that_each_is_an_answer_are_all_replayed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = cluster.brokers.partitions[0]
    monkeypatch.setattr(
        log, "fetch", lambda offset: next((data for end, data in log.batches if end > offset), b"")
    )
    records = [(b"key %d" % number, b"value") for number in range(3)]
    async with node(cluster, 1) as store:
        epoch = await store.open(0, 0)
        for record in records:
            await store.append([(0, epoch, [record])])
        await store.open(0, 0)
        async with asyncio.timeout(20):
            assert await rows(store) == records


async def test_each_batch_of_a_divided_append_is_told_where_its_last_record_is(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    async with node(cluster, 1) as store:
        epoch = await store.open(0, 0)
        batches = [[(b"%d %d" % (count, n), b"value") for n in range(count)] for count in (1, 3, 2, 5, 4)]
        ends = await store.append([(0, epoch, batch) for batch in batches])
        await store.open(0, 0)
        there = {key: offset async for chunk in store.replay(0) for offset, _, key, _ in chunk}
        assert ends == [there[batch[-1][0]] for batch in batches]
