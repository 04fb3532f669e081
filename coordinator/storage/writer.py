"""One thread that does a store's file work in order, so that the event loop never waits for a disk."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ringleader.coordinator.storage.base import Failure, StorageError

T = TypeVar("T")

_Job = tuple[Callable[..., Any], tuple[Any, ...], asyncio.Future[Any], asyncio.AbstractEventLoop]


class WriterThread:
    """Runs functions one after the other. A plain queue instead of an executor: the way there and back is
    paid once per transaction, and with small transactions that is much of their cost."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._dead = False
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Call it on the thread; the future gets its result or exception, `StorageError` (DEAD) if the thread
        has ended without being asked to."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((function, args, future, loop))
        if self._dead:
            self._refuse_all()
        return future

    def stop(self) -> None:
        """The thread ends after the jobs it has. Does not wait."""
        self._jobs.put(None)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _live(self) -> None:
        try:
            self._work()
        finally:
            # Later callers see it, earlier ones are answered here.
            self._dead = True
            self._refuse_all()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, args, future, loop = job
            try:
                result, error = function(*args), None
            except Exception as caught:
                result, error = None, caught
            except BaseException as caught:
                _tell(loop, future, None, StorageError(Failure.DEAD, repr(caught)))
                return
            _tell(loop, future, result, error)
            del job, function, args, future, result, error

    def _refuse_all(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                if (job := self._jobs.get_nowait()) is not None:
                    _tell(job[3], job[2], None, StorageError(Failure.DEAD))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: Exception | None
) -> None:
    # The loop may be closed by now: then nothing waits for the result.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
