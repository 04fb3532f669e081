"""Any sequence of transactions, truncations, retention and restarts, read as clients read committed ones."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.topics import Topics
from ringleader.coordinator.topics.transactional import is_commit, next_offset
from ringleader.protocol.records import BatchView, Record, build_batch, iter_batches
from tests.support.shares import share
from tests.support.topiclog import WallClock, killed, topic_settings

SETTINGS = topic_settings(log_segment_bytes=500, log_retention_ms=50_000, tail_cache_bytes=600)
SEEDS = range(share(4, whole=12))
STEPS = 150


class Reader:
    """A client that handles the answers to its fetches (Java's `CompletedFetch`)."""

    def __init__(self, aborted: list[tuple[int, int]]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry[1])
        self._aborted: set[int] = set()

    def take(self, batch: BatchView) -> list[Record]:
        header = batch.header
        while self._coming and self._coming[0][1] <= header.last_offset:
            self._aborted.add(self._coming.pop(0)[0])
        if header.is_control:
            if is_commit(batch) is False:
                self._aborted.discard(header.producer_id)
            return []
        if header.is_transactional and header.producer_id in self._aborted:
            return []
        return list(batch.records())


class World:
    """One partition with transactions, and what readers of committed records should see."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = WallClock()
        self.topics = Topics(self.directory, SETTINGS, self.clock, sync=False, now_ms=self.clock.monotonic_ms)
        self.end = 0
        self.start = 0
        self.number = 0
        self.epochs = dict.fromkeys(range(1, 5), 0)
        self.sequences = dict.fromkeys(range(1, 5), 0)
        # Producer to the (offset, value) of its open transaction.
        self.open: dict[int, list[tuple[int, bytes]]] = {}
        self.decided: list[tuple[int, bytes]] = []

    def run(self, action: Callable[[], Any]) -> Any:
        async def go() -> Any:
            return await action()

        return self.loop.run_until_complete(go())

    def begin(self) -> None:
        self.run(self.topics.open)
        self.run(lambda: self.topics.create("orders", 1))

    def batch(self, count: int, **options: Any) -> tuple[bytes, list[tuple[int, bytes]]]:
        """The next batch; the offsets and values of its records."""
        self.clock.now_ms += 300
        records = []
        for index in range(count):
            self.number += 1
            records.append(Record(index, self.clock.now_ms, None, b"%d" % self.number + bytes(20)))
        base, self.end = self.end, self.end + count
        return build_batch(records, **options), [(base + r.offset, r.value or b"") for r in records]

    async def put(self, data: bytes, written: list[tuple[int, bytes]]) -> None:
        result = await self.topics.append("orders", 0, data, lambda producer_id, epoch: None)
        assert result.base_offset == written[0][0]

    def write(self, count: int, **options: Any) -> list[tuple[int, bytes]]:
        data, written = self.batch(count, **options)
        self.run(lambda: self.put(data, written))
        return written

    def in_transaction(self, producer: int, count: int) -> dict[str, Any]:
        """The options of a producer's next batch."""
        sequence = self.sequences[producer]
        self.sequences[producer] += count
        return {
            "producer_id": producer,
            "producer_epoch": self.epochs[producer],
            "base_sequence": sequence,
            "transactional": True,
        }

    def burst(self, producers: list[int]) -> None:
        """Many batches on their way at once, over several files."""
        sent = []
        for producer in producers:
            data, written = self.batch(1, **self.in_transaction(producer, 1))
            self.open.setdefault(producer, []).extend(written)
            sent.append((data, written))

        async def put_all() -> None:
            await asyncio.gather(*(self.put(*one) for one in sent))

        self.run(put_all)

    def append(self, count: int) -> None:
        self.decided += self.write(count)

    def append_in_transaction(self, producer: int, count: int) -> None:
        written = self.write(count, **self.in_transaction(producer, count))
        self.open.setdefault(producer, []).extend(written)

    def finish(self, producer: int, committed: bool, fence: bool) -> None:
        if fence:
            self.epochs[producer] += 1
            self.sequences[producer] = 0
        epoch = self.epochs[producer]
        self.clock.now_ms += 300
        self.run(lambda: self.topics.end_transaction("orders", 0, producer, epoch, committed=committed))
        self.end += 1
        written = self.open.pop(producer, [])
        if committed:
            self.decided = sorted(self.decided + written)

    def truncate(self, back: int) -> None:
        offset = max(self.end - back, 0)
        self.start = max(self.start, offset)
        assert self.run(lambda: self.topics.truncate("orders", 0, offset)) == self.start

    def retain(self, later_ms: int) -> None:
        self.clock.now_ms += later_ms
        self.run(self.topics.enforce_retention)
        self.start = self.topics.partition("orders", 0).start_offset

    def restart(self, how: str) -> None:
        old = self.topics
        if how == "clean":
            self.run(old.close)
        else:
            copy = Path(tempfile.mkdtemp())
            self.run(lambda: killed(old, copy))
            self.run(old.close)
            shutil.rmtree(self.directory)
            self.directory = copy
        if how == "without indexes":
            self.drop_indexes()
        self.topics = Topics(self.directory, SETTINGS, self.clock, sync=False, now_ms=self.clock.monotonic_ms)
        self.run(self.topics.open)
        self.read(self.end, 1_000)

    def drop_indexes(self) -> None:
        """Of all files but the first, whose index knows of what was before it."""
        for below in (self.directory / "data").glob("*/*"):
            for path in sorted(below.glob("*.index"))[1:]:
                path.unlink()

    def read(self, back: int, max_bytes: int) -> None:
        partition = self.topics.partition("orders", 0)
        stable = partition.last_stable_offset
        offset = first = max(stable - back, self.start)
        found: list[tuple[int, bytes]] = []
        while offset < stable:
            limit = stable if partition.transactions.open else None
            data = self.run(partial(self.read_at, offset, max_bytes, limit))
            reader = Reader(partition.transactions.aborted(offset, next_offset(data)))
            for batch in iter_batches(data):
                found += [(r.offset, r.value or b"") for r in reader.take(batch) if r.offset >= offset]
            assert next_offset(data) > offset
            offset = next_offset(data)
        assert found == [record for record in self.decided if first <= record[0] < stable]

    async def read_at(self, offset: int, max_bytes: int, limit: int | None) -> bytes:
        partition = self.topics.partition("orders", 0)
        return await self.topics.read(partition, offset, max_bytes, limit)

    def bounds_hold(self) -> None:
        partition = self.topics.partition("orders", 0)
        assert (partition.start_offset, partition.high_watermark) == (self.start, self.end)
        firsts = [records[0][0] for records in self.open.values()]
        assert partition.last_stable_offset == max(min(firsts, default=self.end), self.start)
        assert set(partition.transactions.open) == set(self.open)

    def teardown(self) -> None:
        self.run(self.topics.close)
        self.loop.close()
        shutil.rmtree(self.directory)


def step(world: World, rng: random.Random) -> None:
    """Anything that may happen."""
    producer = rng.randint(1, 4)
    match rng.choices(range(8), [3, 6, 4, 0.3, 0.3, 1, 2, 1])[0]:
        case 0:
            world.append(rng.randint(1, 4))
        case 1:
            world.append_in_transaction(producer, rng.randint(1, 4))
        case 2:
            world.finish(producer, rng.random() < 0.5, rng.random() < 0.2)
        case 3:
            world.truncate(rng.randint(5, 120))
        case 4:
            world.retain(rng.randint(0, 30_000))
        case 5:
            world.restart(rng.choice(["clean", "killed", "without indexes"]))
        case 6:
            world.read(rng.randint(0, 100), rng.randint(0, 1_500))
        case 7:
            world.burst([rng.randint(1, 4) for _ in range(20)])


@pytest.mark.share
@pytest.mark.parametrize("seed", SEEDS, indirect=True)
def test_readers_see_what_is_committed(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    try:
        world.begin()
        for _ in range(STEPS):
            step(world, rng)
            world.bounds_hold()
        world.read(world.end, 1_000)
        assert len(world.decided) > 50
    finally:
        world.teardown()
