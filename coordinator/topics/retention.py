"""Deleting what is too old or too much, in whole files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from ringleader.coordinator.logs import Log
from ringleader.coordinator.topics.chores import Chores, make
from ringleader.coordinator.topics.partition import Partition
from ringleader.coordinator.topics.writer import Writer


class Retention:
    """Asks partitions what may go, and sees to it that the files go in an order that a crash may cut."""

    def __init__(self, writer: Writer, chores: Chores, log: Log) -> None:
        self._writer = writer
        self._chores = chores
        self._log = log

    async def enforce(self, partitions: Iterable[Partition], now_ms: int, producers_ms: int) -> int:
        """How many files went. `producers_ms`: how long a producer is remembered. Raises OSError."""
        count = 0
        removals: list[asyncio.Task[None]] = []
        for found in partitions:
            gone = found.expire(now_ms, producers_ms)
            if not gone:
                continue
            count += len(gone)
            active = found.segments[-1]
            if active.base_offset == found.next_offset:
                known = found.begun()
                await self._writer.call(partial(make, active.path))
                await self._chores.begin(active, known)
            removals.append(self._chores.remove(gone))
            self._log.info(
                "records deleted by retention",
                directory=str(found.directory),
                files=len(gone),
                start_offset=found.start_offset,
            )
        if removals:
            await asyncio.wait(removals)
        return count
