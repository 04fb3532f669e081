"""Files that somebody waits for to be on the disk: those of all who wait at a time go together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ringleader.coordinator.topics.files import sync_directory, sync_file
from ringleader.protocol.errors import ErrorCode, KafkaError


class Syncs:
    """One thread. `root`: the directory under which all files are; names up to it are synced too, once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-log-sync")
        self._paths: dict[Path, None] = {}
        self._ticket: asyncio.Future[None] | None = None
        self._job: asyncio.Task[None] | None = None
        # Of the thread:
        self._named: dict[Path, None] = {}

    async def sync(self, paths: Iterable[Path]) -> None:
        """On return their present content outlives a crash of the machine. A file that is gone needs
        nothing. Raises KafkaError (KAFKA_STORAGE_ERROR)."""
        loop = asyncio.get_running_loop()
        self._paths.update(dict.fromkeys(paths))
        if self._ticket is None:
            self._ticket = loop.create_future()
            # Nobody may be left who asks.
            self._ticket.add_done_callback(lambda ticket: ticket.exception())
        ticket = self._ticket
        if self._job is None:
            self._job = loop.create_task(self._run())
        await asyncio.shield(ticket)

    async def settle(self) -> None:
        """Wait until nothing is on its way."""
        if self._job is not None:
            await asyncio.wait([self._job])

    def shutdown(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._ticket is not None:
            ticket, self._ticket = self._ticket, None
            paths, self._paths = self._paths, {}
            try:
                await loop.run_in_executor(self._thread, self._sync_all, list(paths))
            except OSError as error:
                ticket.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
            else:
                ticket.set_result(None)
        self._job = None

    # ---- on the thread ----

    def _sync_all(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                sync_file(path)
                self._sync_names(path)
            except FileNotFoundError:
                continue

    def _sync_names(self, path: Path) -> None:
        """The entry of a file in its directory, and of that in its own."""
        while path != self._root and path not in self._named:
            sync_directory(path.parent)
            if len(self._named) >= MAX_NAMED:
                self._named.clear()
            self._named[path] = None
            path = path.parent


MAX_NAMED = 10_000
"""Names that are known to be on the disk; above it all are forgotten, and synced once more."""
