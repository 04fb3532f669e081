"""A consumer's records come from its rack: nodes and real brokers in three racks (KIP-392)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from ringleader import PartitionConsumer
from tests.interop.cluster.test_relay import PARTITIONS, WAIT_S, created, produce, values_of
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.relayed import RelayNode, relaying

RACKS = {1: "a", 2: "b", 3: "c"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    properties = {"replica.selector.class": SELECTOR}
    directory = tmp_path_factory.mktemp("racks")
    with KafkaCluster(directory, properties=properties, racks=RACKS) as made:
        yield made


def consume(nodes: str, topic: str, rack: str, wanted: int) -> list[bytes]:
    """With librdkafka; an offset that is out of range is an error."""
    options = {"bootstrap.servers": nodes, "group.id": "none", "client.rack": rack}
    consumer = Consumer({**options, "enable.auto.commit": False, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < wanted and time.monotonic() < until_s:
        for record in consumer.consume(1_000, 1.0):
            assert record.error() is None, record.error()
            found.append(record.value() or b"")
    consumer.close()
    return found


def received(nodes: list[RelayNode]) -> list[int]:
    return [node.relay.arrivals.received_bytes for node in nodes]


@pytest.mark.timeout(300)
async def test_records_come_through_the_node_and_from_the_broker_of_the_consumers_rack(
    cluster: KafkaCluster,
) -> None:
    async with relaying(cluster.bootstrap, 3, racks=("a", "b", "c")) as nodes:
        where = ",".join(node.bootstrap for node in nodes)
        await created(where, "racks")
        values = values_of(3_000, 1_000)
        await asyncio.to_thread(produce, where, "racks", values)
        size = sum(map(len, values))

        before = received(nodes)
        assert sorted(await asyncio.to_thread(consume, where, "racks", "b", len(values))) == values
        received_bytes = [after - was for after, was in zip(received(nodes), before, strict=True)]
        assert received_bytes[1] > size
        assert max(received_bytes[0], received_bytes[2]) < size / 20, "no records"

        chosen = nodes[1].relay.nearby._chosen
        leaders = nodes[1].relay.topology.describe("racks").leaders  # type: ignore[union-attr]
        assert len(chosen) == sum(leader != 2 for leader in leaders) > 0
        assert {one.broker for one in chosen.values()} == {2}

        # Its broker is gone: the leaders serve.
        await asyncio.to_thread(cluster.kill, 2)
        found: list[bytes] = []
        async with (
            asyncio.timeout(WAIT_S),
            PartitionConsumer(where, ["racks"], auto_offset_reset="earliest", client_rack="b") as reader,
        ):
            while len(found) < len(values):
                found += [record.value or b"" for record in (await anext(reader)).records]
        assert sorted(found) == values
