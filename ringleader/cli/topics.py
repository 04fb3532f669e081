"""``ringleader topics``: create, list, describe, alter, delete. Works against any Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import ask
from ringleader.cli.common import (
    BOOTSTRAP,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    JsonOption,
    complain,
    console,
    fail,
    pair,
    table,
    utf8,
)

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin

app = typer.Typer(
    no_args_is_help=True,
    help="Create, list, describe, alter and delete topics, of Ringleader or of any Kafka.\n\n"
    "Examples:\n\n"
    "  ringleader topics create orders --partitions 6 --config retention.ms=86400000\n\n"
    "  ringleader topics list\n\n"
    "  ringleader topics describe orders --json\n\n"
    "  ringleader topics alter orders --partitions 12 --delete-config retention.ms\n\n"
    "  ringleader topics delete orders\n\n"
    "  ringleader topics list --bootstrap-server broker.example:9093 --command-config client.properties",
)

CREATE_HELP = (
    "Create a topic.\n\n"
    "Examples:\n\n"
    "  ringleader topics create orders --partitions 6\n\n"
    "  ringleader topics create prices --config cleanup.policy=compact --config segment.ms=3600000"
)
LIST_HELP = (
    "List all topics, with how many partitions each has.\n\n"
    "Examples:\n\n"
    "  ringleader topics list\n\n"
    "  ringleader topics list --json | jq -r '.[].topic'"
)
DESCRIBE_HELP = (
    "Show a topic's partitions, where they lead, how many records each holds, and the settings that are "
    "not the defaults.\n\n"
    "Examples:\n\n"
    "  ringleader topics describe orders\n\n"
    "  ringleader topics describe orders --json | jq .configs"
)
DELETE_HELP = (
    "Delete topics and all their records. There is no way back.\n\n"
    "Examples:\n\n"
    "  ringleader topics delete orders\n\n"
    "  ringleader topics delete orders bills --bootstrap-server broker.example:9092"
)
ALTER_HELP = (
    "Change a topic's settings, or give it more partitions. What is not named stays as it is.\n\n"
    "More partitions mean that keys go elsewhere from then on; there is no way back to fewer.\n\n"
    "Examples:\n\n"
    "  ringleader topics alter orders --config retention.ms=86400000 --config cleanup.policy=compact\n\n"
    "  ringleader topics alter orders --delete-config retention.ms\n\n"
    "  ringleader topics alter orders --partitions 12"
)
SECRET = "(secret)"

NameArgument = Annotated[str, typer.Argument(metavar="TOPIC", parser=utf8, help="Topic.", show_default=False)]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", parser=utf8, help="Topics.", show_default=False)
]


def _configs(pairs: list[str]) -> dict[str, str]:
    return dict(pair("--config", text, "retention.ms=86400000") for text in pairs)


@app.command("create", help=CREATE_HELP)
def create(
    topic: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", min=1, help="Number of partitions. Default: the server's num.partitions."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", parser=utf8, help="Setting of the topic (NAME=VALUE); may be repeated."
        ),
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


@app.command("list", help=LIST_HELP)
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


@app.command("describe", help=DESCRIBE_HELP)
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
            "configs": await _set_configs(admin, topic),
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
    out = console()
    out.print(f"Topic {found['topic']}, id {found['id']}", markup=False)
    out.print(shown)
    configs = table("CONFIG", "VALUE", "SET BY")
    for name, one in found["configs"].items():
        configs.add_row(name, SECRET if one["value"] is None else one["value"], one["set_by"])
    if found["configs"]:
        out.print()
        out.print(configs)


async def _set_configs(admin: Admin, topic: str) -> dict[str, dict[str, str | None]]:
    """The settings that are not the defaults. A principal that may describe a topic may not always see
    these."""
    from ringleader.clients.errors import BrokerError, UnsupportedVersionError

    try:
        found = await admin.topic_configs(topic)
    except (BrokerError, UnsupportedVersionError) as error:
        complain(f"{error}.")
        return {}
    return {
        one.name: {"value": one.value, "set_by": one.set_by}
        for one in found.values()
        if one.set_by != "default"
    }


@app.command("alter", help=ALTER_HELP)
def alter(
    topic: NameArgument,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", min=1, help="New total number of partitions; larger than the current one."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", parser=utf8, help="Setting to change (NAME=VALUE); may be repeated."
        ),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", parser=utf8, help="Setting to reset to its default; may be repeated."),
    ] = None,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Change a topic's settings, or give it more partitions."""
    configs, deleted = _configs(config or []), list(dict.fromkeys(delete_config or []))
    if both := sorted(set(configs) & set(deleted)):
        fail(f"--config and --delete-config: {both[0]} is set, or taken back.", WRONG_INPUT)
    if partitions is None and not configs and not deleted:
        fail("Say what to change: --partitions, --config, or --delete-config.", WRONG_INPUT)

    async def question(admin: Admin) -> list[str]:
        (found,) = await admin.describe_topics([topic])
        present = len(found.partitions)
        if partitions is not None and partitions < present:
            fail(f"Topic {topic} has {present} partitions; a topic never gets fewer.")
        done = []
        if configs or deleted:
            await admin.alter_topic_configs(topic, configs, delete=deleted)
            done += [f"{name} is {value}" for name, value in configs.items()]
            done += [f"{name} has its default" for name in deleted]
        if partitions is not None and partitions != present:
            await admin.create_partitions(topic, partitions)
        if partitions is not None:
            done.append(f"{partitions} partitions" + (" as before" if partitions == present else ""))
        return done

    done = ask(bootstrap_server, question, command_config)
    print(f"Topic {topic}: {', '.join(done)}.")


@app.command("delete", help=DELETE_HELP)
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
