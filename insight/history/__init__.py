"""What happened to the groups of one cluster, in one SQLite file: one process writes it, any number read."""

from ringleader.insight.history.errors import FormatError, HistoryError, HistoryLockedError
from ringleader.insight.history.history import History
from ringleader.insight.history.paths import default_path

__all__ = ["FormatError", "History", "HistoryError", "HistoryLockedError", "default_path"]
