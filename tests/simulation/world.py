"""One seed = one run: a shard, a store that can fail or lose its last writes, two clocks, a network, members
of all kinds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

from ringleader.coordinator.groups.replies import commit_answer
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.messages import HeartbeatRequest
from tests.simulation.checks import Checks
from tests.simulation.facts import Facts, ViolationError
from tests.simulation.member import Worker
from tests.simulation.producer import Producer
from tests.simulation.requests import hand_over
from tests.simulation.store import Store
from tests.simulation.strangers import Liar, Operator

GROUPS = ("g", "h")
"""Groups that have members. Operators also use groups that have none."""
FAULTY_MS = (20_000, 60_000, 60_000, 120_000)
"""How long things go wrong, one of these in each run."""
STALL_MAX_MS = 8_000
"""The longest that the whole process stands still."""
SETTLE_MS = 150_000
"""G18: within this time after the last fault every group with live members is stable, and stays so; longer
than any parked request, session and retry of the runs here."""
_LOOK_MS = 2_000


@dataclass(eq=False, slots=True)
class Call:
    """The ticket of one request, and what the simulation knows about it."""

    actor: Any
    request: Any
    api_version: int
    client_id: str | None
    reply: Callable[[Any], None]
    """What the actor does with the answer; None stands for a closed connection."""
    coin: bool = False
    """Takes the machine's hot path where there is one."""
    sent_ms: int = 0
    client_host: str = "/127.0.0.1"
    connection: object = field(default_factory=object)
    facts: Facts = field(default_factory=Facts)
    parked: bool = False
    answered_step: int = -1
    code: int = 0
    """Error code of the answer."""
    closed: bool = False


class World:
    """Everything there is in one run. `trace` is a digest of all that the shard said."""

    def __init__(
        self,
        seed: int,
        *,
        wall_jumps: bool = True,
        keep_offsets: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.seed = seed
        self.tell = tell
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.wall_shift_ms = 1_700_000_000_000
        self.wall_jumps = wall_jumps
        self.keep_offsets = keep_offsets
        self.settings = self._choose_settings(keep_offsets)
        self.faulty_ms = self.rng.choice(FAULTY_MS)
        self.store = Store(self)
        self.faults = True
        self.serving = False
        self.loading = False
        self.calls: dict[Call, None] = {}  # parked at the shard, in order
        self.steps = 0
        self.lives = 0
        self.trace = hashlib.sha256()
        self.answers = hashlib.sha256()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._ids = 0
        self.touched = True
        self.checks = Checks(self)
        self.shard = self.new_shard()
        self._load()
        self._populate()

    def _populate(self) -> None:
        rng = self.rng
        share = rng.choice([0.0, 0.3, 0.3, 0.7])
        crowd = rng.choice([2, 4, 6, 8, 8, 12, 20])
        self.workers = [
            Worker(self, f"w{number}", rng.choice(GROUPS), f"i{number}" if rng.random() < share else None)
            for number in range(rng.randint(2, crowd))
        ]
        static = [one for one in self.workers if one.instance_id is not None]
        if static and rng.random() < 0.4:  # two processes were given the same instance id
            twin = rng.choice(static)
            self.workers.append(Worker(self, f"{twin.name}b", twin.group, twin.instance_id))
        self.others: list[Any] = [Liar(self), Operator(self)]
        self.others += [Producer(self, number) for number in range(rng.choice([0, 0, 1, 3]))]
        for one in (*self.workers, *self.others):
            self.later(rng.randint(0, 4_000), one.start)
        for _ in range(rng.randint(0, 3)):
            self.later(rng.randint(1_000, self.faulty_ms), self.crash)
        if rng.random() < 0.2:
            self.later(rng.randint(1_000, self.faulty_ms), self.stall)
        for _ in range(rng.randint(0, 3)):
            delay_ms, jump_ms = rng.randint(1_000, self.faulty_ms), rng.randint(-3_600_000, 3_600_000)
            # The event is there in both cases, so that both runs are the same but for the clock.
            by_ms = jump_ms if self.wall_jumps else 0
            self.later(delay_ms, partial(self.wall_jump, by_ms))

    def _choose_settings(self, keep_offsets: bool) -> GroupSettings:
        rng = self.rng
        settings = GroupSettings(
            group_min_session_timeout_ms=1_000,
            group_initial_rebalance_delay_ms=rng.choice([0, 0, 500, 3_000]),
            group_max_size=rng.choice([2, 4, 2_147_483_647, 2_147_483_647]),
            group_max_pending_members=rng.choice([2, 5, 1_000]),
            generation_block=rng.choice([1, 2, 32]),
            offsets_retention_check_interval_ms=rng.choice([10_000, 600_000]),
            offsets_retention_minutes=rng.choice([1, 10_080]),
            offset_metadata_max_bytes=100,
            member_max_metadata_bytes=4_000,
            new_member_join_timeout_ms=rng.choice([25_000, 300_000]),
            group_max_record_bytes=rng.choice([600, 1_000_000, 1_000_000, 1_000_000]),
        )
        return replace(settings, offsets_retention_minutes=10_080) if keep_offsets else settings

    # ---- time ----

    def wall_ms(self) -> int:
        """Unix time."""
        return self.now_ms + self.wall_shift_ms

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
                self.now_ms = max(self.now_ms, until_ms)
                return
            self.now_ms = max(self.now_ms, min(times))
            # When a timer and a message are due together, either may come first.
            timer_first = due is not None and due <= self.now_ms
            if timer_first and event_ms is not None and event_ms <= self.now_ms:
                timer_first = self.rng.random() < 0.5
            self.steps += 1
            if timer_first:
                self.touched = True
                self.say("tick", due)
                self.shard.tick(self.now_ms)
            else:
                heappop(self._events)[2]()
            self._drain()
            # Between a heartbeat and the next nothing else changes: one look at several of them is enough.
            if self.touched or self.steps % 8 == 0:
                self.checks.after_step()
                self.touched = False

    def say(self, what: str, of: Any) -> None:
        """A line of the run's story, if anybody listens."""
        if self.tell is not None:
            groups = self.checks.memory.groups().values()
            states = ", ".join(f"{one.group_id} {one.state.value} {one.generation}" for one in groups)
            self.tell(f"{self.now_ms} #{self.steps} {what} {of!r} [{states}]")

    # ---- requests and answers ----

    def send(
        self, actor: Any, request: Any, version: int, client_id: str | None, reply: Callable[[Any], None]
    ) -> Call:
        """A request goes on its way: it may be late, get lost, or arrive twice."""
        rng = self.rng
        call = Call(actor, request, version, client_id, reply, rng.random() < 0.5)
        fate = rng.random() if self.faults else 1.0
        if fate < 0.02:
            return call  # lost
        if fate < 0.05:
            again = replace(call, reply=_nobody, connection=object(), facts=Facts())
            self.later(rng.choice([0, 3, 1_500, 9_000]), lambda: self._arrive(again))
        delay_ms = rng.choice([0, 0, 0, 0, 0, 1, 10, 700]) if self.faults else 0
        if fate > 0.99:
            delay_ms = 12_000 if self.faults else 0  # longer than any session
        if delay_ms:
            self.later(delay_ms, lambda: self._arrive(call))
        else:
            self._arrive(call)
        return call

    def _arrive(self, call: Call) -> None:
        call.sent_ms = self.now_ms
        if call.closed or not call.actor.admits(call.request):
            return
        if not isinstance(call.request, HeartbeatRequest):
            self.touched = True
        self.say("->", (call.client_id, call.api_version, call.request))
        self.checks.before(call)
        if not (self.serving or self.loading):
            self._answered(call, None)
            return
        self.calls[call] = None
        response = hand_over(self.shard, call, self.now_ms)
        if response is not None:
            self._answered(call, response)
        else:
            call.parked = True

    def end_transaction(self, producer_id: int, committed: bool, done: Callable[[int], None]) -> None:
        """The transaction coordinator says that a transaction is over."""
        self.touched = True
        self.say("end transaction", (producer_id, committed))
        self.shard.end_transaction(producer_id, committed, done, self.now_ms)

    def delete_topic(self, topic: str) -> None:
        """A topic is gone (and made again at once)."""
        self.touched = True
        self.say("delete topic", topic)
        self.checks.topic_deleted(topic)
        self.shard.topic_deleted(topic, self.now_ms)

    def close(self, call: Call) -> None:
        """The connection of a waiting request goes."""
        call.closed = True
        if self.calls.pop(call, 0) is None:
            self.shard.ticket_closed(call)

    def _answered(self, call: Call, response: Any) -> None:
        self.calls.pop(call, None)
        call.answered_step = self.steps
        if isinstance(response, int):  # the hot path of OffsetCommit
            response = commit_answer(call.request, response)
        call.code = getattr(response, "error_code", 0)
        self.say("<-", (call.client_id, type(call.request).__name__, response))
        said = f"{self.now_ms} {response!r}\n".encode()
        self.trace.update(said)
        self.answers.update(said)
        self.checks.answered(call, response)
        if self.faults and self.rng.random() < 0.04:
            return  # lost on its way; its effect is there
        delays = [0, 1, 20, 2_000] if self.faults else [0, 0, 1, 5, 50]
        self.later(self.rng.choice(delays), lambda: call.reply(response))

    def _drain(self) -> None:
        while (self.serving or self.loading) and self.shard.dirty:
            self.touched = True
            outbox = self.shard.drain()
            for append in outbox.appends:
                self.say("write", append)
            self.checks.emitted(outbox.appends)
            self.store.take(outbox.appends)
            for answer in outbox.answers:
                if answer.ticket in self.calls:
                    self._answered(answer.ticket, answer.response)
            for entry in outbox.journal:
                self.say("journal", entry.render())
                self.trace.update(f"{entry.render()}\n".encode())
                self.checks.journal(entry)

    # ---- the process ----

    def crash(self) -> None:
        """The process dies, or (sometimes) stops in good order. Of the writes in flight some of the first may
        have made it, unreported."""
        if not self.serving:
            return
        self.say("crash", "")
        if self.rng.random() < 0.3:
            self.checks.stopping()
            self.shard.unload(self.now_ms)
            self._drain()
            self.checks.stopped()
        self.lives += 1
        self.store.crash()
        gone, self.calls = self.calls, {}
        for call in gone:
            self.later(self.rng.randint(0, 2_000), partial(call.reply, None))
        self.serving = False
        self.checks.crashed()
        self.later(self.rng.randint(0, 3_000), self._restart)

    def stall(self) -> None:
        """The whole process stands still. Then all that is due is due at once."""
        self.now_ms += self.rng.randint(100, STALL_MAX_MS)
        self.touched = True
        self.say("stall", "")
        if self.serving:
            self.shard.tick(self.now_ms)

    def _restart(self) -> None:
        if self.rng.random() < 0.15:  # with another setting
            most = self.rng.choice([1, 2, 3, 5])
            self.settings = replace(self.settings, group_max_size=most)
        self.shard = self.new_shard()
        self.store.replay(self.shard)
        self.loading = True
        if self.rng.random() < 0.5:
            self._load()
        else:
            self.later(self.rng.randint(1, 1_500), self._load)

    def _load(self) -> None:
        self.touched = True
        self.loading = False
        self.serving = True
        self.shard.loaded(self.now_ms, self.wall_ms())
        self.say("loaded", "")
        self.checks.restarted()

    def wall_jump(self, jump_ms: int) -> None:
        """Somebody sets the wall clock. No timer may notice."""
        self.wall_shift_ms += jump_ms
        if self.serving:
            before = self.checks.timers()
            self.shard.set_wall_clock(self.now_ms, self.wall_ms())
            self.checks.wall_clock_set(before)

    def new_shard(self) -> Shard:
        """A shard that has not loaded anything yet."""
        return Shard(0, self.settings, self._fresh_id)

    def _fresh_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"


def _nobody(response: Any) -> None:
    """The answer to a request that the network sent twice."""


def simulate(
    seed: int,
    *,
    wall_jumps: bool = True,
    keep_offsets: bool = False,
    tell: Callable[[str], None] | None = None,
) -> World:
    """One run: faults for a while, then quiet, in which every group with live members must settle and stay so
    (G18). Raises `ViolationError`."""
    world = World(seed, wall_jumps=wall_jumps, keep_offsets=keep_offsets, tell=tell)
    try:
        _play(world)
    except ViolationError:
        raise
    except Exception as error:
        where = f"{world.now_ms} ms, step {world.steps}"
        raise ViolationError("P1", f"the machine raised {error!r}", seed, where) from error
    return world


def _play(world: World) -> None:
    world.run(world.faulty_ms)
    world.faults = False
    for one in world.others:
        one.stop()
    for worker in world.workers:
        worker.calm_down()
    until_ms = world.now_ms + SETTLE_MS
    while not world.checks.has_settled() and world.now_ms < until_ms:
        world.run(world.now_ms + _LOOK_MS)
    world.checks.settled()


def check_clocks(seed: int) -> None:
    """D6: a run whose wall clock jumps and one whose wall clock does not give the same answers at the same
    times. (But for retention, whose stamps are Unix time: it is out of reach here.)"""
    jumping = simulate(seed, keep_offsets=True)
    steady = simulate(seed, keep_offsets=True, wall_jumps=False)
    if jumping.answers.hexdigest() != steady.answers.hexdigest():
        raise ViolationError("D6", "answers depend on the wall clock", seed, "two whole runs")
