"""One daemon per data directory."""

from __future__ import annotations

from pathlib import Path

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.host.lock_file import HeldError, LockFile

NAME = "ringleader.lock"


class DirectoryLock:
    """Held while a node uses a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = LockFile(directory / NAME)

    def acquire(self) -> None:
        """Raises `StorageError` (LOCKED) when another node has it, in this process or another; OSError, as
        `LockFile`."""
        try:
            self._file.acquire()
        except HeldError as error:
            raise StorageError(Failure.LOCKED, f"{self._directory}, {error}") from None

    def release(self) -> None:
        """May be called when it is not held."""
        self._file.release()
