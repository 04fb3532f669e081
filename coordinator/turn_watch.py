"""A debug mode for finding what holds the loop: each turn that takes too much CPU is reported, with what ran.

Counted is the CPU time of the loop's thread, not the time by the clock: a machine that is busy with other
work makes no turn longer. The time of the garbage collector is taken off, as it comes whenever it comes.
It needs the loop of the standard library, which asks a selector between any two turns.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ringleader.coordinator.logs import get_log

EVENT = "turn of the loop too long"

FRAMES = 8
"""The number of innermost frames of the running code that are logged."""


@dataclass(frozen=True, slots=True)
class LongTurn:
    """A turn of the loop that took longer than it may."""

    cpu_ms: float
    """Of the loop's thread, without the garbage collector."""
    collector_ms: float
    running: str
    """The code that ran when half of the time was over: the stack, outermost first; "" if it went by
    unseen."""


Report = Callable[[LongTurn], None]


def warn(turn: LongTurn) -> None:
    """A `Report`: one log line."""
    get_log().warning(
        EVENT,
        cpu_ms=round(turn.cpu_ms),
        collector_ms=round(turn.collector_ms),
        running=turn.running,
    )


class TurnWatch(selectors.DefaultSelector):
    """The selector of a loop that is watched. `with` it around the life of the loop, on the loop's thread."""

    def __init__(self, most_ms: float, report: Report) -> None:
        """`report` is called on the loop's thread, after a turn that took more than `most_ms`."""
        super().__init__()
        self._most_s = most_ms / 1000
        self._report = report
        self._thread = threading.get_ident()
        self._began_s = 0.0
        """By the thread's CPU clock."""
        self._collector_s = 0.0
        self._collector_began_s = 0.0
        self._turn = 0
        self._since_s: float | None = None
        """When the turn began, by the monotonic clock; None: between two."""
        self._seen = (0, "")
        """Turn, and what ran in it."""
        self._over = threading.Event()
        self._looker = threading.Thread(target=self._look, name="turn-watch", daemon=True)

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """A loop whose turns it watches."""
        return asyncio.SelectorEventLoop(self)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._collecting)
        self._looker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looker.join()
        gc.callbacks.remove(self._collecting)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector`: the loop calls it between two turns."""
        if self._since_s is not None:
            self._ended()
        found = super().select(timeout)
        self._turn += 1
        self._collector_s = 0.0
        self._since_s = time.monotonic()
        self._began_s = time.thread_time()
        return found

    def _ended(self) -> None:
        cpu_s = time.thread_time() - self._began_s - self._collector_s
        self._since_s = None
        if cpu_s > self._most_s:
            turn, running = self._seen
            running = running if turn == self._turn else ""
            self._report(LongTurn(cpu_s * 1000, self._collector_s * 1000, running))

    def _collecting(self, phase: str, info: Mapping[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collector_began_s = time.thread_time()
        else:
            self._collector_s += time.thread_time() - self._collector_began_s

    def _look(self) -> None:
        """On a thread of its own: note what runs in a turn that takes long."""
        while not self._over.wait(self._most_s / 4):
            turn, since_s = self._turn, self._since_s
            if since_s is None or turn == self._seen[0] or time.monotonic() - since_s < self._most_s / 2:
                continue
            frame: Any = sys._current_frames().get(self._thread)
            stack = traceback.extract_stack(frame)[-FRAMES:] if frame is not None else []
            self._seen = turn, " > ".join(f"{one.name} ({one.filename}:{one.lineno})" for one in stack)
