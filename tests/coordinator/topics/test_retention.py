"""The segments that go: by time, by size, by DeleteRecords; offsets never start again."""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import pytest

from ringleader.coordinator.topics import Topics
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.topiclog import (
    START_MS,
    WallClock,
    batch,
    bounds,
    everything,
    killed,
    produced,
    segment_files,
    topic_log,
)

SIZE = len(batch(10))
HOUR_MS = 3_600_000


async def filled(topics: Topics, **configs: str) -> None:
    """One batch of 10 records per file and hour."""
    await topics.create("orders", 1, {"segment.bytes": str(SIZE), **configs})
    for number in range(10):
        await topics.append("orders", 0, batch(10, at_ms=START_MS + number * HOUR_MS))


async def test_files_whose_newest_record_is_too_old_go(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock) as topics:
        await filled(topics, **{"retention.ms": str(5 * HOUR_MS)})
        clock.now_ms = START_MS + 9 * HOUR_MS
        assert await topics.enforce_retention() == 4
        assert bounds(topics) == (40, 100)
        assert (await everything(topics, "orders")).offsets == list(range(40, 100))
        with pytest.raises(KafkaError) as error:
            await topics.read(topics.partition("orders", 0), 39, 1000)
        assert error.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await topics.enforce_retention() == 0
    async with topic_log(tmp_path, clock) as topics:
        assert bounds(topics) == (40, 100)


async def test_what_is_on_its_way_stays(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(10))
        clock.now_ms = START_MS + 100 * HOUR_MS
        appending = asyncio.create_task(topics.append("orders", 0, batch(5, at_ms=clock.now_ms)))
        # It has its offset then, and is not written yet.
        await asyncio.sleep(0)
        assert await topics.enforce_retention() == 0
        assert (await appending).base_offset == 10
        assert (await everything(topics, "orders")).offsets == list(range(15))


async def test_a_file_that_more_is_on_its_way_to_stays_behind_the_next_one_too(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await topics.create("orders", 1, {"segment.bytes": str(2 * SIZE)})
        await topics.append("orders", 0, batch(10))
        clock.now_ms = START_MS + 100 * HOUR_MS
        appending = [
            asyncio.create_task(topics.append("orders", 0, batch(10, at_ms=clock.now_ms))) for _ in range(2)
        ]
        # One into the first file, which is full then, and one into the next.
        await asyncio.sleep(0)
        assert await topics.enforce_retention() == 0
        assert [(await one).base_offset for one in appending] == [10, 20]
        assert (await everything(topics, "orders")).offsets == list(range(30))


async def test_a_file_is_complete_before_it_goes(tmp_path: Path) -> None:
    """Its index is made of it when the next one has its first record."""
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1, {"segment.bytes": str(SIZE)})
        await topics.append("orders", 0, batch(10))
        appending = asyncio.create_task(topics.append("orders", 0, batch(10)))
        await asyncio.sleep(0)
        partition = topics.partition("orders", 0)
        assert partition.truncate(10) == []
        await appending
        assert [one.base_offset for one in partition.truncate(10)] == [0]


async def test_when_everything_is_too_old_the_end_stays(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await filled(topics)
        clock.now_ms = START_MS + 100 * HOUR_MS
        assert await topics.enforce_retention() == 10
        assert bounds(topics) == (100, 100)
        assert [path.name for path in segment_files(topics, "orders")] == ["00000000000000000100.log"]
        assert (await topics.read(topics.partition("orders", 0), 100, 1000)) == b""
        assert await topics.enforce_retention() == 0
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        assert bounds(topics) == (100, 100)
        assert (await topics.append("orders", 0, batch(2, at_ms=clock.now_ms))).base_offset == 100
        assert (await everything(topics, "orders")).offsets == [100, 101]


@pytest.mark.parametrize(
    ("limit", "start"), [(0, 90), (SIZE, 90), (SIZE + 1, 80), (4 * SIZE, 60), (99 * SIZE, 0)]
)
async def test_files_above_the_size_go_but_never_the_last(tmp_path: Path, limit: int, start: int) -> None:
    async with topic_log(tmp_path) as topics:
        await filled(topics, **{"retention.bytes": str(limit), "retention.ms": "-1"})
        await topics.enforce_retention()
        assert bounds(topics) == (start, 100)


async def test_without_limits_nothing_goes(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock) as topics:
        await filled(topics, **{"cleanup.policy": "compact"})
        clock.now_ms += 10_000 * HOUR_MS
        assert await topics.enforce_retention() == 0
        await topics.configure("orders", lambda present: {"retention.ms": "-1"})
        assert await topics.enforce_retention() == 0
        assert bounds(topics) == (0, 100)


async def test_records_without_time_go_by_the_age_of_their_file(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(1, at_ms=-1))
        clock.now_ms = START_MS
        assert await topics.enforce_retention() == 0
        clock.now_ms = 10**15
        assert await topics.enforce_retention() == 1
        assert bounds(topics) == (1, 1)


async def test_a_file_is_closed_when_its_first_record_is_old(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1, {"segment.ms": str(HOUR_MS)})
        for at_ms in (0, 1, HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS):
            await topics.append("orders", 0, batch(at_ms=START_MS + at_ms))
        assert [int(path.stem) for path in segment_files(topics, "orders")] == [0, 3]


async def test_producers_that_are_silent_are_forgotten(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, producer_id_expiration_ms=HOUR_MS) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, 3))
        await topics.enforce_retention()
        assert (await topics.append("orders", 0, produced(7, 0, 3))).base_offset == 0
        clock.now_ms += 2 * HOUR_MS
        await topics.enforce_retention()
        assert (await topics.append("orders", 0, produced(7, 0, 3))).base_offset == 3


async def only_a_producer_left(topics: Topics, clock: WallClock) -> None:
    """Its records went by their age."""
    await topics.create("orders", 1)
    await topics.append("orders", 0, produced(7, 0, 3))
    clock.now_ms += 2 * HOUR_MS
    await topics.enforce_retention()
    assert bounds(topics) == (3, 3)


async def test_producers_are_remembered_beyond_the_files_with_their_records(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await only_a_producer_left(topics, clock)
        await topics.append("orders", 0, batch(at_ms=clock.now_ms))
    async with topic_log(tmp_path, clock) as topics:
        assert (await topics.append("orders", 0, produced(7, 0, 3))).base_offset == 0
        assert bounds(topics) == (3, 4)


async def test_producers_are_remembered_by_starts_that_append_nothing(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=HOUR_MS) as topics:
        await only_a_producer_left(topics, clock)
    for _ in range(2):
        async with topic_log(tmp_path, clock) as topics:
            assert bounds(topics) == (3, 3)
    async with topic_log(tmp_path, clock) as topics:
        assert (await topics.append("orders", 0, produced(7, 0, 3))).base_offset == 0
        assert bounds(topics) == (3, 3)


async def test_between_two_looks_at_what_may_go_is_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, looked_s, enough = asyncio.get_running_loop(), list[float](), asyncio.Event()
    enforce = Topics.enforce_retention

    async def looked(topics: Topics) -> int:
        looked_s.append(loop.time())
        if len(looked_s) == 6:
            enough.set()
        return await enforce(topics)

    monkeypatch.setattr(Topics, "enforce_retention", looked)
    async with topic_log(tmp_path, log_retention_check_interval_ms=50):
        await asyncio.wait_for(enough.wait(), 20)
    # A sleep may be longer than it was asked for, and is never shorter (but for what the clock cannot tell).
    assert min(after - before for before, after in itertools.pairwise(looked_s)) > 0.045


async def test_delete_records_moves_the_start(tmp_path: Path) -> None:
    async with topic_log(tmp_path, tail_cache_bytes=0) as topics:
        await filled(topics)
        assert await topics.truncate("orders", 0, 35) == 35
        assert (await everything(topics, "orders")).offsets == list(range(35, 100))
        assert await topics.truncate("orders", 0, 20) == 35
        for offset in (101, -2):
            with pytest.raises(KafkaError) as error:
                await topics.truncate("orders", 0, offset)
            assert error.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await topics.truncate("orders", 0, -1) == 100
        assert bounds(topics) == (100, 100)
    async with topic_log(tmp_path) as topics:
        assert bounds(topics) == (100, 100)
        assert (await topics.append("orders", 0, batch())).base_offset == 100


async def test_delete_records_of_an_empty_partition(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        assert await topics.truncate("orders", 0, -1) == 0
        assert await topics.truncate("orders", 0, 0) == 0


async def test_a_reader_that_is_overtaken_by_retention_learns_it(tmp_path: Path) -> None:
    async with topic_log(tmp_path, tail_cache_bytes=0) as topics:
        await filled(topics)
        partition = topics.partition("orders", 0)
        for path in segment_files(topics, "orders")[:1]:
            path.unlink()
        with pytest.raises(KafkaError) as error:
            await topics.read(partition, 5, 1000)
        assert error.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_starts_that_move_at_once_are_never_older_than_answered(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(40):
        async with topic_log(tmp_path / str(number), log_segment_bytes=2_000) as topics:
            await topics.create("orders", 2)
            for _ in range(20):
                for partition in range(2):
                    await topics.append("orders", partition, batch(10))
            requested = [(rng.randrange(2), rng.randint(1, 200)) for _ in range(12)]
            answered = await asyncio.gather(*(topics.truncate("orders", *place) for place in requested))
            left = await killed(topics, tmp_path / f"{number}-left")
        async with topic_log(left, log_segment_bytes=2_000) as topics:
            for (partition, offset), start in zip(requested, answered, strict=True):
                assert start >= offset
                assert bounds(topics, "orders", partition)[0] >= start


@pytest.mark.parametrize("jump_days", [8, -8])
async def test_a_clock_that_jumps_for_a_moment_deletes_nothing(tmp_path: Path, jump_days: int) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock) as topics:
        await filled(topics)
        clock.wrong_by_ms = jump_days * 24 * HOUR_MS
        assert await topics.enforce_retention() == 0
        clock.wrong_by_ms = 0
        assert await topics.enforce_retention() == 0
        assert bounds(topics) == (0, 100)


async def test_a_clock_that_jumps_and_stays_counts_after_an_interval(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_check_interval_ms=HOUR_MS) as topics:
        await filled(topics)
        clock.wrong_by_ms = 8 * 24 * HOUR_MS
        assert await topics.enforce_retention() == 0
        clock.now_ms += HOUR_MS + 1
        assert await topics.enforce_retention() == 10


async def test_a_clock_that_jumps_ahead_for_a_moment_forgets_no_producer(tmp_path: Path) -> None:
    """Else what a producer repeats would be appended twice."""
    clock = WallClock()
    async with topic_log(tmp_path, clock) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0))
        clock.wrong_by_ms = 8 * 24 * HOUR_MS
        await topics.enforce_retention()
        assert len(topics.partition("orders", 0).producers) == 1
