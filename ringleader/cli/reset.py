"""``ringleader groups reset``: where a group reads on, by the rules of Kafka's own tool."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import ask
from ringleader.cli.common import (
    BOOTSTRAP,
    NONE,
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
from ringleader.cli.scope import parse_scope
from ringleader.host.clock import wall_ms
from ringleader.protocol import json_text

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.model import TopicPartition
    from ringleader.clients.offsets.reset_plan import Change, Scope, Target

HELP = (
    "Set where a group reads on. Shows old and new offset of every partition and changes nothing; --execute "
    "commits the new ones.\n\n"
    "Say where to (one of --to-earliest, --to-latest, --to-offset, --shift-by, --to-datetime, --by-duration, "
    "--to-current, --from-file) and for what (--topic, or --all-topics that the group has committed). The "
    "group's members have to be stopped: they would go on from their own positions. An offset outside of the "
    "log becomes the nearest one inside, as with Kafka's own tool.\n\n"
    "Examples:\n\n"
    "  ringleader groups reset billing --topic orders --to-earliest\n\n"
    "  ringleader groups reset billing --topic orders:0,1 --to-datetime 2026-01-31T12:00:00Z --execute\n\n"
    "  ringleader groups reset billing --all-topics --shift-by -100 --csv > plan.csv\n\n"
    "  ringleader groups reset billing --from-file plan.csv --execute"
)


GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", parser=utf8, help="Group.", show_default=False)
]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC[:0,1]", parser=utf8, help="Topic, optionally with partitions; may be repeated."
    ),
]
AllTopicsOption = Annotated[
    bool, typer.Option("--all-topics", help="All topics with committed offsets of the group.")
]
ToEarliestOption = Annotated[bool, typer.Option("--to-earliest", help="Reset to the first records.")]
ToLatestOption = Annotated[
    bool, typer.Option("--to-latest", help="Reset to the end, after the last records.")
]
ToCurrentOption = Annotated[
    bool,
    typer.Option(
        "--to-current", help="Keep the committed offsets; partitions without one are set to the end."
    ),
]
ToOffsetOption = Annotated[int | None, typer.Option(metavar="OFFSET", min=0, help="Reset to this offset.")]
ShiftByOption = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Number of records to move forward; negative: backward."),
]
ToDatetimeOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Reset to the first record at or after this time: 2026-01-31T12:00:00Z.",
    ),
]
ByDurationOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Reset to the first record within this duration before now: 1h, P7D."
    ),
]
FromFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with offsets as printed by --csv or --json.")
]
ExecuteOption = Annotated[
    bool, typer.Option("--execute", help="Commit the new offsets. Default: only show them.")
]
AsCsvOption = Annotated[
    bool, typer.Option("--csv", help="Print topic,partition,offset for --from-file instead of a table.")
]


def reset(
    group: GroupArgument,
    topic: TopicOption = None,
    all_topics: AllTopicsOption = False,
    to_earliest: ToEarliestOption = False,
    to_latest: ToLatestOption = False,
    to_current: ToCurrentOption = False,
    to_offset: ToOffsetOption = None,
    shift_by: ShiftByOption = None,
    to_datetime: ToDatetimeOption = None,
    by_duration: ByDurationOption = None,
    from_file: FromFileOption = None,
    execute: ExecuteOption = False,
    as_csv: AsCsvOption = False,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set where a group reads on."""
    chosen = {
        "--to-earliest": to_earliest or None,
        "--to-latest": to_latest or None,
        "--to-current": to_current or None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-datetime": to_datetime,
        "--by-duration": by_duration,
        "--from-file": from_file,
    }
    given = [name for name, value in chosen.items() if value is not None]
    if len(given) != 1:
        text = f"{' and '.join(given)}: give one of them." if given else f"Say where to: {', '.join(chosen)}."
        fail(text, WRONG_INPUT)
    if as_csv and as_json:
        fail("--csv and --json: give one of them.", WRONG_INPUT)
    if from_file is not None and (topic or all_topics):
        fail("--from-file says which partitions; leave out --topic and --all-topics.", WRONG_INPUT)
    if from_file is None and bool(topic) == all_topics:
        fail("Say for what: --topic TOPIC[:0,1], or --all-topics.", WRONG_INPUT)
    target = _target(given[0], chosen[given[0]], group)
    scope = None if from_file is not None or all_topics else parse_scope(topic or [])
    changes = ask(
        bootstrap_server, lambda admin: _reset(admin, group, target, scope, execute), command_config
    )
    if as_json:
        rows = [one.as_json() for one in changes]
        print(json.dumps({"group": group, "executed": execute, "offsets": rows}))
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            (one.topic, one.partition, one.offset) for one in changes
        )
    else:
        _show(changes)
    count = f"{len(changes)} offset{'' if len(changes) == 1 else 's'}"
    text = f"Set {count} of group {group}." if execute else f"Nothing has changed; --execute sets {count}."
    print(text, file=sys.stderr if as_json or as_csv else sys.stdout)


def _target(option: str, value: Any, group: str) -> Target:
    """The target of the option. Ends the command when its value is wrong."""
    from ringleader.clients.offsets.reset_plan import Target, target_of

    kind = option.removeprefix("--")
    try:
        if kind == "from-file":
            return Target("file", offsets=_read_plan(value.read_text(), group))
        return target_of(kind, value, wall_ms())
    except OSError as error:
        fail(f"{option}: {error.strerror}: {value}.", WRONG_INPUT)
    except UnicodeDecodeError:
        fail(f"{option}: {value} is not text.", WRONG_INPUT)
    except ValueError as error:
        where = f"{value}: " if kind == "from-file" else ""
        fail(f"{option}: {where}{error}.", WRONG_INPUT)


def _read_plan(text: str, group: str) -> dict[TopicPartition, int]:
    """The offsets that --csv or --json printed, or Kafka's own tool with --export. Raises ValueError."""
    rows: list[tuple[int, Any]]
    if text.lstrip().startswith("{"):
        try:
            document = json_text.loads(text)
            rows = [
                (at, (one["topic"], one["partition"], one["offset"]))
                for at, one in enumerate(document["offsets"], 1)
            ]
        except (ValueError, KeyError, TypeError):
            raise ValueError("it is not what --json prints") from None
    else:
        reader = csv.reader(io.StringIO(text))
        try:
            rows = [(reader.line_num, tuple(row)) for row in reader if row]
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num} is not CSV: {error}") from None
    found: dict[TopicPartition, int] = {}
    for at, row in rows:
        # Kafka's tool puts the group before the rest when it is asked about several.
        if len(row) == 4 and row[0] == group:
            row = row[1:]
        try:
            topic, partition, offset = str(row[0]), int(row[1]), int(row[2])
            right = len(row) == 3 and topic and partition >= 0 and offset >= 0
        except (ValueError, TypeError, IndexError, OverflowError):
            right = False
        if not right:
            raise ValueError(f"line {at} is not topic,partition,offset of group {group}")
        found[topic, partition] = offset
    if not found:
        raise ValueError("it names no offsets")
    return found


async def _reset(
    admin: Admin, group: str, target: Target, scope: Scope | None, execute: bool
) -> tuple[Change, ...]:
    """The plan; done, if asked for."""
    from ringleader.clients.offsets.reset_plan import ResetError, carry_out, make_plan

    try:
        plan = await make_plan(admin, group, target, scope, complain)
        if execute:
            await carry_out(admin, plan)
        elif plan.refused:
            complain(plan.refused)
    except ResetError as error:
        fail(str(error))
    return plan.changes


def _show(changes: tuple[Change, ...]) -> None:
    numbers = ("PARTITION", "COMMITTED", "NEW", "LAG", "NEW LAG")
    shown = table("TOPIC", *numbers, "NOTE", right=numbers)
    for one in changes:
        figures = (one.partition, one.committed, one.offset, one.lag, one.new_lag)
        shown.add_row(one.topic, *(NONE if value is None else str(value) for value in figures), one.note)
    console().print(shown)
