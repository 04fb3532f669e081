"""Nodes put together, before a coordinator that stands for the cluster and on a log that they share: clients
find their group's node wherever they ask, and a group goes on when its node stops."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import ClientSecurity, SaslScram
from ringleader.clients.errors import AuthenticationError, ClientError, GroupAuthorizationError
from ringleader.clients.group.membership import GroupMember, MemberInfo, MemberProtocol
from ringleader.coordinator.cluster import ability
from ringleader.coordinator.cluster.map import ClusterMap
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.cluster.overview import wish
from ringleader.coordinator.cluster.state import MemberState, Pin
from ringleader.coordinator.config import Settings
from ringleader.coordinator.security.acls import (
    AllowAll,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import SHA_512
from ringleader.coordinator.serving import StartError
from ringleader.coordinator.storage.kafka import TopicStore
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    DescribeClusterRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from ringleader.protocol.schema import Message
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.fenced_store import FencedStorage
from tests.support.ports import free_ports
from tests.support.quota_scripts import altering
from tests.support.rawclient import AsyncRawConnection
from tests.support.registered import PASSWORD, credential
from tests.support.served import WAIT_S, connected, until

GROUPS = [f"group-{number}" for number in range(20)]


async def owners(bootstrap: str) -> dict[str, int]:
    """The owner that this node names for each group."""
    async with Cluster(bootstrap) as cluster:
        found = {}
        for group in GROUPS:
            with contextlib.suppress(ClientError):
                found[group] = (await cluster.coordinator(group)).node_id
        return found


async def alike(*nodes: ClusterNode) -> dict[str, int]:
    """The common answer of all of these, as soon as nothing moves."""

    def at_rest() -> bool:
        maps = [node.map for node in nodes]
        return maps[0] is not None and not maps[0].moving and all(one == maps[0] for one in maps)

    await until(lambda: at_rest() and all(node.ownership.settled for node in nodes))
    found = [await owners(node.bootstrap) for node in nodes]
    assert len(found[0]) == len(GROUPS)
    assert all(one == found[0] for one in found)
    return found[0]


def share(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
    return {member.member_id: b"all" for member in members}


def member_of(group: str, bootstrap: str) -> GroupMember:
    return GroupMember(
        bootstrap,
        group,
        protocols=[MemberProtocol("p")],
        protocol_type="work",
        assign=share,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=100,
    )


async def test_every_node_names_the_same_owner_and_they_share_evenly(nodes: Nodes) -> None:
    one, two, three = await nodes.start(1), await nodes.start(2), await nodes.start(3)
    await until(lambda: one.map is not None and len(one.map.nodes) == 3)
    await alike(one, two, three)
    assert one.map is not None
    assert sorted(len(one.map.owned_by(node_id)) for node_id in (1, 2, 3)) == [16, 17, 17]
    await until(lambda: sum(len(node.runtime.serving) for node in (one, two, three)) == 50)


async def test_a_group_works_from_any_node_and_goes_on_without_a_rebalance_when_its_node_stops(
    nodes: Nodes,
) -> None:
    made = {node_id: await nodes.start(node_id) for node_id in (1, 2, 3)}
    owner = (await alike(*made.values()))["group-7"]
    others = [node for node_id, node in made.items() if node_id != owner]
    addresses = ",".join(node.bootstrap for node in made.values())
    async with member_of("group-7", addresses) as member:
        assigned = await member.wait_assigned(WAIT_S)
        await member.commit({("orders", 0): 5})
        await made[owner].stop()
        assert (await alike(*others))["group-7"] != owner
        await member.commit({("orders", 0): 6})
        assert member.assigned == assigned, "no rebalance"
        async with Admin(others[0].bootstrap) as admin:
            offsets = await admin.group_offsets("group-7")
        assert offsets[("orders", 0)].offset == 6


async def test_a_node_that_stops_hands_over_everything_before_it_leaves(nodes: Nodes, lines: Lines) -> None:
    one, two = await nodes.start(1), await nodes.start(2)
    await alike(one, two)
    await one.stop()
    await until(lambda: len(two.runtime.serving) == 50)  # it may still read the last one
    assert not lines.of("leaving before all partitions were handed over")
    assert not lines.of("node taken for dead")
    assert [node.node_id for node in two.staying] == [2]


async def test_planned_moves_go_on_when_a_node_took_over_before_the_map_came(
    nodes: Nodes, kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller counts its first two as under way, and it is done with them before it hears of more."""
    one, two = await nodes.start(1), await nodes.start(2)
    await alike(one, two)
    store = two.runtime._storage
    assert isinstance(store, FencedStorage)
    first, second, third = sorted(one.runtime.serving)[:3]

    async def pin(*partitions: int) -> None:
        wanted = MemberState(pins=tuple(Pin(partition, 2) for partition in partitions))
        await wish(kafka_cluster.bootstrap, one.settings.cluster_group_id, wanted, ClientSecurity(), WAIT_S)

    store.replays.clear()
    await pin(first, second)
    await until(lambda: {first, second} <= set(store.opened))
    maps: list[ClusterMap] = []
    with monkeypatch.context() as patch:
        patch.setattr(two._membership, "_on_map", maps.append)
        await pin(third)
        await until(lambda: any(third in newer.moving for newer in maps))
        store.replays.set()
        await until(lambda: {first, second} <= two.runtime.serving)
    two._follow(maps[-1])
    await until(lambda: third in two.runtime.serving)


async def test_what_a_node_cannot_serve_goes_to_another_and_comes_back_when_all_is_well(
    nodes: Nodes, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ability, "CALM_S", 1.0)
    one, two = await nodes.start(1), await nodes.start(2)
    await alike(one, two)
    lost = frozenset(sorted(two.runtime.serving)[:2] + sorted(one.runtime.serving)[:2])
    with monkeypatch.context() as patch:
        patch.setattr(two.reach, "silent", lambda _now_s, _for_s: lost)
        await until(lambda: not two.runtime.serving & lost)
        await until(lambda: lost <= one.runtime.serving)
        assert two._state().wary
        assert two._state().unable == lost
        reports = lines.of("state reported to the controller")
        assert set(reports[0]["partitions"]) < lost, "what is its own alone"
        assert reports[0]["level"] == "warning"
    await until(lambda: len(two.runtime.serving) == 25)
    assert not two._state().wary
    assert lines.of("state reported to the controller")[-1]["reason"] == "it can serve all partitions again"


@pytest.mark.leaves("logged by a node")
async def test_an_error_of_our_own_in_one_look_ends_no_other(
    nodes: Nodes, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    one, two = await nodes.start(1), await nodes.start(2)
    await alike(one, two)
    monkeypatch.setattr(two, "_suspicion", SimpleNamespace(due=broken))
    monkeypatch.setattr(
        two, "_load", SimpleNamespace(measure=broken, follow=two._load.follow, by_partition={})
    )
    await until(lambda: bool(lines.of("a look at the nodes failed")))
    lost = frozenset(sorted(two.runtime.serving)[:2])
    monkeypatch.setattr(two.reach, "silent", lambda _now_s, _for_s: lost)
    await until(lambda: lost <= one.runtime.serving)
    assert len(lines.of("a look at the nodes failed")) == 1, "seldom, however often it happens"


async def test_a_node_that_starts_answers_when_it_knows_the_others(
    nodes: Nodes, kafka_cluster: Coordinator
) -> None:
    """As Metadata of one node alone makes librdkafka forget the others."""
    await nodes.start(1)
    [port] = free_ports(1)
    held = kafka_cluster.faults.error(
        "SyncGroup", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=-1, client_id="ringleader-node-2"
    )
    starting = asyncio.create_task(nodes.start(2, listen=f"127.0.0.1:{port}"))
    await until(lambda: held.hits > 0)
    requests: list[Message] = [
        MetadataRequest(topics=[]),
        DescribeClusterRequest(),
        FindCoordinatorRequest(coordinator_keys=GROUPS[:1]),
    ]
    clients = [await AsyncRawConnection.connect(f"127.0.0.1:{port}") for _ in range(4)]
    answers = [asyncio.create_task(client.call(one)) for client, one in zip(clients, requests, strict=False)]
    await clients[-1].call(ApiVersionsRequest())
    kafka_cluster.faults.clear()
    metadata, described, found = await asyncio.gather(*answers)
    assert [one.node_id for one in metadata.brokers] == [1, 2]
    assert [one.broker_id for one in described.brokers] == [1, 2]
    assert found.coordinators[0].error_code == 0
    await starting
    for client in clients:
        await client.close()


@pytest.mark.leaves("a node can serve no more")
async def test_two_nodes_with_one_id_do_not_last(nodes: Nodes) -> None:
    first = await nodes.start(1)
    with contextlib.suppress(StartError):
        await nodes.start(1)
    async with asyncio.timeout(WAIT_S):
        await first.wait_failed()
    assert "node.id" in str(first.failure)


async def test_a_cluster_that_does_not_answer_is_told_at_start(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.coordinator.cluster.node.START_TIMEOUT_S", 0.2)
    node = ClusterNode(Settings(node_id=1, cluster="127.0.0.1:1"), log=lines.log)
    with pytest.raises(StartError, match="none of the bootstrap servers could be reached"):
        await node.start()
    await node.stop()


def test_properties_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONSENSE\n")
    with pytest.raises(ValueError, match=r"security\.protocol is 'NONSENSE'"):
        ClusterNode(Settings(node_id=1, cluster="127.0.0.1:1", cluster_properties=file))


SECURED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "authorizer": "acl",
    "super_users": "User:admin",
    "group_min_session_timeout_ms": 1_000,
}


async def first_user(bootstrap: str) -> None:
    """As `ringleader users add --cluster` does."""
    async with Cluster(bootstrap) as cluster:
        security = Security(TopicStore(cluster, Settings().cluster_security_topic, 1), AllowAll())
        try:
            await security.start()
            await security.users.change({"admin": {SHA_512.name: credential(SHA_512)}})
        finally:
            await security.store.close()


def acl(operation: Operation, kind: ResourceType, name: str) -> CreateAclsRequestAclCreation:
    return CreateAclsRequestAclCreation(
        kind, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW
    )


async def test_users_and_acls_made_at_one_node_count_at_all_and_are_there_after_a_start(
    nodes: Nodes, kafka_cluster: Coordinator, lines: Lines
) -> None:
    await first_user(kafka_cluster.bootstrap)
    one, two = await nodes.start(1, **SECURED), await nodes.start(2, **SECURED)
    admin, alice = SaslScram("admin", PASSWORD), SaslScram("alice", "her own")
    async with Admin(one.bootstrap, sasl=admin) as client:
        await client.set_scram_user("alice", "her own", hash_name="SHA-512")
    assert two.security is not None
    users, authorizer = two.security.users, two.security.authorizer
    assert isinstance(authorizer, Authorizer)
    await until(lambda: "alice" in users.known())

    def joined() -> GroupMember:
        return GroupMember(
            two.bootstrap,
            "group-7",
            protocols=[MemberProtocol("p")],
            protocol_type="work",
            assign=share,
            sasl=alice,
        )

    async with joined() as member:
        with pytest.raises(GroupAuthorizationError):
            await member.wait_assigned(WAIT_S)
    creations = [
        acl(Operation.READ, ResourceType.GROUP, "group-7"),
        acl(Operation.READ, ResourceType.TOPIC, "orders"),
    ]
    async with Cluster(one.bootstrap, sasl=admin) as raw:
        made = await raw.send(None, plain(CreateAclsRequest(creations)))
        assert [result.error_code for result in made.results] == [0, 0]
    await until(lambda: len(authorizer) == 2)
    async with joined() as member:
        await member.wait_assigned(WAIT_S)
        await member.commit({("orders", 0): 5})
    await one.stop()
    await two.stop()
    three = await nodes.start(3, **SECURED)
    async with Admin(three.bootstrap, sasl=alice) as client:
        assert (await client.group_offsets("group-7"))["orders", 0].offset == 5
    with pytest.raises(AuthenticationError):
        async with Admin(three.bootstrap, sasl=SaslScram("alice", "another")) as client:
            await client.group_offsets("group-7")
    async with Admin(three.bootstrap, sasl=admin) as client:
        names = {topic.name for topic in await client.list_topics(internal=True)}
        assert "orders" in names
        assert Settings().cluster_security_topic not in names
        with pytest.raises(ClientError):
            await client.delete_topics([Settings().cluster_security_topic])
    unasked = "this node asks no ACLs, and there are some"
    assert not lines.of(unasked)
    await nodes.start(4, **SECURED | {"authorizer": "none"})
    assert [line["acls"] for line in lines.of(unasked)] == [2]
    assert not [line for line in lines if line["level"] == "error"]


async def test_a_quota_set_at_one_node_counts_at_all_and_is_there_after_a_start(
    nodes: Nodes, kafka_cluster: Coordinator
) -> None:
    one, two = await nodes.start(1), await nodes.start(2)
    async with connected(one.host, one.port) as client:
        quota = altering(({"client-id": "client"}, {"request_percentage": 1e-6}))
        assert (await client.call(quota, 1, "administrator")).entries[0].error_code == 0
    assert two.security is not None
    quotas = two.security.quotas
    await until(lambda: len(quotas) == 1)
    find = FindCoordinatorRequest(coordinator_keys=["g"])
    async with connected(two.host, two.port) as client:
        assert (await client.call(find, 4)).throttle_time_ms == 1_000
    await one.stop()
    await two.stop()
    three = await nodes.start(3)
    async with connected(three.host, three.port) as client:
        assert (await client.call(find, 4)).throttle_time_ms == 1_000


@pytest.mark.leaves("a node can serve no more")
async def test_a_node_ends_when_it_cannot_read_who_may_what(
    nodes: Nodes, kafka_cluster: Coordinator, lines: Lines
) -> None:
    one = await nodes.start(1, **SECURED)
    kafka_cluster.produce(Settings().cluster_security_topic, b"?", key=b"acls/?")
    async with asyncio.timeout(WAIT_S):
        await one.wait_failed()
    assert "the record 'acls/?' cannot be read" in str(one.failure)
    assert len(lines.of("users, ACLs and quotas cannot be followed any more")) == 1
    with pytest.raises(StartError, match=r"the record 'acls/\?' cannot be read; overwrite or remove"):
        await nodes.start(2, **SECURED)
