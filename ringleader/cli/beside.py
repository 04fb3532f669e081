"""``ringleader serve --ui``: a watcher with its page as a process of its own beside the daemon.

``python -m ringleader.cli.beside ARGUMENTS`` is that process: `ringleader watch ARGUMENTS`, behind the daemon
where both want the processor, and ended when the daemon is, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ringleader.cli.common import WRONG_INPUT, complain

AGAIN_S = 5.0
STOP_S = 5.0
NICENESS = 10


def arguments(
    address: str,
    token_file: Path | None,
    reset_token_file: Path | None = None,
    certificate: Path | None = None,
    client_authority: Path | None = None,
    config: Path | None = None,
) -> list[str]:
    """The arguments of the watcher, but for the daemon's address. Raises ValueError for those that it would
    refuse."""
    from ringleader.cli.insight_settings import load
    from ringleader.clients.connection.cluster import parse_bootstrap
    from ringleader.host import http_server
    from ringleader.insight.web import check_access, page_tls, read_token

    [(host, _)] = parse_bootstrap([address])
    tls = page_tls(certificate, client_authority)
    reset_token = None if reset_token_file is None else http_server.read_token(reset_token_file)
    check_access(host, read_token(token_file), tls, reset_token)
    load({}, file=config)
    given = {
        "--page": address,
        "--token-file": token_file,
        "--reset-token-file": reset_token_file,
        "--page-certificate": certificate,
        "--page-client-authority": client_authority,
        "--config": config,
    }
    return [str(word) for option in given.items() if option[1] is not None for word in option]


@asynccontextmanager
async def page_beside(bootstrap: str, given: Sequence[str]) -> AsyncIterator[None]:
    """The watcher while the block lasts; one that ends by itself is started again."""
    command = [sys.executable, "-m", "ringleader.cli.beside", "--bootstrap-server", bootstrap, *given]
    keeping = asyncio.create_task(_keep(command), name="the page beside the daemon")
    try:
        yield
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


async def _keep(command: Sequence[str]) -> None:
    while True:
        # Its lines of rebalances are in our log already; what it complains of goes to our standard error.
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is for the daemon, which ends this one
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                await _stop(process)
        if code == WRONG_INPUT:
            complain("--ui: the page cannot be served so; the daemon goes on without it.")
            return
        complain(f"--ui: the page ended with exit code {code} and starts again in {AGAIN_S:.0f} s.")
        await asyncio.sleep(AGAIN_S)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _end_with_parent() -> None:
    """Its end of our standard input closes when the daemon ends, also when it is killed."""
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Watch, until the daemon is gone."""
    os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, name="end with the daemon", daemon=True).start()
    sys.argv = ["ringleader", "watch", *sys.argv[1:]]
    from ringleader.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
