"""A store for tests: it can fail, fill up, be held back or never answer, and lose what was not synced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ringleader.coordinator.storage.base import Batch, Failure, Row, StorageError

REPLAY_CHUNK_ROWS = 3
"""Few, so that tests see several chunks."""


class MemoryStorage:
    """Keeps the log in memory, in two parts: what was written, and how much of that was synced.

    `synchronous=False` acknowledges before the sync, as a disk with syncing switched off: what `power_loss`
    drops is then what a crash of the machine would have dropped.
    """

    def __init__(
        self,
        *,
        synchronous: bool = True,
        pipeline: int = 1,
        together: bool = True,
        confirmed_reads: bool = False,
    ) -> None:
        self.synchronous = synchronous
        self.pipeline = pipeline
        self.together = together
        self.confirmed_reads = confirmed_reads
        self.rows: list[tuple[int, Row]] = []
        """Partition and row."""
        self.synced = 0
        """How many of `rows` are on the "disk"."""
        self.appends = 0
        """Calls of `append` so far, failed ones included."""
        self.under_way = 0
        """Calls of `append` that have not returned."""
        self.probes = 0
        self.syncs = 0
        self.full = False
        """Every append fails with DISK_FULL, and so does `probe`."""
        self.is_open = False
        self._epochs: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._gate = asyncio.Event()
        self._gate.set()
        self._order = asyncio.Lock()
        self._failed = 0
        """Failed appends so far: those that were called before the last one failed fail with it."""
        self._last_failure = Failure.DISK_FULL

    # ---- what tests do with it ----

    def fail_append(self, nth: int, failure: Failure = Failure.DISK_FULL) -> None:
        """The nth append from now (1 = the next one) fails."""
        self._failures[self.appends + nth] = failure

    def hold(self) -> None:
        """Appends are written but neither synced nor acknowledged until `resume`; without it, the store
        never answers."""
        self._gate.clear()

    def resume(self) -> None:
        """Let held appends go on."""
        self._gate.set()

    def power_loss(self) -> MemoryStorage:
        """The store that the machine finds when it is back: only what was synced."""
        survivor = MemoryStorage(
            synchronous=self.synchronous,
            pipeline=self.pipeline,
            together=self.together,
            confirmed_reads=self.confirmed_reads,
        )
        survivor.rows = self.rows[: self.synced]
        survivor.synced = self.synced
        for partition, (_, epoch, _, _) in survivor.rows:
            survivor._own(partition, epoch)
        return survivor

    # ---- Storage ----

    async def start(self) -> None:
        """See `Storage.start`."""
        self.is_open = True

    async def open(self, partition: int, epoch: int) -> int:
        """See `Storage.open`."""
        self._check_open()
        if epoch < self._epochs.get(partition, epoch):
            raise StorageError(Failure.FENCED)
        self._own(partition, epoch)
        return epoch

    async def release(self, partition: int) -> None:
        """See `Storage.release`."""

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        self._check_open()
        assert self.under_way < self.pipeline, "more appends at once than the store said"
        self.under_way += 1
        self.appends += 1
        failure = self._failures.pop(self.appends, None)
        failed = self._failed
        try:
            async with self._order:
                if self._failed != failed:
                    raise StorageError(self._last_failure)
                if failure is None and self.full:
                    failure = Failure.DISK_FULL
                if failure is None and any(
                    epoch < self._epochs.get(part, epoch) for part, epoch, _ in batches
                ):
                    failure = Failure.FENCED
                if failure is not None:
                    await self._gate.wait()
                    self._failed, self._last_failure = self._failed + 1, failure
                    raise StorageError(failure)
                positions = self._write(batches)
                if self.synchronous:
                    end = len(self.rows)
                    await self._gate.wait()
                    self.syncs += 1
                    self.synced = end
                return positions
        finally:
            self.under_way -= 1

    def _write(self, batches: Sequence[Batch]) -> list[int]:
        positions = []
        for partition, epoch, records in batches:
            self._own(partition, epoch)
            for key, value in records:
                self.rows.append((partition, (len(self.rows), epoch, key, value)))
            positions.append(len(self.rows) - 1)
        return positions

    async def probe(self) -> None:
        """See `Storage.probe`."""
        self._check_open()
        self.probes += 1
        if self.full:
            raise StorageError(Failure.DISK_FULL)

    async def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """See `Storage.replay`."""
        self._check_open()
        rows = [row for owner, row in self.rows if owner == partition]
        for start in range(0, len(rows), REPLAY_CHUNK_ROWS):
            yield rows[start : start + REPLAY_CHUNK_ROWS]

    async def close(self) -> None:
        """See `Storage.close`."""
        self._gate.set()
        self.is_open = False

    def _own(self, partition: int, epoch: int) -> None:
        self._epochs[partition] = max(epoch, self._epochs.get(partition, epoch))

    def _check_open(self) -> None:
        if not self.is_open:
            raise StorageError(Failure.CLOSED)
