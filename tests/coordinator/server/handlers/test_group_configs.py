"""Configurations of groups at a daemon: durable, shown with where they come from, and for those who may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.support.served import Client, connected

GROUP_TYPE = 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE = 0, 1


async def alter(client: Client, group: str, *changes: tuple[str, int, str | None], only: bool = False) -> Any:
    configs = [IncrementalAlterConfigsRequestAlterableConfig(*change) for change in changes]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(GROUP_TYPE, group, configs)
    request = IncrementalAlterConfigsRequest([resource], validate_only=only)
    [answer] = (await client.call(request, 1)).responses
    assert (answer.resource_type, answer.resource_name) == (GROUP_TYPE, group)
    return answer


async def replace(client: Client, group: str, **values: str) -> Any:
    configs = [AlterConfigsRequestAlterableConfig(name, value) for name, value in values.items()]
    request = AlterConfigsRequest([AlterConfigsRequestAlterConfigsResource(GROUP_TYPE, group, configs)])
    [answer] = (await client.call(request, 2)).responses
    return answer


async def described(client: Client, group: str) -> dict[str, tuple[str, int]]:
    resource = DescribeConfigsRequestDescribeConfigsResource(GROUP_TYPE, group, None)
    [result] = (await client.call(DescribeConfigsRequest([resource]), 4)).results
    assert result.error_code == 0
    return {entry.name: (entry.value, entry.config_source) for entry in result.configs}


async def interval_ms(client: Client, group: str) -> int:
    request = ConsumerGroupHeartbeatRequest(group, "m", 0, rebalance_timeout_ms=1_000)
    request.subscribed_topic_names, request.topic_partitions = [], []
    answer = await client.call(request, 1)
    assert answer.error_code == 0
    return int(answer.heartbeat_interval_ms)


async def test_they_are_set_shown_effective_and_there_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(listen="127.0.0.1:0", data_dir=tmp_path, group_consumer_session_timeout_ms=50_000)
    async with Node(settings) as node, connected(node.host, node.port) as client:
        assert await described(client, "g") == {
            SESSION: ("50000", 4),
            HEARTBEAT: ("5000", 5),
            "consumer.assignment.interval.ms": ("1000", 5),
        }
        assert (await alter(client, "g", (HEARTBEAT, SET, "6000"), (SESSION, SET, "55000"))).error_code == 0
        assert (await alter(client, "g", (SESSION, DELETE, None))).error_code == 0
        assert (await alter(client, "g", (HEARTBEAT, SET, "9000"), only=True)).error_code == 0
        assert await interval_ms(client, "g") == 6_000
        assert await interval_ms(client, "h") == 5_000
    async with Node(settings) as node, connected(node.host, node.port) as client:
        found = await described(client, "g")
        assert (found[HEARTBEAT], found[SESSION]) == (("6000", 8), ("50000", 4))
        assert await interval_ms(client, "g") == 6_000
        assert (await replace(client, "g", **{SESSION: "60000"})).error_code == 0
        found = await described(client, "g")
        assert (found[HEARTBEAT], found[SESSION]) == (("5000", 5), ("60000", 8))
        assert (await replace(client, "g")).error_code == 0
    async with Node(settings) as node, connected(node.host, node.port) as client:
        assert (await described(client, "g"))[SESSION] == ("50000", 4)


@pytest.mark.parametrize(
    ("group", "change", "code"),
    [
        ("", (HEARTBEAT, SET, "6000"), ErrorCode.INVALID_REQUEST),
        ("g", (HEARTBEAT, SET, "1"), ErrorCode.INVALID_CONFIG),
        ("g", (HEARTBEAT, 2, "6000"), ErrorCode.INVALID_CONFIG),
        ("g", ("retention.ms", SET, "1"), ErrorCode.INVALID_CONFIG),
        ("g", (HEARTBEAT, 9, "6000"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_refused_changes_nothing(
    tmp_path: Path, group: str, change: tuple[str, int, str], code: int
) -> None:
    async with (
        Node(Settings(listen="127.0.0.1:0", data_dir=tmp_path)) as node,
        connected(node.host, node.port) as client,
    ):
        before = await described(client, "g")
        assert (await alter(client, group, change)).error_code == code
        assert await described(client, "g") == before


async def test_a_group_without_a_name_has_none(tmp_path: Path) -> None:
    async with (
        Node(Settings(listen="127.0.0.1:0", data_dir=tmp_path)) as node,
        connected(node.host, node.port) as client,
    ):
        resource = DescribeConfigsRequestDescribeConfigsResource(GROUP_TYPE, "", None)
        [result] = (await client.call(DescribeConfigsRequest([resource]), 4)).results
        assert result.error_code == ErrorCode.INVALID_REQUEST
