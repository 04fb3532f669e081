"""The three brokers that other tests stand on."""

from __future__ import annotations

import asyncio

from ringleader.clients.connection.cluster import Cluster
from tests.interop.kafka_cluster import KafkaCluster


async def alive(bootstrap: str, wanted: set[int]) -> None:
    """Returns when the brokers that answer know exactly those."""
    async with Cluster(bootstrap, request_timeout_ms=2_000) as cluster, asyncio.timeout(60):
        while True:
            await cluster.ready(60)
            if set((await cluster.metadata([])).brokers) == wanted:
                return
            await asyncio.sleep(0.1)


async def test_brokers_leave_the_cluster_and_come_back(three_brokers: KafkaCluster) -> None:
    await alive(three_brokers.bootstrap, {1, 2, 3})
    address = three_brokers.brokers[2].bootstrap
    three_brokers.kill(2)
    await alive(three_brokers.bootstrap, {1, 3})
    await asyncio.to_thread(three_brokers.restart, 2)
    assert three_brokers.brokers[2].bootstrap == address
    await alive(address, {1, 2, 3})
    three_brokers.pause(3)
    try:
        await alive(f"{address},{three_brokers.brokers[1].bootstrap}", {1, 2})
    finally:
        three_brokers.resume(3)
    await alive(three_brokers.bootstrap, {1, 2, 3})
