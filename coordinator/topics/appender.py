"""The thread that appends to files: in the order it is asked to, many writes in one system call, one report
for all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ringleader.coordinator.topics.disk import OWNER_ONLY

MAX_OPEN_FILES = 256
"""Files kept open for appending; more partitions than that reopen theirs."""
IOV_MAX = 512
"""Buffers per system call; Linux allows 1024."""


class Chain:
    """Writes that build on each other: when one failed, the later ones are refused. Those to one file follow
    each other in it."""

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False


@dataclass(slots=True, eq=False)
class FileWrite:
    """Bytes for one place in one file."""

    path: Path
    position: int
    data: bytes
    chain: Chain
    error: Exception | None = field(default=None, init=False)


W = TypeVar("W", bound=FileWrite)


class OpenFiles:
    """Files open for writing, the least recently used one closed when there are too many. One thread only."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[Path, int] = {}

    def get(self, path: Path) -> int:
        """A descriptor for writing; file and directory are made when missing. Raises OSError."""
        descriptor = self._open.pop(path, None)
        if descriptor is None:
            while len(self._open) >= self._limit:
                os.close(self._open.pop(next(iter(self._open))))
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            try:
                descriptor = os.open(path, flags, OWNER_ONLY)
            except FileNotFoundError:
                for made in (path.parent.parent, path.parent):
                    made.mkdir(0o700, parents=True, exist_ok=True)
                descriptor = os.open(path, flags, OWNER_ONLY)
        self._open[path] = descriptor
        return descriptor

    def close(self, below: Path | None = None) -> None:
        """Close this file, or all that are below this directory; without it, all files."""
        for path in [path for path in self._open if below in (None, path, *path.parents)]:
            os.close(self._open.pop(path))


Job = Callable[[OpenFiles], Any]


class Appender(Generic[W]):
    """One thread. `written` gets the writes in their order on the loop's thread, `error` set on failure;
    `on_bug` gets an exception that should not be: what it hit counts as failed."""

    def __init__(self, written: Callable[[list[W]], None], on_bug: Callable[[Exception], None]) -> None:
        self._written = written
        self._on_bug = on_bug
        self._queue: SimpleQueue[list[W] | tuple[Job, Future[Any]] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; results come to the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="topic-log-appender", daemon=True)
        self._thread.start()

    def write(self, writes: list[W]) -> None:
        """Hand over writes."""
        self._queue.put(writes)

    def call(self, job: Job) -> asyncio.Future[Any]:
        """Run a job on the thread, after everything handed over before. Its result or exception, which need
        not be looked at."""
        assert self._thread is not None
        result: Future[Any] = Future()
        self._queue.put((job, result))
        future = asyncio.wrap_future(result)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    async def stop(self) -> None:
        """Do what was handed over, close the files, end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await self._loop.run_in_executor(None, thread.join)
            # The results of the last writes were handed to the loop before the thread ended.
            await asyncio.sleep(0)

    # ---- on the thread ----

    def _run(self) -> None:
        files, going = OpenFiles(MAX_OPEN_FILES), True
        while going:
            taken = [self._queue.get()]
            while not self._queue.empty():
                taken.append(self._queue.get())
            writes: list[W] = []
            for one in taken:
                if isinstance(one, list):
                    writes += one
                    continue
                self._write_all(writes, files)
                writes = []
                if one is None:
                    going = False
                    continue
                job, result = one
                try:
                    result.set_result(job(files))
                except Exception as error:
                    result.set_exception(error)
            self._write_all(writes, files)
        files.close()

    def _write_all(self, writes: list[W], files: OpenFiles) -> None:
        runs: dict[tuple[Path, Chain], list[W]] = {}
        for write in writes:
            runs.setdefault((write.path, write.chain), []).append(write)
        for (path, chain), run in runs.items():
            try:
                if chain.broken:
                    raise OSError("an earlier write of this partition failed")
                pwrite_all(files.get(path), [write.data for write in run], run[0].position)
            except Exception as error:
                chain.broken = True
                for write in run:
                    write.error = error
                if not isinstance(error, OSError):
                    self._tell(self._on_bug, error)
        if writes:
            self._tell(self._written, writes)

    def _tell(self, function: Callable[[Any], None], argument: object) -> None:
        # The loop is gone: so is everybody who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, argument)


def pwrite_all(descriptor: int, parts: list[bytes], position: int) -> None:
    """Write all parts one after the other from `position` on. Raises OSError."""
    for start in range(0, len(parts), IOV_MAX):
        some = parts[start : start + IOV_MAX]
        written = os.pwritev(descriptor, some, position)
        position += written
        # A signal or a full disk: what is left goes piece by piece, so that the error shows.
        rest = memoryview(b"".join(some))[written:] if written != sum(map(len, some)) else b""
        while rest:
            count = os.pwrite(descriptor, rest, position)
            rest, position = rest[count:], position + count
