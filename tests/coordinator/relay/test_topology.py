"""A node knows topics of the brokers, and looks them up again where it has to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.model import Node
from ringleader.coordinator.relay import topology as module
from ringleader.coordinator.relay.topology import Topology
from ringleader.protocol.messages import FindCoordinatorRequest, MetadataRequest
from tests.support.two_brokers import TwoBrokers, two_brokers


@asynccontextmanager
async def knowing() -> AsyncIterator[tuple[TwoBrokers, Topology]]:
    async with two_brokers() as brokers, Cluster(brokers.bootstrap) as cluster:
        yield brokers, Topology(cluster)


def questions(brokers: TwoBrokers, name: str) -> int:
    """How often that topic was asked for."""
    names = [one.name for request, _ in brokers.requests_of(MetadataRequest) for one in request.topics or ()]
    return names.count(name)


async def test_an_answer_ends_a_suspicion() -> None:
    async with knowing() as (brokers, known):
        for count in (1, 2):
            known.suspect(["orders"])
            for _ in range(3):
                await known.ensure(["orders"])
            assert questions(brokers, "orders") == count


async def test_a_partition_without_a_leader_is_looked_up_until_it_has_one() -> None:
    async with knowing() as (brokers, known):
        brokers.leaders["orders"] = [1, -1]
        await known.ensure(["orders"])
        brokers.leaders["orders"] = [1, 2]
        await known.ensure(["orders"])
        leader = known.leader("orders", 1)
        assert isinstance(leader, Node)
        assert leader.node_id == 2


async def test_a_coordinator_is_remembered_until_it_is_suspected() -> None:
    async with knowing() as (brokers, known):
        await known.refresh()
        for count in (1, 2):
            known.suspect_coordinator("g")
            for _ in range(2):
                assert (await known.coordinator("g")).node_id in (1, 2)
            assert len(brokers.requests_of(FindCoordinatorRequest)) == count


async def test_a_topic_that_is_not_there_is_looked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ABSENT_S", 600.0)
    async with knowing() as (brokers, known):
        for _ in range(3):
            await known.ensure(["nowhere"])
        assert questions(brokers, "nowhere") == 1
