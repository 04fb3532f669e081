"""Nodes with several listeners: a client that came through one is given the addresses of that name."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.group.membership import GroupMember, MemberInfo, MemberProtocol
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.protocol.messages import DescribeClusterRequest, MetadataRequest
from tests.support.certificates import Certificates
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.served import WAIT_S, until

TWO = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def secured(certificates: Certificates, **more: Any) -> dict[str, Any]:
    return {"listeners": TWO, "ssl_keystore_location": certificates.server, **more}


def ports_of(node: ClusterNode) -> dict[str, int]:
    return {one.name: one.advertised.port for one in node.listeners}


async def together(*nodes: ClusterNode) -> None:
    """As soon as all know all and nothing moves."""

    def at_rest() -> bool:
        maps = [node.map for node in nodes]
        return all(one == maps[0] and one and len(one.nodes) == len(nodes) and not one.moving for one in maps)

    await until(at_rest)


async def seen(port: int, tls: Any = None) -> tuple[dict[int, int], set[int]]:
    """Brokers of Metadata, which are those of DescribeCluster, and leaders of partitions."""
    async with Cluster(f"127.0.0.1:{port}", tls=tls) as cluster:
        request = MetadataRequest(topics=None)
        found = await cluster.send(None, plain(request))
        brokers = {broker.node_id: broker.port for broker in found.brokers}
        described = await cluster.send(None, plain(DescribeClusterRequest()))
        assert {broker.broker_id: broker.port for broker in described.brokers} == brokers
        assert found.controller_id in brokers
        return brokers, {one.leader_id for topic in found.topics for one in topic.partitions}


async def test_a_client_gets_the_nodes_addresses_of_its_listener(
    nodes: Nodes, certificates: Certificates
) -> None:
    one = await nodes.start(1, **secured(certificates))
    two = await nodes.start(2, **secured(certificates))
    await together(one, two)
    tls = certificates.client_tls()
    for node in (one, two):
        here = ports_of(node)
        plaintext, _ = await seen(here["PLAINTEXT"])
        assert plaintext == {1: ports_of(one)["PLAINTEXT"], 2: ports_of(two)["PLAINTEXT"]}
        hidden, _ = await seen(here["SSL"], tls)
        assert hidden == {1: ports_of(one)["SSL"], 2: ports_of(two)["SSL"]}


async def test_a_node_without_the_listener_is_not_there_for_who_came_through_it(
    nodes: Nodes, certificates: Certificates
) -> None:
    one = await nodes.start(1, **secured(certificates))
    two = await nodes.start(2)
    await together(one, two)
    both, leaders = await seen(two.port)
    assert (set(both), leaders) == ({1, 2}, {1, 2})
    hidden, leaders = await seen(ports_of(one)["SSL"], certificates.client_tls())
    assert (hidden, leaders) == ({1: ports_of(one)["SSL"]}, {1})
    three = await nodes.start(3, listeners="SSL://127.0.0.1:0", ssl_keystore_location=certificates.server)
    await together(one, two, three)
    both, leaders = await seen(ports_of(three)["SSL"], certificates.client_tls())
    assert (set(both), leaders) == ({1, 3}, {1, 3})


def share(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
    return {member.member_id: b"all" for member in members}


async def test_a_member_over_tls_goes_on_without_a_rebalance_when_its_node_stops(
    nodes: Nodes, certificates: Certificates, lines: Lines
) -> None:
    between = {"inter_broker_listener_name": "plaintext"}
    made = {node_id: await nodes.start(node_id, **secured(certificates, **between)) for node_id in (1, 2, 3)}
    await together(*made.values())
    member = GroupMember(
        ",".join(f"127.0.0.1:{ports_of(node)['SSL']}" for node in made.values()),
        "work",
        protocols=[MemberProtocol("p")],
        protocol_type="work",
        assign=share,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=100,
        tls=certificates.client_tls(),
    )
    async with member:
        assigned = await member.wait_assigned(WAIT_S)
        await member.commit({("orders", 0): 5})
        partition = made[1].runtime.partition_of("work")
        owner = made[1].map.owners[partition]  # type: ignore[union-attr]
        await made.pop(owner).stop()
        await together(*made.values())
        await member.commit({("orders", 0): 6})
        assert member.assigned == assigned, "no rebalance"
    assert not lines.of("node taken for dead")
    assert not lines.of("TLS handshake failed")
