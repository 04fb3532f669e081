"""Consumers in processes of their own that are killed: no record is missed, none goes backwards."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Sink, Source, consumer, places, read_count

Lines = list[tuple[int, int, int]]
DOCS = Path(__file__).parents[2] / "docs" / "consumer.md"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 4}, group_min_session_timeout_ms=500) as found:
        yield found


class Victim:
    """A consumer process, and what it said that it has processed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: Lines = []

    async def read(self, count: int) -> None:
        """Wait until it has processed `more` more batches."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(count):
                line = await self._process.stdout.readline()
                partition, first, last = map(int, line.split())
                self.lines.append((partition, first, last))

    async def kill(self) -> None:
        """With what it has said until then."""
        self._process.kill()
        output, _ = await self._process.communicate()
        for line in output.splitlines(keepends=True):
            if line.endswith(b"\n"):
                partition, first, last = map(int, line.split())
                self.lines.append((partition, first, last))


@contextlib.asynccontextmanager
async def victim(coordinator: Coordinator, name: str) -> AsyncIterator[Victim]:
    command = [sys.executable, "-m", "tests.support.consumer_script", coordinator.bootstrap, name]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    found = Victim(process)
    try:
        yield found
    finally:
        if process.returncode is None:
            await found.kill()


def in_order(lines: Lines) -> None:
    """Each partition's batches follow each other without a gap."""
    for partition in range(4):
        of = [(first, last) for at, first, last in lines if at == partition]
        assert all(first == last_before + 1 for (_, last_before), (first, _) in itertools.pairwise(of))


async def test_killed_consumers_lose_nothing(coordinator: Coordinator) -> None:
    source = Source(coordinator)
    source.fill(batches=30, count=10)
    dead: Lines = []
    for number in range(2):
        async with victim(coordinator, f"v{number}") as one:
            await one.read(20)
            await one.kill()
            in_order(one.lines)
            dead += one.lines
    processed = {(partition, offset) for partition, first, last in dead for offset in range(first, last + 1)}
    async with consumer(coordinator, "last", max_poll_records=10) as last:
        await last.wait_assigned(PATIENCE_S)
        begins = {place: await last.position(place) for place in places(range(4))}
        left = sum(300 - at for at in begins.values())
        sink = await read_count(last, left) if left else Sink()
    for (_, partition), at in begins.items():
        # Everything before its place was processed by somebody; everything from there on is read now.
        assert {(partition, offset) for offset in range(at)} <= processed
        assert sink.offsets.get(("t", partition), []) == list(range(at, 300))


async def test_one_of_two_is_killed(coordinator: Coordinator) -> None:
    source = Source(coordinator)
    source.fill(batches=30, count=10)
    sink = Sink()
    async with victim(coordinator, "victim") as one:
        await one.read(5)
        async with consumer(coordinator, "b", max_poll_records=10) as two:
            await one.read(10)
            await one.kill()
            source.fill(batches=1, count=10)
            seen: set[tuple[int, int]] = set()
            async with asyncio.timeout(PATIENCE_S):
                while len(seen) < 4 * 310:
                    sink.add(await two.__anext__())
                    theirs = {(p, o) for p, first, last in one.lines for o in range(first, last + 1)}
                    ours = {(place[1], o) for place, offsets in sink.offsets.items() for o in offsets}
                    seen = theirs | ours
    in_order(one.lines)
    for offsets in sink.offsets.values():
        assert offsets == list(range(offsets[0], 310))
