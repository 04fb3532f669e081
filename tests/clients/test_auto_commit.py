"""Stored offsets are committed: every interval, before a share moves, at the end; never for a lost share."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from ringleader.clients.errors import CommitFailedError
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.subscription import consumer_member, group_member, partitions_of
from ringleader.clients.model import Assigned, Lost, MemberProtocol, OffsetAndMetadata, Offsets, Revoked
from ringleader.clients.offsets.stored import StoredOffsets
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary, assign, member, settled

PLACE = ("t", 0)
NEVER_MS = 3_600_000
"""An interval that does not come: what is committed is committed at an end."""


async def until_committed(one: GroupMember, offset: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await one.committed()).get(PLACE) != OffsetAndMetadata(offset):  # noqa: ASYNC110 -- it asks
            await asyncio.sleep(0.01)


def test_stored_offsets_are_forgotten_when_committed_or_lost() -> None:
    stored = StoredOffsets("g", lambda generation: generation == 3)
    with pytest.raises(CommitFailedError, match="no assignment"):
        stored.store({PLACE: 1}, None)
    stored.assigned(3)
    with pytest.raises(CommitFailedError, match="generation 2 is over, this is generation 3"):
        stored.store({PLACE: 1}, 2)
    stored.store({PLACE: 1, ("t", 1): 1}, 3)
    before = stored.uncommitted()
    stored.store({PLACE: 2}, None)
    stored.committed(before)
    assert stored.uncommitted() == {PLACE: 2}, "what came after the commit stays"
    stored.store({("t", 2): 5}, None)
    stored.replaced({PLACE: 9})
    assert stored.uncommitted() == {("t", 2): 5}
    assert stored.forget([("t", 2), ("t", 3)]) == 1
    stored.store({PLACE: 3}, None)
    assert stored.forget() == 1
    with pytest.raises(CommitFailedError):
        stored.store({PLACE: 4}, 3)
    assert stored.uncommitted() == {}


async def test_stored_offsets_are_committed_every_interval(coordinator: Coordinator) -> None:
    async with member(coordinator, auto_commit_interval_ms=50) as one:
        await one.wait_assigned(PATIENCE_S)
        one.store({PLACE: 1, ("t", 1): 7})
        one.store({PLACE: 2})
        await until_committed(one, 2)
        commits = len(coordinator.faults.seen("OffsetCommit"))
        await asyncio.sleep(0.3)
        assert len(coordinator.faults.seen("OffsetCommit")) == commits, "nothing new is not committed again"
        assert one.metrics().offsets_stored == 0
        one.store({PLACE: 3}, generation=one.generation)
        await until_committed(one, 3)


async def test_a_commit_that_failed_is_made_at_the_next_interval(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    async with member(coordinator, auto_commit_interval_ms=50) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=3)
        one.store({PLACE: 1})
        await until_committed(one, 1)
    assert sum("auto-commit of 1 partitions failed" in r.message for r in caplog.records) == 3


async def test_what_the_member_does_not_have_any_more_is_not_committed(coordinator: Coordinator) -> None:
    """The application hears of it later than the member, and its reader still has it."""

    class Reading:
        def uncommitted(self) -> tuple[int, Offsets]:
            return one.generation, {PLACE: OffsetAndMetadata(5), ("u", 0): OffsetAndMetadata(7)}

        def committed(self, offsets: Offsets) -> None:
            assert set(offsets) == {PLACE}

    coordinator.create_topic("u", 1)
    options: dict[str, Any] = {"auto_commit_interval_ms": 20}
    one = group_member("", GroupMember, coordinator.bootstrap, "g", ["t"], options, consumed=Reading())
    async with one:
        await one.wait_assigned(PATIENCE_S)
        await until_committed(one, 5)
    assert coordinator.committed("g") == {PLACE: 5}


async def test_without_an_interval_nothing_is_committed_by_itself(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        one.store({PLACE: 1})
    assert coordinator.faults.seen("OffsetCommit") == []


async def test_what_was_stored_before_a_commit_turns_that_back_at_no_end(coordinator: Coordinator) -> None:
    async with member(coordinator, auto_commit_interval_ms=NEVER_MS) as one:
        await one.wait_assigned(PATIENCE_S)
        one.store({PLACE: 5, ("t", 1): 7})
        await one.commit({PLACE: 9})
    async with member(coordinator) as two:
        assert await two.committed() == {PLACE: OffsetAndMetadata(9), ("t", 1): OffsetAndMetadata(7)}


@pytest.mark.parametrize("end", ["stop", "leave", "rebalance"])
async def test_stored_offsets_are_committed_after_on_revoked(coordinator: Coordinator, end: str) -> None:
    held: list[GroupMember] = []

    async def finish(revoked: Revoked) -> None:
        held[0].store({PLACE: 10 + revoked.generation})

    one = member(coordinator, Diary(Revoked=finish), auto_commit_interval_ms=NEVER_MS)
    held.append(one)
    await one.start()
    await one.wait_assigned(PATIENCE_S)
    one.store({PLACE: 1, ("t", 1): 5})
    if end == "stop":
        await one.stop()
    elif end == "leave":
        await one.leave("done")
    async with member(coordinator, auto_commit_interval_ms=NEVER_MS) as two:
        await two.wait_assigned(PATIENCE_S)
        assert await two.committed() == {PLACE: OffsetAndMetadata(11), ("t", 1): OffsetAndMetadata(5)}
        if end == "rebalance":
            order = [one.api for one in coordinator.faults.seen()]
            joins = [index for index, api in enumerate(order) if api == "JoinGroup"]
            assert order.index("OffsetCommit") < joins[-1], "before it joined again"
            await one.stop()


async def test_a_commit_that_does_not_come_through_holds_nobody_for_long(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    """And what could not be committed for the old share is not committed for the next one."""
    diary = Diary()
    options: dict[str, Any] = {"auto_commit_interval_ms": NEVER_MS, "auto_commit_timeout_ms": 300}
    async with member(coordinator, diary, **options) as one:
        await one.wait_assigned(PATIENCE_S)
        rule = coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=-1)
        one.store({PLACE: 1})
        async with member(coordinator) as two:
            await settled(one, two)
            assert rule.hits > 0
            coordinator.faults.clear()
            coordinator.faults.forget_seen()
            assert one.metrics().offsets_stored == 0
    assert coordinator.faults.seen("OffsetCommit") == []
    assert diary.of(Lost) == []
    assert any("1 stored offsets of generation 1 were not committed" in r.message for r in caplog.records)


async def test_offsets_stored_for_a_lost_share_are_never_committed(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary, auto_commit_interval_ms=NEVER_MS) as one:
        share = await one.wait_assigned(PATIENCE_S)
        one.store({PLACE: 1})
        coordinator.expire_member("jobs", share.member_id)
        await diary.until(Lost)
        assert one.metrics().offsets_stored == 0
        again = await diary.until(Assigned, 2)
        with pytest.raises(CommitFailedError, match="is over"):
            one.store({PLACE: 2}, generation=share.generation - 1)
        one.store({("t", 1): 3}, generation=again.generation)
    async with member(coordinator) as two:
        assert await two.committed() == {("t", 1): OffsetAndMetadata(3)}


async def test_a_revocation_that_was_cut_off_commits_nothing(coordinator: Coordinator) -> None:
    held: list[GroupMember] = []

    async def never(_revoked: Revoked) -> None:
        held[0].store({PLACE: 5})
        await asyncio.Event().wait()

    diary = Diary(Revoked=never)
    held.append(member(coordinator, diary, auto_commit_interval_ms=NEVER_MS, quiesce_timeout_ms=300))
    async with held[0] as one:
        await one.wait_assigned(PATIENCE_S)
        await one.rejoin("news")
        await diary.until(Lost)
        await diary.until(Assigned, 2)
        diary._hooks.clear()
    assert coordinator.faults.seen("OffsetCommit") == []


async def test_a_cooperative_member_commits_before_it_joins_and_keeps_what_stays(
    coordinator: Coordinator,
) -> None:
    """Progress that moved away and could not be committed is dropped; the rest is committed later."""

    def consumer(diary: Diary, **options: Any) -> GroupMember:
        return consumer_member(
            coordinator.bootstrap,
            "jobs",
            ["t"],
            assignors=["cooperative-sticky"],
            heartbeat_interval_ms=50,
            auto_commit_interval_ms=NEVER_MS,
            auto_commit_timeout_ms=200,
            on_assigned=diary.note,
            on_revoked=diary.note,
            on_lost=diary.note,
            **options,
        )

    first, second = Diary(), Diary()
    async with consumer(first) as one:
        await first.until(Assigned)
        one.store({("t", p): 10 + p for p in range(4)})
        await one.rejoin("news")
        await first.until(Assigned, 2)
        assert one.metrics().offsets_stored == 0, "committed before it joined again"
        assert {p: o.offset for (_, p), o in (await one.committed()).items()} == {0: 10, 1: 11, 2: 12, 3: 13}
        one.store({("t", p): 20 + p for p in range(4)})
        rule = coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=-1)
        async with consumer(second, client_id="two") as two:
            while not second.of(Assigned) or not partitions_of(second.of(Assigned)[-1]):
                await second.until(Assigned, len(second.of(Assigned)) + 1)
            assert rule.hits > 0
            coordinator.faults.clear()
            keeps = partitions_of(await one.wait_assigned(PATIENCE_S))
            assert one.metrics().offsets_stored == len(keeps) == 2
            moved = partitions_of(await two.wait_assigned(PATIENCE_S))
            two.store(dict.fromkeys(moved, 30))
        await asyncio.sleep(0)
    async with consumer(Diary()) as three:
        found = {place: value.offset for place, value in (await three.committed()).items()}
    assert found == {place: 20 + place[1] for place in keeps} | dict.fromkeys(moved, 30)


def test_a_synchronous_member_stores_from_any_thread(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    options: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    options |= {"auto_commit_interval_ms": 20, "assign": assign}
    with SyncGroupMember(coordinator.bootstrap, "jobs", **options) as one:
        share = one.wait_assigned(PATIENCE_S)

        def work(partition: int) -> None:
            for offset in range(1, 500):
                one.store({("t", partition): offset}, generation=share.generation)

        threads = [threading.Thread(target=work, args=(partition,)) for partition in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with SyncGroupMember(coordinator.bootstrap, "jobs", **options) as two:
        assert two.committed() == {("t", partition): OffsetAndMetadata(499) for partition in range(4)}
    assert not caplog.records
