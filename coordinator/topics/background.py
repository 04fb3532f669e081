"""The work besides appending and reading: making complete files durable, removing what no client can read.

Work that must keep its order among the appends runs on the appending thread; work that may take its time runs
on a thread of its own, so that neither appends nor readers wait for it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from ringleader.coordinator.logs import Log
from ringleader.coordinator.topics.appender import Appender, OpenFiles
from ringleader.coordinator.topics.disk import Disk, GroupCommit, SyncError, sync_path, write_whole
from ringleader.coordinator.topics.segment import Segment, Snapshot
from ringleader.protocol.errors import KafkaError

SYNC_ALL_ABOVE = 32
"""With more files than that to make durable at once, the whole file system is synced instead."""

Sealed = tuple[Segment, Snapshot]
"""A file that is complete, and what was known at its end."""


class Background:
    """Jobs for the disk's background thread, done in the order in which they are given."""

    def __init__(self, disk: Disk, appender: Appender[Any], log: Log, *, sync: bool) -> None:
        self._disk = disk
        self._appender = appender
        self._log = log
        self._sync = sync
        self._jobs = GroupCommit(self._work)
        self.settle = self._jobs.settle

    def seal(self, sealed: Sealed | None) -> None:
        """Make a complete file durable, if there is one, and write its index; and the first index of the file
        after it, which keeps the producers when this one goes."""
        if sealed is not None:
            self._jobs.add(partial(self._disk.background, self._write_indexes, *sealed))

    def remove(self, deleted: list[Segment], kept: Segment) -> None:
        """Remove files whose names never come again; `kept` is the first after them."""
        self._jobs.add(partial(self._remove, deleted, kept))

    async def remove_topic(self, directory: Path) -> None:
        """Remove all of a deleted topic. Raises KafkaError (KAFKA_STORAGE_ERROR): then try again."""
        await self._appender.call(partial(OpenFiles.close, below=directory))
        # One by one, so that other jobs come between.
        for partition in await self._disk.background(lambda: [*directory.glob("*/")]):
            await self._disk.background(shutil.rmtree, partition)
        await self._disk.background(_remove_directory, directory)

    async def finish(self, last: list[Sealed]) -> None:
        """Seal the files that were appended to until now. Nothing may be given after."""
        one_by_one = self._sync
        try:
            if self._sync and len(last) > SYNC_ALL_ABOVE and sys.platform == "linux":
                await self._disk.background(os.sync)
                one_by_one = False
            for sealed in last:
                await self._disk.background(self._write_index, *sealed, one_by_one)
        except KafkaError as error:
            self._log.warning("indexes not written", reason=str(error))

    async def _work(self, jobs: list[Callable[[], Awaitable[None]]]) -> None:
        for job in jobs:
            try:
                await job()
            except (KafkaError, OSError) as error:
                self._log.warning("files of the topic log are left as they are", reason=str(error))
            except Exception:
                self._log.exception("work on the topic log failed")

    async def _remove(self, deleted: list[Segment], kept: Segment) -> None:
        await self._appender.call(partial(_release, deleted, kept.path))
        await self._disk.background(self._unlink, deleted, kept)

    # ---- on the background thread ----

    def _write_indexes(self, segment: Segment, known: Snapshot) -> None:
        # In one go: the next file may be complete by now too, and its index must not be undone by its first.
        self._write_index(segment, known, self._sync)
        following = Segment(segment.path.parent, segment.next_offset)
        self._write_index(following, known._replace(aborted=[]), False)

    def _write_index(self, segment: Segment, known: Snapshot, sync: bool) -> None:
        try:
            if sync:
                self._disk.sync(segment.path)
            write_whole(segment.index_path, segment.dump_index(known), sync=False)
        except SyncError:
            raise
        except FileNotFoundError:
            # Deleted meanwhile.
            return
        except OSError as error:
            self._log.warning("index not written", path=str(segment.index_path), reason=str(error))

    def _unlink(self, deleted: list[Segment], kept: Segment) -> None:
        if self._sync:
            # Only here is it kept who produced into the files that go. Its name brings that of `kept` along.
            self._disk.sync(kept.index_path)
        for segment in deleted:
            segment.remove()


def _remove_directory(directory: Path) -> None:
    if directory.is_dir():
        shutil.rmtree(directory)
    sync_path(directory.parent)


# ---- on the appending thread ----


def _release(deleted: list[Segment], kept: Path, files: OpenFiles) -> None:
    """Close files that are appended to no more; the one after them must be there. Raises OSError."""
    for segment in deleted:
        files.close(segment.path)
    files.get(kept)


def cut(segment: Segment, deleted: bool, files: OpenFiles) -> None:
    """After a failed write: remove the file, or what is behind its end. Raises OSError."""
    files.close(segment.path)
    if deleted:
        segment.path.unlink(missing_ok=True)
    else:
        os.truncate(segment.path, segment.size_bytes)
