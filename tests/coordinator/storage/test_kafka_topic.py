"""The groups' topic while nodes run: deleted and made again, or set to something else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ringleader.clients.admin import Admin
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from ringleader.coordinator.storage.kafka import store as module
from ringleader.coordinator.storage.kafka.topic import GroupsTopic
from ringleader.testing import Coordinator
from tests.coordinator.storage.conftest import CONFIGS
from tests.support.cluster_nodes import Lines
from tests.support.served import until

TOPIC = "__ringleader_groups"
PARTITIONS = 2
UNFIT = "the groups' topic is not as it has to be"


class Node:
    """A node's store, and what it says."""

    def __init__(self, bootstrap: str) -> None:
        self.failures: list[Exception] = []
        self.lines = Lines()
        self.store = KafkaStorage(
            bootstrap,
            Claim(1, "node-1", 9092, "1.0"),
            partitions=PARTITIONS,
            replication_factor=1,
            timeout_ms=5_000,
            on_failed=self.failures.append,
            log=self.lines.log,
        )


@asynccontextmanager
async def started(kafka_cluster: Coordinator) -> AsyncIterator[Node]:
    """It is closed at the end."""
    node = Node(kafka_cluster.bootstrap)
    try:
        await node.store.start()
        yield node
    finally:
        await node.store.close()


async def test_a_topic_made_again_ends_a_node_that_has_nothing_to_write(
    kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    async with started(kafka_cluster) as node:
        async with Admin(kafka_cluster.bootstrap) as admin:
            await admin.delete_topics([TOPIC])
        kafka_cluster.create_topic(TOPIC, PARTITIONS, CONFIGS)
        await until(lambda: bool(node.failures))
        [failure] = node.failures
        assert isinstance(failure, StorageError)
        assert failure.failure is Failure.UNFIT
        for doing in (node.store.open(1, 0), node.store.append([(0, 0, [(b"key", b"2")])])):
            with pytest.raises(StorageError, match="was deleted and made again"):
                await doing


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("cleanup.policy", "delete", "set it to compact"),
        ("message.timestamp.type", "CreateTime", "set it to LogAppendTime"),
        ("delete.retention.ms", "1000", "miss how a transaction ended: set it to 86400000"),
    ],
)
async def test_a_topic_that_is_set_to_something_else_is_told_and_refused_by_the_next_start(
    kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    async with started(kafka_cluster) as node:
        async with Admin(kafka_cluster.bootstrap) as admin:
            await admin.alter_topic_configs(TOPIC, {name: value})
        await until(lambda: bool(node.lines.of(UNFIT)))
        [line] = node.lines.of(UNFIT)
        assert says in line["reason"]
        assert not node.failures
        with pytest.raises(StorageError, match=says):
            async with started(kafka_cluster):
                pass


@pytest.mark.leaves("logged by a node")
async def test_an_error_of_our_own_is_told_and_ends_no_look(
    kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(module, "LOOK_S", 0.05)
    async with started(kafka_cluster) as node:
        with monkeypatch.context() as patch:
            patch.setattr(GroupsTopic, "check", broken)
            await until(lambda: len(node.lines.of("the groups' topic was not looked at")) > 1)
        assert not node.failures
        async with Admin(kafka_cluster.bootstrap) as admin:
            await admin.alter_topic_configs(TOPIC, {"cleanup.policy": "delete"})
        await until(lambda: bool(node.lines.of(UNFIT)))
