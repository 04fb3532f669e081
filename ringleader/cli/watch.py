"""``ringleader watch``: the rebalances of a cluster, line by line; their history in a file, and a page."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ringleader.cli.asking import NOWHERE, security_of, servers_of
from ringleader.cli.common import (
    BOOTSTRAP,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    complain,
    fail,
    printable,
    utf8,
)
from ringleader.cli.flags import command_with
from ringleader.cli.insight_settings import ConfigOption, Settings, flags, load_or_fail
from ringleader.cli.times import duration_ms
from ringleader.insight.plain import entry

if TYPE_CHECKING:
    from ringleader.coordinator.security.tls import Tls
    from ringleader.insight.advice import Thresholds
    from ringleader.insight.feed.watcher import Progress, Watcher
    from ringleader.insight.model import Event, Rebalance
    from ringleader.insight.notices import Notifier

HELP = (
    "Show each rebalance of all groups, of Ringleader or of any Kafka, with its cause, and keep the history; "
    "Ctrl-C ends.\n\n"
    "It only reads: clients and brokers are left alone. The history is kept in one file, and goes on there "
    "when the command is started again; a new one begins with what the cluster still has. A page over it is "
    "at http://127.0.0.1:8088/ meanwhile.\n\n"
    "It has to be allowed to read the topic __consumer_offsets (of Ringleader: __ringleader_journal, too), "
    "and to describe groups and topics.\n\n"
    "Examples:\n\n"
    "  ringleader watch --bootstrap-server prod:9092\n\n"
    "  ringleader watch --group billing --group audit --utc\n\n"
    "  ringleader watch --json --from-now | jq 'select(.cause == \"session expired\")'"
)
PAGE_ADDRESS = "127.0.0.1:8088"
PROGRESS_S = 0.5
CATCH_UP_TIMEOUT_S = 24 * 3600.0
"""A cluster that goes away meanwhile is waited for."""
NAMES_IN_LINE = 3
REMEMBERED = 10_000
"""Lines that are not printed twice."""

Show = Callable[[Any], str | None]

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


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
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="History file. Default: in the user's data directory.",
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
PageOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address of the page.", show_default=PAGE_ADDRESS, parser=utf8),
]
NoPageOption = Annotated[bool, typer.Option("--no-page", help="Do not serve the page.")]
PageNameOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        parser=utf8,
        help="Additional host name under which the page may be requested; may be repeated.",
        show_default=False,
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="Token required by the page; needed if other machines can reach it. Alternatively set "
        "RINGLEADER_PAGE_TOKEN.",
        show_default=False,
    ),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="PEM file with private key and certificates: the page uses TLS.",
        show_default=False,
    ),
]
AuthorityOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        dir_okay=False,
        help="PEM file with CA certificates: the page requires a client certificate signed by one of them.",
        show_default=False,
    ),
]
UtcOption = Annotated[bool, typer.Option("--utc", help="Print exact times (UTC).")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def watch() -> None:
    """See HELP. Its parameters are those of `_watch_with`, see `COMMAND`."""


def _watch_with(
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    group: GroupOption = None,
    from_start: FromStartOption = True,
    history: HistoryFileOption = None,
    keep: KeepOption = "30d",
    max_size: MaxSizeOption = "1g",
    page: PageOption = None,
    no_page: NoPageOption = False,
    page_name: PageNameOption = None,
    token_file: TokenFileOption = None,
    page_certificate: CertificateOption = None,
    page_client_authority: AuthorityOption = None,
    utc: UtcOption = False,
    as_json: JsonLinesOption = False,
    command_config: CommandConfigOption = None,
    config: ConfigOption = None,
    **given: Any,
) -> None:
    from ringleader.clients.errors import ClientError
    from ringleader.insight.feed.watcher import Watcher
    from ringleader.insight.history import HistoryError

    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    _, security = security_of(command_config)
    servers_of(bootstrap_server)
    age_ms, size = _age_ms(keep), _size(max_size)
    groups = frozenset(group or ())
    show = _AsJson() if as_json else _Text(utc)
    settings = load_or_fail(given, config)
    served = (
        None
        if no_page
        else _page(
            page, page_name or [], token_file, page_certificate, page_client_authority, settings.thresholds
        )
    )

    async def run() -> None:
        watcher = Watcher(
            bootstrap_server,
            history,
            tls=security.tls,
            sasl=security.sasl,
            from_start=from_start,
            max_age_ms=age_ms,
            max_bytes=size,
            on_notice=complain,
        )
        await until_told(
            lambda: _watch(
                watcher, bootstrap_server, served, settings, groups, show, by_default=history is None
            )
        )

    try:
        asyncio.run(run())
    except (ClientError, HistoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        fail(f"{str(error).rstrip('.')}.")


COMMAND = command_with("watch", HELP, _watch_with, flags)
"""The class of the command `watch`."""


async def _watch(
    watcher: Watcher,
    server: str,
    served: Page | None,
    settings: Settings,
    groups: frozenset[str],
    show: Show,
    *,
    by_default: bool,
) -> None:
    """`by_default`: the history is in its default place."""
    from ringleader.insight.history.paths import remember_watched

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watcher)
        url = None if served is None else await _serve(stack, watcher, served)
        await _catch_up(watcher)
        if settings.notices.wanted:
            await stack.enter_async_context(_notifier(watcher, settings, groups, url))
        living = sum(one.state != "Dead" for one in watcher.history.groups())
        count = f"{living} group{'' if living == 1 else 's'}"
        complain(f"watching {count} of {server}; the history is in {watcher.path}")
        if isinstance(show, _AsJson):
            past = watcher.history.rebalances(limit=REMEMBERED, newest_first=True)
            show.knows(one.id for one in reversed(past))
        if by_default:
            with suppress(OSError):
                remember_watched(server)
        async for one in watcher.outputs():
            if groups and one.group and one.group not in groups:
                continue
            if (line := show(one)) is not None:
                print(line, flush=True)


class Page(NamedTuple):
    """Where the page is to be, and for whom."""

    host: str
    port: int
    names: list[str]
    token: str | None
    tls: Tls | None
    thresholds: Thresholds
    wanted: bool
    """It was asked for by name."""


def _notifier(watcher: Watcher, settings: Settings, groups: frozenset[str], page: str | None) -> Notifier:
    from ringleader.insight.notices import Notifier

    return Notifier(
        settings.notices,
        watcher.path,
        thresholds=settings.thresholds,
        cluster=(watcher.cluster_id, watcher.history.address),
        page=page,
        groups=groups,
        note=watcher.note,
        on_notice=complain,
    )


async def _serve(stack: AsyncExitStack, watcher: Watcher, served: Page) -> str:
    """The page's address."""
    from ringleader.insight.web import page

    def at(port: int) -> AbstractAsyncContextManager[str]:
        return page(
            watcher.path,
            served.host,
            port,
            token=served.token,
            names=served.names,
            tls=served.tls,
            thresholds=served.thresholds,
            note=watcher.note,
        )

    try:
        url = await stack.enter_async_context(at(served.port))
    except OSError as error:
        why = f"{served.host}:{served.port} cannot be listened on: {error.strerror}"
        if served.wanted:
            raise HistoryPageError(f"--page: {why}") from None
        url = await stack.enter_async_context(at(0))
        complain(f"{why}; the page is at {url}")
    else:
        complain(f"the page is at {url}")
    return url


class HistoryPageError(OSError):
    """The page cannot be where it was wanted."""


async def _catch_up(watcher: Watcher) -> None:
    """Wait, and say on a terminal how far it is."""
    reading = asyncio.create_task(watcher.caught_up(CATCH_UP_TIMEOUT_S))
    shown = False
    try:
        while not (await asyncio.wait([reading], timeout=PROGRESS_S))[0]:
            if sys.stderr.isatty():
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


async def until_told(work: Callable[[], Any]) -> None:
    """Until Ctrl-C or SIGTERM, which end it in order, or until nobody reads what is printed."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work())
    told = [False]

    def tell() -> None:
        told[0] = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, tell)
    try:
        await task
    except asyncio.CancelledError:
        if not told[0]:
            raise


# ---- lines ----


class _AsJson:
    """All that is known, also what was said before and is known better now: the same id again, which
    revises."""

    def __init__(self) -> None:
        self._said: OrderedDict[str, None] = OrderedDict()

    def knows(self, ids: Iterable[str]) -> None:
        """These are in the history: given again, they revise."""
        for one in ids:
            self._said[one] = None
        while len(self._said) > REMEMBERED:
            self._said.popitem(last=False)

    def __call__(self, one: Any) -> str:
        said = entry(one)
        if "id" in said:
            said["revises"] = said["id"] in self._said
            self.knows([said["id"]])
        return json.dumps(said, ensure_ascii=False)


class _Text:
    """Lines for people: each rebalance and event once, and again where more is known than its line says."""

    def __init__(self, utc: bool) -> None:
        self._utc = utc
        self._said: OrderedDict[str, str] = OrderedDict()

    def __call__(self, one: Any) -> str | None:
        kind = type(one).__name__
        if kind == "GroupState":
            return None
        line = f"{_clock(one.at_ms, self._utc)}  {_rebalance(one) if kind == 'Rebalance' else _event(one)}"
        before = self._said.get(one.id)
        self._said[one.id] = line
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        if before == line:
            return None
        return line if before is None else f"{line} (said again: more is known)"


def _clock(at_ms: int, utc: bool) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if utc:
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return at.astimezone().strftime("%H:%M:%S")


def _rebalance(one: Rebalance) -> str:
    names = {member.member_id: member.name for member in (*one.before, *one.members)}
    who = [names.get(member_id, member_id) for member_id in one.cause_members]
    sure = "" if one.confidence in ("exact", "certain") else f" ({one.confidence})"
    said = [f"{printable(one.group)}: {one.cause}{sure}{_some(who)}"]
    said.append(f"members {len(one.before)} -> {len(one.members)}")
    if one.moves:
        said.append(f"{len(one.moves)} partition{'' if len(one.moves) == 1 else 's'} moved")
    if one.duration_ms is not None:
        said.append(f"took {_length(one.duration_ms)}")
    if one.unowned_ms:
        said.append(f"{one.unowned_ms / 1000:,.1f} partition-seconds without owner")
    return f"{'; '.join(said)} (generation {one.generation})"


def _event(one: Event) -> str:
    about = f"{printable(one.group)}: " if one.group else ""
    return f"{about}{one.kind}: {printable(one.text)}"


def _some(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = len(names) - NAMES_IN_LINE
    return f": {', '.join(map(printable, names[:NAMES_IN_LINE]))}{f' and {more} more' if more > 0 else ''}"


def _length(ms: int) -> str:
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1000:.1f} s"


# ---- options ----


def _page(
    address: str | None,
    names: list[str],
    token_file: Path | None,
    certificate: Path | None,
    client_authority: Path | None,
    thresholds: Thresholds,
) -> Page:
    from ringleader.clients.connection.cluster import parse_bootstrap
    from ringleader.insight.web import check_address, page_tls, read_token

    try:
        [(host, port)] = parse_bootstrap([address or PAGE_ADDRESS])
        token = read_token(token_file)
        tls = page_tls(certificate, client_authority)
        check_address(host, token, tls)
    except ValueError as error:
        fail(f"--page: {error}.", WRONG_INPUT)
    return Page(host, port, names, token, tls, thresholds, address is not None)


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
