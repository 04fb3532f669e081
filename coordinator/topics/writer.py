"""The thread that writes: appends in the order they came, many in one system call, one answer for all."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import EllipsisType
from typing import Any

from ringleader.coordinator.topics.files import FileCache, pwrite_all

MAX_OPEN_FILES = 256
"""Files kept open for appending; more partitions than that reopen theirs."""


class Lane:
    """Writes that build on each other: when one failed, the later ones of its lane are refused."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed = False


@dataclass(slots=True)
class Write:
    """Bytes for one place in one file."""

    path: Path
    position: int
    data: bytes
    lane: Lane
    owner: Any
    """For whoever gets the result."""
    error: OSError | None = None


@dataclass(slots=True)
class _Call:
    function: Callable[[FileCache], Any]
    future: asyncio.Future[Any] | None


_Job = list[Write] | _Call | None


class Writer:
    """One thread. `done` gets the writes in their order on the loop's thread, `error` set if it failed."""

    def __init__(self, done: Callable[[list[Write]], None]) -> None:
        self._done = done
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; results come to the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="topic-log-writer", daemon=True)
        self._thread.start()

    def write(self, writes: list[Write]) -> None:
        """Hand over writes."""
        self._jobs.put(writes)

    def call(self, function: Callable[[FileCache], Any]) -> asyncio.Future[Any]:
        """Run a function on the thread, after everything handed over before. Its result or exception."""
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(_Call(function, future))
        return future

    def call_later(self, function: Callable[[FileCache], Any]) -> None:
        """As `call`, for what nobody waits for: its exception is dropped."""
        self._jobs.put(_Call(function, None))

    async def stop(self) -> None:
        """Do what was handed over, close the files, end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
            # The results of the last writes were handed to the loop before the thread ended.
            await asyncio.sleep(0)

    def _run(self) -> None:
        files = FileCache(MAX_OPEN_FILES)
        try:
            job = self._jobs.get()
            while job is not None:
                following: _Job | EllipsisType = ...
                if isinstance(job, _Call):
                    self._do(job, files)
                else:
                    following = self._gather(job)
                    self._write_all(job, files)
                    self._tell(self._done, job)
                job = self._jobs.get() if following is ... else following
        finally:
            files.close_all()

    def _gather(self, writes: list[Write]) -> _Job | EllipsisType:
        """Add what came while the last writes were on their way. Returns the first other job, or ...."""
        while not self._jobs.empty():
            job = self._jobs.get()
            if not isinstance(job, list):
                return job
            writes += job
        return ...

    def _write_all(self, writes: list[Write], files: FileCache) -> None:
        by_path: dict[Path, list[Write]] = {}
        for write in writes:
            by_path.setdefault(write.path, []).append(write)
        for path, mine in by_path.items():
            run: list[Write] = []
            end = -1
            for write in mine:
                if run and (write.position != end or write.lane is not run[0].lane):
                    self._write_run(path, run, files)
                    run = []
                run.append(write)
                end = write.position + len(write.data)
            self._write_run(path, run, files)

    def _write_run(self, path: Path, run: list[Write], files: FileCache) -> None:
        lane = run[0].lane
        try:
            if lane.failed:
                raise OSError("an earlier write of this partition failed")
            pwrite_all(files.get(path), [write.data for write in run], run[0].position)
        except OSError as error:
            lane.failed = True
            for write in run:
                write.error = error

    def _do(self, call: _Call, files: FileCache) -> None:
        try:
            result = call.function(files)
        except Exception as error:
            self._settle(call.future, None, error)
        else:
            self._settle(call.future, result, None)

    def _settle(self, future: asyncio.Future[Any] | None, result: Any, error: Exception | None) -> None:
        if future is not None:
            self._tell(_settle, future, result, error)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        # The loop is gone: so is everybody who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
