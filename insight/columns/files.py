"""The tables as Parquet files, and what such files tell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ringleader.host.durable import sync_path
from ringleader.host.lock_file import HeldError, LockFile
from ringleader.insight.columns.arrow import batches, schema_of
from ringleader.insight.columns.model import TABLES, Table
from ringleader.insight.columns.rows import Selection, rows
from ringleader.insight.history.queries import Queries
from ringleader.insight.plain import FORMAT

ENDING = ".parquet"
LOCK = ".export.lock"
READ_ROWS = 4_096
_FORMAT, _GROUPS = b"ringleader.format", b"ringleader.groups"


class FilesError(Exception):
    """Files cannot be written, or are none of these. The text is one sentence for people."""


class Written(NamedTuple):
    """A file that was written."""

    table: str
    path: Path
    rows: int


def write(history: Queries, directory: Path, selection: Selection) -> list[Written]:
    """A file for each table in `directory`, which is made. Each is written aside, made durable, and takes the
    place of the one before as a whole; all tell of one moment of the history.

    Raises FilesError, HistoryError.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = LockFile(directory / LOCK)
        lock.acquire()
    except HeldError as error:
        raise FilesError(f"process {error.pid or '?'} writes into {directory} already: wait for it") from None
    except OSError as error:
        raise FilesError(f"{directory} cannot be written: {error.strerror or error}") from error
    try:
        return _write(history, directory, selection)
    except OSError as error:
        raise FilesError(f"{directory} cannot be written: {error.strerror or error}") from error
    finally:
        lock.release()


def _write(history: Queries, directory: Path, selection: Selection) -> list[Written]:
    paths = {table: directory / f"{table}{ENDING}" for table in TABLES}
    aside = {table: path.with_name(f".{path.name}.new") for table, path in paths.items()}
    try:
        with history.snapshot():
            made = [
                Written(table, path, _write_table(history, table, selection, aside[table]))
                for table, path in paths.items()
            ]
        for table, path in paths.items():
            aside[table].replace(path)
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)
    sync_path(directory)
    return made


def _write_table(history: Queries, table: str, selection: Selection, path: Path) -> int:
    metadata = {_FORMAT: str(FORMAT), _GROUPS: json.dumps(selection.groups)}
    schema = schema_of(table).with_metadata(metadata)
    count = 0
    # Left by a process that was killed.
    path.unlink(missing_ok=True)
    with path.open("xb") as stream:
        with pq.ParquetWriter(stream, schema) as writer:
            for batch in batches(table, rows(table, history, selection)):
                writer.write_batch(batch.replace_schema_metadata(metadata))
                count += batch.num_rows
        stream.flush()
        os.fsync(stream.fileno())
    return count


# ---- reading ----


def files_of(path: Path, table: str) -> list[Path]:
    """The files of a table in a directory that `write` has filled, or in directories below that are such.
    Raises FilesError where there is none."""
    name = f"{table}{ENDING}"
    found = [path / name] if (path / name).is_file() else sorted(path.glob(f"*/{name}"))
    if not found:
        raise FilesError(
            f"there is no {name} in {path}, nor in a directory in it: "
            f"`ringleader history --export parquet -o {path}` writes it"
        )
    return found


def groups_of(path: Path) -> list[str]:
    """The groups that a file was asked to tell of. Raises FilesError for another file, or of a newer
    Ringleader."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid) as error:
        raise FilesError(f"{path} is no Parquet file that can be read: {error}") from None
    if _FORMAT not in metadata:
        raise FilesError(f"{path} is no file of `ringleader history --export`: name another directory")
    if int(metadata[_FORMAT]) > FORMAT:
        raise FilesError(
            f"{path} was written by a newer Ringleader (format {metadata[_FORMAT].decode()}, this one knows "
            f"{FORMAT}): use that one, or name another directory"
        )
    groups: list[str] = json.loads(metadata[_GROUPS])
    return groups


def read(path: Path, table: str, selection: Selection) -> Iterator[pa.RecordBatch]:
    """The rows of a file that are asked for, some thousands at once."""
    found = ds.dataset(path, schema=schema_of(table), format="parquet")
    return iter(found.to_batches(filter=_wanted(TABLES[table], selection), batch_size=READ_ROWS))


def _wanted(table: Table, selection: Selection) -> Any:
    conditions = [ds.field("group").isin([*selection.groups, ""])]
    if selection.since_ms is not None:
        ends = ds.field(table.ends)
        conditions.append(ends.is_null() | (ends >= _moment(selection.since_ms)))
    if selection.until_ms is not None:
        conditions.append(ds.field(table.begins) < _moment(selection.until_ms))
    return reduce(and_, conditions)


def _moment(at_ms: int) -> pa.Scalar:
    return pa.scalar(at_ms * 1000, pa.timestamp("us", tz="UTC"))
