"""``ringleader serve``: every setting is a flag, generated from the one list of settings."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.common import FAILED, WRONG_INPUT, complain, fail
from ringleader.cli.flags import command_with

if TYPE_CHECKING:
    from ringleader.coordinator.config import Option, Settings
    from ringleader.coordinator.security.listeners import Listener
    from ringleader.coordinator.serving import ServingNode

# The first setting of each part of the help; a part goes on until the next one begins.
PANELS = {
    "listen": "The node",
    "cluster": "More than one node",
    "socket_request_max_bytes": "Connections",
    "group_min_session_timeout_ms": "Groups",
    "auto_create_topics_enable": "Topics",
    "ssl_keystore_type": "TLS",
    "num_partitions": "Topics",
}

PARAGRAPHS = (
    "Run the coordinator until it is stopped.",
    "Prints one line on standard output, `ready HOST:PORT`, once clients can come; log lines go to standard "
    "error. SIGTERM or Ctrl-C stops it cleanly, a second one at once. SIGHUP reads the files of certificates "
    "again.",
    "Every setting can also be given in the environment (`--data-dir` is RINGLEADER_DATA_DIR) and in a file "
    "(`data.dir = /var/lib/ringleader`); flags win over the environment, the environment over the file. What "
    "Apache Kafka has too keeps Kafka's name.",
    "Examples:",
    "  ringleader serve --topic orders:6",
    "  ringleader serve --listen 0.0.0.0:9092 --advertised-address broker.example:9092 --allow-plaintext",
    "  ringleader serve --listen 127.0.0.1:0 --data-dir /var/lib/ringleader",
    "  ringleader serve --config ringleader.toml --num-partitions 6",
    "  ringleader serve --topic orders:6 --ui 127.0.0.1:8088",
    "  ringleader serve --cluster k1:9092,k2:9092 --node-id 1 --listen 0.0.0.0:9092 --allow-plaintext",
)
HELP = "\n\n".join(PARAGRAPHS)


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="RINGLEADER_CONFIG", metavar="FILE", help="Settings file."),
]


UiOption = Annotated[
    str | None,
    typer.Option(
        "--ui",
        envvar="RINGLEADER_UI",
        metavar="HOST:PORT",
        help="Address of a web page about this daemon's groups, served by a separate process (as "
        "`ringleader watch --page`).",
    ),
]
UiTokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ui-token-file",
        envvar="RINGLEADER_UI_TOKEN_FILE",
        metavar="FILE",
        dir_okay=False,
        help="Token required by the page; needed if other machines can reach it. Alternatively set "
        "RINGLEADER_PAGE_TOKEN.",
    ),
]
UiResetTokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ui-reset-token-file",
        envvar="RINGLEADER_UI_RESET_TOKEN_FILE",
        metavar="FILE",
        dir_okay=False,
        help="Another token, for users of the page that may reset offsets, too. Default: nobody may.",
    ),
]
UiCertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--ui-certificate",
        envvar="RINGLEADER_UI_CERTIFICATE",
        metavar="FILE",
        dir_okay=False,
        help="PEM file with private key and certificates: the page uses TLS.",
    ),
]
UiClientAuthorityOption = Annotated[
    Path | None,
    typer.Option(
        "--ui-client-authority",
        envvar="RINGLEADER_UI_CLIENT_AUTHORITY",
        metavar="FILE",
        dir_okay=False,
        help="PEM file with CA certificates: the page requires a client certificate signed by one of them.",
    ),
]
UiConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--ui-config",
        envvar="RINGLEADER_UI_CONFIG",
        metavar="FILE",
        dir_okay=False,
        help="Settings file of the process that serves the page (as `ringleader watch --config`).",
    ),
]


def serve() -> None:
    """Run the coordinator. Its parameters are those of `_serve_with`, see `COMMAND`."""


def _serve_with(
    *,
    config: ConfigOption = None,
    ui: UiOption = None,
    ui_token_file: UiTokenFileOption = None,
    ui_reset_token_file: UiResetTokenFileOption = None,
    ui_certificate: UiCertificateOption = None,
    ui_client_authority: UiClientAuthorityOption = None,
    ui_config: UiConfigOption = None,
    **flags: Any,
) -> None:
    from ringleader.cli.logs import set_up_logs
    from ringleader.coordinator.config import SettingsError, load_settings

    try:
        settings = load_settings(flags, os.environ, config)
    except SettingsError as error:
        fail(str(error), WRONG_INPUT)
    if ui is not None and not any(_is_plaintext(one) for one in settings.served()):
        fail(
            "--ui: the page reads from a PLAINTEXT listener; add one on 127.0.0.1 to listeners, or start "
            "`ringleader watch --page` with --command-config.",
            WRONG_INPUT,
        )
    set_up_logs(settings.log_level, settings.log_format)
    if settings.log_level != "debug":
        # A node in front of a cluster says itself what it makes of its membership there.
        logging.getLogger("ringleader.clients.group").setLevel(logging.ERROR)
    files = {
        "--ui-token-file": ui_token_file,
        "--ui-reset-token-file": ui_reset_token_file,
        "--ui-certificate": ui_certificate,
        "--ui-client-authority": ui_client_authority,
        "--ui-config": ui_config,
    }
    code = _run(settings, _page_arguments(ui, files))
    if code:
        raise typer.Exit(code)


def _flags() -> Iterator[tuple[Option, str]]:
    _load_structlog()
    from ringleader.coordinator.config import options

    panel = ""
    for option in options():
        panel = PANELS.get(option.field, panel)
        yield option, panel


def _load_structlog() -> None:
    """Without rich: it would load it for tracebacks, which `set_up_logs` does not leave to it. A tenth of the
    start of a daemon."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


COMMAND = command_with("serve", HELP, _serve_with, _flags)
"""The class of the command `serve`."""


def _is_plaintext(listener: Listener) -> bool:
    return listener.security_protocol == "PLAINTEXT"


def _page_arguments(ui: str | None, files: Mapping[str, Path | None]) -> list[str] | None:
    """None: no page."""
    if ui is None:
        for option in (one for one, file in files.items() if file is not None):
            fail(f"{option}: there is no page to use it; give --ui HOST:PORT, too.", WRONG_INPUT)
        return None
    from ringleader.cli.beside import arguments

    try:
        return arguments(ui, *files.values())
    except ValueError as error:
        fail(f"--ui: {error}.", WRONG_INPUT)


def _run(settings: Settings, page: list[str] | None) -> int:
    if settings.debug_turn_ms:
        return _run_watched(settings, page)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_serve(settings, page))
    return uvloop.run(_serve(settings, page))


def _run_watched(settings: Settings, page: list[str] | None) -> int:
    from ringleader.coordinator.turn_watch import TurnWatch, warn

    watch = TurnWatch(settings.debug_turn_ms, warn)
    with watch, asyncio.Runner(loop_factory=watch.new_loop) as runner:
        return runner.run(_serve(settings, page))


def _node(settings: Settings) -> ServingNode:
    """One by itself, or one of several. Raises ValueError for what cannot be used."""
    if settings.cluster:
        from ringleader.coordinator.cluster.node import ClusterNode

        return ClusterNode(settings)
    from ringleader.coordinator.node import Node

    return Node(settings)


async def _serve(settings: Settings, page: list[str] | None) -> int:
    from ringleader.coordinator.serving import StartError

    stop = asyncio.Event()
    _on_signals(stop)
    try:
        node = _node(settings)
    except ValueError as error:
        complain(f"cluster.properties: {str(error).rstrip('.')}.")
        return WRONG_INPUT
    # Also where there is no certificate: who sends it to all daemons means no harm.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, node.reread_certificates)
    where = "the cluster" if settings.cluster else settings.data_dir
    try:
        if not await _started(node, stop):
            return 0
    except StartError as error:
        complain(f"{str(error).rstrip('.')}.")
        return FAILED
    except OSError as error:
        complain(f"It cannot start with {where}: {error.strerror or error}.")
        return FAILED
    gc.freeze()  # what was replayed stays: the collector need not walk through a million offsets again
    failed = asyncio.create_task(node.wait_failed())
    stopped = asyncio.create_task(stop.wait())
    try:
        print(f"ready {node.bootstrap}", flush=True)
        async with AsyncExitStack() as beside:
            if page is not None:
                from ringleader.cli.beside import page_beside

                where_plain = next(str(one.address) for one in node.listeners if _is_plaintext(one))
                await beside.enter_async_context(page_beside(where_plain, page))
            await asyncio.wait([failed, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        broken = failed.done()
        failed.cancel()
        stopped.cancel()
        await node.stop()
    if broken:
        reason = str(node.failure).rstrip(".")
        complain(f"It stops ({reason}); start again to go on from what {where} holds.")
        return FAILED
    return 0


async def _started(node: ServingNode, stop: asyncio.Event) -> bool:
    """False when a signal stopped it before it served. Raises OSError."""
    starting = asyncio.create_task(node.start())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        # A node by itself is soon there; one of several may wait for others.
        if not starting.done() and node.settings.cluster:
            starting.cancel()
        await starting
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        return False
    finally:
        stopped.cancel()
    return True


def _on_signals(stop: asyncio.Event) -> None:
    """The first signal asks for a clean stop; a second one ends the process at once."""

    def received() -> None:
        if stop.is_set():
            os._exit(FAILED)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, received)
