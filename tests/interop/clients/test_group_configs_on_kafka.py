"""Configurations of groups, request by request and by Kafka's own tool: Kafka and the daemon answer alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.protocol import messages as kafka
from tests.interop.kafka import KafkaBroker, tool
from tests.support.daemon import Daemon

pytestmark = pytest.mark.xdist_group("kafka-group-configs")

GROUP_TYPE, SET, DELETE = 32, 0, 1
SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
REFUSED: list[tuple[str, str, int, str | None]] = [
    ("", HEARTBEAT, SET, "6000"),
    ("g", HEARTBEAT, SET, "4999"),
    ("g", HEARTBEAT, SET, "15001"),
    ("g", SESSION, SET, "44999"),
    ("g", SESSION, SET, "60001"),
    ("g", ASSIGNMENT, SET, "-1"),
    ("g", ASSIGNMENT, SET, "15001"),
    ("g", SESSION, SET, "long"),
    ("g", "retention.ms", SET, "1"),
]


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of each in turn, with its default settings."""
    directory = tmp_path_factory.mktemp(request.param)
    target = KafkaBroker(directory / "broker") if request.param == "kafka" else Daemon(directory)
    with target:
        yield target.bootstrap


async def ask(cluster: Cluster, message: Any, version: int) -> Any:
    return await cluster.send(None, Request(type(message), lambda _version: message, max_version=version))


async def alter(cluster: Cluster, group: str, name: str, operation: int, value: str | None) -> int:
    change = kafka.IncrementalAlterConfigsRequestAlterableConfig(name, operation, value)
    resource = kafka.IncrementalAlterConfigsRequestAlterConfigsResource(GROUP_TYPE, group, [change])
    [answer] = (await ask(cluster, kafka.IncrementalAlterConfigsRequest([resource]), 1)).responses
    print(answer.error_code, answer.error_message)
    return int(answer.error_code)


async def described(cluster: Cluster, group: str, *names: str) -> dict[str, tuple[str, int, int, list[int]]]:
    resource = kafka.DescribeConfigsRequestDescribeConfigsResource(GROUP_TYPE, group, list(names))
    [result] = (
        await ask(cluster, kafka.DescribeConfigsRequest([resource], include_synonyms=True), 4)
    ).results
    assert result.error_code == 0
    return {
        one.name: (one.value, one.config_source, one.config_type, [syn.source for syn in one.synonyms])
        for one in result.configs
    }


async def until(cluster: Cluster, group: str, name: str, value: str) -> None:
    """A broker hears of a change when its controller tells it."""
    while (await described(cluster, group, name))[name][0] != value:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_what_is_refused(bootstrap: str) -> None:
    codes = {"": 42}
    async with Cluster(bootstrap) as cluster:
        for refused in REFUSED:
            assert await alter(cluster, *refused) == codes.get(refused[0], 40), refused


async def test_what_is_set_is_shown(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        assert await described(cluster, "g", SESSION, HEARTBEAT, ASSIGNMENT) == {
            SESSION: ("45000", 5, 3, [5]),
            HEARTBEAT: ("5000", 5, 3, [5]),
            ASSIGNMENT: ("1000", 5, 3, [5]),
        }
        assert await alter(cluster, "g", HEARTBEAT, SET, "6000") == 0
        await until(cluster, "g", HEARTBEAT, "6000")
        assert await described(cluster, "g", HEARTBEAT) == {HEARTBEAT: ("6000", 8, 3, [8, 5])}
        assert await alter(cluster, "g", HEARTBEAT, DELETE, None) == 0
        await until(cluster, "g", HEARTBEAT, "5000")


async def test_kafka_configs_sets_and_shows_them(bootstrap: str) -> None:
    async def configs(*arguments: str) -> str:
        where = ["--bootstrap-server", bootstrap, "--entity-type", "groups", "--entity-name", "h"]
        done = await asyncio.to_thread(tool, "kafka.admin.ConfigCommand", *where, *arguments)
        done.check_returncode()
        return done.stdout

    assert "Completed updating config" in await configs("--alter", "--add-config", f"{SESSION}=50000")
    async with Cluster(bootstrap) as cluster:
        await until(cluster, "h", SESSION, "50000")
    assert f"{SESSION}=50000" in await configs("--describe")
    await configs("--alter", "--delete-config", SESSION)
    async with Cluster(bootstrap) as cluster:
        await until(cluster, "h", SESSION, "45000")
