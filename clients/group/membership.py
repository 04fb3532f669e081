"""`GroupMember`: membership of a Kafka group for any service, for any `protocol_type`.

The member keeps its connection and heartbeats on a thread of its own; whatever the application does, its
membership goes on. `GroupMember` is for asyncio, `SyncGroupMember` for code without an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from ringleader.clients.checks import seconds
from ringleader.clients.errors import MembershipError, MembershipOverError
from ringleader.clients.group.callbacks.callers import LoopCaller
from ringleader.clients.group.callbacks.listener import Listener
from ringleader.clients.group.callbacks.work import Work
from ringleader.clients.group.driver import LOOP_ENDED
from ringleader.clients.group.member import (
    COMMIT_TIMEOUT_S,
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Member,
)
from ringleader.clients.group.sync_membership import SyncGroupMember
from ringleader.clients.model import (
    Assigned,
    Lost,
    MemberInfo,
    MemberProtocol,
    OffsetAndMetadata,
    Offsets,
    Revoked,
    TopicPartition,
)

__all__ = [
    "Assigned",
    "GroupMember",
    "Lost",
    "MemberInfo",
    "MemberProtocol",
    "OffsetAndMetadata",
    "Revoked",
    "SyncGroupMember",
]

logger = logging.getLogger("ringleader.clients.group.membership")

T = TypeVar("T")


class GroupMember(Member):
    """A member for asyncio. Callbacks may be coroutine functions; they run in the loop that called `start`,
    one after the other. An async context manager: starts, and leaves at the end.
    """

    _caller: LoopCaller | None = None
    _closed = False

    def _listener(self) -> Listener:
        self._waiters: set[asyncio.Future[None]] = set()
        return Listener(
            self._run_assigned,
            self._run_revoking,
            self._run_revoked,
            self._run_lost,
            self._run_over,
            self._assign,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the thread and begin to join; does not wait for the assignment."""
        self._check_new()
        caller = LoopCaller(lambda: self._driver.abandon(LOOP_ENDED))
        self._caller = caller
        self._driver.start(caller, lambda: caller.call(self._wake))

    async def ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the group's coordinator was found: for those who want to fail at the start.

        `start` does not wait, and the member tries for ever. Raises ConnectionLostError with all bootstrap
        addresses and why each cannot be reached, CoordinatorUnavailableError while the cluster names no
        coordinator, and what ended the membership.
        """
        try:
            await self._result(self._driver.ready(timeout_s))
        except MembershipOverError:
            if self.error is not None:
                raise self.error from None
            raise

    async def wait_assigned(self, timeout_s: float | None = None) -> Assigned:
        """The assignment, as soon as there is one and `on_assigned` has returned.

        Raises TimeoutError with what is in the way, and what ended the membership; RuntimeError in a callback
        that would wait for itself, and in another event loop than that of `start`.
        """
        if timeout_s is not None:
            seconds(timeout_s)
        self._check_home()
        self.polled()
        try:
            async with asyncio.timeout(timeout_s):
                while (assigned := self._assigned_if_any()) is None:
                    await self._wait()
                return assigned
        except TimeoutError:
            raise TimeoutError(f"{self._describe()}: no assignment within {timeout_s:g} s") from None

    def working(self) -> AbstractAsyncContextManager[Assigned]:
        """`async with member.working() as assigned:` is a piece of work that a revocation waits for.

        Its beginning waits for an assignment (and raises what `wait_assigned` raises); while a revocation is
        under way none begins. `on_revoked` is called when all work in hand has ended, or the time for it is
        over. Work inside of work in hand is a part of it: in the same task, and in tasks made there, as those
        of an `asyncio.TaskGroup`. Raises RuntimeError in a callback.
        """
        return _Working(self)

    async def commit(
        self, offsets: Offsets, *, generation: int | None = None, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> None:
        """Commit {("topic", 0): next offset to read} as a member of the present generation.

        `generation`: that of the assignment that the work belongs to; if it is over, CommitFailedError,
        without a request. Repeats what Kafka calls retriable until the time is over. Commits are made in the
        order in which they were asked for. Raises CommitFailedError, RebalanceInProgressError, BrokerError
        (for example OFFSET_METADATA_TOO_LARGE), RetriableError when time ran out, MembershipOverError.
        """
        await self._result(self._driver.offsets.commit(offsets, generation, int(seconds(timeout_s) * 1000)))

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of these partitions, or of all; those without one are left out."""
        return await self._result(self._driver.committed(partitions, int(seconds(timeout_s) * 1000)))

    async def rejoin(self, reason: str) -> None:
        """Make the group rebalance, for example because a `metadata` callable has new things to say. Raises
        why the membership is over."""
        self._check_running()
        self._driver.rejoin(reason)

    async def leave(self, reason: str = "", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Give up the assignment, leave the group, end the thread: all within that time. A second or a
        quarter of it, whichever is less, is kept for the coordinator's answer; work in hand, `on_revoked` and
        commits have the rest, and never more than the rebalance timeout.

        From inside of a callback, or of work in hand, it begins to leave and returns at once.
        """
        await self._end(reason or "asked to", timeout_s, silently=False)

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `leave`; a static member (`group_instance_id`) ends without leaving, as it will be back. May be
        called at any time, more than once, and in another event loop."""
        await self._end("stopped", timeout_s, silently=self.settings.group_instance_id is not None)

    async def _end(self, reason: str, timeout_s: float, silently: bool) -> None:
        seconds(timeout_s)
        deadline_s = time.monotonic() + timeout_s
        self._driver.leave(reason, int(timeout_s * 1000), silently)
        if self._caller is None or self._caller.inside() or self._driver.gate.inside():
            return
        if not self._caller.at_home():
            await asyncio.to_thread(self._driver.ended.wait, timeout_s)
            self._caller.dismiss()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._driver.ended.is_set():
                    await self._wait()
        if not self._driver.ended.is_set():
            logger.warning("%s: not left within %g s, and going on", self._describe(), timeout_s)
        if not self._closed:
            self._closed = True
            await self._caller.close(max(0.0, deadline_s - time.monotonic()))
            self._driver.join_thread(max(0.0, deadline_s - time.monotonic()))

    # ---- waiting ----

    async def _begin_work(self) -> Work:
        if self._caller is not None and self._caller.inside():
            raise RuntimeError("no work may begin inside of a callback: it would wait for itself")
        self._check_home()
        self.polled()
        while (work := self._driver.gate.enter()) is None:
            self._assigned_if_any()  # raises when there will be none
            await self._wait()
        return work

    def _check_home(self) -> None:
        """Raises RuntimeError in another event loop than that of `start`, and why the member is over."""
        self._check_running()
        if self._caller is not None and not self._caller.at_home():
            raise RuntimeError(f"group {self.settings.group_id!r}: ask in the event loop that called start")

    async def _wait(self) -> None:
        """Until something changes."""
        self._check_wait()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _result(self, future: Future[T]) -> T:
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():
                raise MembershipOverError(f"{self._describe()}: it ended meanwhile") from None
            raise

    # ---- jobs: in the caller's loop ----

    async def _run_assigned(self, assigned: Assigned, closings: int) -> None:
        try:
            await _call(self._on_assigned, assigned)
        finally:
            self._assigned = assigned
            self._driver.gate.open(assigned, closings)
            self._wake()

    def _run_revoking(self, revoked: Revoked) -> None:
        if not revoked.partial:
            self._assigned = None

    async def _run_revoked(self, revoked: Revoked) -> None:
        self._run_revoking(revoked)
        await _call(self._on_revoked, revoked)

    async def _run_lost(self, lost: Lost) -> None:
        if not lost.partial:
            self._assigned = None
        await _call(self._on_lost, lost)

    async def _run_over(self, error: MembershipError | None) -> None:
        self._assigned = None
        self._wake()
        if error is not None:
            await _call(self._on_failed, error)


class _Working(AbstractAsyncContextManager[Assigned]):
    """A piece of work. Between the moment it counts and the beginning of its body nothing is awaited, so a
    cancelled task leaves no count behind."""

    _work: Work

    def __init__(self, member: GroupMember) -> None:
        self._member = member

    async def __aenter__(self) -> Assigned:
        self._work = await self._member._begin_work()
        return self._work.assigned

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._member._driver.gate.exit(self._work)


async def _call(callback: Callable[[Any], Any] | None, argument: object) -> None:
    if callback is not None:
        result = callback(argument)
        if inspect.isawaitable(result):
            await result
