"""`ringleader` as a command that says, at its end, what it leaves: tasks, threads, sockets, processes.

For tests that start it as a process (`Daemon`): what ends with the process would never be missed, and in an
application it would stay. It loads nothing but what the command itself needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LEFT = "left behind: "
"""Begins each line about it, on standard error."""

# So that sockets and coroutines that nobody ended are named when they are freed.
OPTIONS = ("-W", "always::ResourceWarning", "-W", "always::RuntimeWarning")

TASKS_GRACE_S = 1.0
THREADS_GRACE_S = float(os.environ.get("RINGLEADER_TESTS_GRACE_S", "5"))
"""Of a pool that was shut down, but not waited for."""

_close_runner = asyncio.Runner.close


def looking(main: Callable[[], object]) -> None:
    """Run it to its end."""
    asyncio.Runner.close = _close  # type: ignore[method-assign]
    try:
        main()
    finally:
        sys.stderr.writelines(f"{LEFT}{one}\n" for one in _here())
        sys.stderr.flush()


def _here() -> Iterator[str]:
    deadline_s = time.monotonic() + THREADS_GRACE_S
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(max(0.0, deadline_s - time.monotonic()))
            if thread.is_alive():
                yield f"thread {thread.name}"
    for path in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            if int(path.name) > 2 and (target := os.readlink(path)).startswith("socket:"):
                yield target
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in path.read_text().split():
                yield f"process {pid}: {Path(f'/proc/{pid}/cmdline').read_text()}"


def _close(self: asyncio.Runner) -> None:
    if getattr(self, "_loop", None) is not None:
        self.run(_name_tasks())
    _close_runner(self)


async def _name_tasks() -> None:
    """Before the runner cancels them."""
    this, loop = asyncio.current_task(), asyncio.get_running_loop()
    until_s = loop.time() + TASKS_GRACE_S
    while left := [task for task in asyncio.all_tasks() if task is not this and not task.cancelling()]:
        if loop.time() > until_s:
            break
        await asyncio.sleep(0.001)
    for task in left:
        sys.stderr.write(f"{LEFT}{task!r}\n")


if __name__ == "__main__":
    del sys.path[0]  # the names of the modules beside this one are no modules of the command's
    from ringleader.cli import main

    looking(main)
