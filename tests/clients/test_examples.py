"""The scripts of docs/examples, run as a user runs them: processes, one of which is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ringleader.clients.admin import Admin
from ringleader.clients.testing import Coordinator

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PATIENCE_S = 60.0


class Script:
    """A running example and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())
            self._news.set()
        self._news.set()

    async def until(self, true: Callable[[list[str]], bool]) -> None:
        """Wait for what it prints."""
        async with asyncio.timeout(PATIENCE_S):
            while not true(self.lines):
                assert not self._reading.done(), f"it ended: {self.lines}"
                self._news.clear()
                await self._news.wait()

    async def end(self) -> int:
        """Wait for its end: the exit code."""
        async with asyncio.timeout(PATIENCE_S):
            await self._reading
            return await self.process.wait()

    async def kill(self) -> None:
        """As kill -9 does."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.end()


@contextlib.asynccontextmanager
async def running(name: str, *arguments: list[str]) -> AsyncIterator[list[Script]]:
    """One process of that example for each list of arguments."""
    scripts = [
        Script(
            await asyncio.create_subprocess_exec(
                sys.executable,
                str(EXAMPLES / f"{name}.py"),
                *given,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        )
        for given in arguments
    ]
    try:
        yield scripts
    finally:
        for script in scripts:
            await script.kill()


def results_of(script: Script, directory: Path) -> Path:
    return directory / f"{script.process.pid}.jsonl"


def pieces(directory: Path) -> list[tuple[int, int]]:
    """What was done, by all processes; a line that a kill cut off does not count."""
    found = []
    for file in directory.iterdir():
        for line in file.read_text().splitlines():
            with contextlib.suppress(ValueError):
                done: dict[str, Any] = json.loads(line)
                found.append((done["shard"], done["piece"]))
    return found


async def test_a_sharded_job(coordinator: Coordinator, tmp_path: Path) -> None:
    results = tmp_path / "results"
    given = [coordinator.bootstrap, str(results)]
    async with running("sharded_job", given, given, given) as scripts:
        for script in scripts:
            await script.until(lambda lines: any(line.startswith("shards [") for line in lines))
        async with asyncio.timeout(PATIENCE_S):
            while not (begun := [one for one in scripts if results_of(one, results).exists()]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        victim = begun[0]
        await victim.kill()
        for script in scripts:
            if script is not victim:
                assert await script.end() == 0, script.lines
                assert script.lines[-1] == "the job is done"
    done = Counter(pieces(results))
    assert set(done) == {(shard, piece) for shard in range(8) for piece in range(25)}
    # Twice is only what the victim had done and not committed yet.
    assert sum(done.values()) <= 201
    async with Admin(coordinator.bootstrap) as admin:
        offsets = await admin.group_offsets("thumbnails")
    assert {place: at.offset for place, at in offsets.items()} == {("thumbnails", n): 25 for n in range(8)}
