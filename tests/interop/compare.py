"""Plays all scenarios side by side against a server, and says where its answers are not those of the
files."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from ringleader.coordinator.groups.routing import partition_for
from tests.interop.brokers import OurDaemon, kafka, kafka_again, let_in, warm_up
from tests.interop.explore import Explorer, play_random_here, random_scenario
from tests.interop.kafka import FEW
from tests.interop.language import RESTARTED, Answers, Entry, Scenario, ScenarioFile, render_answers
from tests.interop.maven import InteropError
from tests.interop.play import Player
from tests.interop.words import Names
from tests.interop.worlds import CALLERS, COMPARING, RECORDING, Patience, SocketWorld
from tests.support.certificates import Certificates
from tests.support.entrance import LISTENER, Entrance

AT_ONCE = 48
"""Plays side by side."""

AT_ONCE_RECORDING = 12

AT_ONCE_AGAIN = 4

AGAIN = 2
"""Plays that differ are played again with more room, this often at most: two processors have busy moments."""

PLAY_TIMEOUT_S = 120

OF_ONE_PRINCIPAL = {
    "a static member with an expression comes back",
    "partitions of a former expression, when the new one matches nothing",
    "two members with one expression",
}
"""Scenarios that our server answers otherwise where clients are different principals: regex-principals."""

BESIDE = ("h", "other")
"""Groups of plays with transactions that are in one when g is not, or the other way about."""

T = TypeVar("T")

Play = tuple[Scenario, Entry]
Result = list[Answers] | str
"""The answers to each step; or the reason why it could not be played to its end."""


@dataclass(slots=True)
class Report:
    """The results from one server."""

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


def expected_of(play: Play, *, ours: bool) -> list[Answers]:
    """The answers that the file expects at each step."""
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


def _script(scenario: Scenario, answers: list[Answers]) -> list[str]:
    lines = []
    for step, one in zip(scenario.steps, answers, strict=True):
        lines += [f"> {step.command}", *render_answers({"": one}, [""])]
    return lines


@dataclass(slots=True)
class Target:
    """A running server. Plays that restart it say so before they begin, and meet at the restart."""

    host: str
    port: int
    again: Callable[[], None]
    """Restart it on the same port."""
    entrance: Entrance | None = None
    """Through which the plays' clients come, if not the port itself."""
    expected: int = 0
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def restart(self) -> None:
        """Returns after the restart, which comes when all expected plays wait for it."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(arrived)
        if len(self._waiting) == self.expected:
            await self._do_restart()
        await arrived

    async def _do_restart(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.expected = 0
        try:
            await asyncio.to_thread(self.again)
            await _warm(self, "the restarted server")
        finally:
            for one in waiting:
                one.set_result(None)

    async def ended_early(self) -> None:
        """An expected play has ended without coming to the restart."""
        if self.expected:
            self.expected -= 1
            if self._waiting and len(self._waiting) == self.expected:
                await self._do_restart()


@contextlib.asynccontextmanager
async def kafkas(brokers: Sequence[str], *, secured: bool = False) -> AsyncIterator[dict[str, Target]]:
    """Apache Kafka, one broker for each kind of settings. `secured`: clients come through SASL_SSL, and
    may do what ACLs say. Raises `InteropError`."""
    with tempfile.TemporaryDirectory(prefix="interop-") as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        certificates = Certificates(directory / "certificates") if secured else None
        found = {}
        started = [kafka(one, directory / one, certificates) for one in brokers]
        for broker in started:
            stack.callback(broker.stop)
        starts = (asyncio.to_thread(broker.start) for broker in started)
        for failure in await asyncio.gather(*starts, return_exceptions=True):
            if failure is not None:
                raise failure  # after all have ended: their directory goes now
        for one, broker in zip(brokers, started, strict=True):
            found[one] = Target(broker.host, broker.port, partial(kafka_again, broker))
            if certificates is not None:
                found[one].entrance = _entrance(broker.ports[LISTENER], certificates)
            await _warm(found[one], "Apache Kafka")
        yield found


@contextlib.asynccontextmanager
async def daemons(brokers: Sequence[str], *, secured: bool = False) -> AsyncIterator[dict[str, Target]]:
    """Our daemon, one for each kind of settings; otherwise as `kafkas`."""
    with tempfile.TemporaryDirectory(prefix="interop-") as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        certificates = Certificates(directory / "certificates") if secured else None
        found = {}
        for one in brokers:
            daemon = OurDaemon(one, directory / one, certificates)
            stack.enter_context(daemon)
            found[one] = Target("127.0.0.1", daemon.port, daemon.again)
            if certificates is not None:
                found[one].entrance = _entrance(daemon.secure_port, certificates)
            await _warm(found[one], "the daemon")
        yield found


def _entrance(port: int, certificates: Certificates) -> Entrance:
    return Entrance("127.0.0.1", port, certificates.client_tls())


async def _warm(target: Target, what: str) -> None:
    try:
        await warm_up(target.host, target.port)
        if target.entrance is not None:
            await let_in(target.host, target.port, CALLERS)
    except TimeoutError:
        raise InteropError(f"{what} did not serve groups in time") from None


def _token() -> str:
    """For the names of one play. Its group g is on another partition than the others, of 5 as of 50: by the
    partition the brokers look whether a group is in a transaction."""
    while True:
        names = Names(secrets.token_hex(6))
        first, *others = (partition_for(names.private(group), FEW) for group in ("g", *BESIDE))
        if first not in others:
            return names.token


async def play_one(
    play: Play,
    target: Target,
    patience: Patience,
    expected: list[Answers] | None,
    player: Callable[..., Player] = Player,
) -> Result:
    """One play over sockets."""
    scenario, entry = play
    restarted = scenario.broker != RESTARTED

    async def restart() -> None:
        nonlocal restarted
        restarted = True
        await target.restart()

    world = SocketWorld(target.host, target.port, patience, restart, target.entrance)
    try:
        async with asyncio.timeout(PLAY_TIMEOUT_S):
            return await player(scenario, entry, world, _token(), expected).play()
    except TimeoutError:
        return f"did not come to its end in {PLAY_TIMEOUT_S} seconds"
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await world.close()
        if not restarted:
            await target.ended_early()


async def play_all(
    plays: Sequence[Play],
    targets: Mapping[str, Target],
    at_once: int,
    one: Callable[[Play, Target], Awaitable[T]],
) -> list[T]:
    """Many plays side by side. Those that meet at a restart wait for each other, and for no free place."""
    gate = asyncio.Semaphore(at_once)
    meeting = [play for play in plays if play[0].broker == RESTARTED]
    if meeting:
        targets[RESTARTED].expected = len(meeting)

    async def run(play: Play) -> T:
        target = targets[play[0].broker]
        if play[0].broker == RESTARTED:
            return await one(play, target)
        async with gate:
            return await one(play, target)

    return await asyncio.gather(*(run(play) for play in plays))


async def compare(
    title: str, files: Sequence[ScenarioFile], targets: dict[str, Target], *, ours: bool
) -> Report:
    """Play everything, and compare with what the files say."""
    began = time.monotonic()
    plays = plays_of(files)
    if ours and any(target.entrance is not None for target in targets.values()):
        plays = [play for play in plays if play[0].title not in OF_ONE_PRINCIPAL]
    report = Report(title, len(plays))

    async def attempt(play: Play, target: Target) -> str:
        result = await play_one(play, target, COMPARING, expected_of(play, ours=ours))
        return difference(play, result, ours=ours)

    await _attempt_all(plays, targets, attempt, report)
    report.seconds = time.monotonic() - began
    return report


async def explore(title: str, seeds: Sequence[int], target: Target) -> Report:
    """Play random scenarios, and compare with what our server answers in simulated time."""
    began = time.monotonic()
    report = Report(title, len(seeds))
    scenarios = [random_scenario(seed) for seed in seeds]
    for scenario in scenarios:
        for step, answers in zip(
            scenario.steps, await asyncio.to_thread(play_random_here, scenario), strict=True
        ):
            step.answers[""] = answers
    plays = [(scenario, scenario.entries[0]) for scenario in scenarios]

    async def attempt(play: Play, target: Target) -> str:
        expected = expected_of(play, ours=False)
        result = await play_one(play, target, COMPARING, expected, Explorer)
        return difference(play, result, ours=False)

    await _attempt_all(plays, {"plain": target}, attempt, report)
    report.seconds = time.monotonic() - began
    return report


async def _attempt_all(
    plays: Sequence[Play],
    targets: Mapping[str, Target],
    attempt: Callable[[Play, Target], Awaitable[str]],
    report: Report,
) -> None:
    """Put the differences of all plays into the report; those that differ are played again by themselves."""
    found = await play_all(plays, targets, AT_ONCE, attempt)
    first = {number: differs for number, differs in enumerate(found) if differs}
    for _ in range(AGAIN):
        if first:
            report.again += len(first)
            again = await play_all([plays[number] for number in first], targets, AT_ONCE_AGAIN, attempt)
            first = {number: differs for number, differs in zip(first, again, strict=True) if differs}
    report.differences += first.values()


async def record(files: Sequence[ScenarioFile], targets: dict[str, Target]) -> list[str]:
    """Put the answers of Apache Kafka into the scenarios. Returns what could not be played."""
    trouble = []

    async def one(play: Play, target: Target) -> None:
        scenario, entry = play
        result = await play_one(play, target, RECORDING, None)
        if isinstance(result, str):
            trouble.append(f"{scenario.name} {entry.label}: {result}")
            return
        for step, answers in zip(scenario.steps, result, strict=True):
            step.answers[entry.label] = answers

    plays = plays_of(files)
    for scenario, _ in plays:
        for step in scenario.steps:
            step.answers = {}
    await play_all(plays, targets, AT_ONCE_RECORDING, one)
    return trouble
