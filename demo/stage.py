"""Where the demo plays: one daemon by itself, or what `demo.cluster` has."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Protocol

from demo import plan
from demo.observe import DemoError
from demo.processes import Cast

DAEMON = "daemon"
READY_TIMEOUT_S = 60.0


class Stage(Protocol):
    """The place where members and producer play."""

    journals: list[str]
    """Names of the processes whose logs tell of generations."""

    async def start(self) -> str:
        """Start everything, make the topic; HOST:PORT for clients. Raises DemoError."""

    async def kill_owner(self, group: str) -> str | None:
        """SIGKILL to the process that has this group, if others can go on without it: which one."""

    async def kill_broker(self) -> str | None:
        """The same for the one that leads the topic's first partition."""

    async def stop(self) -> None:
        """End everything."""


class OneDaemon:
    """``ringleader serve``, which holds everything."""

    def __init__(self, cast: Cast, data: Path) -> None:
        self.journals = [DAEMON]
        self._cast = cast
        self._data = data

    async def start(self) -> str:
        """See `Stage`."""
        topic = f"{plan.TOPIC}:{plan.PARTITIONS}"
        arguments = ["--listen", "127.0.0.1:0", "--data-dir", str(self._data), "--topic", topic]
        return await serve(self._cast, DAEMON, *arguments, *plan.of_coordinator())

    async def kill_owner(self, group: str) -> str | None:
        """See `Stage`."""
        return None

    async def kill_broker(self) -> str | None:
        """See `Stage`."""
        return None

    async def stop(self) -> None:
        """See `Stage`."""
        await asyncio.to_thread(self._cast.stop, DAEMON)


async def serve(cast: Cast, name: str, *arguments: str) -> str:
    """Start ``ringleader serve`` and wait for its ready line: where it listens."""
    process = cast.start(
        name, "ringleader", "serve", "--log-format", "json", *arguments, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            line = await asyncio.to_thread(process.stdout.readline)
    except TimeoutError:
        raise DemoError(f"{name} was not ready within {READY_TIMEOUT_S:.0f} s") from None
    word, _, address = line.strip().partition(" ")
    if word != "ready":
        raise DemoError(f"{name} did not come up. Its log ends:\n{cast.tail(name)}")
    return address
