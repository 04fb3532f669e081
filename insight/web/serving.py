"""The page as a part of another program, or by itself: a socket, uvicorn, and what follows the history."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from ringleader.insight.web.app import application
from ringleader.insight.web.desk import Desk
from ringleader.insight.web.guard import check_address
from ringleader.insight.web.live import VIEWERS_MAX, Live

REQUEST_MAX_BYTES = 16 * 1024
"""Of a request's first line and headers."""
CONNECTIONS_MAX = VIEWERS_MAX + 64
SLOW_MAX = 4
"""Questions for advice at one time."""
IDLE_S = 30
STOP_S = 2

logger = logging.getLogger("ringleader.insight.web")


class _Server(uvicorn.Server):
    """Whoever runs it listens to signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves them alone."""
        yield


async def serve(
    history_path: Path | str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    names: Iterable[str] = (),
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve the page over the history at `history_path`, which another process may be writing, until
    cancelled. `started` is told the address. Raises what `page` raises."""
    async with page(history_path, host, port, token=token, names=names) as url:
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
) -> AsyncIterator[str]:
    """The page while the block lasts; its address. `names`: host names that it may be asked for, beside
    localhost, `host`, this machine's own and addresses.

    The history need not be there yet. Raises ValueError for an address beyond this machine without a token,
    and OSError for one that cannot be listened on.
    """
    check_address(host, token)
    listening = _listen(host, port)
    bound_port = listening.getsockname()[1]
    path = Path(history_path)
    desk, slow = Desk(path), Desk(path, SLOW_MAX)
    live = Live(desk)
    config = uvicorn.Config(
        application(desk, slow, live, token=token, names=(host, *names)),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=REQUEST_MAX_BYTES,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    server = _Server(config)
    following = asyncio.create_task(live.run(), name="insight page follows the history")
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="insight page")
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{bound_port}/"
    finally:
        live.end()
        server.should_exit = True
        following.cancel()
        await asyncio.gather(serving, following, return_exceptions=True)
        listening.close()
        await asyncio.gather(desk.close(), slow.close())


def _listen(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    [family, kind, protocol, _, address], *_ = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
