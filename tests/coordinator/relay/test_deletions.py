"""Offsets of topics that are gone."""

from __future__ import annotations

from ringleader.coordinator.logs import get_log
from ringleader.coordinator.relay.deletions import Deletions
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
)
from tests.support.relayed import RelayNode, relaying
from tests.support.served import connected
from tests.support.two_brokers import two_brokers


async def commit(node: RelayNode, topic: str) -> None:
    request = OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[OffsetCommitRequestPartition(0, 7)])],
    )
    async with connected("127.0.0.1", node.port) as client:
        [answered] = (await client.call(request, 8)).topics
        assert not answered.partitions[0].error_code


async def committed(node: RelayNode) -> set[str]:
    async with connected("127.0.0.1", node.port) as client:
        answer = await client.call(OffsetFetchRequest(group_id="group", topics=None), 7)
    return {topic.name for topic in answer.topics}


def deletions(node: RelayNode) -> Deletions:
    return Deletions(node.relay.topology, node.services.runtime, get_log())


async def test_a_topic_that_all_brokers_miss_twice_is_forgotten() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders |= {"gone": [1], "again": [1]}
        for topic in ("orders", "gone", "again"):
            await commit(node, topic)
        looking = deletions(node)
        await looking.look()
        del cluster.leaders["gone"]
        del cluster.leaders["again"]
        await looking.look()
        assert await committed(node) == {"orders", "gone", "again"}
        cluster.leaders["again"] = [2]
        await looking.look()
        assert await committed(node) == {"orders", "again"}
        await looking.look()
        assert await committed(node) == {"orders", "again"}


async def test_a_broker_that_still_knows_it_or_says_nothing_is_a_doubt() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders["gone"] = [1]
        await commit(node, "gone")
        looking = deletions(node)
        await looking.look()
        catch_up = cluster.lag(2)
        del cluster.leaders["gone"]
        for _ in range(3):
            await looking.look()
        assert await committed(node) == {"gone"}
        await cluster.brokers[2].__aexit__(None, None, None)
        for _ in range(3):
            await looking.look()
        assert await committed(node) == {"gone"}
        catch_up()
        async with cluster.brokers[2]:
            for _ in range(2):
                await looking.look()
            assert await committed(node) == set()


async def test_a_topic_deleted_at_a_node_is_forgotten_there_at_once() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        await commit(node, "orders")

        def delete(request: DeleteTopicsRequest, *_: int) -> DeleteTopicsResponse:
            result = DeleteTopicsResponseDeletableTopicResult
            codes = {"orders": 0}
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DeleteTopicsResponse(
                responses=[result(name, error_code=codes.get(name, unknown)) for name in request.topic_names]
            )

        cluster.on(20, delete)
        async with connected("127.0.0.1", node.port) as client:
            answer = await client.call(DeleteTopicsRequest(topic_names=["orders", "nowhere"]), 3)
            assert [one.error_code for one in answer.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await committed(node) == set()


async def test_a_look_without_an_answer_begins_again() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders["gone"] = [1]
        await commit(node, "gone")
        looking = deletions(node)
        await looking.look()
        del cluster.leaders["gone"]
        await looking.look()
        await cluster.brokers[2].__aexit__(None, None, None)
        await looking.look()
        async with cluster.brokers[2]:
            await looking.look()
            assert await committed(node) == {"gone"}
            await looking.look()
            assert await committed(node) == set()


async def test_a_topic_that_was_made_again_keeps_its_offsets() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        await commit(node, "orders")
        looking = deletions(node)
        await looking.look()

        def another(request: MetadataRequest, version: int, correlation_id: int) -> MetadataResponse:
            answer = cluster.metadata(request, version, correlation_id)
            if request.topics and request.topics[0].name is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
                answer.topics = [MetadataResponseTopic(unknown, None, one.topic_id) for one in request.topics]
            return answer

        cluster.on(3, another)
        for _ in range(3):
            await looking.look()
        assert await committed(node) == {"orders"}
