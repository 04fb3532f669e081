"""Produce by topic ids through a node: the brokers are told ids, too."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.relayed import RelayNode, node_of_two_brokers, relaying
from tests.support.served import Client, connected
from tests.support.topiclog import produced
from tests.support.two_brokers import TwoBrokers, topic_id, two_brokers

STRANGE = b"\xff" * 16
ORDERS = topic_id("orders")
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_ID


def ask(
    *partitions: int, topic: bytes = ORDERS, name: str = "", acks: int = -1, records: bytes = b"batch"
) -> ProduceRequest:
    data = [ProduceRequestPartitionProduceData(one, records) for one in partitions]
    return ProduceRequest(None, acks, 1_000, [ProduceRequestTopicProduceData(name, topic, data)])


def outcomes(answer: ProduceResponse) -> dict[tuple[bytes, int], tuple[int, int]]:
    """By id and partition: error code and offset. No broker is named."""
    assert answer.node_endpoints == []
    found = [(topic, one) for topic in answer.responses for one in topic.partition_responses]
    assert all(one.current_leader.leader_id == -1 for _, one in found)
    return {(topic.topic_id, one.index): (one.error_code, one.base_offset) for topic, one in found}


def answered(request: ProduceRequest, code: int = 0) -> ProduceResponse:
    """The same for each partition, from a broker that names another one."""
    return ProduceResponse(
        responses=[
            ProduceResponseTopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    ProduceResponsePartitionProduceResponse(
                        one.index,
                        code,
                        base_offset=-1 if code else 10 + one.index,
                        current_leader=ProduceResponseLeaderIdAndEpoch(2, 7),
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
        node_endpoints=[ProduceResponseNodeEndpoint(2, "hidden", 9092)],
    )


def one_node(newest: int = 13) -> AbstractAsyncContextManager[tuple[TwoBrokers, RelayNode, Client]]:
    return node_of_two_brokers(0, (3, newest), answered)


async def test_brokers_are_told_ids() -> None:
    async with one_node() as (cluster, _, client):
        assert outcomes(await client.call(ask(0, 1, 2), 13)) == {
            (ORDERS, 0): (0, 10),
            (ORDERS, 1): (0, 11),
            (ORDERS, 2): (0, 12),
        }
        requests = cluster.requests_of(ProduceRequest)
        assert {(one.topic_data[0].topic_id, version) for one, version in requests} == {(ORDERS, 13)}
        assert [len(one.topic_data[0].partition_data) for one, _ in requests] == [2, 1]


@pytest.mark.parametrize("version", range(9, 13))
async def test_names_go_to_brokers_as_names(version: int) -> None:
    async with one_node() as (cluster, _, client):
        answer = await client.call(ask(0, topic=ZERO_UUID, name="orders"), version)
        assert outcomes(answer) == {(ZERO_UUID, 0): (0, 10)}
        assert [one.name for one in answer.responses] == ["orders"]
        [(request, sent)] = cluster.requests_of(ProduceRequest)
        assert (request.topic_data[0].name, request.topic_data[0].topic_id) == ("orders", ZERO_UUID)
        assert sent == version


async def test_ids_that_no_topic_has() -> None:
    async with one_node() as (cluster, _, client):
        request = ask(0)
        request.topic_data += ask(0, topic=STRANGE).topic_data + ask(0, 1, 0, topic=ZERO_UUID).topic_data
        request.topic_data += ask(0, topic=STRANGE).topic_data
        answer = await client.call(request, 13)
        assert outcomes(answer) == {
            (ORDERS, 0): (0, 10),
            (STRANGE, 0): (UNKNOWN, -1),
            (ZERO_UUID, 0): (UNKNOWN, -1),
            (ZERO_UUID, 1): (UNKNOWN, -1),
        }
        assert sorted(len(one.partition_responses) for one in answer.responses) == [1, 1, 2]
        assert all(one.topic_data[0].topic_id == ORDERS for one, _ in cluster.requests_of(ProduceRequest))
        client.send(ask(0, topic=STRANGE, acks=0), 13)
        assert await client.rest() == b""


async def test_records_in_no_transaction_are_refused_before_ids_are_looked_up() -> None:
    async with one_node() as (cluster, _, client):
        request = ask(0, records=produced(1, 0, transactional=True))
        request.topic_data += ask(0, topic=STRANGE).topic_data
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert outcomes(await client.call(request, 13)) == {
            (ORDERS, 0): (refused, -1),
            (STRANGE, 0): (refused, -1),
        }
        assert not cluster.requests_of(ProduceRequest)


async def test_a_topic_that_was_made_again_is_another_one() -> None:
    async with one_node() as (cluster, _, client):
        await client.call(ask(0), 13)
        cluster.ids["orders"] = STRANGE
        cluster.on(0, lambda request, *_: answered(request, UNKNOWN))
        # The node knows nothing of it yet: the broker says so, and then it does.
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (UNKNOWN, -1)}
        cluster.on(0, lambda request, *_: answered(request))
        assert outcomes(await client.call(ask(0, topic=STRANGE), 13)) == {(STRANGE, 0): (0, 10)}
        before = len(cluster.requests_of(ProduceRequest))
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (UNKNOWN, -1)}
        assert len(cluster.requests_of(ProduceRequest)) == before


async def test_a_broker_without_ids_gets_the_name_while_it_is_that_of_the_id() -> None:
    """All brokers knew them when the node started: an older one is back."""
    async with one_node() as (cluster, _, client):
        for broker in cluster.brokers.values():
            broker.versions[0] = (3, 12)
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (0, 10)}
        [(request, version)] = cluster.requests_of(ProduceRequest)
        assert (request.topic_data[0].name, version) == ("orders", 12)
        cluster.ids["orders"] = STRANGE
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (UNKNOWN, -1)}
        assert len(cluster.requests_of(ProduceRequest)) == 1, "it would have written into another topic"


async def test_a_broker_that_cannot_be_asked_about_ids() -> None:
    async with one_node() as (cluster, _, client):
        await client.call(ask(0), 13)
        await cluster.go_away()
        found = outcomes(await client.call(ask(0, topic=STRANGE), 13))
        assert found == {(STRANGE, 0): (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)}


@pytest.mark.parametrize(("newest", "metadata"), [(12, 12), (13, 11)])
async def test_ids_are_offered_where_brokers_have_them(newest: int, metadata: int) -> None:
    async with two_brokers() as cluster:
        for broker in cluster.brokers.values():
            broker.versions |= {0: (3, newest), 3: (0, metadata)}
        async with relaying(cluster.bootstrap) as [node], connected("127.0.0.1", node.port) as client:
            found = await client.call(ApiVersionsRequest("name", "1"), 3)
            [produce] = [one for one in found.api_keys if one.api_key == ProduceRequest.API_KEY]
            assert produce.max_version == 12
