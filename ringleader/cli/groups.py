"""``ringleader groups``: list, describe, reset, import, redrive, delete. Works against any Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import ask
from ringleader.cli.common import (
    BOOTSTRAP,
    NONE,
    BootstrapOption,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
    utf8,
)
from ringleader.cli.import_groups import HELP as IMPORT_HELP
from ringleader.cli.import_groups import import_groups
from ringleader.cli.looking_back import Times
from ringleader.cli.redrive import HELP as REDRIVE_HELP
from ringleader.cli.redrive import redrive
from ringleader.cli.reset import HELP as RESET_HELP
from ringleader.cli.reset import reset
from ringleader.cli.scope import parse_scope
from ringleader.host.clock import wall_ms

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ringleader.clients.admin import Admin
    from ringleader.clients.model import TopicPartition
    from ringleader.insight.model import Event

app = typer.Typer(
    no_args_is_help=True,
    help="List, describe, reset, import and delete consumer groups, of Ringleader or of any Kafka; write "
    "dead letters back.\n\n"
    "Examples:\n\n"
    "  ringleader groups list\n\n"
    "  ringleader groups describe billing\n\n"
    "  ringleader groups describe billing --json --bootstrap-server broker.example:9092\n\n"
    "  ringleader groups reset billing --topic orders --to-earliest\n\n"
    "  ringleader groups delete billing\n\n"
    "  ringleader groups list --bootstrap-server broker.example:9093 --command-config client.properties",
)

LIST_HELP = (
    "List all groups with their states and types.\n\n"
    "Examples:\n\n"
    "  ringleader groups list\n\n"
    "  ringleader groups list --json | jq -r '.[].group'"
)
DESCRIBE_HELP = (
    "Show a group's members, what each owns, and how far behind every partition is; with --history what their"
    " clients told of themselves (KIP-714), and when.\n\n"
    "Examples:\n\n"
    "  ringleader groups describe billing\n\n"
    "  ringleader groups describe billing --history prod.sqlite\n\n"
    "  ringleader groups describe billing --json | jq '[.offsets[].lag] | add'"
)
DELETE_HELP = (
    "Delete groups without members, and their committed offsets.\n\n"
    "Examples:\n\n"
    "  ringleader groups delete billing\n\n"
    "  ringleader groups delete billing shipping --bootstrap-server broker.example:9092"
)
DELETE_OFFSETS_HELP = (
    "Forget a group's committed offsets of some topics. Its members go on from auto.offset.reset there, when "
    "they start again; refused for topics that they read now.\n\n"
    "Examples:\n\n"
    "  ringleader groups delete-offsets billing --topic old-orders\n\n"
    "  ringleader groups delete-offsets billing --topic orders:0,1 --topic bills"
)

NameArgument = Annotated[str, typer.Argument(metavar="GROUP", parser=utf8, help="Group.", show_default=False)]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="GROUP...", parser=utf8, help="Groups.", show_default=False)
]


@app.command("list", help=LIST_HELP)
def list_groups(
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all groups with their states."""

    async def question(admin: Admin) -> list[dict[str, Any]]:
        found = await admin.list_groups()
        return [
            {
                "group": one.group_id,
                "state": one.state,
                "type": one.protocol_type,
                "group_type": one.group_type,
            }
            for one in sorted(found, key=lambda one: one.group_id)
        ]

    rows = ask(bootstrap_server, question, command_config)
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("GROUP", "STATE", "TYPE", "GROUP TYPE")
    for row in rows:
        shown.add_row(row["group"], row["state"], row["type"] or NONE, row["group_type"] or NONE)
    console().print(shown)


@app.command("describe", help=DESCRIBE_HELP)
def describe(
    group: NameArgument,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="History file of a watcher of this cluster, to show what clients reported about themselves.",
            show_default=False,
        ),
    ] = None,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a group's members, what each owns, and how far behind every partition is."""
    reports = {} if history is None else _reports(history, group)
    found = ask(bootstrap_server, lambda admin: _described(admin, group), command_config)
    for one in found.get("members", ()):
        report = reports.get(one["member"])
        one["told"], one["told_ms"] = (report.text, report.at_ms) if report is not None else (None, None)
    if as_json:
        print(json.dumps(found))
        return
    out = console()
    if found["group_type"] == "share":
        _show_share(out, found)
        return
    protocol = f", assigned by {found['protocol']}" if found["protocol"] else ""
    epochs = ""
    if found["group_type"] == "consumer":
        epochs = f", consumer protocol, group epoch {found['group_epoch']}"
        if found["assignment_epoch"] != found["group_epoch"]:
            epochs += f", assigned for epoch {found['assignment_epoch']}"
    out.print(f"Group {found['group']}: {found['state']}{protocol}{epochs}", markup=False)
    if found["members"]:
        out.print()
        out.print(_members(found))
        times = Times(wall_ms(), utc=False)
        for one in found["members"]:
            if one["told"] is not None:
                out.print(f"{times.point(one['told_ms'])}: {one['told']}", style="dim", markup=False)
    numbers = ("PARTITION", "COMMITTED", "END", "LAG")
    offsets = table("TOPIC", *numbers, "OWNER", right=numbers)
    for one in found["offsets"]:
        figures = ("partition", "committed", "end", "lag")
        offsets.add_row(one["topic"], *(_number(one[name]) for name in figures), one["owner"] or NONE)
    if found["offsets"]:
        out.print()
        out.print(offsets)


def _reports(path: Path, group: str) -> dict[str, Event]:
    """The reports of the group's clients, by member id; ends the command for a file that is no history."""
    from ringleader.insight.history import History, HistoryError

    try:
        with History.open(path, read_only=True) as history:
            return history.reports(group)
    except HistoryError as error:
        fail(f"{error}.")


def _show_share(out: Console, found: dict[str, Any]) -> None:
    out.print(f"Share group {found['group']}: {found['state']}", markup=False)
    numbers = ("PARTITION", "START", "END", "LAG")
    shown = table("TOPIC", *numbers, right=numbers)
    for one in found["offsets"]:
        shown.add_row(one["topic"], *(_number(one[name.lower()]) for name in numbers))
    if found["offsets"]:
        out.print()
        out.print(shown)


def _members(found: dict[str, Any]) -> Table:
    columns = {"MEMBER": "member", "CLIENT": "client", "HOST": "host"}
    if found["group_type"] == "consumer":
        optional = {"INSTANCE": "instance", "RACK": "rack", "REGEX": "regex"}
        columns |= {
            title: name for title, name in optional.items() if any(one[name] for one in found["members"])
        }
        columns |= {"EPOCH": "epoch", "PROTOCOL": "member_type", "TOPICS": "topics"}
        columns |= {"PARTITIONS": "partitions", "TARGET": "target"}
    else:
        columns["PARTITIONS"] = "partitions"
    shown = table(*columns)
    for one in found["members"]:
        shown.add_row(*(_cell(one[name]) for name in columns.values()))
    return shown


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return _partitions(value)
    if isinstance(value, list):
        return ", ".join(value) or NONE
    return NONE if value is None else str(value)


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)


def _partitions(owned: dict[str, list[int]]) -> str:
    """``orders: 0 2, bills: 1``."""
    return ", ".join(f"{topic}: {' '.join(map(str, of))}" for topic, of in sorted(owned.items())) or NONE


async def _share_described(admin: Admin, group: str, state: str) -> dict[str, Any]:
    """A share group (KIP-932): records are done in any order, so it has a start and a lag for each
    partition, and no committed offset."""
    found = await admin.share_lag(group)
    ends = await admin.end_offsets(found)
    offsets = [
        {"topic": tp[0], "partition": tp[1], "start": one.start, "end": ends[tp], "lag": one.lag}
        for tp, one in sorted(found.items())
    ]
    return {"group": group, "state": state, "group_type": "share", "offsets": offsets}


async def _described(admin: Admin, group: str) -> dict[str, Any]:
    from ringleader.clients.offsets.reset_plan import listed, other_type

    (found,) = await admin.describe_groups([group])
    if found.state == "Dead":
        seen = await listed(admin, group)
        if seen is not None and seen.group_type == "share":
            return await _share_described(admin, group, seen.state)
        fail(other_type(seen) or f"There is no group {group}.")
    members: list[dict[str, Any]] = [
        {
            "member": one.member_id,
            "client": one.client_id,
            "host": one.client_host,
            "instance": one.group_instance_id,
            "rack": one.rack_id,
            "epoch": one.member_epoch,
            "member_type": one.member_type,
            "topics": list(one.topics),
            "regex": one.subscribed_topic_regex,
            "partitions": dict(one.assignment),
            "target": None if one.target_assignment is None else dict(one.target_assignment),
        }
        for one in found.members
    ]
    owner = {
        (topic, partition): one.client_id
        for one in found.members
        for topic, of in one.assignment.items()
        for partition in of
    }
    offsets = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "committed": one.committed,
            "end": one.end,
            "lag": one.lag,
            "owner": owner.get((one.topic, one.partition)),
        }
        for one in await admin.lag(group)
    ]
    return {
        "group": found.group_id,
        "state": found.state,
        "protocol": found.protocol,
        "group_type": found.group_type,
        "group_epoch": found.group_epoch,
        "assignment_epoch": found.assignment_epoch,
        "members": members,
        "offsets": offsets,
    }


app.command("reset", help=RESET_HELP)(reset)
app.command("import", help=IMPORT_HELP)(import_groups)
app.command("redrive", help=REDRIVE_HELP)(redrive)


@app.command("delete-offsets", help=DELETE_OFFSETS_HELP)
def delete_offsets(
    group: NameArgument,
    topic: Annotated[
        list[str],
        typer.Option(
            metavar="TOPIC[:0,1]", parser=utf8, help="Topic, optionally with partitions; may be repeated."
        ),
    ],
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Forget a group's committed offsets of some topics."""
    scope = parse_scope(topic)

    async def question(admin: Admin) -> list[TopicPartition]:
        committed = await admin.group_offsets(group)
        places = [
            (name, number)
            for name, number in sorted(committed)
            if name in scope and ((numbers := scope[name]) is None or number in numbers)
        ]
        if not places:
            fail(f"Group {group} has no committed offset of {', '.join(topic)}.")
        await admin.delete_group_offsets(group, places)
        return places

    places = ask(bootstrap_server, question, command_config)
    names = ", ".join(f"{topic}-{partition}" for topic, partition in places)
    print(f"Group {group} has no offsets of {names} any more.")


@app.command("delete", help=DELETE_HELP)
def delete(
    groups: NamesArgument,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Delete groups without members, and their committed offsets."""

    async def question(admin: Admin) -> None:
        await admin.delete_groups(groups)

    ask(bootstrap_server, question, command_config)
    console().print(f"Deleted {', '.join(groups)}.", markup=False)
