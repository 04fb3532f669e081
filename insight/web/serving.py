"""The page as a part of another program, or by itself: a socket, uvicorn, and a task that follows the
history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from ringleader.coordinator.security.tls import Tls
from ringleader.host.http_server import HttpServer, bound
from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.web.app import Note, application
from ringleader.insight.web.desk import Desk
from ringleader.insight.web.guard import HEADERS, check_address
from ringleader.insight.web.live import VIEWERS_MAX, Live

CONNECTIONS_MAX = VIEWERS_MAX + 64
SLOW_MAX = 4
"""Questions for advice at one time."""
BACKLOG = 128
STOP_S = 2

logger = logging.getLogger("ringleader.insight.web")


async def serve(
    history_path: Path | str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    names: Iterable[str] = (),
    tls: Tls | None = None,
    thresholds: Thresholds = DEFAULT,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve the page over the history at `history_path`, which another process may be writing, until
    cancelled. `started` gets the address. Raises the errors of `page`."""
    async with page(
        history_path, host, port, token=token, names=names, tls=tls, thresholds=thresholds
    ) as url:
        if started is not None:
            started(url)
        await asyncio.Event().wait()


@asynccontextmanager
async def page(
    history_path: Path | str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    names: Iterable[str] = (),
    tls: Tls | None = None,
    thresholds: Thresholds = DEFAULT,
    note: Note | None = None,
) -> AsyncIterator[str]:
    """The page while the block lasts; its address. `names`: host names that it may be asked for, beside
    localhost, `host`, this machine's own and addresses. `tls`: see `page_tls`. `thresholds`: of findings.
    `note` puts marks into the history; without it nothing can be written.

    The history need not be there yet. Raises ValueError for an address beyond this machine without a token
    or certificates that are asked for, and OSError for one that cannot be listened on.
    """
    check_address(host, token, tls)
    listening = bound(host, port, BACKLOG)
    bound_port = listening.getsockname()[1]
    path = Path(history_path)
    desk, slow = Desk(path), Desk(path, SLOW_MAX)
    live = Live(desk)
    server = HttpServer(
        application(desk, slow, live, token=token, names=(host, *names), thresholds=thresholds, note=note),
        listening,
        connections_max=CONNECTIONS_MAX,
        headers=HEADERS,
        tls=tls,
        on_trouble=_complain,
        stop_s=STOP_S,
    )
    following = asyncio.create_task(live.run(), name="insight page follows the history")
    serving = asyncio.create_task(server.serve(), name="insight page")
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"{'http' if tls is None else 'https'}://{shown}:{bound_port}/"
    finally:
        live.end()
        server.should_exit = True
        following.cancel()
        await asyncio.gather(serving, following, return_exceptions=True)
        listening.close()
        await asyncio.gather(desk.close(), slow.close())


def _complain(reason: str) -> None:
    logger.error("certificates cannot be read; those from before stay: %s", reason)
