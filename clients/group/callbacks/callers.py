"""Where the user's callbacks run: in the event loop that started the member, or in a thread of their own.

Both run one job after the other, in order, never in the driver's thread: whatever a callback does,
heartbeats go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

logger = logging.getLogger("ringleader.clients")


LEAST_CLOSE_S = 0.1
"""The least time that callbacks get at the end, and cancelled ones to react to it."""


class LoopEndedError(Exception):
    """The event loop that the callbacks belong to has ended."""


@dataclass(slots=True)
class Job:
    """One callback to run. `done` gets its result or exception, in any thread; not if cancelled."""

    name: str
    run: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]
    cancelled: bool = False


class Caller(Protocol):
    """Runs jobs. `post` and `cancel` come from the driver's thread."""

    def post(self, job: Job) -> None:
        """Run it after those before it."""

    def cancel(self, job: Job) -> None:
        """Do not start it; if it runs, cancel what it awaits; its end does not matter any more."""

    def alive(self) -> bool:
        """Whether callbacks can still run."""

    def inside(self) -> bool:
        """Whether the calling code runs inside of a job."""


class LoopCaller:
    """Runs jobs in the running event loop. A callback may be a coroutine function; then it is awaited."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_end = on_end
        self._queue: asyncio.Queue[Job | None] = asyncio.Queue()
        self._current: tuple[Job, asyncio.Task[None]] | None = None
        self._worker = self._loop.create_task(self._work(), name="group member callbacks")

    def post(self, job: Job) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, job)
        except RuntimeError as error:
            job.done(None, LoopEndedError(str(error)))

    def cancel(self, job: Job) -> None:
        job.cancelled = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel, job)

    def alive(self) -> bool:
        return not self._loop.is_closed()

    def inside(self) -> bool:
        with contextlib.suppress(RuntimeError):
            return self._current is not None and asyncio.current_task() is self._current[1]
        return False

    def at_home(self) -> bool:
        """Whether the calling code runs in the loop of the callbacks."""
        return asyncio.get_running_loop() is self._loop

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Run it in the loop, soon, unless the loop has ended. From any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)

    def dismiss(self) -> None:
        """As `close`, from another loop and without waiting."""
        self.call(self._queue.put_nowait, None)

    async def close(self, timeout_s: float) -> None:
        """End the worker after the jobs that are queued; a job that takes nearly as long is cancelled."""
        # By way of the loop, as jobs come: so it stands behind those that were posted before.
        self._loop.call_soon(self._queue.put_nowait, None)
        done, _ = await asyncio.wait([self._worker], timeout=max(LEAST_CLOSE_S, timeout_s * 0.9))
        if not done:
            logger.warning("a callback does not end: it is cancelled")
            if self._current is not None:
                self._current[1].cancel()
            await asyncio.wait([self._worker], timeout=max(LEAST_CLOSE_S, timeout_s * 0.1))
            self._worker.cancel()

    def _cancel(self, job: Job) -> None:
        if self._current is not None and self._current[0] is job:
            self._current[1].cancel()

    async def _work(self) -> None:
        try:
            while (job := await self._queue.get()) is not None:
                if job.cancelled:
                    continue
                task = self._loop.create_task(self._run(job), name=f"group member {job.name}")
                self._current = (job, task)
                try:
                    await asyncio.wait([task])
                finally:
                    self._current = None
        except asyncio.CancelledError:
            self._on_end()
            raise

    async def _run(self, job: Job) -> None:
        try:
            result = job.run()
            if inspect.isawaitable(result):
                result = await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                job.done(None, error)  # of the callback's own making
                return
            if not job.cancelled:
                job.done(None, LoopEndedError("the callback was cancelled"))
            raise
        except (
            BaseException
        ) as error:  # sys.exit() in a callback, too: it would end the loop under all others
            job.done(None, error)
        else:
            job.done(result, None)


class ThreadCaller:
    """Runs jobs in one thread of its own. A callback may return a concurrent.futures.Future; then the job
    lasts until that is done."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: dict[int, Future[Any]] = {}
        self._thread = threading.Thread(target=self._work, name="group member callbacks", daemon=True)
        self._thread.start()

    def post(self, job: Job) -> None:
        self._queue.put(job)

    def cancel(self, job: Job) -> None:
        job.cancelled = True
        if (future := self._waiting.pop(id(job), None)) is not None:
            future.cancel()

    def alive(self) -> bool:
        return True

    def inside(self) -> bool:
        return threading.current_thread() is self._thread

    def close(self, timeout_s: float) -> None:
        """End the thread after the jobs that are queued; one that does not end is left behind."""
        self._queue.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.warning("a callback does not end: its thread is left behind")

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if job.cancelled:
                continue
            try:
                result = job.run()
            except BaseException as error:  # sys.exit() in a callback, too: the next ones must still come
                job.done(None, error)
                continue
            if isinstance(result, Future):
                self._waiting[id(job)] = result
                result.add_done_callback(_end_of(job, self._waiting))
            else:
                job.done(result, None)


def _end_of(job: Job, waiting: dict[int, Future[Any]]) -> Callable[[Future[Any]], None]:
    def ended(future: Future[Any]) -> None:
        waiting.pop(id(job), None)
        if job.cancelled:
            return
        if future.cancelled():
            job.done(None, LoopEndedError("the callback's future was cancelled"))
        elif (error := future.exception()) is not None:
            job.done(None, error)
        else:
            job.done(future.result(), None)

    return ended
