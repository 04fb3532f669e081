"""The poll interval, work in hand and auto-commit on an Apache Kafka broker, as on our own coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.clients.errors import CommitFailedError, RetriableError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import Lost, OffsetAndMetadata, Revoked
from tests.interop.clients.team import PARTITIONS, TOPIC
from tests.interop.secured import Door, Secured
from tests.support.sharding import PATIENCE_S, Diary, member, settled

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all

NEVER_MS = 3_600_000


def at(door: Door, group: str, diary: Diary | None = None, **options: Any) -> GroupMember:
    return member(door.bootstrap, diary, group=group, **door.security, **options)


async def test_one_that_stops_polling_leaves_and_comes_back(door: Door, group: str) -> None:
    diary = Diary()
    async with at(door, group, diary, max_poll_interval_ms=500) as one, at(door, group) as two:
        await settled(one, two)
        lost = await diary.until(Lost)
        assert lost.reason.startswith("consumer poll timeout has expired")
        async with asyncio.timeout(PATIENCE_S):
            while (await two.wait_assigned()).generation <= lost.generation:  # noqa: ASYNC110 -- it asks
                await asyncio.sleep(0.01)
        with pytest.raises(CommitFailedError, match="out of the group"):
            await one.commit({(TOPIC, 0): 1})
        async with one.working() as again:
            assert again.generation > lost.generation
            assert again.member_id != lost.member_id


async def test_a_static_member_that_stops_polling_has_its_share_again(door: Door, group: str) -> None:
    diary = Diary()
    async with at(door, group, diary, max_poll_interval_ms=300, group_instance_id="first") as one:
        before = await one.wait_assigned(PATIENCE_S)
        await diary.until(Lost)
        again = await one.wait_assigned(PATIENCE_S)
        assert (again.generation, again.assignment) == (before.generation, before.assignment)


async def test_work_in_hand_and_stored_offsets_come_before_the_rejoin(door: Door, group: str) -> None:
    diary, entered, may_end = Diary(), asyncio.Event(), asyncio.Event()

    async def work(one: GroupMember) -> None:
        async with one.working() as share:
            entered.set()
            await may_end.wait()
            one.store({(TOPIC, 0): 42}, generation=share.generation)

    async with at(door, group, diary, auto_commit_interval_ms=NEVER_MS) as one:
        task = asyncio.create_task(work(one))
        await entered.wait()
        async with at(door, group) as two:
            with pytest.raises(TimeoutError):
                await two.wait_assigned(1)
            assert diary.of(Revoked) == []
            may_end.set()
            await task
            await settled(one, two)
            assert await two.committed() == {(TOPIC, 0): OffsetAndMetadata(42)}
        assert diary.of(Lost) == []


async def test_a_cooperative_member_commits_while_it_joins(door: Door, group: str) -> None:
    """Again and again, through rebalances; nothing is lost, and nothing goes back."""
    diary = Diary()
    committed: list[int] = []

    def consumer(name: str, noted: Diary) -> GroupMember:
        return consumer_member(
            door.bootstrap,
            group,
            [TOPIC],
            assignors=["cooperative-sticky"],
            client_id=name,
            heartbeat_interval_ms=50,
            on_assigned=noted.note,
            on_lost=noted.note,
            on_revoked=noted.note,
            **door.security,
        )

    async with consumer("one", diary) as one:
        await one.wait_assigned(PATIENCE_S)

        async def commit_on() -> None:
            offset = 0
            while True:
                offset += 1
                try:
                    await one.commit({(TOPIC, 0): offset})
                except CommitFailedError:
                    continue  # a rebalance came between
                committed.append(offset)

        task = asyncio.create_task(commit_on())
        async with consumer("two", Diary()) as two:
            async with asyncio.timeout(PATIENCE_S):
                while len(partitions_of(await two.wait_assigned())) != PARTITIONS // 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        await one.rejoin("once more")
        count = len(committed)
        async with asyncio.timeout(PATIENCE_S):
            while len(committed) < count + 20:  # noqa: ASYNC110 -- commits tell nobody
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        found = (await one.committed())[TOPIC, 0].offset
        assert found in (committed[-1], committed[-1] + 1)
        assert diary.of(Lost) == []


async def test_offsets_of_topics_that_do_not_exist_are_refused(
    door: Door, group: str, secured: Secured
) -> None:
    async with at(door, group) as one:
        await one.wait_assigned(PATIENCE_S)
        with pytest.raises(RetriableError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await one.commit({("no such topic", 0): 1}, timeout_s=0.5)
