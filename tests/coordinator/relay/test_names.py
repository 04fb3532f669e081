"""The addresses that clients are given: nodes, never brokers. And topics, which are the cluster's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.relayed import relaying
from tests.support.served import connected
from tests.support.two_brokers import topic_id, two_brokers

OWN = "__ringleader_groups"


@pytest.mark.parametrize("version", range(13))
async def test_metadata_names_nodes(version: int) -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2) as nodes:
        cluster.leaders[OWN] = [2]
        async with connected("127.0.0.1", nodes[0].port) as client:
            everything = MetadataRequest(topics=None if version else [])
            answer = await client.call(everything, version)
            assert [(one.node_id, one.port) for one in answer.brokers] == [
                (101, nodes[0].port),
                (102, nodes[1].port),
            ]
            topics = {topic.name: topic for topic in answer.topics}
            leaders = {one.partition_index: one.leader_id for one in topics["orders"].partitions}
            assert leaders == {0: 101, 1: 102, 2: 101, 3: 102}
            assert all(one.replica_nodes == [101, 102] for one in topics["orders"].partitions)
            assert topics["orders"].partitions[1].isr_nodes == [102]
            if version >= 1:
                assert answer.controller_id == 101
                assert (topics[OWN].is_internal, topics["orders"].is_internal) == (True, False)
            if version >= 7:
                assert {one.leader_epoch for one in topics["orders"].partitions} == {5}
            if version >= 10:
                assert topics["orders"].topic_id == topic_id("orders")
            if version:
                assert not (await client.call(MetadataRequest(topics=[]), version)).topics
            request = MetadataRequest(topics=[MetadataRequestTopic(name="nowhere")])
            [missing] = (await client.call(request, version)).topics
            assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_without_brokers_nothing_is_said_about_topics() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        async with connected("127.0.0.1", node.port) as client:
            for broker in cluster.brokers.values():
                await broker.__aexit__(None, None, None)
            answer = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12)
            assert [one.error_code for one in answer.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
            assert [one.node_id for one in answer.brokers] == [101]
            client.send(MetadataRequest(topics=None), 12)
            assert await client.rest() == b""
        for broker in cluster.brokers.values():
            await broker.__aenter__()


async def test_versions_are_those_of_both() -> None:
    async with two_brokers() as cluster:
        cluster.brokers[2].versions[1] = (4, 10)
        async with (
            relaying(cluster.bootstrap) as [node],
            connected("127.0.0.1", node.port) as client,
        ):
            request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            answer = await client.call(request, 3)
            served = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
            assert served[1] == (4, 10)
            assert served[22] == (0, 3)
            assert served[11] == (0, 9)


async def test_the_cluster_and_its_coordinators_are_nodes() -> None:
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap, 2) as nodes,
        connected("127.0.0.1", nodes[1].port) as client,
    ):
        answer = await client.call(DescribeClusterRequest(), 1)
        assert [one.broker_id for one in answer.brokers] == [101, 102]
        assert answer.controller_id == 102
        for key_type in (0, 1):
            keys = [f"key-{number}" for number in range(20)]
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
            found = {one.node_id for one in (await client.call(request, 4)).coordinators}
            assert found == {101, 102}


async def test_where_everybody_may_do_everything_the_brokers_say_what_may_be_done() -> None:
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap) as [node],
        connected("127.0.0.1", node.port) as client,
    ):
        cluster.on(60, lambda *_: DescribeClusterResponse(cluster_authorized_operations=0b110))
        for version in (0, 1):
            request = DescribeClusterRequest(include_cluster_authorized_operations=True)
            answer = await client.call(request, version)
            assert (answer.error_code, answer.cluster_authorized_operations) == (0, 0b110)
            assert [one.broker_id for one in answer.brokers] == [101]


# ---- topics ----


async def test_the_controller_is_asked_about_topics() -> None:
    requests: list[Any] = []

    def create(request: CreateTopicsRequest, *_: int) -> CreateTopicsResponse:
        requests.append(request)
        result = CreateTopicsResponseCreatableTopicResult
        return CreateTopicsResponse(topics=[result(name=topic.name) for topic in request.topics])

    def grow(request: CreatePartitionsRequest, *_: int) -> CreatePartitionsResponse:
        requests.append(request)
        result = CreatePartitionsResponseCreatePartitionsTopicResult
        return CreatePartitionsResponse(results=[result(topic.name) for topic in request.topics])

    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.brokers[2].handlers |= {19: create, 37: grow}
        async with connected("127.0.0.1", node.port) as client:
            assigned = CreateTopicsRequestCreatableTopic(
                "assigned",
                -1,
                -1,
                assignments=[CreateTopicsRequestCreatableReplicaAssignment(0, [101])],
            )
            plain = CreateTopicsRequestCreatableTopic("plain", 3, 2)
            answer = await client.call(CreateTopicsRequest([assigned, plain]), 7)
            codes = {one.name: one.error_code for one in answer.topics}
            assert codes == {"assigned": ErrorCode.INVALID_REPLICA_ASSIGNMENT, "plain": 0}
            topic = CreatePartitionsRequestCreatePartitionsTopic
            answer = await client.call(CreatePartitionsRequest([topic("orders", 9), topic(OWN, 99)]), 3)
            codes = {one.name: one.error_code for one in answer.results}
            assert codes == {"orders": 0, OWN: ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert [[topic.name for topic in request.topics] for request in requests] == [["plain"], ["orders"]]


async def test_nobody_changes_where_the_groups_are() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders[OWN] = [2]
        async with connected("127.0.0.1", node.port) as client:
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
            answer = await client.call(DeleteTopicsRequest(topic_names=[OWN]), 1)
            assert [one.error_code for one in answer.responses] == [code]
            by_id = DeleteTopicsRequestDeleteTopicState(None, topic_id(OWN))
            answer = await client.call(DeleteTopicsRequest(topics=[by_id]), 6)
            assert [one.error_code for one in answer.responses] == [code]
            resources = [
                AlterConfigsRequestAlterConfigsResource(2, OWN),
                AlterConfigsRequestAlterConfigsResource(4, "1"),
            ]
            answer = await client.call(AlterConfigsRequest(resources), 2)
            assert [one.error_code for one in answer.responses] == [code, ErrorCode.INVALID_REQUEST]


async def test_a_node_shows_its_own_settings() -> None:
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap) as [node],
        connected("127.0.0.1", node.port) as client,
    ):
        resource = DescribeConfigsRequestDescribeConfigsResource
        resources = [resource(4, "101", ["node.id"]), resource(4, "1", None), resource(32, "group", None)]
        answer = await client.call(DescribeConfigsRequest(resources), 4)
        assert [(one.name, one.value) for one in answer.results[0].configs] == [("node.id", "101")]
        assert [one.error_code for one in answer.results] == [0, 42, 0]


# ---- the directory of topics ----


async def commit(client: Any, *partitions: tuple[str, int]) -> list[int]:
    request = OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=[OffsetCommitRequestPartition(partition, 7)])
            for topic, partition in partitions
        ],
    )
    answer = await client.call(request, 8)
    found = {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }
    return [found[partition] for partition in partitions]


async def test_commits_are_taken_for_topics_that_exist() -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        async with connected("127.0.0.1", node.port) as client:
            places = [("orders", 3), ("orders", 4), ("nowhere", 0)]
            assert await commit(client, *places) == [0, unknown, unknown]
            cluster.leaders["orders"].append(1)
            assert await commit(client, ("orders", 4)) == [0]
            topic = OffsetFetchRequestTopic("orders", [3, 4])
            answer = await client.call(OffsetFetchRequest(group_id="group", topics=[topic]), 7)
            assert [one.committed_offset for one in answer.topics[0].partitions] == [7, 7]
            for broker in cluster.brokers.values():
                await broker.__aexit__(None, None, None)
            found = await commit(client, ("elsewhere", 0))
            assert found == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
            assert await commit(client, ("orders", 1)) == [0]
        for broker in cluster.brokers.values():
            await broker.__aenter__()


async def test_many_unknown_names_are_one_question() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:

        async def one(number: int) -> None:
            async with connected("127.0.0.1", node.port) as client:
                assert await commit(client, (f"nowhere-{number % 5}", 0)) == [3]

        before = [len(broker.requests) for broker in cluster.brokers.values()]
        await asyncio.gather(*(one(number) for number in range(50)))
        after = [len(broker.requests) for broker in cluster.brokers.values()]
        assert sum(after) - sum(before) < 20


@pytest.mark.parametrize("version", [10, 11])
async def test_a_topic_is_not_asked_for_by_id_before_it_can_be(version: int) -> None:
    topics = [MetadataRequestTopic(topic_id("orders"), None), MetadataRequestTopic(name="orders")]
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap) as [node],
        connected("127.0.0.1", node.port) as client,
    ):
        answer = await client.call(MetadataRequest(topics=topics), version)
    code = ErrorCode.INVALID_REQUEST
    assert [(one.error_code, one.name) for one in answer.topics] == [(code, ""), (code, "orders")]
