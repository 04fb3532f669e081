"""The cost of work, counted in calls instead of seconds: the same on every machine."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.messages import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.coordinator.groups.script import Call


def calls(work: Callable[[], Any]) -> int:
    """How many Python and C functions `work` calls."""
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


class _Big:
    """A group that forms all at once."""

    def __init__(self, size: int) -> None:
        ids = itertools.count()
        self.size = size
        self.shard = Shard(0, GroupSettings(), lambda prefix: f"{prefix}-{next(ids)}")
        self.shard.loaded(0, 0)
        self.joined: list[JoinGroupResponse] = []

    def pump(self, now_ms: int) -> list[Any]:
        """Everything up to a time; the answers."""
        answers = []
        self.shard.tick(now_ms)
        while self.shard.dirty:
            outbox = self.shard.drain()
            answers += [answer.response for answer in outbox.answers]
            if outbox.appends:
                self.shard.durable(outbox.appends[-1].position, now_ms)
        return answers

    def join(self) -> None:
        """Everybody joins (v3: at once), and the initial delay passes."""
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0"),
                JoinGroupRequestProtocol("x", b""),
            ],
        )
        for _ in range(self.size):
            self.shard.handle(request, Call("a", "join", 3, "c"), 0)
        self.joined = [one for now_ms in (0, 3_000, 6_000) for one in self.pump(now_ms)]

    def sync(self) -> None:
        """Everybody syncs."""
        leader = self.joined[0].leader
        everybody = [SyncGroupRequestAssignment(one.member_id, b"mine") for one in self.joined]
        for one in self.joined:
            request = SyncGroupRequest(
                group_id="g",
                generation_id=one.generation_id,
                member_id=one.member_id,
                assignments=everybody if one.member_id == leader else [],
            )
            self.shard.handle(request, Call("a", "sync", 3, "c"), 6_000)
        answers = self.pump(6_000)
        assert [answer.assignment for answer in answers] == [b"mine"] * self.size


def test_forming_a_group_costs_each_member_the_same_however_many_there_are() -> None:
    once, small, large = _Big(2), _Big(200), _Big(1_600)
    once.join()  # loads the codecs of the records
    once.sync()
    assert calls(large.join) < 8.8 * calls(small.join)
    assert len(large.joined) == 1_600
    assert calls(large.sync) < 8.8 * calls(small.sync)


def test_a_heartbeat_is_a_few_lookups_and_leaves_nothing_to_do() -> None:
    big = _Big(50)
    big.join()
    big.sync()
    beat = big.shard.heartbeat
    member_id, generation = big.joined[7].member_id, big.joined[7].generation_id
    deadlines = len(big.shard._core.deadlines)

    def beats() -> None:
        for now_ms in range(6_000, 9_000):
            assert beat("g", generation, member_id, None, now_ms) == 0

    # heartbeat itself and its two dict lookups
    assert calls(beats) <= 3_000 * 3 + 10
    assert not big.shard.dirty
    assert len(big.shard._core.deadlines) == deadlines


def test_members_that_come_and_go_leave_nothing_behind() -> None:
    big = _Big(1)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", bytes(1_000))],
    )
    for now_ms in range(0, 40_000, 10):
        call = Call("a", "join", 3, "c")
        big.shard.handle(request, call, now_ms)
        big.pump(now_ms)
    for now_ms in range(1_000_000_000, 1_000_000_100, 10):
        big.pump(now_ms)
    core = big.shard._core
    assert not core.groups["g"].members
    assert not core.parked
    assert len(core.deadlines) < 4_000
