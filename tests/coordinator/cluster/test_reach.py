"""The brokers that answer: one that does not is known by the partitions that it leads, and an error of our
own ends no look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.coordinator.cluster import reach as module
from ringleader.coordinator.cluster.reach import Reach
from ringleader.protocol.messages import ApiVersionsRequest, MetadataRequest, MetadataResponse
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines
from tests.support.served import until
from tests.support.two_brokers import TwoBrokers, two_brokers

TOPIC = "orders"
PARTITIONS = {0, 1, 2}


@asynccontextmanager
async def reaching(kafka_cluster: Coordinator | TwoBrokers, lines: Lines) -> AsyncIterator[Reach]:
    """It asks until the block ends."""
    async with Cluster(kafka_cluster.bootstrap) as cluster:
        reach = Reach(cluster, TOPIC, lines.log)
        reach.start()
        try:
            yield reach
        finally:
            await reach.stop()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_INTERVAL_S", 0.01)
    monkeypatch.setattr(module, "ANSWER_S", 0.2)


def silent(reach: Reach, for_s: float = 0.3) -> frozenset[int]:
    """The partitions whose leader owes an answer for longer than one takes."""
    return reach.silent(asyncio.get_running_loop().time(), for_s)


async def test_a_broker_that_is_gone_is_told_by_its_partitions_until_it_is_back(
    kafka_cluster: Coordinator, lines: Lines
) -> None:
    async with reaching(kafka_cluster, lines) as reach:
        await until(lambda: len(reach.silence_s(0.0)) == 1)
        assert silent(reach) == set()
        kafka_cluster.stop()
        await until(lambda: silent(reach) == PARTITIONS)
        [silence_s] = reach.silence_s(asyncio.get_running_loop().time()).values()
        assert silence_s > 0.3
        reach.awoke(asyncio.get_running_loop().time())
        assert silent(reach) == set(), "who stood still itself has heard nobody"
        await until(lambda: silent(reach) == PARTITIONS)
        kafka_cluster.restart()
        await until(lambda: silent(reach) == set())
    assert not lines.of("broker not asked")


@pytest.mark.leaves("logged by a node")
async def test_an_error_of_our_own_is_told_once_and_says_nothing_of_the_broker(
    kafka_cluster: Coordinator, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = 0
    send = Cluster.send

    async def broken(self: Cluster, node: Any, *args: Any, **more: Any) -> Any:
        nonlocal requests
        if more.get("purpose") == module.PURPOSE:
            requests += 1
            raise RuntimeError("a fault of ours")
        return await send(self, node, *args, **more)

    async with reaching(kafka_cluster, lines) as reach:
        await until(lambda: len(reach.silence_s(0.0)) == 1)
        with monkeypatch.context() as patch:
            patch.setattr(Cluster, "send", broken)
            await until(lambda: requests >= 5)
            assert silent(reach, 0.0) == set()
        kafka_cluster.stop()
        await until(lambda: silent(reach) == PARTITIONS)
    assert len(lines.of("broker not asked")) == 1


async def test_a_silent_broker_that_leaves_the_cluster_is_looked_for_no_more(lines: Lines) -> None:
    """While a known one is silent, the cluster is asked again and again who leads."""
    async with two_brokers() as scripted, reaching(scripted, lines) as reach:
        scripted.leaders[TOPIC] = [1, 1, 1]
        await until(lambda: len(reach.silence_s(0.0)) == 2)
        scripted.brokers[2].handlers[18] = lambda *_: None
        await until(lambda: reach.silence_s(asyncio.get_running_loop().time())[2] > 0.25)

        def without_it(*arguments: Any) -> MetadataResponse:
            answer = scripted.metadata(*arguments)
            answer.brokers = [one for one in answer.brokers if one.node_id != 2]
            return answer

        for broker in scripted.brokers.values():
            broker.handlers[3] = without_it
        await until(lambda: reach.silence_s(0.0).keys() == {1})
        looked, requests = (
            len(scripted.requests_of(MetadataRequest)),
            len(scripted.requests_of(ApiVersionsRequest)),
        )
        await until(lambda: len(scripted.requests_of(ApiVersionsRequest)) >= requests + 100)
        assert len(scripted.requests_of(MetadataRequest)) <= looked + 2, "one may have been under way"
