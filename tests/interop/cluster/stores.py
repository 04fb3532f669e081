"""Stores of nodes on a real cluster, each test with a topic of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from tests.interop.kafka_cluster import KafkaCluster

PARTITIONS = 4
RECORD_BYTES = 1_000_000

_numbers = itertools.count(1)


class Nodes:
    """Makes the stores of nodes that share one topic; all are closed at the end."""

    def __init__(self, brokers: KafkaCluster, **settings: Any) -> None:
        self.brokers = brokers
        self.topic = f"groups-{next(_numbers)}"
        self._settings = {
            "topic": self.topic,
            "transactional_id_prefix": self.topic,
            "partitions": PARTITIONS,
            "replication_factor": len(brokers.brokers),
            "max_record_bytes": RECORD_BYTES,
            **settings,
        }
        self._stores: list[KafkaStorage] = []

    async def node(self, node_id: int, bootstrap: str = "", **settings: Any) -> KafkaStorage:
        """The store of a node, started. `bootstrap`: default all brokers."""
        store = self.make(node_id, bootstrap, **settings)
        await store.start()
        return store

    def make(self, node_id: int, bootstrap: str = "", **settings: Any) -> KafkaStorage:
        """Likewise, not started."""
        claim = Claim(node_id, f"node-{node_id}", 9092, "1.0")
        store = KafkaStorage(bootstrap or self.brokers.bootstrap, claim, **{**self._settings, **settings})
        self._stores.append(store)
        return store

    async def close(self) -> None:
        """All stores that were made."""
        for store in self._stores:
            await store.close()


@asynccontextmanager
async def nodes(brokers: KafkaCluster, **settings: Any) -> AsyncIterator[Nodes]:
    """See `Nodes`."""
    made = Nodes(brokers, **settings)
    try:
        yield made
    finally:
        await made.close()


async def rows(store: KafkaStorage, partition: int) -> list[tuple[bytes, bytes | None]]:
    """The records of a partition, tombstones included, in its order."""
    before, found = -1, []
    async for chunk in store.replay(partition):
        for position, _, key, value in chunk:
            assert position > before
            before = position
            found.append((key, value))
    return found


async def held(store: KafkaStorage, partition: int) -> dict[bytes, bytes | None]:
    """The last value of each key that has one."""
    return {key: value for key, value in dict(await rows(store, partition)).items() if value is not None}
