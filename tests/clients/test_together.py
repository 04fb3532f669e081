"""Members and the real group machine together, through joins, kills, cut connections and crashes, by seed."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.member_world import SHARDS, World
from tests.support.shares import share

CALM_MS = 90_000
"""Longer than all timeouts one after the other."""


def test_members_come_and_go(seed: int) -> None:
    world = World(seed)
    counts = []
    for _ in range(4):
        world.add()
        world.run(30_000)
        world.check_calm()
        counts.append([len(m.held.assignment) for m in world.members])
    for _ in range(3):
        world.leave(world.members[0])
        world.run(30_000)
        world.check_calm()
        counts.append([len(m.held.assignment) for m in world.members])
    assert [sorted(c) for c in counts] == [[12], [6, 6], [4, 4, 4], [3, 3, 3, 3], [4, 4, 4], [6, 6], [12]]
    assert not any(m.lost for m in world.members)


def test_a_killed_member_is_replaced_after_its_session(seed: int) -> None:
    world = World(seed)
    for _ in range(3):
        world.add()
    world.run(30_000)
    world.kill(world.members[0])
    world.run(9_000)
    assert sum(len(m.held.assignment) for m in world.members if m.machine.state.held) < SHARDS
    world.run(20_000)
    world.check_calm()


def test_a_crashed_coordinator_costs_nobody_its_share(seed: int) -> None:
    """Down for longer than the sessions: they join again when it is back."""
    world = World(seed)
    for _ in range(5):
        world.add()
    world.run(60_000)
    world.check_calm()
    before = [(m.machine.state.generation, m.held.assignment) for m in world.members]
    world.crash()
    world.run(40_000)
    world.recover()
    world.run(CALM_MS)
    world.check_calm()
    assert [(m.machine.state.generation, m.held.assignment) for m in world.members] == before
    assert not any(m.lost for m in world.members)


def test_a_member_that_holds_on_too_long_is_told_and_comes_back(seed: int) -> None:
    world = World(seed)
    slow = world.add()
    slow.slow_ms = 10**9
    world.run(20_000)
    world.add()
    world.run(CALM_MS)
    assert any("on_revoked did not end in time" in reason for reason in slow.lost)
    world.check_calm()


def test_a_rejoin_of_the_leader_makes_a_new_generation(seed: int) -> None:
    world = World(seed)
    for _ in range(3):
        world.add()
    world.run(30_000)
    before = world.members[0].machine.state.generation
    leader = next(m for m in world.members if m.held.is_leader)
    leader.step(lambda: leader.machine.rejoin("topics changed", world.now_ms))
    world.run(30_000)
    world.check_calm()
    assert world.members[0].machine.state.generation == before + 1
    assert any("topics changed" in line for line in world.journal)


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(10, whole=40)), indirect=True)
def test_calm_follows_after_any_events(seed: int) -> None:
    """No shard has two owners in one generation, ever; when all is calm, every shard has one."""
    world = World(seed)
    world.prepares = seed % 2 == 0
    settings = {"max_poll_interval_ms": 15_000} if seed % 3 == 0 else {}
    for _ in range(world.random.randint(1, 6)):
        world.add(**settings)
    for _ in range(30):
        world.run(world.random.choice([10, 200, 3_000, 12_000]))
        match world.random.randint(0, 7):
            case 0 | 1 if len(world.members) < 12:
                world.add(**settings)
            case 2 if world.members:
                world.kill(world.random.choice(world.members))
            case 3 if world.members:
                world.leave(world.random.choice(world.members))
            case 4 if world.up:
                world.crash()
            case 5 | 6 if world.members:
                world.cut(world.random.choice(world.members))
            case 7 if world.members and settings:
                some = world.random.choice(world.members)
                some.polls = not some.polls
            case _ if world.members:
                some = world.random.choice(world.members)
                some.step(partial(some.machine.rejoin, "as it likes", world.now_ms))
        if not world.up and world.random.random() < 0.6:
            world.recover()
    if not world.up:
        world.recover()
    for some in world.members:
        some.polls = True
    world.run(CALM_MS)
    world.check_calm()
    assert not any(m.over for m in world.members)


def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    def run() -> list[str]:
        world = World(seed)
        for _ in range(4):
            world.add()
            world.run(2_000)
        world.kill(world.members[1])
        world.run(CALM_MS)
        return world.journal

    assert run() == run()


def test_many_members(seed: int) -> None:
    world = World(seed)
    for _ in range(200):
        world.add()
    world.run(60_000)
    world.check_calm()
    assert sum(len(m.held.assignment) > 0 for m in world.members) == SHARDS
