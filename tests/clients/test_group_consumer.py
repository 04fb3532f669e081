"""GroupConsumer against a coordinator: records, positions, pauses, seeks, commits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.fetch.errors import (
    ConsumerClosedError,
    NoOffsetError,
    NotAssignedError,
    OffsetGoneError,
)
from ringleader.clients.fetch.model import Record as ConsumerRecord
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.records import Compression, Record, build_batch
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import (
    PATIENCE_S,
    Sink,
    Source,
    consumer,
    fetched_offsets,
    places,
    read,
    read_count,
    until,
    value,
)


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


async def test_every_record_once_and_in_order(coordinator: Coordinator, source: Source) -> None:
    source.fill()
    async with consumer(coordinator) as one:
        sink = await read_count(one, 400)
        assert one.assignment() == places(range(4))
    sink.exactly(source)


async def test_what_comes_later_comes_too(coordinator: Coordinator, source: Source) -> None:
    async with consumer(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        sink = Sink()
        for number in range(1, 11):
            source.put(("t", number % 4))
            await read_count(one, number, sink)
    sink.exactly(source)


@pytest.mark.parametrize("compression", list(Compression))
async def test_compressions(coordinator: Coordinator, source: Source, compression: Compression) -> None:
    source.fill(compression=compression)
    async with consumer(coordinator) as one:
        (await read_count(one, 400)).exactly(source)


async def test_a_record_with_everything(coordinator: Coordinator, source: Source) -> None:
    headers = [("a", b"1"), ("a", None), ("é", b"")]
    whole = [Record(0, 77, None, b"v", headers), Record(1, 78, b"k", None)]
    source.append(("t", 2), build_batch(whole))
    async with consumer(coordinator) as one:
        batch = await one.getone(PATIENCE_S)
        assert batch is not None
        assert (batch.topic, batch.partition, batch.topic_partition) == ("t", 2, ("t", 2))
        assert batch.record == ConsumerRecord("t", 2, 0, 77, "create", None, b"v", headers)
        assert (batch.next_offset, batch.high_watermark, batch.lag) == (1, 2, 1)
        second = await one.getone(PATIENCE_S)
        assert second is not None
        assert second.record == ConsumerRecord("t", 2, 1, 78, "create", b"k", None, ())
        assert second.lag == 0


async def test_large_batches_are_cut_to_size(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10_000, compression=Compression.ZSTD)
    async with consumer(coordinator, max_poll_records=300) as one:
        sink = Sink()
        await read(one, sink, lambda: sink.total == 10_000)
        sink.exactly(source)
        assert one.metrics().batches == 34


async def test_small_batches_are_put_together(coordinator: Coordinator, source: Source) -> None:
    for _ in range(100):
        source.put(("t", 0))
    async with consumer(coordinator, max_poll_records=40) as one:
        await one.wait_assigned(PATIENCE_S)
        sizes: list[int] = []
        while sum(sizes) < 100:
            batch = await one.__anext__()
            sizes.append(len(batch))
        assert sizes == [40, 40, 20]


async def test_partitions_take_turns(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=100)
    async with consumer(coordinator, max_poll_records=10) as one:
        order = [(await one.__anext__()).partition for _ in range(40)]
    assert all(sorted(order[at : at + 4]) == [0, 1, 2, 3] for at in range(0, 40, 4))


async def test_many_at_once(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=100)
    async with consumer(coordinator) as one:
        await until(lambda: one.metrics().buffered_bytes > 4 * 100)
        batches = await one.getmany(250, PATIENCE_S)
        assert [len(batch) for batch in batches] == [100, 100, 50]
        assert sum(len(batch) for batch in await one.getmany(timeout_s=PATIENCE_S)) == 150
        assert await one.getmany(timeout_s=0) == []
        assert await one.getone(0.01) is None


async def test_records_above_the_limits_get_through(coordinator: Coordinator, source: Source) -> None:
    for _ in range(3):
        source.put(("t", 1), 2, size=200_000)
        source.put(("t", 0), 2)
    small: dict[str, Any] = {
        "max_partition_fetch_bytes": 1_000,
        "fetch_max_bytes": 1_000,
        "buffer_max_bytes": 1_000,
    }
    async with consumer(coordinator, **small) as one:
        sink = await read_count(one, 12)
    assert sink.offsets == {("t", 0): list(range(6)), ("t", 1): list(range(6))}


async def test_positions_and_lag(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    async with consumer(coordinator, max_poll_records=4) as one:
        batch = await one.__anext__()
        assert await one.position(batch.topic_partition) == 4
        assert (await one.lag())[batch.topic_partition] == 6
        others = [place for place in places(range(4)) if place != batch.topic_partition]
        assert [await one.position(place) for place in others] == [0, 0, 0]
        assert one.metrics().lags[batch.topic_partition] == 6
        with pytest.raises(NotAssignedError, match="u-0 is not assigned"):
            await one.position(("u", 0))


async def test_seeking(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 100)
    async with consumer(coordinator, max_poll_records=10) as one:
        await one.__anext__()
        one.seek(("t", 0), 55)
        assert [record.offset for record in (await one.__anext__()).records] == list(range(55, 65))
        one.seek_to_beginning(("t", 0))
        assert (await one.__anext__()).record.offset == 0
        one.seek_to_end()
        assert await one.position(("t", 0)) == 100
        source.put(("t", 0))
        assert (await one.__anext__()).record.offset == 100
        with pytest.raises(NotAssignedError):
            one.seek(("u", 0), 1)
        with pytest.raises(ValueError, match="has to be 0 to"):
            one.seek(("t", 0), -1)


def fetches_again(coordinator: Coordinator) -> Callable[[], bool]:
    """Whether more has been asked of t-0 than by now."""
    seen = len(fetched_offsets(coordinator, ("t", 0)))
    return lambda: len(fetched_offsets(coordinator, ("t", 0))) > seen


async def test_an_answer_for_an_older_position_is_not_taken(coordinator: Coordinator, source: Source) -> None:
    for _ in range(10):
        source.put(("t", 0), 5)
    async with consumer(coordinator) as one:
        await one.__anext__()
        for older, target in ((0, 20), (45, 10), (30, 40), (40, 0)):
            again = fetches_again(coordinator)
            coordinator.faults.delay("Fetch", 0.05, times=1)
            one.seek(("t", 0), older)
            await until(again)
            coordinator.faults.delay("Fetch", 0.1, times=1)  # so that the older answer comes first
            one.seek(("t", 0), target)
            assert (await one.__anext__()).record.offset == target


async def test_a_pause_keeps_what_was_fetched(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=20)
    async with consumer(coordinator, max_poll_records=5) as one:
        await until(lambda: one.metrics().buffered_bytes > 4 * 20)
        one.pause(("t", 0), ("t", 1))
        assert one.paused() == places([0, 1])
        coordinator.faults.forget_seen()
        sink = await read_count(one, 40)
        assert set(sink.values) == set(places([2, 3]))
        assert await one.getmany(timeout_s=0) == []
        one.resume(("t", 0), ("t", 1))
        await read_count(one, 80, sink)
        sink.exactly(source)
        assert all(offset == 20 for offset in fetched_offsets(coordinator, ("t", 0)))


async def test_paused_partitions_leave_room_for_the_others(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=4, count=10, size=1_000)
    small: dict[str, Any] = {"max_partition_fetch_bytes": 10_000, "buffer_max_bytes": 40_000}
    async with consumer(coordinator, **small) as one:
        await until(lambda: one.metrics().buffered_bytes > 30_000)
        one.pause(*places([0, 1, 2]))
        sink = await read_count(one, 40)
        assert sink.offsets == {("t", 3): list(range(40))}


async def test_the_buffer_is_bounded(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=20, count=10, size=1_000)
    limits: dict[str, Any] = {
        "max_partition_fetch_bytes": 12_000,
        "buffer_max_bytes": 30_000,
        "max_poll_records": 10,
    }
    most = 0
    async with consumer(coordinator, **limits) as one:
        sink = Sink()
        while sink.total < 800:
            sink.add(await one.__anext__())
            most = max(most, one.metrics().buffered_bytes)
    assert sink.offsets == {place: list(range(200)) for place in places(range(4))}
    assert 0 < most < 30_000 + 12_000


async def test_explicit_commits(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 30)
    async with consumer(coordinator, auto_commit=False, max_poll_records=10) as one:
        await one.__anext__()
        assert await one.committed() == {}
        await one.commit()
        zero = {place: OffsetAndMetadata(0, "", 0) for place in places([1, 2, 3])}
        assert await one.committed() == {("t", 0): OffsetAndMetadata(10, "", 0)} | zero
        await one.__anext__()
        # Somebody else cannot know what the reader has done with the batch in its hands.
        await asyncio.create_task(one.commit())
        assert (await one.committed())[("t", 0)].offset == 10
        await one.commit({("t", 0): OffsetAndMetadata(13, "mine")})
        assert await one.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(13, "mine")}
        done = asyncio.Event()
        errors: list[object] = []

        def ended(error: object) -> None:
            errors.append(error)
            done.set()

        one.commit_nowait(on_done=ended)
        await asyncio.wait_for(done.wait(), PATIENCE_S)
        assert errors == [None]
        assert (await one.committed())[("t", 0)].offset == 20
    async with consumer(coordinator) as two:
        assert (await two.__anext__()).record.offset == 20


async def test_auto_commit_leaves_out_what_is_in_hand(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 30)
    async with consumer(coordinator, max_poll_records=10, auto_commit_interval_ms=50) as one:
        await one.__anext__()
        await one.__anext__()
        commits = 0
        offset = 0
        while not offset:  # the interval may have come round before anything was processed
            await until(lambda: one.metrics().member.commits > commits)  # noqa: B023 - awaited here
            commits = one.metrics().member.commits
            offset = (await one.committed())[("t", 0)].offset
        assert offset == 10
    async with consumer(coordinator) as two:
        # The second batch was in hand at the end.
        assert (await two.__anext__()).record.offset == 10


@pytest.mark.parametrize("waits", [True, False])
async def test_auto_commit_does_not_turn_back_what_is_committed_out_of_a_batch_in_hand(
    coordinator: Coordinator, source: Source, waits: bool
) -> None:
    source.put(("t", 0), 30)
    async with consumer(coordinator, max_poll_records=10, auto_commit_interval_ms=100) as one:
        # The interval comes round while the commit is on its way.
        coordinator.faults.delay("OffsetCommit", 0.3)
        await one.__anext__()
        await one.__anext__()
        if waits:
            await one.commit({("t", 0): 17})
        else:
            one.commit_nowait({("t", 0): 17})
        await until(lambda: one.metrics().member.commits > 1)
        await one.commit({("t", 0): 18})
    committed = [
        partition.committed_offset
        for seen in coordinator.faults.seen("OffsetCommit")
        for topic in seen.request.topics
        for partition in topic.partitions
        if partition.partition_index == 0
    ]
    assert committed == sorted(committed)
    assert committed[-1] == 18


async def test_where_a_new_group_begins(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10)
    async with consumer(coordinator, auto_offset_reset="latest") as one:
        await one.wait_assigned(PATIENCE_S)
        assert await one.position(("t", 0)) == 10
    async with consumer(coordinator, auto_offset_reset="none", group="h") as one:
        with pytest.raises(NoOffsetError, match=r"t-\d: the group has no committed offset"):
            await one.getone(PATIENCE_S)
        for place in places(range(4)):
            one.seek(place, 0)
        assert (await one.__anext__()).record.offset == 0


async def test_a_consumer_that_began_at_the_end_misses_nothing_after_a_restart(
    coordinator: Coordinator, source: Source
) -> None:
    source.put(("t", 0), 10)
    async with consumer(coordinator, auto_offset_reset="latest") as one:
        await one.wait_assigned(PATIENCE_S)
        for place in places(range(4)):
            await one.position(place)
        assert await one.getmany(timeout_s=0) == []
    source.put(("t", 0))
    async with consumer(coordinator, auto_offset_reset="latest") as two:
        assert (await two.__anext__()).record.offset == 10


async def test_positions_outside_of_the_log(
    coordinator: Coordinator, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.put(("t", 0), 10)
    async with consumer(coordinator) as one:
        await read_count(one, 10)
        one.seek(("t", 0), 1_000)
        assert (await one.__anext__()).record.offset == 0
        assert "t-0 at offset 1000: the log does not hold this offset" in caplog.text
        assert "going on by auto_offset_reset='earliest'" in caplog.text
    async with consumer(coordinator, auto_offset_reset="none") as one:
        await one.wait_assigned(PATIENCE_S)
        for place in places(range(4)):
            one.seek(place, 1_000 if place == ("t", 0) else 0)
        with pytest.raises(OffsetGoneError, match="t-0 at offset 1000: the log does not hold") as found:
            await one.getone(PATIENCE_S)
        assert (found.value.topic, found.value.partition, found.value.offset) == ("t", 0, 1_000)
        # The others can be read, and it can be fixed.
        one.seek(("t", 0), 5)
        assert (await one.__anext__()).record.offset == 5


async def test_offsets_by_time(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10)
    async with consumer(coordinator) as one:
        found = await one.offsets_for_times({("t", 0): 1_004, ("t", 1): 1_004})
        assert found == {("t", 0): (4, 1_004), ("t", 1): None}
        assert await one.beginning_offsets([("t", 0)]) == {("t", 0): 0}
        assert await one.end_offsets(places([0, 1])) == {("t", 0): 10, ("t", 1): 0}


async def test_a_topic_that_comes_later(
    coordinator: Coordinator, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    async with consumer(coordinator, topics=["later"], metadata_max_age_ms=100) as one:
        await one.wait_assigned(PATIENCE_S)
        assert one.assignment() == []
        assert "topics that cannot be seen: later" in caplog.text
        coordinator.create_topic("later", 2)
        source.put(("later", 1))
        batch = await one.__anext__()
        assert batch.record.value == value(("later", 1), 0)


async def test_a_topic_that_goes_away(
    coordinator: Coordinator, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.create_topic("short", 1)
    source.put(("short", 0))
    async with consumer(coordinator, topics=["short"]) as one:
        await one.__anext__()
        coordinator.run(coordinator.node.topics.delete("short", coordinator.node.runtime.forget_topic))
        await until(lambda: "topic short cannot be read now (UNKNOWN_TOPIC_OR_PARTITION)" in caplog.text)
        assert caplog.text.count("cannot be read now") == 1


async def test_a_topic_that_is_made_again(
    coordinator: Coordinator, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.create_topic("short", 1)
    source.put(("short", 0), 10)
    async with consumer(coordinator, topics=["short"]) as one:
        await read_count(one, 10)
        await one.commit()
        coordinator.run(coordinator.node.topics.delete("short", coordinator.node.runtime.forget_topic))
        await until(lambda: "topic short cannot be read now" in caplog.text)
        coordinator.create_topic("short", 1)
        source.counts.clear()
        source.put(("short", 0), 10)
        sink = await read_count(one, 10)
        await one.commit()
        assert coordinator.committed("g") == {("short", 0): 10}, "the same offset, of another topic"
        source.put(("short", 0), 10)
        await read_count(one, 20, sink)
        assert sink.offsets == {("short", 0): list(range(20))}
        assert "the topic was created again; going on by auto_offset_reset='earliest'" in caplog.text


async def test_a_pattern(coordinator: Coordinator, source: Source) -> None:
    coordinator.create_topic("t2", 1)
    source.put(("t2", 0))
    async with consumer(coordinator, pattern="t[0-9]") as one:
        assert (await one.__anext__()).topic == "t2"
        assert one.assignment() == [("t2", 0)]


async def test_one_task_asks_at_a_time(coordinator: Coordinator) -> None:
    async with consumer(coordinator) as one:
        asking = asyncio.create_task(one.getone())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await one.getone()
        asking.cancel()
        await asyncio.wait([asking])
        assert await one.getmany(timeout_s=0) == []


async def test_a_cancelled_call_loses_nothing(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=10, count=500, compression=Compression.GZIP)
    source.put(("t", 0), 20_000)
    async with consumer(coordinator, max_poll_records=1_000) as one:
        sink, cancelled = Sink(), 0
        while sink.total < 40_000:
            asking = asyncio.create_task(one.getmany())
            for _ in range(cancelled % 5):
                await asyncio.sleep(0)
            if asking.cancel():
                cancelled += 1
            try:
                for batch in await asking:
                    sink.add(batch)
            except asyncio.CancelledError:
                for batch in await one.getmany(timeout_s=0):
                    sink.add(batch)
        sink.exactly(source)
        assert cancelled


async def test_the_end(coordinator: Coordinator) -> None:
    one = consumer(coordinator)
    with pytest.raises(ConsumerClosedError, match="was not started"):
        await one.getone()
    await one.stop()
    await one.start()
    waiting = asyncio.create_task(anext(one, None))
    await one.wait_assigned(PATIENCE_S)
    await one.stop()
    assert await waiting is None
    with pytest.raises(ConsumerClosedError, match="has been stopped"):
        await one.getmany()
    assert [batch async for batch in one] == []
    await one.stop()


def test_options_that_cannot_work() -> None:
    for options, words in (
        ({"auto_offset_reset": "middle"}, "auto_offset_reset"),
        ({"auto_offset_reset": "by_duration:1h"}, "auto_offset_reset: '1h' is no ISO 8601 duration"),
        ({"isolation_level": "serializable"}, "isolation_level"),
        ({"max_poll_records": 0}, "max_poll_records"),
        ({"fetch_max_wait_ms": -1}, "fetch_max_wait_ms"),
        ({"topics": []}, "no topics"),
    ):
        with pytest.raises(ValueError, match=words):
            consumer("h:1", **options)


def test_logging_is_the_librarys() -> None:
    assert logging.getLogger("ringleader.clients.consumer").handlers == []


async def test_what_would_be_silent_is_reported(coordinator: Coordinator, source: Source) -> None:
    """Records asked for in a callback, a commit after the end."""
    source.fill(batches=1, count=1)
    found: list[BaseException] = []

    async def ask(_places: list[TopicPartition]) -> None:
        try:
            await one.getone()
        except RuntimeError as error:
            found.append(error)

    one = consumer(coordinator, on_assigned=ask)
    async with one:
        await read_count(one, 4)
        assert "a callback cannot ask for records" in str(found[0])
    with pytest.raises(ConsumerClosedError, match="has been stopped"):
        await one.commit()
