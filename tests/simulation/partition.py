"""One partition as its runtime has it: a shard, the requests that wait there, and what becomes of both when
something fails. The simulated counterpart of `coordinator.runtime`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.journal.entries import JournalEntry
from tests.simulation.requests import hand_over
from tests.simulation.sabotage import InjectedError

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

_FAILED = object()
"""Instead of a result: the machine raised."""


class Being(Enum):
    """The state of a partition."""

    DOWN = "down"
    """There is no process."""
    LOADING = "loading"
    SERVING = "serving"
    UNLOADED = "unloaded"
    """Somebody else has it."""


class Partition:
    """A shard that is made again whenever it fails. `life` counts the shards."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.being = Being.LOADING
        self.life = 0
        """Unix time as it was, less the monotonic clock, when this shard was last informed."""
        self._wall_clocks = [(0, 0)]  # when, and how far Unix time is ahead of the steady clock
        """The most that Unix time was ahead of the monotonic clock, as far as this shard was informed."""
        self.calls: dict[Call, None] = {}  # handed over and not answered, in order
        self._waits_since_ms: int | None = None
        """Since when an append waits, and none has come back."""
        self._written = 0  # position of the last append
        self.shard = world.new_shard(number)

    @property
    def serving(self) -> bool:
        """Whether its shard serves."""
        return self.being is Being.SERVING

    def next_deadline(self) -> int | None:
        """When its shard wants to be called."""
        return self.shard.next_deadline() if self.serving else None

    # ---- calls of the machine ----

    def _call(self, what: Callable[..., Any], *args: Any) -> Any:
        """An exception ends the shard's life, and is reported."""
        world = self.world
        world.sabotage.inside = True
        try:
            return what(*args)
        except InjectedError as error:
            world.sabotage.inside = False
            world.reported += 1
            self.reload(f"raised in {error}")
            return _FAILED
        finally:
            world.sabotage.inside = False

    def hand_over(self, call: Call) -> None:
        """A request for its shard."""
        self.calls[call] = None
        response = self._call(hand_over, self.shard, call, self.world.now_ms)
        if response is _FAILED:
            return
        self.world.checks.handed_over(call, response is None)
        if response is not None:
            self.world.answered(call, response)
        else:
            call.parked = True

    def tick(self) -> None:
        """Its timers."""
        self._call(self.shard.tick, self.world.now_ms)

    def log_is_silent(self) -> bool:
        """Whether no append has come back for so long that no session ends."""
        since_ms = self._waits_since_ms
        silence_ms = self.world.settings.log_silence_ms
        return since_ms is not None and self.world.now_ms - since_ms >= silence_ms

    def durable(self, positions: Sequence[int]) -> None:
        """The store has these appends."""
        if self.log_is_silent():
            self.world.checks.members.all_full(self)
        self._waits_since_ms = self.world.now_ms if positions[-1] < self._written else None
        one_by_one = self.world.rng.random() < 0.3
        for position in positions if one_by_one else positions[-1:]:
            if self._call(self.shard.durable, position, self.world.now_ms) is _FAILED:
                return

    def set_full(self, full: bool) -> None:
        """The store is full, or has room again."""
        self._call(self.shard.set_full, full, self.world.now_ms)
        if not full:
            self.world.checks.members.all_full(self)

    def set_wall_clock(self) -> None:
        """Tell its shard what Unix time is."""
        self._wall_clocks.append((self.world.now_ms, self.world.wall_ms() - self.world.now_ms))
        self._call(self.shard.set_wall_clock, self.world.now_ms, self.world.wall_ms())

    @property
    def wall_ahead_ms(self) -> list[int]:
        """How far Unix time was ahead of the steady clock, as far as this shard was informed and counts."""
        since_ms = self._wall_clocks[-1][0] - self.world.settings.offsets_retention_check_interval_ms
        return [ahead_ms for when_ms, ahead_ms in self._wall_clocks if when_ms >= since_ms]

    def drain(self) -> None:
        """Do what the shard wants done."""
        world = self.world
        while self.being is not Being.DOWN and self.shard.dirty:
            world.touched = True
            outbox = self._call(self.shard.drain)
            if outbox is _FAILED:
                continue
            for append in outbox.appends:
                self._written = append.position
                if self._waits_since_ms is None:
                    self._waits_since_ms = world.now_ms
                world.say("write", (self.number, append))
                world.checks.emitted(self, append)
            world.store.take(self, outbox.appends)
            for answer in outbox.answers:
                if answer.ticket in self.calls:
                    world.answered(answer.ticket, answer.response)
            for event in outbox.events:
                text = event.render() if isinstance(event, JournalEntry) else repr(event)
                world.say("event", text)
                world.trace.update(f"{text}\n".encode())
                world.checks.event(event)

    # ---- its lives ----

    def reload(self, why: str) -> None:
        """The shard's life is over: each waiting request is refused, and another one is loaded, while the
        other partitions serve."""
        world = self.world
        if self.being is Being.DOWN:
            return
        world.say("reload", (self.number, why))
        others = world.checks.others(self)
        self._end(Being.LOADING)
        world.store.forget(self.number)
        self.refuse()
        world.checks.ended(self)
        self.start(world.rng.choice((0, 0, 300)))
        world.checks.undisturbed(others)

    def _end(self, being: Being) -> None:
        self.world.touched = True
        self.being = being
        self._waits_since_ms = None
        self.life += 1
        self.world.lives += 1

    def refuse(self) -> None:
        """NOT_COORDINATOR to everybody who waits."""
        calls, self.calls = self.calls, {}
        for call in calls:
            self.world.refused(call)

    def unload(self) -> None:
        """The partition moves away, and comes back after a while."""
        world = self.world
        if not self.serving:
            return
        world.say("unload", self.number)
        others = world.checks.others(self)
        self.shard.unload()
        self._end(Being.UNLOADED)
        self.refuse()
        world.checks.unloaded(self)
        world.checks.undisturbed(others)
        world.later(world.rng.randint(0, 3_000), partial(self._back, self.life))

    def _back(self, life: int) -> None:
        if life == self.life:
            self.start(0)

    def die(self) -> None:
        """The process is gone; only their connections let others know."""
        world = self.world
        self._end(Being.DOWN)
        lost, self.calls = self.calls, {}
        for call in lost:
            world.later(world.rng.randint(0, 2_000), partial(call.reply, None))
        world.checks.ended(self)

    def start(self, delay_ms: int) -> None:
        """Load the shard from the log, when nothing is on its way to it any more."""
        self.being = Being.LOADING
        self.shard.give_back()
        self.shard = self.world.new_shard(self.number)
        if delay_ms:
            self.world.later(delay_ms, partial(self._replay, self.life))
        else:
            self._replay(self.life)

    def _replay(self, life: int) -> None:
        world = self.world
        if life != self.life:
            return
        if not world.store.is_idle(self.number):
            world.later(20, partial(self._replay, life))
            return
        rows = world.store.logs[self.number]
        first = world.rng.randint(0, len(rows))
        if self._call(self.shard.replay, rows[:first]) is _FAILED:
            return
        if world.rng.random() < 0.5:
            self._load(life, first)
        else:
            world.later(world.rng.randint(1, 1_500), partial(self._load, life, first))

    def _load(self, life: int, first: int) -> None:
        world = self.world
        if life != self.life:
            return
        world.touched = True
        rows = world.store.logs[self.number]
        if self._call(self.shard.replay, rows[first:]) is _FAILED:
            return
        if world.full and self._call(self.shard.set_full, True, world.now_ms) is _FAILED:
            return
        if self._call(self.shard.loaded, world.now_ms, world.wall_ms()) is _FAILED:
            return
        self.being = Being.SERVING
        self._wall_clocks = [(world.now_ms, world.wall_ms() - world.now_ms)]
        world.say("loaded", self.number)
        world.checks.loaded(self)
