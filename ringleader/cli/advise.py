"""``ringleader advise``: the changes that a group needs, and what they would have saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.common import WRONG_INPUT, CommandConfigOption, JsonOption, console, fail, utf8
from ringleader.cli.explain import say_change, say_saving
from ringleader.cli.flags import command_with
from ringleader.cli.insight_settings import ConfigOption, flags_of_advice, load_or_fail
from ringleader.cli.looking_back import (
    ClusterOption,
    HistoryOption,
    ServerOption,
    SinceOption,
    UntilOption,
    UtcOption,
    doubt,
    plain,
    say,
    view_of,
)
from ringleader.cli.move import advise_move

if TYPE_CHECKING:
    from rich.console import Console

    from ringleader.insight.advice import Finding

HELP = (
    "Tell what is wrong with a group, what to change, and what that would have saved.\n\n"
    "A saving is no estimate by formula: the recorded history is played again by Ringleader's own group"
    " machine"
    " and assignors, once as it was and once with the change. Where the first does not come out as it was"
    " recorded, no figure is claimed.\n\n"
    "With --protocol consumer: whether groups can move to the consumer protocol (KIP-848), what stands in the"
    " way, what changes, and what the recorded rebalances would have cost there. Without GROUP: all"
    " groups.\n\n"
    "Examples:\n\n"
    "  ringleader advise billing\n\n"
    "  ringleader advise billing --since 7d --bootstrap-server prod:9092\n\n"
    "  ringleader advise billing --advice-slow-leader-ms 500\n\n"
    "  ringleader advise billing --json | jq -r '.findings[].pattern'\n\n"
    "  ringleader advise --protocol consumer --bootstrap-server prod:9092"
)


def advise() -> None:
    """See `HELP`. Its parameters are those of `_advise_with`, see `COMMAND`."""


def _advise_with(
    ctx: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="[GROUP]",
            parser=utf8,
            help="Group; may be left out with --protocol.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="PROTOCOL",
            help="Advise on a move to this protocol instead: consumer (KIP-848).",
            show_default=False,
        ),
    ] = None,
    since: SinceOption = "24h",
    until: UntilOption = None,
    replay: Annotated[
        bool,
        typer.Option("--replay/--no-replay", help="Replay the history to estimate the savings."),
    ] = True,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    **flags: Any,
) -> None:
    if protocol is not None:
        if protocol != "consumer":
            fail(f"--protocol: it is consumer, not {protocol!r}.", WRONG_INPUT)
        advise_move(ctx, group)
        return
    if group is None:
        fail("Name a group; without one there is advice with --protocol consumer only.", WRONG_INPUT)
    from ringleader.insight.advice import advice_json
    from ringleader.insight.advice import advise as advised
    from ringleader.insight.advice.past import PARTS_MAX

    thresholds = load_or_fail(flags, config).thresholds
    with view_of(ctx) as view:
        view.warn_of_gaps()
        past = view.past(parts_max=PARTS_MAX)
    found = advised(past, thresholds, replay=replay)
    if as_json:
        print(json.dumps(advice_json(found, plain)))
        return
    out = console()
    looked_at = "; ".join(found.looked_at)
    if found.healthy:
        out.print(f"[green]Healthy[/green]: nothing to change in {group}. Looked at: {looked_at}.")
        return
    for number, one in enumerate(found.findings, 1):
        _say(out, number, one)
    out.print(f"Looked at: {looked_at}.", style="dim", markup=False)


COMMAND = command_with("advise", HELP, _advise_with, flags_of_advice)
"""The class of the command `advise`."""


def _say(out: Console, number: int, one: Finding) -> None:
    out.print(f"[bold]{number}. {one.pattern[0].upper()}{one.pattern[1:]}[/bold]{doubt(one.confidence)}")
    say(out, one.text)
    for sentence in one.evidence:
        say(out, sentence, style="dim")
    for change in one.changes:
        say_change(out, change)
    say_saving(out, one.saving, one.no_saving)
    out.print()
