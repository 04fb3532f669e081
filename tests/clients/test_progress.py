"""The commits of a consumer, idle or in the middle of a batch; and its messages when it cannot go on."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer

from ringleader.clients.errors import ConnectionLostError, MembershipOverError, RetriableError
from ringleader.clients.fetch.errors import ConsumerClosedError
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Source, consumer, places, read_count, until
from tests.support.ports import free_address


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


def committed(coordinator: Coordinator) -> dict[TopicPartition, int]:
    """The committed offsets, by what was asked for."""
    return {
        (topic.name, part.partition_index): part.committed_offset
        for seen in coordinator.faults.seen("OffsetCommit")
        for topic in seen.request.topics
        for part in topic.partitions
    }


async def idle_until_committed(coordinator: Coordinator) -> None:
    async with consumer(coordinator, auto_offset_reset="latest", auto_commit_interval_ms=50) as one:
        asking = asyncio.create_task(anext(one))
        await until(lambda: len(committed(coordinator)) == 4)
        asking.cancel()
        await asyncio.wait([asking])


async def test_a_consumer_that_idles_at_the_end_commits_where_it_began(
    coordinator: Coordinator, source: Source
) -> None:
    """Records that come between an idle consumer's end and the next one's start are not skipped."""
    source.put(("t", 0), 10)
    await idle_until_committed(coordinator)
    source.put(("t", 0), 5)
    async with consumer(coordinator, auto_offset_reset="latest") as two:
        assert (await two.__anext__()).record.offset == 10


async def test_an_idle_partition_is_handed_over_with_its_place(
    coordinator: Coordinator, source: Source
) -> None:
    source.fill(batches=1, count=10)
    async with consumer(coordinator, auto_offset_reset="latest") as one:
        await one.wait_assigned(PATIENCE_S)
        asking = asyncio.create_task(anext(one))
        for place in places(range(4)):
            await one.position(place)
        async with consumer(coordinator, "b", auto_offset_reset="latest") as two:
            await until(lambda: len(one.assignment()) == len(two.assignment()) == 2)
            assert [await two.position(place) for place in two.assignment()] == [10, 10]
            assert {committed(coordinator)[place] for place in two.assignment()} == {10}
        asking.cancel()
        await asyncio.wait([asking])


async def test_aborted_transactions_and_their_markers_are_committed_past(
    coordinator: Coordinator,
) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=coordinator.bootstrap, transactional_id="aborts", acks="all"
    ) as producer:
        for _ in range(5):
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"x", partition=0)
            await producer.abort_transaction()
    async with consumer(coordinator, isolation_level="read_committed", auto_commit_interval_ms=50) as one:
        asking = asyncio.create_task(anext(one))
        await until(lambda: committed(coordinator).get(("t", 0)) == 10)
        assert await one.position(("t", 0)) == 10
        asking.cancel()
        await asyncio.wait([asking])


async def test_what_the_application_commits_of_a_batch_in_hand_is_not_taken_back(
    coordinator: Coordinator, source: Source
) -> None:
    source.put(("t", 0), 20)
    async with consumer(coordinator, max_poll_records=10, auto_commit_interval_ms=30) as one:
        batch = await one.__anext__()
        await one.commit({batch.topic_partition: OffsetAndMetadata(7, "half")})
        source.put(("t", 1), 10)
        one.seek(("t", 1), 3)
        await until(lambda: committed(coordinator).get(("t", 1)) == 3)
        assert (await one.committed())[batch.topic_partition] == OffsetAndMetadata(7, "half")


async def test_a_position_may_be_asked_for_when_partitions_come_back(
    coordinator: Coordinator, source: Source
) -> None:
    source.fill(batches=1, count=10)
    found: list[dict[TopicPartition, int]] = []

    async def ask(partitions: list[TopicPartition]) -> None:
        found.append({partition: await one.position(partition) for partition in partitions})

    one = consumer(coordinator, on_assigned=ask)
    async with one:
        await read_count(one, 40)
        async with consumer(coordinator, "b"):
            asking = asyncio.create_task(anext(one))
            await until(lambda: len(one.assignment()) == 2)
        await until(lambda: len(one.assignment()) == 4)
        await until(lambda: sum(map(len, found)) == 6)
        assert set(found[-1].values()) == {10}
        source.fill(batches=1, count=1)
        await asyncio.wait_for(asking, PATIENCE_S)


async def test_a_callback_that_waits_for_a_position_does_not_hold_up_the_end(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.Event()

    async def ask(partitions: list[TopicPartition]) -> None:
        waiting.set()
        await one.position(partitions[0])

    coordinator.faults.error("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, times=-1)
    one = consumer(coordinator, on_assigned=ask)
    async with one:
        await waiting.wait()
        async with asyncio.timeout(PATIENCE_S / 2):
            await one.stop()
    assert "raised" not in caplog.text


async def test_records_may_be_asked_for_while_a_callback_waits(
    coordinator: Coordinator, source: Source
) -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_partitions: list[TopicPartition]) -> None:
        waiting.set()
        await go_on.wait()

    source.put(("t", 0))
    async with consumer(coordinator, on_assigned=wait) as one:
        await waiting.wait()
        assert await one.getmany(timeout_s=0.05) == []
        await one.commit()
        go_on.set()
        assert (await one.__anext__()).record.offset == 0


async def test_a_position_is_not_waited_for_longer_than_asked(
    coordinator: Coordinator, source: Source
) -> None:
    coordinator.faults.error("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, times=-1)
    async with consumer(coordinator) as one:
        await until(lambda: len(one.assignment()) == 4)
        async with asyncio.timeout(PATIENCE_S / 2):
            with pytest.raises(RetriableError, match=r"the position of t-0 is not known within 0\.05 s"):
                await one.position(("t", 0), timeout_s=0.05)


@pytest.mark.parametrize("offset", [-1, 2**63])
async def test_an_offset_that_no_log_has_changes_nothing(
    coordinator: Coordinator, source: Source, offset: int
) -> None:
    """A commit of -1 would remove what is committed."""
    source.put(("t", 0), 10)
    async with consumer(coordinator, auto_commit=False, max_poll_records=4) as one:
        await read_count(one, 4)
        await one.commit()
        refused = pytest.raises(ValueError, match=r"offset.* has to be 0 to 9223372036854775807, not")
        with refused:
            one.seek(("t", 0), offset)
        with refused:
            await one.commit({("t", 0): offset})
        with refused:
            one.commit_nowait({("t", 0): OffsetAndMetadata(offset)})
        with refused:
            one.member.store({("t", 0): offset})
        with refused:
            await one.member.commit({("t", 0): offset})
        assert (await one.committed())[("t", 0)].offset == 4
        assert await one.position(("t", 0)) == 4
        assert (await read_count(one, 4)).offsets == {("t", 0): [4, 5, 6, 7]}


async def test_a_slow_coordinator_does_not_hold_back_a_seek(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    coordinator.faults.delay("OffsetFetch", 10.0, times=1)
    async with consumer(coordinator) as one:
        await until(lambda: len(one.assignment()) == 4)
        one.seek_to_beginning(("t", 1))
        async with asyncio.timeout(5.0):
            assert (await one.__anext__()).topic_partition == ("t", 1)


async def test_a_bootstrap_that_cannot_be_reached_is_told_at_the_start() -> None:
    address = free_address()
    one = consumer(address)
    with pytest.raises(ConnectionLostError, match=address):
        await one.start(timeout_s=0.3)
    with pytest.raises(ConsumerClosedError, match="was not started"):
        await one.getmany()


async def test_a_member_that_left_is_reported(coordinator: Coordinator) -> None:
    async with consumer(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await one.member.leave()
        with pytest.raises(MembershipOverError, match="has left the group"):
            await one.getmany(timeout_s=1)
        with pytest.raises(MembershipOverError, match="has left the group"):
            await one.commit()


def test_another_event_loop_is_reported(coordinator: Coordinator) -> None:
    one = consumer(coordinator)
    with asyncio.Runner() as runner:
        runner.run(one.start())

        async def ask() -> None:
            with pytest.raises(RuntimeError, match="in the event loop and thread that called start"):
                await one.getmany(timeout_s=1)
            with pytest.raises(RuntimeError, match="in the event loop and thread that called start"):
                await one.stop()

        asyncio.run(ask())
        with pytest.raises(RuntimeError, match="in the event loop and thread that called start"):
            one.pause(("t", 0))
        runner.run(one.stop())


async def test_arguments_are_checked_where_they_are_given(coordinator: Coordinator) -> None:
    with pytest.raises(ValueError, match="on_revoked has to be something that can be called"):
        consumer(coordinator, on_revoked=5)
    async with consumer(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        with pytest.raises(ValueError, match=r"an offset has to be a whole number, not 5\.5"):
            one.seek(("t", 0), 5.5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="timeout_s is a number of seconds"):
            await one.getmany(timeout_s=-1)
        with pytest.raises(ValueError, match="the number of records"):
            await one.getmany("5")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="timeout_s is a number of seconds"):
            await one.commit(timeout_s="x")  # type: ignore[arg-type]


async def test_a_commit_after_the_end(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0))
    async with consumer(coordinator) as one:
        await read_count(one, 1)
    for offsets in (None, {("t", 0): 1}):
        with pytest.raises(ConsumerClosedError, match="has been stopped"):
            await one.commit(offsets)
        with pytest.raises(ConsumerClosedError, match="has been stopped"):
            one.commit_nowait(offsets)
