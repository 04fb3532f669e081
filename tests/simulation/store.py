"""The store of a simulated run: appends in a pipeline, slow, failing or full at times; what was not
acknowledged may be there or gone after a crash."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from ringleader.coordinator.machine import Append

if TYPE_CHECKING:
    from tests.simulation.partition import Partition
    from tests.simulation.world import World

Row = tuple[bytes, bytes | None]
_UNKNOWN_KINDS = (4, 9, 10, 14, 17, 23, 0x7FFF)
"""Key types of a newer Kafka, or of nobody: a loader skips them."""
FULL_MAX_MS = 6_000


class Failure(Enum):
    """The reason why an append failed."""

    LOST = "lost"
    FULL = "full"


@dataclass(slots=True)
class _Entry:
    """An append and whose it is."""

    partition: int
    life: int
    append: Append


class Store:
    """Batches of appends of all partitions, `pipeline` of them under way at once, decided in order."""

    def __init__(self, world: World, partitions: int) -> None:
        self.world = world
        self.pipeline = world.rng.choice((1, 1, 2, 5))
        self.logs: list[list[Row]] = [[] for _ in range(partitions)]
        self.durable: dict[bytes, bytes | None] = {}
        """The logs after a complete compaction; None: a tombstone."""
        self.promised: dict[bytes, bytes | None] = {}
        """The same with all that is on its way."""
        self.version = 0
        self.stored_step = -1
        self.full_until_ms = 0
        self._gathered: list[_Entry] = []
        self._under_way: deque[list[_Entry]] = deque()
        self._free_ms = 0
        self._process = 0

    def take(self, partition: Partition, appends: Sequence[Append]) -> None:
        """Records that a machine wants in the log."""
        for append in appends:
            self._gathered.append(_Entry(partition.number, partition.life, append))
            _compact(self.promised, append.records)
            self.version += 1
        self._begin()

    def in_flight(self, partition: int) -> list[Row]:
        """The appends on their way for a partition, in order."""
        return [row for one in self._all() if one.partition == partition for row in one.append.records]

    def is_idle(self, partition: int) -> bool:
        """Whether nothing of the partition is on its way."""
        return not any(one.partition == partition for one in self._all())

    def _all(self) -> list[_Entry]:
        return [*(one for batch in self._under_way for one in batch), *self._gathered]

    def _begin(self) -> None:
        world = self.world
        while self._gathered and len(self._under_way) < self.pipeline:
            batch, self._gathered = self._gathered, []
            self._under_way.append(batch)
            slow = world.faults and world.rng.random() < 0.05
            delay_ms = world.rng.randint(500, 3_000) if slow else world.rng.randint(0, 20)
            self._free_ms = max(self._free_ms, world.now_ms + delay_ms)  # in order
            world.later(self._free_ms - world.now_ms, partial(self._decided, self._process))

    def _decided(self, process: int) -> None:
        if process != self._process:
            return
        world = self.world
        world.touched = True
        batch = self._under_way.popleft()
        failure = self._failure() if batch else None
        world.say("stored", ([(one.partition, one.append.position) for one in batch], failure))
        if failure is None:
            self.stored_step = world.steps
            for one in batch:
                self._land(one)
            for partition in world.partitions:
                positions = [
                    one.append.position
                    for one in batch
                    if one.partition == partition.number and one.life == partition.life
                ]
                if positions:
                    partition.durable(positions)
        else:
            self._fail(batch, failure)
        self._begin()

    def _failure(self) -> Failure | None:
        world = self.world
        if self.full_until_ms > world.now_ms:
            return Failure.FULL
        fate = world.rng.random() if world.faults else 1.0
        if fate < 0.004:
            self.full_until_ms = world.now_ms + world.rng.randint(100, FULL_MAX_MS)
            return Failure.FULL
        return Failure.LOST if fate < 0.016 else None

    def _fail(self, batch: list[_Entry], failure: Failure) -> None:
        """The batch is not in the log, and nothing later of the same shards will be."""
        world = self.world
        failed = {one.partition for one in batch}
        for later in self._under_way:
            later[:] = [one for one in later if one.partition not in failed]
        self._gathered = [one for one in self._gathered if one.partition not in failed]
        self._promise_again()
        lives = {one.partition: one.life for one in batch}
        for partition in world.partitions:
            if lives.get(partition.number) == partition.life:
                partition.reload("an append failed")
        if failure is Failure.FULL:
            world.store_is_full()

    def forget(self, partition: int) -> None:
        """Its shard's life is over: what was not begun is not written, or is, as it comes."""
        if self.world.rng.random() < 0.5:
            self._gathered = [one for one in self._gathered if one.partition != partition]
            self._promise_again()

    def _promise_again(self) -> None:
        self.promised = dict(self.durable)
        for one in self._all():
            _compact(self.promised, one.append.records)
        self.version += 1

    def _land(self, one: _Entry) -> None:
        self.logs[one.partition] += one.append.records
        _compact(self.durable, one.append.records)
        self.version += 1
        self.world.checks.landed(one.partition, one.life, one.append)

    def crash(self) -> None:
        """Of what was not acknowledged, some of the first may be there. The log may be compacted meanwhile,
        and may hold records of kinds that this version does not know."""
        rng = self.world.rng
        unsure = [one for batch in self._under_way for one in batch]
        for one in unsure[: rng.randint(0, len(unsure))]:
            self._land(one)
        self._gathered = []
        self._under_way.clear()
        self._process += 1
        self._free_ms = 0
        self._promise_again()
        for number, log in enumerate(self.logs):
            if rng.random() < 0.5:
                compacted: dict[bytes, bytes | None] = {}
                _compact(compacted, log)
                log = self.logs[number] = [row for row in compacted.items() if row[1] is not None]
            if rng.random() < 0.5:
                key = rng.choice(_UNKNOWN_KINDS).to_bytes(2, "big") + rng.randbytes(rng.randint(2, 9))
                log.insert(rng.randint(0, len(log)), (key, rng.choice([None, b"", rng.randbytes(5)])))


def _compact(kept: dict[bytes, bytes | None], content: Iterable[Row]) -> None:
    """The records that a compaction keeps: the last record of each key, where that stood."""
    for key, value in content:
        kept.pop(key, None)
        kept[key] = value
