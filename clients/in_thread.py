"""A client for code without an event loop: it runs in one on a thread of its own, and calls wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from ringleader.clients.checks import seconds
from ringleader.clients.group.callbacks.callers import LEAST_CLOSE_S
from ringleader.clients.in_loop import START_TIMEOUT_S, STOP_TIMEOUT_S, InLoop

logger = logging.getLogger("ringleader.clients.consumer")

LOOK_S = 1.0
"""Interval at which a waiting call checks that the loop's thread still runs."""


C = TypeVar("C", bound=InLoop)
T = TypeVar("T")


class Call(Generic[T]):
    """One call, on its way from the thread that makes it to the loop's and back.

    A signal handler may raise in the calling thread after any call of a function. So that thread takes no
    lock that the loop's thread needs: `concurrent.futures.Future` would.
    """

    __slots__ = ("_ended", "error", "result", "task", "thread", "work")

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.work = work
        self.thread = threading.current_thread()
        self.task: asyncio.Task[None] | None = None
        self.result: T | None = None
        self.error: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()

    # ---- in the loop's thread ----

    def begin(self) -> None:
        """Make it."""
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            # Not kept: it knows the question before, and that the one before it.
            work, self.work = self.work, _over
            self.result = await work()
        except BaseException as error:  # the loop has to go on, whatever it is
            self.error = error
        finally:
            self.task = None  # freed here: a signal handler that raised in its finalizer would be swallowed
            self._ended.release()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self.task is not None:
            self.task.cancel()

    # ---- in the calling thread ----

    def wait(self, loop: asyncio.AbstractEventLoop, alive: Callable[[], bool]) -> bool:
        """Wait until it has ended. False: it never will, for the loop has."""
        try:
            while not self._ended.acquire(timeout=LOOK_S):
                if not alive():
                    return False
        except BaseException:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.cancel)
            raise
        return True


async def _over() -> Any:
    raise AssertionError("a call is made once")


class InThread(Generic[C]):
    """Runs a client in an event loop on a thread of its own.

    A context manager: starts, and stops at the end. A signal handler may raise at any moment.
    """

    def __init__(self, client: C, kind: str) -> None:
        """`kind`: the name of the thread."""
        self._client = client
        self._kind = kind
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # ---- its life ----

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._client._at_home():
            self.stop()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and begin. Raises as the `start` of the client for asyncio."""
        self._client._check_process()
        if self._thread is not None:
            raise self._client._started_before()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name=self._kind, daemon=True)
        try:
            self._thread.start()
            ready.wait()
            self._wait(lambda: self._client.start(timeout_s=timeout_s))
        except BaseException:
            self._end_thread(timeout_s)
            self._thread = None
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As the `stop` of the client for asyncio; from any thread, and more than once."""
        self._client._check_process()
        if self._loop is None:
            return
        deadline_s = time.monotonic() + seconds(timeout_s)
        with contextlib.suppress(self._client._closed_error):  # another thread was faster
            self._wait(lambda: self._stop_client(timeout_s))
        self._end_thread(max(LEAST_CLOSE_S, deadline_s - time.monotonic()))

    async def _stop_client(self, timeout_s: float) -> None:
        await self._client.stop(timeout_s=timeout_s)

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

    def _end_thread(self, timeout_s: float) -> None:
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            with contextlib.suppress(RuntimeError):  # another thread was faster
                loop.call_soon_threadsafe(loop.stop)
            self._loop = None
            thread.join(timeout_s)
            if thread.is_alive():
                logger.warning("%s: a callback does not end: its thread is left behind", self._client._name)

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do it in the loop's thread."""
        return cast(T, self._made(Call(work)).result)

    def _made(self, call: Call[T], begin: Callable[[], None] | None = None) -> Call[T]:
        """The call when it has ended well. Raises what it raised."""
        self._client._check_process()
        if (loop := self._loop) is None:
            raise self._client._closed()
        try:
            loop.call_soon_threadsafe(begin or call.begin)
        except RuntimeError:
            raise self._client._closed() from None
        if not call.wait(loop, self._alive):
            raise self._client._closed()
        if isinstance(call.error, asyncio.CancelledError):
            raise self._client._closed() from call.error
        if call.error is not None:
            raise call.error
        return call

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        async def call() -> T:
            return function(*args)

        return self._wait(call)
