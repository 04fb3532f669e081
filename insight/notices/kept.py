"""Notices that wait, in the file of the history: a process that is killed loses none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ringleader.insight.history import HistoryError
from ringleader.insight.history.queries import sentence
from ringleader.insight.history.tables import connect
from ringleader.insight.model import Event, EventKind

_NAME = "notice "
"""Begins the names of facts that are notices; the target and the incident's id follow, as JSON."""


class KeptNotice(NamedTuple):
    """A notice to one target. `over`: it was sent or given up, and is kept until its incident is in the
    history, which then shows that people were notified."""

    target: str
    incident: Event
    over: bool


class Kept:
    """The notices in the file of a history that this process writes. All of it is done on one thread, in the
    order of the calls, on a connection of its own."""

    def __init__(self, path: Path, on_trouble: Callable[[str], object]) -> None:
        """`on_trouble` gets a sentence, on that thread, when a notice cannot be marked as over."""
        self._path = path
        self._on_trouble = on_trouble
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "insight-notices-kept")

    def put(self, notices: Iterable[KeptNotice]) -> Future[None]:
        """Keep them. The future raises HistoryError."""
        return self._thread.submit(self._put, [*notices])

    def over(self, target: str, incident: Event) -> None:
        """It was sent or given up: it is not sent again."""
        future = self._thread.submit(self._put, [KeptNotice(target, incident, over=True)])
        future.add_done_callback(partial(self._stored, target))

    def forget(self, notices: Iterable[KeptNotice]) -> Future[None]:
        """Those that are over, and whose incident is in the history. The future raises HistoryError."""
        return self._thread.submit(self._forget, [*notices])

    def all(self) -> Future[list[KeptNotice]]:
        """All that are kept, the oldest first. The future raises HistoryError."""
        return self._thread.submit(self._all)

    def close(self) -> None:
        """Wait for what was asked for, and close the file. May block."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    # ---- on the thread ----

    def _put(self, notices: list[KeptNotice]) -> None:
        rows = [(_name(one), _value(one)) for one in notices]
        self._do(lambda file: file.executemany("INSERT OR REPLACE INTO fact VALUES (?,?)", rows))

    def _forget(self, notices: list[KeptNotice]) -> None:
        names = [(_name(one),) for one in notices]
        self._do(lambda file: file.executemany("DELETE FROM fact WHERE name = ?", names))

    def _all(self) -> list[KeptNotice]:
        query = "SELECT name, value FROM fact WHERE substr(name, 1, ?) = ?"
        rows = self._do(lambda file: file.execute(query, (len(_NAME), _NAME)).fetchall())
        return sorted((_read(*row) for row in rows), key=lambda one: one.incident.at_ms)

    def _do(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        try:
            if self._connection is None:
                self._connection = connect(self._path, read_only=False)
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                found = work(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise HistoryError(sentence(self._path, error)) from error
        return found

    def _stored(self, target: str, future: Future[None]) -> None:
        if (error := future.exception()) is not None:
            self._on_trouble(f"a notice to {target} may be sent again: {str(error).rstrip('.')}")


def _name(one: KeptNotice) -> str:
    return _NAME + json.dumps([one.target, one.incident.id])


def _value(one: KeptNotice) -> str:
    return json.dumps([one.incident.group, one.incident.at_ms, one.incident.text, one.over])


def _read(name: str, value: str) -> KeptNotice:
    target, incident_id = json.loads(name.removeprefix(_NAME))
    group, at_ms, text, over = json.loads(value)
    return KeptNotice(target, Event(incident_id, group, at_ms, EventKind.INCIDENT, text), over)
