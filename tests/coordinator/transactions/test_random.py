"""Random schedules: producers, their doubles, timeouts, failed and lost records, restarts.

In any order of events: a transaction has one outcome, the one that was answered; it covers every partition
that was answered; and a producer with an old epoch is never let in again once a newer one was given out.
"""

from __future__ import annotations

import random

import pytest

from ringleader.coordinator.transactions.machine import Finish, Producer, Result
from ringleader.protocol.errors import ErrorCode
from tests.support.shares import share
from tests.support.transactions import World

NAMES = ("t", "u")
PLACES = [("a", 0), ("a", 1), ("b", 0), ("__consumer_offsets", 3)]
STEPS = 300


class Known:
    """The answers that clients of one transactional id got."""

    def __init__(self) -> None:
        self.newest = (-1, -1)
        """Producer that was given out last."""
        self.older: list[tuple[int, int]] = []
        self.added: set[tuple[str, int]] = set()
        """Partitions of the open transaction."""
        self.commit_number = -1
        """When a commit of it was asked for, counted in requests; -1: never."""
        self.outcome: bool | None = None
        """The answered end of the open transaction."""
        self.finish: Finish | None = None
        """The outcome that the partitions are given."""


class Schedule:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World()
        self.known = {name: Known() for name in NAMES}
        self.completed = 0
        self.boot = 0
        self.requests = 0

    def count(self) -> int:
        """The number of a request."""
        self.requests += 1
        return self.requests

    def step(self) -> None:
        rng, world = self.rng, self.world
        name = rng.choice(NAMES)
        known = self.known[name]
        producer = known.newest
        if known.older and rng.random() < 0.2:
            producer = rng.choice(known.older)
        match rng.choices(range(8), [1, 6, 3, 4, 1, 1, 1, 0.5])[0]:
            case 0:
                self.begin(name, producer if rng.random() < 0.5 else None)
            case 1:
                self.add(name, producer, rng.sample(PLACES, rng.randint(1, 2)))
            case 2:
                self.end(name, producer, rng.random() < 0.6)
            case 3:
                self.finish_one()
            case 4:
                world.pass_ms(rng.choice([10, 1_000, 70_000]))
            case 5:
                world.held = not world.held
                world.settle()
            case 6:
                world.fail()
            case 7:
                # A write on its way to the store is lost, as is every answer that waited for it.
                self.boot += 1
                self.world = world.restarted()
        self.look()

    def begin(self, name: str, expected: tuple[int, int] | None) -> None:
        known, boot = self.known[name], self.boot

        def reply(result: Result) -> None:
            if result.error or boot != self.boot:
                return
            given = (result.producer_id, result.epoch)
            if given != known.newest:
                assert given not in known.older, "an epoch is given to one producer only"
                known.older.append(known.newest)
                known.newest = given
            self.fresh = max(self.world.fresh, result.producer_id)

        self.world.fresh += 1
        identity = Producer(*expected) if expected is not None and expected[0] >= 0 else None
        self.world.ask("init_producer_id", name, 60_000, identity, self.world.fresh, reply=reply)

    def add(self, name: str, producer: tuple[int, int], places: list[tuple[str, int]]) -> None:
        known, boot, number = self.known[name], self.boot, self.count()

        def reply(result: Result) -> None:
            if result.error or boot != self.boot:
                return
            assert producer == known.newest, "somebody older was let in"
            if known.outcome is not None:
                # The one before is complete. A commit of this one may have been asked for already.
                known.outcome, known.added = None, set()
                if known.commit_number < number:
                    known.commit_number = -1
            known.added |= set(places)

        self.world.ask("add_partitions", name, Producer(*producer), places, reply=reply)

    def end(self, name: str, producer: tuple[int, int], committed: bool) -> None:
        known, boot = self.known[name], self.boot
        if producer == known.newest and committed:
            known.commit_number = self.count()

        def reply(result: Result) -> None:
            if result.error or boot != self.boot:
                return
            assert producer == known.newest, "somebody older was let in"
            assert known.outcome in (None, committed), "two outcomes were answered"
            known.outcome = committed

        self.world.ask("end", name, Producer(*producer), committed, reply=reply)

    def finish_one(self) -> None:
        world = self.world
        if not world.finishes:
            return
        found = world.finishes.pop(self.rng.randrange(len(world.finishes)))
        world.finished(found)
        self.completed += 1

    def look(self) -> None:
        """The outcome at the partitions fits the clients' answers."""
        for found in self.world.finishes:
            known = self.known[found.transactional_id]
            if known.finish is not None and known.finish == found:
                continue
            known.finish = found
            assert found.partitions >= known.added
            if known.outcome is not None:
                assert found.committed == known.outcome
            if found.committed:
                assert known.commit_number >= 0, "nobody asked for that"
            known.outcome, known.added, known.commit_number = found.committed, set(), -1


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(15, whole=60)), indirect=True)
def test_a_transaction_has_one_outcome(seed: int) -> None:
    schedule = Schedule(seed)
    for _ in range(STEPS):
        schedule.step()
    world = schedule.world
    world.release()
    for _ in range(20):
        world.pass_ms(70_000)
        while world.finishes:
            schedule.finish_one()
        schedule.look()
    assert not list(world.machine.open()), "everything comes to its end"
    assert schedule.completed > 0
    for name in NAMES:
        assert world.init(name) != ErrorCode.CONCURRENT_TRANSACTIONS
