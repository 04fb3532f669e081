"""One seed = one run: two partitions, a store that can fail, be full or lose its last writes, two clocks, a
network, members of all kinds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

from ringleader.coordinator.groups.memory import MemoryTotal
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import HeartbeatRequest, OffsetCommitRequest
from ringleader.protocol.refusals import refusal as protocol_refusal
from tests.simulation.checks import Checks
from tests.simulation.facts import Facts, ViolationError
from tests.simulation.member import Worker
from tests.simulation.partition import Being, Partition
from tests.simulation.producer import Producer
from tests.simulation.requests import EndTransaction, ForgetTopic, ListGroups, refusal
from tests.simulation.sabotage import Sabotage
from tests.simulation.store import Store
from tests.simulation.strangers import Liar, Operator

GROUPS = ("g", "h")
"""Groups that have members. Operators also use groups that have none."""
PARTITIONS = 2
SMALL_MEMORY = (5_000, 9_000, 15_000)
"""Of all groups, in some worlds: for two to seven small members."""
FAULTY_MS = (20_000, 60_000, 60_000, 120_000)
"""How long things go wrong, one of these in each run."""
STALL_MAX_MS = 8_000
"""The longest that the whole process stands still."""
SETTLE_MS = 150_000
"""G18: within this time after the last fault every group with live members is stable, and stays so; longer
than any parked request, session and retry of the runs here."""
WALL_CLOCK_EVERY_MS = 5_000
_LOOK_MS = 2_000
_PROBE_MS = 1_000
NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)


@dataclass(eq=False, slots=True)
class Call:
    """The ticket of one request, and what the simulation knows about it."""

    actor: Any
    request: Any
    api_version: int
    client_id: str | None
    reply: Callable[[Any], None]
    """The actor's handler of the answer; None stands for a closed connection."""
    coin: bool = False
    """Takes the machine's hot path where there is one."""
    sent_ms: int = 0
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    connection: object = field(default_factory=object)
    facts: Facts = field(default_factory=Facts)
    parked: bool = False
    answered_step: int = -1
    code: int = 0
    """Error code of the answer."""
    closed: bool = False


class World:
    """Everything there is in one run. `trace` is a digest of all that the shards said."""

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
        self.sabotage = Sabotage(self.rng)
        self.reported = 0
        """Exceptions of the machine that ended a shard's life."""
        self.now_ms = 0
        self.true_shift_ms = 1_700_000_000_000
        """Unix time less the monotonic clock, as it is agreed upon in the end."""
        self.wrong_by_ms = 0
        """The ms by which a clock is ahead that has jumped for a moment."""
        self.wall_jumps = wall_jumps
        self.keep_offsets = keep_offsets
        self.settings = self._choose_settings(keep_offsets)
        self.faulty_ms = self.rng.choice(FAULTY_MS)
        self.faults = True
        self.full = False
        """Whether the machines take the store for full."""
        self.full_spans: list[list[int]] = []
        """When the machines held back: from, to (with their time until they try again)."""
        self.full_step = -1
        self.steps = 0
        self.lives = 0
        self.deleting: set[str] = set()
        """Topics that are invisible: their offsets go."""
        self.trace = hashlib.sha256()
        self.answers = hashlib.sha256()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._ids = 0
        self.touched = True
        self.store = Store(self, PARTITIONS)
        self._routes = {"h": self.rng.choice((0, 1, 1, 1)), "simple": self.rng.randrange(PARTITIONS)}
        self.memory = MemoryTotal()
        """The memory that all groups of the process hold."""
        self.partitions: list[Partition] = []
        self.checks = Checks(self)
        self.partitions += [Partition(self, number) for number in range(PARTITIONS)]
        for one in self.partitions:
            one.start(0)
        self.later(WALL_CLOCK_EVERY_MS, self._tell_wall_clock)
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
        self._plan_faults()

    def _plan_faults(self) -> None:
        rng = self.rng

        def at_times(most: int, what: Callable[[], None]) -> None:
            for _ in range(rng.randint(0, most)):
                self.later(rng.randint(1_000, self.faulty_ms), what)

        at_times(3, self.crash)
        at_times(2, rng.choice(self.partitions).unload)
        at_times(4, self.sabotage.arm)
        if rng.random() < 0.2:
            self.later(rng.randint(1_000, self.faulty_ms), self.stall)
        moment_ms = self.settings.offsets_retention_check_interval_ms // 2 - WALL_CLOCK_EVERY_MS // 10
        quiet_until_ms = 0
        for _ in range(rng.randint(0, 3)):
            at_ms, jump_ms = rng.randint(1_000, self.faulty_ms), rng.randint(-3_600_000, 3_600_000)
            # The events are there in both cases, so that both runs are the same but for the clock.
            by_ms = jump_ms if self.wall_jumps else 0
            if rng.random() < 0.5:
                self.later(at_ms, partial(self.wall_jump, by_ms, True))
            elif at_ms > quiet_until_ms:  # moments that follow each other at once would be no moments
                back_ms = at_ms + rng.randint(0, min(moment_ms, 30_000))
                quiet_until_ms = back_ms + 2 * WALL_CLOCK_EVERY_MS
                self.later(at_ms, partial(self.wall_jump, by_ms, False))
                self.later(back_ms, partial(self.wall_jump, -by_ms, False))

    def _choose_settings(self, keep_offsets: bool) -> GroupSettings:
        rng = self.rng
        settings = GroupSettings.model_construct(
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
            offsets_per_step=rng.choice([1, 2, 500]),
            # Not from `rng`: what else a seed decides stays as it is.
            group_metadata_max_bytes=random.Random(f"memory {self.seed}").choice(
                [*SMALL_MEMORY, *[2**28] * 12]
            ),
        )
        return settings.model_copy(update={"offsets_retention_minutes": 10_080}) if keep_offsets else settings

    # ---- time ----

    def wall_ms(self) -> int:
        """Unix time as the clock shows it."""
        return self.true_ms() + self.wrong_by_ms

    def true_ms(self) -> int:
        """Unix time as it is."""
        return self.now_ms + self.true_shift_ms

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._sequence += 1
        heappush(self._events, (self.now_ms + delay_ms, self._sequence, what))

    def run(self, until_ms: int) -> None:
        """Steps up to a time; every invariant is checked after each."""
        while True:
            timers = [
                (due, one.number) for one in self.partitions if (due := one.next_deadline()) is not None
            ]
            due, number = min(timers, default=(None, 0))
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
                self.say("tick", (number, due))
                self.partitions[number].tick()
            else:
                heappop(self._events)[2]()
            for one in self.partitions:
                one.drain()
            self.checks.offsets.after_step()
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

    def partition_of(self, request: Any) -> Partition:
        """Where a request goes."""
        if isinstance(request, ListGroups | EndTransaction | ForgetTopic):
            return self.partitions[request.partition]
        return self.partition(request.group_id)

    def partition(self, group_id: str) -> Partition:
        """Where a group is."""
        return self.partitions[self._routes.get(group_id, 0)]

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

    def ask(self, actor: Any, request: Any, reply: Callable[[Any], None]) -> Call:
        """A request from within the node: nothing lies between. `reply(None)`: the node is gone."""
        call = Call(actor, request, 8, None, reply, self.rng.random() < 0.5)
        self._arrive(call)
        return call

    def _arrive(self, call: Call) -> None:
        call.sent_ms = self.now_ms
        if call.closed or not call.actor.admits(call.request) or self._names_a_topic_that_goes(call.request):
            return
        if not isinstance(call.request, HeartbeatRequest):
            self.touched = True
        self.say("->", (call.client_id, call.api_version, call.request))
        self.checks.before(call)
        partition = self.partition_of(call.request)
        if partition.being is Being.DOWN:
            self.answered(call, None)
        else:
            partition.hand_over(call)

    def _names_a_topic_that_goes(self, request: Any) -> bool:
        """The server refuses topics that there are not."""
        return any(topic.name in self.deleting for topic in getattr(request, "topics", ()))

    def delete_topic(self, topic: str) -> None:
        """A topic is gone, and may be made again when nobody has offsets of it any more."""
        if topic in self.deleting:
            return
        self.touched = True
        self.say("delete topic", topic)
        self.deleting.add(topic)
        self.checks.topic_goes(topic)
        left = set(range(PARTITIONS))

        def ask(number: int) -> None:
            self.ask(self, ForgetTopic(number, topic), partial(answered, number))

        def answered(number: int, code: int | None) -> None:
            if code:
                self.later(200, partial(ask, number))
            elif code is None:
                self.later(500, partial(ask, number))
            else:
                left.discard(number)
                if not left:
                    self.deleting.discard(topic)
                    self.checks.topic_deleted(topic)

        for number in tuple(left):
            ask(number)

    def admits(self, request: Any) -> bool:
        """Whether the node itself lets the request in."""
        return True

    def close(self, call: Call) -> None:
        """The connection of a waiting request goes."""
        call.closed = True
        partition = self.partition_of(call.request)
        if call in partition.calls:
            del partition.calls[call]
            partition.shard.ticket_closed(call)

    def answered(self, call: Call, response: Any) -> None:
        """An answer of the machine, or (None) the end of a connection."""
        self.partition_of(call.request).calls.pop(call, None)
        call.answered_step = self.steps
        if isinstance(call.request, OffsetCommitRequest) and isinstance(response, int):
            response = protocol_refusal(call.request, call.api_version, response)  # the hot path
        call.code = getattr(response, "error_code", 0)
        self.checks.answered(call, response)
        self._deliver(call, response)

    def refused(self, call: Call) -> None:
        """The shard that should have answered is gone: its runtime says so."""
        call.answered_step = self.steps
        call.code = NOT_COORDINATOR
        internal = isinstance(call.request, EndTransaction | ForgetTopic)
        self._deliver(call, NOT_COORDINATOR if internal else refusal(call.request, NOT_COORDINATOR))

    def _deliver(self, call: Call, response: Any) -> None:
        self.say("<-", (call.client_id, type(call.request).__name__, response))
        line = f"{self.now_ms} {response!r}\n".encode()
        self.trace.update(line)
        self.answers.update(line)
        if isinstance(call.request, EndTransaction | ForgetTopic):
            self.later(0, lambda: call.reply(response))
            return
        if self.faults and self.rng.random() < 0.04:
            return  # lost on its way; its effect is there
        delays = [0, 1, 20, 2_000] if self.faults else [0, 0, 1, 5, 50]
        self.later(self.rng.choice(delays), lambda: call.reply(response))

    # ---- the store ----

    def store_is_full(self) -> None:
        """The runtime has noticed: every machine is informed, and the store is tried now and then."""
        if self.full:
            return
        self.say("full", "")
        self.full = True
        self.full_step = self.steps
        self.full_spans.append([self.now_ms, 1 << 62])
        for one in self.partitions:
            if one.serving:
                one.set_full(True)
        self.later(_PROBE_MS, partial(self._probe, len(self.full_spans)))

    def _probe(self, span: int) -> None:
        if not self.full or span != len(self.full_spans):
            return
        if self.store.full_until_ms > self.now_ms:
            self.later(_PROBE_MS, partial(self._probe, span))
        else:
            self._has_room()

    def _has_room(self) -> None:
        self.say("room", "")
        self.touched = True
        self.full = False
        self.full_spans[-1][1] = self.now_ms + self.settings.group_full_retry_ms
        for one in self.partitions:
            if one.serving:
                one.set_full(False)

    @property
    def has_small_memory(self) -> bool:
        """Whether its groups have too little memory to settle."""
        return self.settings.group_metadata_max_bytes in SMALL_MEMORY

    def held_ms(self, since_ms: int) -> int:
        """How much of the time since then the machines held back what is due, for the store was full."""
        now_ms = self.now_ms
        return sum(max(min(end, now_ms) - max(begin, since_ms), 0) for begin, end in self.full_spans)

    # ---- the process ----

    def crash(self) -> None:
        """The process dies. Of the writes in flight some of the first may have made it, unreported."""
        if not all(one.serving for one in self.partitions):
            return
        self.say("crash", "")
        self.store.crash()
        if self.full:
            self._has_room()  # the next process finds out for itself
        for one in self.partitions:
            one.die()
        self.memory = MemoryTotal()
        self.later(self.rng.randint(0, 3_000), self._restart)

    def stall(self) -> None:
        """The whole process stands still. Then all that is due is due at once."""
        self.now_ms += self.rng.randint(100, STALL_MAX_MS)
        self.touched = True
        self.say("stall", "")
        for one in self.partitions:
            while one.serving and (due := one.next_deadline()) is not None and due <= self.now_ms:
                one.tick()  # some of it at a time

    def _restart(self) -> None:
        if self.rng.random() < 0.15:  # with another setting
            most = self.rng.choice([1, 2, 3, 5])
            self.settings = self.settings.model_copy(update={"group_max_size": most})
        for one in self.partitions:
            one.start(0)

    def _tell_wall_clock(self) -> None:
        self.later(WALL_CLOCK_EVERY_MS, self._tell_wall_clock)
        for one in self.partitions:
            if one.serving:
                before = self.checks.timers(one)
                life = one.life
                one.set_wall_clock()
                if life == one.life:
                    self.checks.wall_clock_set(one, before)

    def wall_jump(self, by_ms: int, for_good: bool) -> None:
        """Somebody sets the wall clock, for a moment or for good; the machines learn of it at once, or with
        the next turn. No timer may notice."""
        announced = self.rng.random() < 0.5
        self.say("wall clock", (by_ms, for_good, announced))
        if for_good:
            self.true_shift_ms += by_ms
        else:
            self.wrong_by_ms += by_ms
        if announced:
            self.later(0, self._tell_once)

    def _tell_once(self) -> None:
        for one in self.partitions:
            if one.serving:
                one.set_wall_clock()

    def new_shard(self, number: int) -> Shard:
        """A shard that has not loaded anything yet."""
        return Shard(number, self.settings, self._fresh_id, memory=self.memory)

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
    finally:
        world.sabotage.over()
    return world


def _play(world: World) -> None:
    world.run(world.faulty_ms)
    world.faults = False
    world.sabotage.over()
    for one in world.others:
        one.stop()
    for worker in world.workers:
        worker.calm_down()
    until_ms = world.now_ms + SETTLE_MS
    while not world.checks.has_settled() and world.now_ms < until_ms:
        world.run(world.now_ms + _LOOK_MS)
    world.checks.settled()


def check_clocks(seed: int) -> World:
    """D6: a run whose wall clock jumps and one whose wall clock does not give the same answers at the same
    times. (But for retention, whose stamps are Unix time: it is out of reach here.)"""
    jumping = simulate(seed, keep_offsets=True)
    steady = simulate(seed, keep_offsets=True, wall_jumps=False)
    if jumping.answers.hexdigest() != steady.answers.hexdigest():
        raise ViolationError("D6", "answers depend on the wall clock", seed, "two whole runs")
    return jumping
