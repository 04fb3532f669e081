"""``ringleader plan`` and ``ringleader size``: what assignors would do; how many partitions a topic needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import ask, group_of
from ringleader.cli.common import (
    BOOTSTRAP,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    JsonOption,
    complain,
    console,
    fail,
    table,
    utf8,
)

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.whatif import Outcome, Situation

PLAN_HELP = (
    "Show what each assignor would do with a group: now, with one member more or fewer, with more "
    "partitions.\n\n"
    "Nothing is changed. A move is a partition that one member owns now and another one gets.\n\n"
    "Examples:\n\n"
    "  ringleader plan billing\n\n"
    "  ringleader plan billing --members 3 --partitions 6 --assignor sticky --assignor range\n\n"
    "  ringleader plan billing --assignor lag-aware --imbalance 0.5 --new-topic 6\n\n"
    "  ringleader plan billing --save billing.json\n\n"
    "  ringleader plan --file billing.json"
)

SIZE_HELP = (
    "Tell how many partitions a topic needs, from measured throughput.\n\n"
    "All three figures in one unit, for example MB/s. Measure one producer and one consumer on one "
    "partition.\n\n"
    "Examples:\n\n"
    "  ringleader size --target 100 --producer 20 --consumer 8\n\n"
    "  ringleader size --target 100 --producer 20 --consumer 8 --partitions 12 --consumers 16"
)


GroupArgument = Annotated[
    str | None,
    typer.Argument(metavar="[GROUP]", parser=utf8, help="Group with members.", show_default=False),
]
FileOption = Annotated[
    Path | None, typer.Option(help="JSON file to read the group from.", show_default=False)
]
SaveOption = Annotated[Path | None, typer.Option(help="JSON file to write the group to.", show_default=False)]
MembersOption = Annotated[int, typer.Option(min=1, help="Number of members to add and to remove.")]
PartitionsOption = Annotated[int, typer.Option(min=1, help="Number of partitions to add to each topic.")]
NewTopicOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Also try a new topic with this number of partitions that all members subscribe to, as by "
        "a pattern.",
        show_default=False,
    ),
]
AssignorOption = Annotated[
    list[str] | None,
    typer.Option(help="Assignor to try; may be repeated. Default: all.", show_default=False),
]
ImbalanceOption = Annotated[
    float, typer.Option(min=0, help="For lag-aware: allowed lag of a member above the mean.")
]


def plan(
    group: GroupArgument = None,
    file: FileOption = None,
    save: SaveOption = None,
    members: MembersOption = 1,
    partitions: PartitionsOption = 1,
    new_topic: NewTopicOption = None,
    assignor: AssignorOption = None,
    imbalance: ImbalanceOption = 0.1,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """See `PLAN_HELP`."""
    from ringleader.clients.whatif import outcomes, with_members, with_partitions, with_topic

    if (group is None) == (file is None):
        fail("Name a group, or a --file.", WRONG_INPUT)
    found = _from_file(file) if file is not None else _live(bootstrap_server, str(group), command_config)
    if save is not None:
        try:
            save.write_text(found.model_dump_json(indent=1) + "\n")
        except OSError as error:
            fail(f"--save: {error.strerror}: {save}.", WRONG_INPUT)
    situations = {"now": found, f"{members} more": with_members(found, members)}
    if len(found.members) > 1:
        situations[f"{min(members, len(found.members) - 1)} fewer"] = with_members(found, -members)
    situations[f"{partitions} more partition{'s' if partitions > 1 else ''}"] = with_partitions(
        found, partitions
    )
    if new_topic is not None:
        situations["a new topic"] = with_topic(found, new_topic)
    try:
        results = {
            name: outcomes(one, assignor, before=found, imbalance=imbalance)
            for name, one in situations.items()
        }
    except ValueError as error:
        fail(f"--assignor: {error}.", WRONG_INPUT)
    if as_json:
        print(json.dumps({name: [_as_dict(one) for one in of] for name, of in results.items()}))
        return
    _show(found, results)


def size(
    target: Annotated[float, typer.Option(help="Required throughput of the topic.", show_default=False)],
    producer: Annotated[
        float, typer.Option(help="Throughput of one producer to one partition.", show_default=False)
    ],
    consumer: Annotated[
        float, typer.Option(help="Throughput of one consumer from one partition.", show_default=False)
    ],
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Current number of partitions.", show_default=False)
    ] = None,
    consumers: Annotated[
        int | None, typer.Option(min=1, help="Current number of consumers.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """See `SIZE_HELP`."""
    from ringleader.clients.whatif import sizing

    try:
        found = sizing(target, producer, consumer)
    except ValueError as error:
        fail(f"{error}.", WRONG_INPUT)
    warnings = _warnings(found.partitions, partitions, consumers)
    if as_json:
        print(
            json.dumps(
                {
                    "partitions": found.partitions,
                    "by_producers": found.by_producers,
                    "by_consumers": found.by_consumers,
                    "warnings": warnings,
                }
            )
        )
        return
    out = console()
    shown = table("FOR", "PARTITIONS", right=("PARTITIONS",))
    shown.add_row("producers to reach the target", str(found.by_producers))
    shown.add_row("consumers to keep up with it", str(found.by_consumers))
    shown.add_row("both", str(found.partitions))
    out.print(shown)
    for warning in warnings:
        out.print(warning, markup=False)


def _warnings(needed: int, partitions: int | None, consumers: int | None) -> list[str]:
    warnings = []
    if partitions is not None and partitions < needed:
        warnings.append(f"{partitions} partitions are too few: {needed} are needed.")
    most = partitions if partitions is not None else needed
    if consumers is not None and consumers > most:
        warnings.append(
            f"{consumers - most} of {consumers} consumers would be idle: there are {most} partitions."
        )
    return warnings


def _from_file(path: Path) -> Situation:
    from pydantic import ValidationError

    from ringleader.clients.whatif import Situation

    try:
        return Situation.model_validate_json(path.read_text())
    except OSError as error:
        fail(f"--file: {error.strerror}: {path}.", WRONG_INPUT)
    except UnicodeDecodeError:
        fail(f"--file: {path} is not text.", WRONG_INPUT)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        fail(f"--file: {path}: {where + ': ' if where else ''}{first['msg']}.", WRONG_INPUT)


def _live(bootstrap: str, group: str, command_config: Path | None) -> Situation:
    async def question(admin: Admin) -> Situation:
        from ringleader.clients.whatif import situation_of

        found = await group_of(admin, group)
        if found is None:
            fail(f"There is no group {group}.")
        topics = sorted({topic for member in found.members for topic in member.topics})
        there = {topic.name: len(topic.partitions) for topic in await admin.list_topics(internal=True)}
        counts = {topic: there[topic] for topic in topics if topic in there}
        missing = [topic for topic in topics if topic not in there]
        if missing:
            complain(f"Left out, as there is no such topic: {', '.join(missing)}.")
        lags = await _lags(admin, group, counts)
        try:
            return situation_of(found, counts, lags)
        except ValueError as error:
            fail(f"{error}.".capitalize())

    return ask(bootstrap, question, command_config)


async def _lags(admin: Admin, group: str, counts: Mapping[str, int]) -> dict[str, list[int]]:
    """How far the group is behind in every partition; without a commit, all that is there."""
    lags = {topic: [0] * count for topic, count in counts.items()}
    unknown = {(topic, number) for topic, count in counts.items() for number in range(count)}
    for one in await admin.lag(group):
        if (one.topic, one.partition) in unknown:
            lags[one.topic][one.partition] = one.lag or 0
            unknown.discard((one.topic, one.partition))
    starts, ends = await admin.start_offsets(unknown), await admin.end_offsets(unknown)
    for (topic, number), end in ends.items():
        lags[topic][number] = end - starts[topic, number]
    return lags


def _as_dict(one: Outcome) -> dict[str, Any]:
    return {
        "assignor": one.assignor,
        "moves": one.moves,
        "fewest": one.fewest,
        "most": one.most,
        "idle": one.idle,
        "lag_most": one.lag_most,
        "rounds": one.rounds,
        "milliseconds": round(one.milliseconds, 3),
        "assignment": one.assignment,
    }


def _show(found: Situation, results: dict[str, list[Outcome]]) -> None:
    out = console()
    total = sum(found.topics.values())
    out.print(f"{len(found.members)} members, {total} partitions of {len(found.topics)} topics", markup=False)
    numbers = ("MOVES", "PARTITIONS", "IDLE", "LAG", "ROUNDS", "MS")
    for name, of in results.items():
        shown = table("ASSIGNOR", *numbers, right=numbers)
        for one in of:
            spread = str(one.most) if one.fewest == one.most else f"{one.fewest}-{one.most}"
            row = (one.moves, spread, one.idle, one.lag_most, one.rounds, f"{one.milliseconds:.1f}")
            shown.add_row(one.assignor, *map(str, row))
        out.print()
        out.print(f"[bold]{name}[/]")
        out.print(shown)
    out.print()
    out.print(
        "MOVES: partitions that change hands. PARTITIONS, LAG: of the members with the fewest and the most. "
        "ROUNDS: rebalances until all is settled.",
        markup=False,
    )
    if len(found.members) > total:
        idle = len(found.members) - total
        out.print(
            f"{idle} of {len(found.members)} members must be idle: there are more than partitions.",
            markup=False,
        )
