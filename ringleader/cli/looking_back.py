"""The common parts of commands over a cluster's history: opening it, windows of time, times in words, JSON of
its values."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import NOWHERE, security_of, servers_of
from ringleader.cli.common import BOOTSTRAP, WRONG_INPUT, complain, fail, utf8
from ringleader.clients.times import moment_ms
from ringleader.host.clock import wall_ms
from ringleader.insight.names import no_group
from ringleader.insight.plain import iso, with_times
from ringleader.insight.plain import plain as insight_plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ringleader.insight.advice import Past
    from ringleader.insight.feed.watcher import Progress
    from ringleader.insight.history import History
    from ringleader.insight.model import Confidence, Member

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="History file written by `ringleader watch`. With --bootstrap-server, the file is updated "
        "first. Default: the cluster's file in the user's data directory.",
        show_default=False,
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        parser=utf8,
        envvar="RINGLEADER_BOOTSTRAP_SERVER",
        metavar="HOST:PORT[,...]",
        help=f"The cluster: Ringleader or any Kafka. Default: the one watched last, else {BOOTSTRAP}.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        parser=utf8,
        metavar="NAME",
        help="One of several clusters watched last, by the name that `ringleader watch` gave it.",
        show_default=False,
    ),
]
UtcOption = Annotated[bool, typer.Option("--utc", help="Show exact times instead of 2 min ago.")]
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", parser=utf8, help="Group.", show_default=False)
]
SinceOption = Annotated[
    str,
    typer.Option(
        "--since", metavar="TIME", help="Start time: 2h, 7d, or a time such as 2026-01-31T12:00Z (UTC)."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="TIME", help="End time, in the same format. Default: now.", show_default=False
    ),
]
_SLOW_S = 2.0
"""After this time the progress of a backlog is shown."""


@dataclass(frozen=True)
class View:
    """The part of a history that a command looks at: a group in a window of time."""

    history: History
    group: str
    window: Window
    times: Times
    since_given: bool
    """The beginning of the window stands on the command line."""

    def past(self, **more: Any) -> Past:
        """The group's history in the window, for advice."""
        from ringleader.insight.advice import Past

        past = Past.read(self.history, self.group, self.window.since_ms, self.window.until_ms, **more)
        if past.left_out:
            complain(past.left_out)
        return past

    def warn_of_gaps(self) -> None:
        """Print a warning on standard error when the history does not cover the window."""
        oldest_ms, newest_ms = self.history.oldest_ms, self.history.newest_ms
        if self.since_given and oldest_ms is not None and oldest_ms > self.window.since_ms + 60_000:
            complain(f"the history begins {self.times.point(oldest_ms)}: earlier rebalances are not in it.")
        if newest_ms is not None and newest_ms < self.window.until_ms - 60_000:
            complain(
                f"the history ends {self.times.point(newest_ms)}: `ringleader watch` keeps it up to date."
            )


@contextmanager
def view_of(
    ctx: typer.Context, group: str | None = None, *, since: str = "since", until: str = "until"
) -> Iterator[View]:
    """The group and window of a command's own parameters, in the history that its options name. `group`:
    instead of the parameter. `since` and `until`: the names of the parameters of the window. An error ends
    the command with one sentence."""
    now, params = wall_ms(), ctx.params
    group = params["group"] if group is None else group
    names = (f"--{since.rstrip('_')}", f"--{until}")
    window = window_of(params[since], params[until], now, names)
    with history_of(ctx) as history:
        must_know(history, group)
        yield View(history, group, window, Times(now, utc=params["utc"]), given(ctx, since))


@contextmanager
def history_of(ctx: typer.Context) -> Iterator[History]:
    """The history that a command's options name, open to be read: a file as it is, or a cluster's, caught up.
    An error ends the command with one sentence."""
    from ringleader.insight.history import FormatError, History, HistoryError

    file, config = ctx.params["history_file"], ctx.params["command_config"]
    bootstrap = cluster_of(ctx)
    try:
        if bootstrap is None:
            if config is not None and given(ctx, "command_config"):
                fail("--command-config is for a cluster: give --bootstrap-server, too.", WRONG_INPUT)
            found = History.open(file, read_only=True)
        else:
            found = _caught_up(file, bootstrap, config)
    except FormatError as error:
        fail(f"{str(error).rstrip('.')}.")
    except HistoryError as error:
        fail(f"{str(error).rstrip('.')}. `ringleader watch` begins one.")
    try:
        if found.newest_ms is None and not found.groups():
            fail(f"Nothing is in the history {found.path} yet: `ringleader watch` writes it while it runs.")
        yield found
    except HistoryError as error:
        fail(f"{str(error).rstrip('.')}.")
    finally:
        found.close()


def cluster_of(ctx: typer.Context) -> str | None:
    """The cluster that a command's options name; None: only a file counts, as it is. Where both are given,
    the file is brought up to date; an environment that names a cluster is no wish."""
    from ringleader.insight.history.paths import last_watched

    servers, name = ctx.params["bootstrap_server"], ctx.params["cluster"]
    if name is not None:
        if given(ctx, "bootstrap_server") or ctx.params["history_file"] is not None:
            fail("--cluster is instead of --bootstrap-server and --history: give one of them.", WRONG_INPUT)
        watched = last_watched()
        if name not in watched:
            known = ", ".join(filter(None, watched)) or "none with a name"
            fail(f"--cluster: {name} was not watched last; there is: {known}.", WRONG_INPUT)
        return watched[name]
    if ctx.params["history_file"] is not None and not given(ctx, "bootstrap_server"):
        return None
    if servers:
        return str(servers)
    watched = last_watched()
    if len(watched) > 1:
        fail(
            f"Several clusters were watched last; say which with --cluster: {', '.join(watched)}.",
            WRONG_INPUT,
        )
    return next(iter(watched.values()), BOOTSTRAP)


def given(ctx: typer.Context, name: str) -> bool:
    """Whether the parameter stands on the command line, not in the environment only."""
    return getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _caught_up(file: Path | None, bootstrap: str, config: Path | None) -> History:
    from ringleader.clients.errors import ClientError
    from ringleader.insight.feed.catch_up import history_of as caught_up

    logging.getLogger("ringleader").addHandler(NOWHERE)
    _, security = security_of(config)
    servers_of(bootstrap)
    progress = _Reading()
    try:
        return asyncio.run(
            caught_up(bootstrap, file, tls=security.tls, sasl=security.sasl, on_progress=progress.tell)
        )
    except (ClientError, OSError, ValueError) as error:
        fail(f"{str(error).rstrip('.')}. The cluster asked is {bootstrap}; -b HOST:PORT names another.")
    finally:
        progress.over()


class _Reading:
    """Says on a terminal how far a backlog is read."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._shown = False

    def tell(self, progress: Progress) -> None:
        """So far."""
        import sys

        if time.monotonic() - self._began_s < _SLOW_S or not sys.stderr.isatty():
            return
        self._shown = True
        share = progress.read / progress.total if progress.total else 1
        print(f"\rReading what happened so far: {share:4.0%}", end="", file=sys.stderr, flush=True)

    def over(self) -> None:
        """It is read."""
        import sys

        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when, Unix ms."""

    since_ms: int
    until_ms: int


def window_of(
    since: str, until: str | None, now: int, names: tuple[str, str] = ("--since", "--until")
) -> Window:
    """The window of the two options. Ends the command for a text that is no time, and for no window."""
    since_ms = moment_of(since, now, names[0])
    until_ms = now if until is None else moment_of(until, now, names[1])
    if since_ms >= until_ms:
        fail(f"{names[0]} has to be before {names[1]}.", WRONG_INPUT)
    return Window(since_ms, until_ms)


def moment_of(text: str, now: int, option: str) -> int:
    """``2h`` or ``-2h``: that time ago; else a time. Ends the command for a text that is neither, or to
    come."""
    try:
        found = moment_ms(text, now)
    except ValueError as error:
        fail(f"{option}: {error}.", WRONG_INPUT)
    if found > now + 1_000:
        fail(f"{option}: {text} is still to come.", WRONG_INPUT)
    return max(found, 0)


def must_know(history: History, group: str) -> None:
    """Ends the command for a group that was never seen, with the name that is nearest."""
    if not history.knows(group):
        fail(no_group(group, [one.group for one in history.groups()]))


def nothing_in(history: History, group: str, window: Window, times: Times) -> str:
    """One sentence for a window without a rebalance: what there is."""
    last = history.rebalances(group, limit=1, newest_first=True)
    span = f"between {times.point(window.since_ms)} and {times.point(window.until_ms)}"
    if last:
        return f"No rebalance of {group} {span}; its last one was {times.point(last[0].at_ms)}."
    begin_ms = history.oldest_ms
    begins = f": the history begins {times.point(begin_ms)}" if begin_ms is not None else ""
    return f"No rebalance of {group} {span}, or any other time{begins}."


class Times:
    """Points in time, for people: as words, or exact."""

    def __init__(self, now: int, *, utc: bool) -> None:
        self.now_ms, self.utc = now, utc

    def point(self, at_ms: int | None) -> str:
        """``2 min ago``, or ``2026-01-31 12:00:05.250Z``."""
        from ringleader.cli.common import NONE
        from ringleader.insight.advice.words import length

        if at_ms is None:
            return NONE
        if self.utc:
            return iso(at_ms).replace("T", " ")
        ago_ms = self.now_ms - at_ms
        if abs(ago_ms) < 1_000:
            return "now"
        # To the larger unit only: the seconds of yesterday do not matter.
        words = length(round(abs(ago_ms), -3)).split(" ")
        text = " ".join(words[:2] if abs(ago_ms) < 36e5 or abs(ago_ms) >= 864e5 * 3 else words)
        return f"{text} ago" if ago_ms > 0 else f"in {text}"


def plain(value: Any) -> Any:
    """A value of insight as JSON's own types, as `insight.plain` makes them; Unix times come as ISO 8601,
    too."""
    return insight_plain(value, with_times)


def say(out: Console, text: Text | str, mark: str = "", *, style: str = "", indent: int = 2) -> None:
    """A sentence under a heading, with a mark before it; what does not fit goes on below its beginning."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    shown = Text(text, style=style) if isinstance(text, str) else text
    if not mark:
        out.print(Padding(shown, (0, 0, 0, indent), expand=False))
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(mark, style="green"), shown)
    out.print(Padding(grid, (0, 0, 0, indent), expand=False))


def doubt(confidence: Confidence) -> str:
    """How sure something is, where it is not: ``, likely``."""
    return "" if confidence in ("exact", "certain", "unknown") else f", {confidence}"


def where(member: Member) -> str:
    """Host and client, for a line."""
    return f"{member.client_id} on {member.host.lstrip('/') or 'an unknown host'}"
