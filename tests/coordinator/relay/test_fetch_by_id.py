"""Fetch by topic ids through a node: the brokers are asked by id, too."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.relayed import RelayNode, node_of_two_brokers, relaying
from tests.support.served import Client, connected
from tests.support.two_brokers import TwoBrokers, topic_id, two_brokers

STRANGE = b"\xff" * 16
ORDERS = topic_id("orders")
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_ID
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


def ask(*partitions: int, topic: bytes = ORDERS, offset: int = 0, wait_ms: int = 20_000) -> FetchRequest:
    parts = [FetchRequestFetchPartition(one, 5, offset, -1, -1, 1_000_000) for one in partitions]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_epoch=0,
        topics=[FetchRequestFetchTopic("", topic, parts)],
    )


def outcomes(answer: FetchResponse) -> dict[tuple[bytes, int], tuple[int, bytes]]:
    """By id and partition: error code and records."""
    assert answer.node_endpoints == []
    return {
        (topic.topic_id, one.partition_index): (one.error_code, bytes(one.records or b""))
        for topic in answer.responses
        for one in topic.partitions
    }


def answered(request: FetchRequest, code: int = 0, records: bytes = b"r") -> FetchResponse:
    """The same for each partition, from a broker that names another one."""
    return FetchResponse(
        responses=[
            FetchResponseFetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [
                    FetchResponsePartitionData(
                        one.partition, code, high_watermark=1, records=b"" if code else records
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        node_endpoints=[FetchResponseNodeEndpoint(2, "hidden", 9092)],
    )


def one_node(newest: int = 18) -> AbstractAsyncContextManager[tuple[TwoBrokers, RelayNode, Client]]:
    return node_of_two_brokers(1, (4, newest), answered)


@pytest.mark.parametrize("version", range(13, 19))
async def test_brokers_are_asked_by_id(version: int) -> None:
    async with one_node() as (cluster, _, client):
        assert outcomes(await client.call(ask(0, 2), version)) == {
            (ORDERS, 0): (0, b"r"),
            (ORDERS, 2): (0, b"r"),
        }
        assert outcomes(await client.call(ask(0, 1), version)) == {
            (ORDERS, 0): (0, b"r"),
            (ORDERS, 1): (0, b"r"),
        }
        assert {(one.topics[0].topic_id, sent) for one, sent in cluster.requests_of(FetchRequest)} == {
            (ORDERS, version)
        }


async def test_names_go_to_brokers_as_names() -> None:
    async with one_node() as (cluster, _, client):
        named = ask(0)
        named.topics[0].topic = "orders"
        answer = await client.call(named, 12)
        assert [one.topic for one in answer.responses] == ["orders"]
        [(sent, version)] = cluster.requests_of(FetchRequest)
        assert (sent.topics[0].topic, sent.topics[0].topic_id, version) == ("orders", ZERO_UUID, 12)


async def test_ids_that_no_topic_has() -> None:
    async with one_node() as (cluster, _, client):
        request = ask(0)
        request.topics += ask(0, topic=STRANGE).topics + ask(0, 1, 0, topic=ZERO_UUID).topics
        assert outcomes(await client.call(request, 13)) == {
            (ORDERS, 0): (0, b"r"),
            (STRANGE, 0): (UNKNOWN, b""),
            (ZERO_UUID, 0): (UNKNOWN, b""),
            (ZERO_UUID, 1): (UNKNOWN, b""),
        }
        request = ask(0, topic=STRANGE)
        request.topics += ask(0, topic=STRANGE).topics
        answer = await client.call(request, 13)
        assert outcomes(answer) == {(STRANGE, 0): (UNKNOWN, b"")}
        assert [len(one.partitions) for one in answer.responses] == [1]
        assert all(one.topics[0].topic_id == ORDERS for one, _ in cluster.requests_of(FetchRequest))


async def test_a_topic_that_was_made_again_is_another_one() -> None:
    async with one_node() as (cluster, _, client):
        await client.call(ask(0), 13)
        cluster.ids["orders"] = STRANGE
        cluster.on(1, lambda request, *_: answered(request, UNKNOWN))
        # The node knows nothing of it yet: the broker says so, and then it does.
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (UNKNOWN, b"")}
        cluster.on(1, lambda request, *_: answered(request))
        assert outcomes(await client.call(ask(0, topic=STRANGE), 13)) == {(STRANGE, 0): (0, b"r")}
        before = len(cluster.requests_of(FetchRequest))
        assert outcomes(await client.call(ask(0), 13)) == {(ORDERS, 0): (UNKNOWN, b"")}
        assert len(cluster.requests_of(FetchRequest)) == before


async def test_a_broker_that_cannot_be_asked_about_ids() -> None:
    async with one_node() as (cluster, _, client):
        await client.call(ask(0), 13)
        await cluster.go_away()
        found = outcomes(await client.call(ask(0, topic=STRANGE), 13))
        assert found == {(STRANGE, 0): (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")}


@pytest.mark.parametrize(
    ("confirms", "code"),
    [
        (lambda one: answered(one, OUT_OF_RANGE), OUT_OF_RANGE),
        (lambda one: answered(one, ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        # The name is another topic's by now: none of its records count.
        (lambda one: answered(one, 0, b"of another topic"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
async def test_only_a_leader_says_that_an_offset_is_out_of_range(confirms: Any, code: int) -> None:
    async with one_node() as (cluster, _, client):

        def by_version(request: FetchRequest, version: int, _: int) -> FetchResponse:
            return answered(request, OUT_OF_RANGE) if version > 10 else confirms(request)

        cluster.on(1, by_version)
        assert outcomes(await client.call(ask(0, offset=9), 13)) == {(ORDERS, 0): (code, b"")}
        assert [version for _, version in cluster.requests_of(FetchRequest)] == [13, 10]


@pytest.mark.parametrize(("newest", "metadata"), [(12, 12), (18, 11)])
async def test_brokers_without_ids_are_fetched_from_by_name(newest: int, metadata: int) -> None:
    async with two_brokers() as cluster:
        for broker in cluster.brokers.values():
            broker.versions |= {1: (4, newest), 3: (0, metadata)}
        async with relaying(cluster.bootstrap) as [node], connected("127.0.0.1", node.port) as client:
            found = await client.call(ApiVersionsRequest("name", "1"), 3)
            [fetch] = [one for one in found.api_keys if one.api_key == FetchRequest.API_KEY]
            assert (fetch.min_version, fetch.max_version) == (4, 12)
