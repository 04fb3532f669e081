"""The work before each JoinGroup: awaited, bounded, and never in the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.group.machine.joining import FOLLOW_UP_MS
from ringleader.clients.model import Assigned, Lost
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.member_script import MemberScript, PrepareJoin, TellLost
from tests.support.sharding import PATIENCE_S, Diary, member, settled


def preparing(**settings: Any) -> MemberScript:
    script = MemberScript(**settings)
    script.machine.state.prepares = True
    return script.start()


# ---- by script ----


def test_a_join_waits_until_it_is_prepared() -> None:
    script = preparing(request_timeout_ms=2_000)
    script.find()
    assert script.wanted == []
    began_ms = script.now_ms
    assert script.last_reported(PrepareJoin).until_ms == began_ms + 2_000
    script.prepared()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    assert script.wanted == ["JoinGroup"], "the same join, prepared already"
    script.fail("JoinGroup")
    script.wait(1_000)
    script.find()
    assert script.wanted == [], "another join"
    script.prepared()
    assert script.wanted == ["JoinGroup"]


def test_a_preparation_that_does_not_end_is_not_waited_for() -> None:
    script = preparing(request_timeout_ms=2_000)
    script.find()
    script.wait(1_999)
    assert script.wanted == []
    script.wait(1)
    assert script.wanted == ["JoinGroup"]
    script.prepared()
    assert script.wanted == ["JoinGroup"], "too late to matter"


def test_heartbeats_go_on_meanwhile_and_the_rebalance_bounds_it() -> None:
    script = preparing(rebalance_timeout_ms=12_000, given_up=lambda _before, _after: None)
    script.find()
    script.prepared()
    script.settle()
    script.wait(FOLLOW_UP_MS)
    beaten_ms = script.now_ms
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    # As long as on_revoked of an eager member would have.
    assert script.last_reported(PrepareJoin).until_ms == beaten_ms - 3_000 + 12_000 - 1_000
    script.wait(3_000)
    assert script.wanted == ["Heartbeat"]
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.wait(4_999)
    assert "JoinGroup" not in script.wanted
    script.wait(1)
    assert "JoinGroup" in script.wanted


def test_a_rebalance_that_begins_while_it_prepares_bounds_it() -> None:
    """It joins again as it wants to; then the coordinator begins to wait for it, since a heartbeat before."""
    script = preparing(rebalance_timeout_ms=12_000, given_up=lambda _before, _after: None)
    script.find()
    script.prepared()
    script.settle()
    script.rejoin()
    assert script.last_reported(PrepareJoin).until_ms == script.now_ms + 12_000
    script.wait(FOLLOW_UP_MS)
    sent_ms = script.now_ms
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.wait(sent_ms - 3_000 + 12_000 - 1_000 - script.now_ms)
    assert "JoinGroup" in script.wanted


def test_a_rebalance_that_is_over_bounds_nothing() -> None:
    script = preparing(given_up=lambda _before, _after: None)
    script.find()
    script.prepared()
    script.settle()
    script.wait(FOLLOW_UP_MS)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.prepared()
    script.settle(2)
    while script.now_ms < 10 * 60_000:
        script.wait(script.due_ms() - script.now_ms)
        script.beat()
    script.wait(script.due_ms() - script.now_ms)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.wanted == [], "it prepares, as ever"
    script.prepared()
    assert script.wanted == ["JoinGroup"]


def test_removed_while_it_prepares() -> None:
    script = preparing(given_up=lambda _before, _after: None)
    script.find()
    script.prepared()
    script.settle()
    script.rejoin()
    first = script.last_reported(PrepareJoin).number
    script.wait(3_000)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert "removed" in script.last_reported(TellLost).lost.reason
    script.machine.prepared(first, script.now_ms)
    script.look()
    assert script.wanted == [], "that was another join"
    script.prepared()
    assert script.request("JoinGroup").member_id == ""


def test_leaving_while_it_prepares() -> None:
    script = preparing()
    script.find()
    script.leave()
    assert script.kinds()[-1] == "Over"
    script.prepared()
    assert script.wanted == []


# ---- members ----


async def test_it_sees_the_cluster_before_each_join(coordinator: Coordinator) -> None:
    counts: list[dict[str, int]] = []

    async def look(cluster: Cluster) -> None:
        metadata = await cluster.metadata(["t"])
        assert len(coordinator.faults.seen("JoinGroup")) == 2 * bool(counts)
        counts.append(metadata.partition_counts(["t"]))

    diary = Diary()
    async with member(coordinator, diary, before_join=look) as one:
        await one.wait_assigned(PATIENCE_S)
        await one.rejoin("news")
        await diary.until(Assigned, 2)
    assert counts == [{"t": 4}] * 2


async def test_it_may_fail_or_hang(coordinator: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    ways = iter(["fail", "hang", "fail"])
    cancelled: list[str] = []

    async def hook(_cluster: Cluster) -> None:
        if next(ways) == "fail":
            raise KeyError("nothing to be known")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("hang")
            raise

    diary = Diary()
    async with (
        member(coordinator, diary, before_join=hook, request_timeout_ms=300, given_up=lambda *_: None) as one,
    ):
        await one.wait_assigned(PATIENCE_S)
        await one.rejoin("news")
        await diary.until(Assigned, 2)
        async with member(coordinator, given_up=lambda *_: None) as two:
            await settled(one, two)
    assert cancelled == ["hang"]
    assert diary.of(Lost) == []
    assert any("nothing to be known" in record.getMessage() for record in caplog.records)
