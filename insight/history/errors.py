"""Why a history cannot be opened, read or written. The text is one sentence for people."""

from __future__ import annotations


class HistoryError(Exception):
    """The file cannot be used, or not for this."""


class FormatError(HistoryError):
    """Something else wrote the file: another program, or a newer Ringleader."""


class HistoryLockedError(HistoryError):
    """Another process writes it."""

    def __init__(self, text: str, pid: int | None) -> None:
        super().__init__(text)
        self.pid = pid
        """None: it did not say."""
