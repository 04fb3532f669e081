"""`__consumer_offsets` as a topic: what several client libraries read of it, live, later, after deletions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition

from ringleader.coordinator.groups import records
from ringleader.coordinator.node import Node
from ringleader.coordinator.runtime import offsets_topic
from ringleader.coordinator.runtime.offsets_topic import TOPIC, OffsetsTopic
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import iter_batches
from tests.coordinator.test_node import connected, settings
from tests.support.groupclient import Member, form
from tests.support.served import Client

Found = tuple[int, bytes, bytes | None]
"""Offset, key, value."""
WAIT_S = 60.0


async def _fetch(
    client: Client, offset: int, wait_ms: int = 0, bytes_: int = 10_000_000
) -> tuple[int, list[Found]]:
    """Where to go on, and what there is."""
    part = kafka.FetchRequestFetchPartition(0, fetch_offset=offset, partition_max_bytes=bytes_)
    request = kafka.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=10_000_000,
        topics=[kafka.FetchRequestFetchTopic(TOPIC, partitions=[part])],
    )
    data = (await client.call(request, 12)).responses[0].partitions[0]
    assert data.error_code == 0
    found: list[Found] = []
    for batch in iter_batches(data.records or b""):
        found += [(one.offset, one.key or b"", one.value) for one in batch.records()]
        offset = batch.header.next_offset
    return offset, found


async def _read_all(client: Client, offset: int = 0, bytes_: int = 10_000_000) -> tuple[int, list[Found]]:
    end = await _end(client)
    found: list[Found] = []
    while offset < end:
        offset, some = await _fetch(client, offset, bytes_=bytes_)
        found += some
    return offset, found


async def _end(client: Client) -> int:
    part = kafka.ListOffsetsRequestListOffsetsPartition(0, timestamp=-1)
    topic = kafka.ListOffsetsRequestListOffsetsTopic(TOPIC, [part])
    answer = await client.call(kafka.ListOffsetsRequest(topics=[topic]), 5)
    end: int = answer.topics[0].partitions[0].offset
    return end


async def _commit(client: Client, member: Member, *offsets: int) -> None:
    for offset in offsets:
        answer = await client.call(member.commit(offset), 8)
        assert answer.topics[0].partitions[0].error_code == 0


async def _end_group(client: Client, member: Member) -> None:
    leave = kafka.LeaveGroupRequest(group_id=member.group_id, member_id=member.member_id)
    assert (await client.call(leave, 0)).error_code == 0
    assert (await client.call(kafka.DeleteGroupsRequest([member.group_id]), 2)).results[0].error_code == 0


def _offsets(found: list[Found]) -> list[int]:
    return [
        records.decode_offset_value(value).offset
        for _, key, value in found
        if key[:2] == b"\0\1" and value is not None
    ]


def _settings(directory: Path) -> Any:
    return settings(directory, topic="orders:2", offsets_topic_num_partitions=1)


async def test_it_is_an_internal_compacted_topic_for_reading(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node, connected(node) as client:
        found = await client.call(kafka.MetadataRequest(topics=None), 10)
        [topic] = [topic for topic in found.topics if topic.name == TOPIC]
        assert (topic.is_internal, len(topic.partitions)) == (True, 50)
        resource = kafka.DescribeConfigsRequestDescribeConfigsResource(2, TOPIC, None)
        described = await client.call(kafka.DescribeConfigsRequest([resource]), 1)
        configs = {one.name: one.value for one in described.results[0].configs}
        assert configs["cleanup.policy"] == "compact"
        made = kafka.CreateTopicsRequestCreatableTopic(TOPIC, 1, 1)
        created = await client.call(kafka.CreateTopicsRequest([made]), 2)
        assert created.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        deleted = await client.call(kafka.DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1_000), 4)
        assert deleted.responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        data = kafka.ProduceRequestTopicProduceData(
            TOPIC, partition_data=[kafka.ProduceRequestPartitionProduceData(0, b"x")]
        )
        refused = await client.call(kafka.ProduceRequest(None, -1, 1_000, [data]), 8)
        assert refused.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_reader_that_keeps_up_sees_every_record_in_order_and_deletions(tmp_path: Path) -> None:
    async with Node(_settings(tmp_path)) as node, connected(node) as reader, connected(node) as client:
        member = await form(client, "g")
        await _commit(client, member, 1, 2, 3)
        offset, found = await _read_all(reader)
        assert _offsets(found) == [3], "what was before has the last of each key"
        waiting = asyncio.create_task(_fetch(reader, offset, wait_ms=30_000))
        await _commit(client, member, 4, 5, 6, 7)
        offset, found = await waiting
        while _offsets(found)[-1] != 7:
            offset, some = await _fetch(reader, offset, wait_ms=30_000)
            found += some
        assert _offsets(found) == [4, 5, 6, 7]
        await _end_group(client, member)
        found = []
        while sum(value is None for _, _, value in found) < 2:
            offset, some = await _fetch(reader, offset, wait_ms=30_000)
            found += some
        deleted = {key for _, key, value in found if value is None}
        assert deleted == {records.group_key("g"), records.offset_key("g", "orders", 0)}
        end, everything = await _read_all(client)
        left = {
            key for key, value in {key: value for _, key, value in everything}.items() if value is not None
        }
        assert (end, left) == (offset, set()), "nothing is left, and the end is reached"


async def test_offsets_are_not_used_again_after_a_restart(tmp_path: Path) -> None:
    async with Node(_settings(tmp_path)) as node, connected(node) as client:
        member = await form(client, "g")
        await _commit(client, member, 1)
        offset, _ = await _read_all(client)
        await _end_group(client, member)
        end = await _end(client)
        assert end > offset
    async with Node(_settings(tmp_path)) as node, connected(node) as client:
        assert await _end(client) >= end
        assert await _read_all(client, end) == (await _end(client), [])
        member = await form(client, "h")
        await _commit(client, member, 9)
        _, found = await _read_all(client, end)
        assert _offsets(found) == [9]


async def test_readers_that_fall_behind_read_the_store_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets_topic, "TAIL_BYTES", 2_000)
    monkeypatch.setattr(offsets_topic, "LOOK_ROWS", 7)
    monkeypatch.setattr(offsets_topic, "BATCH_RECORDS", 3)
    async with Node(_settings(tmp_path)) as node, connected(node) as reader, connected(node) as client:
        members = [await form(client, f"g{number}") for number in range(10)]
        for number, member in enumerate(members):
            await _commit(client, member, number)
        offset, found = await _read_all(reader, bytes_=100)
        assert _offsets(found) == list(range(10))
        assert [one[0] for one in found] == sorted(one[0] for one in found)
        for round_ in range(1, 5):
            for number, member in enumerate(members):
                await _commit(client, member, 100 * round_ + number)
        _, found = await _read_all(reader, offset)
        assert _offsets(found)[-10:] == [400 + number for number in range(10)]


# ---- client libraries ----


def _by_kafka_python(bootstrap: str, end: int) -> list[Found]:
    consumer = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    try:
        partition = kafka_python.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: list[Found] = []
        while consumer.position(partition) < end:
            for some in consumer.poll(timeout_ms=1_000).values():
                found += [(one.offset, one.key, one.value) for one in some]
        return found
    finally:
        consumer.close()


def _by_confluent(bootstrap: str, end: int) -> list[Found]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        found: list[Found] = []
        while True:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append((message.offset() or 0, message.key() or b"", message.value()))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                assert message.offset() == end
                return found
            else:
                raise AssertionError(error)
    finally:
        consumer.close()


def _by_aiokafka(bootstrap: str, end: int) -> list[Found]:
    async def read() -> list[Found]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        try:
            partition = AioPartition(TOPIC, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            found: list[Found] = []
            while await consumer.position(partition) < end:
                for some in (await consumer.getmany(timeout_ms=1_000)).values():
                    found += [(one.offset, one.key, one.value) for one in some]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


async def test_of_the_ends_in_memory_those_without_readers_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_topic, "TAIL_BYTES", 3_000)
    rows: Any = None
    topic = OffsetsTopic(2, rows, lambda: 1)
    read, unread = topic.partitions

    def durable(number: int, end: int) -> None:
        topic.durable([(number, 1, [(b"\0\1k", b"v")] * 2)], [end])

    for partition in (read, unread):
        durable(partition.number, 1)
        assert partition.read_tail(2, 1_000) == b""
    unread.read_s -= 2 * offsets_topic.UNREAD_S
    for end in (3, 5, 7):
        durable(0, end)
        durable(1, end)
    durable(0, 9)
    durable(0, 11)  # more than there is room for
    assert (unread.before_tail, unread.items) == (-1, [])
    assert [item.first for item in read.items] == [8, 10], "half of it, as that alone is too much for half"
    assert topic._kept == sum(item.size for item in read.items)
    assert (read.read_tail(7, 1_000), bool(read.read_tail(8, 1_000))) == (None, True)


async def test_of_the_looks_at_the_store_the_one_that_was_used_least_recently_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scans: list[int] = []

    class Store:
        async def ends(self) -> list[int]:
            return [1, 1, 1]

        async def scan(self, partition: int, after: bytes) -> list[tuple[int, int, bytes, bytes]]:
            scans.append(partition)
            return [] if after else [(1, 1, b"\0\1k", b"v")]

    rows: Any = Store()
    topic = OffsetsTopic(3, rows, lambda: 1)
    await topic.start()

    async def read(number: int) -> bool:
        """Whether the store was looked at."""
        count = len(scans)
        look = await topic.look(topic.partitions[number], 1)
        monkeypatch.setattr(offsets_topic, "LOOKS_BYTES", 2 * look.size)
        return len(scans) > count

    assert [await read(number) for number in (0, 1, 0, 2, 0, 1)] == [True, True, False, True, False, True]


@pytest.mark.parametrize("read", [_by_kafka_python, _by_confluent, _by_aiokafka])
async def test_client_libraries_read_it_and_come_to_its_end(
    tmp_path: Path, read: Callable[[str, int], list[Found]]
) -> None:
    async with Node(_settings(tmp_path)) as node, connected(node) as client:
        kept, ended = await form(client, "kept"), await form(client, "gone")
        await _commit(client, kept, 1, 2)
        await _commit(client, ended, 3)
        await _end_group(client, ended)
    # The last records are those of a group that is gone: nothing is there at the end but gaps.
    async with Node(_settings(tmp_path)) as node, connected(node) as client:
        end, expected = await _read_all(client)
        assert _offsets(expected) == [2]
        found = await asyncio.wait_for(asyncio.to_thread(read, node.bootstrap, end), WAIT_S)
        assert found == expected
