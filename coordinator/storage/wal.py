"""A look at SQLite's write-ahead log for damage that SQLite does not report: synced transactions behind a
damaged place.

SQLite takes the first frame that is not whole for the end, as after a torn write. One transaction is on its
way at a time, so behind a torn one there is no whole one: if there is, acknowledged transactions are lost.
Source: the WAL format in https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from struct import Struct

from ringleader.coordinator.storage.base import Failure, StorageError

_HEADER = Struct(">8I")  # magic, version, page size, checkpoints so far, two salts, two checksums
_FRAME = Struct(">6I")  # page, pages of the database if it ends a transaction, two salts, two checksums
_MAGIC = 0x377F0682


def refuse_holes(database: Path, connection: sqlite3.Connection) -> None:
    """Call before anything is written over `connection`, the only one, in exclusive mode. Raises
    `StorageError` (CORRUPT), with the connection closed and the log as it was, so that the next start refuses
    it too."""
    log = database.with_name(database.name + "-wal")
    kept = database.with_name(database.name + "-wal.damaged")
    [(_, whole, _)] = connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    if not log.exists() or not _has_hole(log, max(whole, 0)):
        return
    # SQLite removes the log with its last connection.
    os.link(log, kept)
    connection.close()
    kept.replace(log)
    raise StorageError(
        Failure.CORRUPT,
        f"{log} is damaged after {whole} pages, and what was stored later is behind that; "
        "put a copy of the data directory from before in its place",
    )


def _has_hole(log: Path, whole: int) -> bool:
    with log.open("rb") as stream:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size or not any(header):
            return False
        magic, _, page_size, _, *salts, first, second = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC or _sum(header[:24], magic & 1) != (first, second):
            return True
        ends = 0
        size = _FRAME.size + page_size
        for at in range(_HEADER.size + whole * size, os.fstat(stream.fileno()).st_size - size + 1, size):
            stream.seek(at)
            _, pages, *found, _, _ = _FRAME.unpack(stream.read(_FRAME.size))
            ends += bool(pages) and found == salts
    return ends > 1


def _sum(data: bytes, big_endian: int) -> tuple[int, int]:
    first = second = 0
    for one, two in Struct(">II" if big_endian else "<II").iter_unpack(data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
