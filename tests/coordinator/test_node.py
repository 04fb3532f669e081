"""One node from all rooms: it starts, serves, stops, and finds everything again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.identity import IDENTITY_FILE
from ringleader.coordinator.node import GROUPS_FILE, Node
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.serving import StartError
from ringleader.coordinator.storage.base import Failure
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeClusterRequest,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    MetadataRequest,
)
from tests.support.cluster_nodes import Lines
from tests.support.groupclient import form
from tests.support.memory_store import MemoryStorage
from tests.support.served import Client


def settings(directory: Path, **more: Any) -> Settings:
    """Settings of a node in `directory` on a free port."""
    options: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "data_dir": directory / "data",
        "group_initial_rebalance_delay_ms": 0,
        "shutdown_grace_ms": 1_000,
        **more,
    }
    return Settings(**options)


@contextlib.asynccontextmanager
async def connected(node: Node) -> AsyncIterator[Client]:
    """A connection to a node."""
    client = Client(*await asyncio.open_connection(node.host, node.port))
    try:
        yield client
    finally:
        await client.close()


async def test_groups_offsets_topics_and_identity_are_found_again(tmp_path: Path) -> None:
    chosen = settings(tmp_path, topic="orders:3")
    async with Node(chosen) as node, connected(node) as client:
        member = await form(client, "group")
        answer = await client.call(member.commit(9), 7)
        assert answer.topics[0].partitions[0].error_code == 0
        before = await client.call(MetadataRequest(topics=None), 10)
        assert [len(topic.partitions) for topic in before.topics if topic.name == "orders"] == [3]
    assert {GROUPS_FILE, IDENTITY_FILE} <= {path.name for path in chosen.data_dir.iterdir()}
    async with Node(chosen) as node, connected(node) as client:
        assert (await client.call(member.heartbeat(), 4)).error_code == 0
        after = await client.call(MetadataRequest(topics=None), 10)
        assert after.cluster_id == before.cluster_id
        assert [topic.topic_id for topic in after.topics] == [topic.topic_id for topic in before.topics]


async def test_after_a_start_the_first_session_is_that_of_the_groups_configuration(tmp_path: Path) -> None:
    """Kafka 4.3 (GroupMetadataManager.onLoaded): the broker's 45 s would keep the silent member."""
    chosen = settings(tmp_path, topic="orders:1", group_consumer_min_session_timeout_ms=1)
    chosen = chosen.model_copy(update={"group_consumer_heartbeat_interval_ms": 100})
    change = IncrementalAlterConfigsRequestAlterableConfig("consumer.session.timeout.ms", 0, "1000")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(32, "g", [change])
    async with Node(chosen) as node, connected(node) as client:
        answer = await client.call(IncrementalAlterConfigsRequest([resource]), 1)
        assert [one.error_code for one in answer.responses] == [0]
        join = ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=1_000, topic_partitions=[])
        join.subscribed_topic_names = ["orders"]
        assert (await client.call(join, 1)).error_code == 0
    async with Node(chosen) as node, connected(node) as client, asyncio.timeout(30):
        while (await client.call(ConsumerGroupDescribeRequest(["g"]), 1)).groups[0].members:
            pass


async def test_every_api_that_is_listed_has_a_handler(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node, connected(node) as client:
        answer = await client.call(ApiVersionsRequest(), 0)
        ranges = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        assert set(ranges) == set(node.server.routes)
        assert ranges[0] == (0, 13), "librdkafka compresses only if it sees Produce v0 (KAFKA-18659)"
        assert {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 22, 42} <= set(ranges)


async def test_clients_are_told_where_to_come(tmp_path: Path) -> None:
    chosen = settings(tmp_path, advertised_address="broker.example:19092", node_id=4)
    async with Node(chosen) as node, connected(node) as client:
        found = await client.call(FindCoordinatorRequest(key="group"), 1)
        assert (found.node_id, found.host, found.port) == (4, "broker.example", 19_092)
        [broker] = (await client.call(MetadataRequest(topics=[]), 4)).brokers
        assert (broker.node_id, broker.host, broker.port) == (4, "broker.example", 19_092)


async def test_a_name_and_port_zero_take_one_port(tmp_path: Path) -> None:
    async with Node(settings(tmp_path, listen="localhost:0")) as node, connected(node) as client:
        assert node.bootstrap.endswith(f":{node.port}")
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0


async def test_second_node_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    async with Node(chosen) as node, connected(node) as client:
        with pytest.raises(StartError, match="another ringleader uses this data directory"):
            await Node(chosen).start()
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
    async with Node(chosen) as node, connected(node) as client:
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0


async def test_taken_port_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Node(settings(tmp_path / "one")) as node:
        other = settings(tmp_path / "two", listen=f"127.0.0.1:{node.port}")
        with pytest.raises(OSError, match="address already in use"):
            await Node(other).start()
    async with Node(other) as again:
        assert again.port == other.listen.port


def _newer_groups(data: Path) -> None:
    (data / GROUPS_FILE).write_bytes(b"SQLite format 3\0" + bytes(84))


def _broken_identity(data: Path) -> None:
    (data / IDENTITY_FILE).write_text(json.dumps(["no id"]))


@pytest.mark.parametrize("damage", [_newer_groups, _broken_identity])
async def test_directory_that_is_not_understood_is_one_sentence(tmp_path: Path, damage: Any) -> None:
    chosen = settings(tmp_path)
    chosen.data_dir.mkdir()
    damage(chosen.data_dir)
    before = {path.name: path.read_bytes() for path in chosen.data_dir.iterdir()}
    node = Node(chosen)
    with pytest.raises(StartError) as refused:
        await node.start()
    assert "\n" not in str(refused.value)
    assert {name: (chosen.data_dir / name).read_bytes() for name in before} == before
    await node.stop()


async def test_bad_topic_name_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="INVALID_TOPIC_EXCEPTION"):
        await Node(settings(tmp_path, topic="no spaces please:1")).start()


def test_node_runs_in_a_thread_of_its_own_on_a_stock_loop(tmp_path: Path) -> None:
    started, bootstrap = threading.Event(), []

    async def serve() -> None:
        async with Node(settings(tmp_path)) as node, connected(node) as client:
            bootstrap.append(node.bootstrap)
            assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
            started.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    thread.join(30)
    assert started.is_set()
    assert bootstrap[0].startswith("127.0.0.1:")


async def test_stop_ends_long_polls_and_parked_joins(tmp_path: Path) -> None:
    node = Node(settings(tmp_path, topic="orders:1"))
    await node.start()
    async with connected(node) as poller, connected(node) as client:
        await form(client, "group")
        partition = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
        request = FetchRequest(
            max_wait_ms=600_000,
            min_bytes=1,
            max_bytes=1_000,
            topics=[FetchRequestFetchTopic(topic="orders", partitions=[partition])],
        )
        poller.send(request, 11)
        await client.call(ApiVersionsRequest(), 0)
        async with asyncio.timeout(20):
            await node.stop()
        await poller.rest()
        assert await client.rest() == b""
    await node.stop()


@pytest.mark.leaves("RuntimeError: a bug")
async def test_work_that_fails_is_contained(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    async with Node(settings(tmp_path)) as node, connected(node) as client:
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        [connection] = node.server.connections
        call = Call(connection.session, 18, 0, 1, None, "/127.0.0.1")
        node._spawn(call, fail())
        connection.park(call)
        assert await client.rest() == b""
        async with connected(node) as other:
            assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0
    assert [record for record in caplog.records if record.exc_info]


@pytest.mark.leaves("a node can serve no more")
async def test_store_that_cannot_be_trusted_is_reported(tmp_path: Path) -> None:
    storage = MemoryStorage()
    async with Node(settings(tmp_path, topic="orders:1"), storage=storage) as node:
        async with connected(node) as client:
            member = await form(client, "group")
            storage.fail_append(1, Failure.IO_ERROR)
            answer = await client.call(member.commit(1), 7)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        async with asyncio.timeout(20):
            await node.wait_failed()


async def test_each_listener_tells_its_own_address(tmp_path: Path) -> None:
    chosen = Settings(
        listeners="ONE://127.0.0.1:0,TWO://localhost:0",
        advertised_listeners="two://broker.example:0",
        listener_security_protocol_map="ONE:PLAINTEXT,TWO:PLAINTEXT",
        data_dir=tmp_path,
    )
    async with Node(chosen) as node:
        one, two = (listener.address for listener in node.server.listeners)
        assert node.bootstrap == str(one) != str(two)
        for address, host in ((one, "127.0.0.1"), (two, "broker.example")):
            client = Client(*await asyncio.open_connection(*address))
            found = await client.call(FindCoordinatorRequest(key="group"), 1)
            assert (found.host, found.port) == (host, address.port)
            [broker] = (await client.call(MetadataRequest(topics=[]), 4)).brokers
            assert (broker.host, broker.port) == (host, address.port)
            [broker] = (await client.call(DescribeClusterRequest(), 0)).brokers
            assert (broker.host, broker.port) == (host, address.port)
            await client.close()


async def test_a_listener_that_cannot_be_had_leaves_the_others_closed(tmp_path: Path) -> None:
    async with Node(settings(tmp_path / "one")) as node:
        chosen = Settings(
            listeners=f"ONE://127.0.0.1:0,TWO://{node.bootstrap}",
            listener_security_protocol_map="ONE:PLAINTEXT,TWO:PLAINTEXT",
            data_dir=tmp_path / "two",
        )
        other = Node(chosen)
        with pytest.raises(OSError, match=rf"TWO://{node.bootstrap}: .*in use"):
            await other.start()
        assert other.server.listeners == ()


@pytest.mark.leaves("logged by a node")
async def test_work_that_fails_over_and_over_is_one_line(tmp_path: Path) -> None:
    """A client may ask for it as often as it likes."""
    lines = Lines()

    async def fail() -> None:
        raise ValueError("a bug")

    node = Node(settings(tmp_path), log=lines.log)
    async with node:
        before = set(node._tasks)
        for _ in range(100):
            node._spawn(None, fail())
        await asyncio.wait(node._tasks - before)
    assert len(lines.of("work failed")) == 1
