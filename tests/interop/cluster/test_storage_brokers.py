"""The store on three real brokers, of which one is killed, stopped or paused while it appends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import pytest

from ringleader.clients.admin import Admin
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import KafkaStorage
from tests.interop.cluster.stores import PARTITIONS, nodes, rows
from tests.interop.kafka_cluster import KafkaCluster


async def leader(brokers: KafkaCluster, topic: str, partition: int) -> int:
    """The node id of the broker that leads it."""
    async with Admin(brokers.bootstrap) as admin:
        while True:
            [found] = await admin.describe_topics([topic])
            if (node := found.partitions[partition].leader) in brokers.brokers:
                return node
            await asyncio.sleep(0.1)


class Writing:
    """Appends numbers to all partitions, several under way, until it is stopped."""

    def __init__(self, store: KafkaStorage, epochs: list[int]) -> None:
        self._store = store
        self._epochs = epochs
        self._stop = False
        self._news = asyncio.Condition()
        self.written = [0] * len(epochs)
        """How many are acknowledged, by partition."""
        self.longest_s = 0.0
        """The longest time that an append took."""

    async def run(self) -> None:
        """Until `stop`."""
        await asyncio.gather(*(self._run(partition) for partition in range(len(self._epochs))))

    def stop(self) -> None:
        """No more."""
        self._stop = True

    async def more(self, count: int) -> None:
        """Until each partition has so many more."""
        wanted = [written + count for written in self.written]
        async with self._news:
            await self._news.wait_for(
                lambda: all(written >= least for written, least in zip(self.written, wanted, strict=True))
            )

    async def _run(self, partition: int) -> None:
        epoch, number = self._epochs[partition], 0
        while not self._stop:
            began_s = time.monotonic()
            calls = [
                self._store.append([(partition, epoch, [(b"k", b"%d" % (number + ahead))])])
                for ahead in range(3)
            ]
            await asyncio.gather(*calls)
            number += len(calls)
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            async with self._news:
                self.written[partition] = number
                self._news.notify_all()


@contextlib.asynccontextmanager
async def writing(brokers: KafkaCluster) -> AsyncIterator[tuple[Writing, int]]:
    """Appends while the block runs, and then looks whether each record is in the log once and in its order.
    Also the broker that leads partition 0."""
    async with nodes(brokers) as cluster:
        store = await cluster.node(1)
        at_work = Writing(store, [await store.open(partition, 0) for partition in range(PARTITIONS)])
        running = asyncio.create_task(at_work.run())
        await at_work.more(3)
        try:
            yield at_work, await leader(brokers, cluster.topic, 0)
        finally:
            at_work.stop()
            await running
        other = await cluster.node(2)
        for partition, written in enumerate(at_work.written):
            await other.open(partition, 0)
            found = [int(value or b"") for _, value in await rows(other, partition)]
            assert found == list(range(written))


@pytest.mark.parametrize("how", [KafkaCluster.kill, KafkaCluster.stop_one], ids=["killed", "stopped"])
async def test_a_leader_ends_and_comes_back(
    three_brokers: KafkaCluster, how: Callable[[KafkaCluster, int], None]
) -> None:
    async with asyncio.timeout(120), writing(three_brokers) as (at_work, broker):
        await asyncio.to_thread(how, three_brokers, broker)
        await at_work.more(30)
        await asyncio.to_thread(three_brokers.restart, broker)
        await at_work.more(30)


async def test_a_leader_hangs(three_brokers: KafkaCluster) -> None:
    async with asyncio.timeout(120), writing(three_brokers) as (at_work, broker):
        three_brokers.pause(broker)
        try:
            await at_work.more(30)
            assert at_work.longest_s < 10, "nobody waited for its answers once another one led"
        finally:
            three_brokers.resume(broker)
        await at_work.more(30)


async def test_too_few_replicas_in_sync_end_a_partition_and_nothing_is_lost(
    three_brokers: KafkaCluster,
) -> None:
    async with nodes(three_brokers) as cluster, Admin(three_brokers.bootstrap) as admin:
        store = await cluster.node(1, timeout_ms=4_000)
        await admin.alter_topic_configs(cluster.topic, {"min.insync.replicas": "3"})
        epoch = await store.open(0, 0)
        await store.append([(0, epoch, [(b"a", b"1")])])
        away = (await leader(three_brokers, cluster.topic, 0)) % 3 + 1
        three_brokers.kill(away)

        async def append_for_ever() -> None:
            while True:  # until the cluster knows that a replica is missing
                await store.append([(0, epoch, [(b"b", b"2")])])

        with pytest.raises(StorageError) as refused:
            await asyncio.wait_for(append_for_ever(), 60)
        assert refused.value.failure is Failure.AWAY
        await asyncio.to_thread(three_brokers.restart, away)
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(StorageError):
                    epoch = await store.open(0, 0)
                    break
        assert (await rows(store, 0))[0] == (b"a", b"1")
        await store.append([(0, epoch, [(b"c", b"3")])])
