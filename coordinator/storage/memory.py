"""A store for tests: it can fail, it can be held back, and it can lose what was not synced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ringleader.coordinator.storage.base import Batch, Failure, StorageError

Row = tuple[int, int, int, bytes, bytes | None]
"""Partition, position, epoch, key, value."""


class MemoryStorage:
    """Keeps the log in memory, in two parts: what was written, and how much of that was synced.

    `synchronous=False` acknowledges before the sync, as a disk with syncing switched off: what `power_loss`
    drops is then what a crash of the machine would have dropped.
    """

    def __init__(self, *, synchronous: bool = True) -> None:
        self.synchronous = synchronous
        self.rows: list[Row] = []
        self.synced = 0
        """How many of `rows` are on the "disk"."""
        self.appends = 0
        """Calls of `append_many` so far, failed ones included."""
        self.syncs = 0
        self.is_open = False
        self._epochs: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._gate = asyncio.Event()
        self._gate.set()

    # ---- what tests do with it ----

    def fail_append(self, nth: int, failure: Failure = Failure.DISK_FULL) -> None:
        """The nth append from now (1 = the next one) fails."""
        self._failures[self.appends + nth] = failure

    def hold(self) -> None:
        """Appends are written but neither synced nor acknowledged until `release`."""
        self._gate.clear()

    def release(self) -> None:
        """Let held appends go on."""
        self._gate.set()

    def power_loss(self) -> MemoryStorage:
        """The store that the machine finds when it is back: only what was synced."""
        survivor = MemoryStorage(synchronous=self.synchronous)
        survivor.rows = self.rows[: self.synced]
        survivor.synced = self.synced
        for partition, _, epoch, _, _ in survivor.rows:
            survivor._epochs[partition] = max(epoch, survivor._epochs.get(partition, epoch))
        return survivor

    # ---- Storage ----

    async def open(self) -> None:
        """See `Storage.open`."""
        self.is_open = True

    async def append_many(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append_many`."""
        if not self.is_open:
            raise StorageError(Failure.CLOSED)
        self.appends += 1
        failure = self._failures.pop(self.appends, None)
        if failure is not None:
            await self._gate.wait()
            raise StorageError(failure)
        if any(epoch < self._epochs.get(partition, epoch) for partition, epoch, _ in batches):
            raise StorageError(Failure.FENCED)
        positions = []
        for partition, epoch, records in batches:
            self._epochs[partition] = max(epoch, self._epochs.get(partition, epoch))
            for key, value in records:
                self.rows.append((partition, len(self.rows), epoch, key, value))
            positions.append(len(self.rows) - 1)
        if not self.synchronous:
            return positions
        end = len(self.rows)
        await self._gate.wait()
        self.syncs += 1
        self.synced = max(self.synced, end)
        return positions

    async def replay(self, partition: int) -> AsyncIterator[tuple[int, int, bytes, bytes | None]]:
        """See `Storage.replay`."""
        if not self.is_open:
            raise StorageError(Failure.CLOSED)
        for owner, position, epoch, key, value in list(self.rows):
            if owner == partition:
                yield position, epoch, key, value

    async def close(self) -> None:
        """See `Storage.close`."""
        self._gate.set()
        self.is_open = False
