"""The history of a run: as a `Watcher` recorded it, or concluded again from the watcher's inputs."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ringleader.clients.errors import RetriableError
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.history import History
from ringleader.insight.inference.engine import Inference
from ringleader.insight.model import Event, Rebalance

HISTORY, TAPE = "history.sqlite", "tape.pickle"
BROKER_LOG = "broker.log"
CAUGHT_UP_S = 90.0
WORKS = ("record", "tell", "tick")


@dataclass(slots=True)
class Conclusions:
    """All of it."""

    rebalances: list[Rebalance] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class _Taped:
    """An `Inference` whose inputs are kept in a file too: they can be given to it again while it is being
    fixed."""

    def __init__(self, inference: Inference, tape: IO[bytes]) -> None:
        self._inference, self._tape = inference, tape

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inference, name)
        if name not in WORKS:
            return found

        def taped(*arguments: Any) -> Any:
            pickle.dump((name, arguments), self._tape)
            return found(*arguments)

        return taped


@contextlib.asynccontextmanager
async def watching(bootstrap: str, directory: Path) -> AsyncIterator[Watcher]:
    """A watcher beside what is done inside; at the end it knows all."""
    with (directory / TAPE).open("wb") as tape:
        async with Watcher(bootstrap, directory / HISTORY) as watcher:
            for fact in watcher._seen:
                pickle.dump(("tell", (fact,)), tape)
            watcher._recording.inference = _Taped(watcher._recording.inference, tape)  # type: ignore[assignment]
            yield watcher
            async with asyncio.timeout(CAUGHT_UP_S):
                while True:
                    # A broker that came back a moment ago, beside many others, may not answer in time.
                    with contextlib.suppress(RetriableError):
                        await watcher.caught_up(CAUGHT_UP_S)
                        break


def from_history(directory: Path) -> Conclusions:
    """As it was recorded."""
    with contextlib.closing(History.open(directory / HISTORY, read_only=True)) as history:
        found = Conclusions(events=history.events())
        for group in history.groups():
            found.rebalances += history.rebalances(group.group, limit=100_000)
        return found


def _played(tape: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    with tape.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def concluded(directory: Path, *, exact: bool) -> Conclusions:
    """By the inference of this checkout, from the same."""
    inference = Inference(exact=exact)
    rebalances: dict[str, Rebalance] = {}
    events: dict[str, Event] = {}
    for name, arguments in _played(directory / TAPE):
        getattr(inference, name)(*arguments)
        for one in inference.drain():
            if isinstance(one, Rebalance):
                rebalances[one.id] = one
            elif isinstance(one, Event):
                events[one.id] = one
    return Conclusions(list(rebalances.values()), list(events.values()))
