"""A group of the consumer protocol on nodes before Apache Kafka, of our own consumer and librdkafka's: its
owner is killed, its topic grows, and no member notices the one, and all the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.model import SubscriptionPattern
from ringleader.protocol.messages import ConsumerGroupDescribeRequest
from tests.e2e.test_consumer_protocol import Member
from tests.e2e.test_regex_subscriptions import Member as RegexMember
from tests.e2e.test_regex_subscriptions import running
from tests.interop.clients.test_consumer_protocol_on_kafka import Story, reading
from tests.interop.cluster.test_nodes import Nodes, owner_of
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.consuming import PATIENCE_S, Sink, until

GROUP, TOPIC = "g", "t"
PARTITIONS, MORE = 6, 8
OPTIONS = (
    *("--group-consumer-heartbeat-interval-ms", "200"),
    *("--group-consumer-assignment-interval-ms", "0"),
)


@pytest.fixture
def nodes(tmp_path: Path, one_broker: KafkaCluster) -> Iterator[Nodes]:
    """None is started yet."""
    nodes = Nodes(tmp_path, one_broker.bootstrap, *OPTIONS)
    try:
        yield nodes
    finally:
        nodes.stop()


async def epochs(nodes: Nodes) -> tuple[int, dict[str, int]]:
    """Of the group, and by member id."""
    async with Cluster(nodes.bootstrap) as cluster:
        owner = await cluster.coordinator(GROUP)
        [found] = (await cluster.send(owner, plain(ConsumerGroupDescribeRequest([GROUP])))).groups
    assert found.error_code == 0
    return found.group_epoch, {one.member_id: one.member_epoch for one in found.members}


async def test_members_keep_everything_when_the_owner_is_killed_and_get_new_partitions(nodes: Nodes) -> None:
    await nodes.all_there()
    async with Admin(nodes.brokers) as admin:
        await admin.create_topic(TOPIC, PARTITIONS)
        story, sink = Story(), Sink()
        other = Member(nodes.bootstrap, "librdkafka")
        own = GroupConsumer(
            nodes.bootstrap,
            GROUP,
            [TOPIC],
            group_protocol="consumer",
            auto_offset_reset="earliest",
            **story.callbacks,
        )
        try:
            async with own, reading(own, sink, commits=True):
                other.start()
                await until(lambda: len(own.assignment()) == len(other.had) == PARTITIONS // 2)
                await written(nodes, sink, other, PARTITIONS)
                events, before = list(story.events), await epochs(nodes)
                owner = await owner_of(GROUP, nodes)
                nodes.by_id[owner].kill()
                await nodes.rest(lambda found: len(found.cluster.nodes) == 2)
                assert await owner_of(GROUP, nodes) != owner
                await written(nodes, sink, other, PARTITIONS)
                assert await epochs(nodes) == before
                assert story.events == events, "nothing was given up, and nothing came"
                await admin.create_partitions(TOPIC, MORE)
                await until(lambda: len(own.assignment()) == MORE // 2)
                await written(nodes, sink, other, MORE)
                assert (await epochs(nodes))[0] == before[0] + 1
                assert story.of("lost") == []
                other.ended.set()
                await until(lambda: len(own.assignment()) == MORE)
        finally:
            other.ended.set()
            if other.ident is not None:
                await asyncio.to_thread(other.join)
        await admin.delete_topics([TOPIC])


async def test_topics_by_a_regular_expression(nodes: Nodes) -> None:
    await nodes.all_there()
    async with Admin(nodes.brokers) as admin:
        await admin.create_topic("orders-1", 1)
        member = RegexMember(nodes.bootstrap, "librdkafka", "^orders-.*")
        own = GroupConsumer(
            nodes.bootstrap, "own", pattern=SubscriptionPattern("orders-.*"), group_protocol="consumer"
        )
        with running(member):
            async with own:
                await by_an_expression(nodes, admin, member, own)
        for name in ("orders-1", "orders-2", "other"):
            await admin.delete_topics([name])


async def by_an_expression(nodes: Nodes, admin: Admin, member: RegexMember, own: GroupConsumer) -> None:
    """Topics that are there, and those that come after the owner of the first one's group was killed."""
    await until(lambda: member.has == {"orders-1"} and own.assignment() == [("orders-1", 0)])
    nodes.by_id[await owner_of(GROUP, nodes)].kill()
    await nodes.rest(lambda found: len(found.cluster.nodes) == 2)
    await admin.create_topic("orders-2", 1)
    await admin.create_topic("other", 1)
    await until(lambda: member.has == {"orders-1", "orders-2"})
    await until(lambda: own.assignment() == [("orders-1", 0), ("orders-2", 0)])


async def written(nodes: Nodes, sink: Sink, other: Member, partitions: int) -> None:
    """One record more for each partition, and all of them are read."""
    before = sink.total + len(set(other.seen))
    producer = Producer({"bootstrap.servers": nodes.brokers})
    for partition in range(partitions):
        producer.produce(TOPIC, b"x", partition=partition)
    assert await asyncio.to_thread(producer.flush, PATIENCE_S) == 0
    await until(lambda: sink.total + len(set(other.seen)) >= before + partitions)
