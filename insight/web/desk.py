"""Where a history is asked without keeping the event loop: one thread, one open file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from ringleader.insight.history import History, HistoryError

if TYPE_CHECKING:
    from ringleader.insight.web.sources import Source

T = TypeVar("T")
WAITING_MAX = 64
"""Questions that wait for one that is being answered, unless a caller says otherwise."""


class BusyError(Exception):
    """More is asked than is answered."""


class Desk:
    """Asks the history of `source`, opened to be read when it is there."""

    def __init__(self, source: Source, waiting_max: int = WAITING_MAX) -> None:
        self._source = source
        self._waiting_max = waiting_max
        self._history: History | None = None
        self._thread = ThreadPoolExecutor(1, "insight-page")
        self._waiting = 0

    async def ask(self, question: Callable[[History], T]) -> T:
        """The answer. Raises HistoryError where there is no history to be read, and BusyError."""
        if self._waiting >= self._waiting_max:
            raise BusyError
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Wait for the question that is being answered, and close the file."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        if self._history is not None:
            self._history.close()

    def _answer(self, question: Callable[[History], T]) -> T:
        if self._history is None:
            if self._source.path is None:
                raise HistoryError("the cluster has not been reached yet")
            self._history = History.open(self._source.path, read_only=True)
        return question(self._history)
