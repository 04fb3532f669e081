"""Runs the shard machines of one log: time and durability go to them, what they write to the store.

All shards run on the event loop's thread. The records of one loop turn are one transaction of the store (of
each shard, where the store takes each by itself); while it is on its way to the disk, the next turns' records
gather for the next one.

An exception that leaves a machine while it works on a client's request, and that came before anything
changed, is answered UNKNOWN_SERVER_ERROR, and nothing else happens. A shard's life ends when an append of it
fails or any other exception leaves its machine: requests that wait are refused with NOT_COORDINATOR, a new
machine is loaded from the store, and serves; the others go on. A second exception of the same shard within a
minute, or a store that cannot be trusted any more, ends all of them: the node has to stop, and the next
process replays what the store really holds. (Where a node has some of the shards only, it is otherwise: see
`moving`.)"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.logs import Failures, Log, get_log
from ringleader.coordinator.machine import Answer, Machine
from ringleader.coordinator.run_queue import RunQueue, Slices
from ringleader.coordinator.runtime.log import Entry, ShardLog
from ringleader.coordinator.storage.base import Batch, Failure, Storage, StorageError
from ringleader.protocol.errors import ErrorCode, shortened

WALL_CLOCK_INTERVAL_S = 5.0
"""Time between two reports of Unix time to the shards."""

FAULT_WINDOW_MS = 60_000
"""A shard whose machine fails twice within this time is not worth a third life."""

PROBE_INTERVAL_S = 1.0
"""How often a full store is asked whether there is room again."""

STORAGE_TIMEOUT_MS = 30_000

M = TypeVar("M", bound=Machine)
R = TypeVar("R")


@dataclass(slots=True)
class Counters:
    """Counts for an operator, since the start."""

    faults: int = 0
    """Exceptions that left a machine, and ended a shard's life."""
    failed_requests: int = 0
    """Exceptions that left a machine before anything had changed."""
    failed_appends: int = 0
    reloads: int = 0
    """Shards whose life ended, whatever ended it; releases are not counted."""


class Waiting:
    """The ticket of a question that the node itself asks."""

    api_version = 0
    client_id = None
    client_host = principal = ""
    connection = None

    def __init__(self) -> None:
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, response: Any) -> None:
        """The answer is there."""
        if not self.answered.done():
            self.answered.set_result(response)

    def refuse(self, error_code: int) -> None:
        """The answer is an error code."""
        self.answer(error_code)


class ShardRuntime(ABC, Generic[M]):
    """All shards of one log on this node, with their store. Methods are called on the loop's thread."""

    def __init__(
        self,
        storage: Storage,
        partitions: int,
        *,
        storage_timeout_ms: int = STORAGE_TIMEOUT_MS,
        now_ms: Clock = monotonic_ms,
        wall_ms: WallClock = wall_ms,
        log: Log | None = None,
        on_failed: Callable[[Exception], None] | None = None,
        run_queue: RunQueue | None = None,
    ) -> None:
        """`on_failed(error)` is called once when nothing can be served any more; from then on every request
        is answered NOT_COORDINATOR. `storage_timeout_ms`: a store that does not answer in this time cannot
        be trusted. `run_queue`: that of the node, for what is due; None: this makes it."""
        self.run_queue = run_queue or RunQueue()
        self.partitions = partitions
        self.shards: list[M] = [self._make(partition) for partition in range(partitions)]
        """By partition. Not to be kept: a new life is a new object."""
        self.pending: list[dict[Any, None]] = [{} for _ in range(partitions)]
        """By partition: the tickets that a shard has, and has not answered yet."""
        self.counters = Counters()
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._log = log or get_log()
        self._failures = Failures(self._log, now_ms)
        self._storage = storage
        self._storage_timeout_ms = storage_timeout_ms
        self._store = self._new_log()
        self._logs = [self._store if storage.together else self._new_log() for _ in range(partitions)]
        """By partition: its way to the store."""
        self._on_failed = on_failed
        self._serving = False
        self._failed = False
        self._full = False
        self._late: set[int] = set()
        """Partitions of which an append takes too long, and is waited for: see `MovingShards`."""
        self._loaded = [False] * partitions
        self._touched = [0] * partitions
        """By partition: `changes` of its shard at the last `touch`."""
        self._faulted_ms: dict[int, int] = {}
        """By partition: when its machine failed last."""
        self._dirty: dict[int, None] = {}
        self._drain_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        """Reloads, probes."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._ticking = False
        self._wall_timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop

    @abstractmethod
    def _make(self, partition: int) -> M:
        """A new machine, that is loading."""

    @abstractmethod
    def _event(self, partition: int, event: Any) -> None:
        """Handle an event of a machine."""

    # ---- life ----

    async def load_all(self) -> int:
        """Open the store and load all shards; how many records there were. Raises `StorageError`, or
        `MalformedError` for a record that cannot be read."""
        self._loop = asyncio.get_running_loop()
        await self._store.start()
        records = 0
        for partition, shard in enumerate(self.shards):
            records += await self._logs[partition].load(partition, shard)
        self._serving = True
        for partition in range(self.partitions):
            self._serve(partition)
        self._tell_wall_clock()
        return records

    def observe(self, on_durable: Callable[[Sequence[Batch], Sequence[int]], None]) -> None:
        """`on_durable(batches, ends)` is called for every transaction of a store that takes all shards
        together, when it has succeeded: what was written, and the position of each batch's last record."""
        self._store.on_durable = on_durable

    async def stop(self) -> None:
        """Finish what is on its way to the disk, refuse everything that waits with NOT_COORDINATOR, and close
        the store. May be called twice, and after a failed start."""
        if self._serving:
            # The appends on their way, then those that gathered meanwhile. Clients go on asking, so there is
            # no end to wait for.
            for _ in range(2):
                self._drain()
                await self._settled()
        self._end()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._settled()
        for log in self._logs:
            log.forget()
        await self._store.close()

    async def _settled(self) -> None:
        await asyncio.gather(*(log.settled() for log in dict.fromkeys(self._logs)))

    def _end(self) -> None:
        """No shard serves from here on; requests that wait are refused."""
        if not self._serving:
            return
        self._serving = False
        for timer in (self._timer, self._wall_timer):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        for log in self._logs:
            log.drop_all()
        self._dirty.clear()
        for partition in range(self.partitions):
            self._unload(partition)

    def _fail(self, event: str, error: Exception) -> None:
        """The node has to stop: acknowledge nothing more, and serve nothing more."""
        if self._failed:
            return
        self._failed = True
        self._log.critical(event, reason=str(error), text="nothing is served until a restart")
        self._end()
        if self._on_failed is not None:
            self._on_failed(error)

    # ---- the life of one shard ----

    def _new_log(self) -> ShardLog[M]:
        return ShardLog[M](
            self._storage, self._storage_timeout_ms, self._landed, self._append_late, self._log
        )

    def _serve(self, partition: int) -> None:
        now = self._now_ms()
        shard = self.shards[partition]
        if self._full:
            shard.set_full(True, now)
        shard.loaded(now, self._wall_ms())
        self._loaded[partition] = True
        self.touch(partition)

    def _unload(self, partition: int) -> None:
        self._loaded[partition] = False
        try:
            self.shards[partition].unload()
        except Exception:
            self._log.exception("shard failed", partition=partition, doing="unload")
        self._refuse(self._take_pending(partition))

    def _over(self, partition: int, error: BaseException) -> None:
        """The end of a shard's life, and the beginning of the next one."""
        self.counters.reloads += 1
        self._loaded[partition] = False
        self.shards[partition] = self._make(partition)
        self._logs[partition].drop(partition)
        refused = self._take_pending(partition)
        if refused:
            # Not from within whatever is being asked right now.
            self._loop.call_soon(self._refuse, refused)
        if self._serving:
            self._spawn(self._load_again(partition, self.shards[partition]))
        else:
            self._unload(partition)

    async def _load_again(self, partition: int, shard: M) -> None:
        try:
            # The records of the former life that are still on their way: they count, or they fail.
            log = self._logs[partition]
            await log.settled()
            records = await log.load(partition, shard)
            if self.shards[partition] is shard:
                self._serve(partition)
                self._log.info("shard loaded again", partition=partition, records=records)
        except StorageError as error:
            self._fail("storage failed", error)
        except Exception as error:
            self._log.exception("shard cannot be loaded again", partition=partition)
            self._fail("shard cannot be loaded again", error)

    def failed(
        self, partition: int, shard: M, changes: int, doing: str, subject: str, ticket: Any = None
    ) -> None:
        """To be called for an exception that left a machine at a client's request, while that is being
        handled. `changes`: of the shard before. If nothing has changed since, only `ticket` is refused; else
        it is a `fault`."""
        if shard.changes != changes or self.shards[partition] is not shard:
            self.fault(partition, doing, subject, ticket)
            return
        self.counters.failed_requests += 1
        self._failures.tell("request failed", partition=partition, doing=doing, subject=shortened(subject))
        if ticket is not None:
            self._loop.call_soon(self._refuse, (ticket,), ErrorCode.UNKNOWN_SERVER_ERROR)

    def fault(self, partition: int, doing: str, subject: str = "", ticket: Any = None) -> None:
        """To be called for an exception that left a machine, while that is being handled: ends the shard's
        life, and refuses `ticket` too. `doing` and `subject` say what led to it."""
        self.counters.faults += 1
        now = self._now_ms()
        before = self._faulted_ms.get(partition)
        self._faulted_ms[partition] = now
        self._log.exception("shard failed", partition=partition, doing=doing, subject=subject)
        if ticket is not None:
            self.pending[partition][ticket] = None
        self._over(partition, sys.exception() or RuntimeError(doing))
        if before is not None and now - before < FAULT_WINDOW_MS:
            self._again(partition)

    def _again(self, partition: int) -> None:
        """A shard's machine failed for the second time within a minute."""
        error = RuntimeError(f"shard {partition} failed twice within a minute")
        self._loop.call_soon(self._fail, "shard failed again", error)

    def _take_pending(self, partition: int) -> dict[Any, None]:
        tickets, self.pending[partition] = self.pending[partition], {}
        return tickets

    def _refuse(self, tickets: Iterable[Any], error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        for ticket in tickets:
            try:
                ticket.refuse(error)
            except Exception:
                self._log.exception("refusal not sent")

    # ---- requests ----

    def partition_of(self, subject: str) -> int:
        """The partition that a group id or transactional id belongs to."""
        return partition_for(subject, self.partitions)

    def call(
        self,
        partition: int,
        doing: str,
        subject: str,
        ticket: Any,
        method: Callable[[M, int], R | None],
        *,
        reads: bool = False,
    ) -> R | None:
        """Ask a shard: `method(shard, now_ms)` gives the answer, or None and it comes to `ticket`, as does
        the refusal when it fails. A failure without a ticket ends the shard's life, for nobody would ask
        again, unless it only `reads`."""
        if ticket is not None and partition in self._late:
            self.refuse_as_late(ticket)
            return None
        shard = self.shards[partition]
        changes = shard.changes
        try:
            response = method(shard, self._now_ms())
        except Exception:
            if ticket is None and not reads:
                self.fault(partition, doing, subject)
            else:
                self.failed(partition, shard, changes, doing, subject, ticket)
            return None
        if response is None and ticket is not None:
            self.pending[partition][ticket] = None
        self.touch(partition)
        return response

    def call_for(
        self,
        subject: str,
        doing: str,
        ticket: Any,
        method: Callable[[M, int], R | None],
        *,
        reads: bool = False,
    ) -> R | None:
        """`call` the shard of a group id or transactional id."""
        return self.call(self.partition_of(subject), doing, subject, ticket, method, reads=reads)

    def refuse_as_late(self, ticket: Any) -> None:
        """Refuse a request of a shard whose log is late: its answer would have to wait for it."""
        self._loop.call_soon(self._refuse, (ticket,), ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def ask(
        self, partition: int, doing: str, subject: str, method: Callable[[M, Waiting, int], int | None]
    ) -> int:
        """Ask a shard for something that is answered with an error code, and wait for that."""
        ticket = Waiting()
        code = self.call(partition, doing, subject, ticket, lambda shard, now: method(shard, ticket, now))
        return int(await ticket.answered) if code is None else code

    # ---- what the shards want done ----

    def touch(self, partition: int) -> None:
        """After a call of the shard: see to its outbox and its deadline."""
        shard = self.shards[partition]
        self._touched[partition] = shard.changes
        if not shard.dirty:
            self._watch(partition)
            return
        self._dirty[partition] = None
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._loop.call_soon(self._drain)

    def _watch(self, partition: int) -> None:
        try:
            due = self.shards[partition].next_deadline()
        except Exception:
            self.fault(partition, "next_deadline")
            return
        if due is None or self._ticking or not self._serving:
            return
        if self._timer is None or due < self._timer_due_ms:
            self._arm(due)

    def _drain(self) -> None:
        """Hand the shards' records to the store, then send the answers that are free to go."""
        self._drain_scheduled = False
        dirty, self._dirty = self._dirty, {}
        answers: list[Answer] = []
        for partition in dirty:
            try:
                answers += self._take(partition, self.shards[partition], self.pending[partition])
            except Exception:
                self.fault(partition, "drain")
                continue
            self._watch(partition)
        # The disk first: it works while the answers are encoded and sent.
        if self._serving:
            logs = [self._store] if self._storage.together else [self._logs[partition] for partition in dirty]
            for log in logs:
                log.write()
        self._answer(answers)

    def _take(self, partition: int, shard: M, pending: dict[Any, None]) -> list[Answer]:
        """Send a machine's appends and events on their way; its answers. Raises every exception of the
        machine."""
        box = shard.drain()
        for answer in box.answers:
            pending.pop(answer.ticket, None)
        for append in box.appends:
            self._logs[partition].add((partition, shard, append))
        for event in box.events:
            try:
                self._event(partition, event)
            except Exception:
                self._log.exception("event lost", partition=partition)
        return box.answers

    def _answer(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            try:
                answer.ticket.answer(answer.response)
            except Exception:
                self._log.exception("answer not sent")

    # ---- the log ----

    def _landed(self, entries: list[Entry[M]], error: StorageError | None) -> None:
        """A transaction of the store is durable, or has failed."""
        try:
            if error is not None:
                self._append_failed(entries, error)
            elif self._serving:
                self._append_durable(entries)
        except Exception as bug:
            self._log.exception("runtime failed")
            self._fail("runtime failed", bug)

    def _append_durable(self, entries: list[Entry[M]]) -> None:
        now = self._now_ms()
        last = {partition: (shard, append.position) for partition, shard, append in entries}
        for partition, (shard, position) in last.items():
            if self.shards[partition] is not shard:
                self._former_durable(partition, shard, position, now)
                continue
            try:
                shard.durable(position, now)
            except Exception:
                self.fault(partition, "durable", f"position {position}")
                continue
            if shard.dirty:
                self._dirty[partition] = None
        self._drain()

    def _append_late(self, entry: Entry[M]) -> bool:
        """An append takes longer than it may: whether it is waited for."""
        return False

    def _former_durable(self, partition: int, shard: M, position: int, now: int) -> None:
        """Appends of a life that is over are durable: nobody waits for them."""

    def _append_failed(self, entries: list[Entry[M]], error: StorageError) -> None:
        self.counters.failed_appends += 1
        if error.failure is not Failure.FENCED:  # that is how a node learns of a move
            self._log.error("append failed", reason=str(error), operations=len(entries))
        if error.fatal:
            self._fail("storage failed", error)
        if not self._serving:
            return
        for partition, shard in {entry[0]: entry[1] for entry in entries}.items():
            if self.shards[partition] is shard:
                self._over(partition, error)
        if error.failure is Failure.DISK_FULL and not self._full:
            self._set_full(True)
            self._spawn(self._probe())

    # ---- a full store ----

    def _set_full(self, full: bool) -> None:
        self._full = full
        text = "what would write is refused until there is room" if full else "everything is served again"
        (self._log.error if full else self._log.info)("store full" if full else "store has room", text=text)
        for partition, loaded in enumerate(self._loaded):
            if loaded:
                self.call(partition, "set_full", "", None, lambda shard, now: shard.set_full(full, now))

    async def _probe(self) -> None:
        while self._full:
            await asyncio.sleep(PROBE_INTERVAL_S)
            try:
                await self._store.probe()
            except StorageError as error:
                if error.fatal:
                    self._fail("storage failed", error)
                    return
            else:
                self._set_full(False)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- time ----

    def wake(self) -> None:
        """The clock has moved ahead: see to what is due."""
        if self._serving:
            if self._timer is not None:
                self._timer.cancel()
            self._wake()

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        # At least a millisecond: the loop may wake us a moment early.
        self._timer = self._loop.call_later(max(1, due_ms - self._now_ms()) / 1000, self._wake)

    def _wake(self) -> None:
        """Begin with everything that is due."""
        self._timer = None
        if not self._ticking:
            self._ticking = True
            self.run_queue.first(self._ticks())

    def _ticks(self) -> Slices:
        """Everything that is due, with other work in between; then wait for what is due next."""
        try:
            for partition in range(self.partitions):
                while self._tick(partition):
                    yield
                    if not self._serving:
                        return
        finally:
            self._ticking = False
        for partition in range(self.partitions):
            self._watch(partition)

    def _tick(self, partition: int) -> bool:
        """Some of what is due in a shard; whether there was anything."""
        now, shard = self._now_ms(), self.shards[partition]
        try:
            due = shard.next_deadline()
            if due is None or due > now:
                return False
            shard.tick(now)
        except Exception:
            self.fault(partition, "tick")
            return True
        if shard.dirty:
            self.touch(partition)
        return True

    def _tell_wall_clock(self) -> None:
        wall = self._wall_ms()
        for partition, loaded in enumerate(self._loaded):
            if loaded:
                self.call(
                    partition, "set_wall_clock", "", None, lambda shard, now: shard.set_wall_clock(now, wall)
                )
        self._wall_timer = self._loop.call_later(WALL_CLOCK_INTERVAL_S, self._tell_wall_clock)
