"""``ringleader topics``: create, list, describe, delete. Works against any Kafka."""

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
    pair,
    table,
)

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin

app = typer.Typer(
    no_args_is_help=True,
    help="Create, list, describe and delete topics, of Ringleader or of any Kafka.\n\n"
    "Examples:\n\n"
    "  ringleader topics create orders --partitions 6 --config retention.ms=86400000\n\n"
    "  ringleader topics list\n\n"
    "  ringleader topics describe orders --json\n\n"
    "  ringleader topics delete orders\n\n"
    "  ringleader topics list --bootstrap-server broker.example:9093 --command-config client.properties",
)

NameArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", help="The topics.", show_default=False)
]


def _configs(pairs: list[str]) -> dict[str, str]:
    return dict(pair("--config", text, "retention.ms=86400000") for text in pairs)


@app.command("create")
def create(
    topic: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="Partitions. Default: the server's num.partitions."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the topic; may be repeated.")
    ] = None,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Create a topic."""
    configs = _configs(config or [])

    async def question(admin: Admin) -> None:
        await admin.create_topic(topic, partitions if partitions is not None else -1, configs=configs)

    ask(bootstrap_server, question, command_config)
    console().print(f"Created topic {topic}.", markup=False)


@app.command("list")
def list_topics(
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all topics."""

    async def question(admin: Admin) -> list[dict[str, Any]]:
        found = await admin.list_topics()
        return [
            {"topic": one.name, "partitions": len(one.partitions), "internal": one.internal}
            for one in sorted(found, key=lambda one: one.name)
        ]

    rows = ask(bootstrap_server, question, command_config)
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("TOPIC", "PARTITIONS", right=("PARTITIONS",))
    for row in rows:
        shown.add_row(row["topic"], str(row["partitions"]))
    console().print(shown)


@app.command("describe")
def describe(
    topic: NameArgument,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a topic's partitions, where they lead, and how many records each holds."""

    async def question(admin: Admin) -> dict[str, Any]:
        (found,) = await admin.describe_topics([topic])
        places = [(topic, one.partition) for one in found.partitions]
        starts, ends = await admin.start_offsets(places), await admin.end_offsets(places)
        return {
            "topic": found.name,
            "id": found.id.hex(),
            "partitions": [
                {
                    "partition": one.partition,
                    "leader": one.leader,
                    "start": starts[topic, one.partition],
                    "end": ends[topic, one.partition],
                }
                for one in found.partitions
            ],
        }

    found = ask(bootstrap_server, question, command_config)
    if as_json:
        print(json.dumps(found))
        return
    shown = table(
        "PARTITION", "LEADER", "START", "END", "RECORDS", right=("PARTITION", "START", "END", "RECORDS")
    )
    for one in found["partitions"]:
        records = one["end"] - one["start"]
        shown.add_row(*(str(one[name]) for name in ("partition", "leader", "start", "end")), str(records))
    console().print(f"Topic {found['topic']}, id {found['id']}", markup=False)
    console().print(shown)


@app.command("delete")
def delete(
    topics: NamesArgument,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Delete topics and all their records."""

    async def question(admin: Admin) -> None:
        await admin.delete_topics(topics)

    ask(bootstrap_server, question, command_config)
    console().print(f"Deleted {', '.join(topics)}.", markup=False)
