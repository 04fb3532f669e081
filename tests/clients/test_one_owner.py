"""Nothing is worked on by two members at a time, whoever joins and leaves; rebalances while a loop is
busy."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import Assigned, Lost, MemberProtocol, Revoked
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary, assign, member, shards

Pieces = Callable[[Assigned], list[Any]]


class Floor:
    """The current worker of each partition. A member that finds another one there writes it down."""

    def __init__(self) -> None:
        self.busy: dict[Any, str] = {}
        self.clashes: list[str] = []
        self.done: dict[Any, int] = {}

    async def work(self, name: str, one: GroupMember, pieces: Pieces, rng: random.Random) -> None:
        """Work on one piece of the share after the other, until cancelled."""
        while True:
            async with one.working() as share:
                mine = pieces(share)
                piece = rng.choice(mine) if mine else None
                if piece is None:
                    await asyncio.sleep(0.005)
                    continue
                if piece in self.busy:
                    self.clashes.append(f"{piece}: {name} and {self.busy[piece]}")
                self.busy[piece] = name
                try:
                    await asyncio.sleep(rng.random() * 0.06)
                finally:
                    if self.busy.get(piece) == name:
                        del self.busy[piece]
                self.done[piece] = self.done.get(piece, 0) + 1


def eager(coordinator: Coordinator, name: str, diary: Diary) -> GroupMember:
    return member(coordinator, diary, client_id=name, heartbeat_interval_ms=20)


def cooperative(coordinator: Coordinator, name: str, diary: Diary) -> GroupMember:
    return consumer_member(
        coordinator.bootstrap,
        "jobs",
        ["t"],
        assignors=["cooperative-sticky"],
        client_id=name,
        heartbeat_interval_ms=20,
        on_lost=diary.note,
    )


@pytest.mark.parametrize("seed", range(3), indirect=True)
@pytest.mark.parametrize(("make", "pieces"), [(eager, shards), (cooperative, partitions_of)])
async def test_nobody_works_on_what_somebody_else_works_on(
    caplog: pytest.LogCaptureFixture,
    coordinator: Coordinator,
    make: Callable[[Coordinator, str, Diary], GroupMember],
    pieces: Pieces,
    seed: int,
) -> None:
    caplog.set_level(logging.INFO)
    floor, rng, diary = Floor(), random.Random(seed), Diary()
    team: list[tuple[GroupMember, asyncio.Task[None]]] = []

    async def come(name: str) -> None:
        one = make(coordinator, name, diary)
        await one.start()
        team.append((one, asyncio.create_task(floor.work(name, one, pieces, rng))))

    async def go() -> None:
        one, hand = team.pop(rng.randrange(len(team)))
        await one.stop()
        hand.cancel()
        await asyncio.wait([hand])

    for step in range(12):
        if not team or (rng.random() < 0.55 and len(team) < 4):
            await come(f"m{step}")
        elif rng.random() < 0.6:
            await go()
        else:
            await rng.choice(team)[0].rejoin("as it likes")
        await asyncio.sleep(rng.random() * 0.1)
    await come("last")
    deadline_s = time.monotonic() + PATIENCE_S
    while sum(floor.done.values()) < 20:
        stuck = [(one.metrics().phase, one.assigned, hand) for one, hand in team]
        assert time.monotonic() < deadline_s, stuck
        await asyncio.sleep(0.01)
    while team:
        await go()
    assert floor.clashes == []
    assert diary.of(Lost) == []


async def test_a_rebalance_while_the_loop_is_blocked_waits_for_it(coordinator: Coordinator) -> None:
    """Longer than two sessions; the callback comes when the loop runs again, and nothing is lost."""
    diary = Diary()
    options: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    options |= {"assign": assign, "heartbeat_interval_ms": 50, "session_timeout_ms": 6_000}
    async with member(coordinator, diary) as one:
        first = await one.wait_assigned(PATIENCE_S)
        two = SyncGroupMember(coordinator.bootstrap, "jobs", **options)
        two.start()
        try:
            with pytest.raises(TimeoutError):
                two.wait_assigned(1.5)  # blocks this loop: the first one's callbacks cannot run
            assert diary.of(Revoked) == []
            assert one.generation == first.generation
            share = await asyncio.to_thread(two.wait_assigned, PATIENCE_S)
            assert share.generation == first.generation + 1
            assert len(json.loads(share.assignment)) == 6
        finally:
            await asyncio.to_thread(two.stop)
    assert diary.of(Lost) == []


async def test_a_blocked_loop_and_a_bound_for_giving_up(coordinator: Coordinator) -> None:
    """The bound holds for a loop that stands still, too: the group goes on, and the member hears of it."""
    diary = Diary()
    async with member(coordinator, diary, quiesce_timeout_ms=300) as one:
        first = await one.wait_assigned(PATIENCE_S)
        await one.rejoin("news")
        time.sleep(1.0)  # noqa: ASYNC251 -- that is the test
        lost = await diary.until(Lost)
        assert (lost.generation, lost.partial) == (first.generation, False)
        assert "did not end in time" in lost.reason
        again = await diary.until(Assigned, 2)
        assert again.generation > first.generation
