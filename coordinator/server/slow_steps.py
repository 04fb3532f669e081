"""Steps of an authentication that take milliseconds of a CPU: on a few threads beside the loop, in turn for
each address, so that a peer that guesses passwords delays itself and no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

THREADS = 2

Step = Callable[[], bytes]


class SlowSteps:
    """Steps that run or wait: no more than there are connections, as each has one at a time."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sasl")
        self._free = threads
        self._waiting: dict[str, deque[tuple[Step, asyncio.Future[bytes]]]] = {}
        """By address, the next one first."""

    def add(self, address: str, step: Step) -> asyncio.Future[bytes]:
        """Run the step: the future has its result or its error. A step whose future is cancelled is not begun
        any more."""
        outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append((step, outcome))
        self._begin()
        return outcome

    def close(self) -> None:
        """Begin no more; does not wait for those under way."""
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        while self._free and self._waiting:
            address = next(iter(self._waiting))
            steps = self._waiting.pop(address)
            step, outcome = steps.popleft()
            if steps:
                self._waiting[address] = steps  # behind those of all others
            if outcome.done():
                continue
            self._free -= 1
            self._pool.submit(self._run, asyncio.get_running_loop(), step, outcome)

    def _run(self, loop: asyncio.AbstractEventLoop, step: Step, outcome: asyncio.Future[bytes]) -> None:
        result, error = b"", None
        try:
            result = step()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
            loop.call_soon_threadsafe(self._ended, outcome, result, error)

    def _ended(self, outcome: asyncio.Future[bytes], result: bytes, error: Exception | None) -> None:
        self._free += 1
        if not outcome.done():
            if error is None:
                outcome.set_result(result)
            else:
                outcome.set_exception(error)
        self._begin()
