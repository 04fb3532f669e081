"""``ringleader replay``: a recording of a group, played by the same machine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.common import FAILED, WRONG_INPUT, complain, fail
from ringleader.host.printable import printable

if TYPE_CHECKING:
    from ringleader.coordinator.recording.play import Difference

HELP = (
    "Play a file of `ringleader record` again: the group machine of this version gets the same requests at"
    " the same times, and has to answer, store and conclude the same.\n\n"
    "Exit code 0: all was the same; 1: the first difference is shown; 2: the file is no recording that this"
    " version can read.\n\n"
    "Examples:\n\n"
    "  ringleader replay billing.recording.gz\n\n"
    "  ringleader replay billing.recording.gz --explain"
)
SHOWN_MAX = 2_000
"""Characters of each side of a difference."""


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `ringleader record` wrote.", show_default=False)
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the journal: what happened to groups, and why.")
    ] = False,
) -> None:
    """See `HELP`."""
    from ringleader.coordinator.recording.file import RecordingError, read
    from ringleader.coordinator.recording.plain import UnreadableError
    from ringleader.coordinator.recording.play import Player

    calls = 0
    try:
        lines = read(file)
        first = next(lines)
        player = Player(first)
        _warn_of_version(first)
        for line in lines:
            if "end" in line:
                print(f"{calls:,} calls, the same answers, records and journal. It ended {line['end']}.")
                return
            calls += 1
            played = player.step(line)
            if explain:
                for event in played.events:
                    _tell(event, first)
            if played.difference is not None:
                _show(played.difference, line, calls)
                raise typer.Exit(FAILED)
    except RecordingError as error:
        fail(f"{error}.", WRONG_INPUT)
    except UnreadableError as error:
        fail(f"{file} is damaged, or of another version, in call {calls}: {error}.", WRONG_INPUT)


def _warn_of_version(first: dict[str, Any]) -> None:
    from importlib.metadata import version

    if first.get("version") != version("ringleader"):
        complain(
            f"it was recorded by Ringleader {first.get('version')}, and this is {version('ringleader')}."
        )


def _show(difference: Difference, line: dict[str, Any], calls: int) -> None:
    request = line["with"][0] if line["with"] else None
    what = request["c"] if isinstance(request, dict) and "c" in request else line["do"]
    print(f"Call {calls:,} ({what}) differs in {difference.what}.")
    print(f"expected  {_cut(difference.expected)}")
    print(f"came      {_cut(difference.actual)}")


def _cut(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _tell(event: Any, first: dict[str, Any]) -> None:
    from ringleader.coordinator.journal.entries import EpochEntry, FirstCommit, Incident, JournalEntry
    from ringleader.coordinator.machine import Notice

    if isinstance(event, JournalEntry | EpochEntry):
        text = event.render()
    elif isinstance(event, FirstCommit):
        text = (
            f"group '{event.group_id}' generation {event.generation}: first commit after {event.after_ms} ms"
        )
    elif isinstance(event, Incident):
        client = event.member_id or event.client_id
        text = f"group '{event.group_id}': {event.kind.value}{f' ({client})' if client else ''}"
    elif isinstance(event, Notice):
        text = f"group '{event.subject}': {event.text}"
    else:
        return
    at_ms = getattr(event, "at_ms", None)
    at = "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}  "
    print(printable(f"{at}{text}"))
