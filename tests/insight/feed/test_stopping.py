"""A watcher that is ended while it writes: its history has all that it was given."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from ringleader.insight.feed.recorder import Recorder
from ringleader.insight.history import History
from ringleader.insight.model import Event, EventKind


async def test_what_is_being_written_at_the_end_is_written_before_anything_else(tmp_path: Path) -> None:
    """Another process has the file for itself for a moment, so the write takes longer than its task lives."""
    path = tmp_path / "h.sqlite"
    first, last = (Event(name, "g", 1, EventKind.INCIDENT, "There.") for name in ("first", "last"))
    with History.open(path, cluster_id="id") as history:
        recorder = Recorder(history, exact=False)

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
            for _ in range(5):
                await asyncio.sleep(0)
            another.execute("ROLLBACK")
        await ending
        assert [one.id for one in history.events()] == ["first", "last"]
