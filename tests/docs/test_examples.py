"""The scripts of docs/examples, run as a user runs them: processes, one of which is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.testing.coordinator import Coordinator

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SESSION = "session_timeout_ms=6_000"
PATIENCE_S = 60.0


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """One that allows shorter sessions than Kafka's least, which the examples have."""
    with Coordinator(group_min_session_timeout_ms=1_000) as found:
        yield found


class Script:
    """A running example and what it has printed. `news` is set at each line."""

    def __init__(self, process: asyncio.subprocess.Process, news: asyncio.Event) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = news
        # Two pipes: in one, a line of the log would stand in the middle of a line that is printed.
        self._reading = asyncio.gather(self._read(process.stdout), self._read(process.stderr))

    async def _read(self, pipe: asyncio.StreamReader | None) -> None:
        assert pipe is not None
        async for line in pipe:
            if line.endswith(b"\n"):  # else a kill cut it off
                self.lines.append(line.decode().rstrip())
            self._news.set()

    def newest(self, start: str) -> str:
        """The newest line that begins so."""
        return next((line for line in reversed(self.lines) if line.startswith(start)), "")

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


class Team:
    """Processes of one example; sessions are shorter, so that a killed one is missed sooner."""

    def __init__(self, directory: Path) -> None:
        self.scripts: list[Script] = []
        self._directory = directory
        self._news = asyncio.Event()

    async def start(self, name: str, given: Sequence[str]) -> None:
        code = (EXAMPLES / f"{name}.py").read_text()
        assert code.count(SESSION) == 1
        script = self._directory / f"{name}.py"
        if not self.scripts:  # the first one may be reading it
            script.write_text(code.replace(SESSION, "session_timeout_ms=3_000"))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(script),
            *given,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.scripts.append(Script(process, self._news))

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for what they print."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not true():
                    self._news.clear()
                    await self._news.wait()
                    await asyncio.sleep(0.02)  # they print thousands of lines: not after each of them
        except TimeoutError:
            raise AssertionError([script.lines[-20:] for script in self.scripts]) from None

    def newest(self, start: str) -> list[str]:
        """Of each the newest line that begins so."""
        return [script.newest(start) for script in self.scripts]

    def printed(self, verb: str) -> set[str]:
        """The arguments of all output lines that begin with `verb`."""
        return {
            line.split()[1] for script in self.scripts for line in script.lines if line.startswith(f"{verb} ")
        }

    async def until_printed(self, verb: str, arguments: set[str]) -> None:
        """Wait until they have printed a line with that verb for each of these, and for no other."""
        try:
            await self.until(lambda: self.printed(verb) == arguments)
        except AssertionError:
            missing, more = sorted(arguments - self.printed(verb)), sorted(self.printed(verb) - arguments)
            other = [[line for line in one.lines if not line.startswith(verb)] for one in self.scripts]
            text = f"{len(missing)} missing: {missing[:5]} to {missing[-5:]}; too many: {more[:5]}; {other}"
            raise AssertionError(text) from None


@contextlib.asynccontextmanager
async def running(directory: Path, name: str, *arguments: Sequence[str]) -> AsyncIterator[Team]:
    """One process of that example for each list of arguments."""
    team = Team(directory)
    try:
        for given in arguments:
            await team.start(name, given)
        yield team
    finally:
        for script in team.scripts:
            await script.kill()


def results_of(script: Script, directory: Path) -> Path:
    return directory / f"{script.process.pid}.jsonl"


def pieces(directory: Path) -> list[tuple[int, int]]:
    """The records that all processes processed; a line that a kill cut off does not count."""
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
    async with running(tmp_path, "sharded_job", given, given, given) as team:
        await team.until(lambda: all(team.newest("shards [")))
        async with asyncio.timeout(PATIENCE_S):
            while not (begun := [one for one in team.scripts if results_of(one, results).exists()]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        victim = begun[0]
        await victim.kill()
        for script in team.scripts:
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


def produce(where: Coordinator, topic: str, counts: dict[int, int], word: str) -> set[str]:
    """Produce `counts` records into the partitions; returns their values, which are all different."""
    values = {number: [f"{word}-{number}-{n}" for n in range(count)] for number, count in counts.items()}
    for number, words in values.items():
        where.produce(topic, *map(str.encode, words), partition=number)
    return {value for words in values.values() for value in words}


async def test_a_weighted_group(coordinator: Coordinator, tmp_path: Path) -> None:
    coordinator.create_topic("frames", 12)
    todo = produce(coordinator, "frames", dict.fromkeys(range(12), 20), "early")
    given = [[coordinator.bootstrap, "frames", cores] for cores in ("3", "2", "1")]
    async with running(tmp_path, "weighted_group", *given) as team:
        shares = ["cores 3: 6 partitions", "cores 2: 4 partitions", "cores 1: 2 partitions"]
        await team.until(lambda: team.newest("cores ") == shares)
        await team.until_printed("rendered", todo)
        await team.scripts[0].kill()
        todo |= produce(coordinator, "frames", dict.fromkeys(range(12), 5), "late")
        left = ["cores 2: 8 partitions", "cores 1: 4 partitions"]
        await team.until(lambda: team.newest("cores ")[1:] == left)
        await team.until_printed("rendered", todo)


async def test_a_leader_that_assigns_by_lag(coordinator: Coordinator, tmp_path: Path) -> None:
    coordinator.create_topic("uploads", 6)
    backlog = {0: 3_000} | dict.fromkeys(range(1, 6), 600)
    todo = produce(coordinator, "uploads", backlog, "early")
    async with running(tmp_path, "lag_leader", *[[coordinator.bootstrap, "uploads"]] * 2) as team:
        # 3,000 records each.
        halves = ["partitions [0]", "partitions [1, 2, 3, 4, 5]"]
        await team.until(lambda: sorted(team.newest("partitions ")) == halves)
        (victim,) = [script for script in team.scripts if script.newest("partitions ") == halves[0]]
        (other,) = [script for script in team.scripts if script is not victim]
        await victim.kill()
        await team.until(lambda: other.newest("partitions ") == "partitions [0, 1, 2, 3, 4, 5]")
        await team.until_printed("handled", todo)
        async with Admin(coordinator.bootstrap) as admin, asyncio.timeout(PATIENCE_S):
            while {one.lag for one in await admin.lag("uploading")} != {0}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
