"""The history of a cluster for a single question: as far as a watcher has written it, or brought up to
date."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from ringleader.clients.connection.security.sasl import Sasl
from ringleader.insight.feed.watcher import START_TIMEOUT_S, Progress, Watcher
from ringleader.insight.history import History, HistoryLockedError

TIMEOUT_S = 300.0
"""For all that a cluster's topics still have."""
PROGRESS_EVERY_S = 0.2


async def history_of(
    bootstrap: str | Sequence[str],
    history: Path | str | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
    timeout_s: float = TIMEOUT_S,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> History:
    """The cluster's history, opened to be read: the caller closes it.

    Where a watcher writes it, it is as new as that; else it is read up to what is there now, a new one from
    the beginning of what the cluster's topics still have. `history`: the file; default: that of the cluster
    in the user's data directory. `on_progress` is called several times a second while a backlog is read.
    Raises ClientError (RetriableError when time is over) and HistoryError.
    """
    try:
        watcher = Watcher(bootstrap, history, tls=tls, sasl=sasl, poll=False)
        await watcher.start(timeout_s=start_timeout_s)
    except HistoryLockedError as error:
        return await asyncio.to_thread(History.open, error.path, read_only=True)
    try:
        reading = asyncio.create_task(watcher.caught_up(timeout_s))
        try:
            while not (await asyncio.wait([reading], timeout=PROGRESS_EVERY_S))[0]:
                on_progress(watcher.progress)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        reading.result()
        path = watcher.path
    finally:
        await watcher.stop()
    return await asyncio.to_thread(History.open, path, read_only=True)
