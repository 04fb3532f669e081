"""The topic log's calls of the disk, and the one rule for when they fail.

After a failed sync it is unknown what is on disk: the kernel may have dropped what it could not write, and
the next sync would succeed without it. So none is tried again: everything is refused from then on, and the
node ends (`on_failed`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from ringleader.coordinator.logs import Log
from ringleader.protocol.errors import ErrorCode, KafkaError

READER_THREADS = 4
OWNER_ONLY = 0o600
"""Of every file: what is in them is for no other user of the machine."""
MAX_KNOWN_NAMES = 10_000
"""Directory entries that are known to be on the disk; above it all are forgotten, and synced once more."""

_NUMBER = re.compile(rb"\d{1,19}\n")

P = ParamSpec("P")
T = TypeVar("T")


class SyncError(OSError):
    """A sync failed."""


class DamagedError(OSError):
    """A file cannot be read, is not whole, or is of another version; it is never overwritten then."""


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncError(error.errno, f"sync failed: {error.strerror}") from error


def sync_path(path: Path) -> None:
    """Make a file's content durable, or the names in a directory. Raises OSError (SyncError among them)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace a file: after a crash it has the old or the new content. Never two at once for one path.

    Without `sync` a crash of the machine may leave it empty or cut off. Raises OSError.
    """
    fresh = path.with_name(path.name + ".new")
    # Left by a crash, or put there by another user while the directory was open: never written to.
    fresh.unlink(missing_ok=True)
    with open(fresh, "xb", opener=partial(os.open, mode=OWNER_ONLY)) as stream:
        stream.write(data)
        if sync:
            stream.flush()
            _sync(stream.fileno())
    fresh.replace(path)
    if sync:
        sync_path(path.parent)


def write_number(path: Path, number: int) -> None:
    """Replace a file that holds a number, durably. Raises OSError."""
    write_whole(path, b"%d\n" % number)


def read_number(path: Path) -> int | None:
    """The number of `write_number`; None if there is no file. Raises OSError (DamagedError among them)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if not _NUMBER.fullmatch(data):
        raise DamagedError(f"{path} is damaged: it should hold one number; put its last copy back")
    return int(data)


class Disk:
    """The threads that read and sync, and whether the disk can still be trusted.

    Their exceptions become KafkaError (KAFKA_STORAGE_ERROR). `on_failed` is called once, after the first
    failed sync; everything is refused from then on.
    """

    def __init__(self, root: Path, log: Log, on_failed: Callable[[Exception], None] | None) -> None:
        """`root`: the directory under which all is; it is durable itself."""
        self._root = root
        self._log = log
        self._on_failed = on_failed
        self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="topic-log-reader")
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="topic-log-sync")
        self._background = ThreadPoolExecutor(1, thread_name_prefix="topic-log-background")
        self._names: set[Path] = set()
        self._failure = ""

    def check(self) -> None:
        """Raises KafkaError (KAFKA_STORAGE_ERROR) when the disk cannot be trusted any more."""
        if self._failure:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)

    def fail(self, error: Exception) -> None:
        """Trust nothing from now on, and tell."""
        if self._failure:
            return
        self._failure = str(error) or repr(error)
        self._log.critical("topic log failed", reason=str(error), text="no topic is served until a restart")
        if self._on_failed is not None:
            self._on_failed(error)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """On one of several threads: what readers wait for."""
        return await self._run(self._readers, partial(function, *args, **kwargs))

    async def store(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """On the thread for data whose durability a request waits for."""
        return await self._run(self._syncer, partial(function, *args, **kwargs))

    async def background(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """On a thread for what may take its time, in order: complete files are synced, others removed."""
        return await self._run(self._background, partial(function, *args, **kwargs))

    async def _run(self, threads: Executor, function: Callable[[], T]) -> T:
        self.check()
        try:
            result = await asyncio.get_running_loop().run_in_executor(threads, function)
        except OSError as error:
            if isinstance(error, SyncError):
                self.fail(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        # Another thread's sync may have failed meanwhile.
        self.check()
        return result

    async def close(self) -> None:
        """Wait for the threads, and end them; everything is refused from here on."""
        self._failure = self._failure or "the topic log is closed"
        for threads in (self._readers, self._syncer, self._background):
            await asyncio.get_running_loop().run_in_executor(None, threads.shutdown)

    # ---- on the threads ----

    def sync(self, *paths: Path) -> None:
        """Make files durable, with their names. A file that is gone needs nothing. Raises OSError."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                sync_path(path)
                self.sync_names(path)

    def sync_names(self, path: Path) -> None:
        """The entry of a path in its directory, of that in its own, up to the root; names that never come
        again are synced once. Raises OSError."""
        while path != self._root and path not in self._names:
            sync_path(path.parent)
            if len(self._names) >= MAX_KNOWN_NAMES:
                self._names.clear()
            self._names.add(path)
            path = path.parent


class GroupCommit(Generic[T]):
    """Requests that come while the disk is busy are done together, in their order."""

    def __init__(self, commit: Callable[[list[T]], Coroutine[Any, Any, None]]) -> None:
        self._commit = commit
        self._items: list[T] = []
        self._last: asyncio.Task[None] | None = None

    def add(self, item: T) -> Awaitable[None]:
        """Wait until it is done; raises what `commit` raised. It goes on when the caller is cancelled."""
        self._items.append(item)
        if len(self._items) == 1:
            self._last = asyncio.get_running_loop().create_task(self._run(self._last))
        assert self._last is not None
        return asyncio.shield(self._last)

    async def settle(self) -> None:
        """Wait until nothing is on its way."""
        while self._last is not None and not self._last.done():
            await asyncio.wait([self._last])

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        items, self._items = self._items, []
        await self._commit(items)
