"""``ringleader top``: a live table of all groups."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ringleader.cli.asking import NOWHERE, security_of, servers_of
from ringleader.cli.common import (
    BOOTSTRAP,
    NONE,
    WRONG_INPUT,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
)
from ringleader.cli.looking_back import (
    ClusterOption,
    HistoryOption,
    ServerOption,
    Times,
    UtcOption,
    cluster_of,
    given,
    history_of,
    plain,
)
from ringleader.host.clock import wall_ms

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from ringleader.insight.history import History

HOUR_MS = 3_600_000
RATE_MS = 300_000
"""The time over which the rate is taken."""
REBALANCES_MAX = 100_000
"""Of the last hour, of all groups."""

HELP = (
    "Show all groups of a cluster in a table that is kept up to date: state, members, lag, records a second,"
    " rebalances in the last hour.\n\n"
    "Keys: q ends it; l, r, m, n sort by lag, rebalances, members, name.\n\n"
    "Examples:\n\n"
    "  ringleader top\n\n"
    "  ringleader top --sort rebalances --bootstrap-server prod:9092\n\n"
    "  ringleader top --once --json | jq -r '.groups[] | select(.lag > 1000) | .group'"
)


class Sort(StrEnum):
    """The sort order."""

    LAG = "lag"
    REBALANCES = "rebalances"
    MEMBERS = "members"
    NAME = "name"


_KEYS = {"l": Sort.LAG, "r": Sort.REBALANCES, "m": Sort.MEMBERS, "n": Sort.NAME}


@dataclass(frozen=True, slots=True)
class Row:
    """One group now."""

    group: str
    state: str
    kind: str
    members: int
    idle: int
    """Members without a partition."""
    lag: int | None
    """Records; None: not measured."""
    rate: float | None
    """Records that were committed in a second."""
    rebalances: int
    """In the last hour."""
    last_cause: str | None
    last_ms: int | None
    """Its last rebalance of that hour."""


def top(
    ctx: typer.Context,
    sort: Annotated[Sort, typer.Option(help="Sort order.")] = Sort.LAG,
    once: Annotated[bool, typer.Option("--once", help="Print the table once.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.2, max=3600, metavar="SECONDS", help="Interval between updates.")
    ] = 2.0,
    gone: Annotated[bool, typer.Option("--gone", help="Show deleted groups, too.")] = False,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
) -> None:
    """See `HELP`."""
    if once:
        with history_of(ctx) as history:
            now = wall_ms()
            rows = rows_of(history, now, gone=gone)
        if as_json:
            print(json.dumps({"groups": plain(sorted_by(rows, sort))}))
            return
        if not rows:
            fail("There is no group in the history.")
        console().print(shown(sorted_by(rows, sort), Times(now, utc=utc)))
        return
    if as_json:
        fail("--json is for --once: a live table is for people.", WRONG_INPUT)
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        fail("A live table needs a terminal; --once prints it once.", WRONG_INPUT)
    live = _Live(sort, interval, gone=gone, utc=utc)
    if history_file is not None and not given(ctx, "bootstrap_server"):
        with history_of(ctx) as history:
            asyncio.run(live.run(history))
        return
    asyncio.run(_watching(live, cluster_of(ctx) or BOOTSTRAP, history_file, command_config))


def rows_of(history: History, now: int, *, gone: bool) -> list[Row]:
    """All groups as they are now."""
    recent: Counter[str] = Counter()
    last = {}
    for one in history.rebalances(since_ms=now - HOUR_MS, until_ms=now, limit=REBALANCES_MAX):
        recent[one.group] += 1
        last[one.group] = one
    rows = []
    for state in history.groups():
        if state.state == "Dead" and not gone:
            continue
        lag, rate = _lag_and_rate(history, state.group, now)
        latest = last.get(state.group)
        rows.append(
            Row(
                state.group,
                state.state,
                state.kind,
                len(state.members),
                sum(not member.assigned for member in state.members),
                lag,
                rate,
                recent[state.group],
                latest.cause if latest else None,
                latest.at_ms if latest else None,
            )
        )
    return rows


def _lag_and_rate(history: History, group: str, now: int) -> tuple[int | None, float | None]:
    behind: dict[tuple[str, int], int] = {}
    first: dict[tuple[str, int], tuple[int, int]] = {}
    rates: dict[tuple[str, int], float] = {}
    samples = history.lag(group, since_ms=now - RATE_MS, until_ms=now)
    for one in samples:
        if one.committed is not None:
            behind[one.topic, one.partition] = max(one.end_offset - one.committed, 0)
    points = [
        (one.topic, one.partition, one.at_ms, one.committed) for one in samples if one.committed is not None
    ]
    if (
        len({at_ms for _, _, at_ms, _ in points}) < 2
    ):  # lags are not looked at so far: the commits show the rate
        points = [
            (one.topic, one.partition, one.at_ms, one.offset)
            for one in history.commits(group, since_ms=now - RATE_MS, until_ms=now)
        ]
    for topic, partition, at_ms, offset in points:
        begin_ms, begin = first.setdefault((topic, partition), (at_ms, offset))
        if at_ms > begin_ms:
            rates[topic, partition] = max(offset - begin, 0) / ((at_ms - begin_ms) / 1000)
    return (sum(behind.values()) if behind else None), (sum(rates.values()) if rates else None)


def sorted_by(rows: list[Row], sort: Sort) -> list[Row]:
    """The largest first; names in their order."""
    keys: dict[Sort, Callable[[Row], float]] = {
        Sort.LAG: lambda row: -(row.lag or 0),
        Sort.REBALANCES: lambda row: -row.rebalances,
        Sort.MEMBERS: lambda row: -row.members,
        Sort.NAME: lambda _row: 0,
    }
    return sorted(rows, key=lambda row: (keys[sort](row), row.group))


_STATES = {"Stable": "green", "Empty": "dim", "Dead": "dim"}


def shown(rows: list[Row], times: Times) -> Table:
    """The table."""
    from rich.text import Text

    numbers = ("MEMBERS", "LAG", "RECORDS/S", "REBALANCES/H")
    made = table("GROUP", "STATE", *numbers, "LAST ONE", right=numbers)
    for column in made.columns[1:6]:
        column.no_wrap = True
    for row in rows:
        members = str(row.members) + (f" ({row.idle} idle)" if row.idle and row.members else "")
        last = NONE if row.last_ms is None else f"{times.point(row.last_ms)}: {row.last_cause}"
        made.add_row(
            row.group,
            Text(row.state, style=_STATES.get(row.state, "yellow")),
            members,
            NONE if row.lag is None else f"{row.lag:,}",
            NONE if row.rate is None else f"{row.rate:,.0f}",
            Text(str(row.rebalances), style="bold" if row.rebalances else "dim"),
            last,
        )
    return made


class _Live:
    """The table on a terminal, until q is pressed."""

    def __init__(self, sort: Sort, interval_s: float, *, gone: bool, utc: bool) -> None:
        self._sort, self._interval_s, self._gone, self._utc = sort, interval_s, gone, utc

    async def run(self, history: History) -> None:
        """Until q."""
        from rich.live import Live

        out = console()
        loop = asyncio.get_running_loop()
        keys: asyncio.Queue[str] = asyncio.Queue()
        with _keys_at_once(), Live(console=out, screen=True, auto_refresh=False) as live:
            loop.add_reader(sys.stdin.fileno(), lambda: _read_keys(keys))
            try:
                while True:
                    now = wall_ms()
                    rows = await asyncio.to_thread(rows_of, history, now, gone=self._gone)
                    live.update(self._screen(rows, history, now, out.height), refresh=True)
                    try:
                        key = await asyncio.wait_for(keys.get(), self._interval_s)
                    except TimeoutError:
                        continue
                    if key in "qQ\x03\x04":
                        return
                    self._sort = _KEYS.get(key, self._sort)
            finally:
                loop.remove_reader(sys.stdin.fileno())

    def _screen(self, rows: list[Row], history: History, now: int, height: int) -> Group:
        from rich.console import Group
        from rich.text import Text

        from ringleader.insight.advice.words import count

        rows = sorted_by(rows, self._sort)
        fits = max(height - 5, 1)
        head = Text.assemble(
            ("ringleader top", "bold"),
            f"  {history.address or history.path}  {count(len(rows), 'group')}, by {self._sort}",
        )
        if len(rows) > fits:
            head.append(f", {len(rows) - fits} more below")
        foot = Text("q ends · l lag · r rebalances · m members · n name", style="dim")
        return Group(head, Text(), shown(rows[:fits], Times(now, utc=self._utc)), Text(), foot)


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Keys come without Enter, and are not shown."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read_keys(keys: asyncio.Queue[str]) -> None:
    pressed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    for key in pressed or "q":  # the terminal is gone
        keys.put_nowait(key)


async def _watching(live: _Live, bootstrap: str, file: Path | None, config: Path | None) -> None:
    """Reads what a running watcher writes; without one, watches meanwhile."""
    from ringleader.clients.errors import ClientError
    from ringleader.insight.history import HistoryError

    try:
        async with _history(bootstrap, file, config) as history:
            await live.run(history)
    except (ClientError, HistoryError, OSError) as error:
        _say(error)


def _say(error: Exception) -> NoReturn:
    fail(f"{str(error).rstrip('.')}.")


@asynccontextmanager
async def _history(bootstrap: str, file: Path | None, config: Path | None) -> AsyncIterator[History]:
    import logging

    from ringleader.insight.feed.watcher import Watcher
    from ringleader.insight.history import History, HistoryLockedError

    logging.getLogger("ringleader").addHandler(NOWHERE)
    _, security = security_of(config)
    servers_of(bootstrap)
    watcher = Watcher(bootstrap, file, tls=security.tls, sasl=security.sasl)
    try:
        await watcher.start()
    except HistoryLockedError as error:
        with History.open(error.path, read_only=True) as history:
            yield history
        return
    try:
        with History.open(watcher.path, read_only=True) as history:
            yield history
    finally:
        await watcher.stop()
