"""A watcher that is ended while it writes: its history has all that it was given."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ringleader.insight.feed.recorder import Recorder
from ringleader.insight.history import History
from ringleader.insight.model import Event, EventKind
from tests.support.served import happens, until


async def test_what_is_being_written_at_the_end_is_written_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has the file for itself for a moment, so the write takes longer than its task lives."""
    path = tmp_path / "h.sqlite"
    first, last = (Event(name, "g", 1, EventKind.INCIDENT, "There.") for name in ("first", "last"))
    with History.open(path, cluster_id="id") as history:
        recorder, record = Recorder(history, exact=False), history.record
        busy, at_once = threading.Lock(), list[object]()

        def recorded(*arguments: Any, **named: Any) -> None:
            if not busy.acquire(blocking=False):
                at_once.append(arguments)
                return
            try:
                record(*arguments, **named)
            finally:
                busy.release()

        monkeypatch.setattr(history, "record", recorded)

        async def end(writing: asyncio.Task[bool]) -> None:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await recorder.flush({}, now_ms=None, at_once=True)

        with closing(sqlite3.connect(path, isolation_level=None)) as another:
            another.execute("BEGIN IMMEDIATE")
            recorder.add([first])
            writing = asyncio.create_task(recorder.flush({}, now_ms=None, at_once=True))
            await asyncio.sleep(0)  # it begins
            recorder.add([last])
            ending = asyncio.create_task(end(writing))
            await happens(lambda: bool(at_once))
            another.execute("ROLLBACK")
        await ending
        await until(lambda: not busy.locked())
        assert at_once == [], "a connection is for one write at a time"
        assert [one.id for one in history.events()] == ["first", "last"]
