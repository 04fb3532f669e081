"""Offsets of members of the consumer protocol, request by request: Kafka and the daemon answer alike."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request, find_coordinator, found_coordinator
from ringleader.clients.errors import CoordinatorUnavailableError
from ringleader.clients.model import Node
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.interop.clients.test_consumer_protocol_on_kafka import OPTIONS, PROPERTIES
from tests.interop.kafka import KafkaBroker
from tests.support.daemon import Daemon

pytestmark = pytest.mark.xdist_group("kafka-consumer-protocol")

PARTITIONS = 4
COMMIT, FETCH, IN_TRANSACTION = 9, 9, 3


class Wire:
    """Requests to the coordinator of a group, in the versions that a test names."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self.group, self.topic = group, topic
        self._cluster = cluster
        self._node: Node | None = None

    async def ask(self, message: Any, version: int, node: Node | None = None) -> Any:
        request = Request(type(message), lambda _version: message, max_version=version)
        return await self._cluster.send(node or self._node, request)

    async def find(self) -> None:
        """Until it answers: a cluster that is new makes its topic first."""
        while self._node is None:
            with contextlib.suppress(CoordinatorUnavailableError):
                self._node = await self._cluster.coordinator(self.group)
        while await self.read(None, -1) < -1:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)

    async def beat(self, member: str, epoch: int) -> kafka.ConsumerGroupHeartbeatResponse:
        request = kafka.ConsumerGroupHeartbeatRequest(self.group, member, epoch, rebalance_timeout_ms=30_000)
        request.subscribed_topic_names, request.topic_partitions = [self.topic], []
        answer: kafka.ConsumerGroupHeartbeatResponse = await self.ask(request, 1)
        return answer

    async def assigned(self, member: str) -> tuple[int, list[int]]:
        """Joins, and goes on until it has partitions: its epoch, and which."""
        answer = await self.beat(member, 0)
        while not (answer.assignment and answer.assignment.topic_partitions):
            await asyncio.sleep(0.05)
            answer = await self.beat(member, answer.member_epoch)
        return answer.member_epoch, answer.assignment.topic_partitions[0].partitions

    async def commit(self, member: str, epoch: int, *partitions: int, version: int = COMMIT) -> list[int]:
        rows = [kafka.OffsetCommitRequestPartition(one, 5) for one in partitions]
        topics = [kafka.OffsetCommitRequestTopic(name=self.topic, partitions=rows)]
        answer = await self.ask(kafka.OffsetCommitRequest(self.group, epoch, member, topics=topics), version)
        return [one.error_code for topic in answer.topics for one in topic.partitions]

    async def read(self, member: str | None, epoch: int, *, named: bool = True) -> int:
        """The offset of partition 0, or an error code as a negative number below -1."""
        topics = [kafka.OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])] if named else None
        request = kafka.OffsetFetchRequestGroup(self.group, member, epoch, topics)
        [group] = (await self.ask(kafka.OffsetFetchRequest(groups=[request]), FETCH)).groups
        return int(-group.error_code or group.topics[0].partitions[0].committed_offset)

    async def transaction(self, name: str) -> tuple[int, int]:
        """Producer id and epoch of an open transaction that has the group."""
        answer = await self._cluster.send(None, find_coordinator(name, 1))
        _, node = found_coordinator(answer)
        while node is None:
            await asyncio.sleep(0.1)
            _, node = found_coordinator(await self._cluster.send(None, find_coordinator(name, 1)))
        started = await self.ask(kafka.InitProducerIdRequest(name, 60_000), 4, node)
        while started.error_code:
            await asyncio.sleep(0.1)
            started = await self.ask(kafka.InitProducerIdRequest(name, 60_000), 4, node)
        producer = started.producer_id, started.producer_epoch
        added = await self.ask(kafka.AddOffsetsToTxnRequest(name, *producer, self.group), 3, node)
        assert added.error_code == 0
        return producer

    async def commit_in(
        self, name: str, producer: tuple[int, int], member: str, epoch: int, *partitions: int
    ) -> list[int]:
        rows = [kafka.TxnOffsetCommitRequestPartition(one, 6) for one in partitions]
        topics = [kafka.TxnOffsetCommitRequestTopic(self.topic, rows)]
        request = kafka.TxnOffsetCommitRequest(name, self.group, *producer, epoch, member, topics=topics)
        answer = await self.ask(request, IN_TRANSACTION)
        return [one.error_code for topic in answer.topics for one in topic.partitions]


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of each in turn."""
    directory = tmp_path_factory.mktemp(request.param)
    target: KafkaBroker | Daemon = Daemon(directory, options=OPTIONS)
    if request.param == "kafka":
        target = KafkaBroker(directory / "broker", properties=PROPERTIES)
    with target:
        yield target.bootstrap


@pytest.fixture
async def wire(bootstrap: str, group: str) -> AsyncIterator[Wire]:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    async with Admin(bootstrap) as admin, Cluster(bootstrap) as cluster:
        await admin.create_topic(topic, PARTITIONS)
        found = Wire(cluster, group, topic)
        await found.find()
        yield found


UNKNOWN, STALE, ILLEGAL = (
    int(ErrorCode.UNKNOWN_MEMBER_ID),
    int(ErrorCode.STALE_MEMBER_EPOCH),
    int(ErrorCode.ILLEGAL_GENERATION),
)


async def test_offsets_are_read_by_a_member_at_its_epoch(wire: Wire) -> None:
    epoch, _ = await wire.assigned("a")
    assert await wire.commit("a", epoch, 0) == [0]
    for named in (True, False):
        assert await wire.read("a", epoch, named=named) == 5
        assert await wire.read(None, -1, named=named) == 5
        assert await wire.read("a", epoch + 1, named=named) == -STALE
        assert await wire.read("a", -1, named=named) == -STALE
        assert await wire.read("b", epoch, named=named) == -UNKNOWN
        assert await wire.read("", -1, named=named) == -UNKNOWN
    await wire.beat("a", -1)
    assert await wire.read("a", epoch) == -UNKNOWN
    assert await wire.read(None, -1) == 5


async def test_a_classic_group_asks_no_reader(wire: Wire) -> None:
    assert await wire.commit("", -1, 0) == [0]
    assert await wire.read("a", 3) == 5


async def test_commits_of_members(wire: Wire) -> None:
    epoch, partitions = await wire.assigned("a")
    mine = partitions[0]
    assert await wire.commit("a", epoch, mine, version=8) == [ErrorCode.UNSUPPORTED_VERSION]
    assert await wire.commit("a", epoch + 1, mine) == [STALE]
    assert await wire.commit("b", epoch, mine) == [UNKNOWN]
    assert await wire.commit("", -1, mine) == [UNKNOWN]
    assert await wire.commit("a", epoch - 1, mine) == [STALE], "it got it later"


async def test_commits_in_transactions(wire: Wire) -> None:
    epoch, partitions = await wire.assigned("a")
    mine, name = partitions[0], wire.group
    producer = await wire.transaction(name)
    assert await wire.commit_in(name, producer, "a", epoch, mine) == [0]
    assert await wire.commit_in(name, producer, "", -1, mine) == [0]
    assert await wire.commit_in(name, producer, "a", epoch + 1, mine) == [ILLEGAL]
    assert await wire.commit_in(name, producer, "a", epoch - 1, mine) == [ILLEGAL]
    assert await wire.commit_in(name, producer, "b", epoch, mine) == [UNKNOWN]
    assert await wire.commit_in(name, producer, "b", -1, mine) == [UNKNOWN]
