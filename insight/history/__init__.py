"""The history of the groups of one cluster, in one SQLite file: one process writes it, any number read."""

from ringleader.insight.history.errors import FormatError, HistoryError, HistoryLockedError
from ringleader.insight.history.history import History
from ringleader.insight.history.paths import default_path
from ringleader.insight.history.queries import Away, Position

__all__ = ["Away", "FormatError", "History", "HistoryError", "HistoryLockedError", "Position", "default_path"]
