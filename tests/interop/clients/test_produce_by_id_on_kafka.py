"""Records are written by topic ids (KIP-516), in transactions too, as to Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import Compression
from ringleader.protocol.schema import ZERO_UUID
from tests.interop.clients.beside import assert_alike, on_both
from tests.interop.clients.test_fetch_by_id_on_kafka import STRANGE, create, delete
from tests.support.served import Client, connected
from tests.support.topiclog import batch, produced

VERSION = 13
Part = tuple[str, int, bytes | None]
"""Name of an id, partition, records."""


class Play:
    """A client that writes by id, and the answers to it."""

    def __init__(self, client: Client, found: dict[str, Any]) -> None:
        self._client = client
        self._found = found
        self.ids = {"zero": ZERO_UUID, "strange": STRANGE}

    def request(self, *parts: Part, **more: Any) -> kafka.ProduceRequest:
        """One entry of a topic for each, as they stand."""
        topic, part = kafka.ProduceRequestTopicProduceData, kafka.ProduceRequestPartitionProduceData
        return kafka.ProduceRequest(
            acks=more.pop("acks", -1),
            timeout_ms=10_000,
            topic_data=[
                topic(name, self.ids.get(name, ZERO_UUID), [part(index, records)])
                for name, index, records in parts
            ],
            **more,
        )

    async def produce(self, what: str, *parts: Part, version: int = VERSION, **more: Any) -> None:
        """Note the answer."""
        answer = await self._client.call(self.request(*parts, **more), version)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        self._found[what] = sorted(
            (topic.name or names[topic.topic_id], one.index, one.error_code, one.base_offset)
            for topic in answer.responses
            for one in topic.partition_responses
        )

    async def ends(self, what: str, *topics: tuple[str, int]) -> None:
        """Note where partitions end, once no transaction is open in them."""
        async with asyncio.timeout(60):
            while (found := await self._ends(topics, 0)) != await self._ends(topics, 1):
                pass
        self._found[what] = found

    async def _ends(self, topics: Sequence[tuple[str, int]], isolation: int) -> list[Any]:
        part = kafka.ListOffsetsRequestListOffsetsPartition
        request = kafka.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                kafka.ListOffsetsRequestListOffsetsTopic(name, [part(index, timestamp=-1)])
                for name, index in topics
            ],
        )
        answer = await self._client.call(request, 7)
        return sorted(
            (topic.name, one.partition_index, one.error_code, one.offset)
            for topic in answer.topics
            for one in topic.partitions
        )


async def _in_a_transaction(client: Client, play: Play, name: str, version: int) -> None:
    """`version`: of Produce; from 12 on no partition is added before."""
    await started(client, name)
    init = kafka.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    identity = await client.call(init, 4)
    producer = identity.producer_id, identity.producer_epoch

    def records(first: int = 0) -> bytes:
        return produced(producer[0], first, epoch=producer[1], transactional=True)

    await play.produce(f"{name}: begins", ("a", 0, records()), transactional_id=name, version=version)
    parts: tuple[Part, ...] = (("a", 1, records()), ("strange", 0, records()), ("a", 7, records()))
    await play.produce(f"{name}: beside an unknown id", *parts, transactional_id=name, version=version)
    end = kafka.EndTxnRequest(name, *producer, committed=True)
    assert not (await client.call(end, 4)).error_code
    await play.ends(f"{name}: ends", ("a", 0), ("a", 1))


async def started(client: Client, transactional_id: str) -> None:
    """The coordinator of that id answers."""
    find = kafka.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    init = kafka.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    async with asyncio.timeout(60):
        while (await client.call(find, 4)).coordinators[0].error_code:
            pass
        while (await client.call(init, 4)).error_code:
            pass


async def _played(client: Client, host: str, port: int, found: dict[str, Any]) -> None:
    play = Play(client, found)
    produce, one, none = play.produce, batch(1), b""
    play.ids["a"], play.ids["b"] = await create(client, "a"), await create(client, "b")
    await produce("by id", ("a", 0, one), ("b", 1, batch(2)), ("a", 1, one))
    await produce("with acks 1", ("a", 0, one), acks=1)
    await produce("unknown", ("strange", 0, one), ("a", 0, one), ("zero", 0, one), ("strange", 1, one))
    await produce("unknown, several times", ("strange", 0, one), ("a", 0, one), ("strange", 0, one))
    await produce("partitions that are not there", ("a", 7, one), ("a", -1, one), ("strange", -1, one))
    await produce("wrong acks", ("a", 0, one), ("a", 7, one), ("strange", 0, one), acks=7)
    await produce("no records", ("a", 0, none), ("strange", 0, none), ("a", 7, none))
    await produce("no records and wrong acks", ("a", 0, none), ("strange", 0, none), acks=7)
    packed = batch(1, compression=Compression.ZSTD)
    await produce("zstd", ("a", 0, packed), ("strange", 0, packed))
    await play.ends("after that", ("a", 0), ("a", 1), ("b", 0), ("b", 1))
    for what, parts, closes in (
        ("an unknown id", [("strange", 0, one)], True),
        ("a partition that is not there", [("a", 7, one)], True),
        ("an id", [("a", 0, one)], False),
    ):
        async with connected(host, port) as other:
            other.send(play.request(*parts, acks=0), VERSION)
            if closes:
                found[f"without acks, {what}"] = await other.rest()
            else:
                await other.call(kafka.ApiVersionsRequest("name", "1"), 3)
    await play.ends("after requests without acks", ("a", 0))
    foreign = produced(4_711, 0, transactional=True)
    await produce("in no transaction", ("a", 0, foreign), ("strange", 0, foreign))
    for version in (12, VERSION):
        await _in_a_transaction(client, play, f"transaction-{version}", version)
    await delete(client, "a")
    await produce("a topic that was deleted", ("a", 0, one), ("b", 0, one))
    play.ids["new"] = await create(client, "a")
    await produce("a topic that was made again", ("a", 0, one), ("a", 7, one), ("b", 0, one))
    await play.ends("nothing was written into the new one", ("a", 0))
    await produce("both ids in one request", ("new", 0, one), ("a", 0, one), ("new", 1, one))
    await produce("by name", ("a", 0, one), version=12)
    await play.ends("in the end", ("a", 0), ("a", 1), ("b", 0))


async def _of_groups(client: Client, found: dict[str, Any]) -> None:
    """The topic of the groups has an id, too."""
    play = Play(client, found)
    find = kafka.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    name = "__consumer_offsets"
    wanted = kafka.MetadataRequest([kafka.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    async with asyncio.timeout(60):
        while (await client.call(find, 4)).coordinators[0].error_code:
            pass
        while (topic := (await client.call(wanted, 12)).topics[0]).error_code:
            pass
    play.ids[name] = topic.topic_id
    await play.produce("the topic of the groups", (name, 0, batch(1)), (name, 99, batch(1)))
    assert found["the topic of the groups"][0][2] == ErrorCode.INVALID_TOPIC_EXCEPTION


async def played(host: str, port: int) -> dict[str, Any]:
    """The answer to each step."""
    found: dict[str, Any] = {}
    async with connected(host, port) as client:
        await _played(client, host, port, found)
        await _of_groups(client, found)
    return found


async def test_records_are_written_by_id_as_to_kafka(tmp_path: Path) -> None:
    ours, theirs = await on_both(tmp_path, played)
    assert_alike(ours, theirs)
