"""Racks of nodes: each tells its own, clients hear of all of them."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.protocol.messages import DescribeClusterRequest, MetadataRequest
from tests.support.cluster_nodes import Nodes
from tests.support.served import until

Racks = dict[int, str | None]


async def racks_of(node: ClusterNode) -> Racks:
    """By Metadata, and by DescribeCluster alike."""
    async with Cluster(f"127.0.0.1:{node.port}") as cluster:
        metadata = await cluster.send(None, plain(MetadataRequest(topics=[])))
        described = await cluster.send(None, plain(DescribeClusterRequest()))
    racks = {one.node_id: one.rack for one in metadata.brokers}
    assert racks == {one.broker_id: one.rack for one in described.brokers}
    return racks


async def test_clients_are_told_the_rack_of_every_node(nodes: Nodes) -> None:
    await nodes.start(1, broker_rack="a")
    await nodes.start(2, broker_rack="b")
    await nodes.start(3)
    for node in nodes.by_id.values():
        await until(lambda: node.map is not None and len(node.map.nodes) == 3)  # noqa: B023
        assert await racks_of(node) == {1: "a", 2: "b", 3: None}


@pytest.mark.parametrize(
    ("rack", "joins"), [("a", 0), (None, 0), ("b", 1), ("", 1)], ids=["same", "older", "other", "none"]
)
async def test_a_node_tells_its_rack_again_when_the_map_has_another_of_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, rack: str | None, joins: int
) -> None:
    """None at all is an older controller's map: else it would be reported for ever."""
    node = await nodes.start(1, broker_rack="a")
    reasons: list[str] = []

    async def done() -> None:
        pass

    def rejoin(reason: str) -> Coroutine[Any, Any, None]:
        reasons.append(reason)
        return done()

    monkeypatch.setattr(node._membership, "rejoin", rejoin)
    assert node.map is not None
    known = node.map
    changed = tuple(one._replace(rack=rack) for one in known.nodes)
    node._follow(replace(known, nodes=changed))
    monkeypatch.undo()
    assert reasons == ["it has restarted"] * joins


async def test_no_rack_is_told_while_a_node_of_an_older_version_is_there(nodes: Nodes) -> None:
    """It shows partitions at other nodes than those do that know racks."""
    node = await nodes.start(1, broker_rack="a")
    assert node.map is not None
    older = node.map.nodes[0]._replace(node_id=2, rack=None)
    node._follow(replace(node.map, nodes=(*node.map.nodes, older)))
    assert await racks_of(node) == {1: None, 2: None}
