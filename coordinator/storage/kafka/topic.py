"""The nodes' topics on the cluster: made when they are missing, refused when they would lose or mix up
records."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import ClusterMetadata
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import BrokerError, RetriableError
from ringleader.clients.model import Node
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka.asking import check, until
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
)

OVERHEAD_BYTES = 128 * 1024
"""Bytes of a batch of one record besides its value: header and key."""

IN_SYNC = 2
"""Replicas that have a record before it is acknowledged, where there are as many."""

SEGMENT_BYTES = 8 * 1024 * 1024
"""Of a topic that we make. Its newest segment is never compacted, and is replayed whole."""

TOMBSTONES_MS = 86_400_000
"""How long, at least, it can still be read that something was removed, and how a transaction ended: Kafka's
default. A node that was away for longer reads everything again (`security.REREAD_S`)."""

TIMESTAMPS = "LogAppendTime"
"""A node whose clock is wrong can go on writing."""

_TOPIC, _BROKER = 2, 4
"""Resource types of DescribeConfigs."""

ASK_MS = 10_000
"""How long a broker may take for an answer before another one is asked."""


class KeptTopic(ABC):
    """The wanted properties of a topic."""

    name: str
    partitions: int
    replicas: int
    """When it is made."""
    record_bytes: int
    """The largest record's."""
    removed_late: ClassVar[str]
    """The consequence of too small a `delete.retention.ms`."""

    @property
    def batch_bytes(self) -> int:
        """The least `max.message.bytes`."""
        return self.record_bytes + OVERHEAD_BYTES

    @abstractmethod
    def _other_partitions(self, count: int) -> str:
        """The advice for another number of partitions."""

    @abstractmethod
    def _larger_records(self) -> str:
        """The advice for records that it does not take."""

    async def found(self, cluster: Cluster, deadline_s: float) -> ClusterMetadata:
        """Where it is, after it was checked; it is made when it is missing. Raises `StorageError`: UNFIT for
        one that cannot be used, with what to change."""
        metadata = await self.place(cluster, deadline_s, make=True)
        await self.check(cluster, metadata, deadline_s)
        return metadata

    async def place(self, cluster: Cluster, deadline_s: float, *, make: bool = False) -> ClusterMetadata:
        """Where it is. `make`: if it is missing. Raises `StorageError`."""
        doing = f"looking for topic {self.name}"
        return await until(deadline_s, doing, lambda: self._metadata(cluster, deadline_s, make))

    async def check(self, cluster: Cluster, metadata: ClusterMetadata, deadline_s: float) -> None:
        """Raises `StorageError`: UNFIT for one that cannot be used, with what to change."""
        found = metadata.topics[self.name]
        if len(found.partitions) != self.partitions:
            count = len(found.partitions)
            self._refuse(f"has {count} partitions, and {self._other_partitions(count)}")
        configs = await until(
            deadline_s,
            f"looking at the settings of topic {self.name}",
            lambda: self._configs(cluster, _TOPIC, self.name, deadline_s),
        )
        self._check(configs, min(len(part.replicas) for part in found.partitions))

    async def broker_setting(self, cluster: Cluster, name: str, deadline_s: float) -> str | None:
        """A setting of any broker; None if this node may not know it. Raises `StorageError`."""
        try:
            configs = await until(
                deadline_s, f"asking for {name}", lambda: self._of_a_broker(cluster, deadline_s)
            )
        except StorageError as error:
            if error.failure is Failure.UNFIT:
                return None
            raise
        return configs.get(name)

    def _refuse(self, why: str) -> None:
        raise StorageError(Failure.UNFIT, f"topic {self.name} {why}")

    def _check(self, configs: dict[str, str], replicas: int) -> None:
        in_sync = min(IN_SYNC, replicas)
        if configs["cleanup.policy"] != "compact":
            self._refuse(
                f"has cleanup.policy={configs['cleanup.policy']}, which keeps not just the last record of "
                "each key: set it to compact"
            )
        if int(configs["min.insync.replicas"]) < in_sync:
            self._refuse(
                f"has min.insync.replicas={configs['min.insync.replicas']}, and would acknowledge what one "
                f"broker alone has: set it to {in_sync}"
            )
        if int(configs["min.insync.replicas"]) > replicas:
            self._refuse(
                f"has min.insync.replicas={configs['min.insync.replicas']} and {replicas} replicas, and "
                "takes no record: give it more replicas"
            )
        if configs["unclean.leader.election.enable"] != "false":
            self._refuse(
                "has unclean.leader.election.enable=true, and may lose acknowledged records: set it to false"
            )
        if int(configs["max.message.bytes"]) < self.batch_bytes:
            self._refuse(
                f"has max.message.bytes={configs['max.message.bytes']}, less than {self._larger_records()}"
            )
        if configs["message.timestamp.type"] != TIMESTAMPS:
            self._refuse(
                f"has message.timestamp.type={configs['message.timestamp.type']}, and takes nothing from a "
                f"node whose clock is wrong: set it to {TIMESTAMPS}"
            )
        if int(configs["delete.retention.ms"]) < TOMBSTONES_MS:
            self._refuse(
                f"has delete.retention.ms={configs['delete.retention.ms']}, and {self.removed_late}: set it "
                f"to {TOMBSTONES_MS}"
            )

    # ---- asking ----

    async def _metadata(self, cluster: Cluster, deadline_s: float, make: bool) -> ClusterMetadata:
        metadata = await cluster.metadata([self.name], deadline_s=deadline_s)
        found = metadata.topics[self.name]
        if make and found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            await self._create(cluster, deadline_s)
            raise RetriableError("the topic was made and is not there yet")
        check(found.error_code, None, f"Describe on topic {self.name}")
        return metadata

    async def _create(self, cluster: Cluster, deadline_s: float) -> None:
        configs = {
            "cleanup.policy": "compact",
            "min.insync.replicas": str(min(IN_SYNC, self.replicas)),
            "unclean.leader.election.enable": "false",
            "max.message.bytes": str(self.batch_bytes),
            "segment.bytes": str(SEGMENT_BYTES),
            "message.timestamp.type": TIMESTAMPS,
            "delete.retention.ms": str(TOMBSTONES_MS),
        }
        topic = CreateTopicsRequestCreatableTopic(
            self.name,
            self.partitions,
            self.replicas,
            configs=[CreateTopicsRequestCreatableTopicConfig(*item) for item in configs.items()],
        )
        answer = await cluster.send(
            await cluster.controller(deadline_s=deadline_s),
            plain(CreateTopicsRequest([topic], timeout_ms=ASK_MS)),
            deadline_s=deadline_s,
        )
        [made] = answer.topics
        if made.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
            raise BrokerError(
                f"it cannot have cluster.replication.factor={self.replicas}: {made.error_message}",
                made.error_code,
            )
        if made.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
            check(made.error_code, made.error_message, f"Create on topic {self.name}, or make the topic")

    async def _of_a_broker(self, cluster: Cluster, deadline_s: float) -> dict[str, str]:
        """The settings of one of those that are there now: only itself knows them."""
        nodes = list((await cluster.metadata([], deadline_s=deadline_s)).brokers.values())
        if not nodes:
            raise RetriableError("no broker is known")
        node = random.choice(nodes)
        return await self._configs(cluster, _BROKER, str(node.node_id), deadline_s, node)

    async def _configs(
        self,
        cluster: Cluster,
        resource_type: int,
        resource: str,
        deadline_s: float,
        node: Node | None = None,
    ) -> dict[str, str]:
        request = DescribeConfigsRequest(
            [DescribeConfigsRequestDescribeConfigsResource(resource_type, resource, None)]
        )
        answer: DescribeConfigsResponse = await cluster.send(node, plain(request), deadline_s=deadline_s)
        [found] = answer.results
        check(found.error_code, found.error_message, f"DescribeConfigs on {resource}")
        return {one.name: one.value for one in found.configs if one.value is not None}


@dataclass(frozen=True)
class GroupsTopic(KeptTopic):
    """That of groups. `record_bytes`: the largest value of a record."""

    name: str
    partitions: int
    replicas: int
    record_bytes: int
    removed_late = "nodes that were away might miss how a transaction ended"

    def _other_partitions(self, count: int) -> str:
        return (
            f"offsets.topic.num.partitions is {self.partitions}: set it to {count}, or name another "
            "cluster.groups.topic"
        )

    def _larger_records(self) -> str:
        return (
            f"the largest record of a group: set it to {self.batch_bytes} (group.max.record.bytes and "
            f"{OVERHEAD_BYTES}), or lower group.max.record.bytes"
        )


@dataclass(frozen=True)
class SecurityTopic(KeptTopic):
    """That of users, ACLs and quotas. `record_bytes`: what is changed at once, at most."""

    name: str
    replicas: int
    record_bytes: int
    partitions = 1
    removed_late = "a node that was away might miss that a user was removed"

    def _other_partitions(self, count: int) -> str:
        return "needs one: name another cluster.security.topic"

    def _larger_records(self) -> str:
        return f"the largest change of users and ACLs: set it to {self.batch_bytes}"
