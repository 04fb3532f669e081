"""``ringleader consume``: prints the records of topics, alone or as a member of a group."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.asking import security_of, servers_of
from ringleader.cli.common import (
    BOOTSTRAP,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    fail,
    utf8,
)
from ringleader.clients.times import time_ms

if TYPE_CHECKING:
    from ringleader.cli.printing import Place
    from ringleader.cli.records_out import Writer

HELP = (
    "Print the records of topics, of Ringleader or of any Kafka, as they come; Ctrl-C ends.\n\n"
    "Without --group it reads all partitions from their beginning (see --from) and leaves no trace. With "
    "--group it is a member like any other: it shares the partitions, goes on where the group has committed, "
    "and commits what it has printed.\n\n"
    "--format pretty is a line to read, raw is the value alone, json is an object that `ringleader produce "
    "--format json` takes.\n\n"
    "Examples:\n\n"
    "  ringleader consume orders\n\n"
    "  ringleader consume orders --from -1h --exit-when-caught-up --format json | jq .value\n\n"
    "  ringleader consume orders bills --group audit --max-records 100\n\n"
    "  ringleader consume orders --partition 0 --from -5 --until latest --format raw"
)


class OutputFormat(StrEnum):
    """How a record is printed."""

    pretty = "pretty"
    raw = "raw"
    json = "json"


class GroupProtocol(StrEnum):
    """How members and coordinator agree."""

    classic = "classic"
    consumer = "consumer"


class IsolationLevel(StrEnum):
    """Whether records of transactions that are open or were aborted are printed."""

    read_uncommitted = "read_uncommitted"
    read_committed = "read_committed"


TopicsArgument = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", parser=utf8, help="Topics.", show_default=False)
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        parser=utf8,
        help="Read as a member of this group and commit offsets.",
        show_default=False,
    ),
]
GroupProtocolOption = Annotated[
    GroupProtocol,
    typer.Option(
        help="Group protocol. consumer is the protocol of KIP-848, for clusters that support "
        "it (Apache Kafka 4)."
    ),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="WHERE",
        help="Start position: earliest, latest, an offset, -5 for the last five records of each "
        "partition, or a time: 2026-01-31T12:00:00Z (UTC without a zone), or -1h for an hour ago. With "
        "--group: earliest or latest, for partitions without a committed offset.",
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="End position: an offset or time (not included), or the current latest. Not with --group.",
        show_default=False,
    ),
]
CoordinatorServerOption = Annotated[
    str | None,
    typer.Option(
        parser=utf8,
        metavar="HOST:PORT[,...]",
        help="Server that coordinates the group, if it is not the one that stores the records. With --group.",
        show_default=False,
    ),
]
CoordinatorConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Client properties for --coordinator-bootstrap-server. Default: those of --command-config.",
        show_default=False,
    ),
]
PartitionOption = Annotated[
    list[int] | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="Partition to read; may be repeated. Default: all. Not with --group.",
        show_default=False,
    ),
]
MaxRecordsOption = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", min=1, help="Largest number of records to print.", show_default=False),
]
CaughtUpOption = Annotated[
    bool,
    typer.Option("--exit-when-caught-up", help="Exit after the records that exist at the start."),
]
TimeoutOption = Annotated[
    int | None,
    typer.Option(
        metavar="MS", min=1, help="Exit when no record has arrived for this long.", show_default=False
    ),
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="Output format of a record.")]
IsolationLevelOption = Annotated[
    IsolationLevel,
    typer.Option(
        help="Isolation level. read_committed skips records of transactions that are not committed."
    ),
]


def consume(
    topics: TopicsArgument,
    group: GroupOption = None,
    group_protocol: GroupProtocolOption = GroupProtocol.classic,
    begin: FromOption = "earliest",
    until: UntilOption = None,
    coordinator_bootstrap_server: CoordinatorServerOption = None,
    coordinator_command_config: CoordinatorConfigOption = None,
    partition: PartitionOption = None,
    max_records: MaxRecordsOption = None,
    exit_when_caught_up: CaughtUpOption = False,
    timeout_ms: TimeoutOption = None,
    form: FormatOption = OutputFormat.pretty,
    isolation_level: IsolationLevelOption = IsolationLevel.read_uncommitted,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Print the records of topics."""
    from ringleader.cli.printing import ConsumeOptions, Place, Printer
    from ringleader.clients.errors import ClientError

    now_ms = int(time.time() * 1000)
    first = _place("--from", begin, now_ms)
    last = None if until is None else _place("--until", until, now_ms)
    _check(group, first, last, partition or [], exit_when_caught_up)
    _check_group(group, group_protocol, coordinator_bootstrap_server, coordinator_command_config)
    if exit_when_caught_up:
        last = Place("latest")
    _, security = security_of(command_config)
    coordinator_security = security
    if coordinator_command_config is not None:
        _, coordinator_security = security_of(coordinator_command_config, "--coordinator-command-config")
    servers_of(bootstrap_server)
    options = ConsumeOptions(
        topics=list(dict.fromkeys(topics)),
        group=group,
        group_protocol=group_protocol.value,
        begin=first,
        until=last,
        partitions=partition or [],
        max_records=max_records,
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
        writer=_writer(form),
        isolation_level=isolation_level.value,
        bootstrap=bootstrap_server,
        coordinators=coordinator_bootstrap_server,
        security=security,
        coordinator_security=coordinator_security,
    )
    try:
        asyncio.run(Printer(options).run())
    except ClientError as error:
        fail(f"{str(error).rstrip('.')}.")


def _place(option: str, text: str, now_ms: int) -> Place:
    """Ends the command when it is none."""
    from ringleader.cli.printing import Place

    if text in ("earliest", "latest"):
        return Place(text)
    if re.fullmatch(r"\d{1,18}", text):
        return Place("offset", int(text))
    if re.fullmatch(r"-\d{1,18}", text):
        return Place("last", int(text[1:]))
    try:
        found = time_ms(text, now_ms)
    except ValueError as error:
        fail(f"{option}: give earliest, latest, an offset or a time; {error}.", WRONG_INPUT)
    if found > now_ms and option == "--until":
        fail(
            f"{option}: {text} is yet to come; leave it out, and end with Ctrl-C or --timeout-ms.",
            WRONG_INPUT,
        )
    return Place("time", max(0, found))


def _writer(form: OutputFormat) -> Writer:
    from ringleader.cli import records_out

    if form is OutputFormat.pretty:
        return records_out.pretty(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    return records_out.raw if form is OutputFormat.raw else records_out.as_json


def _check_group(
    group: str | None, protocol: GroupProtocol, coordinators: str | None, coordinator_config: Path | None
) -> None:
    """Options that need --group, or each other."""
    if group is None and protocol is not GroupProtocol.classic:
        fail("--group-protocol: there is no --group.", WRONG_INPUT)
    if coordinators is not None:
        if group is None:
            fail("--coordinator-bootstrap-server: there is no --group.", WRONG_INPUT)
        servers_of(coordinators, "--coordinator-bootstrap-server")
    elif coordinator_config is not None:
        fail("--coordinator-command-config: there is no --coordinator-bootstrap-server.", WRONG_INPUT)


def _check(
    group: str | None, first: Place, last: Place | None, partitions: list[int], caught_up: bool
) -> None:
    """Options that contradict each other."""
    if caught_up and last is not None:
        fail("--until and --exit-when-caught-up: give one of them.", WRONG_INPUT)
    if last is not None and last.kind == "earliest":
        fail("--until: there is nothing before earliest.", WRONG_INPUT)
    if group is None:
        return
    if group == "":
        fail("--group: a group has a name.", WRONG_INPUT)
    if partitions:
        fail("--partition and --group: the group shares out the partitions.", WRONG_INPUT)
    if last is not None:
        fail(
            "--until and --group: end with --exit-when-caught-up, --max-records or --timeout-ms.", WRONG_INPUT
        )
    if first.kind not in ("earliest", "latest"):
        fail(
            "--from and --group: only earliest or latest; `groups reset` sets where a group reads on.",
            WRONG_INPUT,
        )
