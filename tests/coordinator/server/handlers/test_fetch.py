"""Fetch: records that are there, records that are waited for, errors that are answered at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.coordinator.server.handlers import fetch as room
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from tests.support.topiclog import batch, forget

Ask = Any
NEVER_MS = 3_600_000


def fetch(
    *places: tuple[int, int], name: str = "a", wait_ms: int = 0, epoch: int = -1, **options: Any
) -> FetchRequest:
    limit = options.pop("partition_max_bytes", 1_000_000)
    partitions = [
        FetchRequestFetchPartition(index, epoch, offset, partition_max_bytes=limit)
        for index, offset in places
    ]
    options = {"min_bytes": 1, **options}
    return FetchRequest(
        max_wait_ms=wait_ms, topics=[FetchRequestFetchTopic(name, partitions=partitions)], **options
    )


def flat(answer: Any) -> list[Any]:
    return [partition for topic in answer.responses for partition in topic.partitions]


def offsets(part: Any) -> list[int]:
    return decode_columns(part.records or b"").offsets


@pytest.fixture
async def filled(ask: Ask) -> Ask:
    """Topic a: 10 records in partition 0, in batches of 5; nothing in 1; 3 records in 2."""
    await ask.topics.create("a", 3)
    for partition, count in ((0, 5), (0, 5), (2, 3)):
        await ask.topics.append("a", partition, batch(count))
    return ask


@pytest.mark.parametrize("version", range(4, 13))
@pytest.mark.parametrize("isolation", [0, 1])
async def test_records_are_fetched_at_every_version(filled: Ask, version: int, isolation: int) -> None:
    answer = await filled(fetch((0, 5), (1, 0), (2, 0), isolation_level=isolation), version)
    assert (answer.error_code, answer.session_id) == (0, 0)
    first, second, third = flat(answer)
    assert [offsets(part) for part in (first, second, third)] == [[5, 6, 7, 8, 9], [], [0, 1, 2]]
    assert [part.high_watermark for part in (first, second, third)] == [10, 0, 3]
    for part in (first, second, third):
        assert part.error_code == 0
        assert part.last_stable_offset == part.high_watermark
        assert part.log_start_offset == (0 if version >= 5 else -1)
        assert part.aborted_transactions == ([] if isolation else None)
        assert part.preferred_read_replica == -1


@pytest.mark.parametrize("ask", [{}], indirect=True)
async def test_a_fetch_may_begin_within_a_batch(filled: Ask) -> None:
    assert offsets(flat(await filled(fetch((0, 7))))[0]) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (fetch((0, 11), wait_ms=NEVER_MS), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch((0, -1), wait_ms=NEVER_MS), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch((3, 0), wait_ms=NEVER_MS), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch((0, 0), name="none", wait_ms=NEVER_MS), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch((0, 10), wait_ms=NEVER_MS, epoch=1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_errors_are_told_at_once(filled: Ask, request_: FetchRequest, code: int) -> None:
    (part,) = flat(await filled(request_))
    assert (part.error_code, part.high_watermark, part.records) == (code, -1, b"")


async def only_in_files(ask: Ask) -> None:
    """As after a restart, or when newer records took the memory."""
    for partition in range(3):
        tail = ask.topics.partition("a", partition).tail
        while len(tail):
            tail.evict()


async def in_memory(ask: Ask) -> None:
    """As it is."""


everywhere = pytest.mark.parametrize("keep", [in_memory, only_in_files])


@everywhere
async def test_a_partition_is_answered_once_and_as_it_is_named_last(filled: Ask, keep: Any) -> None:
    await keep(filled)
    for limit in (-(2**31), -1, 0, 1, 10**6):
        many = [(0, 0)] * 1_500 + [(2, 0)] + [(0, 0)] * 700 + [(0, 5)]
        first, second = flat(await filled(fetch(*many, partition_max_bytes=limit)))
        assert (first.partition_index, second.partition_index) == (0, 2)
        assert offsets(first) == ([5, 6, 7, 8, 9] if limit >= 0 else [])
        assert offsets(second) == ([0, 1, 2] if limit == 10**6 else [])


@everywhere
async def test_a_negative_limit_is_answered_as_by_kafka(filled: Ask, keep: Any) -> None:
    """Where there are records, and at once; the end of a partition is waited for."""
    await keep(filled)
    request = fetch((1, 0), (0, 0), partition_max_bytes=-1, wait_ms=NEVER_MS)
    first, second = flat(await filled(request))
    assert (first.error_code, second.error_code) == (0, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert second.records == b""


@everywhere
async def test_limits_are_soft_and_leave_whole_batches(filled: Ask, keep: Any) -> None:
    await keep(filled)
    size = len(batch(5))
    cases = [
        (fetch((0, 0), (2, 0), max_bytes=1), [5, 0]),
        (fetch((0, 0), (2, 0), max_bytes=0), [5, 0]),
        (fetch((0, 0), (2, 0), max_bytes=2 * size), [10, 0]),
        (fetch((0, 0), (2, 0), max_bytes=2 * size + 1), [10, 0]),
        (fetch((0, 0), (2, 0), max_bytes=2 * size + len(batch(3))), [10, 3]),
        (fetch((0, 0), (2, 0), partition_max_bytes=1), [5, 0]),
        (fetch((1, 0), (0, 0), (2, 0), partition_max_bytes=0), [0, 5, 0]),
        (fetch((0, 10), (1, 0), (2, 0), partition_max_bytes=1), [0, 0, 3]),
    ]
    for request, counts in cases:
        assert [len(offsets(part)) for part in flat(await filled(request))] == counts


async def test_an_answer_has_a_limit_of_ours(filled: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ANSWER_MAX_BYTES", 10)
    assert [len(offsets(part)) for part in flat(await filled(fetch((0, 0), (2, 0))))] == [5, 0]


async def test_a_fetch_at_the_end_waits_for_records(filled: Ask) -> None:
    waiting = filled.send(fetch((1, 0), (0, 10), wait_ms=NEVER_MS), 12)
    assert not waiting.done
    await filled.topics.append("a", 0, batch(2))
    first, second = flat(await waiting.answer())
    assert (offsets(first), offsets(second)) == ([], [10, 11])
    assert no_waiters(filled)


async def test_it_waits_for_enough_of_them(filled: Ask) -> None:
    size = len(batch(2))
    waiting = filled.send(
        fetch((1, 0), (0, 10), (2, 0), wait_ms=NEVER_MS, min_bytes=len(batch(3)) + 2 * size), 12
    )
    await filled.topics.append("a", 0, batch(2))
    assert not waiting.done
    await filled.topics.append("a", 1, batch(2))
    assert [len(offsets(part)) for part in flat(await waiting.answer())] == [2, 2, 3]


async def test_the_wait_ends_after_its_time(filled: Ask) -> None:
    (part,) = flat(await filled(fetch((0, 10), wait_ms=1)))
    assert (part.error_code, part.high_watermark, part.records) == (0, 10, b"")
    assert no_waiters(filled)


async def test_nothing_is_left_of_a_fetch_whose_peer_is_gone(filled: Ask) -> None:
    waiting = filled.send(fetch((0, 10), wait_ms=NEVER_MS), 12)
    assert not no_waiters(filled)
    waiting.call.dropped()
    assert no_waiters(filled)
    await filled.topics.append("a", 0, batch(1))
    assert not waiting.done


async def test_deleting_the_topic_ends_the_wait(filled: Ask) -> None:
    waiting = filled.send(fetch((0, 10), wait_ms=NEVER_MS), 12)
    await filled.topics.delete("a", forget)
    (part,) = flat(await waiting.answer())
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_fetch_of_nothing_is_answered(filled: Ask) -> None:
    assert flat(await filled(fetch(wait_ms=NEVER_MS))) == []


async def test_records_that_are_only_in_files(filled: Ask) -> None:
    await only_in_files(filled)
    request = fetch((0, 5), (1, 0), (2, 1), wait_ms=NEVER_MS, min_bytes=10**6)
    first, second, third = flat(await filled(request))
    assert [offsets(part) for part in (first, second, third)] == [[5, 6, 7, 8, 9], [], [0, 1, 2]]


async def test_a_file_that_went_meanwhile_is_an_error_of_its_partition(filled: Ask) -> None:
    partition = filled.topics.partition("a", 0)
    while len(partition.tail):
        partition.tail.evict()
    (path,) = await asyncio.to_thread(lambda: list(partition.directory.glob("*.log")))
    path.unlink()
    first, second = flat(await filled(fetch((0, 0), (2, 0))))
    assert (first.error_code, first.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert offsets(second) == [0, 1, 2]


async def test_many_fetches_and_appends_of_large_batches_take_turns(filled: Ask) -> None:
    """More than a turn of the loop may move: the rest follows in later turns."""
    big = batch(1, size=900_000)
    waiting = [filled.send(fetch((1, 0), wait_ms=NEVER_MS), 12) for _ in range(10)]
    await asyncio.gather(*(filled.topics.append("a", 1, big) for _ in range(8)))
    answers = await asyncio.gather(*(found.answer() for found in waiting))
    assert all(offsets(flat(answer)[0]) for answer in answers)
    assert filled.topics.partition("a", 1).high_watermark == 8


def no_waiters(ask: Ask) -> bool:
    return not any(ask.topics.partition("a", index).waiters for index in range(3))
