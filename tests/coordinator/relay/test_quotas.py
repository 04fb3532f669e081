"""Forwarded requests count for the node's own quotas: for those of the caller, not of the node."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.store import FileStore
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.test_throttle import CLIENT, created, fetch, produce
from tests.support.quota_scripts import altering
from tests.support.relayed import RelayNode, relaying
from tests.support.served import connected

LITTLE = 100.0


@contextlib.asynccontextmanager
async def relayed(directory: Path, **quotas: float | None) -> AsyncIterator[RelayNode]:
    """A node whose clients called `client` have these quotas, before a broker that has none."""
    security = Security(FileStore(directory / "security.json"), AllowAll())
    await security.start()
    settings = Settings(data_dir=directory / "broker", listen="127.0.0.1:0")
    async with (
        Node(settings) as broker,
        connected(broker.host, broker.port) as direct,
    ):
        topic = kafka.CreateTopicsRequestCreatableTopic("orders", 1, 1)
        await direct.call(kafka.CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        for _ in range(4):
            await direct.call(produce(), 9)
        async with relaying(f"{broker.host}:{broker.port}", security=security) as [node]:
            async with connected(node.host, node.port) as administrator:
                answer = await administrator.call(altering((CLIENT, quotas)), 1, "administrator")
                assert [entry.error_code for entry in answer.entries] == [0]
            yield node
    await security.store.close()


async def test_what_is_produced_through_a_node(tmp_path: Path) -> None:
    async with (
        relayed(tmp_path, producer_byte_rate=LITTLE) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as other,
    ):
        assert (await other.call(produce(), 9, "other")).throttle_time_ms == 0
        answer = await client.call(produce(), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert answer.throttle_time_ms > 60_000
        assert [connection.is_muted for connection in node.server.connections].count(True) == 1
        assert (await other.call(produce(), 9, "other")).throttle_time_ms == 0


async def test_what_is_fetched_through_a_node_whose_answers_leave_as_they_came(tmp_path: Path) -> None:
    size = float(len(produce().encode(9)) // 4)
    async with (
        relayed(tmp_path, consumer_byte_rate=size) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as other,
    ):
        everything = await other.call(fetch(), 12, "other")
        first = await client.call(fetch(), 12)
        assert first.throttle_time_ms == 0
        records = [len(one.responses[0].partitions[0].records) for one in (everything, first)]
        assert 0 < records[1] < records[0]
        for version in (12, 4):
            async with connected(node.host, node.port) as again:
                second = await again.call(fetch(), version)
                assert second.responses == []
                assert second.throttle_time_ms > 0
        assert (await other.call(fetch(), 12, "other")).throttle_time_ms == 0


async def test_changes_of_topics_through_a_node(tmp_path: Path) -> None:
    async with (
        relayed(tmp_path, controller_mutation_rate=0.001) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as again,
        connected(node.host, node.port) as third,
        connected(node.host, node.port) as older,
    ):
        first = await client.call(created(1), 7)
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
        second = await client.call(created(2), 7)
        assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert second.throttle_time_ms > 60_000
        deleted = await again.call(kafka.DeleteTopicsRequest(topic_names=["new-1"], timeout_ms=5_000), 5)
        assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        more = kafka.CreatePartitionsRequestCreatePartitionsTopic("new-1", 20, None)
        grown = await third.call(kafka.CreatePartitionsRequest(topics=[more], timeout_ms=5_000), 3)
        assert grown.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        done = await older.call(created(3), 5)
        assert done.topics[0].error_code == 0
        assert done.throttle_time_ms > 60_000
        assert sum(connection.is_muted for connection in node.server.connections) == 4
