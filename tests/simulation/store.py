"""The store of a simulated run: slow at times, failing at times, and what was not acknowledged may be gone
after a crash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ringleader.coordinator.groups.outbox import Append
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.world import World

ERRORS = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""What a failed append may say."""
CLIENT_ERRORS = frozenset(
    int(code)
    for code in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""What clients are told then."""
_UNKNOWN_KINDS = (3, 8, 16, 0x7000)
"""Key types of a newer Kafka, or of nobody: a loader skips them."""


class Store:
    """One transaction at a time; what comes meanwhile waits for the next one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log: list[tuple[bytes, bytes | None]] = []
        self.durable: dict[bytes, bytes | None] = {}
        """The log after a complete compaction; None: a tombstone."""
        self.version = 0
        self.stored_step = self.failed_step = -1
        self._gathered: list[Append] = []
        self._writing: list[Append] = []

    def take(self, appends: Sequence[Append]) -> None:
        """Records that the machine wants in the log."""
        self._gathered += appends
        self._begin()

    def _begin(self) -> None:
        if self._writing or not self._gathered:
            return
        self._writing, self._gathered = self._gathered, []
        world = self.world
        slow = world.faults and world.rng.random() < 0.05
        delay_ms = world.rng.randint(500, 3_000) if slow else world.rng.randint(0, 20)
        life = world.lives
        world.later(delay_ms, lambda: self._written(life))

    def _written(self, life: int) -> None:
        world = self.world
        if life != world.lives:
            return
        batch, self._writing = self._writing, []
        self.stored_step = world.steps
        world.touched = True
        world.checks.offsets.storing()
        failed = self._failures(batch)
        world.say("stored", ([one.position for one in batch], failed))
        shard, now_ms = world.shard, world.now_ms
        stored = -1
        for append in batch:
            if append.position in failed:
                shard.append_failed(append.position, failed[append.position], now_ms)
            else:
                self._land(append)
                stored = append.position
        if stored >= 0:
            shard.appended(stored, now_ms)
        self._begin()

    def _failures(self, batch: Sequence[Append]) -> dict[int, int]:
        rng = self.world.rng
        if not self.world.faults or rng.random() >= 0.06:
            return {}
        code = int(rng.choice(ERRORS))
        failed = batch if rng.random() < 0.5 else [rng.choice(batch)]
        self.failed_step = self.world.steps
        return {append.position: code for append in failed}

    def _land(self, append: Append) -> None:
        self.log += append.records
        _compact(self.durable, append.records)
        self.version += 1
        self.world.checks.landed(append.records)

    def crash(self) -> None:
        """Of what was not acknowledged, some of the first may be there. The log may be compacted meanwhile,
        and may hold records of kinds that this version does not know."""
        rng = self.world.rng
        unsure = [*self._writing, *self._gathered]
        for append in unsure[: rng.randint(0, len(self._writing))]:
            self._land(append)
        self._writing, self._gathered = [], []
        if rng.random() < 0.5:
            compacted: dict[bytes, bytes | None] = {}
            _compact(compacted, self.log)
            self.log = [(key, value) for key, value in compacted.items() if value is not None]
        if rng.random() < 0.5:
            key = rng.choice(_UNKNOWN_KINDS).to_bytes(2, "big") + rng.randbytes(rng.randint(2, 9))
            self.log.insert(rng.randint(0, len(self.log)), (key, rng.choice([None, b"", rng.randbytes(5)])))

    def replay(self, shard: Shard) -> None:
        """Load a shard from the log."""
        for key, value in self.log:
            shard.replay(key, value)


def _compact(kept: dict[bytes, bytes | None], content: Iterable[tuple[bytes, bytes | None]]) -> None:
    """What a compaction keeps: the last record of each key, where that stood."""
    for key, value in content:
        kept.pop(key, None)
        kept[key] = value
