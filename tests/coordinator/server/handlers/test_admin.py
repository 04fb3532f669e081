"""Configurations, DeleteRecords, DescribeCluster, version by version."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.support.topiclog import batch

Ask = Any
NODE = 5
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    kind: int, name: str, keys: list[str] | None = None, *, more: bool = False
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        [DescribeConfigsRequestDescribeConfigsResource(kind, name, keys)], more, more
    )


async def configs(ask: Ask, name: str = "a") -> dict[str, tuple[str, int]]:
    (result,) = (await ask(describe(TOPIC, name))).results
    return {entry.name: (entry.value, entry.config_source) for entry in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topics_configurations_at_every_version(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 1, {"retention.ms": "7"})
    request = describe(TOPIC, "a", more=True)
    request.include_documentation = version >= 3
    (result,) = (await ask(request, version)).results
    assert (result.error_code, result.resource_type, result.resource_name) == (0, TOPIC, "a")
    found = {entry.name: entry for entry in result.configs}
    mine, other = found["retention.ms"], found["segment.bytes"]
    assert (mine.value, mine.config_source, mine.read_only) == ("7", 1, False)
    assert [(s.name, s.value, s.source) for s in mine.synonyms] == [
        ("retention.ms", "7", 1),
        ("log.retention.ms", "604800000", 5),
    ]
    assert (other.value, other.config_source) == ("1073741824", 5)
    if version >= 3:
        assert mine.config_type == 5
        assert "no effect" in found["min.insync.replicas"].documentation


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (describe(TOPIC, "a", ["retention.ms", "none"]), ["retention.ms"]),
        (describe(BROKER, str(NODE), ["num.partitions"]), ["num.partitions"]),
    ],
)
async def test_only_some_keys(ask: Ask, request_: DescribeConfigsRequest, names: list[str]) -> None:
    await ask.topics.create("a", 1)
    (result,) = (await ask(request_)).results
    assert [entry.name for entry in result.configs] == names
    assert result.configs[0].synonyms == []
    assert result.configs[0].documentation is None


async def test_an_empty_list_asks_for_all_keys(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    (result,) = (await ask(describe(TOPIC, "a", []))).results
    assert len(result.configs) > 20


@pytest.mark.parametrize("ask", [{"log_retention_ms": 99}], indirect=True)
async def test_a_default_from_the_nodes_settings_says_so(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    assert (await configs(ask))["retention.ms"] == ("99", 4)
    (result,) = (await ask(describe(BROKER, str(NODE)))).results
    found = {entry.name: entry for entry in result.configs}
    assert (found["log.retention.ms"].value, found["log.retention.ms"].config_source) == ("99", 4)
    assert found["auto.create.topics.enable"].value == "true"
    assert all(entry.read_only for entry in result.configs)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "77", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (16, "metrics", ErrorCode.INVALID_REQUEST),
        (BROKER, "", 0),
    ],
)
async def test_what_has_no_configurations(ask: Ask, kind: int, name: str, code: int) -> None:
    (result,) = (await ask(describe(kind, name))).results
    assert (result.error_code, result.configs) == (code, [])


def alter(name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC, check: bool = False) -> Any:
    made = [IncrementalAlterConfigsRequestAlterableConfig(*change) for change in changes]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(kind, name, made)
    return IncrementalAlterConfigsRequest([resource], check)


@pytest.mark.parametrize("version", [0, 1])
async def test_some_configurations_change(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 1, {"retention.ms": "7", "segment.bytes": "1000"})
    request = alter("a", ("retention.ms", DELETE, None), ("max.message.bytes", SET, "99"))
    (response,) = (await ask(request, version)).responses
    assert (response.error_code, response.resource_type, response.resource_name) == (0, TOPIC, "a")
    assert ask.topics.describe("a").configs == {"segment.bytes": "1000", "max.message.bytes": "99"}
    assert ask.topics.partition("a", 0).config.max_message_bytes == 99


async def test_lists_are_added_to_and_taken_from(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    for operation, value, after in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
    ):
        await ask(alter("a", ("cleanup.policy", operation, value)))
        assert (await configs(ask))["cleanup.policy"] == (after, 1)
    (response,) = (await ask(alter("a", ("cleanup.policy", SUBTRACT, "compact")))).responses
    assert response.error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (alter("none", ("retention.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (alter("a", ("no.such", SET, "1")), ErrorCode.INVALID_CONFIG),
        (alter("a", ("retention.ms", SET, "x")), ErrorCode.INVALID_CONFIG),
        (alter("a", ("retention.ms", SET, None)), ErrorCode.INVALID_CONFIG),
        (alter("a", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (alter("a", ("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (alter("a", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")), ErrorCode.INVALID_REQUEST),
        (alter(str(NODE), ("num.partitions", SET, "1"), kind=BROKER), ErrorCode.INVALID_REQUEST),
        (alter("a", ("retention.ms", SET, "1"), check=True), 0),
    ],
)
async def test_changes_that_are_not_made(ask: Ask, request_: Any, code: int) -> None:
    await ask.topics.create("a", 1)
    (response,) = (await ask(request_)).responses
    assert response.error_code == code
    assert ask.topics.describe("a").configs == {}


async def test_a_resource_twice_is_refused(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    request = alter("a", ("retention.ms", SET, "1"))
    request.resources *= 2
    responses = (await ask(request)).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_old_form_replaces_all_keys(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 1, {"retention.ms": "7"})
    made = [AlterConfigsRequestAlterableConfig("segment.bytes", "1000")]
    request = AlterConfigsRequest([AlterConfigsRequestAlterConfigsResource(TOPIC, "a", made)])
    (response,) = (await ask(request, version)).responses
    assert response.error_code == 0
    assert ask.topics.describe("a").configs == {"segment.bytes": "1000"}


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_records_are_deleted_at_every_version(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 2)
    await ask.topics.append("a", 0, batch(10))
    part = DeleteRecordsRequestDeleteRecordsPartition
    topics = [
        DeleteRecordsRequestDeleteRecordsTopic("a", [part(0, 4), part(1, 1), part(2, 0)]),
        DeleteRecordsRequestDeleteRecordsTopic("none", [part(0, 0)]),
    ]
    answer = await ask(DeleteRecordsRequest(topics, 1000), version)
    found = [(p.partition_index, p.low_watermark, p.error_code) for t in answer.topics for p in t.partitions]
    assert found == [
        (0, 4, 0),
        (1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (2, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    answer = await ask(
        DeleteRecordsRequest([DeleteRecordsRequestDeleteRecordsTopic("a", [part(0, -1)])]), version
    )
    assert answer.topics[0].partitions[0].low_watermark == 10


@pytest.mark.parametrize("version", [0, 1])
async def test_the_cluster_is_one_node(ask: Ask, version: int) -> None:
    answer = await ask(DescribeClusterRequest(True), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "cluster", NODE)
    assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(NODE, "here.example", 9092)]
    assert answer.cluster_authorized_operations > 0


@pytest.mark.parametrize(
    ("kind", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
async def test_other_endpoints_are_not_here(ask: Ask, kind: int, code: int) -> None:
    answer = await ask(DescribeClusterRequest(False, kind), 1)
    assert (answer.error_code, answer.brokers) == (code, [])
