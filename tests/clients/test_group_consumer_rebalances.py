"""GroupConsumer while its group changes: what stays is read on, what is in hand is handed over with care."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiokafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.errors import ClientError, CommitFailedError
from ringleader.clients.fetch.model import Batch
from ringleader.clients.model import TopicPartition
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import (
    PATIENCE_S,
    Sink,
    Source,
    consumer,
    fetched_offsets,
    places,
    read_count,
    until,
)

EAGER: dict[str, Any] = {"assignors": ("range",)}


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


class Reported:
    """The arguments of a consumer's callbacks."""

    def __init__(self) -> None:
        self.assigned: list[list[TopicPartition]] = []
        self.revoked: list[list[TopicPartition]] = []
        self.lost: list[list[TopicPartition]] = []

    def options(self) -> dict[str, Any]:
        return {
            "on_assigned": self.assigned.append,
            "on_revoked": self.revoked.append,
            "on_lost": self.lost.append,
        }


async def shared(*consumers: GroupConsumer, sizes: list[int]) -> None:
    """Wait until they have `each` partitions each, all in one generation."""
    await until(
        lambda: (
            [len(one.assignment()) for one in consumers] == sizes
            and len({one.member.assigned.generation for one in consumers if one.member.assigned}) == 1
            and all(one.member.assigned for one in consumers)
        )
    )


@contextlib.asynccontextmanager
async def reading(one: GroupConsumer, sink: Sink) -> AsyncIterator[None]:
    """Reads in a task of its own, to the end of the consumer."""

    async def work() -> None:
        async for batch in one:
            sink.add(batch)

    task = asyncio.create_task(work())
    try:
        yield
        if task.done():
            await task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def stopped(task: asyncio.Task[Any]) -> bool:
    """Whether it had to be cancelled."""
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def test_only_partitions_that_move_are_reported(coordinator: Coordinator) -> None:
    first, second = Reported(), Reported()
    async with consumer(coordinator, **first.options()) as one:
        await shared(one, sizes=[4])
        async with consumer(coordinator, "b", **second.options()) as two:
            await shared(one, two, sizes=[2, 2])
            moved = two.assignment()
        await shared(one, sizes=[4])
        assert [share for share in first.assigned if share] == [places(range(4)), moved]
        assert first.revoked == [moved]
        assert [share for share in second.assigned if share] == [moved]
        assert second.revoked == [moved]
    assert first.revoked == [moved, places(range(4))]
    assert first.lost == second.lost == []


async def test_partitions_that_stay_are_read_on_through_fifty_rebalances(
    coordinator: Coordinator, source: Source
) -> None:
    """Partition 0 never moves: nothing of it is fetched twice, its position does not change, no gap."""
    source.fill(batches=1, count=10)
    sink, other = Sink(), Sink()
    async with consumer(coordinator, max_poll_records=5) as one:
        await read_count(one, 40, sink)
        kept: set[TopicPartition] = set(places(range(4)))
        coordinator.faults.forget_seen()
        async with reading(one, sink):
            for number in range(25):
                async with consumer(coordinator, f"b{number}") as two, reading(two, other):
                    await shared(one, two, sizes=[2, 2])
                    kept &= set(one.assignment())
                    source.fill(batches=1, count=3)
                await shared(one, sizes=[4])
                source.fill(batches=1, count=3)
            total = sum(source.counts.values())
            await until(lambda: sink.total + other.total >= total)
            assert len(kept) == 2
            for place in kept:
                assert sink.offsets[place] == list(range(source.counts[place]))
                fetched = fetched_offsets(coordinator, place)
                assert fetched == sorted(fetched)
                assert await one.position(place) == source.counts[place]
    for place in places(range(4)):
        got = sink.offsets.get(place, []) + other.offsets.get(place, [])
        assert set(got) == set(range(source.counts[place])), place
        if place not in kept:
            # All were idle or auto-committed when they moved: nothing came twice.
            assert sorted(got) == list(range(source.counts[place]))


async def test_a_partition_in_hand_moves_when_the_next_record_is_asked_for(
    coordinator: Coordinator, source: Source
) -> None:
    source.fill(batches=1, count=10)
    reported = Reported()
    async with (
        consumer(coordinator, max_poll_records=10, **reported.options()) as one,
        Admin(coordinator.bootstrap) as admin,
    ):
        await shared(one, sizes=[4])
        batches = await one.getmany(40, PATIENCE_S)
        while sum(map(len, batches)) < 40:
            batches += await one.getmany(40, PATIENCE_S)
        for place in places(range(4)):
            one.seek(place, 0)
        await until(lambda: one.metrics().buffered_bytes > 100)
        batches = await one.getmany(40, PATIENCE_S)
        assert len(batches) == 4
        async with consumer(coordinator, "b") as two:
            # Two of them are to move, and all are in hand.
            await until(lambda: one.member.metrics().revocations > 0 or two.member.generation > 1)
            await asyncio.sleep(0.2)
            assert reported.revoked == []
            assert two.assignment() == []
            assert len(one.assignment()) == 4
            asking = asyncio.create_task(one.getmany(timeout_s=PATIENCE_S))
            await shared(one, two, sizes=[2, 2])
            assert reported.revoked == [two.assignment()]
            committed = await admin.group_offsets("g")
            assert {place: committed[place].offset for place in two.assignment()} == dict.fromkeys(
                two.assignment(), 10
            )
            assert [await two.position(place) for place in two.assignment()] == [10, 10]
            assert await stopped(asking)


async def test_idle_partitions_move_at_once(coordinator: Coordinator, source: Source) -> None:
    """The batch in hand is of a partition that stays, or there is none: nobody waits for the application."""
    async with consumer(coordinator) as one:
        await shared(one, sizes=[4])
        async with consumer(coordinator, "b") as two:
            await shared(one, two, sizes=[2, 2])
            stays = one.assignment()[0]
            source.put(stays, 5)
            batch = await one.__anext__()
            assert batch.topic_partition == stays
        # One is not asked again, and gets the rest; then gives up two of its idle ones.
        await shared(one, sizes=[4])
        moved = Reported()
        async with consumer(coordinator, "c", **moved.options()) as three:
            await until(lambda: len(three.assignment()) > 0 or stays not in one.assignment())
            assert stays not in three.assignment()


async def test_the_wait_for_what_is_in_hand_is_bounded(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    reported = Reported()
    async with consumer(
        coordinator, max_poll_records=40, quiesce_timeout_ms=300, **reported.options()
    ) as one:
        await shared(one, sizes=[4])
        sink = await read_count(one, 40)
        for place in places(range(4)):
            one.seek(place, 0)
        await until(lambda: one.metrics().buffered_bytes > 100)
        assert len(await one.getmany(40, PATIENCE_S)) == 4
        async with consumer(coordinator, "b") as two:
            await shared(one, two, sizes=[2, 2])
            assert reported.lost == [two.assignment()]
            assert reported.revoked == []
            # The records in hand were not committed for the member that lost them.
            assert [await two.position(place) for place in two.assignment()] == [10, 10] or [
                await two.position(place) for place in two.assignment()
            ] == [0, 0]
            again = await read_count(two, 1) if await two.position(two.assignment()[0]) == 0 else sink
            assert again.total


async def test_commits_and_seeks_in_callbacks(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    committed: list[TopicPartition] = []

    async def commit(revoked: list[TopicPartition]) -> None:
        committed.extend(revoked)
        await one.commit()

    def skip(come: list[TopicPartition]) -> None:
        for place in come:
            two.seek(place, 7)

    one = consumer(coordinator, auto_commit=False, on_revoked=commit)
    async with one:
        await read_count(one, 40)
        asking = asyncio.create_task(one.getmany(timeout_s=PATIENCE_S))
        two = consumer(coordinator, "b", on_assigned=skip)
        async with two:
            await shared(one, two, sizes=[2, 2])
            offsets = await two.committed()
            assert {place: offsets[place].offset for place in committed} == dict.fromkeys(committed, 10)
            sink = await read_count(two, 6)
            assert all(offsets == [7, 8, 9] for offsets in sink.offsets.values())
        assert await stopped(asking)


async def test_a_commit_while_revoked_partitions_are_being_given_up(
    coordinator: Coordinator, source: Source
) -> None:
    """The application reads them no more, and its member has them still: all progress is theirs, too."""
    source.fill(batches=1, count=10)

    def slowly(_revoked: list[TopicPartition]) -> None:
        coordinator.faults.delay("OffsetCommit", 0.5, times=1)
        one.commit_nowait()  # the member waits for it before it gives them up

    one = consumer(coordinator, auto_commit=False, on_revoked=slowly)
    async with one:
        await read_count(one, 40)
        async with consumer(coordinator, "b", auto_commit=False) as two:
            while len(one.assignment()) == 4:
                await one.getmany(timeout_s=0.01)
            await one.commit()
            await shared(one, two, sizes=[2, 2])
            assert {offset.offset for offset in (await two.committed()).values()} == {10}


async def test_commits_go_on_while_the_group_rebalances(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    async with consumer(coordinator, auto_commit=False) as one:
        async with consumer(coordinator, "b") as two:
            await shared(one, two, sizes=[2, 2])
            stays = one.assignment()[0]

        async def come_and_go() -> None:
            for number in range(5):
                async with consumer(coordinator, f"b{number}") as two:
                    await shared(one, two, sizes=[2, 2])

        going = asyncio.create_task(come_and_go())
        commits = 0
        while not going.done() or commits < 20:
            await one.commit({stays: commits + 1})
            commits += 1
        await going
        assert stays in one.assignment()
        assert (await one.committed())[stays].offset == commits


async def test_eager_members(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    sink, reported = Sink(), Reported()
    async with consumer(coordinator, **EAGER, **reported.options()) as one, reading(one, sink):
        await until(lambda: sink.total == 40)
        async with consumer(coordinator, "b", **EAGER) as two, reading(two, sink):
            await shared(one, two, sizes=[2, 2])
            assert reported.revoked == [places(range(4))]
            assert len(reported.assigned[-1]) == 2
            source.fill(batches=2, count=10)
            await until(lambda: sink.total >= 120)
        await shared(one, sizes=[4])
    sink.exactly(source)


async def test_beside_another_library(coordinator: Coordinator, source: Source) -> None:
    """In a group with aiokafka, which knows range and no cooperation."""
    source.fill(batches=1, count=10)
    sink = Sink()
    theirs: list[int] = []
    async with consumer(coordinator, **EAGER) as one, reading(one, sink):
        await until(lambda: sink.total == 40)
        other = aiokafka.AIOKafkaConsumer(
            "t",
            bootstrap_servers=coordinator.bootstrap,
            group_id="g",
            partition_assignment_strategy=(RangePartitionAssignor,),
            heartbeat_interval_ms=100,
            auto_offset_reset="earliest",
        )
        await other.start()
        try:
            await until(lambda: len(one.assignment()) == 2)
            source.fill(batches=1, count=10)
            async with asyncio.timeout(PATIENCE_S):
                while len(theirs) < 20:
                    found = await other.getmany(timeout_ms=100)
                    theirs += [record.offset for records in found.values() for record in records]
        finally:
            await other.stop()
        await until(lambda: sink.total == 60)
    assert sorted(theirs) == sorted(list(range(10, 20)) * 2)


async def test_lost_partitions_are_forgotten(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 50)
    reported = Reported()
    async with consumer(coordinator, max_poll_records=10, **reported.options()) as one:
        await one.__anext__()
        coordinator.expire_member("g", one.member.member_id)
        await until(lambda: len(reported.lost) == 1)
        assert reported.lost == [places(range(4))]
        # Records in hand when their partition was lost are not counted; they come again.
        batch = await one.__anext__()
        assert batch.record.offset == 0
        assert await one.committed([("t", 0)]) == {}
    assert reported.revoked == [places(range(4))]


async def test_slow_work_leaves_the_group_and_comes_back(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 50)
    reported = Reported()
    async with consumer(
        coordinator, max_poll_records=10, max_poll_interval_ms=300, **reported.options()
    ) as one:
        await one.__anext__()
        await until(lambda: len(reported.lost) == 1)
        async with Admin(coordinator.bootstrap) as admin:
            (described,) = await admin.describe_groups(["g"])
            while described.members:
                (described,) = await admin.describe_groups(["g"])
        assert (await one.__anext__()).record.offset == 0


async def test_a_member_that_waits_for_records_stays(coordinator: Coordinator, source: Source) -> None:
    reported = Reported()
    async with consumer(coordinator, max_poll_interval_ms=1_000, **reported.options()) as one:
        await one.wait_assigned(PATIENCE_S)
        assert await one.getmany(timeout_s=2.5) == []
        assert reported.lost == []
        source.put(("t", 0))
        assert (await one.__anext__()).record.offset == 0


async def test_static_members_come_back_to_their_own(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    async with consumer(coordinator, "b", group_instance_id="two") as two:
        async with consumer(coordinator, group_instance_id="one") as one:
            await shared(one, two, sizes=[2, 2])
            mine, generation = one.assignment(), one.member.generation
            await read_count(one, 20)
        async with consumer(coordinator, group_instance_id="one") as one:
            assert await one.wait_assigned(PATIENCE_S) == mine
            assert one.member.generation == generation


@pytest.mark.parametrize("options", [EAGER, {}])
async def test_a_lost_partition_is_not_committed_by_its_reader(
    coordinator: Coordinator, source: Source, options: dict[str, Any]
) -> None:
    """A member that is slow with a batch gets an error, and the new owner's commit stays."""
    source.fill(batches=1, count=10)
    slow: dict[str, Any] = {"auto_commit": False, "quiesce_timeout_ms": 100, **options}
    async with consumer(coordinator, **slow) as one:
        await shared(one, sizes=[4])
        batches: list[Batch] = []
        while len(batches) < 4:
            batches = await one.getmany(40, PATIENCE_S)
            if len(batches) < 4:
                one.seek_to_beginning()
        async with consumer(coordinator, "b", auto_commit=False, **options) as two:
            await shared(one, two, sizes=[2, 2])
            (mine, _), (theirs, _) = one.assignment(), two.assignment()
            await two.commit({theirs: 10})
            with pytest.raises(
                CommitFailedError, match=f"{theirs[0]}-{theirs[1]} is not this consumer's now"
            ):
                await one.commit({theirs: 3})
            errors: list[ClientError | None] = []
            one.commit_nowait({theirs: 3}, on_done=errors.append)
            await until(lambda: [type(error) for error in errors] == [CommitFailedError])
            assert (await two.committed([theirs]))[theirs].offset == 10
        # It comes back; the batch in hand is still of the time before.
        await shared(one, sizes=[4])
        with pytest.raises(CommitFailedError, match="was not kept since it was read"):
            await one.commit({theirs: 3})
        assert (await one.committed([theirs]))[theirs].offset == 10
        await one.getmany(40, PATIENCE_S)
        await one.commit({mine: 4})


async def test_another_subscription_at_run_time(coordinator: Coordinator, source: Source) -> None:
    """Partitions that stay are read on, unwanted ones go, new ones come: by names, by a pattern."""
    for topic in ("u", "u2"):
        coordinator.create_topic(topic, 1)
        source.put((topic, 0), 5)
    source.put(("t", 0), 5)
    reported = Reported()
    async with consumer(coordinator, **reported.options()) as one, consumer(coordinator, "b") as two:
        await until(lambda: len(one.assignment()) == len(two.assignment()) == 2)
        await one.subscribe(["t", "u"])
        await until(lambda: ("u", 0) in one.assignment())
        await until(lambda: len(one.assignment()) + len(two.assignment()) == 5)
        await one.subscribe(pattern="u.*")
        await until(lambda: one.assignment() == [("u", 0), ("u2", 0)] and len(two.assignment()) == 4)
        sink = await read_count(one, 10)
        assert sink.offsets == {("u", 0): [0, 1, 2, 3, 4], ("u2", 0): [0, 1, 2, 3, 4]}
        assert reported.lost == []
        wrongs: list[dict[str, Any]] = [{"topics": []}, {"topics": [5]}, {"pattern": "["}, {}]
        for wrong in wrongs:
            with pytest.raises(ValueError, match=r"topics|expression"):
                await one.subscribe(**wrong)
