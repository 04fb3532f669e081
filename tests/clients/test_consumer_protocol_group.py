"""Members of the consumer protocol (KIP-848) together, on a simulated network that loses and delays."""

from __future__ import annotations

import pytest

from ringleader.clients.group.machine.phases import Phase
from tests.support.consumer_protocol_world import REBALANCE_MS, SESSION_MS, World
from tests.support.shares import share

STEPS = 30


def settles(world: World) -> None:
    """In quiet times all partitions get exactly one owner each, evenly."""
    world.rough = False
    world.run(2 * (SESSION_MS + REBALANCE_MS))
    living = [one for one in world.members if one.alive and not one.ended]
    assert sorted(world.group.members) == sorted(one.name for one in living)
    for one in living:
        assert one.machine.state.phase is Phase.STABLE
        assert one.has == world.group.target[one.name]
        assert one.machine.state.generation == world.group.members[one.name].epoch
    if living:
        counts = [len(one.has) for one in living]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == sum(world.group.topics.values())


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(4, whole=12)), indirect=True)
def test_no_partition_has_two_owners_and_each_gets_one(seed: int) -> None:
    world = World(seed)
    chance = world.random
    for _ in range(STEPS):
        living = [one for one in world.members if one.alive and not one.ended]
        what = chance.choice(("join", "join", "leave", "crash", "restart", "grow", "topics", "wait", "wait"))
        if what == "join" and len(living) < 5:
            world.join()
        elif what == "leave" and living:
            chance.choice(living).leave()
        elif what == "crash" and living:
            chance.choice(living).alive = False
        elif what == "restart":
            world.restart(chance.randint(100, 5_000))
        elif what == "grow":
            world.group.topics["u"] += 1
            world.group.changed()
        elif what == "topics" and living:
            one = chance.choice(living)
            one.topics = chance.choice((["t"], ["t", "u"]))
            one.machine.rejoin("other topics", world.now_ms)
            one.pump()
        world.run(chance.choice((10, 500, 3_000, 10_000)))
    for one in world.members:
        one.topics = ["t", "u"]
        if one.alive and not one.ended:
            one.machine.rejoin("all topics", world.now_ms)
            one.pump()
    settles(world)
    assert [one.error for one in world.members if one.error is not None] == []


@pytest.mark.parametrize("seed", range(5), indirect=True)
def test_static_members_are_back_with_what_they_had(seed: int) -> None:
    world = World(seed)
    world.rough = False
    old = [world.join(f"i{number}") for number in range(3)]
    settles(world)
    before = [one.has for one in old]
    for number, one in enumerate(old):
        one.leave()
        world.run(500)
        assert one.ended
        back = world.join(f"i{number}")
        world.run(2_000)
        assert back.has == before[number]
    settles(world)
    assert [one.has for one in world.members[3:]] == before
