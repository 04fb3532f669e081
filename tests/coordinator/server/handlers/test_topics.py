"""Metadata, CreateTopics, DeleteTopics, CreatePartitions, version by version."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    MetadataRequest,
    MetadataRequestTopic,
)
from ringleader.protocol.schema import ZERO_UUID

NODE, HOST, PORT = 5, "here.example", 9092
Ask = Any


def metadata(*names: str, create: bool = True) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names], create)


@pytest.mark.parametrize("version", range(13))
async def test_metadata_at_every_version(ask: Ask, version: int) -> None:
    info = await ask.topics.create("orders", 3)
    answer = await ask(metadata("orders"), version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(NODE, HOST, PORT)]
    assert answer.controller_id == (NODE if version >= 1 else -1)
    assert answer.cluster_id == ("cluster" if version >= 2 else None)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "orders", False)
    assert topic.topic_id == (info.id if version >= 10 else ZERO_UUID)
    assert [p.partition_index for p in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (0, NODE)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert partition.replica_nodes == partition.isr_nodes == [NODE]
        assert partition.offline_replicas == []


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (12, None)])
async def test_all_topics_are_listed_by_name(ask: Ask, version: int, topics: Any) -> None:
    for name in ("b", "a"):
        await ask.topics.create(name, 1)
    answer = await ask(MetadataRequest(topics), version)
    assert [topic.name for topic in answer.topics] == ["a", "b"]


async def test_from_version_1_an_empty_list_asks_for_none(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    assert (await ask(MetadataRequest([]), 1)).topics == []


@pytest.mark.parametrize("version", [0, 3, 4, 12])
async def test_an_unknown_topic_is_created_when_asked_for(ask: Ask, version: int) -> None:
    answer = await ask(metadata("new", "new", "other"), version)
    assert [(topic.error_code, topic.name, len(topic.partitions)) for topic in answer.topics] == [
        (0, "new", 1),
        (0, "other", 1),
    ]
    assert ask.topics.describe("new") is not None


@pytest.mark.parametrize(
    ("ask", "create"), [({}, False), ({"auto_create_topics_enable": False}, True)], indirect=["ask"]
)
async def test_an_unknown_topic_stays_unknown(ask: Ask, create: bool) -> None:
    answer = await ask(metadata("new", "a b", create=create))
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert ask.topics.all() == []


async def test_a_name_that_no_topic_has_is_not_created(ask: Ask) -> None:
    answer = await ask(metadata("a b", "good"))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


async def test_topics_are_asked_for_by_id(ask: Ask) -> None:
    info = await ask.topics.create("orders", 1)
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in (info.id, b"x" * 16)]
    known, unknown = (await ask(MetadataRequest(topics), 12)).topics
    assert (known.error_code, known.name) == (0, "orders")
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    for version in (10, 11):
        refused = await ask(MetadataRequest([MetadataRequestTopic(topic_id=info.id, name="orders")]), version)
        assert refused.topics[0].error_code == ErrorCode.INVALID_REQUEST


async def test_authorized_operations_are_told_on_request(ask: Ask) -> None:
    await ask.topics.create("orders", 1)
    request = MetadataRequest([MetadataRequestTopic(name="orders")], True, True, True)
    answer = await ask(request, 8)
    assert answer.cluster_authorized_operations > 0
    assert answer.topics[0].topic_authorized_operations == 3576
    answer = await ask(metadata("orders"), 8)
    assert answer.topics[0].topic_authorized_operations == -(2**31)


def creatable(name: str, partitions: int = 2, factor: int = 1, **configs: Any) -> Any:
    return CreateTopicsRequestCreatableTopic(
        name,
        partitions,
        factor,
        configs=[
            CreateTopicsRequestCreatableTopicConfig(key.replace("_", "."), value)
            for key, value in configs.items()
        ],
    )


@pytest.mark.parametrize("version", range(2, 8))
async def test_topics_are_created_at_every_version(ask: Ask, version: int) -> None:
    request = CreateTopicsRequest([creatable("a", retention_ms="5"), creatable("b c"), creatable("d", 3)])
    a, bad, d = (await ask(request, version)).topics
    assert [a.error_code, bad.error_code, d.error_code] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert bad.error_message
    assert ask.topics.describe("d").partitions == 3
    assert a.topic_id == (ask.topics.describe("a").id if version >= 7 else ZERO_UUID)
    if version >= 5:
        assert (a.num_partitions, a.replication_factor) == (2, 1)
        assert {c.name: (c.value, c.config_source) for c in a.configs}["retention.ms"] == ("5", 1)


async def test_validating_creates_nothing(ask: Ask) -> None:
    answer = await ask(
        CreateTopicsRequest([creatable("a"), creatable("b", retention_ms="x")], validate_only=True)
    )
    assert [topic.error_code for topic in answer.topics] == [0, ErrorCode.INVALID_CONFIG]
    assert answer.topics[0].topic_id == ZERO_UUID
    assert ask.topics.all() == []


def assigned(*brokers: list[int], count: int = -1, factor: int = -1, first: int = 0) -> Any:
    assignments = [
        CreateTopicsRequestCreatableReplicaAssignment(first + i, found) for i, found in enumerate(brokers)
    ]
    return CreateTopicsRequestCreatableTopic("a", count, factor, assignments)


@pytest.mark.parametrize(
    ("topic", "version", "code"),
    [
        (creatable("a", -1, -1), 4, 0),
        (creatable("a", -1, 1), 3, ErrorCode.INVALID_PARTITIONS),
        (creatable("a", 1, -1), 3, ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable("a", 1, 3), 7, ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable("a", 1, 0), 7, ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable("a", 0), 7, ErrorCode.INVALID_PARTITIONS),
        (creatable("a", -2), 7, ErrorCode.INVALID_PARTITIONS),
        (creatable("a", 10_001), 7, ErrorCode.INVALID_PARTITIONS),
        (creatable("a", nonsense="1"), 7, ErrorCode.INVALID_CONFIG),
        (assigned([NODE], [NODE]), 7, 0),
        (assigned([NODE], count=1), 7, ErrorCode.INVALID_REQUEST),
        (assigned([NODE, 6]), 7, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned([NODE], first=1), 7, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_what_may_be_created(ask: Ask, topic: Any, version: int, code: int) -> None:
    answer = await ask(CreateTopicsRequest([topic]), version)
    assert answer.topics[0].error_code == code
    assert (ask.topics.describe("a") is not None) == (code == 0)


async def test_a_topic_twice_in_a_request_and_one_that_is_there(ask: Ask) -> None:
    await ask.topics.create("c", 1)
    answer = await ask(CreateTopicsRequest([creatable("a"), creatable("b"), creatable("a"), creatable("c")]))
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        "a": ErrorCode.INVALID_REQUEST,
        "b": 0,
        "c": ErrorCode.TOPIC_ALREADY_EXISTS,
    }


@pytest.mark.parametrize("version", range(1, 7))
async def test_topics_are_deleted_at_every_version(ask: Ask, version: int) -> None:
    info = await ask.topics.create("a", 1)
    if version < 6:
        request = DeleteTopicsRequest(topic_names=["a", "none"])
    else:
        states = [
            DeleteTopicsRequestDeleteTopicState(None, info.id),
            DeleteTopicsRequestDeleteTopicState("none"),
            DeleteTopicsRequestDeleteTopicState(None, b"x" * 16),
            DeleteTopicsRequestDeleteTopicState("a", info.id),
            DeleteTopicsRequestDeleteTopicState(None),
        ]
        request = DeleteTopicsRequest(topics=states)
    answer = await ask(request, version)
    assert [(r.error_code, r.name) for r in answer.responses[:2]] == [
        (0, "a"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none"),
    ]
    assert [r.error_code for r in answer.responses[2:]] == (
        [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
        if version >= 6
        else []
    )
    assert ask.topics.all() == []
    assert ask.services.runtime.names == ["a"]


@pytest.mark.parametrize("ask", [{"delete_topic_enable": False}], indirect=True)
async def test_deletion_can_be_switched_off(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    for version, code in ((2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)):
        answer = await ask(DeleteTopicsRequest(topic_names=["a"]), version)
        assert answer.responses[0].error_code == code
    assert ask.topics.describe("a") is not None
    assert ask.services.runtime.names == []


@pytest.mark.parametrize("version", range(4))
async def test_topics_grow_at_every_version(ask: Ask, version: int) -> None:
    for name in ("a", "b", "c", "d"):
        await ask.topics.create(name, 2)
    growing = CreatePartitionsRequestCreatePartitionsTopic
    mine = CreatePartitionsRequestCreatePartitionsAssignment([NODE])
    other = CreatePartitionsRequestCreatePartitionsAssignment([1])
    topics = [
        growing("a", 4, None),
        growing("b", 2, None),
        growing("none", 2, None),
        growing("c", 4, [mine, mine]),
        growing("d", 3, [other]),
        growing("a", 9, None),
    ]
    answer = await ask(CreatePartitionsRequest(topics[1:5]), version)
    assert {r.name: r.error_code for r in answer.results} == {
        "b": ErrorCode.INVALID_PARTITIONS,
        "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "c": 0,
        "d": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }
    answer = await ask(CreatePartitionsRequest([topics[0], topics[5]]), version)
    assert [r.error_code for r in answer.results] == [ErrorCode.INVALID_REQUEST]
    assert (await ask(CreatePartitionsRequest([topics[0]], validate_only=True), version)).results[
        0
    ].error_code == 0
    assert [info.partitions for info in ask.topics.all()] == [2, 2, 4, 2]
    assert (await ask(CreatePartitionsRequest([topics[0]]), version)).results[0].error_code == 0
    assert ask.topics.describe("a").partitions == 4
