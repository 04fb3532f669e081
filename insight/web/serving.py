"""The page as a part of another program, or by itself: a socket, uvicorn, and a task that follows the
history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ringleader.coordinator.security.tls import Tls
from ringleader.host.addresses import address_text
from ringleader.host.http_server import HttpServer, bound
from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.web.app import application
from ringleader.insight.web.guard import HEADERS, check_access
from ringleader.insight.web.live import VIEWERS_MAX
from ringleader.insight.web.sources import Note, Places, Source

CONNECTIONS_MAX = VIEWERS_MAX + 64
BACKLOG = 128
STOP_S = 2

logger = logging.getLogger("ringleader.insight.web")


async def serve(
    histories: Path | str | Sequence[Source],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    reset_token: str | None = None,
    names: Iterable[str] = (),
    tls: Tls | None = None,
    thresholds: Thresholds = DEFAULT,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve the page over these histories, which another process may be writing, until cancelled. `started`
    gets the address. Raises the errors of `page`."""
    async with page(
        histories,
        host,
        port,
        token=token,
        reset_token=reset_token,
        names=names,
        tls=tls,
        thresholds=thresholds,
    ) as url:
        if started is not None:
            started(url)
        await asyncio.Event().wait()


@asynccontextmanager
async def page(
    histories: Path | str | Sequence[Source],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    reset_token: str | None = None,
    names: Iterable[str] = (),
    tls: Tls | None = None,
    thresholds: Thresholds = DEFAULT,
    note: Note | None = None,
) -> AsyncIterator[str]:
    """The page while the block lasts; its address. `histories`: one, or those of several clusters.
    `names`: host names that it may be asked for, beside localhost, `host`, this machine's own and addresses.
    `tls`: see `page_tls`. `thresholds`: of findings. `token`: to look; `reset_token`: to look and to
    reset offsets of clusters that have an `admin`; without it resets are refused.
    `note` puts marks into the only history; without it nothing can be written there.

    A history need not be there yet. Raises ValueError for an address beyond this machine without a token
    or certificates that are asked for, and the others of `check_access`; OSError for one that cannot be
    listened on.
    """
    check_access(host, token, tls, reset_token)
    places = Places([Source("", Path(histories), note)] if isinstance(histories, Path | str) else histories)
    listening = bound(host, port, BACKLOG)
    bound_port = listening.getsockname()[1]
    server = HttpServer(
        application(
            places,
            token=token,
            reset_token=reset_token,
            names=(host, *names),
            thresholds=thresholds,
        ),
        listening,
        connections_max=CONNECTIONS_MAX,
        headers=HEADERS,
        tls=tls,
        on_trouble=_complain,
        stop_s=STOP_S,
    )
    following = [
        asyncio.create_task(one.live.run(), name="insight page follows the history") for one in places.all
    ]
    serving = asyncio.create_task(server.serve(), name="insight page")
    try:
        yield f"{'http' if tls is None else 'https'}://{address_text(host, bound_port)}/"
    finally:
        for place in places.all:
            place.live.end()
        server.should_exit = True
        for task in following:
            task.cancel()
        await asyncio.gather(serving, *following, return_exceptions=True)
        listening.close()
        await asyncio.gather(*(place.close() for place in places.all))


def _complain(reason: str) -> None:
    logger.error("certificates cannot be read; those from before stay: %s", reason)
