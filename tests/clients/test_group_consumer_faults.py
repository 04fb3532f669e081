"""GroupConsumer when things go wrong: no record missed, none twice but what was in hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader import PartitionConsumer
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import CommitFailedError
from ringleader.clients.fetch import fetcher
from ringleader.clients.fetch.errors import PartitionError
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import Compression
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Sink, Source, consumer, places, read_count, until

PASSING = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
]


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


@pytest.mark.parametrize("code", PASSING)
async def test_errors_of_fetch_that_pass(coordinator: Coordinator, source: Source, code: ErrorCode) -> None:
    source.fill()
    rule = coordinator.faults.error("Fetch", code, times=3)
    async with consumer(coordinator) as one:
        sink = await read_count(one, 400)
        assert one.metrics().failed_fetches > 0
    sink.exactly(source)
    assert rule.hits == 3


async def test_a_fetch_that_works_ends_the_waits_of_those_before(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = set()

    class Used(Backoff):
        def next_ms(self) -> int:
            used.add(self)
            return super().next_ms()

    monkeypatch.setattr(fetcher, "Backoff", Used)
    async with PartitionConsumer(
        coordinator.bootstrap, [("t", 0)], auto_offset_reset="earliest", fetch_max_wait_ms=10
    ) as one:
        for count in (1, 2):
            rule = coordinator.faults.drop("Fetch", times=3)
            await until(lambda: rule.hits == 3)  # noqa: B023
            coordinator.produce("t", b"there", partition=0)
            async with asyncio.timeout(PATIENCE_S):
                await anext(one)
            assert len(used) == count


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.OFFSET_NOT_AVAILABLE],
)
async def test_errors_of_list_offsets_that_pass(
    coordinator: Coordinator, source: Source, code: ErrorCode
) -> None:
    source.fill()
    rule = coordinator.faults.error("ListOffsets", code, times=3)
    async with consumer(coordinator) as one:
        (await read_count(one, 400)).exactly(source)
        assert rule.hits == 3
        coordinator.faults.error("ListOffsets", code, times=2)
        assert await one.lag() == dict.fromkeys(places(range(4)), 0)


async def test_errors_that_do_not_pass_are_reported(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10)
    coordinator.faults.error("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with consumer(coordinator) as one:
        with pytest.raises(PartitionError, match=r"t-\d at offset 0: .*TOPIC_AUTHORIZATION_FAILED") as found:
            await one.getone(PATIENCE_S)
        assert found.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for place in places(range(4)):
            one.seek(place, 0)
        assert (await read_count(one, 10)).total == 10
    coordinator.faults.error("ListOffsets", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with consumer(coordinator, group="h") as two:
        with pytest.raises(PartitionError, match="does not give its offsets"):
            await two.getone(PATIENCE_S)


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets", "OffsetFetch", "OffsetCommit", "Metadata"])
async def test_lost_connections(coordinator: Coordinator, source: Source, api: str) -> None:
    source.fill()
    coordinator.faults.drop(api, times=2)
    async with consumer(coordinator, auto_commit_interval_ms=50) as one:
        sink = await read_count(one, 400)
        coordinator.faults.drop(api, times=2)
        coordinator.faults.disconnect()
        source.fill()
        await read_count(one, 800, sink)
        await one.commit()
        committed = await one.committed()
    sink.exactly(source)
    assert {place: at.offset for place, at in committed.items()} == source.counts


async def test_connections_that_break_all_the_time(coordinator: Coordinator, source: Source) -> None:
    sink = Sink()
    async with consumer(coordinator, max_poll_records=20) as one:
        for number in range(1, 11):
            source.fill(batches=1, count=25)
            if number % 2:
                coordinator.faults.disconnect()
            await read_count(one, number * 100, sink)
    sink.exactly(source)


async def test_a_coordinator_that_moves(coordinator: Coordinator, source: Source) -> None:
    source.fill()
    async with consumer(coordinator, auto_commit_interval_ms=20) as one:
        sink = await read_count(one, 200)
        coordinator.faults.move_coordinator()
        await read_count(one, 400, sink)
        await one.commit()
        assert one.member.generation == 1
    sink.exactly(source)
    async with consumer(coordinator) as two:
        assert await two.getmany(timeout_s=0.3) == []


async def test_a_restart(coordinator: Coordinator, source: Source) -> None:
    source.fill()
    async with consumer(coordinator, max_poll_records=30) as one:
        sink = await read_count(one, 200)
        await asyncio.to_thread(coordinator.restart)
        source.fill()
        await read_count(one, 800, sink)
        assert one.member.metrics().times_lost == 0
    sink.exactly(source)


async def test_auto_commits_that_fail_are_made_up_for(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    rule = coordinator.faults.error("OffsetCommit", ErrorCode.UNKNOWN_SERVER_ERROR, times=2)
    async with consumer(coordinator, auto_commit_interval_ms=30) as one:
        await read_count(one, 40)
        assert await one.getmany(timeout_s=0.01) == []
        await until(lambda: rule.hits == 2)
        assert await one.getmany(timeout_s=0.01) == []
        await until(lambda: one.member.metrics().offsets_stored == 0)
        assert {at.offset for at in (await one.committed()).values()} == {10}


async def test_a_commit_after_the_loss(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10)
    async with consumer(coordinator, auto_commit=False) as one:
        await one.__anext__()
        coordinator.expire_member("g", one.member.member_id)
        with pytest.raises(CommitFailedError):
            await one.commit({("t", 0): 10})
        assert (await one.__anext__()).record.offset == 0
        await one.commit()
        assert (await one.committed())[("t", 0)].offset == 10


async def test_slow_answers_do_not_mix_up_anything(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=10, count=10, compression=Compression.LZ4)
    coordinator.faults.delay("Fetch", 0.03, times=20)
    small: dict[str, Any] = {"max_partition_fetch_bytes": 400, "max_poll_records": 7}
    async with consumer(coordinator, **small) as one:
        (await read_count(one, 400)).exactly(source)


async def test_what_waits_at_its_end_does_not_hold_back_the_others(
    coordinator: Coordinator, source: Source
) -> None:
    """A long poll of idle partitions is under way all the time; a busy one needs many fetches meanwhile."""
    async with consumer(coordinator, fetch_max_wait_ms=20_000, max_partition_fetch_bytes=3_000) as one:
        await one.wait_assigned(PATIENCE_S)
        sink = Sink()
        for number in range(1, 31):
            source.put(("t", 0), 10, size=200)
            await read_count(one, number * 10, sink)
    assert sink.offsets == {("t", 0): list(range(300))}
