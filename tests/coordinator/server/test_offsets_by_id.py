"""Offsets committed and fetched by topic ids (OffsetCommit and OffsetFetch v10, KIP-848)."""

from __future__ import annotations

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.relayed import relaying
from tests.support.served import Client, connected, serving
from tests.support.two_brokers import topic_id, two_brokers

UNKNOWN = bytes(15) + b"?"


async def commit(client: Client, *entries: tuple[bytes, int, int]) -> dict[tuple[bytes, int], int]:
    """The error code of each partition; an entry is topic id, partition and offset."""
    topics = [
        OffsetCommitRequestTopic(
            topic_id=one, partitions=[OffsetCommitRequestPartition(partition, offset, -1, "")]
        )
        for one, partition, offset in entries
    ]
    answer = await client.call(OffsetCommitRequest("group", topics=topics), 10)
    return {
        (topic.topic_id, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


async def fetch(client: Client, *ids: bytes) -> dict[bytes, list[tuple[int, int]]]:
    """Offset and error code of partitions 0 and 1 of each topic; without ids: of all that is committed."""
    topics = [OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0, 1]) for one in ids]
    group = OffsetFetchRequestGroup("group", topics=topics or None)
    [found] = (await client.call(OffsetFetchRequest(groups=[group]), 10)).groups
    assert found.error_code == 0
    return {
        topic.topic_id: [(one.committed_offset, one.error_code) for one in topic.partitions]
        for topic in found.topics
    }


async def test_an_unknown_id_that_is_repeated_is_answered_once_as_by_kafka() -> None:
    async with serving() as served, served.connect() as client:
        entries = [
            OffsetCommitRequestTopic(
                topic_id=one, partitions=[OffsetCommitRequestPartition(number, 7, -1, "")]
            )
            for one, number in ((UNKNOWN, 0), (ZERO_UUID, 0), (UNKNOWN, 3))
        ]
        topics = (await client.call(OffsetCommitRequest("group", topics=entries), 10)).topics
        found = [(one.topic_id, [entry.partition_index for entry in one.partitions]) for one in topics]
        assert found == [(UNKNOWN, [0, 3]), (ZERO_UUID, [0])]


async def test_on_a_daemon() -> None:
    async with serving() as served, served.connect() as client:
        known = served.topics.describe("orders").id
        assert await commit(client, (known, 0, 7), (known, 8, 7), (UNKNOWN, 0, 7), (ZERO_UUID, 0, 7)) == {
            (known, 0): 0,
            (known, 8): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (UNKNOWN, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (ZERO_UUID, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        refused = [(-1, ErrorCode.UNKNOWN_TOPIC_ID)] * 2
        assert await fetch(client, known, UNKNOWN) == {known: [(7, 0), (-1, 0)], UNKNOWN: refused}
        assert await fetch(client) == {known: [(7, 0)]}
        del served.topics.partitions["orders"]
        assert await fetch(client) == {}


async def test_what_was_committed_for_another_topic_of_the_name_is_not_shown() -> None:
    async with serving() as served, served.connect() as client:
        before = served.topics.describe("orders").id
        assert await commit(client, (before, 0, 7)) == {(before, 0): 0}
        now = served.topics.ids["orders"] = b"another".ljust(16)
        assert await fetch(client, now) == {now: [(-1, 0), (-1, 0)]}
        assert await commit(client, (now, 1, 8)) == {(now, 1): 0}
        assert await fetch(client, now) == {now: [(-1, 0), (8, 0)]}
        assert await fetch(client) == {now: [(7, 0), (8, 0)]}, "a caller that asks for all gets all"


async def test_on_a_node() -> None:
    known = topic_id("orders")
    async with two_brokers() as cluster, relaying(cluster.bootstrap, 2) as nodes:
        for node in nodes:
            async with connected("127.0.0.1", node.port) as client:
                refused = [(-1, ErrorCode.UNKNOWN_TOPIC_ID)] * 2
                codes = await commit(client, (known, 0, 7), (UNKNOWN, 0, 7))
                if ErrorCode.NOT_COORDINATOR in codes.values():
                    continue
                assert codes == {(known, 0): 0, (UNKNOWN, 0): ErrorCode.UNKNOWN_TOPIC_ID}
                assert await fetch(client, known, UNKNOWN) == {known: [(7, 0), (-1, 0)], UNKNOWN: refused}
                assert await fetch(client) == {known: [(7, 0)]}
                return
    raise AssertionError("no node coordinates the group")
