"""Nodes as members of their group, on a real coordinator: all get the same map, and go on without one."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.errors import ClientError
from ringleader.clients.model import Assigned
from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.membership import PROTOCOLS, Membership
from ringleader.coordinator.cluster.state import Drain, MemberState
from ringleader.coordinator.config import Settings
from ringleader.protocol import messages as kafka
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines
from tests.support.served import WAIT_S, until

PARTITIONS = 6


@pytest.fixture
def kafka_cluster() -> Iterator[Coordinator]:
    """Stands for the cluster: the nodes' group needs nothing that it does not have."""
    with Coordinator() as coordinator:
        yield coordinator


class OneNode:
    """A member that serves what the map gives it, at once."""

    def __init__(self, node_id: int, bootstrap: str, lines: Lines, cluster: Cluster) -> None:
        self.settings = Settings(node_id=node_id, cluster=bootstrap, offsets_topic_num_partitions=PARTITIONS)
        self.state = MemberState(NodeInfo(node_id, "127.0.0.1", 9000 + node_id, "0"))
        self.maps: list[ClusterMap] = []
        self.removals: list[str] = []
        self.failures: list[Exception] = []
        self.changed = asyncio.Event()
        self.membership = Membership(
            self.settings,
            cluster,
            ClientSecurity(),
            lambda: self.state,
            dict,
            on_map=self._follow,
            on_lost=self._removed,
            on_failed=self._failed,
            log=lines.log,
        )

    def _follow(self, cluster: ClusterMap) -> None:
        self.maps.append(cluster)
        loads = dict.fromkeys(cluster.owned_by(self.settings.node_id), 0)
        self.state = replace(self.state, known=cluster, loads=loads)
        self.changed.set()

    def _removed(self, reason: str) -> None:
        self.removals.append(reason)
        self.changed.set()

    def _failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.changed.set()

    async def until(self, condition: Callable[[OneNode], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition(self):
                self.changed.clear()
                await self.changed.wait()


@contextlib.asynccontextmanager
async def nodes(kafka_cluster: Coordinator, lines: Lines, *node_ids: int) -> AsyncIterator[list[OneNode]]:
    """Members that have joined; they leave at the end."""
    async with Cluster(kafka_cluster.bootstrap) as cluster:
        made = [OneNode(node_id, kafka_cluster.bootstrap, lines, cluster) for node_id in node_ids]
        try:
            for one in made:
                await one.membership.start(WAIT_S)
            for one in made:
                await one.until(has(*node_ids))
            yield made
        finally:
            for one in made:
                await one.membership.leave("the test is over")


def has(*node_ids: int) -> Callable[[OneNode], bool]:
    """Whether the newest map has these nodes, and everything has an owner among them."""

    def holds(one: OneNode) -> bool:
        if not one.maps:
            return False
        found = one.maps[-1]
        return [node.node_id for node in found.nodes] == list(node_ids) and set(found.owners) == set(node_ids)

    return holds


async def test_every_node_gets_the_same_whole_map(kafka_cluster: Coordinator, lines: Lines) -> None:
    async with nodes(kafka_cluster, lines, 1, 2, 3) as made:
        generation = max(one.maps[-1].generation for one in made)
        for one in made:
            await one.until(lambda one: one.maps[-1].generation >= generation)
        assert len({one.maps[-1].encode() for one in made}) == 1
        silence_ms = made[0].membership.silence_ms()
        assert silence_ms is not None
        assert silence_ms < WAIT_S * 1000


async def test_no_map_is_confirmed_while_a_newer_one_has_come_and_was_not_told(
    kafka_cluster: Coordinator, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Assigned] = []
    original = Membership._assigned

    def tell_later(membership: Membership, assigned: Assigned) -> None:
        kept.append(assigned)
        if len(kept) == 1:
            original(membership, assigned)

    monkeypatch.setattr(Membership, "_assigned", tell_later)
    async with nodes(kafka_cluster, lines, 1) as [one]:
        assert one.membership.map_silence_s() < WAIT_S
        await one.membership.rejoin("another map")
        await until(lambda: len(kept) == 2)
        assert one.membership.map_silence_s() == math.inf
        original(one.membership, kept[1])
        assert one.membership.map_silence_s() < WAIT_S


async def test_a_node_that_was_removed_by_mistake_is_told_and_comes_back(
    kafka_cluster: Coordinator, lines: Lines
) -> None:
    async with nodes(kafka_cluster, lines, 1, 2, 3) as [one, two, three]:
        before = one.maps[-1]
        await one.membership.remove(3, "it does not answer", WAIT_S)
        await three.until(lambda three: bool(three.removals))
        for node in (one, two, three):
            await node.until(lambda node: node.maps[-1].generation > before.generation)
            await node.until(has(1, 2, 3))


async def test_the_partitions_of_a_node_that_is_gone_go_to_the_others(
    kafka_cluster: Coordinator, lines: Lines
) -> None:
    async with nodes(kafka_cluster, lines, 1, 2, 3) as [one, two, three]:
        before = one.maps[-1]
        await three.membership.leave("it stops")
        for node in (one, two):
            await node.until(has(1, 2))
            for partition, owner in enumerate(before.owners):
                assert owner in (3, node.maps[-1].owners[partition])


async def test_any_node_may_remove_the_controller(kafka_cluster: Coordinator, lines: Lines) -> None:
    async with nodes(kafka_cluster, lines, 1, 2) as made:
        by_id = {one.settings.node_id: one for one in made}
        controller = made[0].maps[-1].controller
        other = by_id[3 - controller]
        await other.membership.remove(controller, "gone", WAIT_S)
        await other.until(lambda other: other.maps[-1].controller == other.settings.node_id)
        assert other.maps[-1].generation > 1, "it goes on from the map that it knows"


async def test_to_remove_who_is_not_there_is_fine(kafka_cluster: Coordinator, lines: Lines) -> None:
    async with nodes(kafka_cluster, lines, 1) as [one]:
        await one.membership.remove(7, "gone", WAIT_S)
        assert one.removals == []


async def test_a_nodes_state_reaches_the_controller(kafka_cluster: Coordinator, lines: Lines) -> None:
    async with nodes(kafka_cluster, lines, 1, 2) as [one, two]:
        two.state = replace(two.state, drains=(Drain(2, True),))
        await two.membership.rejoin("a wish")
        await one.until(lambda one: one.maps[-1].drained == {2})


async def test_two_nodes_with_one_id_do_not_last(kafka_cluster: Coordinator, lines: Lines) -> None:
    async with nodes(kafka_cluster, lines, 1) as [first], nodes(kafka_cluster, lines, 1):
        await first.until(lambda first: bool(first.failures))
        assert isinstance(first.failures[0], ClientError)


async def test_a_node_that_is_too_new_for_the_others_is_refused(
    kafka_cluster: Coordinator, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with nodes(kafka_cluster, lines, 1) as [old]:
        monkeypatch.setattr("ringleader.coordinator.cluster.membership.PROTOCOLS", ("map-99",))
        async with Cluster(kafka_cluster.bootstrap) as cluster:
            new = OneNode(2, kafka_cluster.bootstrap, lines, cluster)
            with contextlib.suppress(ClientError):  # it may be refused before it has started
                await new.membership.start(WAIT_S)
            await new.until(lambda new: bool(new.failures))
            assert "map-99" in str(new.failures[0])
            await new.membership.leave("refused")
        assert [node.node_id for node in old.maps[-1].nodes] == [1]


async def test_the_map_is_readable_in_the_groups_description(
    kafka_cluster: Coordinator, lines: Lines
) -> None:
    async with nodes(kafka_cluster, lines, 1, 2) as [one, _two], Cluster(kafka_cluster.bootstrap) as cluster:
        group_id = one.membership.group_id
        node = await cluster.coordinator(group_id)
        answer = await cluster.send(node, plain(kafka.DescribeGroupsRequest(groups=[group_id])))
        [group] = answer.groups
        assert (group.protocol_type, group.protocol_data) == ("ringleader", PROTOCOLS[0])
        maps = [ClusterMap.decode(member.member_assignment) for member in group.members]
        assert maps[0] == maps[1]
