"""Repeated entries, and limits that mean nothing, are answered by Fetch as from Apache Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import ZERO_UUID
from tests.interop.clients.beside import assert_alike, on_both
from tests.support.served import Client, connected
from tests.support.topiclog import batch

TOPICS = {"a": 3, "b": 1}
BATCHES = {("a", 0): 3, ("a", 2): 2, ("b", 0): 2}
"""How many; partition a-1 is empty."""
BATCH = batch(5, size=100)
LOWEST, HIGHEST = -(2**31), 2**31 - 1

Place = tuple[str, int, int, int]
"""Topic, partition, offset, most bytes."""

PARTITION_LIMITS = (LOWEST, -1, 0, 1, len(BATCH) - 1, len(BATCH), 2 * len(BATCH), HIGHEST)
LIMITS = (0, 1, len(BATCH), 3 * len(BATCH), HIGHEST)


def cases() -> dict[str, tuple[int, list[Place]]]:
    """Most bytes of a Fetch, and what it asks for."""
    found: dict[str, tuple[int, list[Place]]] = {}
    for limit in PARTITION_LIMITS:
        several = [("a", 1, 0, limit), ("a", 0, 0, limit), ("a", 2, 5, limit), ("b", 0, 0, limit)]
        found[f"several partitions, {limit} each"] = HIGHEST, several
        found[f"the end of partitions, {limit} each"] = HIGHEST, [("a", 0, 15, limit), ("a", 1, 0, limit)]
        found[f"outside of a partition, {limit}"] = HIGHEST, [("a", 0, 16, limit)]
    for limit in LIMITS:
        found[f"several partitions, {limit} in all"] = (
            limit,
            [
                ("a", 2, 0, HIGHEST),
                ("b", 0, 0, HIGHEST),
                ("a", 0, 0, HIGHEST),
            ],
        )
    big = 10 * len(BATCH)
    found["one partition 20 times"] = HIGHEST, [("a", 0, 0, big)] * 20
    found["one partition twice, from two offsets"] = HIGHEST, [("a", 0, 0, big), ("a", 0, 10, big)]
    found["one partition twice, others between"] = (
        HIGHEST,
        [
            ("a", 0, 0, big),
            ("b", 0, 0, big),
            ("a", 2, 0, big),
            ("a", 0, 10, 1),
        ],
    )
    found["a partition that is not there, twice"] = HIGHEST, [("a", 7, 0, big), ("a", 7, 3, big)]
    found["a topic that is not there, twice"] = HIGHEST, [("none", 0, 0, big), ("none", 0, 3, big)]
    return found


def fetch(most: int, places: list[Place]) -> kafka.FetchRequest:
    """One entry of a topic for each, as they stand."""
    part = kafka.FetchRequestFetchPartition
    return kafka.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=most,
        session_epoch=-1,
        topics=[
            kafka.FetchRequestFetchTopic(
                topic, partitions=[part(index, fetch_offset=offset, partition_max_bytes=limit)]
            )
            for topic, index, offset, limit in places
        ],
    )


def whole_batches(records: bytes | None) -> int:
    """Kafka may add the beginning of another one."""
    return len(records or b"") // len(BATCH)


def answered(answer: Any) -> list[tuple[str, int, int, int]]:
    return [
        (topic.topic, one.partition_index, one.error_code, whole_batches(one.records))
        for topic in answer.responses
        for one in topic.partitions
    ]


async def _filled(client: Client) -> None:
    made = kafka.CreateTopicsRequest(
        topics=[kafka.CreateTopicsRequestCreatableTopic(name, count, 1) for name, count in TOPICS.items()],
        timeout_ms=10_000,
    )
    assert not any(topic.error_code for topic in (await client.call(made, 7)).topics)
    for (topic, partition), count in BATCHES.items():
        for _ in range(count):
            data = kafka.ProduceRequestPartitionProduceData(partition, BATCH)
            produce = kafka.ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[kafka.ProduceRequestTopicProduceData(topic, partition_data=[data])],
            )
            async with asyncio.timeout(60):
                while (await client.call(produce, 9)).responses[0].partition_responses[0].error_code:
                    pass


async def _metadata(client: Client) -> dict[str, Any]:
    """Of topics that are given a name and an id."""
    topic = kafka.MetadataRequestTopic
    ids = {
        one.name: one.topic_id for one in (await client.call(kafka.MetadataRequest(topics=None), 12)).topics
    }
    found = {}
    for name, topics in {
        "a name with ids of nothing": [topic(bytes([n] * 16), "a") for n in range(1, 4)],
        "a name with the id of another topic": [topic(ids["b"], "a")],
        "a name, and an id": [topic(ZERO_UUID, "a"), topic(ids["b"], None)],
        "an id twice": [topic(ids["a"], None), topic(ids["a"], "a")],
        "a name twice": [topic(ZERO_UUID, "a")] * 2,
    }.items():
        answer = await client.call(kafka.MetadataRequest(topics=topics), 12)
        names = {value: key for key, value in ids.items()}
        found[name] = sorted(
            (one.error_code, one.name or "", names.get(one.topic_id, ""), len(one.partitions))
            for one in answer.topics
        )
    return found


async def played(host: str, port: int) -> dict[str, Any]:
    """The answer to each case."""
    found: dict[str, Any] = {}
    async with connected(host, port) as client:
        await _filled(client)
        for name, (most, places) in cases().items():
            for version in (4, 12):
                found[f"{name}, v{version}"] = answered(await client.call(fetch(most, places), version))
        found |= await _metadata(client)
    return found


async def test_what_is_repeated_is_fetched_as_from_kafka(tmp_path: Path) -> None:
    ours, theirs = await on_both(tmp_path, played)
    assert_alike(ours, theirs)
