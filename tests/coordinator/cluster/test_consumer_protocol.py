"""Groups of the consumer protocol on nodes: found wherever a client asks, and the same under every owner."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.relay import following
from ringleader.coordinator.runtime import groups
from ringleader.coordinator.security.store import FileStore
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from ringleader.testing import Coordinator
from tests.coordinator.cluster.test_node import alike
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.served import WAIT_S, connected, until

GROUP = "group-7"
PARTITION = partition_for(GROUP, 50)
AT_ONCE = {"group_consumer_assignment_interval_ms": 0, "group_consumer_heartbeat_interval_ms": 100}


async def ask(node: ClusterNode, request: Any) -> Any:
    async with connected("127.0.0.1", node.port) as client:
        return await client.call(request, 1)


async def join(node: ClusterNode) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=30_000)
    request.subscribed_topic_names, request.topic_partitions = ["orders"], []
    answer: ConsumerGroupHeartbeatResponse = await ask(node, request)
    assert answer.error_code == 0
    return answer


async def beat(node: ClusterNode, epoch: int) -> ConsumerGroupHeartbeatResponse:
    answer: ConsumerGroupHeartbeatResponse = await ask(node, ConsumerGroupHeartbeatRequest(GROUP, "m", epoch))
    return answer


def partitions(answer: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert answer.assignment is not None
    return [one for topic in answer.assignment.topic_partitions for one in topic.partitions]


async def test_the_owner_serves_a_group_and_the_others_name_it(nodes: Nodes) -> None:
    made = {node_id: await nodes.start(node_id, **AT_ONCE) for node_id in (1, 2)}
    owner = (await alike(*made.values()))[GROUP]
    other = made[3 - owner]
    refused = await ask(other, ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=1_000))
    assert refused.error_code == ErrorCode.INVALID_REQUEST, "wrong in itself, at whichever node"
    assert (await beat(other, 5)).error_code == ErrorCode.NOT_COORDINATOR
    [described] = (await ask(other, ConsumerGroupDescribeRequest([GROUP]))).groups
    assert described.error_code == ErrorCode.NOT_COORDINATOR
    async with GroupConsumer(other.bootstrap, GROUP, ["orders"], group_protocol="consumer") as consumer:
        assigned = await consumer.wait_assigned(WAIT_S)
        assert sorted(assigned) == [("orders", 0), ("orders", 1), ("orders", 2)]
        [described] = (await ask(made[owner], ConsumerGroupDescribeRequest([GROUP]))).groups
        assert described.group_state == "Stable"
        [member] = described.members
        [topic] = member.assignment.topic_partitions
        assert (topic.topic_name, topic.partitions) == ("orders", [0, 1, 2])


async def test_the_next_owner_changes_no_epoch_and_takes_nothing_away(
    nodes: Nodes, kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the topic grew, and only the former owner had heard of it."""
    monkeypatch.setattr(following, "INTERVAL_S", WAIT_S)
    made = {node_id: await nodes.start(node_id, **AT_ONCE) for node_id in (1, 2)}
    owner = (await alike(*made.values()))[GROUP]
    heir = made[3 - owner]
    assert heir.runtime.look_at_topics is not None
    await heir.runtime.look_at_topics()
    joined = await join(made[owner])
    async with Admin(kafka_cluster.bootstrap) as admin:
        await admin.create_partitions("orders", 5)
    look = made[owner].runtime.look_at_topics
    assert look is not None
    await look()
    grown = await beat(made[owner], joined.member_epoch)
    assert (grown.member_epoch, partitions(grown)) == (joined.member_epoch + 1, [0, 1, 2, 3, 4])
    await made[owner].stop()
    await until(lambda: PARTITION in heir.runtime.serving)
    after = await beat(heir, grown.member_epoch)
    assert (after.error_code, after.member_epoch, after.assignment) == (0, grown.member_epoch, None)
    request = ConsumerGroupHeartbeatRequest(
        GROUP, "m", grown.member_epoch, rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"]
    )
    [owned] = grown.assignment.topic_partitions if grown.assignment is not None else []
    own = ConsumerGroupHeartbeatRequestTopicPartitions(owned.topic_id, owned.partitions)
    request.topic_partitions = [own]
    assert partitions(await ask(heir, request)) == [0, 1, 2, 3, 4]


async def test_an_owner_that_was_fenced_is_no_coordinator_any_more(nodes: Nodes, lines: Lines) -> None:
    one = await nodes.start(1, **AT_ONCE)
    await until(lambda: PARTITION in one.runtime.serving)
    joined = await join(one)
    nodes.shared.epochs[PARTITION] += 1  # another node has it now, and this one has not heard of it
    left = ConsumerGroupHeartbeatRequest(GROUP, "m", -1)
    assert (await ask(one, left)).error_code == ErrorCode.NOT_COORDINATOR
    assert lines.of("shard lost")
    await until(lambda: PARTITION in one.runtime.serving)
    assert (await beat(one, joined.member_epoch)).member_epoch == joined.member_epoch, "it never left"


async def test_the_shard_is_served_with_the_topics_of_last_while_brokers_are_silent(
    nodes: Nodes, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "TOPICS_TIMEOUT_S", 0.1)
    one = await nodes.start(1, **AT_ONCE)
    await until(lambda: PARTITION in one.runtime.serving)
    joined = await join(one)

    async def never() -> None:
        await asyncio.Event().wait()

    one.runtime.look_at_topics = never
    await one.runtime.release(PARTITION)
    await one.runtime.acquire(PARTITION)
    assert (await beat(one, joined.member_epoch)).member_epoch == joined.member_epoch
    [line] = lines.of("served with topics as of last")
    assert line["partition"] == PARTITION


async def test_what_is_set_for_a_group_at_one_node_counts_at_its_owner(
    kafka_cluster: Coordinator, lines: Lines
) -> None:
    store = FileStore(Path(kafka_cluster.node.settings.data_dir) / "of-the-nodes.json")
    async with Nodes(kafka_cluster, lines, store) as nodes:
        made = {node_id: await nodes.start(node_id) for node_id in (1, 2)}
        owner = (await alike(*made.values()))[GROUP]
        other = made[3 - owner]
        change = IncrementalAlterConfigsRequestAlterableConfig("consumer.heartbeat.interval.ms", 0, "6000")
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(32, GROUP, [change])
        [answer] = (await ask(other, IncrementalAlterConfigsRequest([resource]))).responses
        assert (answer.error_code, answer.resource_name) == (0, GROUP)
        assert (await join(made[owner])).heartbeat_interval_ms == 6_000
        group_settings = DescribeConfigsRequestDescribeConfigsResource(
            32, GROUP, ["consumer.heartbeat.interval.ms"]
        )
        [shown] = (await ask(made[owner], DescribeConfigsRequest([group_settings]))).results
        assert [entry.value for entry in shown.configs] == ["6000"]
        [refused] = (
            await ask(other, DescribeConfigsRequest([replace(group_settings, resource_name="")]))
        ).results
        assert refused.error_code == ErrorCode.INVALID_REQUEST
