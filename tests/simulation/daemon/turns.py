"""Threads that take turns in simulated time: the real code of the daemon and of clients, whole, with its
threads, loops, queues and sleeps, yet one seed gives one run.

Every thread of a simulated process is a thread of this one, but only one of them runs: the others wait for
their turn. One gives it up where it would wait in any case (a loop's selector, an event, a queue, `sleep`).
Among those that can go on, the next one is drawn. When none can, the clock jumps to what is due next.
"""

from __future__ import annotations

import _thread
import queue
import random
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

WALL_START_US = 1_700_000_000_000_000
STUCK_TURNS = 30_000
"""This many turns without time passing are a loop that never waits."""
_LAST_JOIN_S = 10.0


class EndedError(BaseException):
    """The run is over: a thread that still waits ends."""


class Process:
    """A process can be stopped for a time, or be dead: then nobody hears of it any more."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.paused_until_us = 0
        self.paused_us = 0
        """Altogether, and what is still to come of it."""
        self.dead = False
        self.turns = 0

    def __repr__(self) -> str:
        return self.name


class _Place:
    """A thread's place among those that wait for their turn."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.name = process, name
        self.gate = _thread.allocate_lock()
        self.gate.acquire()
        self.waits = 0
        self.may_go = False


class Turns:
    """All threads of one run, and their clock. The calls of `at` and `later` come between two turns."""

    def __init__(self, seed: int, wrong: Callable[[str, str], None]) -> None:
        """`wrong(name, text)` gets each breach."""
        self.now_us = 0
        self.wall_offset_us = 0
        self.switches = 0
        self.over = False
        self._wrong = wrong
        self._rng = random.Random(f"turns {seed}")
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._same_instant = 0
        self._waiting: dict[int, list[_Place]] = {}
        """By the identity of what is waited for."""
        self._can_go: list[_Place] = []
        self._threads: list[Thread] = []
        self._main = self.current = _Place(Process("main"), "main")
        self._stops = False

    @property
    def process(self) -> Process:
        """The process of the thread that runs now."""
        return self.current.process

    @property
    def now_ms(self) -> int:
        """The monotonic clock of everybody."""
        return self.now_us // 1000

    def at(self, when_us: int, what: Callable[[], None]) -> None:
        """Call it at a time, between two turns."""
        self._sequence += 1
        heappush(self._events, (max(when_us, self.now_us), self._sequence, what))

    def later(self, delay_ms: float, what: Callable[[], None]) -> None:
        """Call it after a delay."""
        self.at(self.now_us + int(delay_ms * 1000), what)

    def pause(self, process: Process, for_ms: int) -> None:
        """None of its threads gets a turn for so long (SIGSTOP)."""
        begins_us = max(self.now_us, process.paused_until_us)
        process.paused_until_us = max(process.paused_until_us, self.now_us + for_ms * 1000)
        process.paused_us += process.paused_until_us - begins_us
        self.at(process.paused_until_us, lambda: None)

    # ---- waiting ----

    def wait(self, what: object, timeout_us: int | None = None) -> bool:
        """Wait until `wake(what)`, or so long. Returns False if the time was over."""
        if self.over:
            raise EndedError
        me = self.current
        me.waits += 1
        me.may_go, number = False, me.waits
        waiting = self._waiting.setdefault(id(what), [])
        waiting.append(me)
        woken = [True]
        if timeout_us is not None:

            def ring() -> None:
                if me.waits == number and not me.may_go:
                    woken[0] = False
                    self._go(me)

            self.at(self.now_us + timeout_us, ring)
        self._pass_on(me)
        me.waits += 1  # its alarm is over
        waiting.remove(me)
        if not waiting:
            self._waiting.pop(id(what), None)
        return woken[0]

    def wake(self, what: object) -> None:
        """All that wait for it can go on."""
        for place in self._waiting.get(id(what), ()):
            self._go(place)

    def give_way(self) -> None:
        """Let others have a turn, perhaps."""
        me = self.current
        if self.over:
            raise EndedError
        me.process.turns += 1
        self._count()
        others = bool(self._can_go) and self._rng.random() < 0.5
        if others or self._stops or self.now_us < me.process.paused_until_us:
            self._go(me)
            self._pass_on(me)

    def _go(self, place: _Place) -> None:
        if not place.may_go:
            place.may_go = True
            self._can_go.append(place)

    def _count(self) -> None:
        self._same_instant += 1
        if self._same_instant > STUCK_TURNS:
            self._same_instant = 0
            self._wrong("turns without time", f"{self.current.process}: {self.current.name} never waits")

    def _pass_on(self, me: _Place) -> None:
        following = self._next()
        if following is not me:
            self.switches += 1
            self.current = following
            following.gate.release()
            me.gate.acquire()
            self.current = me
        if self.over or (self._stops and me is self._main):
            raise EndedError
        me.may_go = False

    def _next(self) -> _Place:
        self._count()
        while True:
            while self._events and self._events[0][0] <= self.now_us:
                try:
                    heappop(self._events)[2]()
                except Exception:
                    self._wrong("an event raises", traceback.format_exc())
            if self._stops:
                return self._main
            can_go = [one for one in self._can_go if one.process.paused_until_us <= self.now_us]
            if can_go:
                following = can_go[0] if len(can_go) == 1 else self._rng.choice(can_go)
                self._can_go.remove(following)
                following.process.turns += 1
                return following
            # The main thread waits with a time limit: something is always due.
            self.now_us = self._events[0][0]
            self._same_instant = 0

    # ---- threads ----

    def started(self, thread: Thread) -> None:
        """A thread exists, and waits for its first turn."""
        self._threads.append(thread)
        self._go(thread.place)

    def ended(self, thread: Thread) -> None:
        """Its last turn is over: somebody else's comes."""
        self._threads.remove(thread)
        self.wake(thread)
        if not self.over:
            self.current = self._next()
            self.current.gate.release()

    def stop(self) -> None:
        """The main thread's turn comes next, and its wait ends with `EndedError`."""
        self._stops = True

    def alive(self) -> list[str]:
        """The threads that have not ended, by process and name."""
        return [f"{one.place.process}: {one.name}" for one in self._threads]

    def end(self) -> None:
        """The run is over. Threads that still wait end."""
        self.over = True
        for thread in list(self._threads):
            self.current = thread.place
            thread.place.gate.release()
            thread.real.join(_LAST_JOIN_S)


turns: Turns
"""Of the present run."""


def begin(fresh: Turns) -> None:
    """From here on the stand-ins below belong to this run."""
    global turns
    turns = fresh


# ---- what stands for the modules that wait, draw and tell the time ----


class Thread:
    """In place of `threading.Thread`."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
        process: Process | None = None,
    ) -> None:
        """`process`: that of who makes it if it is not given."""
        self.name = name or "thread"
        self.ident: int | None = None
        self._work: Callable[[], Any] = lambda: (
            target(*args, **(kwargs or {})) if target is not None else None
        )
        self._turns = turns
        self._ended = False
        self.place = _Place(process or turns.process, self.name)
        self.real = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """See `threading.Thread`."""
        self.ident = id(self)
        self.real.start()
        self._turns.started(self)

    def join(self, timeout: float | None = None) -> None:
        """See `threading.Thread`."""
        until_us = None if timeout is None else self._turns.now_us + int(timeout * 1e6)
        while not self._ended:
            left_us = None if until_us is None else max(0, until_us - self._turns.now_us)
            if not self._turns.wait(self, left_us):
                return

    def is_alive(self) -> bool:
        """See `threading.Thread`."""
        return self.ident is not None and not self._ended

    def _run(self) -> None:
        self.place.gate.acquire()
        try:
            if not self._turns.over:
                self.place.may_go = False
                self._work()
        except EndedError:
            pass
        except BaseException as error:
            if not self.place.process.dead and not self._turns.over:
                self._turns._wrong("a thread raises", f"{self.place.process}: {self.name}: {error!r}")
        finally:
            self._ended = True
            self._turns.ended(self)


class Event:
    """In place of `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """See `threading.Event`."""
        return self._is_set

    def set(self) -> None:
        """See `threading.Event`."""
        self._is_set = True
        turns.wake(self)

    def clear(self) -> None:
        """See `threading.Event`."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """See `threading.Event`."""
        until_us = None if timeout is None else turns.now_us + int(timeout * 1e6)
        while not self._is_set:
            left_us = None if until_us is None else max(0, until_us - turns.now_us)
            if not turns.wait(self, left_us):
                break
        return self._is_set


class SimpleQueue:
    """In place of `queue.SimpleQueue`."""

    def __class_getitem__(cls, _item: object) -> type[SimpleQueue]:
        return cls

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        """See `queue.SimpleQueue`."""
        self._items.append(item)
        turns.wake(self)

    def get(self) -> Any:
        """See `queue.SimpleQueue`."""
        while not self._items:
            turns.wait(self)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """See `queue.SimpleQueue`."""
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """See `queue.SimpleQueue`."""
        return not self._items


class Threading:
    """In place of `threading`. Nobody waits with a lock in hand, so locks may be real."""

    Thread, Event, Lock, RLock, local = Thread, Event, threading.Lock, threading.RLock, threading.local
    Condition, get_ident = threading.Condition, staticmethod(threading.get_ident)


def sleep(seconds: float) -> None:
    """In place of `time.sleep`."""
    turns.wait(object(), int(seconds * 1e6))


class Time:
    """In place of `time`."""

    sleep = staticmethod(sleep)

    @staticmethod
    def monotonic() -> float:
        """Simulated seconds."""
        return turns.now_us / 1e6

    @staticmethod
    def monotonic_ns() -> int:
        """The same as a whole number."""
        return turns.now_us * 1000

    @staticmethod
    def time() -> float:
        """Unix time, which may jump."""
        return Time.time_ns() / 1e9

    @staticmethod
    def time_ns() -> int:
        """The same as a whole number."""
        return (WALL_START_US + turns.now_us + turns.wall_offset_us) * 1000

    perf_counter = thread_time = process_time = monotonic


STAND_INS: dict[Any, Any] = {
    time: Time,
    threading: Threading,
    queue.SimpleQueue: SimpleQueue,
    time.perf_counter: Time.perf_counter,
    time.monotonic: Time.monotonic,
    time.sleep: sleep,
}
"""A thing that modules of ours have, by whatever name -> the one that they have during a run."""
