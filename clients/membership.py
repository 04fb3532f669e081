"""`GroupMember`: a place in a Kafka group for any service, for any `protocol_type`.

The member keeps its connection and heartbeats on a thread of its own; whatever the application does, its
membership goes on. `GroupMember` is for asyncio, `SyncGroupMember` for code without an event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Self, TypeVar

from ringleader.clients.callers import LoopCaller, ThreadCaller
from ringleader.clients.driver import Driver, Leader, Listener, Watch
from ringleader.clients.errors import MembershipError, MembershipOverError
from ringleader.clients.machine import MemberMachine
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
from ringleader.clients.sasl import Sasl
from ringleader.clients.settings import GivenUp, MemberSettings
from ringleader.clients.transport import Cluster, parse_bootstrap

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

COMMIT_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0
"""How long the end waits for a callback that does not return."""
GONE = "the application's event loop has ended"

T = TypeVar("T")
Shares = Mapping[str, bytes]
AssignCallback = Callable[[str, list[MemberInfo]], "Shares | Awaitable[Shares]"]


class _Member:
    """What both kinds of members have in common."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        group_id: str,
        *,
        protocols: Sequence[MemberProtocol],
        protocol_type: str = "consumer",
        assign: AssignCallback | None = None,
        on_assigned: Callable[[Assigned], Any] | None = None,
        on_revoked: Callable[[Revoked], Any] | None = None,
        on_lost: Callable[[Lost], Any] | None = None,
        on_failed: Callable[[MembershipError], Any] | None = None,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 300_000,
        heartbeat_interval_ms: int = 3_000,
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        group_instance_id: str | None = None,
        client_id: str = "ringleader-member",
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        given_up: GivenUp | None = None,
        leader: Leader | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Does not connect yet. Raises ValueError for settings that cannot work.

        `assign(protocol, members)` runs when this member leads: it returns each member's share as bytes.
        `on_assigned` gets the new share; `on_revoked` has to give it up before the group goes on (the
        rejoin waits for it, at most until the rebalance timeout); `on_lost` hears that it is gone already;
        `on_failed` that the membership ended with an error. With `given_up(before, after)` the member keeps
        its share while it rejoins (KIP-429): `on_revoked` is asked only for what that function says is in
        the share before and not in the new one, and then the member joins once more. `leader` and `watch`
        are for code that works with the cluster from inside of the driver, see
        `ringleader.clients.subscription`.
        """
        parse_bootstrap(bootstrap)
        if assign is None and leader is None:
            raise ValueError("an assign callback is needed: any member may become the leader")
        self.settings = MemberSettings(
            group_id=group_id,
            protocol_type=protocol_type,
            group_instance_id=group_instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            given_up=given_up,
        )

        def make_cluster() -> Cluster:
            return Cluster(
                bootstrap,
                client_id=client_id,
                request_timeout_ms=request_timeout_ms,
                connect_timeout_ms=min(10_000, session_timeout_ms // 3),
                tls=tls,
                sasl=sasl,
            )

        self._assign = assign
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_lost, self._on_failed = on_lost, on_failed
        self._share: Assigned | None = None
        self._driver = Driver(
            make_cluster,
            self.settings,
            protocols,
            self._listener(),
            client_id=client_id,
            leader=leader,
            watch=watch,
        )

    def _listener(self) -> Listener:
        raise NotImplementedError

    # ---- what it is ----

    @property
    def machine(self) -> MemberMachine:
        """The member as a machine. It is run by the member's own thread: look, and do not touch."""
        return self._driver.machine

    @property
    def assigned(self) -> Assigned | None:
        """The share that this member holds; None from the moment a rebalance asks for all of it."""
        return self._share

    @property
    def generation(self) -> int:
        """Generation of the group that this member is in; -1: none."""
        return self._driver.machine.generation

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave; "" before that."""
        return self._driver.machine.member_id

    @property
    def is_leader(self) -> bool:
        """Whether this member leads the generation of its share."""
        return self._share is not None and self._share.is_leader

    @property
    def error(self) -> MembershipError | None:
        """What ended the membership, if an error did."""
        return self._driver.machine.error

    def _describe(self) -> str:
        return f"group {self.settings.group_id!r}: {self._driver.describe()}"

    def _check_new(self, caller: object) -> None:
        if caller is not None:
            raise MembershipError(f"group {self.settings.group_id!r}: this member was started before")

    def _share_if_any(self) -> Assigned | None:
        """The share if there is one, None if one may come; raises why none will come."""
        if self._share is not None:
            return self._share
        if self.error is not None:
            raise self.error
        if self._driver.ended.is_set():
            raise MembershipOverError(f"group {self.settings.group_id!r}: this member has left")
        return None


class GroupMember(_Member):
    """A member for asyncio. Callbacks may be coroutine functions; they run in the loop that called `start`,
    one after the other. An async context manager: starts, and leaves at the end.
    """

    _caller: LoopCaller | None = None
    _closed = False

    def _listener(self) -> Listener:
        self._waiters: set[asyncio.Future[None]] = set()
        return Listener(self._run_assigned, self._run_revoked, self._run_lost, self._run_over, self._assign)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the thread and begin to join; does not wait for the share."""
        self._check_new(self._caller)
        caller = LoopCaller(lambda: self._driver.leave(GONE, 0, silently=False))
        self._caller = caller
        self._driver.start(caller, lambda: caller.call(self._wake))

    async def wait_assigned(self, timeout_s: float | None = None) -> Assigned:
        """The share, as soon as there is one and `on_assigned` has returned.

        Raises TimeoutError with what is in the way, and what ended the membership.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while (share := self._share_if_any()) is None:
                    await self._wait()
                return share
        except TimeoutError:
            raise TimeoutError(f"{self._describe()}: no share within {timeout_s:g} s") from None

    async def commit(self, offsets: Offsets, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit {("topic", 0): next offset to read} as a member of the present generation.

        Repeats what Kafka calls retriable until the time is over. Commits are made in the order in which they
        were asked for. Raises CommitFailedError, RebalanceInProgressError, BrokerError (for example
        OFFSET_METADATA_TOO_LARGE), RetriableError when time ran out, MembershipOverError.
        """
        await self._result(self._driver.commit(offsets, int(timeout_s * 1000)))

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of these partitions, or of all; those without one are left out."""
        return await self._result(self._driver.committed(partitions, int(timeout_s * 1000)))

    async def rejoin(self, reason: str) -> None:
        """Make the group rebalance, for example because a `metadata` callable has new things to say."""
        self._driver.rejoin(reason)

    async def leave(self, reason: str = "", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Give up the share (`on_revoked` gets at most `timeout_s`), leave the group (the answer gets as much
        again, but at least 1 s and at most 5 s), end the thread.

        From inside of a callback it begins to leave and returns at once.
        """
        self._driver.leave(reason or "asked to", int(timeout_s * 1000), silently=False)
        await self._finish()

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Leave and end the thread; a static member (`group_instance_id`) ends without leaving, as it will be
        back. May be called at any time and more than once."""
        silently = self.settings.group_instance_id is not None
        self._driver.leave("stopped", int(timeout_s * 1000), silently)
        await self._finish()

    async def _finish(self) -> None:
        if self._caller is None or self._caller.inside():
            return
        while not self._driver.ended.is_set():
            await self._wait()
        if not self._closed:
            self._closed = True
            await self._caller.close(CLOSE_TIMEOUT_S)
            self._driver.join_thread()

    # ---- waiting ----

    async def _wait(self) -> None:
        """Until something changes."""
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

    async def _run_assigned(self, assigned: Assigned) -> None:
        try:
            await _call(self._on_assigned, assigned)
        finally:
            self._share = assigned
            self._wake()

    async def _run_revoked(self, revoked: Revoked) -> None:
        if not revoked.partial:
            self._share = None
        await _call(self._on_revoked, revoked)

    async def _run_lost(self, lost: Lost) -> None:
        if not lost.partial:
            self._share = None
        await _call(self._on_lost, lost)

    async def _run_over(self, error: MembershipError | None) -> None:
        self._share = None
        self._wake()
        if error is not None:
            await _call(self._on_failed, error)


class SyncGroupMember(_Member):
    """A member for code without an event loop. Callbacks run in a thread of the member, one after the other;
    `on_revoked` may block, or return a `concurrent.futures.Future` that is done when the share is given up. A
    context manager: starts, and leaves at the end.
    """

    _caller: ThreadCaller | None = None

    def _listener(self) -> Listener:
        self._changed = threading.Condition()
        return Listener(self._run_assigned, self._run_revoked, self._run_lost, self._run_over, self._assign)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the threads and begin to join; does not wait for the share."""
        self._check_new(self._caller)
        self._caller = ThreadCaller()
        self._driver.start(self._caller, self._wake)

    def wait_assigned(self, timeout_s: float | None = None) -> Assigned:
        """As `GroupMember.wait_assigned`."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while (share := self._share_if_any()) is None:
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise TimeoutError(f"{self._describe()}: no share within {timeout_s:g} s")
                self._changed.wait(left_s)
            return share

    def commit(self, offsets: Offsets, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """As `GroupMember.commit`."""
        self._result(self._driver.commit(offsets, int(timeout_s * 1000)))

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `GroupMember.committed`."""
        return self._result(self._driver.committed(partitions, int(timeout_s * 1000)))

    def rejoin(self, reason: str) -> None:
        """As `GroupMember.rejoin`."""
        self._driver.rejoin(reason)

    def leave(self, reason: str = "", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupMember.leave`."""
        self._driver.leave(reason or "asked to", int(timeout_s * 1000), silently=False)
        self._finish()

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupMember.stop`."""
        silently = self.settings.group_instance_id is not None
        self._driver.leave("stopped", int(timeout_s * 1000), silently)
        self._finish()

    def _finish(self) -> None:
        if self._caller is None or self._caller.inside():
            return
        self._driver.ended.wait()
        self._caller.close(CLOSE_TIMEOUT_S)
        self._driver.join_thread()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise MembershipOverError(f"{self._describe()}: it ended meanwhile") from None

    # ---- jobs: in the callbacks' thread ----

    def _run_assigned(self, assigned: Assigned) -> None:
        try:
            if self._on_assigned is not None:
                self._on_assigned(assigned)
        finally:
            with self._changed:
                self._share = assigned
                self._changed.notify_all()

    def _run_revoked(self, revoked: Revoked) -> Any:
        if not revoked.partial:
            with self._changed:
                self._share = None
        return None if self._on_revoked is None else self._on_revoked(revoked)

    def _run_lost(self, lost: Lost) -> None:
        if not lost.partial:
            with self._changed:
                self._share = None
        if self._on_lost is not None:
            self._on_lost(lost)

    def _run_over(self, error: MembershipError | None) -> None:
        with self._changed:
            self._share = None
            self._changed.notify_all()
        if error is not None and self._on_failed is not None:
            self._on_failed(error)


async def _call(callback: Callable[[Any], Any] | None, argument: object) -> None:
    if callback is not None:
        result = callback(argument)
        if inspect.isawaitable(result):
            await result
