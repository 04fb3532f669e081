"""What is done besides appending and reading: making complete files durable, removing what nobody can read.

What must keep its order among the appends runs on the writing thread; what may take its time runs on a thread
of its own, so that neither appends nor readers wait for it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ringleader.coordinator.logs import Log
from ringleader.coordinator.topics.files import FileCache, sync_file, write_whole
from ringleader.coordinator.topics.segment import Segment
from ringleader.coordinator.topics.transactional import Snapshot
from ringleader.coordinator.topics.writer import Writer

SYNC_ALL_ABOVE = 32
"""With more files than that to make durable at once, the whole file system is synced instead."""

Sealed = tuple[Segment, Snapshot]
"""A file that is complete, and what was known at its end."""


class Chores:
    """One thread, and the jobs for it."""

    def __init__(self, writer: Writer, log: Log, *, sync: bool) -> None:
        self._writer = writer
        self._log = log
        self._sync = sync
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-log-chores")
        self._jobs: set[asyncio.Task[None]] = set()
        self._removals: set[asyncio.Task[None]] = set()
        self._abandoned = False

    def seal(self, sealed: Sealed) -> None:
        """Make a complete file durable and write its index; and the first index of the file after it, which
        keeps the producers when this one goes."""
        self._start(self._seal(sealed), self._jobs)

    async def _seal(self, sealed: Sealed) -> None:
        await self._run(self._write_indexes, *sealed)

    async def begin(self, segment: Segment, known: Snapshot) -> None:
        """Write the index of an empty file: what is known of producers before its first record."""
        await self._run(self._write_index, segment, known, False)

    def remove(self, segments: list[Segment]) -> asyncio.Task[None]:
        """Remove files whose names never come again."""
        return self._start(self._remove(segments), self._jobs)

    def remove_topic(self, directory: Path) -> None:
        """Remove all of a deleted topic; what is left at the end is removed after the next start."""
        self._start(self._remove_topic(directory), self._removals)

    async def settle(self, *, abandon: bool = False) -> None:
        """Wait until everything is done; with `abandon`, leave the removal of topics."""
        if abandon:
            self._abandoned = True
            for task in self._removals:
                task.cancel()
        while waiting := self._jobs | self._removals:
            await asyncio.wait(waiting)

    async def finish(self, last: list[Sealed]) -> None:
        """Seal the files that were appended to until now, and end the thread. Nothing may be given after."""
        one_by_one = self._sync
        if self._sync and len(last) > SYNC_ALL_ABOVE and sys.platform == "linux":
            await self._run(os.sync)
            one_by_one = False
        for sealed in last:
            await self._run(self._write_index, *sealed, one_by_one)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    def _start(self, work: Coroutine[Any, Any, None], where: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        where.add(task)
        task.add_done_callback(where.discard)
        return task

    async def _run(self, function: Callable[..., None], *arguments: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def _remove(self, segments: list[Segment]) -> None:
        await self._writer.call(partial(release, [segment.path for segment in segments]))
        await self._run(_unlink, segments)

    async def _remove_topic(self, directory: Path) -> None:
        await self._writer.call(partial(release_below, directory))
        await self._run(self._remove_tree, directory)

    # ---- on the thread ----

    def _write_indexes(self, segment: Segment, known: Snapshot) -> None:
        # In one go: the next file may be complete by now too, and its index must not be undone by its first.
        self._write_index(segment, known, self._sync)
        self._write_index(Segment(segment.path.parent, segment.next_offset), known.following(), False)

    def _write_index(self, segment: Segment, known: Snapshot, sync: bool) -> None:
        try:
            if sync:
                sync_file(segment.path)
            write_whole(segment.index_path, segment.dump_index(known), sync=False)
        except FileNotFoundError:
            # Deleted meanwhile.
            return
        except OSError as error:
            self._log.warning("index not written", path=str(segment.index_path), error=str(error))

    def _remove_tree(self, directory: Path) -> None:
        for partition in list(directory.iterdir()) if directory.is_dir() else []:
            if self._abandoned:
                return
            shutil.rmtree(partition, ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)


def _unlink(segments: Iterable[Segment]) -> None:
    for segment in segments:
        segment.path.unlink(missing_ok=True)
        segment.index_path.unlink(missing_ok=True)


# ---- on the writing thread ----


def nothing(files: FileCache) -> None:
    """What was given to the thread before is done."""


def make(path: Path, files: FileCache) -> None:
    """Make an empty file. Raises OSError."""
    files.get(path)


def cut(segment: Segment, gone: bool, files: FileCache) -> None:
    """After a failed write: remove the file, or what is behind its end. Raises OSError."""
    files.close(segment.path)
    if gone:
        segment.path.unlink(missing_ok=True)
    else:
        os.truncate(segment.path, segment.size_bytes)


def release(paths: list[Path], files: FileCache) -> None:
    """Close files that are appended to no more."""
    for path in paths:
        files.close(path)


def release_below(directory: Path, files: FileCache) -> None:
    """Close all files of a deleted topic."""
    files.close_below(directory)
