"""The store on three real brokers, of which one is killed, stopped or paused while it appends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import pytest

from ringleader.clients.admin import Admin
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.storage.kafka import KafkaStorage
from ringleader.protocol.errors import ErrorCode
from tests.interop.cluster.stores import PARTITIONS, nodes, rows
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.groupclient import Member, form
from tests.support.served import Client, serving


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
        """Wait until each partition has `count` more."""
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


async def test_members_stay_members_while_too_few_replicas_are_in_sync(three_brokers: KafkaCluster) -> None:
    async with (
        nodes(three_brokers, partitions=50) as cluster,
        Admin(three_brokers.bootstrap) as admin,
        asyncio.timeout(120),
    ):
        partition = partition_for("g", 50)
        async with (
            serving(cluster.make(1), acquired=[partition], storage_timeout_ms=2_000) as server,
            server.connect() as client,
        ):
            server.runtime.vouch = lambda _partition: True
            await admin.alter_topic_configs(cluster.topic, {"min.insync.replicas": "3"})
            member = await form(client, "g")
            assert await committed(client, member, 1) == ErrorCode.NONE
            away = (await leader(three_brokers, cluster.topic, partition)) % 3 + 1
            three_brokers.kill(away)
            while (code := await committed(client, member, 2)) == ErrorCode.NONE:
                pass  # until the cluster knows that a replica is missing
            assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert server.runtime.late == {partition}
            assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
            await asyncio.to_thread(three_brokers.restart, away)
            while await committed(client, member, 3) != ErrorCode.NONE:
                pass
            assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
            assert not server.runtime.late


async def test_members_stay_members_while_two_of_three_brokers_hang(three_brokers: KafkaCluster) -> None:
    """All but the leader of their group's log. Commits wait, are refused as late, and count again later."""
    async with nodes(three_brokers, partitions=50) as cluster, asyncio.timeout(150):
        partition = partition_for("g", 50)
        async with (
            serving(cluster.make(1), acquired=[partition]) as server,
            server.connect() as client,
        ):
            server.runtime.vouch = lambda _partition: True
            member = await form(client, "g")
            assert await committed(client, member, 1) == ErrorCode.NONE
            leads = await leader(three_brokers, cluster.topic, partition)
            hanging = [broker for broker in three_brokers.brokers if broker != leads]
            for broker in hanging:
                three_brokers.pause(broker)
            try:
                for _ in range(3):
                    assert await committed(client, member, 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
                    assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
                assert server.runtime.late == {partition}
            finally:
                for broker in hanging:
                    three_brokers.resume(broker)
            while await committed(client, member, 3) != ErrorCode.NONE:
                pass
            assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
            assert not server.runtime.late
            assert not server.events("shard lost")


async def committed(client: Client, member: Member, offset: int) -> int:
    """The error code of a commit."""
    answer = await client.call(member.commit(offset), 8)
    return int(answer.topics[0].partitions[0].error_code)
