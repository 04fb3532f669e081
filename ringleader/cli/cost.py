"""``ringleader cost``: the cost of a time, of a deploy for example, to a group; as a gate for CI."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

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
)
from ringleader.cli.looking_back import (
    ClusterOption,
    GroupArgument,
    HistoryOption,
    ServerOption,
    Times,
    UtcOption,
    View,
    Window,
    plain,
    view_of,
)
from ringleader.host.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

    from ringleader.insight.advice.cost import Cost
    from ringleader.insight.advice.deploys import Deploy
    from ringleader.insight.advice.findings import Saving

ABOVE_LIMIT = 3
"""Exit code: it cost more than a limit allows."""
HELP = (
    "Show what a time cost a group: rebalances by cause, partition-seconds without an owner, records that"
    " were read again; and by pod, which is host, client id or instance id.\n\n"
    "With limits (--max-...) it is a gate for CI. Exit codes: 0 all within the limits; 3 more than a limit"
    " allows; 1 unknown, for example because the history does not cover the time; 2 wrong"
    " input.\n\n"
    "Examples:\n\n"
    "  ringleader cost billing --from 30m\n\n"
    "  ringleader cost billing --from 2026-01-31T12:00Z --to 2026-01-31T12:30Z --json\n\n"
    "  ringleader cost billing --from 15m --max-rebalances 2 --max-unowned-seconds 60\n\n"
    "  ringleader cost billing --deploy --comment --max-rebalances 2"
)
REPORT_HELP = f"Deprecated: it is called cost now.\n\n{HELP}"
PODS_MAX = 20
"""That are shown; JSON has all."""


def cost(
    ctx: typer.Context,
    group: GroupArgument,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Start time: 30m, or 2026-01-31T12:00Z (UTC).")
    ] = "24h",
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="End time, in the same format. Default: now.", show_default=False
        ),
    ] = None,
    max_rebalances: Annotated[
        int | None,
        typer.Option(
            min=0, help="Allowed number of rebalances; more end with exit code 3.", show_default=False
        ),
    ] = None,
    max_unowned_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Allowed partition-seconds without an owner.", show_default=False),
    ] = None,
    max_read_again: Annotated[
        int | None,
        typer.Option(min=0, help="Allowed number of records that were read again.", show_default=False),
    ] = None,
    max_rebalance_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Allowed duration of the longest rebalance.", show_default=False),
    ] = None,
    deploy: Annotated[
        bool,
        typer.Option(
            "--deploy", help="The cost of the last deploy in that time, marked or recognised, instead of all."
        ),
    ] = False,
    comment: Annotated[
        bool,
        typer.Option(
            "--comment",
            help="Print Markdown for a pull request, with the cost that static ids would have had.",
        ),
    ] = False,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
) -> None:
    """See `HELP`."""
    from ringleader.insight.advice.cost import cost_of
    from ringleader.insight.advice.deploys import with_static_ids

    if comment and as_json:
        fail("--comment is text: leave --json out.", WRONG_INPUT)
    limits = (max_rebalances, max_unowned_seconds, max_read_again, max_rebalance_seconds)
    with view_of(ctx, since="from_", until="to") as view:
        during = _last_deploy(view) if deploy else None
        if during is not None:
            until_ms = view.window.until_ms if during.until_ms is None else during.until_ms
            view = replace(view, window=Window(during.since_ms, until_ms), since_given=True)
        if any(one is not None for one in limits):
            _must_cover(view)
        else:
            view.warn_of_gaps()
        past = view.past(commits_ms=view.window.until_ms - view.window.since_ms)
    found = cost_of(past)
    above = _above(found, *limits)
    if as_json:
        print(json.dumps({**plain(found), "above": above, "ok": not above}))
    elif comment:
        print(_comment(found, during, with_static_ids(past), above, view.times))
    else:
        _show(found, view.times)
    for sentence in above:
        complain(sentence)
    if above:
        raise typer.Exit(ABOVE_LIMIT)
    if max_unowned_seconds is not None and found.unowned_unknown:
        fail(
            f"It is not known whether the limit is kept: of {found.unowned_unknown} of {found.rebalances}"
            " rebalances it is not known how long partitions had no owner."
        )


def _last_deploy(view: View) -> Deploy:
    from ringleader.insight.advice.deploys import deploys, marks_of

    since_ms, until_ms = view.window.since_ms, view.window.until_ms
    found = deploys(view.past(), marks_of(view.history, view.group, since_ms, until_ms))
    if not found:
        fail(
            f"No deploy of {view.group} since {view.times.point(since_ms)} was marked or recognised:"
            " `ringleader deploy begin` marks one."
        )
    return found[-1]


def _comment(cost: Cost, during: Deploy | None, static: Saving | None, above: list[str], times: Times) -> str:
    """Markdown: one sentence, causes, and the limits that were exceeded."""
    from ringleader.insight.advice.words import count, partition_time, short

    span = f"from {times.point(cost.since_ms)} to {times.point(cost.until_ms)}"
    what = span if during is None else f"the deploy {_code(during.label)} {span}".replace("  ", " ")
    line = f"**{_code(cost.group)}**: {what} cost {partition_time(cost.unowned_ms)} without an owner,"
    line += f" {count(cost.rebalances, 'rebalance')}"
    if static is not None and static.claimed:
        line += f"; with static ids {static.rebalances} ({static.confidence}, by replay of the record)"
    lines = [f"{line}."]
    if cost.by_cause:
        lines += ["", "| Cause | Rebalances | Without owner |", "|---|---|---|"]
        lines += [
            f"| {cause} | {number} | {short(unowned_ms)} |" for cause, number, unowned_ms in cost.by_cause
        ]
    if above:
        lines += ["", *(f"- **Above the limit:** {sentence}" for sentence in above)]
    return "\n".join(lines)


def _code(text: str) -> str:
    """Names and labels are any text: as code they are no Markdown."""
    return f"`{printable(text).replace('`', chr(39))}`" if text else ""


@wraps(cost)
def report(*arguments: Any, **options: Any) -> None:
    """The deprecated name: `python -m ringleader.report` is the report on a group's topics."""
    complain("`ringleader report` is deprecated: it is called `ringleader cost` now.")
    cost(*arguments, **options)


def _must_cover(view: View) -> None:
    """A gate does not pass for a time that no watcher saw."""
    oldest_ms, newest_ms, times = view.history.oldest_ms, view.history.newest_ms, view.times
    since_ms, until_ms = view.window.since_ms, view.window.until_ms
    if oldest_ms is None or oldest_ms > since_ms:
        fail(
            f"The limits cannot be judged: the history begins {times.point(oldest_ms)}, after"
            f" {times.point(since_ms)}. `ringleader watch` has to run before the deploy."
        )
    if newest_ms is None or newest_ms < until_ms - 60_000:
        fail(f"The limits cannot be judged: the history ends {times.point(newest_ms)}.")


def _above(
    cost: Cost,
    max_rebalances: int | None,
    max_unowned_s: float | None,
    max_read_again: int | None,
    max_rebalance_s: float | None,
) -> list[str]:
    found = []
    if max_rebalances is not None and cost.rebalances > max_rebalances:
        found.append(f"{cost.rebalances} rebalances are more than --max-rebalances {max_rebalances}.")
    if max_unowned_s is not None and cost.unowned_ms > max_unowned_s * 1000:
        found.append(
            f"{cost.unowned_ms / 1000:.1f} partition-seconds without an owner are more than"
            f" --max-unowned-seconds {max_unowned_s:g}."
        )
    if max_read_again is not None and max(cost.read_again, cost.went_back) > max_read_again:
        found.append(
            f"{max(cost.read_again, cost.went_back)} records read again are more than"
            f" --max-read-again {max_read_again}."
        )
    if max_rebalance_s is not None and (cost.longest_ms or 0) > max_rebalance_s * 1000:
        found.append(
            f"The longest rebalance took {(cost.longest_ms or 0) / 1000:.1f} s, more than"
            f" --max-rebalance-seconds {max_rebalance_s:g}."
        )
    return found


def _show(cost: Cost, times: Times) -> None:
    from ringleader.insight.advice.words import count, length, partition_time, short

    out = console()
    span = f"from {times.point(cost.since_ms)} to {times.point(cost.until_ms)}"
    if not cost.rebalances:
        out.print(f"[bold]{cost.group}[/bold] {span}: no rebalance.")
        return
    out.print(f"[bold]{cost.group}[/bold] {span}: {count(cost.rebalances, 'rebalance')}")
    unknown = f" (not known of {cost.unowned_unknown})" if cost.unowned_unknown else ""
    lines = [
        f"{partition_time(cost.unowned_ms)} without an owner{unknown}",
        f"{count(cost.moved, 'partition')} changed hands",
        f"longest rebalance {NONE if cost.longest_ms is None else length(cost.longest_ms)}",
    ]
    if cost.read_again or cost.went_back:
        sure = f", {cost.went_back:,} for sure" if cost.went_back else ""
        lines.append(f"up to {max(cost.read_again, cost.went_back):,} records read again{sure}")
    for line in lines:
        out.print(f"  {line}")
    causes = table("CAUSE", "REBALANCES", "UNOWNED", right=("REBALANCES", "UNOWNED"))
    for cause, number, unowned_ms in cost.by_cause:
        causes.add_row(cause, str(number), short(unowned_ms))
    out.print()
    out.print(causes)
    if not cost.pods:
        return
    out.print()
    out.print(_pods(cost))
    if len(cost.pods) > PODS_MAX:
        out.print(f"and {len(cost.pods) - PODS_MAX} more; --json has all", style="dim")


def _pods(cost: Cost) -> Table:
    from ringleader.insight.advice.words import short

    numbers = ("CAUSED", "CAME", "UNOWNED", "HELD UP", "AGAIN")
    shown = table("POD", "WENT", *numbers, right=numbers)
    for one in cost.pods[:PODS_MAX]:
        went = ", ".join(f"{n} × {why}" if n > 1 else str(why) for why, n in one.gone.most_common())
        shown.add_row(
            one.name,
            went or NONE,
            str(one.caused),
            str(one.joined),
            short(one.unowned_ms) if one.unowned_ms else NONE,
            short(one.held_up_ms) if one.held_up_ms else NONE,
            f"{one.read_again:,}" if one.read_again else NONE,
        )
    return shown
