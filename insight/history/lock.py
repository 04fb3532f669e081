"""One writer for each history."""

from __future__ import annotations

from pathlib import Path

from ringleader.coordinator.lock_file import HeldError, LockFile
from ringleader.insight.history.errors import HistoryLockedError


class WriterLock:
    """Held while a process writes a history, by a file beside it."""

    def __init__(self, path: Path) -> None:
        self._history = path
        self._file = LockFile(path.with_name(path.name + ".lock"))

    def acquire(self) -> None:
        """Raises HistoryLockedError when another has it, in this process or another; OSError, as
        `LockFile`."""
        try:
            self._file.acquire()
        except HeldError as error:
            said = str(error)
            raise HistoryLockedError(self._history, int(said) if said.isdecimal() else None) from None

    def release(self) -> None:
        """May be called when it is not held."""
        self._file.release()
