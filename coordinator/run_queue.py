"""The one scheduler of what is too long for one turn of the loop: it is worked on in slices, with other work
in between.

Through it go requests and answers with many entries, and the node's own work: what is due in the shards
(sessions, retention, expiry of transactional ids). A slice is a whole: what must not be seen half done is
done in one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

SLICE_ELEMENTS = 500
"""How many entries of a request a handler sees to between two `yield`s: 1 to 5 ms of work."""

TURN_S = 0.004
"""How long such work goes on in one turn of the loop: what others wait for it."""

ACTIVE_MAX = 4
"""How many are in progress at a time: each may hold a long answer in the making."""

Slices = Generator[None, None, Any]
"""Work that gives way to others at each `yield`; as a handler it returns what a handler returns."""

T = TypeVar("T")


class RunQueue:
    """Jobs take turns with each other, and all of them with the rest of the loop. An exception of a job goes
    to the loop's exception handler."""

    def __init__(self) -> None:
        self._active: deque[Slices] = deque()
        self._waiting: deque[Slices] = deque()
        self._scheduled = False

    def add(self, job: Slices) -> None:
        """Begin it in one of the next turns."""
        self._waiting.append(job)
        self._schedule()

    def first(self, job: Slices) -> None:
        """Likewise, before any that have not begun: what ends one that has, and frees what that took; and the
        node's own work."""
        self._active.append(job)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    async def run(self, job: Slices) -> Any:
        """Returns or raises what the job does."""
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

    def _turn(self) -> None:
        active, waiting = self._active, self._waiting
        stop = perf_counter() + TURN_S
        try:
            while (active or waiting) and perf_counter() < stop:
                while waiting and len(active) < ACTIVE_MAX:
                    active.append(waiting.popleft())
                job = active.popleft()
                for _ in job:
                    active.append(job)
                    break
        finally:
            self._scheduled = bool(active or waiting)
            if self._scheduled:
                asyncio.get_running_loop().call_soon(self._turn)


def whole(slices: Slices) -> Any:
    """Its result, all done in one go."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            return stop.value


async def in_turns(entries: Iterable[T]) -> AsyncIterator[T]:
    """These entries, with other work in between."""
    for number, entry in enumerate(entries, 1):
        yield entry
        if not number % SLICE_ELEMENTS:
            await asyncio.sleep(0)


async def gather_some(work: Iterable[Coroutine[Any, Any, T]], at_a_time: int = 50) -> list[T]:
    """As `asyncio.gather`, but that not all of it begins in one turn of the loop."""
    work = iter(work)
    results: list[T] = []
    while some := list(islice(work, at_a_time)):
        results += await asyncio.gather(*some)
    return results
