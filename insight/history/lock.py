"""One writer for each history."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ringleader.insight.history.errors import HistoryLockedError


class WriterLock:
    """Held while a process writes a history, by a file beside it; the operating system drops it when the
    process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._history = path
        self._path = path.with_name(path.name + ".lock")
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises HistoryLockedError when another has it, in this process or another; OSError."""
        # Another user of the machine who could open it could hold it.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            said = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise HistoryLockedError(self._history, int(said) if said.isdecimal() else None) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
        self._descriptor = descriptor

    def release(self) -> None:
        """May be called when it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
