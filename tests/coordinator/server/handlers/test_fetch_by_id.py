"""Topics are fetched by their ids (KIP-516): no client gets records of the next topic of the same name."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.security.acls import AllowAll, Operation, ResourceType
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchRequestReplicaState,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.topiclog import batch, forget

Ask = Any
STRANGE = b"\xff" * 16
NEVER_MS = 3_600_000
VERSIONS = range(13, 19)


def fetch(
    *places: tuple[bytes, int, int],
    session: tuple[int, int] = (0, -1),
    forgets: tuple[bytes, ...] = (),
    wait_ms: int = 0,
    **more: Any,
) -> FetchRequest:
    """`places`: topic id, partition, offset; `forgets`: of partition 0."""
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchRequestFetchTopic("", one, [FetchRequestFetchPartition(index, -1, offset, -1, -1, 1 << 20)])
            for one, index, offset in places
        ],
        forgotten_topics_data=[FetchRequestForgottenTopic("", one, [0]) for one in forgets],
        **more,
    )


def outcomes(answer: Any) -> list[tuple[bytes, int, int, int]]:
    """Id, partition, error code and number of batches."""
    return [
        (topic.topic_id, one.partition_index, one.error_code, len(one.records or b"") // len(batch(1)))
        for topic in answer.responses
        for one in topic.partitions
    ]


async def made(ask: Ask, topic: str, records: int = 1) -> bytes:
    info = await ask.topics.create(topic, 2)
    for _ in range(records):
        await ask.topics.append(topic, 0, batch(1))
    topic_id: bytes = info.id
    return topic_id


async def made_again(ask: Ask, topic: str, records: int = 3) -> bytes:
    await ask.topics.delete(topic, forget)
    return await made(ask, topic, records)


@pytest.mark.parametrize("version", VERSIONS)
async def test_ids_are_answered_in_place_of_names(ask: Ask, version: int) -> None:
    a, b = await made(ask, "a"), await made(ask, "b")
    answer = await ask(fetch((a, 0, 0), (STRANGE, 0, 0), (b, 1, 0), (ZERO_UUID, 0, 0), (a, 9, 0)), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert outcomes(answer) == [
        (a, 0, 0, 1),
        (STRANGE, 0, unknown, 0),
        (b, 1, 0, 0),
        (ZERO_UUID, 0, unknown, 0),
        (a, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]
    assert {one.topic for one in answer.responses} == {""}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_of_a_topic_that_is_made_again(ask: Ask, version: int) -> None:
    old = await made(ask, "a")
    key = (await ask(fetch((old, 0, 0), session=(0, 0)), version)).session_id
    await ask.topics.delete("a", forget)
    assert outcomes(await ask(fetch(session=(key, 1)), version)) == [
        (old, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    ]
    new = await made(ask, "a", 3)
    assert outcomes(await ask(fetch(session=(key, 2)), version)) == [
        (old, 0, ErrorCode.INCONSISTENT_TOPIC_ID, 0)
    ]
    answer = await ask(fetch((new, 0, 0), session=(key, 3), forgets=(old,)), version)
    assert outcomes(answer) == [(new, 0, 0, 3)]
    assert outcomes(await ask(fetch((old, 0, 0)), version)) == [(old, 0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]


async def test_sessions_are_of_names_or_of_ids(ask: Ask) -> None:
    a = await made(ask, "a")
    by_id = (await ask(fetch((a, 0, 0), session=(0, 0)), 13)).session_id
    refused = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert (await ask(fetch(session=(by_id, 1)), 12)).error_code == refused
    assert (await ask(fetch(session=(by_id, 1)), 13)).error_code == 0, "its epoch has not moved"
    named = FetchRequestFetchTopic("a", partitions=[FetchRequestFetchPartition(0)])
    by_name = (await ask(FetchRequest(session_epoch=0, topics=[named]), 12)).session_id
    assert (await ask(fetch(session=(by_name, 1)), 13)).error_code == refused
    assert (await ask(fetch(session=(by_name, 2)), 13)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


async def test_an_id_that_gets_a_topic_is_found_in_its_session(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.coordinator.topics.catalog.os.urandom", lambda size: STRANGE[:size])
    key = (await ask(fetch((STRANGE, 0, 0), session=(0, 0)), 13)).session_id
    assert outcomes(await ask(fetch(session=(key, 1)), 13)) == [(STRANGE, 0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    await made(ask, "a")
    assert outcomes(await ask(fetch(session=(key, 2)), 13)) == [(STRANGE, 0, 0, 1)]


@pytest.mark.parametrize("session", [(0, -1), (0, 0)])
async def test_one_that_waits_never_gets_the_next_topic_of_the_name(
    ask: Ask, session: tuple[int, int]
) -> None:
    old = await made(ask, "a")
    waiting = ask.send(fetch((old, 0, 1), session=session, wait_ms=NEVER_MS), 13)
    await made_again(ask, "a")
    [(topic_id, _, code, records)] = outcomes(await waiting.answer())
    assert (topic_id, records) == (old, 0)
    assert code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID)


class _OnlyA(AllowAll):
    def authorize(
        self, principal: Any, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """See `Authority`."""
        return name == "a"


async def test_what_may_not_be_read_has_no_records(ask: Ask) -> None:
    a, b = await made(ask, "a"), await made(ask, "b")
    ask.services.authorizer = _OnlyA()
    answer = await ask(fetch((a, 0, 0), (b, 0, 0), (STRANGE, 0, 0)), 13)
    assert [one[2] for one in outcomes(answer)] == [
        0,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_a_follower_is_named_in_either_field() -> None:
    state = FetchRequestReplicaState(5, 1)
    for version in range(4, 19):
        sent = FetchRequest(replica_id=5) if version < 15 else FetchRequest(replica_state=state)
        assert FetchRequest.decode(sent.encode(version), version).follower == 5
        assert FetchRequest.decode(FetchRequest().encode(version), version).follower == -1
