"""Commits of one member, one after the other in the order in which they were asked for."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ringleader.clients.errors import ClientError, MembershipOverError, RequestTimedOutError
from ringleader.clients.metrics import Counters
from ringleader.clients.model import OffsetAndMetadata, TopicPartition

End = Callable[[Exception | None], None]
"""Called with the outcome of a commit: None for done. In the driver's thread, or in that of the caller."""


@dataclass(eq=False, slots=True)
class Commit:
    """Offsets, the identity to commit them under (generation, member id), the deadline, and whether to
    repeat it."""

    offsets: dict[TopicPartition, int | OffsetAndMetadata]
    identity: tuple[int, str]
    requested_ms: int
    timeout_ms: int
    repeats: bool
    ends: list[End] = field(default_factory=list)
    shrinks: int = 0
    """How often the member had lost a part of its assignment by then: what is lost later may be of this
    commit."""
    warn: End | None = None
    """Called at the end of a commit that has no other callback; once, however many are merged."""
    timer: asyncio.TimerHandle | None = None
    """Ends its wait for its turn."""
    given_up: bool = False
    """Nobody waits for it any more: what is on its way ends, nothing is repeated."""

    @property
    def deadline_ms(self) -> int:
        """When it has to have ended."""
        return self.requested_ms + self.timeout_ms

    def may_repeat(self) -> bool:
        """Whether another try makes sense after one that failed."""
        return self.repeats and not self.given_up

    def end(self, error: Exception | None) -> None:
        """Report its outcome."""
        for end in self.ends:
            end(error)
        if self.warn is not None:
            self.warn(error)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self.given_up = True


class CommitQueue:
    """Takes commits from any thread; `run` writes them, in the driver's loop.

    Commits that are not repeated and wait next to each other as the same member of the same generation become
    one, of which the newest offset counts: so they take no more room than there are partitions.
    """

    def __init__(self, counters: Counters, now_ms: Callable[[], int], over_text: Callable[[], str]) -> None:
        self._counters = counters
        self._now_ms = now_ms
        self._over_text = over_text
        self._lock = threading.Lock()
        self._waiting: deque[Commit] = deque()
        self._current: Commit | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more = asyncio.Event()

    # ---- from any thread ----

    def add(self, commit: Commit) -> bool:
        """Let it wait for its turn. False when the member has ended."""
        with self._lock:
            if self._closed or self._loop is None:
                return False
            last = self._waiting[-1] if self._waiting else None
            if last is not None and _merge(last, commit):
                return True
            self._waiting.append(commit)
            self._loop.call_soon_threadsafe(self._come, commit)
            return True

    def __len__(self) -> int:
        """Commits that wait or are on their way."""
        with self._lock:
            return len(self._waiting) + (self._current is not None)

    def orphan(self) -> None:
        """This is a copy of the process, without the loop: nothing is taken."""
        self._lock, self._closed = threading.Lock(), True

    # ---- in the driver's loop ----

    def open(self) -> None:
        """From now on commits are taken."""
        self._loop = asyncio.get_running_loop()

    async def run(self, write: Callable[[Commit], Awaitable[None]]) -> None:
        """Write them, one by one, as long as the member lives."""
        while True:
            while (commit := self._take()) is None:
                self._more.clear()
                await self._more.wait()
            if commit.timer is not None:
                commit.timer.cancel()
            if commit.given_up:
                with self._lock:
                    self._current = None
                continue
            began_ms = self._now_ms()
            error: Exception | None = None
            try:
                await write(commit)
            except asyncio.CancelledError:
                commit.end(MembershipOverError(self._over_text()))
                raise
            except Exception as found:
                error = found
            finally:
                with self._lock:
                    self._current = None
            if commit.offsets:
                self._counters.committed(self._now_ms() - began_ms, error is None)
            commit.end(error)
            if error is not None and not isinstance(error, ClientError):
                raise error  # of our own making: the next commit would come to the same

    def close(self) -> None:
        """The member has ended: what waits is not made any more."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for commit in waiting:
            commit.end(MembershipOverError(self._over_text()))

    def _take(self) -> Commit | None:
        with self._lock:
            self._current = self._waiting.popleft() if self._waiting else None
            return self._current

    def _come(self, commit: Commit) -> None:
        self._more.set()
        if commit.repeats:
            wait_s = max(0, commit.deadline_ms - self._now_ms()) / 1000
            commit.timer = asyncio.get_running_loop().call_later(wait_s, self._expire, commit)

    def _expire(self, commit: Commit) -> None:
        """Its time is over; one that is on its way finds that out by itself."""
        with self._lock:
            if commit not in self._waiting:
                return
            self._waiting.remove(commit)
        if not commit.given_up:
            seconds = commit.timeout_ms / 1000
            commit.end(RequestTimedOutError(f"a commit did not get its turn within {seconds:g} s"))


def _merge(last: Commit, commit: Commit) -> bool:
    same = last.identity == commit.identity and last.shrinks == commit.shrinks
    if last.repeats or commit.repeats or not same:
        return False
    last.offsets |= commit.offsets
    last.ends += commit.ends
    last.warn = last.warn or commit.warn
    return True
