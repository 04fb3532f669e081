"""One daemon per data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ringleader.coordinator.storage.base import Failure, StorageError

NAME = "ringleader.lock"


class DirectoryLock:
    """Held while a node uses a directory; the operating system drops it when the process ends, however it
    ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises `StorageError` (LOCKED) when another node has it, in this process or another."""
        # Another user of the machine who could open it could hold it.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise StorageError(Failure.LOCKED, f"{self._path.parent}, process {holder or '?'}") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
        self._descriptor = descriptor

    def release(self) -> None:
        """May be called when it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
