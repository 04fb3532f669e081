"""Work of a shard machine that is too much for one append: done in steps, each when the log has the one
before.

Between two steps the machine serves requests. A job is a generator; what it does until it yields is one step:
a few milliseconds of work, and appends that count each for itself. So a job must be right wherever it is cut
off by the end of the shard's life, and has to look again, in each step, at what it found in the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from typing import TypeVar, cast

from ringleader.coordinator.machine import NOTHING, Outbox

T = TypeVar("T")

LOG_WAIT_MS = 5
"""How long a step waits when the log does not have the one before: else all would become durable at once."""


def in_steps(work: Generator[int, None, T], first: int, each: int) -> Generator[None, None, T]:
    """Work that yields how much it has done since it yielded last, in steps: so much in the first one, and in
    each of the others."""
    left = first
    while True:
        try:
            left -= next(work)
        except StopIteration as stop:
            return cast(T, stop.value)
        if left <= 0:
            yield
            left = each


class LongWork:
    """The jobs of one machine, in turn with each other."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._jobs: deque[Iterator[None]] = deque()
        self.written = out.emitted
        """Position of the last append of a step."""
        self.now_ms = 0
        """The time of the present step, for its job."""

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: Iterator[None]) -> None:
        """Take a job over; then call `step` when it is due."""
        self._jobs.append(job)

    def step(self, now_ms: int) -> int | None:
        """Do one step; when the next one is due, None when no job is left."""
        if not self._jobs:
            return None
        if self.written > self._out.durable:
            return now_ms + LOG_WAIT_MS
        self.now_ms = now_ms
        emitted, job = self._out.emitted, self._jobs.popleft()
        if next(job, job) is not job:
            self._jobs.append(job)
        if self._out.emitted > emitted:
            self.written = self._out.emitted
        return now_ms if self._jobs else None

    def clear(self) -> None:
        """No job goes on."""
        self._jobs.clear()
        self.written = NOTHING
