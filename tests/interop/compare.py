"""Plays all scenarios side by side against a server, and says where its answers are not those of the
files."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.brokers import daemon, kafka, warm_up
from tests.interop.language import Entry, Said, Scenario, ScenarioFile, render_said
from tests.interop.maven import InteropError
from tests.interop.play import Player
from tests.interop.worlds import COMPARING, RECORDING, Patience, SocketWorld

AT_ONCE = 48
"""Plays side by side."""

AT_ONCE_RECORDING = 12

AGAIN = 2
"""A play that differs is played again by itself, this often at most: two processors have busy moments."""

Play = tuple[Scenario, Entry]
Result = list[Said] | str
"""What each step brought; or why it could not be played to its end."""


@dataclass(slots=True)
class Report:
    """What came out of one server."""

    title: str
    plays: int = 0
    again: int = 0
    """Plays that were played again, as their first time differed."""
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)

    def text(self) -> str:
        """A summary, with the differences."""
        head = f"{self.title}: {self.plays} plays in {self.seconds:.0f} s"
        head += f", {self.again} played again" if self.again else ""
        head += f", {len(self.differences)} differ" if self.differences else ", no difference"
        return "\n\n".join([head, *self.differences])


def plays_of(files: Sequence[ScenarioFile]) -> list[Play]:
    """Every scenario at every line-up of versions."""
    return [
        (scenario, entry) for found in files for scenario in found.scenarios for entry in scenario.entries
    ]


def expected_of(play: Play, *, ours: bool) -> list[Said]:
    """What the file says that each step brings."""
    scenario, entry = play
    return [step.expected(entry.label, ours=ours) for step in scenario.steps]


def difference(play: Play, result: Result, *, ours: bool) -> str:
    """Empty if the result is what the file says; else the scenario with what is missing and what is new."""
    scenario, entry = play
    label = f"{scenario.name} ({entry.label})" if entry.label else scenario.name
    if isinstance(result, str):
        return f"{label}\n  {result}"
    expected = expected_of(play, ours=ours)
    if result == expected:
        return ""
    lines = list(difflib.ndiff(_script(scenario, expected), _script(scenario, result)))
    return "\n".join([label, *("  " + line for line in lines if not line.startswith("?"))])


def _script(scenario: Scenario, said: list[Said]) -> list[str]:
    lines = []
    for step, one in zip(scenario.steps, said, strict=True):
        lines += [f"> {step.command}", *render_said({"": one}, [""])]
    return lines


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    host: str
    port: int


@contextlib.asynccontextmanager
async def kafkas(brokers: Sequence[str]) -> AsyncIterator[dict[str, Target]]:
    """Apache Kafka, one broker for each kind of settings. Raises `InteropError`."""
    with tempfile.TemporaryDirectory(prefix="interop-") as directory, contextlib.ExitStack() as stack:
        found = {}
        started = [kafka(name, Path(directory) / name) for name in brokers]
        for one in started:
            stack.callback(one.stop)
        await asyncio.gather(*(asyncio.to_thread(one.start) for one in started))
        for name, one in zip(brokers, started, strict=True):
            found[name] = Target(one.host, one.port)
            await _warm(found[name], "Apache Kafka")
        yield found


@contextlib.asynccontextmanager
async def daemons(brokers: Sequence[str]) -> AsyncIterator[dict[str, Target]]:
    """Our daemon, one for each kind of settings."""
    with tempfile.TemporaryDirectory(prefix="interop-") as directory, contextlib.ExitStack() as stack:
        found = {}
        for name in brokers:
            one = stack.enter_context(daemon(name, Path(directory) / name))
            found[name] = Target("127.0.0.1", one.port)
            await _warm(found[name], "the daemon")
        yield found


async def _warm(target: Target, what: str) -> None:
    try:
        await warm_up(target.host, target.port)
    except TimeoutError:
        raise InteropError(f"{what} did not serve groups in time") from None


async def play_one(play: Play, target: Target, patience: Patience, expected: list[Said] | None) -> Result:
    """One play over sockets."""
    scenario, entry = play
    world = SocketWorld(target.host, target.port, patience)
    try:
        async with asyncio.timeout(120):
            return await Player(scenario, entry, world, secrets.token_hex(6), expected).play()
    except TimeoutError:
        return "did not come to its end in 2 minutes"
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await world.close()


async def compare(
    title: str, files: Sequence[ScenarioFile], targets: dict[str, Target], *, ours: bool
) -> Report:
    """Play everything, and compare with what the files say."""
    began = time.monotonic()
    plays = plays_of(files)
    report = Report(title, len(plays))
    gate = asyncio.Semaphore(AT_ONCE)

    async def attempt(play: Play) -> str:
        target = targets[play[0].broker]
        result = await play_one(play, target, COMPARING, expected_of(play, ours=ours))
        return difference(play, result, ours=ours)

    async def one(play: Play) -> str:
        async with gate:
            return await attempt(play)

    found = await asyncio.gather(*(one(play) for play in plays))
    for play, first in zip(plays, found, strict=True):
        differs = first
        for _ in range(AGAIN):
            if not differs:
                break
            report.again += 1
            differs = await attempt(play)
        if differs:
            report.differences.append(differs)
    report.seconds = time.monotonic() - began
    return report


async def record(files: Sequence[ScenarioFile], targets: dict[str, Target]) -> list[str]:
    """Put the answers of Apache Kafka into the scenarios. Returns what could not be played."""
    gate = asyncio.Semaphore(AT_ONCE_RECORDING)
    trouble = []

    async def one(play: Play) -> None:
        scenario, entry = play
        async with gate:
            result = await play_one(play, targets[scenario.broker], RECORDING, None)
        if isinstance(result, str):
            trouble.append(f"{scenario.name} {entry.label}: {result}")
            return
        for step, said in zip(scenario.steps, result, strict=True):
            step.said[entry.label] = said

    plays = plays_of(files)
    for scenario, _ in plays:
        for step in scenario.steps:
            step.said = {}
    await asyncio.gather(*(one(play) for play in plays))
    return trouble
