"""Faults of applications, again and again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Coroutine
from typing import Any

from tests.chaos.history import History

SLOW_S = 4.0
EVERY_S = 3.0
CANCELLED_S = 0.03
EXITS_S = (15.0, 25.0)


class Misbehaviour:
    """One way of it, drawn by the seed; "" is none."""

    def __init__(self, way: str, seed: str, history: History) -> None:
        self._way, self._history = way, history
        self._dice = random.Random(seed)
        self._due_s = time.monotonic() + (self._dice.uniform(*EXITS_S) if way == "exits" else EVERY_S)

    async def in_callback(self, name: str) -> None:
        """A callback of the consumer is under way."""
        if self._way == "slow":
            await asyncio.sleep(SLOW_S)
        elif self._way == "raises" and self._dice.random() < 0.7:
            self._history.saw("raised", callback=name)
            raise RuntimeError(f"{name} does not like it")

    async def bounded(self, asking: Coroutine[Any, Any, Any]) -> Any:
        """Ask for records, or give up soon. Raises ``TimeoutError``."""
        if self._way == "cancels" and self._dice.random() < 0.5:
            return await asyncio.wait_for(asking, self._dice.uniform(0, CANCELLED_S))
        return await asking

    def between_polls(self, consumer: Any) -> None:
        """Between two questions."""
        if self._way not in ("exits", "forks") or time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + EVERY_S
        if self._way == "exits":
            os._exit(7)
        child = os.fork()
        if not child:
            # A copy of everything, the consumer's connections, too: it uses them, and is gone without a word.
            try:
                consumer.commit_nowait()
                consumer.seek(("records", 0), 0)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        self._history.saw("forked")
