"""A log that several nodes share, each through a store of its own: with epochs that fence, as a cluster has
them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence

from ringleader.coordinator.storage.base import Batch, Failure, Row, StorageError

REPLAY_CHUNK_ROWS = 3


class FencedLog:
    """The log that the nodes share."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = defaultdict(list)
        self.epochs: Counter[int] = Counter()


class FencedStorage:
    """One node's way to the log. It gives out epochs; appends of single partitions can be held and fail."""

    together = False
    confirmed_reads = True
    pipeline = 2

    def __init__(self, log: FencedLog | None = None) -> None:
        self.log = log or FencedLog()
        self.opened: list[int] = []
        """Partitions, in the order of `open`."""
        self.released: list[int] = []
        self.appends: Counter[int] = Counter()
        self.is_open = False
        self.fail_open: list[Failure] = []
        self.fail_append: dict[int, Failure] = {}
        """The failure of the next append, by partition."""
        self.replays = asyncio.Event()
        """Cleared, nothing is replayed."""
        self.replays.set()
        self._gates: dict[int, asyncio.Event] = {}
        self._order: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._broken: set[tuple[int, int]] = set()

    def hold(self, partition: int) -> None:
        """Appends of a partition do not reach the log until `resume`."""
        self._gates[partition] = asyncio.Event()

    def resume(self, partition: int) -> None:
        """They do."""
        self._gates.pop(partition).set()

    # ---- Storage ----

    async def start(self) -> None:
        """See `Storage.start`."""
        self.is_open = True

    async def open(self, partition: int, epoch: int) -> int:
        """See `Storage.open`."""
        await asyncio.sleep(0)
        if self.fail_open:
            raise StorageError(self.fail_open.pop())
        assert not self._order[partition].locked(), "an append is under way"
        self.opened.append(partition)
        self.log.epochs[partition] += 1
        return self.log.epochs[partition]

    async def release(self, partition: int) -> None:
        """See `Storage.release`."""
        assert not self._order[partition].locked(), "an append is under way"
        await asyncio.sleep(0)
        self.released.append(partition)

    async def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """See `Storage.replay`."""
        rows = list(self.log.rows[partition])
        await self.replays.wait()
        for start in range(0, len(rows), REPLAY_CHUNK_ROWS):
            yield rows[start : start + REPLAY_CHUNK_ROWS]

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        [(partition, epoch)] = {(partition, epoch) for partition, epoch, _ in batches}
        self.appends[partition] += 1
        async with self._order[partition]:
            gate = self._gates.get(partition)
            if gate is not None:
                await gate.wait()
            await asyncio.sleep(0)
            failure = self.fail_append.pop(partition, None)
            if epoch < self.log.epochs[partition]:
                failure = Failure.FENCED
            if failure is not None or (partition, epoch) in self._broken:
                self._broken.add((partition, epoch))
                raise StorageError(failure or Failure.AWAY)
            rows = self.log.rows[partition]
            for _, _, records in batches:
                rows += [(len(rows), epoch, key, value) for key, value in records]
            return [len(rows) - 1] * len(batches)

    async def probe(self) -> None:
        """See `Storage.probe`."""

    async def close(self) -> None:
        """See `Storage.close`."""
        for gate in self._gates.values():
            gate.set()
        self.is_open = False
