"""Produce, ListOffsets, InitProducerId, OffsetForLeaderEpoch, version by version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.coordinator.server.call import NO_ANSWER
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    InitProducerIdRequest,
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.records import Compression
from tests.support.topiclog import START_MS, batch, produced

Ask = Any


WITHOUT_WORDS = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
"""These have no message, as in Kafka."""


def produce(*parts: tuple[str, int, bytes | None], acks: int = -1) -> ProduceRequest:
    topics: dict[str, list[ProduceRequestPartitionProduceData]] = {}
    for name, partition, records in parts:
        topics.setdefault(name, []).append(ProduceRequestPartitionProduceData(partition, records))
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequestTopicProduceData(name, partition_data=found) for name, found in topics.items()
        ],
    )


def flat(answer: Any) -> list[Any]:
    return [partition for topic in answer.responses for partition in topic.partition_responses]


@pytest.mark.parametrize("version", range(3, 10))
@pytest.mark.parametrize("acks", [-1, 1])
async def test_records_are_produced_at_every_version(ask: Ask, version: int, acks: int) -> None:
    await ask.topics.create("a", 2)
    await ask.topics.append("a", 1, batch(7))
    answer = await ask(
        produce(("a", 0, batch(2)), ("a", 1, batch()), ("none", 0, batch()), acks=acks), version
    )
    assert [(p.index, p.error_code, p.base_offset) for p in flat(answer)] == [
        (0, 0, 0),
        (1, 0, 7),
        (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert {p.log_append_time_ms for p in flat(answer)} == {-1}
    assert flat(answer)[0].log_start_offset == (0 if version >= 5 else -1)
    assert ask.topics.partition("a", 0).high_watermark == 2


@pytest.mark.parametrize(
    ("part", "version", "code"),
    [
        (("a", 1, batch()), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("a", -1, batch()), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("a", 0, None), 7, ErrorCode.INVALID_RECORD),
        (("a", 0, b""), 9, ErrorCode.INVALID_RECORD),
        (("a", 0, batch() * 2), 9, ErrorCode.INVALID_RECORD),
        (("a", 0, batch()[:30]), 9, ErrorCode.CORRUPT_MESSAGE),
        (("a", 0, batch(compression=Compression.ZSTD)), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (("a", 0, batch(compression=Compression.ZSTD)), 7, 0),
        (("a", 0, produced(1, 0, transactional=True)), 9, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (("a", 0, produced(1, 5)), 9, 0),
    ],
)
async def test_what_may_be_produced(ask: Ask, part: Any, version: int, code: int) -> None:
    await ask.topics.create("a", 1)
    (answer,) = flat(await ask(produce(part), version))
    assert answer.error_code == code
    if code and code not in WITHOUT_WORDS and version >= 8:
        assert answer.error_message


async def test_other_acks_are_refused(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    (answer,) = flat(await ask(produce(("a", 0, batch()), acks=2)))
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert ask.topics.partition("a", 0).high_watermark == 0


async def test_without_acks_there_is_no_answer_and_errors_close(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    assert await ask(produce(("a", 0, batch()), acks=0)) is NO_ANSWER
    assert ask.topics.partition("a", 0).high_watermark == 1
    waiting = ask.send(produce(("a", 0, batch()), ("none", 0, batch()), acks=0), 9)
    with pytest.raises(asyncio.CancelledError):
        await waiting.answer()
    assert "UNKNOWN_TOPIC_OR_PARTITION at none-0" in waiting.reason


async def test_a_request_without_topics_is_answered(ask: Ask) -> None:
    assert flat(await ask(produce())) == []


async def test_idempotent_producers_over_the_wire(ask: Ask) -> None:
    await ask.topics.create("a", 1)
    answers = [
        flat(await ask(produce(("a", 0, produced(9, sequence, 2, epoch)))))[0]
        for sequence, epoch in ((0, 1), (2, 1), (0, 1), (9, 1), (0, 0), (0, 2))
    ]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (0, 0),
        (0, 2),
        (0, 0),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (ErrorCode.INVALID_PRODUCER_EPOCH, -1),
        (0, 4),
    ]


def list_offsets(*places: tuple[int, int], epoch: int = -1, name: str = "a") -> ListOffsetsRequest:
    partitions = [ListOffsetsRequestListOffsetsPartition(index, epoch, at) for index, at in places]
    return ListOffsetsRequest(-1, topics=[ListOffsetsRequestListOffsetsTopic(name, partitions)])


async def offsets(ask: Ask, request: ListOffsetsRequest, version: int = 7) -> list[tuple[int, int, int]]:
    answer = await ask(request, version)
    return [(p.error_code, p.offset, p.timestamp) for topic in answer.topics for p in topic.partitions]


@pytest.mark.parametrize("version", range(1, 8))
async def test_offsets_are_listed_at_every_version(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 4)
    for partition in range(3):
        await ask.topics.append("a", partition, batch(10))
    await ask.topics.truncate("a", 1, 4)
    request = list_offsets((0, -1), (1, -2), (2, START_MS + 3), (3, START_MS))
    assert await offsets(ask, request, version) == [
        (0, 10, -1),
        (0, 4, -1),
        (0, 3, START_MS + 3),
        (0, -1, -1),
    ]
    assert await offsets(ask, list_offsets((0, -1), (1, -2)), version) == [(0, 10, -1), (0, 4, -1)]
    answer = await ask(request, version)
    epochs = [partition.leader_epoch for partition in answer.topics[0].partitions]
    assert epochs == ([0, 0, 0, -1] if version >= 4 else [-1] * 4)


async def test_the_largest_timestamp_from_version_7_on(ask: Ask) -> None:
    await ask.topics.create("a", 2)
    await ask.topics.append("a", 0, batch(10))
    request = list_offsets((0, -3), (1, -3))
    assert await offsets(ask, request) == [(0, 9, START_MS + 9), (0, -1, -1)]
    assert (await offsets(ask, request, 6))[0][0] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("at", [-1, START_MS])
async def test_offsets_that_cannot_be_listed(ask: Ask, at: int) -> None:
    await ask.topics.create("a", 1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await offsets(ask, list_offsets((1, at))))[0][0] == unknown
    assert (await offsets(ask, list_offsets((0, at), name="none")))[0][0] == unknown
    assert (await offsets(ask, list_offsets((0, at), (0, -2)))) == [(ErrorCode.INVALID_REQUEST, -1, -1)]
    assert (await offsets(ask, list_offsets((0, -4))))[0][0] == ErrorCode.UNSUPPORTED_VERSION
    assert (await offsets(ask, list_offsets((0, at), epoch=1)))[0][0] == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", range(5))
async def test_producer_ids_at_every_version(ask: Ask, version: int) -> None:
    request = InitProducerIdRequest(None, 60_000)
    answers = [await ask(request, version) for _ in range(3)]
    assert [(a.error_code, a.producer_epoch) for a in answers] == [(0, 0)] * 3
    assert len({a.producer_id for a in answers}) == 3


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (InitProducerIdRequest("", 1), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest("mine", 0), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (InitProducerIdRequest(None, 1, 4, -1), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(None, 1, -1, 4), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(None, 1, 4, 4), 0),
    ],
)
async def test_producer_ids_that_are_given(ask: Ask, request_: InitProducerIdRequest, code: int) -> None:
    assert (await ask(request_)).error_code == code


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_epoch_0_ends_at_the_end(ask: Ask, version: int) -> None:
    await ask.topics.create("a", 2)
    await ask.topics.append("a", 0, batch(3))
    part = OffsetForLeaderEpochRequestOffsetForLeaderPartition
    parts = [part(0, -1, 0), part(1, 0, 0), part(0, -1, 1), part(0, -1, -1), part(0, 2, 0), part(9, 0, 0)]
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderEpochRequestOffsetForLeaderTopic("a", parts)])
    answer = await ask(request, version)
    assert [(p.error_code, p.leader_epoch, p.end_offset) for p in answer.topics[0].partitions] == [
        (0, 0, 3),
        (0, 0, 0),
        (0, -1, -1),
        (0, -1, -1),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]
