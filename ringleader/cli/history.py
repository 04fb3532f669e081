"""``ringleader history``: the history of a group, one line for each rebalance."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.common import (
    NONE,
    WRONG_INPUT,
    CommandConfigOption,
    JsonOption,
    complain,
    console,
    fail,
    table,
    utf8,
)
from ringleader.cli.history_files import export_history
from ringleader.cli.looking_back import (
    ClusterOption,
    HistoryOption,
    ServerOption,
    SinceOption,
    Times,
    UntilOption,
    UtcOption,
    doubt,
    nothing_in,
    plain,
    view_of,
)
from ringleader.insight.plain import FORMAT, entry

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ringleader.insight.advice.deploys import Deploy
    from ringleader.insight.model import Rebalance

HELP = (
    "Show what happened to a group: one line for each rebalance, with its cause.\n\n"
    "The causes in a Kafka cluster are concluded from what it wrote down; those that are not certain say how"
    " sure they are. --evidence shows what tells it.\n\n"
    "Examples:\n\n"
    "  ringleader history billing\n\n"
    "  ringleader history billing --since 2h --evidence --bootstrap-server prod:9092\n\n"
    "  ringleader history billing --since 7d --json | jq -r '.rebalances[].cause' | sort | uniq -c\n\n"
    "  ringleader history billing --history prod.sqlite --since 2026-01-31T03:00 --until 2026-01-31T04:00\n\n"
    "  ringleader history --since 7d --export parquet -o out/history"
)
WIDE = 118
"""A terminal so wide has room for the three phases."""


LimitOption = Annotated[
    int,
    typer.Option(min=1, max=100_000, help="Largest number of rebalances to show; the last ones are shown."),
]
EvidenceOption = Annotated[bool, typer.Option("--evidence", help="Show the evidence for each cause, too.")]


def history(
    ctx: typer.Context,
    group: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GROUP]...",
            parser=utf8,
            help="Group; with --export any number of them, or none for all.",
            show_default=False,
        ),
    ] = None,
    since: SinceOption = "24h",
    until: UntilOption = None,
    limit: LimitOption = 100,
    evidence: EvidenceOption = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Write files with columns into the directory --output instead: parquet.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Directory for --export.", show_default=False),
    ] = None,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
) -> None:
    """See `HELP`."""
    groups = group or []
    if export is not None:
        export_history(ctx, groups, export, output)
    elif output is not None:
        fail("--output is for --export.", WRONG_INPUT)
    elif len(groups) != 1:
        fail("Name one group; --export takes several, or none for all.", WRONG_INPUT)
    else:
        _show(ctx, groups[0], limit, evidence=evidence, as_json=as_json)


def _show(ctx: typer.Context, group: str, limit: int, *, evidence: bool, as_json: bool) -> None:
    from ringleader.insight.advice.deploys import deploys as deploys_of
    from ringleader.insight.advice.deploys import marks_of

    with view_of(ctx, group) as view:
        past, window, times = view.history, view.window, view.times
        between = {"since_ms": window.since_ms, "until_ms": window.until_ms}
        found = past.rebalances(group, **between, limit=limit + 1, newest_first=True)
        more, found = len(found) > limit, sorted(found[:limit], key=lambda one: one.at_ms)
        events = [one for one in past.events(group, **between) if not more or one.at_ms >= found[0].at_ms]
        started = deploys_of(view.past(), marks_of(past, group, window.since_ms, window.until_ms))
        if as_json:
            print(
                json.dumps(
                    {
                        "format": FORMAT,
                        "group": group,
                        **plain(window),
                        "more": more,
                        "rebalances": [entry(one) for one in found],
                        "events": [entry(one) for one in events],
                        "deploys": [plain(one) for one in started],
                    }
                )
            )
            return
        if not found and not events and not started:
            complain(nothing_in(past, group, window, times))
            return
    # The last report of a client is no event of the group: `explain` has it beside its member.
    events = [one for one in events if one.kind != "client told"]
    out = console()
    if more:
        complain(f"there are more than {limit}: the last {limit} are shown; --limit shows more.")
    wide = out.width >= WIDE
    if evidence:
        for one in found:
            out.print(_table([one], times, wide))
            for sentence in one.evidence:
                out.print(f"  {sentence}", style="dim", markup=False)
    elif found:
        out.print(_table(found, times, wide))
    if events:
        out.print("\nBesides:")
    for event in events:
        out.print(f"  {times.point(event.at_ms)}, {event.kind}: {event.text}", markup=False)
    if started:
        out.print("\nDeploys:")
    for each in started:
        out.print(f"  {_deploy(each, times)}: {each.text}", markup=False)
    if found:
        _sum_up(out, found, times.point(window.since_ms), marks=not wide)


def _deploy(one: Deploy, times: Times) -> str:
    ends = ", going on" if one.until_ms is None else f" to {times.point(one.until_ms)}"
    return f"{times.point(one.since_ms)}{ends}, {named(one)}"


def named(one: Deploy) -> str:
    """The label of a deploy, or what there is instead."""
    return one.label or ("marked" if one.marked else "recognised by replaced members")


def _sum_up(out: Console, found: list[Rebalance], since: str, *, marks: bool) -> None:
    from ringleader.insight.advice.words import count, partition_time

    known = [one.unowned_ms for one in found if one.unowned_ms is not None]
    unowned = f", {partition_time(sum(known))} without an owner" if known else ""
    out.print(f"\n{count(len(found), 'rebalance')} since {since}{unowned}.", markup=False)
    used = [f"{mark} {sure}" for sure, mark in _MARKS.items() if any(o.confidence == sure for o in found)]
    if used and marks:
        out.print(f"Causes: {', '.join(used)}.", style="dim")


def _table(found: list[Rebalance], times: Times, wide: bool) -> Table:
    phases = ("JOIN", "LEADER", "SYNC") if wide else ("TOOK",)
    numbers = (*phases, "MOVED", "UNOWNED")
    shown = table("WHEN" if wide or times.utc else "AGO", "CAUSE", "WHO", "MEMBERS", *numbers, right=numbers)
    for column in shown.columns:
        column.no_wrap = column.header not in ("CAUSE", "WHO")
    for one in found:
        if wide:
            took = [_length(one.join_ms), _length(one.leader_ms), _length(one.sync_ms)]
        else:
            took = [_length(one.duration_ms)]
        before, after = len(one.before), len(one.members)
        when = times.point(one.at_ms)
        doubted = doubt(one.confidence) if wide else _MARKS.get(one.confidence, "")
        shown.add_row(
            when if wide else when.removesuffix(" ago"),
            f"{one.cause}{doubted}",
            cause_text(one, hosts=wide),
            str(after) if before == after else f"{before}→{after}",
            *took,
            str(len(one.moves)),
            _length(one.unowned_ms),
        )
    return shown


_MARKS = {"likely": "?", "possible": "??"}
"""Where there is little room."""


def cause_text(one: Rebalance, *, hosts: bool = True) -> str:
    """The members that caused it: a few names; without `hosts` client ids alone, as far as they tell members
    apart."""
    members = (*one.before, *one.members)
    known = {member.member_id: member.name for member in members}
    if not hosts:
        places = {(member.client_id, member.host) for member in members}
        clients = Counter(client for client, _ in places)
        known |= {
            member.member_id: member.client_id
            for member in members
            if member.instance_id is None and clients[member.client_id] == 1
        }
    named = list(dict.fromkeys(known.get(member_id, member_id) for member_id in one.cause_members))
    text = ", ".join(named) if len(named) < 3 else f"{named[0]} and {len(named) - 1} more"
    if one.reason and hosts:
        text += f" ({one.reason})"
    return text or NONE


def _length(ms: int | None) -> str:
    """With one unit: a column is narrow."""
    from ringleader.insight.advice.words import short

    return NONE if ms is None else short(ms)
