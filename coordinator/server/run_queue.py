"""Requests and answers that are too long for one turn of the loop: worked on in slices, between other work."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from time import perf_counter

SLICE_ELEMENTS = 500
"""How many entries of a request a handler sees to between two `yield`s: 1 to 5 ms of work."""

TURN_S = 0.004
"""How long such work goes on in one turn of the loop: what others wait for it."""

ACTIVE_MAX = 4
"""How many are in progress at a time: each may hold a long answer in the making."""

Slices = Generator[None, None, None]


class RunQueue:
    """Jobs take turns with each other, and all of them with the rest of the loop. A job raises nothing."""

    def __init__(self) -> None:
        self._active: deque[Slices] = deque()
        self._waiting: deque[Slices] = deque()
        self._scheduled = False

    def add(self, job: Slices) -> None:
        """Begin it in one of the next turns."""
        self._waiting.append(job)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        active, waiting = self._active, self._waiting
        stop = perf_counter() + TURN_S
        while perf_counter() < stop:
            while waiting and len(active) < ACTIVE_MAX:
                active.append(waiting.popleft())
            if not active:
                return
            job = active.popleft()
            for _ in job:
                active.append(job)
                break
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._turn)
