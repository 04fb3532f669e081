"""``ringleader groups``: list, describe, delete. Works against any Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import ask
from ringleader.cli.common import (
    BOOTSTRAP,
    BootstrapOption,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
)

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin

app = typer.Typer(
    no_args_is_help=True,
    help="List, describe and delete consumer groups, of Ringleader or of any Kafka.\n\n"
    "Examples:\n\n"
    "  ringleader groups list\n\n"
    "  ringleader groups describe billing\n\n"
    "  ringleader groups describe billing --json --bootstrap-server broker.example:9092\n\n"
    "  ringleader groups delete billing\n\n"
    "  ringleader groups list --bootstrap-server broker.example:9093 --command-config client.properties",
)

NameArgument = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", show_default=False)]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="GROUP...", help="The groups.", show_default=False)
]
NONE = "-"


@app.command("list")
def list_groups(
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all groups with their states."""

    async def question(admin: Admin) -> list[dict[str, Any]]:
        found = await admin.list_groups()
        return [
            {"group": one.group_id, "state": one.state, "type": one.protocol_type}
            for one in sorted(found, key=lambda one: one.group_id)
        ]

    rows = ask(bootstrap_server, question, command_config)
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("GROUP", "STATE", "TYPE")
    for row in rows:
        shown.add_row(row["group"], row["state"], row["type"] or NONE)
    console().print(shown)


@app.command("describe")
def describe(
    group: NameArgument,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a group's members, what each owns, and how far behind every partition is."""
    found = ask(bootstrap_server, lambda admin: _described(admin, group), command_config)
    if as_json:
        print(json.dumps(found))
        return
    out = console()
    protocol = f", assigned by {found['protocol']}" if found["protocol"] else ""
    out.print(f"Group {found['group']}: {found['state']}{protocol}", markup=False)
    members = table("MEMBER", "CLIENT", "HOST", "PARTITIONS")
    for one in found["members"]:
        members.add_row(one["member"], one["client"], one["host"], _partitions(one["partitions"]))
    if found["members"]:
        out.print()
        out.print(members)
    numbers = ("PARTITION", "COMMITTED", "END", "LAG")
    offsets = table("TOPIC", *numbers, "OWNER", right=numbers)
    for one in found["offsets"]:
        figures = ("partition", "committed", "end", "lag")
        offsets.add_row(one["topic"], *(_number(one[name]) for name in figures), one["owner"] or NONE)
    if found["offsets"]:
        out.print()
        out.print(offsets)


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)


def _partitions(owned: dict[str, list[int]]) -> str:
    """``orders: 0 2, bills: 1``."""
    return ", ".join(f"{topic}: {' '.join(map(str, of))}" for topic, of in sorted(owned.items())) or NONE


async def _described(admin: Admin, group: str) -> dict[str, Any]:
    (found,) = await admin.describe_groups([group])
    if found.state == "Dead":
        fail(f"There is no group {group}.")
    members: list[dict[str, Any]] = [
        {
            "member": one.member_id,
            "client": one.client_id,
            "host": one.client_host,
            "partitions": dict(one.assignment),
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
        "members": members,
        "offsets": offsets,
    }


@app.command("delete")
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
