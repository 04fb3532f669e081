"""Runs a member machine: its own thread with its own event loop for connections, heartbeats and commits."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from ringleader.clients.checks import wire_text
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import (
    AuthenticationError,
    ClientError,
    CoordinatorUnavailableError,
    MembershipOverError,
    UnsupportedVersionError,
)
from ringleader.clients.group import processes
from ringleader.clients.group.callbacks.callers import Caller
from ringleader.clients.group.callbacks.listener import Callbacks, Listener
from ringleader.clients.group.callbacks.work import WorkGate
from ringleader.clients.group.machine.actions import (
    Action,
    CancelRevoked,
    ComputeAssignment,
    ComputeTarget,
    Disconnect,
    Over,
    PrepareJoin,
    Say,
    Send,
    TellAssigned,
    TellLost,
    TellRevoked,
)
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.telling import Telling
from ringleader.clients.metrics import MemberMetrics, member_metrics
from ringleader.clients.model import MemberInfo, Node, OffsetAndMetadata, TopicPartition, checked_partitions
from ringleader.clients.offsets.member_offsets import MemberOffsets, Progress
from ringleader.protocol.errors import shortened
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequestComputedTarget as ComputedTarget
from ringleader.protocol.messages import ConsumerGroupHeartbeatResponseLeaderTask as LeaderTask
from ringleader.protocol.messages import MetadataRequest

logger = logging.getLogger("ringleader.clients.group.membership")

GROUP = "group"
"""The coordinator's connection is kept apart: a parked JoinGroup holds back everything behind it."""

JOINING = "joining"
"""So what a cooperative member commits while it joins again goes over another one."""

LOOP_ENDED = "the application's event loop has ended"

T = TypeVar("T")


Leader = Callable[[Cluster, str, list[MemberInfo]], Awaitable[Mapping[str, bytes]]]
"""Computes the assignment in the driver's own loop, with the driver's view of the cluster."""

Delegate = Callable[[Cluster, LeaderTask], Awaitable[ComputedTarget]]
"""As `Leader`, where the coordinator hands the computation to a member (KIP-848)."""

Watch = Callable[["Driver", Cluster], Coroutine[Any, Any, None]]
"""Runs in the driver's loop while the member lives."""

BeforeJoin = Callable[[Cluster], Awaitable[None]]
"""Runs in the driver's loop before each JoinGroup, for at most the request timeout and what the rebalance
under way allows. An exception is logged, and the member joins all the same."""


class Driver:
    """One member on its way through its life. `start` it once; `ended` is set when its thread is about to go.

    `leader` replaces `listener.assign`; `delegate` answers tasks of the coordinator; `watch` runs in the
    driver's loop while the member lives; `before_join` is awaited there before each JoinGroup.
    """

    def __init__(
        self,
        make_cluster: Callable[[], Cluster],
        machine: MemberMachine,
        listener: Listener,
        *,
        client_id: str = "",
        leader: Leader | None = None,
        delegate: Delegate | None = None,
        watch: Watch | None = None,
        before_join: BeforeJoin | None = None,
        consumed: Progress | None = None,
    ) -> None:
        settings = self.settings = machine.state.settings
        self._name = f"group {settings.group_id}, client {client_id}"
        self.machine = machine
        self.ended = threading.Event()
        self._ready = threading.Event()
        self._make_cluster = make_cluster
        self._before_join = before_join
        # A cooperative member may have commits on their way, and they are to be in before it joins.
        machine.state.prepares = before_join is not None or settings.cooperative
        self._client_id = client_id
        self.gate = WorkGate()
        self.telling = Telling(self.metrics, settings.max_poll_interval_ms, self.now_ms)
        self._callbacks = Callbacks(self._name, listener, self.gate, self._step, self.telling)
        self.offsets = MemberOffsets(self, self._name, self._callbacks.post, consumed)
        self._leader = leader
        self._delegate = delegate
        self._watch = watch
        self._caller: Caller | None = None
        self._cluster: Cluster | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._waking = self._broken = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._revoking: tuple[int, asyncio.Task[None]] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._changed: asyncio.Event | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"group member {settings.group_id}", daemon=True
        )

    # ---- from any thread ----

    def start(self, caller: Caller, on_ended: Callable[[], None]) -> None:
        """Start the thread and join the group. Callbacks go to `caller`; `on_ended` is called at the end, in
        the driver's thread."""
        self._caller = self._callbacks.caller = caller
        self._on_ended = on_ended
        processes.began(self)
        self._thread.start()
        self._ready.wait()

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run it in the driver's loop. Raises MembershipOverError when the member is not running."""
        with self._lock:
            if self._closed or self._loop is None:
                raise MembershipOverError(self.over_text())
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def leave(self, reason: str, timeout_ms: int, silently: bool) -> None:
        """Begin to leave; `ended` is set at the end. Does nothing when the member is not running."""
        wire_text("reason", reason)
        self._call(lambda: self.machine.leave(reason, self.now_ms(), timeout_ms, silently))

    def abandon(self, reason: str) -> None:
        """Begin to leave, without waiting for an application that is gone. A static member falls silent, as
        it may be back."""
        self.leave(reason, 0, silently=self.settings.group_instance_id is not None)

    def orphan(self) -> None:
        """This is a copy of the process, without the thread: the member is that of the other process."""
        # Copied as they were, perhaps in the hands of a thread that is not here.
        self._lock, self._closed, self.ended = threading.Lock(), True, threading.Event()
        self.offsets.queue.orphan()
        self.machine.state.error = MembershipOverError("it runs in the process that this one was forked from")
        self.ended.set()

    def rejoin(self, reason: str) -> None:
        """Make the group rebalance."""
        wire_text("reason", reason)
        self._call(lambda: self.machine.rejoin(reason, self.now_ms()))

    def polled(self) -> None:
        """The application makes progress."""
        now_ms = self.now_ms()
        self.machine.state.poll.polled(now_ms)
        self.telling.polled(now_ms)
        # The machine looks for progress after it has set its reason: one of the two sees the other.
        if self.machine.state.rest_reason and not self._waking:
            self._waking = True
            self._call(self._wake)

    def _wake(self) -> None:
        self._waking = False
        self.machine.polled(self.now_ms())

    def metrics(self) -> MemberMetrics:
        """Its current figures."""
        state, now_ms = self.machine.state, self.now_ms()
        polled_ms = state.poll.polled_ms
        present = {
            "group": self.settings.group_id,
            "client_id": self._client_id,
            "member_id": state.member_id,
            "phase": state.phase.value,
            "generation": state.generation,
            "commits_waiting": len(self.offsets.queue),
            "offsets_stored": len(self.offsets.uncommitted()),
            "work_in_hand": self.gate.in_hand,
            "last_poll_age_ms": None if polled_ms is None else now_ms - polled_ms,
        }
        return member_metrics(state.counters, now_ms, present)

    def join_thread(self, timeout_s: float) -> None:
        """Wait until the thread is gone; short after `ended`."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def describe(self) -> str:
        """Where it stands, in words."""
        state = self.machine.state
        return state.phase.value + (f" ({state.link.trouble})" if state.link.trouble else "")

    def over_text(self) -> str:
        """That it is not running, and why."""
        state = self.machine.state
        why = f": {state.error}" if state.error is not None else ""
        return f"{state.group}: this member is not running ({state.phase.value}){why}"

    def _call(self, step: Callable[[], None]) -> None:
        """A step of the machine in the driver's thread."""

        def stepped() -> None:
            step()
            self.pump()

        self._step(stepped)

    def _step(self, step: Callable[[], None]) -> None:
        """Run it in the driver's thread, if it still runs."""
        with self._lock:
            if not self._closed and self._loop is not None:
                self._loop.call_soon_threadsafe(self._guarded, step)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._broke(error)

    # ---- the thread ----

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # sys.exit() in code of the application that runs here, too
            logger.error("%s: an error in this library: the member ends", self._name, exc_info=error)
            self.machine.fell(error)
            self._callbacks.over(self.machine.state.error)
        finally:
            with self._lock:
                self._closed = True
            self._ready.set()
            processes.ended(self)
            self.ended.set()
            self._on_ended()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed, self._over = asyncio.Event(), asyncio.Event()
        async with self._make_cluster() as cluster:
            self._cluster = cluster
            self.offsets.queue.open()
            self._spawn(self.offsets.run())
            if self.settings.auto_commit_interval_ms is not None:
                self._spawn(self.offsets.run_auto_commit(self.settings.auto_commit_interval_ms))
            self.machine.start(self.now_ms())
            self.pump()
            self._ready.set()
            if self._watch is not None:
                self._spawn(self._watch(self, cluster))
            if self.settings.enable_metrics_push:
                link = self.machine.state.link
                self._spawn(self.telling.run(cluster.groups, lambda: link.coordinator, GROUP))
            await self._over.wait()
            await self.telling.end(cluster.groups)
            with self._lock:
                self._closed = True
            self.offsets.queue.close()
            if self._timer is not None:
                self._timer.cancel()
            # Let what was handed in before that become tasks; the end of the loop cancels them.
            await asyncio.sleep(0)

    async def ask(self, node: Node, request: Request, timeout_ms: int) -> Any:
        """Send a request to the coordinator; raises a retriable error after that time."""
        assert self._cluster is not None
        purpose = JOINING if self.machine.state.enters else GROUP
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        return await self._cluster.groups.send(node, request, deadline_s=deadline_s, purpose=purpose)

    async def change(self) -> None:
        """Wait until the machine has moved."""
        assert self._changed is not None
        await self._changed.wait()

    @staticmethod
    def now_ms() -> int:
        return int(time.monotonic() * 1000)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_ended)
        return task

    def _spawned_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broke(error)

    def _broke(self, error: BaseException) -> None:
        """Our own code raised this: it is not tried again, and the member ends with it."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        logger.error("%s: an error in this library: the member ends", self._name, exc_info=error)
        assert self._over is not None
        if not self._broken:
            self._broken = True
            try:
                self.machine.broke(error, self.now_ms())
                self.pump()
            except Exception as another:
                error = another
            else:
                return
        # It cannot even leave in good order.
        self.machine.fell(error)
        self._callbacks.over(self.machine.state.error)
        self._over.set()

    def pump(self) -> None:
        """Do what the machine wants, then sleep until its next deadline."""
        while actions := self.machine.drain():
            for action in actions:
                self._do(action)
        assert self._changed is not None
        self._changed.set()
        self._changed.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.machine.next_deadline()
        if deadline_ms is not None:
            wait_s = max(0, deadline_ms - self.now_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._guarded, self._tick)

    def _tick(self) -> None:
        assert self._caller is not None
        if not self._caller.alive():
            static = self.settings.group_instance_id is not None
            self.machine.leave(LOOP_ENDED, self.now_ms(), silently=static)
        self.machine.tick(self.now_ms())
        self.pump()

    def _do(self, action: Action) -> None:
        assert self._cluster is not None
        assert self._caller is not None
        assert self._over is not None
        match action:
            case Send():
                state = self.machine.state
                if state.phase is Phase.LEAVING:
                    self.telling.left(state.member_id, state.rest_reason or state.leave_reason or "")
                self._spawn(self._send(self._cluster, action))
            case Disconnect():
                self._cluster.groups.disconnect(action.node, GROUP)
            case ComputeAssignment():
                self._compute(action)
            case ComputeTarget():
                self._spawn(self._delegated(action))
            case PrepareJoin():
                if self._preparing is not None:
                    self._preparing.cancel()
                self._preparing = self._spawn(self._prepare(action))
            case TellAssigned():
                self.offsets.stored.assigned(action.assigned.generation)
                self._callbacks.assigned(action.assigned)
            case TellRevoked():
                self._revoking = (action.round, self._spawn(self._revoke(action)))
            case CancelRevoked():
                if self._revoking is not None and self._revoking[0] == action.round:
                    self._revoking[1].cancel()
                    self._revoking = None
            case TellLost():
                self.offsets.forget(action.lost)
                self.telling.met(action.lost.reason)
                self._callbacks.lost(action.lost)
            case Say():
                logger.log(action.level, "%s: %s", self._name, action.text)
            case Over():
                self.offsets.stored.forget()
                self._callbacks.over(action.error)
                self._over.set()

    async def _send(self, cluster: Cluster, action: Send) -> None:
        purpose = "" if action.node is None else GROUP
        connections = cluster if action.request.message is MetadataRequest else cluster.groups
        try:
            response = await connections.send(
                action.node, action.request, request_timeout_ms=action.timeout_ms, purpose=purpose
            )
        except (UnsupportedVersionError, AuthenticationError) as error:
            self.machine.refuse(action.ticket, error, self.now_ms())
        except (ClientError, OSError) as error:
            self.telling.met(str(error))
            self.machine.fail(action.ticket, str(error), self.now_ms())
        else:
            self.machine.answer(action.ticket, response, self.now_ms())
        self.pump()

    # ---- callbacks ----

    async def _revoke(self, action: TellRevoked) -> None:
        """The work in hand ends, `on_revoked` runs, commits are made: then the assignment is given up."""
        await self._callbacks.revoked(action, self.now_ms())
        await self.offsets.finish(self.machine.state.hold_until_ms)
        self.offsets.forget(action.revoked)
        self.machine.revoked(action.round, self.now_ms())
        self.pump()

    async def _prepare(self, action: PrepareJoin) -> None:
        """Commit, and do what `before_join` asks for, before JoinGroup."""
        assert self._cluster is not None
        if self.machine.state.held is not None:
            await self.offsets.finish(action.until_ms)
        if self._before_join is not None:
            try:
                async with asyncio.timeout(max(0, action.until_ms - self.now_ms()) / 1000):
                    await self._before_join(self._cluster)
            except Exception as error:
                logger.warning("%s: joining without what was to be known before: %r", self._name, error)
        self.machine.prepared(action.number, self.now_ms())
        self.pump()

    def _compute(self, action: ComputeAssignment) -> None:
        def done(result: Any, error: BaseException | None) -> None:
            def step() -> None:
                if error is not None:
                    self.machine.compute_failed(action.round, error, self.now_ms())
                elif not _is_assignment(result):
                    wrong = TypeError(f"assign has to return a dict of member id to bytes, not {result!r}")
                    self.machine.compute_failed(action.round, wrong, self.now_ms())
                else:
                    self.machine.computed(action.round, result, self.now_ms())

            self._call(step)

        if self._leader is not None:
            self._spawn(self._lead(self._leader, action, done))
        else:
            self._callbacks.assign(action.protocol, action.members, done)

    async def _lead(
        self,
        leader: Leader,
        action: ComputeAssignment,
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        assert self._cluster is not None
        try:
            result = await leader(self._cluster, action.protocol, list(action.members))
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    async def _delegated(self, action: ComputeTarget) -> None:
        """Compute what the coordinator asks for. A failure is reported: then another member computes, or it
        does so itself."""
        assert self._cluster is not None
        assert self._delegate is not None
        try:
            answer = await self._delegate(self._cluster, action.task)
        except Exception as error:
            logger.error("%s: the assignment was not computed", self._name, exc_info=error)
            answer = ComputedTarget(action.task.group_epoch, shortened(repr(error)))
        self.machine.delegated(action, answer, self.now_ms())
        self.pump()

    # ---- what is asked from outside ----

    def ready(self, timeout_s: float) -> Future[None]:
        """Done when the coordinator was found once."""
        return self.submit(lambda: self._found(timeout_s))

    async def _found(self, timeout_s: float) -> None:
        assert self._cluster is not None
        link, deadline_s = self.machine.state.link, asyncio.get_running_loop().time() + timeout_s
        if not link.found:
            await self._cluster.groups.ready(timeout_s)
        try:
            async with asyncio.timeout_at(deadline_s):
                while not link.found:
                    await self.change()
        except TimeoutError:
            text = f"group {self.settings.group_id!r}: no coordinator within {timeout_s:g} s"
            raise CoordinatorUnavailableError(f"{text}: {link.trouble or 'no answer'}") from None

    def committed(
        self, partitions: Iterable[TopicPartition] | None, timeout_ms: int
    ) -> Future[dict[TopicPartition, OffsetAndMetadata]]:
        """The group's committed offsets."""
        wanted = None if partitions is None else checked_partitions(partitions)
        return self.submit(lambda: self.offsets.committed(wanted, timeout_ms))


def _is_assignment(result: Any) -> bool:
    return isinstance(result, Mapping) and all(
        isinstance(member, str) and isinstance(assignment, bytes) for member, assignment in result.items()
    )
