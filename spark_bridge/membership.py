"""What this query owns, and the hold on it while a batch is in flight.

Two threads meet here: the member's own (heartbeats, assignments, revocations) and the worker's main
thread, which Spark calls. A partition that is revoked while a batch reads it is given up only after
that batch has been committed, bounded by the rebalance timeout; an idle one goes at once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Protocol

from ringleader.spark_bridge.offsets import TopicPartition


class CommitRefusedError(Exception):
    """The group did not take a commit because this member is not (any more) part of that generation."""


class GroupUnavailableError(Exception):
    """The coordinator cannot be reached, or says "later": the same call may work in a moment."""


@dataclass(frozen=True)
class Share:
    """The partitions of one assignment, and the generation that gave them."""

    generation: int
    member_id: str
    partitions: frozenset[TopicPartition]


class Group(Protocol):
    """What the source asks of its membership. Calls block; errors as named."""

    def start(self, hold: Hold) -> None:
        """Join; from now on ``hold`` is told of assignments and revocations. Returns at once."""

    def commit(self, offsets: Mapping[TopicPartition, int], generation: int) -> None:
        """Commit next offsets to read, as a member of that generation.

        Raises CommitRefusedError or GroupUnavailableError.
        """

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's offsets; partitions without one are left out. Raises GroupUnavailableError."""

    def leave(self, reason: str) -> None:
        """Leave at once and end all threads. May be called twice, and before ``start``."""


class Hold:
    """The share of this query and whether a batch reads it right now. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._share: Share | None = None
        self._busy = False
        self._revoking: Future[None] | None = None
        self._failure: BaseException | None = None

    # -- the member's thread

    def assigned(self, share: Share) -> None:
        """A rebalance ended with this share."""
        with self._changed:
            self._share = share
            self._revoking = None
            self._changed.notify_all()

    def revoke(self) -> Future[None]:
        """The member is about to rejoin and gives everything up.

        The future is done when no batch reads the share any more: at once when idle.
        """
        with self._changed:
            if self._revoking is None:
                self._revoking = Future()
                self._release_if_idle()
                self._changed.notify_all()
            return self._revoking

    def lost(self) -> None:
        """The share is gone without asking: fenced, or the hold lasted too long."""
        with self._changed:
            self._share = None
            self._give_up()
            self._revoking = None
            self._changed.notify_all()

    def failed(self, error: BaseException) -> None:
        """The membership ended with an error that no retry cures."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    # -- the thread that Spark calls

    def share(self) -> Share | None:
        """The current share; None while joining, and while a revocation is under way.

        Raises what ``failed`` was given.
        """
        with self._changed:
            return self._current()

    def wait_share(self, timeout_s: float | None) -> Share | None:
        """The share as soon as there is one; None when time ran out."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while (share := self._current()) is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)
            return share

    def wait_change(self, timeout_s: float) -> None:
        """Wait until something changes, or the time is over."""
        with self._changed:
            if self._failure is None:
                self._changed.wait(timeout_s)

    def begin(self, generation: int) -> bool:
        """A batch over this generation's share starts. False when that share is gone or going."""
        with self._changed:
            share = self._current()
            if share is None or share.generation != generation:
                return False
            self._busy = True
            return True

    def end(self) -> None:
        """The batch is over (committed, or given up): a waiting revocation goes on."""
        with self._changed:
            self._busy = False
            self._release_if_idle()
            self._changed.notify_all()

    def holds(self, generation: int) -> bool:
        """Whether the share of that generation is still ours, a revocation under way included."""
        with self._changed:
            return self._share is not None and self._share.generation == generation

    def _current(self) -> Share | None:
        if self._failure is not None:
            raise self._failure
        return self._share if self._revoking is None else None

    def _release_if_idle(self) -> None:
        if self._revoking is not None and not self._busy:
            self._share = None
            self._give_up()

    def _give_up(self) -> None:
        if self._revoking is not None and not self._revoking.done():
            # The member may have stopped waiting this very moment.
            with contextlib.suppress(InvalidStateError):
                self._revoking.set_result(None)
