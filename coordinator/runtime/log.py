"""The way of records to the store and back: gathered, in one transaction, in order, and in time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ringleader.coordinator.logs import Log
from ringleader.coordinator.machine import Append, Machine
from ringleader.coordinator.measures import Histogram
from ringleader.coordinator.storage.base import Batch, Failure, Storage, StorageError

GATHER_TURNS = 2
"""Loop turns between a transaction's first record and its start. Records that arrive in them share its sync:
clients that were just answered commit again at once, and a transaction's own cost is that of 100 rows."""

LATE_S = 5.0
"""Time after which an append counts as late: what waits behind it on a connection, heartbeats
say, waits no longer. Kafka's own coordinator refuses a commit after as much (`offsets.commit.timeout.ms`)."""

LOST_SHARE = 5 / 6
"""Of `storage.timeout.ms`, after which an append that is waited for on its own has failed, unless it counts
as late."""

LATE_INTERVAL_S = 1.0
"""How often it is asked whether a late append is still waited for."""

EPOCH = 0
"""The epoch for `Storage.open`. Where one process owns all partitions for ever, it is the only one; a
store that has other owners gives out epochs itself."""

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

Entry = tuple[int, M, Append]
"""Partition, whose (the machine of a partition may be replaced meanwhile), what."""


@dataclass(slots=True, eq=False)
class _Flight(Generic[M]):
    """Entries on their way to the store, in one transaction."""

    entries: list[Entry[M]]
    started_s: float
    """By the loop's clock."""
    landed: bool = False
    error: StorageError | None = None


class ShardLog(Generic[M]):
    """The store, as shards use it: all shards of a store whose appends go `together`, or one life of one.

    `landed(entries, error)` is called for each append, in the order of their starts: it is durable, or has
    failed. A store that does not answer in time has failed for good where all go together. Elsewhere
    `late(entry)` is asked, again and again, whether an append that is late is waited for; one that is not has
    failed (AWAY) when its time is over. A store that fails in a way of its own has failed for good.
    """

    def __init__(
        self,
        storage: Storage,
        timeout_ms: int,
        landed: Callable[[list[Entry[M]], StorageError | None], None],
        late: Callable[[Entry[M]], bool],
        log: Log,
    ) -> None:
        self._storage = storage
        self._timeout_ms = timeout_ms
        self._append_s = timeout_ms / 1000 * (1 if storage.together else LOST_SHARE)
        self._late_s = self._append_s if storage.together else min(LATE_S, self._append_s)
        self._landed, self._late = landed, late
        self._log = log
        self._gathered: list[Entry[M]] = []
        self._gathering = False
        self._flights: deque[_Flight[M]] = deque()
        self._epochs: dict[int, int] = {}
        """Of the partitions that were loaded."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None
        """One for all flights, as one for each costs a twentieth of a small transaction."""
        self._silent = False
        self.on_durable: Callable[[Sequence[Batch], Sequence[int]], None] | None = None
        """Called with what has become durable, and the position of each batch's last record."""
        self.took = Histogram()
        """Transactions that succeeded."""
        self.records = 0
        """In these."""

    async def start(self) -> None:
        """See `Storage.start`."""
        await self._storage.start()

    async def close(self) -> None:
        """See `Storage.close`. One that does not answer is not waited for once more."""
        self.forget()
        if not self._silent or not self._storage.together:
            await self._storage.close()

    def give_up(self) -> None:
        """Appends on their way are not waited for any more: they have failed, and may be in the log all the
        same."""
        self._silent = True
        for task in self._tasks:
            task.cancel()

    def forget(self) -> None:
        """Nothing is on its way, and nothing will be."""
        if self._watch is not None:
            self._watch.cancel()

    async def load(self, partition: int, shard: M) -> int:
        """Own a partition, and replay it into a new machine; how many records. Raises `StorageError`, and
        whatever the machine raises."""
        self._epochs[partition] = await self._in_time("open", self._storage.open(partition, EPOCH))
        replay = self._storage.replay(partition)
        records = 0
        while (rows := await self._in_time("replay", anext(replay, None))) is not None:
            shard.replay([(key, value) for _, _, key, value in rows])
            records += len(rows)
        return records

    def has(self, partition: int) -> bool:
        """Whether the store has given it to this node, whatever was read since."""
        return partition in self._epochs

    async def probe(self) -> None:
        """See `Storage.probe`."""
        await self._in_time("probe", self._storage.probe())

    # ---- appends ----

    def add(self, entry: Entry[M]) -> None:
        """To be written with the next transaction. Then call `write`."""
        self._gathered.append(entry)

    def write(self) -> None:
        """Start a transaction if there is something to write, and the store takes one more."""
        if self._gathered and not self._gathering and len(self._flights) < self._storage.pipeline:
            self._gathering = True
            task = asyncio.get_running_loop().create_task(self._write())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def drop(self, partition: int) -> None:
        """Forget the appends of a shard whose life has ended, as far as they are not on their way."""
        self._gathered = [entry for entry in self._gathered if entry[0] != partition]

    def drop_all(self) -> None:
        """Likewise, of all shards."""
        self._gathered.clear()

    async def settled(self) -> None:
        """Returns when every append on its way now is durable or has failed, and `landed` was called."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _write(self) -> None:
        for _ in range(GATHER_TURNS):
            await asyncio.sleep(0)
        self._gathering = False
        entries, self._gathered = self._gathered, []
        if not entries:
            return  # the writers have ended meanwhile, and have answered all that waited
        loop = asyncio.get_running_loop()
        flight = _Flight(entries, loop.time())
        self._flights.append(flight)
        if self._watch is None:
            self._watch = loop.call_later(self._late_s, self._look)
        self.write()
        epochs = self._epochs
        batches = [(partition, epochs[partition], append.records) for partition, _, append in entries]
        try:
            ends = await self._storage.append(batches)
        except StorageError as error:
            flight.error = error
        except asyncio.CancelledError:
            if not self._silent:
                raise
            flight.error = self._too_late("append")
        except Exception as error:
            flight.error = self._unforeseen("append", error)
        else:
            self._note(batches, ends, loop.time() - flight.started_s)
        flight.landed = True
        while self._flights and self._flights[0].landed:
            first = self._flights.popleft()
            self._landed(first.entries, first.error)
        self.write()

    def _note(self, batches: Sequence[Batch], ends: Sequence[int], took_s: float) -> None:
        self.took.add(took_s * 1000)
        self.records += sum(len(records) for _, _, records in batches)
        if self.on_durable is None:
            return
        try:
            self.on_durable(batches, ends)
        except Exception:  # it is in the store all the same
            self._log.exception("readers not told of what is durable")

    # ---- a store that does not answer ----

    def _look(self) -> None:
        """Give up, or ask, if the oldest flight takes too long; else look again when it would."""
        self._watch = None
        if not self._flights:
            return
        loop = asyncio.get_running_loop()
        # By the very sums that the timers were set to: a difference may be a rounding less than its parts.
        now_s, started_s = loop.time(), self._flights[0].started_s
        late_s, lost_s = started_s + self._late_s, started_s + self._append_s
        if now_s < late_s:
            again_s = late_s
        elif not self._storage.together and self._late(self._flights[0].entries[0]):
            again_s = now_s + LATE_INTERVAL_S
        elif now_s < lost_s:
            again_s = min(now_s + LATE_INTERVAL_S, lost_s)
        else:
            self.give_up()
            return
        self._watch = loop.call_at(again_s, self._look)

    async def _in_time(self, doing: str, work: Awaitable[R]) -> R:
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                return await work
        except TimeoutError:
            raise self._too_late(doing) from None
        except StorageError:
            raise
        except Exception as error:
            raise self._unforeseen(doing, error) from error

    def _too_late(self, doing: str) -> StorageError:
        self._silent = True
        limit = f"{doing} took longer than storage.timeout.ms ({self._timeout_ms})"
        return StorageError(Failure.SILENT if self._storage.together else Failure.AWAY, limit)

    def _unforeseen(self, doing: str, error: Exception) -> StorageError:
        self._log.exception("store failed", doing=doing)
        return StorageError(Failure.IO_ERROR, f"{doing}: {error!r}")
