"""``ringleader-spark-offsets``: where a query of Spark's own Kafka connector stopped, as ``startingOffsets``.

A streaming query's checkpoint has a file in ``offsets`` for each batch that was begun, and one in ``commits``
for each that was finished. A file of offsets has its version, a line on the query, and one line for each
source. The connector's is JSON in the form of ``startingOffsets``. (Spark's ``OffsetSeqLog``. In version 1 a
source is its place; in version 2, see ``spark.sql.streaming.offsetLog.formatVersion``, its line begins with
its number or name.)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ringleader.spark_bridge.options.values import Offsets

MAX_FILE_BYTES = 64 * 1024 * 1024
"""A file of offsets has some 20 bytes for each partition."""
NOTHING = "-"
"""In place of the offsets of a source that a batch did not read."""
_OFFSETS: TypeAdapter[object] = TypeAdapter(Offsets)


class MovingError(Exception):
    """The offsets cannot be had; the text says why, and what to do."""


def starting_offsets(checkpoint: Path, source: str | None = None) -> tuple[str, str]:
    """The offsets after the last finished batch of a checkpoint, or those of one file of offsets, as they are
    written there; and what to know of them ("": nothing). ``source``: which of a query's sources, by number
    from 0 or by name; by default the only one that is the connector's. Raises MovingError."""
    note = ""
    if checkpoint.is_dir():
        finished, begun = _newest(checkpoint / "commits"), _newest(checkpoint / "offsets")
        if finished is None:
            raise MovingError(
                f"{checkpoint} has no finished batch (no file in its folder commits): start the new query "
                "with the startingOffsets of the old one"
            )
        if begun is not None and begun > finished:
            note = f"batch {begun} was begun and not finished: its records will be read again"
        checkpoint = checkpoint / "offsets" / str(finished)
    return _chosen(sources(checkpoint), source, checkpoint), note


def sources(file: Path) -> dict[str, str]:
    """The offsets of each source in a file of offsets. Raises MovingError."""
    version, *lines = _lines(file)
    found: dict[str, str] = {}
    if version == "v1":
        found = {str(number): line for number, line in enumerate(lines[1:])}
    elif version == "v2":
        found = {name: value for name, _, value in (line.partition(":") for line in lines[1:])}
    if not found:
        raise MovingError(
            f"{file} is no file of offsets of version v1 or v2: its first line is {version!r:.40}"
        )
    return found


def _newest(folder: Path) -> int | None:
    try:
        return max((int(file.name) for file in folder.iterdir() if file.name.isdecimal()), default=None)
    except OSError as error:
        raise MovingError(
            f"{error.strerror}: {folder}; name the checkpointLocation of a streaming query"
        ) from None


def _lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise MovingError(f"{file} has more than {MAX_FILE_BYTES} bytes")
        return raw.decode().splitlines() or [""]
    except OSError as error:
        raise MovingError(f"{error.strerror}: {file}") from None
    except UnicodeDecodeError:
        raise MovingError(f"{file} is not text") from None


def _chosen(lines: dict[str, str], source: str | None, file: Path) -> str:
    if source is not None:
        if source not in lines:
            raise MovingError(f"{file} has {len(lines)} sources: --source is one of {', '.join(lines)}")
        if lines[source] == NOTHING or not connectors(lines[source]):
            raise MovingError(f"source {source} of {file} has no offsets of Kafka: {lines[source]!r:.80}")
        return lines[source]
    found = [name for name, line in lines.items() if connectors(line)]
    if not found:
        raise MovingError(f"no source of {file} has offsets of Spark's Kafka connector")
    if len(found) > 1:
        raise MovingError(f"several sources of {file} are Kafka's: choose one with --source {found[0]} or so")
    return lines[found[0]]


def connectors(line: str) -> bool:
    """Whether this is what the connector writes: offsets of partitions of topics."""
    try:
        found = _OFFSETS.validate_python(line)
    except ValidationError:
        return False
    return isinstance(found, dict) and bool(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the offsets; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="ringleader-spark-offsets",
        description="Print where a streaming query of Spark's own Kafka connector stopped, as a value for "
        "the option startingOffsets of format ringleader. Stop that query first.",
    )
    parser.add_argument(
        "checkpoint", type=Path, help="its checkpointLocation, or one file of the folder offsets in there"
    )
    parser.add_argument(
        "--source", help="which source of the query, by number from 0 or by name, if several are Kafka's"
    )
    given = parser.parse_args(arguments)
    try:
        offsets, note = starting_offsets(given.checkpoint, given.source)
    except MovingError as error:
        print(f"{error}.", file=sys.stderr)
        return 2
    if note:
        print(f"{note}.", file=sys.stderr)
    print(offsets)
    return 0


def command() -> None:
    """As installed."""
    sys.exit(main())
