"""`SyncGroupMember`: the same as `GroupMember` for code without an event loop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from ringleader.clients.checks import seconds
from ringleader.clients.errors import MembershipError, MembershipOverError
from ringleader.clients.group.callbacks.callers import ThreadCaller
from ringleader.clients.group.callbacks.listener import Listener
from ringleader.clients.group.callbacks.work import Work
from ringleader.clients.group.member import (
    COMMIT_TIMEOUT_S,
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Member,
)
from ringleader.clients.model import Assigned, Lost, OffsetAndMetadata, Offsets, Revoked, TopicPartition

logger = logging.getLogger("ringleader.clients.group.membership")

T = TypeVar("T")


class SyncGroupMember(Member):
    """A member for code without an event loop. Callbacks run in a thread of the member, one after the other;
    `on_revoked` may block, or return a `concurrent.futures.Future` that is done when the assignment is given
    up. A context manager: starts, and leaves at the end.
    """

    _caller: ThreadCaller | None = None

    def _listener(self) -> Listener:
        self._changed = threading.Condition()
        return Listener(
            self._run_assigned,
            self._run_revoking,
            self._run_revoked,
            self._run_lost,
            self._run_over,
            self._assign,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the threads and begin to join; does not wait for the assignment."""
        self._check_new()
        self._caller = ThreadCaller()
        self._driver.start(self._caller, self._wake)

    def ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """As `GroupMember.ready`."""
        try:
            self._result(self._driver.ready(timeout_s))
        except MembershipOverError:
            if self.error is not None:
                raise self.error from None
            raise

    def wait_assigned(self, timeout_s: float | None = None) -> Assigned:
        """As `GroupMember.wait_assigned`."""
        deadline_s = None if timeout_s is None else time.monotonic() + seconds(timeout_s)
        self.polled()
        with self._changed:
            while (assigned := self._assigned_if_any()) is None:
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                self._check_wait()
                if left_s is not None and left_s <= 0:
                    raise TimeoutError(f"{self._describe()}: no assignment within {timeout_s:g} s")
                self._changed.wait(left_s)
            return assigned

    @contextmanager
    def working(self) -> Iterator[Assigned]:
        """As `GroupMember.working`, with `with`. Work inside of a thread's own is a part of it, and that of
        threads that run in a copy of its context (`contextvars.copy_context`)."""
        work = self._begin_work()
        try:
            yield work.assigned
        finally:
            self._driver.gate.exit(work)

    def _begin_work(self) -> Work:
        if self._caller is not None and self._caller.inside():
            raise RuntimeError("no work may begin inside of a callback: it would wait for itself")
        self.polled()
        with self._changed:
            while (work := self._driver.gate.enter()) is None:
                self._assigned_if_any()  # raises when there will be none
                self._check_wait()
                self._changed.wait()
        return work

    def commit(
        self, offsets: Offsets, *, generation: int | None = None, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> None:
        """As `GroupMember.commit`."""
        self._result(self._driver.offsets.commit(offsets, generation, int(seconds(timeout_s) * 1000)))

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `GroupMember.committed`."""
        return self._result(self._driver.committed(partitions, int(seconds(timeout_s) * 1000)))

    def rejoin(self, reason: str) -> None:
        """As `GroupMember.rejoin`."""
        self._check_running()
        self._driver.rejoin(reason)

    def leave(self, reason: str = "", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupMember.leave`."""
        self._end(reason or "asked to", timeout_s, silently=False)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupMember.stop`."""
        self._end("stopped", timeout_s, silently=self.settings.group_instance_id is not None)

    def _end(self, reason: str, timeout_s: float, silently: bool) -> None:
        seconds(timeout_s)
        deadline_s = time.monotonic() + timeout_s
        self._driver.leave(reason, int(timeout_s * 1000), silently)
        if self._caller is None or self._caller.inside() or self._driver.gate.inside():
            return
        if not self._driver.ended.wait(timeout_s):
            logger.warning("%s: not left within %g s, and going on", self._describe(), timeout_s)
        self._caller.close(max(0.0, deadline_s - time.monotonic()))
        self._driver.join_thread(max(0.0, deadline_s - time.monotonic()))

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise MembershipOverError(f"{self._describe()}: it ended meanwhile") from None

    # ---- jobs: in the callbacks' thread ----

    def _run_assigned(self, assigned: Assigned, closings: int) -> None:
        try:
            if self._on_assigned is not None:
                self._on_assigned(assigned)
        finally:
            with self._changed:
                self._assigned = assigned
                self._driver.gate.open(assigned, closings)
                self._changed.notify_all()

    def _run_revoking(self, revoked: Revoked) -> None:
        if not revoked.partial:
            with self._changed:
                self._assigned = None

    def _run_revoked(self, revoked: Revoked) -> Any:
        self._run_revoking(revoked)
        return None if self._on_revoked is None else self._on_revoked(revoked)

    def _run_lost(self, lost: Lost) -> None:
        if not lost.partial:
            with self._changed:
                self._assigned = None
        if self._on_lost is not None:
            self._on_lost(lost)

    def _run_over(self, error: MembershipError | None) -> None:
        with self._changed:
            self._assigned = None
            self._changed.notify_all()
        if error is not None and self._on_failed is not None:
            self._on_failed(error)
