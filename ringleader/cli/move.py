"""``ringleader advise --protocol consumer``: whether groups can move to the consumer protocol (KIP-848)."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

import typer

from ringleader.cli.asking import NOWHERE, security_of
from ringleader.cli.common import console, fail
from ringleader.cli.explain import say_change, say_saving
from ringleader.cli.looking_back import (
    Times,
    View,
    cluster_of,
    given,
    history_of,
    must_know,
    plain,
    say,
    window_of,
)
from ringleader.host.clock import wall_ms
from ringleader.host.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from ringleader.insight.advice.consumer_protocol import Move
    from ringleader.insight.feed.present import Present

_STYLES = {"online": "green", "speaks it": "green", "without members": "yellow", "no": "red"}


def advise_move(ctx: typer.Context, group: str | None) -> None:
    """Print the advice for one group, or for all of the cluster."""
    from ringleader.insight.advice import Past
    from ringleader.insight.advice.consumer_protocol import Server, consumer_protocol, move_json

    params = ctx.params
    now = wall_ms()
    window = window_of(params["since"], params["until"], now)
    with history_of(ctx) as history:
        seen = _present(ctx, group)
        listed = {} if seen is None else seen.listed
        if group is not None and group not in listed:
            must_know(history, group)
        known = {one.group: one for one in history.groups()}
        wanted = [group] if group is not None else sorted({*known, *listed})
        view = View(history, group or "", window, Times(now, utc=params["utc"]), given(ctx, "since"))
        view.warn_of_gaps()
        moves: list[Move] = []
        for name in wanted:
            kind = listed[name].group_type if name in listed else ""
            if group is None and kind in ("share", "streams"):
                continue
            past = Past.read(history, name, window.since_ms, window.until_ms)
            server = Server() if seen is None else seen.server
            described = None if seen is None else seen.groups.get(name)
            moves.append(
                consumer_protocol(name, past, server, described, group_type=kind, replay=params["replay"])
            )
    if params["as_json"]:
        print(json.dumps({"protocol": "consumer", "groups": [move_json(one, plain) for one in moves]}))
        return
    out = console()
    if not moves:
        out.print("There is no group of consumers.")
    for one in moves:
        _say(out, one)


def _present(ctx: typer.Context, group: str | None) -> Present | None:
    """The cluster as it is now; None: only a history file is looked at. An error ends the command with one
    sentence."""
    from ringleader.clients.errors import ClientError
    from ringleader.insight.feed.present import present

    bootstrap = cluster_of(ctx)
    if bootstrap is None:
        return None
    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    _, security = security_of(ctx.params["command_config"])
    try:
        return asyncio.run(present(bootstrap, group, tls=security.tls, sasl=security.sasl))
    except (ClientError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")


def _say(out: Console, one: Move) -> None:
    out.print(f"[bold]{printable(one.group)}[/bold]: [{_STYLES[one.way]}]{one.text}[/{_STYLES[one.way]}]")
    for point in one.points:
        members = f" ({', '.join(map(printable, point.members))})" if point.members else ""
        say(out, f"{point.weight[0].upper()}{point.weight[1:]}: {point.text}{members}", "•")
        for change in point.changes:
            say_change(out, change)
    say_saving(out, one.saving, one.no_saving)
    out.print()
