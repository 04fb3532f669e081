"""Runs the group machines: routes requests to them, stores what they write, wakes them when time comes.

All shards run on the event loop's thread. What the requests of one loop turn write is one transaction; while
it is on its way to the disk, the next turns' records gather for the next one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.groups.journal import JournalEntry
from ringleader.coordinator.groups.outbox import Answer, Append, Ticket
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.storage.base import Failure, Storage, StorageError
from ringleader.protocol.errors import ErrorCode

ROUTES_MAX = 100_000
"""Group ids whose partition is remembered; beyond that all are forgotten and found again."""

WALL_CLOCK_INTERVAL_S = 5.0
"""How often the shards are told what Unix time is."""

GATHER_TURNS = 2
"""Loop turns between a transaction's first record and its start. What arrives in them shares its sync:
clients that were just answered commit again at once, and a transaction's own cost is that of 100 rows."""

EPOCH = 0
"""One node owns all partitions for ever, so there is one epoch."""

Write = tuple[Shard, Append]
"""An append on its way to the store, and whose it is."""

_ERRORS = {
    Failure.BUSY: ErrorCode.REQUEST_TIMED_OUT,
    Failure.TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
}


def fresh_id(prefix: str) -> str:
    """A member id that nobody has and nobody can guess: the prefix and a random UUID (RFC 9562 v4)."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{prefix}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a start found."""

    records: int
    groups: int
    seconds: float


class GroupRuntime:
    """All partitions of __consumer_offsets on one node, with their store.

    Methods are called on the loop's thread. `on_failed(error)` is called once if the store can no longer be
    trusted; from then on every group request is answered NOT_COORDINATOR.
    """

    def __init__(
        self,
        settings: GroupSettings,
        storage: Storage,
        *,
        partitions: int = 50,
        ids: Callable[[str], str] = fresh_id,
        now_ms: Clock = monotonic_ms,
        wall_ms: WallClock = wall_ms,
        log: Log | None = None,
        on_failed: Callable[[StorageError], None] | None = None,
    ) -> None:
        self.partitions = partitions
        self.shards = [Shard(partition, settings, ids) for partition in range(partitions)]
        self._numbers = {shard: number for number, shard in enumerate(self.shards)}
        self._storage = storage
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._log = log or get_log()
        self._on_failed = on_failed
        self._routes: dict[str, Shard] = {}
        self._dirty: list[Shard] = []
        self._drain_scheduled = False
        self._gathered: list[Write] = []
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._wall_timer: asyncio.TimerHandle | None = None
        self._serving = False
        self._loop: asyncio.AbstractEventLoop

    # ---- life ----

    async def start(self) -> Replayed:
        """Open the store and rebuild the groups from it. Raises `StorageError`, or `MalformedError` for a
        record that cannot be read."""
        self._loop = asyncio.get_running_loop()
        began = time.perf_counter()
        await self._storage.open()
        records = 0
        for partition, shard in enumerate(self.shards):
            async for _, _, key, value in self._storage.replay(partition):
                shard.replay(key, value)
                records += 1
        now, wall = self._now_ms(), self._wall_ms()
        for shard in self.shards:
            shard.loaded(now, wall)
        self._serving = True
        report = Replayed(records, len(self.list_groups()), time.perf_counter() - began)
        self._log.info(
            "replayed",
            text=f"replayed {report.records:,} records, {report.groups:,} groups in {report.seconds:.1f} s",
            records=report.records,
            groups=report.groups,
            seconds=round(report.seconds, 3),
        )
        for shard in self.shards:
            self.touch(shard)
        self._tell_wall_clock()
        return report

    async def stop(self) -> None:
        """Finish what is on its way to the disk, answer everything that waits with NOT_COORDINATOR, and close
        the store. May be called twice, and after a failed start."""
        if self._serving:
            # What is being written, then once what gathered meanwhile. Clients go on asking, so there is no
            # end to wait for.
            for _ in range(2):
                self._drain()
                if self._writing is not None:
                    await asyncio.wait([self._writing])
        self._end()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._storage.close()

    def _end(self) -> None:
        """No shard serves from here on; whoever waits is told."""
        if not self._serving:
            return
        self._serving = False
        for timer in (self._timer, self._wall_timer):
            if timer is not None:
                timer.cancel()
        now = self._now_ms()
        for shard in self.shards:
            shard.unload(now)
            self._deliver(shard.drain().answers)
        self._gathered.clear()
        self._dirty.clear()

    # ---- requests ----

    def shard_of(self, group_id: str) -> Shard:
        """The shard that a group belongs to."""
        shard = self._routes.get(group_id)
        if shard is None:
            if len(self._routes) >= ROUTES_MAX:
                self._routes.clear()
            shard = self._routes[group_id] = self.shards[partition_for(group_id, self.partitions)]
        return shard

    def handle(self, request: Any, ticket: Ticket) -> Any | None:
        """A request of one group (`request.group_id`); see `Shard.handle`. None: `ticket.answer` is called
        later."""
        shard = self.shard_of(request.group_id)
        response = shard.handle(request, ticket, self._now_ms())
        self.touch(shard)
        return response

    def heartbeat_refused(self, group_id: str) -> None:
        """`Shard.heartbeat` was called past this class and answered an error: while a group rebalances, that
        may have armed a deadline. In all other cases it moves one later at most."""
        self.touch(self.shard_of(group_id))

    def fetch_offsets(
        self,
        group_id: str,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        require_stable: bool,
        ticket: Ticket,
    ) -> Any | None:
        """See `Shard.fetch_offsets`."""
        shard = self.shard_of(group_id)
        group = shard.fetch_offsets(group_id, topics, require_stable, ticket, self._now_ms())
        self.touch(shard)
        return group

    def describe(self, group_id: str, version: int) -> Any:
        """See `Shard.describe`."""
        return self.shard_of(group_id).describe(group_id, version)

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Any]:
        """All groups of this node; see `Shard.list_groups`."""
        return [group for shard in self.shards for group in shard.list_groups(states, types)]

    def delete_group(self, group_id: str, ticket: Ticket) -> Any | None:
        """See `Shard.delete_group`."""
        shard = self.shard_of(group_id)
        result = shard.delete_group(group_id, ticket, self._now_ms())
        self.touch(shard)
        return result

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        done: Callable[[int], None],
    ) -> None:
        """A transaction that has offsets in this partition of __consumer_offsets has ended; see
        `Shard.end_transaction`. The epoch is the transaction coordinator's business: it let nobody in with
        another one."""
        shard = self.shards[partition]
        shard.end_transaction(producer_id, committed, done, self._now_ms())
        self.touch(shard)

    def expire_member(self, group_id: str, member_id: str) -> None:
        """For tests of applications: see `Shard.expire_member`."""
        shard = self.shard_of(group_id)
        shard.expire_member(group_id, member_id, self._now_ms())
        self.touch(shard)

    def wake(self) -> None:
        """The clock has moved ahead: see to what is due."""
        if self._serving:
            if self._timer is not None:
                self._timer.cancel()
            self._wake()

    def topic_deleted(self, topic: str) -> None:
        """Forget a topic's committed offsets in all groups."""
        now = self._now_ms()
        for shard in self.shards:
            shard.topic_deleted(topic, now)
            self.touch(shard)

    def ticket_closed(self, group_id: str, ticket: Ticket) -> None:
        """The peer of a parked request is gone."""
        shard = self.shard_of(group_id)
        shard.ticket_closed(ticket)
        self.touch(shard)

    # ---- what the shards want done ----

    def touch(self, shard: Shard) -> None:
        """After a call of the shard: see to its outbox and its deadline."""
        if not shard.dirty:
            self._watch(shard)
            return
        if shard not in self._dirty:
            self._dirty.append(shard)
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._loop.call_soon(self._drain)

    def _mark(self, shard: Shard) -> None:
        if shard.dirty and shard not in self._dirty:
            self._dirty.append(shard)

    def _watch(self, shard: Shard) -> None:
        due = shard.next_deadline()
        if due is not None and (self._timer is None or due < self._timer_due_ms):
            self._arm(due)

    def _drain(self) -> None:
        """Hand the shards' records to the store, then send the answers that are free to go."""
        self._drain_scheduled = False
        dirty, self._dirty = self._dirty, []
        answers: list[Answer] = []
        for shard in dirty:
            self._watch(shard)
            box = shard.drain()
            answers += box.answers
            for append in box.appends:
                self._gathered.append((shard, append))
            for entry in box.journal:
                self._journal(entry)
            for notice in box.notices:
                say = self._log.info if notice.expected else self._log.warning
                say(notice.text, group_id=notice.group_id, member_id=notice.member_id)
        # The disk first: it works while the answers are encoded and sent.
        self._write()
        self._deliver(answers)

    def _deliver(self, answers: list[Answer]) -> None:
        for answer in answers:
            try:
                answer.ticket.answer(answer.response)  # type: ignore[attr-defined]
            except Exception:
                self._log.exception("answer not sent")

    def _write(self) -> None:
        if self._writing is None and self._gathered and self._serving:
            self._writing = self._loop.create_task(self._append())

    async def _append(self) -> None:
        for _ in range(GATHER_TURNS):
            await asyncio.sleep(0)
        batch, self._gathered = self._gathered, []
        if not batch:
            self._writing = None  # the node stopped meanwhile, and has told whoever waited
            return
        failed: dict[int, StorageError] = {}
        try:
            await self._store(batch)
        except StorageError as error:
            if error.fatal:
                self._fail(error)
                return
            failed = await self._store_apart(batch, error)
        if not self._serving:
            self._writing = None
            return
        now = self._now_ms()
        stored: dict[Shard, int] = {}
        for number, (shard, append) in enumerate(batch):
            if number in failed:
                code = _ERRORS.get(failed[number].failure, ErrorCode.KAFKA_STORAGE_ERROR)
                shard.append_failed(append.position, code, now)
                self._mark(shard)
            else:
                stored[shard] = append.position
        for shard, position in stored.items():
            shard.appended(position, now)
            self._mark(shard)
        self._writing = None
        self._drain()

    async def _store(self, batch: Sequence[Write]) -> None:
        numbers = self._numbers
        await self._storage.append_many([(numbers[shard], EPOCH, append.records) for shard, append in batch])

    async def _store_apart(self, batch: list[Write], error: StorageError) -> dict[int, StorageError]:
        """The transaction failed. If one operation alone may be to blame, try each by itself. Returns what
        failed, by its number in the batch."""
        self._log.error("commit failed", reason=str(error), operations=len(batch))
        if error.failure is not Failure.TOO_LARGE or len(batch) == 1:
            return dict.fromkeys(range(len(batch)), error)
        failed = {}
        for number, write in enumerate(batch):
            try:
                await self._store([write])
            except StorageError as own:
                failed[number] = own
        return failed

    def _fail(self, error: StorageError) -> None:
        """Nobody knows what is on the disk: acknowledge nothing more, and serve nothing more."""
        self._log.critical("storage failed", reason=str(error), text="groups are not served until a restart")
        self._writing = None
        self._end()
        if self._on_failed is not None:
            self._on_failed(error)

    def _journal(self, entry: JournalEntry) -> None:
        self._log.info(
            "rebalance",
            text=entry.render(),
            group_id=entry.group_id,
            generation=entry.generation,
            cause=entry.cause.value,
            cause_member=entry.cause_member,
            outcome=entry.outcome.value,
            protocol=entry.protocol,
            leader=entry.leader,
            members=len(entry.members_after),
            joined=len(entry.joined),
            left=len(entry.left),
            duration_ms=entry.duration_ms,
            join_ms=entry.join_ms,
            leader_ms=entry.leader_ms,
            sync_ms=entry.sync_ms,
        )

    # ---- time ----

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        self._timer = self._loop.call_later(max(0, due_ms - self._now_ms()) / 1000, self._wake)

    def _wake(self) -> None:
        """Everything that is due; then wait for what is due next."""
        self._timer = None
        now = self._now_ms()
        soonest: int | None = None
        for shard in self.shards:
            due = shard.next_deadline()
            if due is not None and due <= now:
                shard.tick(now)
                due = shard.next_deadline()
                self._mark(shard)
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        if soonest is not None:
            # At least a millisecond: the loop may wake us a moment early.
            self._arm(max(soonest, now + 1))
        if self._dirty:
            self._drain()

    def _tell_wall_clock(self) -> None:
        now, wall = self._now_ms(), self._wall_ms()
        for shard in self.shards:
            shard.set_wall_clock(now, wall)
        self._wall_timer = self._loop.call_later(WALL_CLOCK_INTERVAL_S, self._tell_wall_clock)
