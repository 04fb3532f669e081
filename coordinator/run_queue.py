"""The one scheduler of the event loop: work that is too long for one turn of the loop, or too much together.

Through it go requests and answers with many entries, batches of records that are appended or read, coroutines
with many steps, and the node's own work: timers of the shards (sessions, retention, the steps of
`long_work`). All of it has one budget of time in each turn, `TURN_S`; what is left waits for the next one,
and heartbeats come between."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

SLICE_ELEMENTS = 500
"""Number of entries of a request that a handler works on between two `yield`s: 1 to 5 ms of work."""

TURN_S = 0.004
"""How long such work goes on in one turn of the loop: the others wait that long for it."""

ACTIVE_MAX = 4
"""Number of jobs in progress at a time: each may hold a long answer in the making."""

AT_A_TIME = 50
"""Number of coroutines that `gather` has in progress."""

Slices = Generator[None, None, Any]
"""Work that gives way to others at each `yield`; as a handler it returns what a handler returns. A slice is a
whole: it is never seen half done."""

Work = Callable[[], object]

T = TypeVar("T")


class RunQueue:
    """Jobs take turns with each other, and all of them with the rest of the loop. An exception that leaves a
    job goes to the loop's exception handler."""

    def __init__(self) -> None:
        self._active: deque[Slices] = deque()
        self._waiting: deque[Slices] = deque()
        self._lanes: dict[object, deque[Work]] = {}
        """By owner: pieces of work that found no time left in their turn."""
        self._spent_s = 0.0
        """Of this turn's time."""
        self._stop_s = 0.0
        """When this turn's time is over, by `perf_counter`."""
        self._scheduled = False

    def add(self, job: Slices) -> None:
        """Begin it in one of the next turns."""
        self._waiting.append(job)
        self._schedule()

    def first(self, job: Slices) -> None:
        """Begin it before any that have not begun: the end of one that has begun, which frees memory, and the
        node's own work."""
        self._active.append(job)
        self._schedule()

    def at_once(self, work: Work, owner: object) -> None:
        """Do a short piece of work now if this turn has time left, else in one of the next. Pieces of one
        owner, a connection say, keep their order, and share one place among the jobs."""
        lane = self._lanes.get(owner)
        if lane is not None:
            lane.append(work)
        elif self._spent_s < TURN_S:
            began_s = perf_counter()
            try:
                work()
            finally:
                self._spent_s += perf_counter() - began_s
                self._schedule()
        else:
            self._lanes[owner] = deque((work,))
            self.first(self._lane(owner))

    async def run(self, job: Slices) -> Any:
        """The value that the job returns, or the exception that it raises."""
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def steps() -> Slices:
            try:
                while not ended.done():
                    next(job)
                    yield
                job.close()  # nobody waits for it any more
            except StopIteration as stop:
                ended.set_result(stop.value)
            except Exception as error:
                ended.set_exception(error)

        self.add(steps())
        return await ended

    async def pause(self) -> None:
        """Give way in a coroutine. It goes on in the next turn that has time left, and has the rest of it."""
        resumed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.first(self._resume(resumed))
        await resumed

    async def each(self, entries: Iterable[T]) -> AsyncIterator[T]:
        """These entries, with other work in between."""
        for number, entry in enumerate(entries, 1):
            yield entry
            if not number % SLICE_ELEMENTS:
                await self.pause()

    async def gather(self, work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """As `asyncio.gather`, but not all of it begins in one turn of the loop."""
        work = iter(work)
        results: list[T] = []
        while some := list(islice(work, AT_A_TIME)):
            results += await asyncio.gather(*some)
            if len(some) == AT_A_TIME:
                await self.pause()
        return results

    def _resume(self, resumed: asyncio.Future[None]) -> Slices:
        if not resumed.done():
            resumed.set_result(None)
            self._stop_s = 0.0
            yield

    def _lane(self, owner: object) -> Slices:
        lane = self._lanes[owner]
        try:
            while lane:
                lane.popleft()()
                yield
        except Exception:
            self.first(self._lane(owner))
            raise
        del self._lanes[owner]

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        active, waiting = self._active, self._waiting
        began_s = perf_counter()
        self._stop_s = began_s + TURN_S
        self._spent_s = 0.0
        try:
            while (active or waiting) and perf_counter() < self._stop_s:
                while waiting and len(active) < ACTIVE_MAX:
                    active.append(waiting.popleft())
                job = active.popleft()
                for _ in job:
                    active.append(job)
                    break
                self._spent_s = perf_counter() - began_s
        finally:
            if not self._stop_s:
                self._spent_s = TURN_S
            self._scheduled = bool(active or waiting or self._spent_s)
            if self._scheduled:
                asyncio.get_running_loop().call_soon(self._turn)


def whole(slices: Slices) -> Any:
    """The value that they return, all done in one go."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            return stop.value
