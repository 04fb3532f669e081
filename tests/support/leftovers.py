"""The rules for every test: no traceback is logged, no node fails, and nothing that was started is left.

No test asks for it. One that is about such a thing says so: `@pytest.mark.leaves("a bug")`, with a part of
the traceback or of the name of what is left, which has to be there then.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import structlog

from ringleader.coordinator.serving import ServingNode
from tests.support.tied import WATCHER

GRACE_S = float(os.environ.get("RINGLEADER_TESTS_GRACE_S", "5"))
"""Threads and processes that are stopped, but not waited for, may take this long to end on a busy machine."""

TASKS_GRACE_S = GRACE_S / 5
"""The same for tasks: they need nothing but their loop."""

POOLED = re.compile(r"_\d+$")

# Spark's JVM and its workers end when the process that started them does; so does Python's own tracker.
ENDS_WITH_ITS_PARENT: tuple[str, ...] = ("org.apache.spark", "pyspark", "multiprocessing", WATCHER)

# A browser starts and ends processes as it likes; that itself ends is seen at the end of the run.
OF_THE_BROWSER = ("process ",)

# Those of the way to its JVM, as many as have been needed at once.
OF_SPARKS_SESSION = ("thread Thread-", "socket:")

# A client's own thread leaves it to its runner to cancel what goes round for as long as it lives.
HELD_TO_TASKS = ("MainThread", "ringleader coordinator")


class Leftovers(logging.Handler):
    """Leftovers that a test must not leave; and those that it is expected to leave, because it is about
    them."""

    def __init__(self, expected: list[str], ignored: tuple[str, ...]) -> None:
        super().__init__()
        self._expected = expected
        self._ignored = ignored
        self.found: list[str] = []
        self._before = _here()
        self._log_was_set_up = structlog.is_configured()

    def emit(self, record: logging.LogRecord) -> None:
        """A log line. Those of clients do not count: there, an application's own exceptions are logged."""
        if (record.name == "ringleader" and record.exc_info) or (
            record.name == "asyncio" and record.levelno >= logging.ERROR
        ):
            self.found.append(logging.Formatter("logged by %(name)s: %(message)s").format(record))

    def check(self) -> None:
        """Raises AssertionError unless all is as expected."""
        deadline_s = time.monotonic() + GRACE_S
        while (left := self._left()) and time.monotonic() < deadline_s:
            gc.collect()
            time.sleep(0.01)
        found = [*self.found, *left]
        wrong = [one for one in found if not any(text in one for text in self._expected)]
        wrong += [f"not there: {text}" for text in self._expected if not any(text in one for one in found)]
        if structlog.is_configured() != self._log_was_set_up:
            structlog.reset_defaults()
            wrong.append(
                "structlog is set up differently from before: later tests would not see their log lines"
            )
        assert not wrong, "\n".join(wrong)

    def _left(self) -> list[str]:
        left = [text for one, text in _here().items() if one not in self._before]
        return [text for text in left if not any(word in text for word in self._ignored)]


_current: Leftovers | None = None


@pytest.fixture(autouse=True)
def leftovers(request: pytest.FixtureRequest) -> Iterator[Leftovers]:
    """See the module."""
    global _current
    expected = [mark.args[0] for mark in request.node.iter_markers("leaves")]
    ignored = ENDS_WITH_ITS_PARENT
    if request.node.get_closest_marker("spark"):
        ignored += OF_SPARKS_SESSION
    if request.node.get_closest_marker("browser"):
        ignored += OF_THE_BROWSER
    found = request.node._fixtureinfo.name2fixturedefs.values()
    if any(one.scope == "module" for several in found for one in several):
        ignored += ("socket:",)  # what goes on beside all tests of the module may connect again
    if "interop" in request.path.parts:
        # Brokers, daemons and JVMs are started for all tests by the first that needs them, and are missed at
        # the end of the run; and other libraries' clients leave sockets to the garbage collector.
        ignored += ("socket:", "process ", "thread ")
    _current = one = Leftovers(expected, ignored)
    loggers = [logging.getLogger(name) for name in ("ringleader", "asyncio")]
    for logger in loggers:
        logger.addHandler(one)
    yield one
    for logger in loggers:
        logger.removeHandler(one)
    _current = None
    one.check()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fails the run when a test leaves a process behind."""
    yield
    commands = [
        f"{child.pid}: {' '.join(child.cmdline())}"
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    ]
    left = [command for command in commands if not any(word in command for word in ENDS_WITH_ITS_PARENT)]
    assert not left, "left running:\n" + "\n".join(left)


def note(text: str) -> None:
    """Something that the test which runs must not leave."""
    if _current is not None:
        _current.found.append(text)


# ---- what there is ----


def _here() -> dict[object, str]:
    """Threads, sockets and processes of this process."""
    here: dict[object, str] = {
        thread: f"thread {thread.name}"
        for thread in threading.enumerate()
        if not POOLED.search(thread.name)  # a pool of a wider fixture may grow
    }
    here.update((pid, f"process {_command(pid)}") for pid in children())
    here.update((name, name) for name in _sockets())
    return here


# Twice for each of many thousand tests: with pathlib it took twice the time.


def _sockets() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:"):
            yield target


def children(pid: int | str = "self") -> Iterator[int]:
    """The ids of the processes that a process has started and that are there."""
    for task in os.listdir(f"/proc/{pid}/task"):
        # The thread has just ended.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
            yield from map(int, file.read().split())


def _command(pid: int) -> str:
    try:
        return f"{pid}: {' '.join(psutil.Process(pid).cmdline())}"
    except psutil.NoSuchProcess:
        return f"{pid}, just ended"


# ---- tasks and timers: seen when their loop ends, before it cancels them ----

_close_runner = asyncio.Runner.close


def _close(self: asyncio.Runner) -> None:
    if getattr(self, "_loop", None) is not None and threading.current_thread().name in HELD_TO_TASKS:
        self.run(_note_tasks())
    _close_runner(self)


async def _note_tasks() -> None:
    deadline_s = time.monotonic() + TASKS_GRACE_S
    this = asyncio.current_task()
    while left := [task for task in asyncio.all_tasks() if task is not this and not task.cancelling()]:
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(0.001)
    for task in left:
        note(f"left: {task!r}")
    while timers := _timers():
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(0.001)
    for timer in timers:
        note(f"left: {timer}")


def _timers() -> list[str]:
    """Of this library, on a loop of the standard library: no other tells them. One that fires again and again
    for what has ended holds all of it in memory."""
    scheduled: list[Any] = getattr(asyncio.get_running_loop(), "_scheduled", [])
    return [repr(handle) for handle in scheduled if not handle.cancelled() and _is_ours(handle._callback)]


def _is_ours(callback: Any) -> bool:
    while isinstance(callback, functools.partial):
        callback = callback.func
    return str(getattr(callback, "__module__", "")).startswith("ringleader.")


asyncio.Runner.close = _close  # type: ignore[method-assign]

# ---- nodes in this process: as a process of its own, one that can serve no more ends with exit code 1 ----

_stop_serving = ServingNode._stop_serving


def _noted_stop_serving(self: ServingNode, error: Exception) -> None:
    note(f"a node can serve no more: {error!r}")
    _stop_serving(self, error)


ServingNode._stop_serving = _noted_stop_serving  # type: ignore[method-assign]
