"""Processes that work with `process` and are killed: no record is missed, none of a key goes before
another."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest

from ringleader.testing.coordinator import Coordinator
from tests.clients.process.test_process import fill
from tests.support.consuming import PATIENCE_S

Line = tuple[int, int, str]


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 4}, group_min_session_timeout_ms=500) as found:
        yield found


class Worker:
    """A process, and the records that it has done by what it said."""

    def __init__(self, process: asyncio.subprocess.Process, news: asyncio.Event) -> None:
        self.process = process
        self.lines: list[Line] = []
        self._news = news
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.endswith(b"\n"):
                partition, offset, key = line.decode().split()
                self.lines.append((int(partition), int(offset), key))
            self._news.set()

    async def kill(self) -> None:
        """With all that it has said until then."""
        if self.process.returncode is None:
            self.process.kill()
        await self._reading
        await self.process.wait()


async def test_killed_workers_lose_nothing_and_keep_the_order_of_keys(
    coordinator: Coordinator, seed: int
) -> None:
    rng, news = Random(seed), asyncio.Event()
    fill(coordinator, 300, keys=30)
    workers: list[Worker] = []

    async def start() -> Worker:
        command = [sys.executable, "-m", "tests.support.process_script", coordinator.bootstrap]
        process = await asyncio.create_subprocess_exec(
            *command, f"w{len(workers)}", stdout=asyncio.subprocess.PIPE
        )
        workers.append(Worker(process, news))
        return workers[-1]

    async def until_done(count: int) -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            while len({line[:2] for one in workers for line in one.lines}) < count:
                news.clear()
                await news.wait()

    try:
        await start()
        await start()
        for share in (200, 500, 800):
            await until_done(share)
            victim = rng.choice([one for one in workers if one.process.returncode is None])
            await victim.kill()
            await start()
        await until_done(1_200)
    finally:
        for one in workers:
            await one.kill()
    for one in workers:
        offsets = defaultdict(list)
        for partition, offset, key in one.lines:
            offsets[partition, key].append(offset)
        assert all(found == sorted(set(found)) for found in offsets.values())
