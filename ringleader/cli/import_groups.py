"""``ringleader groups import``: committed offsets of groups go over from one coordinator to another."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ringleader.cli.asking import NOWHERE, security_of, servers_of
from ringleader.cli.common import (
    BOOTSTRAP,
    NONE,
    WRONG_INPUT,
    JsonOption,
    complain,
    console,
    fail,
    table,
    utf8,
)

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.model import OffsetAndMetadata, TopicPartition

HELP = (
    "Take over the committed offsets of groups, with their metadata and leader epochs: from Kafka's own "
    "coordinator into Ringleader, or back. Records stay where they are, and so do the offsets at the "
    "source.\n\n"
    "Stop the members before, and start them at the target after it. Groups with members at the target, "
    "or other offsets there (but with --overwrite), are refused, and then nothing is changed. What "
    "was written is read back and compared.\n\n"
    "Examples:\n\n"
    "  ringleader groups import --from-bootstrap-server kafka.example:9092 --to-bootstrap-server "
    "node.example:9092 --all --dry-run\n\n"
    "  ringleader groups import --from-bootstrap-server kafka.example:9092 --group billing --group audit"
)
CALL_TIMEOUT_MS = 30_000
AT_ONCE = 16
"""Groups that are asked for at a time."""
PARTITIONS_PER_COMMIT = 1_000
"""So that no commit is too large for a coordinator's log."""
SHOWN = 5
TYPES = ("", "classic", "consumer")
"""Groups with committed offsets; share and streams groups are something else."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of one offset. `before`: the target's offset before. `note`: why it was left out, or ""."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str
    leader_epoch: int
    before: int | None
    note: str = ""

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return self.topic, self.partition


FromBootstrapServerOption = Annotated[
    str,
    typer.Option(
        parser=utf8,
        metavar="HOST:PORT[,...]",
        help="Source server of the groups: any Kafka or Ringleader.",
        show_default=False,
    ),
]
ToBootstrapServerOption = Annotated[
    str,
    typer.Option(
        parser=utf8,
        envvar="RINGLEADER_BOOTSTRAP_SERVER",
        metavar="HOST:PORT[,...]",
        help="Target server for the offsets: Ringleader or any Kafka.",
    ),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GROUP", parser=utf8, help="Group; may be repeated.", show_default=False),
]
AllGroupsOption = Annotated[bool, typer.Option("--all", help="All groups with committed offsets.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Overwrite different offsets of a group at the target.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")]
FromCommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Client properties for the source, as for --command-config.",
        show_default=False,
    ),
]
ToCommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Client properties for the target, as for --command-config.",
        show_default=False,
    ),
]


def import_groups(
    from_bootstrap_server: FromBootstrapServerOption,
    to_bootstrap_server: ToBootstrapServerOption = BOOTSTRAP,
    group: GroupOption = None,
    all_groups: AllGroupsOption = False,
    overwrite: OverwriteOption = False,
    dry_run: DryRunOption = False,
    from_command_config: FromCommandConfigOption = None,
    to_command_config: ToCommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take over the committed offsets of groups."""
    from ringleader.clients.admin import Admin
    from ringleader.clients.errors import ClientError

    if bool(group) == all_groups:
        fail("Say which groups: --group GROUP, or --all.", WRONG_INPUT)
    servers_of(from_bootstrap_server, "--from-bootstrap-server")
    servers_of(to_bootstrap_server, "--to-bootstrap-server")
    _, source_security = security_of(from_command_config, "--from-command-config")
    _, target_security = security_of(to_command_config, "--to-command-config")
    logging.getLogger("ringleader.clients").addHandler(NOWHERE)

    async def taken() -> list[Taken]:
        async with (
            Admin(
                from_bootstrap_server,
                timeout_ms=CALL_TIMEOUT_MS,
                tls=source_security.tls,
                sasl=source_security.sasl,
            ) as source,
            Admin(
                to_bootstrap_server,
                timeout_ms=CALL_TIMEOUT_MS,
                tls=target_security.tls,
                sasl=target_security.sasl,
            ) as target,
        ):
            found = await _Import(source, target).run(group, overwrite=overwrite, dry_run=dry_run)
            return sorted(found, key=lambda one: (one.group, one.place))

    try:
        rows = asyncio.run(taken())
    except (ClientError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")
    if as_json:
        print(json.dumps({"executed": not dry_run, "offsets": [asdict(one) for one in rows]}))
    else:
        _show(rows)
    done = [one for one in rows if not one.note]
    counted = f"{_count(len(done), 'offset')} of {_count(len({one.group for one in done}), 'group')}"
    text = f"Nothing has changed; {counted} would be taken over." if dry_run else f"Took over {counted}."
    print(text, file=sys.stderr if as_json else sys.stdout)
    if left := len(rows) - len(done):
        fail(f"{_count(left, 'offset')} left out, as the target has no such partition; see NOTE.")


class _Import:
    """From one cluster into another."""

    def __init__(self, source: Admin, target: Admin) -> None:
        self._source = source
        self._target = target

    async def run(self, groups: list[str] | None, *, overwrite: bool, dry_run: bool) -> list[Taken]:
        """The offsets that were taken over, or would be. Ends the command when it may not be done, before
        anything is changed. Raises ClientError."""
        names = await self._names(groups)
        offsets = await _each(names, self._source.group_offsets)
        if groups is not None and (empty := [name for name in names if not offsets[name]]):
            fail(f"There is nothing committed at the source by {_in_words(empty)}.")
        names = [name for name in names if offsets[name]]
        await self._tell_running(names)
        await self._check_members(names)
        before = await _each(names, self._target.group_offsets)
        partitions = {
            topic.name: len(topic.partitions) for topic in await self._target.list_topics(internal=True)
        }
        rows = [
            _taken(name, place, value, before[name].get(place), partitions)
            for name in names
            for place, value in offsets[name].items()
        ]
        differ = {one.group for one in rows if one.before not in (None, one.offset)}
        if (different := sorted(differ)) and not overwrite:
            fail(
                f"The target has other offsets for {_in_words(different)}; nothing has been changed. "
                "--overwrite sets them to those of the source."
            )
        if not dry_run:
            await _each(names, lambda name: self._commit(name, rows))
        return rows

    async def _names(self, groups: list[str] | None) -> list[str]:
        listed = {one.group_id: one.group_type for one in await self._source.list_groups()}
        if groups is None:
            return sorted(name for name, kind in listed.items() if kind in TYPES)
        named = sorted(set(groups))
        if missing := [name for name in named if name not in listed]:
            fail(f"There is no group {_in_words(missing)} at the source.")
        if other := [name for name in named if listed[name] not in TYPES]:
            fail(f"Not a group with committed offsets: {_in_words(other)}, of type {listed[other[0]]}.")
        return named

    async def _tell_running(self, names: list[str]) -> None:
        if running := await _with_members(self._source, names):
            complain(
                f"There are members at the source in {_in_words(running)}: what they commit from now on is "
                "not taken over; stop them, and import again."
            )

    async def _check_members(self, names: list[str]) -> None:
        there = {one.group_id for one in await self._target.list_groups()}
        if running := await _with_members(self._target, [name for name in names if name in there]):
            fail(
                f"There are members at the target in {_in_words(running)}; nothing has been changed. Stop "
                "them, or leave these groups out."
            )

    async def _commit(self, name: str, rows: Iterable[Taken]) -> None:
        """Write, read back, compare."""
        from ringleader.clients.model import OffsetAndMetadata

        wanted = {
            one.place: OffsetAndMetadata(one.offset, one.metadata, one.leader_epoch)
            for one in rows
            if one.group == name and not one.note
        }
        places = list(wanted)
        for begin in range(0, len(places), PARTITIONS_PER_COMMIT):
            some = places[begin : begin + PARTITIONS_PER_COMMIT]
            await self._target.set_group_offsets(name, {place: wanted[place] for place in some})
        found = await self._target.group_offsets(name)
        if wrong := [place for place in places if found.get(place) != wanted[place]]:
            topic, partition = wrong[0]
            fail(
                f"Group {name}: what was written for {topic}-{partition}, {wanted[wrong[0]]}, reads as "
                f"{found.get(wrong[0])}; is somebody else committing?"
            )


async def _with_members(admin: Admin, names: list[str]) -> list[str]:
    from ringleader.clients.descriptions import members_in_words

    described = await _each(names, lambda name: admin.describe_groups([name]))
    return [f"{name} ({members_in_words(found)})" for name, (found,) in described.items() if found.members]


def _taken(
    group: str,
    place: TopicPartition,
    value: OffsetAndMetadata,
    before: OffsetAndMetadata | None,
    partitions: Mapping[str, int],
) -> Taken:
    there = partitions.get(place[0])
    note = ""
    if there is None:
        note = "no such topic at the target"
    elif place[1] >= there:
        note = f"the topic has {there} partitions at the target"
    was = None if before is None else before.offset
    return Taken(group, *place, value.offset, value.metadata, value.leader_epoch, was, note)


async def _each(names: Iterable[str], ask: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """The answer for each name, some at a time."""
    found: dict[str, T] = {}
    listed = list(names)
    for begin in range(0, len(listed), AT_ONCE):
        some = listed[begin : begin + AT_ONCE]
        found |= zip(some, await asyncio.gather(*map(ask, some)), strict=True)
    return found


def _in_words(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _show(rows: list[Taken]) -> None:
    numbers = ("PARTITION", "OFFSET", "BEFORE")
    shown = table("GROUP", "TOPIC", *numbers, "NOTE", right=numbers)
    for one in rows:
        before = NONE if one.before is None else str(one.before)
        shown.add_row(one.group, one.topic, str(one.partition), str(one.offset), before, one.note)
    if rows:
        console().print(shown, markup=False)
