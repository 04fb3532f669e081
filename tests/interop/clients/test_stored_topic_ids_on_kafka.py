"""The topic id that is stored with a committed offset: Kafka and the daemon write the same bytes, and neither
returns what was committed for another topic of the name to a caller that asks by id."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import find_coordinator, found_coordinator
from ringleader.clients.consumer import PartitionConsumer
from ringleader.clients.producer import Producer
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.routing import partition_for
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.schema import ZERO_UUID
from tests.interop.clients.test_consumer_offsets_on_kafka import Wire, bootstrap, wire
from tests.interop.clients.test_consumer_protocol_on_kafka import PROPERTIES
from tests.interop.kafka import KafkaBroker

__all__ = ["bootstrap", "wire"]

T = TypeVar("T")
OFFSETS = "__consumer_offsets"
BY_ID = 10
AT_MS = 1_000
"""In place of the time of each commit."""


async def topic_id(one: Wire) -> bytes:
    topics = [kafka.MetadataRequestTopic(name=one.topic)]
    answer = await one.ask(kafka.MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    return bytes(answer.topics[0].topic_id)


async def commit(one: Wire, version: int, partition: int, of: bytes, metadata: str = "", **more: Any) -> int:
    rows = [kafka.OffsetCommitRequestPartition(partition, 5, 7, metadata)]
    topics = [kafka.OffsetCommitRequestTopic(name=one.topic, topic_id=of, partitions=rows)]
    request = kafka.OffsetCommitRequest(one.group, -1, "", topics=topics, **more)
    return int((await one.ask(request, version)).topics[0].partitions[0].error_code)


async def until(ask: Callable[[], Awaitable[T]], done: Callable[[T], bool]) -> T:
    """Ask until the broker has heard of a change, which nothing tells of; its answer then."""
    async with asyncio.timeout(60):
        while not done(found := await ask()):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)
    return found


async def read(one: Wire, of: bytes) -> tuple[int, int]:
    """Error code and offset of partition 0 of the topic with this id."""
    topics = [kafka.OffsetFetchRequestTopics(topic_id=of, partition_indexes=[0])]
    request = kafka.OffsetFetchRequestGroup(one.group, None, -1, topics)
    [group] = (await one.ask(kafka.OffsetFetchRequest(groups=[request]), BY_ID)).groups
    [found] = group.topics[0].partitions
    return found.error_code, found.committed_offset


async def place_of(at: str, group: str) -> tuple[str, int]:
    """The partition that has the records of the group."""
    async with Admin(at) as admin:
        [topic] = await admin.describe_topics([OFFSETS])
    return OFFSETS, partition_for(group, len(topic.partitions))


async def stored(at: str, group: str, wanted: int) -> dict[int, bytes]:
    """By partition, the values of the offsets that the group has in the log, with their time replaced."""
    found: dict[int, bytes] = {}
    place = [await place_of(at, group)]
    async with asyncio.timeout(60), PartitionConsumer(at, place, auto_offset_reset="earliest") as reader:
        while len(found) < wanted:
            batch = await reader.getone()
            assert batch is not None
            assert batch.record.key is not None
            key, value = records.decode_key(batch.record.key), batch.record.value
            if key is None or key[:2] != (records.OFFSET, group) or value is None:
                continue
            stamp = records.decode_offset_value(value).commit_ms.to_bytes(8, "big")
            found[key[3]] = value.replace(stamp, AT_MS.to_bytes(8, "big"))
    return found


async def test_the_id_is_stored_with_what_is_committed(wire: Wire, bootstrap: str) -> None:
    its_id = await topic_id(wire)
    assert await commit(wire, 9, 0, ZERO_UUID) == 0
    assert await commit(wire, BY_ID, 1, its_id, "where I was" * 20) == 0
    assert await commit(wire, 4, 2, ZERO_UUID, retention_time_ms=2**40) == 0
    name = f"tx-{wire.group}"
    producer = await wire.transaction(name)
    assert await wire.commit_in(name, producer, "", -1, 3) == [0]
    async with Cluster(bootstrap) as cluster:
        _, node = found_coordinator(await cluster.send(None, find_coordinator(name, 1)))
    assert (await wire.ask(kafka.EndTxnRequest(name, *producer, committed=True), 3, node)).error_code == 0
    found = await stored(bootstrap, wire.group, 4)
    assert found[0] == records.offset_value(5, 7, "", AT_MS, -1, its_id)
    assert found[1] == records.offset_value(5, 7, "where I was" * 20, AT_MS, -1, its_id)
    assert found[2][:16] == records.offset_value(5, -1, "", AT_MS, 2**40, its_id)[:16], "no room for it"
    assert found[3] == records.offset_value(6, -1, "", AT_MS, -1), "a transaction names no id"


async def test_a_topic_made_again_has_nothing_of_the_one_before(wire: Wire, bootstrap: str) -> None:
    before = await topic_id(wire)
    assert await commit(wire, BY_ID, 0, before) == 0
    assert await read(wire, before) == (0, 5)
    async with Admin(bootstrap) as admin:
        await admin.delete_topics([wire.topic])
        await until(lambda: read(wire, before), lambda found: found[0] == ErrorCode.UNKNOWN_TOPIC_ID)
        await admin.create_topic(wire.topic, 4)
        now = await until(lambda: topic_id(wire), lambda found: found not in (ZERO_UUID, before))
        await until(lambda: read(wire, now), lambda found: found == (0, -1))
    assert await commit(wire, BY_ID, 0, before) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await read(wire, now) == (0, -1)


async def test_kafka_hides_what_was_stored_for_another_id(tmp_path: Path, group: str) -> None:
    """As `OffsetHandler.fetch` does. The record comes into Kafka's log by the name with which its own tools
    may write there, and counts from the next start on."""
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    with KafkaBroker(tmp_path / "broker", properties=PROPERTIES) as broker:
        async with Admin(broker.bootstrap) as admin, Cluster(broker.bootstrap) as cluster:
            await admin.create_topic(topic, 1)
            one = Wire(cluster, group, topic)
            await one.find()
            its_id = await topic_id(one)
            assert await commit(one, BY_ID, 0, its_id) == 0
        async with Producer(
            broker.bootstrap, client_id="__admin_client", enable_idempotence=False
        ) as producer:
            value = records.offset_value(9, -1, "", AT_MS, -1, bytes(range(16)))
            _, partition = await place_of(broker.bootstrap, group)
            key = records.offset_key(group, topic, 0)
            await producer.send_and_wait(OFFSETS, value, key=key, partition=partition)
        broker.stop()
        broker.start()
        async with Cluster(broker.bootstrap) as cluster:
            one = Wire(cluster, group, topic)
            await one.find()
            assert await read(one, its_id) == (0, -1)
            assert await one.read(None, -1) == 9, "who asks by name is not asked for an id"
