"""A consumer with a rack fetches through a node of its rack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ringleader import PartitionConsumer
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    MetadataRequest,
    MetadataRequestTopic,
)
from ringleader.protocol.records import Record, build_batch
from tests.support.consuming import PATIENCE_S
from tests.support.relayed import Nodes, RelayNode, relaying
from tests.support.served import connected
from tests.support.two_brokers import TwoBrokers, fetched, two_brokers

NEWEST = 12
EVERY = (0, 1, 2, 3)
"""Broker 1 leads 0 and 2, and node 101 stands for it; broker 2 and node 102 the others."""


def ask(rack: str, *partitions: int, **more: Any) -> FetchRequest:
    """A minute long: what is answered sooner waits for nothing."""
    parts = [FetchRequestFetchPartition(one, 5, 0, partition_max_bytes=1_000_000) for one in partitions]
    topics = [FetchRequestFetchTopic("orders", partitions=parts)]
    return FetchRequest(
        max_wait_ms=60_000, min_bytes=1, session_epoch=-1, topics=topics, rack_id=rack, **more
    )


async def fetch(node: RelayNode, request: FetchRequest, version: int = NEWEST) -> dict[int, Any]:
    async with connected("127.0.0.1", node.port) as client:
        [topic] = (await client.call(request, version)).responses
    return {one.partition_index: one for one in topic.partitions}


def sent_to(found: dict[int, Any]) -> dict[int, int]:
    """Where each partition is to be asked; where one is to be asked elsewhere, nothing else is said."""
    for one in found.values():
        assert not one.error_code
        assert bool(one.records) is (one.preferred_read_replica == -1)
    return {index: one.preferred_read_replica for index, one in found.items()}


def give_records(cluster: TwoBrokers) -> None:
    cluster.on(1, lambda request, *_: fetched(request, b"records"))


def forget(node: RelayNode) -> None:
    """All nodes know that it is gone."""
    assert isinstance(node.services.cluster, Nodes)
    known = node.services.cluster.known
    known[:] = [one for one in known if one.node_id != node.services.node_id]


async def replicas(node: RelayNode) -> dict[int, list[int]]:
    """The replicas of each partition, as clients find them there; racks are included."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    async with Cluster(node.bootstrap) as cluster:
        answer = await cluster.send(None, plain(request))
    return {one.partition_index: one.replica_nodes for one in answer.topics[0].partitions}


@pytest.mark.parametrize("version", [11, NEWEST])
@pytest.mark.parametrize("broker_racks", [{}, {1: "b", 2: "a"}], ids=["brokers without", "brokers with"])
async def test_a_consumer_is_sent_to_the_node_of_its_rack(version: int, broker_racks: dict[int, str]) -> None:
    async with two_brokers() as cluster:
        cluster.racks = broker_racks
        give_records(cluster)
        async with relaying(cluster.bootstrap, 2, racks=("a", "b")) as nodes:
            stands = {101: (1, 3), 102: (0, 2)} if broker_racks else {101: (0, 2), 102: (1, 3)}
            for node, other, rack in zip(nodes, nodes[::-1], "ba", strict=True):
                shown = stands[node.services.node_id]
                where = sent_to(await fetch(node, ask(rack, *shown), version))
                assert where == dict.fromkeys(shown, other.services.node_id)
                listed = await replicas(node)
                assert all(where[index] in listed[index] for index in shown), "or Java passes it over"
                assert set(sent_to(await fetch(other, ask(rack, *EVERY), version)).values()) == {-1}
            sent = [one for broker in cluster.brokers.values() for one, _ in broker.requests]
            assert all(one.topics for one in sent if isinstance(one, FetchRequest))


async def test_some_partitions_are_elsewhere_and_others_here() -> None:
    """A node that is not shown as leader sends nobody on."""
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, two]:
        give_records(cluster)
        assert sent_to(await fetch(one, ask("b", *EVERY))) == {0: 102, 1: -1, 2: 102, 3: -1}
        assert sent_to(await fetch(two, ask("a", *EVERY))) == {0: -1, 1: 101, 2: -1, 3: 101}


@pytest.mark.parametrize(
    ("racks", "rack"),
    [
        (("a", "b"), ""),
        (("a", "b"), "a"),
        (("a", "b"), "unknown"),
        (("a", "a"), "a"),
        (("a", "a"), "b"),
        (("", ""), "b"),
        (("a", ""), "b"),
        (("", "a"), "b"),
        ((), "a"),
    ],
)
async def test_where_no_other_node_is_in_the_rack_the_one_that_is_asked_serves(
    racks: tuple[str, ...], rack: str
) -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2, racks=racks) as [one, _]:
        give_records(cluster)
        assert set(sent_to(await fetch(one, ask(rack, *EVERY))).values()) == {-1}


async def test_older_versions_of_fetch_have_no_racks() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, _]:
        give_records(cluster)
        found = await fetch(one, ask("", *EVERY), 10)
        assert all(part.records == b"records" for part in found.values())


async def test_nobody_is_sent_to_a_node_that_is_gone() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, two]:
        give_records(cluster)
        assert sent_to(await fetch(one, ask("b", 0))) == {0: 102}
        forget(two)
        assert sent_to(await fetch(one, ask("b", *EVERY))) == dict.fromkeys(EVERY, -1)


async def test_nobody_is_sent_to_a_node_that_clients_take_for_offline() -> None:
    async with two_brokers() as cluster:
        cluster.offline = [2]
        async with relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, _]:
            give_records(cluster)
            assert sent_to(await fetch(one, ask("b", 0))) == {0: -1}


async def test_a_rackless_fetch_waits_at_one_broker_as_before() -> None:
    """The answer leaves as it came; only a fetch that gets something at once is not waited for."""
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, _]:
        waits: list[int] = []

        def answer(request: FetchRequest, *_: int) -> FetchResponse:
            waits.append(request.max_wait_ms)
            return fetched(request, b"records")

        cluster.on(1, answer)
        await fetch(one, ask("", 0))
        await asyncio.wait_for(fetch(one, ask("b", 0, 1)), 30)
        assert waits == [60_000, 0]


# ---- our own client ----


class Log:
    """Of partition 0, which broker 1 leads; brokers wait for nothing at its end."""

    def __init__(self, cluster: TwoBrokers) -> None:
        cluster.leaders = {"orders": [1]}
        cluster.on(1, self.fetch)
        cluster.on(2, self.offsets)
        self.records = [build_batch([Record(at, 1_000, None, b"%d" % at)]) for at in range(2)]

    def fetch(self, request: FetchRequest, *_: int) -> FetchResponse:
        at = request.topics[0].partitions[0].fetch_offset
        return fetched(request, b"".join(self.records[at:]))

    def offsets(self, *_: Any) -> ListOffsetsResponse:
        part = ListOffsetsResponseListOffsetsPartitionResponse(0, offset=0, leader_epoch=5)
        return ListOffsetsResponse(0, [ListOffsetsResponseListOffsetsTopicResponse("orders", [part])])


async def test_our_client_reads_through_the_node_of_its_rack_and_goes_back_when_that_is_gone() -> None:
    async with two_brokers() as cluster:
        log = Log(cluster)
        async with (
            relaying(cluster.bootstrap, 2, racks=("a", "b")) as [one, two],
            PartitionConsumer(
                one.bootstrap, ["orders"], auto_offset_reset="earliest", client_rack="b", fetch_max_wait_ms=10
            ) as reader,
            asyncio.timeout(PATIENCE_S),
        ):
            assert [int(record.value or b"") async for record in records(reader, 2)] == [0, 1]
            assert one.relay.arrivals.received_bytes < two.relay.arrivals.received_bytes
            forget(two)
            two.server.stop_accepting()
            await two.server.close_connections(0)
            log.records.append(build_batch([Record(2, 1_000, None, b"2")]))
            assert [int(record.value or b"") async for record in records(reader, 1)] == [2]


async def records(reader: PartitionConsumer, count: int) -> AsyncIterator[Any]:
    while count > 0:
        for record in (await anext(reader)).records:
            yield record
            count -= 1
