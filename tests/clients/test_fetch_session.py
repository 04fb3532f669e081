"""The client's side of a fetch session: what a request names, and what its answer means for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ringleader.clients.fetch.session import MAX_INT32, FetchSession, Wanted, newest
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import FetchRequest, FetchResponse
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import Source, consumer, read_count, until

KEY = 4_711
A, B, C = Wanted(0, 1, 100), Wanted(5, 1, 100), Wanted(7, 2, 100)
Requested = Mapping[TopicPartition, Wanted]


def contents(session: FetchSession, requested: Requested, version: int = 12) -> dict[str, Any]:
    """The contents of the request, which can be written in that version."""
    request = FetchRequest()
    session.fill(request, requested, version)
    request.encode(version)
    return {
        "session": (request.session_id, request.session_epoch),
        "asks": {
            (topic.topic, one.partition): (
                one.fetch_offset,
                one.current_leader_epoch,
                one.partition_max_bytes,
                topic.topic_id,
            )
            for topic in request.topics
            for one in topic.partitions
        },
        "forgets": [
            (topic.topic, one) for topic in request.forgotten_topics_data for one in topic.partitions
        ],
    }


def whole(requested: Requested, key: int = 0, epoch: int = 0) -> dict[str, Any]:
    return {"session": (key, epoch), "asks": dict(requested), "forgets": []}


def opened(requested: Requested) -> FetchSession:
    session = FetchSession()
    assert contents(session, requested) == whole(requested)
    session.answered(requested, FetchResponse(session_id=KEY))
    return session


def test_a_request_names_what_has_changed() -> None:
    before: Requested = {("t", 0): A, ("t", 1): B, ("u", 0): A}
    session = opened(before)
    assert session.is_incremental
    after: Requested = {("u", 0): A, ("t", 1): C, ("u", 1): B}
    named = contents(session, after)
    assert named == {"session": (KEY, 1), "asks": {("t", 1): C, ("u", 1): B}, "forgets": [("t", 0)]}
    assert contents(session, after) == named, "what is not answered has not been told"
    session.answered(after, FetchResponse(session_id=KEY))
    assert contents(session, after) == {"session": (KEY, 2), "asks": {}, "forgets": []}


def test_without_a_session_every_request_is_whole() -> None:
    session = FetchSession()
    for _ in range(2):
        assert contents(session, {("t", 0): A}) == whole({("t", 0): A})
        session.answered({("t", 0): A}, FetchResponse())
    never = FetchSession(offered=False)
    assert contents(never, {("t", 0): A}) == whole({("t", 0): A}, epoch=-1)
    assert contents(opened({("t", 1): A}), {("t", 0): A}, 6) == whole({("t", 0): A}, epoch=-1)


def test_a_session_that_the_broker_ends_is_over() -> None:
    session = opened({("t", 0): A})
    session.answered({("t", 0): A}, FetchResponse())
    assert contents(session, {("t", 0): A}) == whole({("t", 0): A})
    session = opened({("t", 0): A})
    session.answered({}, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert contents(session, {("t", 0): A}) == whole({("t", 0): A})


def test_a_session_in_doubt_is_ended_by_the_next_request() -> None:
    doubted = opened({("t", 0): A})
    doubted.failed()
    refused = opened({("t", 0): A})
    refused.answered({("t", 0): B}, FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
    for session in (doubted, refused):
        assert contents(session, {("t", 0): A}) == whole({("t", 0): A}, KEY)
        session.answered({("t", 0): A}, FetchResponse(session_id=KEY + 1))
        assert contents(session, {("t", 0): A})["session"] == (KEY + 1, 1)


def test_the_epoch_after_the_largest_is_1() -> None:
    session = opened({("t", 0): A})
    session._epoch = MAX_INT32
    session.answered({("t", 0): A}, FetchResponse(session_id=KEY))
    assert contents(session, {("t", 0): A})["session"] == (KEY, 1)


OLD, NEW = b"\1" * 16, b"\2" * 16


def test_a_topic_that_was_made_again_is_another_one_by_id() -> None:
    before: Requested = {("t", 0): A._replace(topic_id=OLD), ("t", 1): B._replace(topic_id=OLD)}
    after: Requested = {("t", 0): A._replace(topic_id=NEW)}
    by_id = opened(before)
    request = FetchRequest()
    by_id.fill(request, after, 13)
    assert [(one.topic_id, len(one.partitions)) for one in request.topics] == [(NEW, 1)]
    assert [(one.topic_id, one.partitions) for one in request.forgotten_topics_data] == [(OLD, [0, 1])]
    by_name = opened(before)
    assert contents(by_name, after) == {"session": (KEY, 1), "asks": dict(after), "forgets": [("t", 1)]}


def test_topics_without_ids_are_asked_for_by_name() -> None:
    with_id = {("t", 0): A._replace(topic_id=OLD)}
    assert newest(with_id) == FetchRequest.MAX_VERSION
    assert newest({**with_id, ("u", 0): A}) == 12


# ---- with a daemon ----


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


def incremental(coordinator: Coordinator) -> list[Any]:
    """The incremental requests that came."""
    return [
        seen.request for seen in coordinator.faults.seen("Fetch") if seen.request.session_epoch not in (0, -1)
    ]


async def test_an_idle_consumer_names_its_partitions_once(coordinator: Coordinator, source: Source) -> None:
    source.fill()
    async with consumer(coordinator, fetch_max_wait_ms=20) as one:
        sink = await read_count(one, 400)
        await until(lambda: any(not request.topics for request in incremental(coordinator)))
        for _ in range(5):
            source.put(("t", 1))
            await read_count(one, sink.total + 1, sink)
        sink.exactly(source)
        assert await one.lag() == dict.fromkeys([("t", index) for index in range(4)], 0)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
async def test_a_session_that_is_lost_begins_again_at_once(
    coordinator: Coordinator, source: Source, code: ErrorCode
) -> None:
    source.fill()
    async with consumer(coordinator, fetch_max_wait_ms=20) as one:
        sink = await read_count(one, 400)
        await until(lambda: bool(incremental(coordinator)))
        failed = one.metrics().failed_fetches
        rule = coordinator.faults.error("Fetch", code)
        await until(lambda: rule.hits > 0)
        source.put(("t", 2), 5)
        await read_count(one, 405, sink)
        sink.exactly(source)
        assert one.metrics().failed_fetches == failed


async def test_a_partition_that_comes_back_knows_its_end(coordinator: Coordinator, source: Source) -> None:
    """Given up and taken again between two requests, it is in the session as before."""
    source.fill()
    async with consumer(coordinator, fetch_max_wait_ms=200) as one:
        await read_count(one, 400)
        await until(lambda: any(not request.topics for request in incremental(coordinator)))
        assert one._reader is not None
        state = one._reader.fetcher.states["t", 0]
        state.high_watermark = state.end_offset = -1
        await until(lambda: state.high_watermark == 100)
    assert state.end_offset == 100
