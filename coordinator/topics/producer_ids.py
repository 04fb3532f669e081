"""Producer ids that are never given out twice: reserved in blocks on the disk before the first is used."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from pathlib import Path

from ringleader.coordinator.topics.files import write_whole
from ringleader.protocol.errors import ErrorCode, KafkaError

BLOCK = 1_000
"""Ids per reservation; a crash skips what is left of one."""


class ProducerIds:
    """Numbers from 0 on. A file keeps the first one that is not reserved."""

    def __init__(self, path: Path, executor: Executor) -> None:
        self._path = path
        self._executor = executor
        self._lock = asyncio.Lock()
        self._next = 0
        self._end = 0

    async def take(self) -> int:
        """A fresh id. Raises KafkaError (KAFKA_STORAGE_ERROR) when none can be reserved."""
        async with self._lock:
            if self._next == self._end:
                loop = asyncio.get_running_loop()
                try:
                    self._next = await loop.run_in_executor(self._executor, self._reserve)
                except (OSError, ValueError) as error:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
                self._end = self._next + BLOCK
            self._next += 1
            return self._next - 1

    def _reserve(self) -> int:
        try:
            start = int(self._path.read_text())
        except FileNotFoundError:
            start = 0
        write_whole(self._path, b"%d\n" % (start + BLOCK))
        return start
