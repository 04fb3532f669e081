"""The errors of opening, reading and writing a history. The text is one sentence for people."""

from __future__ import annotations

from pathlib import Path


class HistoryError(Exception):
    """The file cannot be used, or not for this."""


class FormatError(HistoryError):
    """Something else wrote the file: another program, or a newer Ringleader."""


class HistoryLockedError(HistoryError):
    """Another process writes it."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"process {pid or '?'} writes {path} already: end it, or name another file")
        self.path = path
        self.pid = pid
        """None: it did not say."""
