"""One seed = one run: a shard, a store that can fail or lose its last writes, a clock, members of all
kinds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from ringleader.coordinator.groups.outbox import Append
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode
from tests.simulation.actors import Admin, Liar, Worker
from tests.simulation.checks import Checks

GROUPS = ("g", "h")
_QUIET_MS = 150_000
"""Longer than any parked request, session and retry of the runs here, so that groups have time to settle."""
_STORE_ERRORS = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)


@dataclass(eq=False, slots=True)
class Call:
    """The ticket of one request, and what the simulation knows about it."""

    actor: Any
    request: Any
    api_version: int
    client_id: str | None
    sent_ms: int
    reply: Callable[[Any], None]
    """What the actor does with the answer; None stands for a closed connection."""
    client_host: str = "/127.0.0.1"
    connection: object = field(default_factory=object)
    facts: Any = None
    """What held when the request arrived (see checks.py)."""


class World:
    """Everything there is in one run. `trace` is a digest of all that the shard said."""

    def __init__(self, seed: int, shard_class: type[Shard] = Shard) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.shard_class = shard_class
        self.now_ms = 0
        self.wall_shift_ms = 1_700_000_000_000
        self.settings = self._choose_settings()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_version = 0
        self.durable: dict[bytes, bytes | None] = {}
        self.in_flight: list[Append] = []
        self.faults = True
        self.serving = True
        self.calls: dict[Call, None] = {}  # parked at the shard, in order
        self.steps = 0
        self.lives = 0
        self.trace = hashlib.sha256()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._store_free_ms = 0
        self._ids = 0
        self.checks = Checks(self)
        self.shard = self.new_shard()
        self.shard.loaded(self.now_ms, self.wall_shift_ms)
        self.workers = [
            Worker(self, f"w{number}", self.rng.choice(GROUPS)) for number in range(self.rng.randint(2, 6))
        ]
        self.others = [Liar(self), Admin(self)]
        for one in (*self.workers, *self.others):
            self.later(self.rng.randint(0, 5_000), one.start)
        for _ in range(self.rng.randint(0, 3)):
            self.later(self.rng.randint(1_000, 120_000), self.crash)
        for _ in range(self.rng.randint(0, 3)):
            self.later(self.rng.randint(1_000, 120_000), self.wall_jump)

    def _choose_settings(self) -> GroupSettings:
        rng = self.rng
        return GroupSettings(
            group_min_session_timeout_ms=1_000,
            group_initial_rebalance_delay_ms=rng.choice([0, 0, 500, 3_000]),
            group_max_size=rng.choice([2, 4, 2_147_483_647]),
            group_max_pending_members=rng.choice([2, 5, 1_000]),
            generation_block=rng.choice([1, 2, 32]),
            offsets_retention_check_interval_ms=rng.choice([20_000, 600_000]),
            group_max_record_bytes=rng.choice([400, 1_000_000, 1_000_000]),
        )

    # ---- time ----

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._sequence += 1
        heappush(self._events, (self.now_ms + delay_ms, self._sequence, what))

    def run(self, until_ms: int) -> None:
        """Steps up to a time; every invariant is checked after each."""
        while True:
            due = self.shard.next_deadline() if self.serving else None
            event_ms = self._events[0][0] if self._events else None
            times = [time_ms for time_ms in (due, event_ms) if time_ms is not None]
            if not times or min(times) > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, min(times))
            # When a timer and a message are due together, either may come first.
            timer_first = due is not None and due <= self.now_ms
            if timer_first and event_ms is not None and event_ms <= self.now_ms:
                timer_first = self.rng.random() < 0.5
            if timer_first:
                self.shard.tick(self.now_ms)
            else:
                heappop(self._events)[2]()
            self.steps += 1
            self._drain()
            self.checks.after_step()

    # ---- requests and answers ----

    def send(
        self, actor: Any, request: Any, version: int, client_id: str | None, reply: Callable[[Any], None]
    ) -> Call:
        """A request of an actor arrives."""
        call = Call(actor, request, version, client_id, self.now_ms, reply)
        call.facts = self.checks.before(call)
        if not self.serving:
            self._answered(call, None)
            return call
        self.calls[call] = None
        response = actor.hand_over(self.shard, call)
        if response is not None:
            self._answered(call, response)
        return call

    def close(self, call: Call) -> None:
        """The connection of a waiting request goes."""
        if self.calls.pop(call, 0) is None:
            self.shard.ticket_closed(call)

    def _answered(self, call: Call, response: Any) -> None:
        self.calls.pop(call, None)
        self.trace.update(f"{self.now_ms} {response!r}\n".encode())
        self.checks.answered(call, response)
        if self.faults and self.rng.random() < 0.05:
            return  # lost on its way; its effect is there
        delay_ms = (
            self.rng.choice([0, 0, 1, 5, 50]) if not self.faults else self.rng.choice([0, 1, 20, 2_000])
        )
        self.later(delay_ms, lambda: call.reply(response))

    def _drain(self) -> None:
        while self.serving and self.shard.dirty:
            outbox = self.shard.drain()
            for append in outbox.appends:
                self.in_flight.append(append)
                slow = self.faults and self.rng.random() < 0.05
                delay_ms = self.rng.randint(500, 3_000) if slow else self.rng.randint(0, 20)
                self._store_free_ms = max(self._store_free_ms, self.now_ms + delay_ms)
                life = self.lives
                self.later(
                    self._store_free_ms - self.now_ms, lambda one=append, life=life: self._store(one, life)
                )
            for answer in outbox.answers:
                if answer.ticket in self.calls:
                    self._answered(answer.ticket, answer.response)
            for entry in outbox.journal:
                self.trace.update(f"{entry.render()}\n".encode())
                self.checks.journal(entry)

    # ---- the store ----

    def _store(self, append: Append, life: int) -> None:
        if life != self.lives:
            return
        self.in_flight.remove(append)
        if self.faults and self.rng.random() < 0.06:
            self.shard.append_failed(append.position, int(self.rng.choice(_STORE_ERRORS)), self.now_ms)
            return
        self._land(append)
        self.shard.appended(append.position, self.now_ms)

    def _land(self, append: Append) -> None:
        self.log += append.records
        self.durable.update(append.records)
        self.log_version += 1

    def crash(self) -> None:
        """The process dies. Of the writes in flight some of the first may have made it, unreported."""
        self.lives += 1
        landed = self.rng.randint(0, len(self.in_flight))
        for append in self.in_flight[:landed]:
            self._land(append)
        self.in_flight = []
        if self.rng.random() < 0.5:
            self.log = [(key, value) for key, value in dict(self.log).items() if value is not None]
        gone, self.calls = self.calls, {}
        for call in gone:
            self.later(self.rng.randint(0, 2_000), lambda call=call: call.reply(None))
        self.serving = False
        self.checks.crashed()
        self.later(self.rng.randint(0, 3_000), self._restart)

    def _restart(self) -> None:
        if self.serving:
            return
        self.shard = self.new_shard()
        for key, value in self.log:
            self.shard.replay(key, value)
        self.shard.loaded(self.now_ms, self.now_ms + self.wall_shift_ms)
        self.serving = True
        self.checks.restarted()

    def wall_jump(self) -> None:
        """Somebody sets the wall clock. No timer may notice."""
        self.wall_shift_ms += self.rng.randint(-3_600_000, 3_600_000)
        self.shard.set_wall_clock(self.now_ms, self.now_ms + self.wall_shift_ms)

    def new_shard(self) -> Shard:
        """A shard that has not loaded anything yet."""
        return self.shard_class(0, self.settings, self._fresh_id)

    def _fresh_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"


def simulate(seed: int, shard_class: type[Shard] = Shard, duration_ms: int = 90_000) -> World:
    """One run: faults for a while, then quiet, in which every group with live members must settle (G18)."""
    world = World(seed, shard_class)
    world.run(duration_ms)
    world.faults = False
    for one in world.others:
        one.stop()
    for worker in world.workers:
        worker.calm_down()
    world.run(duration_ms + _QUIET_MS)
    world.checks.settled()
    return world
