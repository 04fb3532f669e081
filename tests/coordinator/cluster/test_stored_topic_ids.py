"""The topic id that nodes store with a committed offset (OffsetCommitValue v4): the cluster's own, in the
bytes that the daemon and Kafka write (`tests/interop/clients/test_stored_topic_ids_on_kafka.py`)."""

from __future__ import annotations

from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.routing import partition_for
from ringleader.protocol.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ringleader.protocol.schema import ZERO_UUID
from ringleader.testing import Coordinator
from tests.coordinator.cluster.test_node import alike
from tests.support.cluster_nodes import Nodes
from tests.support.served import connected, until

GROUP = "group-7"
PARTITION = partition_for(GROUP, 50)
BY_NAME, BY_ID = 9, 10
AT_MS = 1_000
"""In place of the time of each commit."""


async def topic_id(at: ClusterNode | Coordinator) -> bytes:
    host, port = at.bootstrap.split(":")
    async with connected(host, int(port)) as client:
        request = MetadataRequest([MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False)
        return bytes((await client.call(request, 12)).topics[0].topic_id)


async def commit(node: ClusterNode, version: int, partition: int, of: bytes, metadata: str = "") -> int:
    rows = [OffsetCommitRequestPartition(partition, 5, 7, metadata)]
    request = OffsetCommitRequest(GROUP, -1, "", topics=[OffsetCommitRequestTopic("orders", of, rows)])
    async with connected("127.0.0.1", node.port) as client:
        answer = await client.call(request, version)
    return int(answer.topics[0].partitions[0].error_code)


async def read(node: ClusterNode, of: bytes) -> list[int]:
    topics = [OffsetFetchRequestTopics(topic_id=of, partition_indexes=[0, 1])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, None, -1, topics)])
    async with connected("127.0.0.1", node.port) as client:
        [group] = (await client.call(request, BY_ID)).groups
    return [one.committed_offset for topic in group.topics for one in topic.partitions]


def stored(nodes: Nodes) -> dict[int, bytes]:
    """By partition, the values of the group's offsets in the log, with their time replaced."""
    found: dict[int, bytes] = {}
    for _, _, key, value in nodes.shared.rows[PARTITION]:
        named = records.decode_key(key)
        if named is not None and named[0] == records.OFFSET and value is not None:
            stamp = records.decode_offset_value(value).commit_ms.to_bytes(8, "big")
            found[named[3]] = value.replace(stamp, AT_MS.to_bytes(8, "big"))
    return found


async def test_every_owner_stores_the_clusters_id_and_reads_by_it(
    nodes: Nodes, kafka_cluster: Coordinator
) -> None:
    made = {node_id: await nodes.start(node_id) for node_id in (1, 2)}
    first = (await alike(*made.values()))[GROUP]
    its_id = await topic_id(kafka_cluster)
    assert [await topic_id(node) for node in made.values()] == [its_id, its_id]
    assert await commit(made[first], BY_NAME, 0, ZERO_UUID) == 0
    assert await commit(made[first], BY_ID, 1, its_id, "where I was" * 20) == 0
    at_five = b"\0\4" + (5).to_bytes(8, "big") + (7).to_bytes(4, "big")
    ending = AT_MS.to_bytes(8, "big") + b"\1\0\x10" + its_id  # the id is a tagged field
    before = stored(nodes)
    assert before == {
        0: at_five + b"\1" + ending,
        1: at_five + b"\xdd\1" + b"where I was" * 20 + ending,
    }
    await made[first].stop()
    second = made[3 - first]
    await until(lambda: PARTITION in second.runtime.serving)
    assert await read(second, its_id) == [5, 5]
    assert await commit(second, BY_NAME, 0, ZERO_UUID) == 0
    assert await commit(second, BY_ID, 1, its_id, "where I was" * 20) == 0
    assert stored(nodes) == before
