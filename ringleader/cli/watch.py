"""``ringleader watch``: the rebalances of a cluster, line by line; their history in a file, and a page."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import NOWHERE
from ringleader.cli.clusters import Cluster, clusters_of
from ringleader.cli.common import BOOTSTRAP, WRONG_INPUT, complain, fail, file_option, utf8
from ringleader.cli.flags import command_with
from ringleader.cli.insight_settings import ConfigOption, Settings, flags, load_or_fail
from ringleader.cli.lines import REMEMBERED, AsJson, AsText
from ringleader.cli.watch_page import (
    AuthorityOption,
    CertificateOption,
    NoPageOption,
    Page,
    PageNameOption,
    PageOption,
    ResetTokenFileOption,
    TokenFileOption,
    page_of,
    serve_page,
)
from ringleader.clients.times import duration_ms
from ringleader.host.clock import wall_ms
from ringleader.host.printable import printable

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.insight.feed.watcher import Progress, Watcher
    from ringleader.insight.notices import Notifier
    from ringleader.insight.web.sources import Source

HELP = (
    "Show each rebalance of all groups, of Ringleader or of any Kafka, with its cause, and keep the history; "
    "Ctrl-C ends.\n\n"
    "It only reads: clients and brokers are left alone, unless --reset-token-file lets somebody reset a "
    "group's offsets on the page. The history is kept in one file, and goes on there "
    "when the command is started again; a new one begins with what the cluster still has. A page over it is "
    "at http://127.0.0.1:8088/ meanwhile.\n\n"
    "It has to be allowed to read the topic __consumer_offsets (of Ringleader: __ringleader_journal, too), "
    "and to describe groups and topics.\n\n"
    "Examples:\n\n"
    "  ringleader watch --bootstrap-server prod:9092\n\n"
    "  ringleader watch --group billing --group audit --utc\n\n"
    "  ringleader watch -b prod=prod:9092 -b test=test:9092\n\n"
    "  ringleader watch --json --from-now | jq 'select(.cause == \"session expired\")'"
)
PAGE_ID = "ringleader-page"
"""The client id with which the page sets offsets."""
PROGRESS_S = 0.5
CATCH_UP_TIMEOUT_S = 24 * 3600.0
"""A cluster that goes away meanwhile is waited for."""
AGAIN_S = 5.0
"""One of several clusters whose watcher ended is watched again after that."""

Show = Callable[[Any], str | None]

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


ServersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        parser=utf8,
        metavar="[NAME=]HOST:PORT[,...]",
        help="Cluster to watch: Ringleader or any Kafka; may be repeated, for several clusters on one page. "
        f"Default: that of RINGLEADER_BOOTSTRAP_SERVER, else {BOOTSTRAP}.",
        show_default=False,
    ),
]
ConfigsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--command-config",
        metavar="[NAME=]FILE",
        help="File of client properties for TLS and SASL, as of the other commands; with a NAME of that "
        "cluster alone. Default: that of RINGLEADER_COMMAND_CONFIG.",
        show_default=False,
    ),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP",
        parser=utf8,
        help="Show only this group, and send notices of it only; may be repeated. The history contains all "
        "groups.",
        show_default=False,
    ),
]
FromStartOption = Annotated[
    bool,
    typer.Option(
        "--from-start/--from-now",
        help="Start of a new history: the oldest data in the cluster's topics, or now.",
    ),
]
HistoryFileOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="[NAME=]FILE",
        help="History file; of several clusters each has its own. Default: in the user's data directory.",
        show_default=False,
    ),
]
KeepOption = Annotated[str, typer.Option(metavar="TIME", help="How long the history is kept: 30d, 12h.")]
MaxSizeOption = Annotated[
    str,
    typer.Option(
        metavar="BYTES",
        help="Largest size of the history file: 1g, 500m. The oldest entries are deleted first.",
    ),
]
NodeHttpOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]URL",
        parser=utf8,
        help="HTTP endpoint of a node (http://HOST:PORT), to read what clients reported about themselves; "
        "may be repeated. https://*:PORT: of each node that the cluster names.",
        show_default=False,
    ),
]
NodeTokenFileOption = Annotated[
    Path | None,
    file_option("Token of these endpoints (http.token.file)."),
]
NodeAuthorityOption = Annotated[
    Path | None,
    file_option("PEM file with CA certificates to trust for these endpoints. Default: those of the system."),
]
UtcOption = Annotated[bool, typer.Option("--utc", help="Print exact times (UTC).")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def watch() -> None:
    """See HELP. Its parameters are those of `_watch_with`, see `COMMAND`."""


def _watch_with(
    bootstrap_server: ServersOption = None,
    group: GroupOption = None,
    from_start: FromStartOption = True,
    history: HistoryFileOption = None,
    keep: KeepOption = "30d",
    max_size: MaxSizeOption = "1g",
    page: PageOption = None,
    no_page: NoPageOption = False,
    page_name: PageNameOption = None,
    token_file: TokenFileOption = None,
    reset_token_file: ResetTokenFileOption = None,
    page_certificate: CertificateOption = None,
    page_client_authority: AuthorityOption = None,
    node_http: NodeHttpOption = None,
    node_token_file: NodeTokenFileOption = None,
    node_authority: NodeAuthorityOption = None,
    utc: UtcOption = False,
    as_json: JsonLinesOption = False,
    command_config: ConfigsOption = None,
    config: ConfigOption = None,
    **given: Any,
) -> None:
    from ringleader.clients.errors import ClientError
    from ringleader.insight.feed.reports import Reports
    from ringleader.insight.feed.watcher import Watcher
    from ringleader.insight.history import HistoryError

    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    clusters = clusters_of(bootstrap_server or [], history or [], command_config or [], node_http or [])
    token, context = _of_nodes(node_token_file, node_authority)
    age_ms, size = _age_ms(keep), _size(max_size)
    groups = frozenset(group or ())
    settings = load_or_fail(given, config)
    served = (
        None
        if no_page
        else page_of(
            page,
            page_name or [],
            token_file,
            reset_token_file,
            page_certificate,
            page_client_authority,
            settings.thresholds,
        )
    )

    def notice_of(one: Cluster) -> Callable[[str], None]:
        about = f"{printable(one.name)}: " if one.name else ""
        return lambda text: complain(f"{about}{text}")

    def reports_of(one: Cluster) -> Reports | None:
        try:
            return Reports(one.nodes, notice_of(one), token=token, context=context) if one.nodes else None
        except ValueError as error:
            fail(f"--node-http: {error}. Give https://*:PORT and --node-authority FILE.", WRONG_INPUT)

    reports = {one.name: reports_of(one) for one in clusters}

    def watcher_of(one: Cluster) -> Watcher:
        return Watcher(
            one.servers,
            one.history,
            tls=one.security.tls,
            sasl=one.security.sasl,
            from_start=from_start,
            max_age_ms=age_ms,
            max_bytes=size,
            reports=reports[one.name],
            on_notice=notice_of(one),
        )

    def show_of(one: Cluster) -> Show:
        return AsJson(one.name) if as_json else AsText(utc, one.name)

    watch_all = _Watch(clusters, watcher_of, show_of, settings, groups, served)
    try:
        asyncio.run(until_signalled(watch_all.run))
    except (ClientError, HistoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        fail(f"{str(error).rstrip('.')}.")


COMMAND = command_with("watch", HELP, _watch_with, flags)
"""The class of the command `watch`."""


class _Watch:
    """One cluster, whose failure ends the command; or several, each watched again when its watcher ends."""

    def __init__(
        self,
        clusters: list[Cluster],
        watcher_of: Callable[[Cluster], Watcher],
        show_of: Callable[[Cluster], Show],
        settings: Settings,
        groups: frozenset[str],
        served: Page | None,
    ) -> None:
        self._clusters = clusters
        self._watcher_of = watcher_of
        self._show_of = show_of
        self._settings = settings
        self._groups = groups
        self._served = served
        self._url: str | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        from ringleader.insight.web.sources import Source

        async with AsyncExitStack() as stack:
            if not self._clusters[0].name:
                [only] = self._clusters
                watcher = await stack.enter_async_context(self._watcher_of(only))
                source = Source("", watcher.path, watcher.note, admin=_admin_of(only))
                await self._serve(stack, [source])
                await self._follow(only, watcher)
                return
            sources = [Source(one.name, admin=_admin_of(one)) for one in self._clusters]
            await self._serve(stack, sources)
            await asyncio.gather(*map(self._keep, self._clusters, sources))

    async def _serve(self, stack: AsyncExitStack, sources: list[Source]) -> None:
        if self._served is not None:
            self._url = await serve_page(stack, sources, self._served)

    async def _keep(self, one: Cluster, source: Source) -> None:
        """Watch one of several, again and again: the others do not wait for it."""
        from ringleader.clients.errors import ClientError
        from ringleader.insight.history import Away, HistoryError

        show, reported = self._show_of(one), ""
        while True:
            try:
                async with self._watcher_of(one._replace(history=source.path or one.history)) as watcher:
                    source.path, source.note, source.away, reported = watcher.path, watcher.note, None, ""
                    await self._follow(one, watcher, show)
            except (ClientError, HistoryError, OSError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                why = str(error).rstrip(".")
                source.away = source.away or Away(wall_ms(), why)
                if reported != why:
                    again = f"it is tried again every {AGAIN_S:.0f} s"
                    complain(f"{printable(one.name)} is not watched: {why}; {again}.")
                reported = why
            finally:
                source.note = None
            await asyncio.sleep(AGAIN_S)

    async def _follow(self, one: Cluster, watcher: Watcher, show: Show | None = None) -> None:
        """Print what happens in one cluster."""
        from ringleader.insight.history.paths import remember_watched

        show = show or self._show_of(one)
        async with AsyncExitStack() as stack:
            await _catch_up(watcher, one.name)
            if self._settings.notices.wanted:
                await stack.enter_async_context(self._notifier(one, watcher))
            living = sum(each.state != "Dead" for each in watcher.history.groups())
            count = f"{living} group{'' if living == 1 else 's'}"
            name = f"{printable(one.name)}, " if one.name and one.name != one.servers else ""
            complain(f"watching {count} of {name}{one.servers}; the history is in {watcher.path}")
            if isinstance(show, AsJson):
                past = watcher.history.rebalances(limit=REMEMBERED, newest_first=True)
                show.knows(each.id for each in reversed(past))
            if one.history is None:
                with suppress(OSError):
                    remember_watched(
                        {each.name: each.servers for each in self._clusters if each.history is None}
                    )
            async for output in watcher.outputs():
                if self._groups and output.group and output.group not in self._groups:
                    continue
                if (line := show(output)) is not None:
                    print(line, flush=True)

    def _notifier(self, one: Cluster, watcher: Watcher) -> Notifier:
        from ringleader.insight.notices import Notifier

        return Notifier(
            self._settings.notices,
            watcher.path,
            thresholds=self._settings.thresholds,
            cluster=(watcher.cluster_id, watcher.history.address, one.name),
            page=self._url,
            groups=self._groups,
            note=watcher.note,
            on_notice=complain,
        )


def _admin_of(one: Cluster) -> Callable[[], Admin]:
    """Makes the connection by which the page changes the cluster, as the watcher's own user."""
    from ringleader.clients.admin import Admin

    return lambda: Admin(one.servers, client_id=PAGE_ID, tls=one.security.tls, sasl=one.security.sasl)


async def _catch_up(watcher: Watcher, name: str) -> None:
    """Wait, and say on a terminal how far it is; several clusters would write over each other."""
    reading = asyncio.create_task(watcher.caught_up(CATCH_UP_TIMEOUT_S))
    shown = False
    try:
        while not (await asyncio.wait([reading], timeout=PROGRESS_S))[0]:
            if sys.stderr.isatty() and not name:
                shown = True
                print(f"\r{_progress(watcher.progress)}\x1b[K", end="", file=sys.stderr, flush=True)
        await reading
    finally:
        reading.cancel()
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _progress(progress: Progress) -> str:
    share = 100 * progress.read // max(1, progress.total)
    return f"reading what the cluster still has: {share} % of {progress.total:,} records"


async def until_signalled(work: Callable[[], Any]) -> None:
    """Until Ctrl-C or SIGTERM, which end it in order, or until the reader of standard output has gone."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work())
    signalled = [False]

    def tell() -> None:
        signalled[0] = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, tell)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled[0]:
            raise


# ---- options ----


def _of_nodes(token_file: Path | None, authority: Path | None) -> tuple[str | None, ssl.SSLContext | None]:
    from ringleader.host.http_server import read_token

    try:
        token = None if token_file is None else read_token(token_file)
    except ValueError as error:
        fail(f"--node-token-file: {error}.", WRONG_INPUT)
    try:
        context = None if authority is None else ssl.create_default_context(cafile=str(authority))
    except OSError as error:
        fail(f"--node-authority: {authority} cannot be used: {error.strerror or error}.", WRONG_INPUT)
    return token, context


def _age_ms(text: str) -> int:
    try:
        found = duration_ms(text)
    except ValueError as error:
        fail(f"--keep: {error}.", WRONG_INPUT)
    if found <= 0:
        fail("--keep: a history reaches back some time: 30d, 12h.", WRONG_INPUT)
    return found


def _size(text: str) -> int:
    from ringleader.insight.history.history import MIN_BYTES

    number, unit = text[:-1], text[-1:].lower()
    if unit.isdecimal():
        number, unit = text, ""
    if not number.isdecimal() or unit not in _UNITS:
        fail(f"--max-size: a size is 1g, 500m or a number of bytes, not {text!r}.", WRONG_INPUT)
    size = int(number) * _UNITS[unit]
    if size < MIN_BYTES:
        fail(f"--max-size: give it at least {MIN_BYTES >> 20}m.", WRONG_INPUT)
    return size
