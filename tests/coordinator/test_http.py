"""Health, readiness and metrics of a node over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ringleader.coordinator import http as endpoint
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.config import Address, load_settings
from ringleader.coordinator.groups.memory import LEAST_BYTES
from ringleader.coordinator.node import Node
from ringleader.coordinator.serving import ServingNode, StartError
from ringleader.protocol import messages as kafka
from tests.coordinator.test_node import connected, settings
from tests.support.groupclient import form, join_request
from tests.support.sessions import session_of

Samples = dict[tuple[str, ...], float]
"""Name and label values -> value."""


async def _get(node: ServingNode, path: str) -> tuple[int, str]:
    assert node.http is not None
    address = node.http.address

    def get() -> tuple[int, str]:
        connection = http.client.HTTPConnection(address, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(get)


async def _metrics(node: ServingNode, query: str = "") -> Samples:
    status, text = await _get(node, f"/metrics{query}")
    assert status == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_node_says_how_it_is_and_what_it_did(tmp_path: Path) -> None:
    async with (
        Node(settings(tmp_path, topic="orders:2", http_listen="127.0.0.1:0")) as node,
        connected(node) as client,
        connected(node) as other,
    ):
        assert await _get(node, "/health") == (200, "alive\n")
        assert await _get(node, "/ready") == (200, "ready\n")
        assert (await _get(node, "/nothing"))[0] == 404
        member = await form(client, "g")
        for offset in range(3):
            await client.call(member.commit(offset), 8)
        for _ in range(5):
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
        waiting = other.send(join_request("g"), 3)
        assert (await client.call(member.heartbeat(), 3)).error_code in (0, 27)
        while (found := await _metrics(node))["ringleader_requests_parked", "JoinGroup"] == 0:
            pass
        assert waiting >= 0
        assert found["ringleader_ready",] == 1
        assert found["ringleader_connections",] == 2
        assert node.server.sasl is not None
        node.server.sasl.failed += 2
        assert (await _metrics(node))["ringleader_authentications_total", "failed"] == 2
        assert found["ringleader_authentications_total", "succeeded"] == 0
        names = "ringleader_unauthenticated_held_bytes", "ringleader_unauthenticated_closed_total"
        assert [found[name,] for name in names] == [0, 0]
        node.server.strangers.held_bytes += 5
        node.server.strangers.closed += 2
        assert [(await _metrics(node))[name,] for name in names] == [5, 2]
        assert found["ringleader_unauthenticated_held_bytes_limit",] == 67_108_864
        assert (found["ringleader_throttles_total",], found["ringleader_connections_throttled",]) == (0, 0)
        session_of(next(iter(node.server.connections))).pace.mute(1_000_000)
        throttled = await _metrics(node)
        names = "ringleader_throttles_total", "ringleader_connections_throttled"
        assert [throttled[name,] for name in names] == [1, 1]
        assert found["ringleader_requests_total", "OffsetCommit"] == 3
        assert found["ringleader_request_duration_seconds_count", "OffsetCommit"] == 3
        assert found["ringleader_request_duration_seconds_count", "Heartbeat"] == 6
        assert found["ringleader_request_duration_seconds_bucket", "Heartbeat", "0.001"] == 6
        assert found["ringleader_request_duration_seconds_count", "JoinGroup"] == 1, "the other one waits"
        assert found["ringleader_store_transactions_total",] >= 4
        assert found["ringleader_store_records_total",] >= 5
        assert found["ringleader_store_sync_seconds_count",] == found["ringleader_store_transactions_total",]
        assert found["ringleader_groups", "PreparingRebalance"] == 1
        assert (found["ringleader_members",], found["ringleader_committed_partitions",]) == (2, 1)
        assert found["ringleader_groups_metadata_bytes",] == 4 * LEAST_BYTES
        assert found["ringleader_groups_metadata_bytes_limit",] == 268_435_456
        assert found["ringleader_rebalances_total", "member joined", "stable"] == 1
        assert found["ringleader_shards_serving",] == 50
        assert found["ringleader_loop_lag_seconds_count",] >= 1
        assert 1 <= found["ringleader_tasks",] < 100
        assert found["process_cpu_seconds_total",] > 0
        assert not any(name.startswith("ringleader_group_") for name, *_ in found)


async def test_groups_have_figures_of_their_own_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "GROUPS_MAX", 2)
    async with (
        Node(settings(tmp_path, topic="orders:2", http_listen="127.0.0.1:0")) as node,
        connected(node) as client,
    ):
        for name in ("a", "b", "c"):
            await form(client, name)
        found = await _metrics(node, "?group=b&group=none")
        assert {key[1:]: value for key, value in found.items() if key[0] == "ringleader_group_members"} == {
            ("b",): 1
        }
        assert found["ringleader_group_state", "b", "Stable"] == 1
        found = await _metrics(node, "?groups=all")
        names = {key[1] for key in found if key[0] == "ringleader_group_generation"}
        assert (names, found["ringleader_groups_left_out",]) == ({"a", "b"}, 1)
        assert (await _get(node, "/metrics?groups=some"))[0] == 400


@pytest.mark.leaves("a node can serve no more")
async def test_a_node_that_cannot_serve_is_not_ready(tmp_path: Path) -> None:
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        node.runtime._fail("storage failed", RuntimeError("gone"))
        assert (await _get(node, "/ready"))[0] == 503
        assert (await _get(node, "/health"))[0] == 200


async def test_a_loop_that_hangs_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "ANSWER_TIMEOUT_S", 0.2)
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        assert node.http is not None
        found: list[int] = []
        address = node.http.address

        def ask() -> None:
            connection = http.client.HTTPConnection(address, timeout=60)
            for path in ("/health", "/ready", "/metrics"):
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                found.append(answer.status)
            connection.close()

        asking = threading.Thread(target=ask)
        asking.start()
        asking.join()  # the loop does nothing meanwhile
        assert found == [503, 503, 503]
        assert (await _get(node, "/health"))[0] == 200


async def test_it_starts_and_stops_with_the_node(tmp_path: Path) -> None:
    chosen = settings(tmp_path, http_listen="127.0.0.1:0")
    async with Node(chosen) as node:
        assert node.http is not None
        address = node.http.address
        taken = chosen.model_copy(
            update={"http_listen": Address("127.0.0.1", int(address.rpartition(":")[2]))}
        )
        second = Node(taken.model_copy(update={"data_dir": tmp_path / "other"}))
        with pytest.raises(StartError, match=rf"http.listen {address}: Address already in use"):
            await second.start()
    with pytest.raises(ConnectionRefusedError):
        await _get(node, "/health")
    assert not [one for one in threading.enumerate() if one.name == "ringleader-http"]


async def test_without_the_setting_there_is_none(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node, connected(node) as client:
        assert (node.http, node.server.waits) == (None, None)
        assert (await client.call(kafka.ApiVersionsRequest(), 0)).error_code == 0


async def test_one_of_several_nodes_can_be_seen_while_its_cluster_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster = f"127.0.0.1:{silent.getsockname()[1]}"
        chosen = load_settings(
            {"listen": "127.0.0.1:0", "cluster": cluster, "node_id": "1", "http_listen": "127.0.0.1:0"}
        )
        node = ClusterNode(chosen)
        starting = asyncio.create_task(node.start())
        try:
            await asyncio.sleep(0)  # its first step
            assert await _get(node, "/health") == (200, "alive\n")
            assert await _get(node, "/ready") == (503, "not ready\n")
            assert (await _metrics(node))["ringleader_ready",] == 0
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
    with pytest.raises(ConnectionRefusedError):
        await _get(node, "/health")
