"""Parts of tests of migrations: a daemon to move, its records, and a look at the cluster."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.consumer import PartitionConsumer
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from ringleader.migration.migration import Plan
from ringleader.protocol.records import Record
from ringleader.testing.coordinator import Coordinator
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import Done, run_here
from tests.support.consuming import PATIENCE_S

OLD_MS = 1_500_000_000_000
KEPT = {"retention.ms": "-1"}
NUMBERS = itertools.count()

Read = list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]]


class Daemon:
    """A daemon with topics of a name of their own, which nothing else on the cluster has."""

    def __init__(self, directory: Path) -> None:
        number = next(NUMBERS)
        self.name = f"moved{number}"
        self.groups_topic = f"groups{number}"
        self.security_topic = f"security{number}"
        self.nodes_group = f"nodes{number}"  # nodes of another test may not have been missed yet
        self.directory = directory
        self.coordinator = Coordinator(data_dir=directory)

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        named = f"{self.name}-{name}"
        self.coordinator.create_topic(
            named, partitions, KEPT | {key.replace("_", "."): value for key, value in configs.items()}
        )
        return named

    def put(self, topic: str, *batches: bytes, partition: int = 0) -> None:
        for batch in batches:
            self.coordinator.run(self.coordinator.node.topics.append(topic, partition, batch))

    def commit(self, group: str, offsets: dict[TopicPartition, int | OffsetAndMetadata]) -> None:
        async def set_offsets() -> None:
            async with Admin(self.coordinator.bootstrap) as admin:
                await admin.set_group_offsets(f"{self.name}-{group}", offsets)

        asyncio.run(set_offsets())

    def moving(self, brokers: KafkaCluster) -> list[str]:
        """The command."""
        return [
            *("migrate", "--from", str(self.directory), "--cluster", brokers.bootstrap),
            *("--cluster-groups-topic", self.groups_topic, "--cluster-replication-factor", "1"),
            *("--cluster-group-id", self.nodes_group, "--cluster-security-topic", self.security_topic),
        ]

    def move(self, brokers: KafkaCluster, *arguments: str) -> Done:
        return run_here(None, *self.moving(brokers), *arguments)

    def plan(self, brokers: KafkaCluster) -> Plan:
        settings = Settings.model_validate(
            {
                "cluster": brokers.bootstrap,
                "cluster_groups_topic": self.groups_topic,
                "cluster_security_topic": self.security_topic,
                "cluster_group_id": self.nodes_group,
                "cluster_replication_factor": 1,
                "data_dir": self.directory,
            }
        )
        return Plan(directory=self.directory, settings=settings, security=ClientSecurity())

    def node(self, brokers: KafkaCluster, directory: Path, topics: dict[str, int]) -> Node:
        """A node whose groups are in the cluster's topic."""
        storage = KafkaStorage(
            brokers.bootstrap,
            Claim(1, "node", 9092, "1"),
            topic=self.groups_topic,
            replication_factor=1,
        )
        options = {"listen": "127.0.0.1:0", "data_dir": directory, "group_initial_rebalance_delay_ms": 0}
        return Node(Settings.model_validate(options | {"topic": tuple(topics.items())}), storage=storage)


def read(bootstrap: str, topic: str, start: TopicPartition | None = None, at: int = 0) -> dict[int, Read]:
    """The records that a reader of committed records sees; of one partition from that offset on."""

    async def consume() -> dict[int, Read]:
        found: dict[int, Read] = {}
        places = [topic] if start is None else [start]
        options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        async with PartitionConsumer(bootstrap, places, **options) as one:
            if start is not None:
                one.seek(start, at)
            ends = await one.end_offsets(one.assignment())
            async with asyncio.timeout(PATIENCE_S):
                while any([await one.position(place) < end for place, end in ends.items()]):
                    for batch in await one.getmany(timeout_s=0.1):
                        found.setdefault(batch.partition, []).extend(
                            (record.key, record.value, list(record.headers), record.timestamp_ms)
                            for record in batch
                        )
        return found

    return asyncio.run(consume())


def records(first: int, count: int, at_ms: int = OLD_MS) -> list[Record]:
    return [
        Record(n, at_ms + n, [b"k", None][n % 2], [b"v%d" % (first + n), None][n % 7 == 6], [("h", b"x")])
        for n in range(count)
    ]


def own_settings(bootstrap: str, topic: str) -> dict[str, str | None]:
    """Those that are not the broker's."""

    async def ask() -> dict[str, str | None]:
        async with Admin(bootstrap) as admin:
            configs = await admin.topic_configs(topic)
        return {name: one.value for name, one in configs.items() if one.set_by == "topic"}

    return asyncio.run(ask())
