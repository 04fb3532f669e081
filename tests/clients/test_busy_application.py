"""Applications whose event loop stands still, and applications that stop: as processes, with their
messages."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any

import pytest

from ringleader.clients.errors import CommitFailedError
from ringleader.clients.group.membership import SyncGroupMember
from ringleader.clients.model import Assigned, Lost, MemberProtocol
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary, assign, member, settled

SESSION_MS = 1_000


@pytest.mark.parametrize("way", ["sleep", "busy"])
async def test_a_loop_that_stands_still_for_three_sessions_costs_no_membership(way: str) -> None:
    with Coordinator(topics={"t": 1}, group_min_session_timeout_ms=100) as coordinator:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.blocked_member",
            coordinator.bootstrap,
            way,
            str(3 * SESSION_MS / 1_000),
            str(SESSION_MS),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        found = json.loads(output)
        assert (found["same"], found["told"], found["committed"]) == (True, ["assigned"], 7)
        assert found["beats"] >= 3
        joins = coordinator.faults.seen("JoinGroup")
        assert len(joins) == 2, "one to get its member id, one to join"


async def test_one_that_stops_polling_leaves_and_comes_back(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    diary = Diary()
    async with member(coordinator, diary, max_poll_interval_ms=500) as one, member(coordinator) as two:
        await settled(one, two)
        lost = await diary.until(Lost)
        assert lost.reason.startswith("consumer poll timeout has expired: no progress for 0.5")
        async with asyncio.timeout(PATIENCE_S):
            while (await two.wait_assigned()).generation <= lost.generation:  # noqa: ASYNC110 -- it asks
                await asyncio.sleep(0.01)
        with pytest.raises(CommitFailedError, match="out of the group: consumer poll timeout"):
            await one.commit({("t", 0): 1})
        assert (one.metrics().poll_expirations, one.metrics().times_lost) == (1, 1)
        assert one.metrics().phase == "out of the group until the application polls"
        coordinator.faults.forget_seen()
        await asyncio.sleep(0.5)
        assert {seen.api for seen in coordinator.faults.seen()} == {"Heartbeat"}, "the other one's: it is out"
        one.polled()
        polling = asyncio.create_task(keep_polling(one))
        await settled(one, two)
        polling.cancel()
        await asyncio.wait([polling])
    journal = [r.getMessage() for r in caplog.records if r.name == "ringleader"]
    assert any("consumer poll timeout has expired" in line for line in journal), journal


async def keep_polling(one: Any) -> None:
    while True:
        one.polled()
        await asyncio.sleep(0.05)


async def test_waiting_for_a_share_is_progress(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary, max_poll_interval_ms=200) as one:
        await one.wait_assigned(PATIENCE_S)
        await diary.until(Lost)
        await one.wait_assigned(PATIENCE_S)
        await diary.until(Lost, 2)
        async with one.working():
            pass
        assert len(diary.of(Assigned)) == 3


async def test_an_on_revoked_that_takes_longer_than_the_poll_interval(coordinator: Coordinator) -> None:
    """The application waits for the member while it works for it: nothing stands in anybody's way."""
    slow = Diary(Revoked=lambda _revoked: asyncio.sleep(1.0))
    async with member(coordinator, slow, max_poll_interval_ms=300) as one:

        async def loop() -> None:
            while True:
                async with one.working():
                    await asyncio.sleep(0.02)

        polling = asyncio.create_task(loop())
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator) as two:
            await settled(one, two)
        polling.cancel()
        await asyncio.wait([polling])
    assert slow.of(Lost) == []


async def test_a_static_member_that_stops_polling_says_nothing(coordinator: Coordinator) -> None:
    diary = Diary()
    options: dict[str, Any] = {"max_poll_interval_ms": 300, "group_instance_id": "one"}
    async with member(coordinator, diary, **options) as one:
        first = await one.wait_assigned(PATIENCE_S)
        await diary.until(Lost)
        assert coordinator.faults.seen("LeaveGroup") == []
        again = await one.wait_assigned(PATIENCE_S)
        assert again.generation == first.generation, "back before its session was over: nobody noticed"
        assert again.member_id != first.member_id
    assert coordinator.faults.seen("LeaveGroup") == []


def test_a_synchronous_member_that_stops_polling(coordinator: Coordinator) -> None:
    lost: list[Lost] = []
    options: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    options |= {"max_poll_interval_ms": 200, "on_lost": lost.append, "assign": assign}
    with SyncGroupMember(coordinator.bootstrap, "jobs", **options) as one:
        one.wait_assigned(PATIENCE_S)
        deadline_s = time.monotonic() + PATIENCE_S
        while not lost and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert "consumer poll timeout has expired" in lost[0].reason
        with one.working() as share:
            assert share.member_id != lost[0].member_id
