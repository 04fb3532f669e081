"""Records are written by topic ids (KIP-516): none goes into the next topic of the same name."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.run_queue import whole
from ringleader.coordinator.security.acls import AllowAll, Operation, ResourceType
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message
from ringleader.coordinator.server.handlers.data import BATCHES
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.topiclog import batch, forget, produced

Ask = Any
STRANGE = b"\xff" * 16
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_ID
VERSION = 13


def write(
    *parts: tuple[bytes, int], records: bytes | None = None, acks: int = -1, **more: Any
) -> ProduceRequest:
    """`parts`: topic id and partition, each in an entry of a topic."""
    data = batch(1) if records is None else records
    part = ProduceRequestPartitionProduceData
    topics = [ProduceRequestTopicProduceData("", one, [part(index, data)]) for one, index in parts]
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics, **more)


def outcomes(answer: Any) -> list[tuple[bytes, int, int, int]]:
    """Id, partition, error code and base offset."""
    return [
        (topic.topic_id, one.index, one.error_code, one.base_offset)
        for topic in answer.responses
        for one in topic.partition_responses
    ]


async def made(ask: Ask, topic: str) -> bytes:
    topic_id: bytes = (await ask.topics.create(topic, 2)).id
    return topic_id


async def test_ids_are_answered_in_place_of_names(ask: Ask) -> None:
    a, b = await made(ask, "a"), await made(ask, "b")
    answer = await ask(write((a, 0), (STRANGE, 0), (b, 1), (ZERO_UUID, 0), (a, 9)), VERSION)
    assert outcomes(answer) == [
        (a, 0, 0, 0),
        (STRANGE, 0, UNKNOWN, -1),
        (b, 1, 0, 0),
        (ZERO_UUID, 0, UNKNOWN, -1),
        (a, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert outcomes(await ask(write((a, 0)), VERSION)) == [(a, 0, 0, 1)]


async def test_an_unknown_id_that_is_repeated_is_answered_once(ask: Ask) -> None:
    a = await made(ask, "a")
    answer = await ask(write((STRANGE, 0), (a, 0), (STRANGE, 1), (STRANGE, 0)), VERSION)
    assert outcomes(answer) == [(STRANGE, 0, UNKNOWN, -1), (a, 0, 0, 0), (STRANGE, 1, UNKNOWN, -1)]
    assert len(answer.responses) == 3


async def test_nothing_goes_into_the_next_topic_of_the_name(ask: Ask) -> None:
    old = await made(ask, "a")
    await ask(write((old, 0)), VERSION)
    await ask.topics.delete("a", forget)
    assert outcomes(await ask(write((old, 0)), VERSION)) == [(old, 0, UNKNOWN, -1)]
    new = await made(ask, "a")
    assert outcomes(await ask(write((old, 0), (new, 1)), VERSION)) == [(old, 0, UNKNOWN, -1), (new, 1, 0, 0)]
    assert ask.topics.partition("a", 0).high_watermark == 0


async def test_a_topic_that_is_deleted_during_a_long_request(ask: Ask) -> None:
    """More batches than are handed over in one go: others have their turns between."""
    old = await made(ask, "a")
    request = write((old, 0))
    request.topic_data[0].partition_data *= 2 * BATCHES
    begun: list[Any] = []
    handler = ask.handlers[0]

    def begin(call: Call, decoded: Message) -> None:
        begun.append(handler(call, decoded))
        next(begun[0])

    ask.handlers[0] = begin
    waiting = ask.send(request, VERSION)
    await ask.topics.delete("a", forget)
    await made(ask, "a")
    whole(begun[0])
    codes = [code for _, _, code, _ in outcomes(await waiting.answer())]
    assert codes == [0] * (BATCHES - 1) + [UNKNOWN] * (BATCHES + 1)
    assert ask.topics.partition("a", 0).high_watermark == 0


async def test_checks_come_in_the_order_of_kafka(ask: Ask) -> None:
    a = await made(ask, "a")
    parts = (STRANGE, 0), (a, 9), (a, 0)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def codes(records: bytes, acks: int) -> list[int]:
        return [
            code for _, _, code, _ in outcomes(await ask(write(*parts, records=records, acks=acks), VERSION))
        ]

    assert await codes(batch(1), 7) == [UNKNOWN, missing, ErrorCode.INVALID_REQUIRED_ACKS]
    assert await codes(b"", 7) == [UNKNOWN, missing, ErrorCode.INVALID_RECORD]
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await codes(produced(1, 0, transactional=True), 7) == [refused] * 3, "in no transaction"


class _OnlyA(AllowAll):
    def authorize(
        self, principal: Any, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """See `Authority`."""
        return name == "a"


async def test_what_may_not_be_written_to_is_refused(ask: Ask) -> None:
    a, b = await made(ask, "a"), await made(ask, "b")
    ask.services.authorizer = _OnlyA()
    answer = await ask(write((a, 0), (b, 0), (STRANGE, 0)), VERSION)
    assert [one[2] for one in outcomes(answer)] == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNKNOWN]


@pytest.mark.parametrize("topic_id", [STRANGE, ZERO_UUID])
async def test_without_acks_an_unknown_id_closes_the_connection(ask: Ask, topic_id: bytes) -> None:
    a = await made(ask, "a")
    assert await ask.send(write((a, 0), acks=0), VERSION).answer() is NO_ANSWER
    refused = ask.send(write((topic_id, 0), acks=0), VERSION)
    assert refused.reason == f"acks 0 and UNKNOWN_TOPIC_ID at {topic_id.hex()}-0"
