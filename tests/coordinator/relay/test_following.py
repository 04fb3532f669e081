"""The topics of the cluster as groups of the consumer protocol see them through a node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.coordinator.logs import get_log
from ringleader.coordinator.relay.following import Following
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.relayed import RelayNode, relaying
from tests.support.served import connected, until
from tests.support.two_brokers import topic_id, two_brokers

OTHER_ID = b"2" * 16


def following(node: RelayNode) -> Following:
    """In place of its own, which looks when it pleases."""
    return Following(node.relay.topology, node.services.runtime, get_log())


def known(node: RelayNode) -> dict[str, tuple[bytes, int]]:
    found = node.services.runtime.topics.all()
    return {topic.name: (topic.topic_id, topic.partitions) for topic in found}


async def join(node: RelayNode, *topics: str, group: str = "g") -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group, "m", 0, rebalance_timeout_ms=30_000)
    request.subscribed_topic_names, request.topic_partitions = list(topics), []
    async with connected("127.0.0.1", node.port) as client:
        answer: ConsumerGroupHeartbeatResponse = await client.call(request, 1)
    return answer


def assigned(answer: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]]:
    assert answer.error_code == 0
    assert answer.assignment is not None
    return {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}


async def test_topics_are_created_grow_are_deleted_and_made_again() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        looking, topics = following(node), node.services.runtime.topics
        complete = [topics.complete]
        await looking.look()
        assert [*complete, topics.complete] == [False, True]
        orders = topic_id("orders")
        assert known(node) == {"orders": (orders, 4)}
        cluster.leaders["orders"] += [1]
        cluster.leaders["more"] = [2]
        await looking.look()
        assert known(node) == {"orders": (orders, 5), "more": (topic_id("more"), 1)}
        del cluster.leaders["more"]
        cluster.leaders["orders"] = [1, 2]
        cluster.ids["orders"] = OTHER_ID
        await looking.look()
        assert known(node) == {"orders": (OTHER_ID, 2)}


async def test_what_is_gone_or_another_one_counts_when_all_brokers_say_so() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders["gone"] = [1]
        looking = following(node)
        await looking.look()
        before = known(node)
        for broker in (1, 2):
            catch_up = cluster.lag(broker)
            del cluster.leaders["gone"]
            cluster.leaders["orders"], cluster.ids["orders"] = [1], OTHER_ID
            for _ in range(4):
                await looking.look()
            assert known(node) == before, "one broker does not know of it yet"
            cluster.leaders |= {"gone": [1], "orders": [1, 2, 1, 2]}
            del cluster.ids["orders"]
            catch_up()


async def test_a_broker_that_does_not_know_of_more_partitions_yet_takes_nothing_back() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        looking = following(node)
        former = cluster.leaders["orders"]
        more = cluster.leaders["orders"] = [*former, 1]
        await looking.look()
        for broker in (1, 2):
            cluster.leaders["orders"] = former
            catch_up = cluster.lag(broker)
            cluster.leaders["orders"] = more
            await looking.look()
            assert known(node)["orders"][1] == 5
            catch_up()


async def test_a_broker_that_says_nothing_is_a_doubt() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders["gone"] = [1]
        looking = following(node)
        await looking.look()
        del cluster.leaders["gone"]
        await cluster.brokers[2].__aexit__(None, None, None)
        with pytest.raises(KafkaError):
            await looking.look()
        assert "gone" in known(node)
        async with cluster.brokers[2]:
            await looking.look()
            assert "gone" not in known(node)


async def test_all_that_ask_while_a_look_is_under_way_share_the_next_one() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        looking = following(node)
        await asyncio.gather(*(looking.look() for _ in range(10)))
        requests = [
            request
            for broker in cluster.brokers.values()
            for request, _ in broker.requests
            if getattr(request, "topics", ()) is None
        ]
        assert len(requests) == 2


async def test_a_member_has_its_partitions_at_once_though_nobody_looked_before() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        following(node)
        answer = await join(node, "orders", "nowhere")
        assert assigned(answer) == {topic_id("orders"): [0, 1, 2, 3]}
        cluster.leaders["fresh"] = [1, 1]
        answer = await join(node, "orders", "fresh", group="h")
        assert assigned(answer)[topic_id("fresh")] == [0, 1], "without another look"


async def test_a_group_hears_of_partitions_that_were_added() -> None:
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap, group_consumer_assignment_interval_ms=0) as [node],
    ):
        looking = following(node)
        answer = await join(node, "orders")
        cluster.leaders["orders"] += [1]
        await looking.look()
        beat = ConsumerGroupHeartbeatRequest("g", "m", answer.member_epoch)
        async with connected("127.0.0.1", node.port) as client:
            after = await client.call(beat, 1)
        assert after.member_epoch == answer.member_epoch + 1
        assert assigned(after) == {topic_id("orders"): [0, 1, 2, 3, 4]}


async def test_a_node_looks_again_by_itself_once_a_group_needs_it() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        looking = following(node)
        watching = asyncio.create_task(looking.watch(0.01))
        try:
            async with connected("127.0.0.1", node.port) as client:
                rows = [OffsetCommitRequestPartition(0, 7)]
                topics = [OffsetCommitRequestTopic(name="orders", partitions=rows)]
                await client.call(OffsetCommitRequest("classic", topics=topics), 8)
            assert not node.services.runtime.topics.complete
            await join(node, "orders")
            cluster.leaders["fresh"] = [1]
            await until(lambda: "fresh" in known(node))
        finally:
            watching.cancel()


async def test_no_member_joins_while_topics_are_not_known() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        following(node)
        for broker in cluster.brokers.values():
            await broker.__aexit__(None, None, None)
        answer = await join(node, "orders")
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert node.services.runtime.shards[node.services.runtime.partition_of("g")].figures() == []
        for broker in cluster.brokers.values():
            await broker.__aenter__()


async def test_partitions_go_to_members_in_the_racks_of_their_replicas() -> None:
    async with two_brokers() as cluster:
        cluster.racks, cluster.replicated = {1: "west", 2: "east"}, False
        settings: dict[str, Any] = {
            "group_consumer_assignors": "rack",
            "group_consumer_assignment_interval_ms": 0,
        }
        async with (
            relaying(cluster.bootstrap, **settings) as [node],
            connected("127.0.0.1", node.port) as client,
        ):

            async def beat(member: str, epoch: int, owned: list[int] | None = None) -> list[int]:
                request = ConsumerGroupHeartbeatRequest("g", member, epoch)
                if not epoch:
                    request.rebalance_timeout_ms, request.subscribed_topic_names = 30_000, ["orders"]
                    request.topic_partitions, request.rack_id = [], member
                if owned is not None:
                    topic = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id("orders"), owned)
                    request.topic_partitions = [topic]
                return assigned(await client.call(request, 1)).get(topic_id("orders"), [])

            assert await beat("east", 0) == [0, 1, 2, 3]
            assert await beat("west", 0) == []
            assert await beat("east", 2) == [1, 3]
            # Both brokers are where west is: the topic that is made again has no other place.
            cluster.racks[2], cluster.ids["orders"] = "west", OTHER_ID
            await following(node).look()
            [racks] = {topic.racks for topic in node.services.runtime.topics.all()}
            assert racks == (frozenset(("west",)),) * 4
