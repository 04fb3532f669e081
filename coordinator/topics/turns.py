"""So many bytes of produce and fetch work per turn of the loop, so that heartbeats come between."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TURN_BYTES = 2 * 1024 * 1024
"""Bytes of records that are checked, copied or handed over in one turn of the loop; what is more waits for
the next turn. One unit of work (a batch, one partition's part of an answer) may go above it."""

Work = Callable[[], int]
"""Does something, and says how many bytes it moved."""


class Turns:
    """Runs work at once while this turn has room for it, else in later turns, in the order it came."""

    def __init__(self, budget_bytes: int = TURN_BYTES) -> None:
        self._budget = budget_bytes
        self._spent = 0
        self._waiting: deque[Work] = deque()
        self._scheduled = False

    def run(self, work: Work) -> None:
        """Do this, now or later. What it raises later goes to the loop's exception handler."""
        if self._waiting or self._spent >= self._budget:
            self._waiting.append(work)
            return
        self._spent += work()
        if self._spent and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._spent = 0
        self._scheduled = False
        waiting = self._waiting
        try:
            while waiting and self._spent < self._budget:
                self._spent += waiting.popleft()()
        finally:
            if self._spent or waiting:
                self._scheduled = True
                asyncio.get_running_loop().call_soon(self._next_turn)
