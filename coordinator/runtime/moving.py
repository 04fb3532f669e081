"""Shards that come and go, for other nodes have the others.

After `start_empty` a node has none. `acquire` and `release` are for somebody to call who knows of the other
nodes. A shard whose life ends is gone, and nothing here takes it back: to own one fences any other owner, so
it is never done unasked (`on_lost` reports it). Only a store that cannot be trusted ends all of them.

The store is what makes a mistake harmless: of two nodes that believe to have a shard, one has every append
refused (FENCED), and answers nothing any more.

An append that is merely late (too few replicas, say) ends nothing while it is certain that no other node was
given the shard (`vouch`). The shard answers heartbeats, so that members keep what they have, and refuses
everything else with COORDINATOR_NOT_AVAILABLE until the log answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from ringleader.coordinator.runtime.log import Entry
from ringleader.coordinator.runtime.shards import M, ShardRuntime
from ringleader.coordinator.storage.base import Failure, Storage, StorageError
from ringleader.protocol.errors import ErrorCode

RELEASE_S = 2.0
"""A request that waits for an append of a shard that is given up is refused after this time: its client asks
the next owner."""


def _not_vouched(_partition: int) -> bool:
    return False


@dataclass(slots=True)
class _Leaving(Generic[M]):
    """A shard that is being released: it takes nothing more, and its appends become durable."""

    shard: M
    pending: dict[Any, None]


class MovingShards(ShardRuntime[M]):
    """The shards of one log that this node has. With `load_all` it has all of them, as `ShardRuntime`."""

    def __init__(
        self,
        storage: Storage,
        partitions: int,
        *,
        on_lost: Callable[[int, BaseException], None] | None = None,
        **more: Any,
    ) -> None:
        """`on_lost(partition, error)`, after `start_empty`: a shard that served is unloaded, for an append of
        it failed (a `StorageError`; FENCED: another node has it) or its machine raised. It may be acquired
        again at once. `more`: see `ShardRuntime`."""
        super().__init__(storage, partitions, **more)
        self._on_lost = on_lost
        self.vouch: Callable[[int], bool] = _not_vouched
        """Whether a partition is this node's for certain, though its log does not answer; asked every second
        meanwhile."""
        self._moving = self._stopping = False
        self._leaving: dict[int, _Leaving[M]] = {}
        self._held: set[int] = set()
        """Partitions that the store was asked to open, and not to release."""
        self._turns = [asyncio.Lock() for _ in range(partitions)]
        """By partition: one after the other takes it, and gives it up."""

    async def start_empty(self) -> None:
        """Open the store, and have no shard: every request is answered NOT_COORDINATOR. Raises
        `StorageError`."""
        self._loop = asyncio.get_running_loop()
        await self._store.start()
        self._moving = self._serving = True
        for partition in range(self.partitions):
            self._unload(partition)
        self._tell_wall_clock()

    @property
    def serving(self) -> frozenset[int]:
        """The partitions whose shards serve now."""
        return frozenset(partition for partition, loaded in enumerate(self._loaded) if loaded)

    def has(self, partition: int) -> bool:
        """Whether its shard serves here, or, where this node has all of them, will do so again."""
        return self._loaded[partition] or not self._moving

    def opened(self, partition: int) -> bool:
        """Whether the store has given the partition to this node since it was to acquire it last."""
        return self._logs[partition].has(partition)

    @property
    def late(self) -> frozenset[int]:
        """The partitions whose log does not answer in time: see the module."""
        return frozenset(self._late)

    async def stop(self) -> None:
        """See `ShardRuntime.stop`. Late appends are not waited for."""
        self._stopping = True
        for partition in self._late:
            self._logs[partition].give_up()
        await super().stop()

    # ---- to have a shard ----

    async def acquire(self, partition: int) -> int:
        """Own a shard, replay it (until then it answers COORDINATOR_LOAD_IN_PROGRESS), and serve it; how many
        records there were. 0 if it serves already. Waits for a `release` under way.

        Raises `StorageError`, or what the machine raises, as `MalformedError` for a record that cannot be
        read; then the shard is not served. The same if it is cancelled."""
        async with self._turns[partition]:
            if self._loaded[partition]:
                return 0
            await self._let_go(partition)
            if not self._serving:
                raise StorageError(Failure.CLOSED)
            began_s = time.perf_counter()
            if not self._storage.together:
                self._logs[partition].forget()
                self._logs[partition] = self._new_log()
            shard = self.shards[partition] = self._make(partition)
            self._held.add(partition)
            try:
                records = await self._load(partition, shard)
            except BaseException:
                self._unload(partition)
                await self._let_go(partition)
                raise
            ms = round((time.perf_counter() - began_s) * 1000)
            self._log.debug("shard acquired", partition=partition, records=records, ms=ms)
            return records

    async def _load(self, partition: int, shard: M) -> int:
        records = await self._logs[partition].load(partition, shard)
        await self._before_serving(shard)
        if not self._serving:
            raise StorageError(Failure.CLOSED)
        if self.shards[partition] is not shard:
            raise RuntimeError(f"shard {partition} failed while it was loaded")
        self._serve(partition)
        return records

    async def _before_serving(self, shard: M) -> None:
        """Returns when a shard that was replayed may serve."""

    # ---- to give it up ----

    async def release(self, partition: int) -> None:
        """Give a shard up: from now on it answers NOT_COORDINATOR. Requests whose appends become durable
        within `RELEASE_S` are answered, all others that wait are refused with NOT_COORDINATOR, and the store
        has given it up on return. Nothing happens if it is not served."""
        async with self._turns[partition]:
            if not self._loaded[partition]:
                return
            self._loaded[partition] = False
            self._late.discard(partition)
            shard, log = self.shards[partition], self._logs[partition]
            leaving = self._leaving[partition] = _Leaving(shard, self._take_pending(partition))
            self._put_unloaded(partition)
            try:
                self._answer(self._take(partition, shard, leaving.pending))
                async with asyncio.timeout(RELEASE_S):
                    for _ in range(2):  # what is on its way, then what gathered meanwhile
                        log.write()
                        await log.settled()
            except TimeoutError:
                log.give_up()  # the next owner knows what became of it
            except Exception:
                self._failed_leaving(partition)
            finally:
                self._leaving.pop(partition, None)
                log.drop(partition)
                self._refuse(leaving.pending)
            await self._let_go(partition)
            self._log.debug("shard released", partition=partition)

    def _former_durable(self, partition: int, shard: M, position: int, now: int) -> None:
        leaving = self._leaving.get(partition)
        if leaving is None or leaving.shard is not shard:
            return
        try:
            shard.durable(position, now)
            self._answer(self._take(partition, shard, leaving.pending))
        except Exception:
            self._failed_leaving(partition)

    def _failed_leaving(self, partition: int) -> None:
        self.counters.faults += 1
        self._log.exception("shard failed", partition=partition, doing="release")
        self._leaving.pop(partition, None)

    async def _let_go(self, partition: int) -> None:
        """When nothing is on its way any more, the store gives the partition up."""
        await self._logs[partition].settled()
        if partition in self._held:
            self._held.discard(partition)
            await self._storage.release(partition)

    def _put_unloaded(self, partition: int) -> None:
        shard = self.shards[partition] = self._make(partition)
        shard.unload()

    # ---- a log that is late ----

    def _append_late(self, entry: Entry[M]) -> bool:
        partition, shard, _ = entry
        if self._stopping or not self._loaded[partition] or self.shards[partition] is not shard:
            return False
        if not self.vouch(partition):
            return False
        if partition not in self._late:
            self.call(partition, "set_full", "", None, lambda shard, now: shard.set_full(True, now))
            self._late.add(partition)
            text = "heartbeats are answered, everything else is refused until it is in the log"
            self._log.warning("append is late", partition=partition, text=text)
        tickets = shard.abandon()
        for ticket in tickets:
            self.pending[partition].pop(ticket, None)
        self._refuse(tickets, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return True

    def _append_durable(self, entries: list[Entry[M]]) -> None:
        super()._append_durable(entries)
        for partition in {partition for partition, _, _ in entries} & self._late:
            self._late.discard(partition)
            self._log.info("late append is in the log", partition=partition)
            self.call(partition, "set_full", "", None, lambda shard, now: shard.set_full(self._full, now))

    # ---- to lose it ----

    def _over(self, partition: int, error: BaseException) -> None:
        """The end of a shard's life, and of its being here."""
        if not self._moving:
            super()._over(partition, error)
            return
        self.counters.reloads += 1
        self._late.discard(partition)
        served, self._loaded[partition] = self._loaded[partition], False
        self._put_unloaded(partition)
        self._logs[partition].drop(partition)
        # Not from within whatever is being asked right now.
        self._loop.call_soon(self._refuse, self._take_pending(partition))
        self._log.warning("shard lost", partition=partition, reason=str(error))
        if not self._serving:
            return
        self._spawn(self._after_loss(partition))
        if served and self._on_lost is not None:
            self._loop.call_soon(self._on_lost, partition, error)

    def _again(self, partition: int) -> None:
        if not self._moving:  # else the code that acquires it decides whether that is worth while
            super()._again(partition)

    async def _after_loss(self, partition: int) -> None:
        async with self._turns[partition]:
            if not self._loaded[partition]:  # else it was acquired again
                await self._let_go(partition)
