"""The groups' topic: what the store makes, what it refuses, and what compaction leaves."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import SaslScram
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from tests.interop.cluster.stores import PARTITIONS, RECORD_BYTES, Nodes, held, nodes, rows
from tests.interop.kafka_cluster import KafkaCluster
from tests.interop.secured import PASSWORD, USER, secured_broker
from tests.support.certificates import Certificates

FIT = {
    "cleanup.policy": "compact",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "max.message.bytes": str(2 * RECORD_BYTES),
    "message.timestamp.type": "LogAppendTime",
    "delete.retention.ms": "86400000",
}


async def test_a_topic_is_made_as_it_has_to_be(three_brokers: KafkaCluster) -> None:
    async with nodes(three_brokers) as cluster, Admin(three_brokers.bootstrap) as admin:
        await asyncio.gather(cluster.node(1), cluster.node(2), cluster.node(3))
        [topic] = await admin.describe_topics([cluster.topic])
        assert len(topic.partitions) == PARTITIONS
        assert all(len(part.replicas) == 3 for part in topic.partitions)
        configs = {name: config.value for name, config in (await admin.topic_configs(cluster.topic)).items()}
        assert {name: configs[name] for name in FIT} == {
            **FIT,
            "min.insync.replicas": "2",
            "max.message.bytes": str(RECORD_BYTES + 128 * 1024),
        }


async def unfit(cluster: Nodes) -> bool:
    """Whether a node refuses the topic."""
    try:
        await cluster.node(1)
    except StorageError:
        return True
    return False


@pytest.mark.parametrize(
    ("configs", "says"),
    [
        ({"cleanup.policy": "delete"}, "cleanup.policy=delete, .* set it to compact"),
        ({"cleanup.policy": "compact,delete"}, "cleanup.policy=compact,delete, .* set it to compact"),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable=true, .* to false"),
        (
            {"max.message.bytes": "1048588"},
            r"max.message.bytes=1048588, .* set it to 1131072 \(group.max.record.bytes .*\), or lower",
        ),
        ({"message.timestamp.type": "CreateTime"}, "message.timestamp.type=CreateTime, .* set it to LogApp"),
        ({"delete.retention.ms": "1000"}, "delete.retention.ms=1000, .* set it to 86400000"),
        ({"min.insync.replicas": "2"}, "min.insync.replicas=2 and 1 replicas, .* give it more"),
    ],
)
async def test_a_topic_that_would_lose_records_is_refused(
    one_broker: KafkaCluster, configs: dict[str, str], says: str
) -> None:
    async with nodes(one_broker) as cluster, Admin(one_broker.bootstrap) as admin:
        await admin.create_topic(cluster.topic, PARTITIONS, configs={**FIT, **configs})
        with pytest.raises(StorageError, match=f"topic {cluster.topic} has {says}") as refused:
            await cluster.node(1)
        assert refused.value.failure is Failure.UNFIT
        await admin.alter_topic_configs(cluster.topic, FIT)
        async with asyncio.timeout(60):
            while await unfit(cluster):  # the brokers hear of it one after the other
                pass


async def test_replicas_that_need_not_be_in_sync_are_refused(three_brokers: KafkaCluster) -> None:
    async with nodes(three_brokers) as cluster, Admin(three_brokers.bootstrap) as admin:
        await admin.create_topic(cluster.topic, PARTITIONS, replication_factor=3, configs=FIT)
        with pytest.raises(StorageError, match=r"min\.insync\.replicas=1, .* set it to 2"):
            await cluster.node(1)


async def test_another_number_of_partitions_is_refused(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        await cluster.node(1)
        with pytest.raises(StorageError, match=r"has 4 partitions, and offsets\.topic\.num\.partitions is 5"):
            await cluster.node(2, partitions=5)


async def test_more_replicas_than_brokers_are_refused(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        with pytest.raises(StorageError, match=r"cluster\.replication\.factor=2: .*brokers") as refused:
            await cluster.node(1, replication_factor=2)
        assert refused.value.failure is Failure.UNFIT


async def test_a_cluster_that_is_not_there_is_waited_for_and_named() -> None:
    store = KafkaStorage("127.0.0.1:1", Claim(1, "node-1", 9092, "1.0"), timeout_ms=500)
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1: Connection refused") as away:
        await store.start()
    assert away.value.failure is Failure.AWAY


async def test_nothing_is_acknowledged_that_goes_into_a_topic_made_again(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster, Admin(one_broker.bootstrap) as admin:
        failures: list[Exception] = []
        store = await cluster.node(1, on_failed=failures.append)
        epoch = await store.open(0, 0)
        await store.append([(0, epoch, [(b"a", b"1")])])
        await admin.delete_topics([cluster.topic])
        await admin.create_topic(cluster.topic, PARTITIONS, configs=FIT)
        with pytest.raises(StorageError, match=r"what was acknowledged is gone|was deleted and made again"):
            await store.append([(0, epoch, [(b"a", b"2")])])
        with pytest.raises(StorageError, match="was deleted and made again") as refused:
            await store.open(0, 0)
        assert refused.value.failure is Failure.UNFIT
        assert failures == [refused.value]


async def test_a_topic_that_takes_less_than_it_did_ends_the_partition(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster, Admin(one_broker.bootstrap) as admin:
        store = await cluster.node(1)
        epoch = await store.open(0, 0)
        await store.append([(0, epoch, [(b"a", b"1")])])
        await admin.alter_topic_configs(cluster.topic, {"max.message.bytes": "10000"})
        large = random.Random(0).randbytes(100_000)

        async def append_for_ever() -> None:
            while True:  # the broker does not know it yet
                await store.append([(0, epoch, [(b"b", large)])])

        with pytest.raises(StorageError, match=r"raise its max\.message\.bytes") as refused:
            await asyncio.wait_for(append_for_ever(), 60)
        assert refused.value.failure is Failure.TOO_LARGE
        epoch = await store.open(0, 0)
        assert (await held(store, 0))[b"a"] == b"1"
        await store.append([(0, epoch, [(b"c", b"3")])])


async def test_compaction_keeps_the_last_record_of_each_key(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster, Admin(one_broker.bootstrap) as admin:
        store = await cluster.node(1)
        eager = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "0"}
        await admin.alter_topic_configs(cluster.topic, eager)
        expected: dict[bytes, bytes | None] = {}
        count = 0
        async with asyncio.timeout(120):
            while True:
                epoch = await store.open(0, 0)
                found = await rows(store, 0)
                assert {key: value for key, value in dict(found).items() if value is not None} == expected
                if count > 200 and len(found) < count / 2:
                    break  # it was compacted, tombstones and claims included
                for _ in range(10):
                    batch: list[Any] = [
                        (b"%d" % (number % 20), b"%d" % number) for number in range(count, count + 7)
                    ]
                    batch.append((batch[0][0], None))
                    count += len(batch)
                    await store.append([(0, epoch, batch)])
                    expected.update(batch)
                    expected = {key: value for key, value in expected.items() if value is not None}


async def test_a_node_proves_who_it_is(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    with secured_broker(tmp_path / "broker", certificates) as broker:
        store = KafkaStorage(
            broker.address("SECURE"),
            Claim(1, "node-1", 9092, "1.0"),
            replication_factor=1,
            tls=certificates.client_tls(),
            sasl=SaslScram(USER, PASSWORD),
        )
        await store.start()
        epoch = await store.open(7, 0)
        await store.append([(7, epoch, [(b"a", b"1")])])
        await store.open(7, 0)
        assert await held(store, 7) == {b"a": b"1"}
        await store.close()
        stranger = KafkaStorage(
            broker.address("SECURE"),
            Claim(1, "node-1", 9092, "1.0"),
            tls=certificates.client_tls(),
            sasl=SaslScram(USER, "wrong"),
        )
        with pytest.raises(StorageError) as refused:
            await stranger.start()
        assert refused.value.failure is Failure.UNFIT
