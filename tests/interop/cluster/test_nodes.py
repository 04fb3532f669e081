"""Three nodes as processes before a Kafka cluster, broken in every way that one node can be: a stable group
does not rebalance, every commit is acknowledged in the end, and nobody reads an older one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.clients.group.membership import GroupMember, MemberInfo, MemberProtocol
from ringleader.clients.model import Node as Address
from ringleader.coordinator.cluster.map import ClusterMap
from ringleader.coordinator.cluster.overview import Overview, look_until
from ringleader.coordinator.config import Settings
from ringleader.coordinator.groups.routing import partition_for
from ringleader.protocol import messages as kafka
from tests.chaos.targets import Node
from tests.interop.kafka_cluster import KafkaCluster

WAIT_S = 60.0
NODES_GROUP = str(Settings.model_fields["cluster_group_id"].default)
SESSION_S = 6.0
"""Of nodes. A client that goes on sooner has noticed by itself."""
CLIENT_TIMEOUT_MS = 1_500
"""A client waits so long for a node that hangs, once for its commit, once for the coordinator's address."""
TOPIC = "orders"
LOG_CHARACTERS = 5_000
"""Of each node, if a test fails for what the nodes do."""


class Nodes:
    """Three processes, by node id."""

    def __init__(self, directory: Path, brokers: str, *more: str) -> None:
        """`more`: options of all of them."""
        self.brokers = brokers
        options = ("--cluster-replication-factor", "1", "--group-initial-rebalance-delay-ms", "0", *more)
        self.by_id = {
            node_id: Node(directory / f"node-{node_id}", brokers, node_id, options) for node_id in (1, 2, 3)
        }
        for node in self.by_id.values():
            node.directory.mkdir()

    @property
    def bootstrap(self) -> str:
        """Of all that run."""
        return ",".join(node.bootstrap for node in self.by_id.values() if node.running)

    async def all_there(self) -> ClusterMap:
        """Start what is not running, and wait until all three share the partitions."""
        missing = [node for node in self.by_id.values() if not node.running]
        await asyncio.gather(*(asyncio.to_thread(node.start) for node in missing))
        return await self.rest(lambda found: len(found.cluster.nodes) == 3)

    async def rest(self, condition: Any) -> ClusterMap:
        """The map, as soon as this holds of it and nothing moves."""
        seen: list[Overview] = []

        def holds(found: Overview) -> bool:
            seen.append(found)
            return bool(condition(found)) and not found.cluster.moving

        async with Cluster(self.brokers) as cluster:
            try:
                found = await look_until(cluster, NODES_GROUP, holds, WAIT_S)
            except TimeoutError:
                raise AssertionError(f"the nodes do not come to rest: {seen[-1:]}\n{self.logs()}") from None
        assert found is not None
        return found.cluster

    def logs(self) -> str:
        """The last lines of the nodes' logs."""
        return "\n".join(
            f"node {node_id}: {node.log()[-LOG_CHARACTERS:]}" for node_id, node in self.by_id.items()
        )

    def stop(self) -> None:
        """All of them."""
        for node in self.by_id.values():
            if node.running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(node.pid, signal.SIGCONT)
                node.kill()


@pytest.fixture(scope="module")
def _nodes(tmp_path_factory: pytest.TempPathFactory, _one_broker: KafkaCluster) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("nodes"), _one_broker.bootstrap)
    try:
        yield nodes
    finally:
        nodes.stop()


@pytest.fixture
async def nodes(_nodes: Nodes, one_broker: KafkaCluster) -> Nodes:
    """All three serve."""
    await _nodes.all_there()
    async with Admin(_nodes.bootstrap) as admin:
        if TOPIC not in {topic.name for topic in await admin.list_topics()}:
            await admin.create_topic(TOPIC, 3)
    return _nodes


class Worker:
    """A stable member that commits all the time, each time one more."""

    def __init__(self, group: str, bootstrap: str) -> None:
        self.group = group
        self.assignments = 0
        self.acknowledged = 0
        self.longest_s = 0.0
        self.since_s = time.monotonic()
        self._acked = asyncio.Event()
        self._member = GroupMember(
            bootstrap,
            group,
            protocols=[MemberProtocol("p")],
            protocol_type="consumer",
            assign=_share,
            heartbeat_interval_ms=500,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
            request_timeout_ms=CLIENT_TIMEOUT_MS,
            on_assigned=self._assigned,
        )

    def _assigned(self, _assigned: Any) -> None:
        self.assignments += 1

    async def run(self) -> None:
        """Until it is cancelled."""
        async with self._member as member:
            await member.wait_assigned(WAIT_S)
            self.since_s = time.monotonic()
            while True:
                await member.commit({(TOPIC, 0): self.acknowledged + 1}, timeout_s=WAIT_S)
                self.acknowledged += 1
                now_s = time.monotonic()
                self.longest_s, self.since_s = max(self.longest_s, now_s - self.since_s), now_s
                self._acked.set()
                await asyncio.sleep(0.01)

    async def commits(self, more: int) -> None:
        """Wait for `more` more."""
        goal = self.acknowledged + more
        async with asyncio.timeout(WAIT_S):
            while self.acknowledged < goal:
                self._acked.clear()
                await self._acked.wait()


def _share(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
    return {member.member_id: b"\0\0\0\0\0\0\0\0\0\0" for member in members}


@contextlib.asynccontextmanager
async def working(group: str, nodes: Nodes) -> AsyncIterator[Worker]:
    """A group at work; at the end it has not rebalanced, and what it committed is there."""
    worker = Worker(group, nodes.bootstrap)
    task = asyncio.create_task(worker.run())
    try:
        await worker.commits(10)
        worker.longest_s = 0.0
        yield worker
        await worker.commits(10)
        assert worker.assignments == 1, "the group rebalanced"
        acknowledged = worker.acknowledged
        async with Admin(nodes.bootstrap) as admin:
            committed = await admin.group_offsets(group)
        assert committed[(TOPIC, 0)].offset >= acknowledged
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def owner_of(group: str, nodes: Nodes) -> int:
    async with Cluster(nodes.bootstrap) as cluster:
        return (await cluster.coordinator(group)).node_id


def says(what: str, worker: Worker) -> None:
    print(f"{what}: {worker.longest_s:.2f} s without an acknowledged commit")


async def test_every_node_names_the_same_coordinators(nodes: Nodes) -> None:
    cluster_map = await nodes.rest(lambda found: len(found.cluster.nodes) == 3)
    groups = [f"group-{number}" for number in range(50)]
    for node in nodes.by_id.values():
        async with Cluster(node.bootstrap) as cluster:
            for group in groups:
                found = await cluster.coordinator(group)
                assert found.node_id == cluster_map.owners[partition_for(group)]
                assert found.port == nodes.by_id[found.node_id].port


async def test_the_owner_is_killed(nodes: Nodes) -> None:
    async with working("killed", nodes) as worker:
        owner = await owner_of("killed", nodes)
        nodes.by_id[owner].kill()
        await worker.commits(50)
        says("kill -9 of the owner", worker)
        assert worker.longest_s < SESSION_S
        assert await owner_of("killed", nodes) != owner


async def test_the_owner_stops(nodes: Nodes) -> None:
    async with working("stopped", nodes) as worker:
        owner = await owner_of("stopped", nodes)
        stopping = asyncio.to_thread(nodes.by_id[owner].stop)
        await asyncio.gather(stopping, worker.commits(50))
        says("clean stop of the owner", worker)
        assert worker.longest_s < SESSION_S / 2
        log = nodes.by_id[owner].log()
        assert "leaving before all partitions" not in log


async def test_the_controller_is_killed(nodes: Nodes) -> None:
    controller = (await nodes.all_there()).controller
    async with working("led", nodes) as worker:
        nodes.by_id[controller].kill()
        after = await nodes.rest(lambda found: len(found.cluster.nodes) == 2)
        assert after.controller != controller
        await worker.commits(10)
        says("kill -9 of the controller", worker)
        assert worker.longest_s < SESSION_S


async def ask(*arguments: str) -> Any:
    """``ringleader nodes``, as JSON."""
    command = [sys.executable, "-m", "ringleader", "nodes", *arguments, "--json"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


async def test_a_node_is_drained_and_taken_back(nodes: Nodes) -> None:
    cluster = ("--cluster", nodes.brokers)
    async with working("drained", nodes) as worker:
        owner = await owner_of("drained", nodes)
        rows = await ask("drain", str(owner), *cluster)
        assert [(row["shards"], row["state"]) for row in rows if row["node"] == owner] == [(0, "drained")]
        await worker.commits(10)
        says("drain of the owner", worker)
        assert await owner_of("drained", nodes) != owner
        rows = await ask("drain", str(owner), "--undo", *cluster)
        assert sorted(row["shards"] for row in rows) == [16, 17, 17]


async def test_a_shard_is_moved(nodes: Nodes) -> None:
    cluster = ("--cluster", nodes.brokers)
    async with working("moved", nodes) as worker:
        owner = await owner_of("moved", nodes)
        [row] = await ask("shards", "--group", "moved", *cluster)
        assert row["node"] == owner
        heir = owner % 3 + 1
        await ask("move", str(row["shard"]), str(heir), *cluster)
        await worker.commits(10)
        says("planned move", worker)
        assert await owner_of("moved", nodes) == heir
        assert worker.longest_s < SESSION_S / 2
        [row] = await ask("shards", "--group", "moved", *cluster)
        assert (row["node"], row["pinned"]) == (heir, True)


async def test_a_node_joins(nodes: Nodes) -> None:
    nodes.by_id[3].stop()
    await nodes.rest(lambda found: len(found.cluster.nodes) == 2)
    async with working("joined", nodes) as worker:
        await nodes.all_there()
        await worker.commits(10)
        says("a node joins", worker)
        assert worker.longest_s < SESSION_S / 2


async def test_the_owner_hangs_and_wakes(nodes: Nodes) -> None:
    """When it wakes, it neither has its partitions any more nor answers from what it remembers of them."""
    async with working("hangs", nodes) as worker:
        owner = await owner_of("hangs", nodes)
        zombie = nodes.by_id[owner]
        os.kill(zombie.pid, signal.SIGSTOP)
        try:
            await worker.commits(50)
            says("SIGSTOP of the owner", worker)
            assert worker.longest_s < SESSION_S + 2 * CLIENT_TIMEOUT_MS / 1000
            acknowledged = worker.acknowledged
        finally:
            os.kill(zombie.pid, signal.SIGCONT)
        seen = [await read_from(zombie.port, "hangs") for _ in range(50)]
        assert all(offset is None or offset >= acknowledged for offset in seen), seen
        await nodes.all_there()


async def read_from(port: int, group: str) -> int | None:
    """The committed offset that this node itself reports; None if it refuses."""
    topics = [kafka.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    request = kafka.OffsetFetchRequestGroup(group_id=group, topics=topics)
    async with Cluster(f"127.0.0.1:{port}") as cluster:
        try:
            answer = await cluster.send(
                Address(0, "127.0.0.1", port), plain(kafka.OffsetFetchRequest(groups=[request]))
            )
        except ClientError:
            return None
    [found] = answer.groups
    return None if found.error_code else int(found.topics[0].partitions[0].committed_offset)
