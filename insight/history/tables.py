"""The tables, and opening the file that has them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from ringleader.insight.history.errors import FormatError, HistoryError

FORMAT_VERSION = 2
"""In the file's header (`user_version`). Raise it with every change of the tables, and write the step up."""

APPLICATION_ID = 0x524C4849
"""In the file's header: "RLHI"."""

BUSY_TIMEOUT_S = 5.0
"""How long one waits for another that has the file for itself for a moment."""

FOREVER = 1 << 62
"""`until_ms` of what is still so: an index then finds it behind everything that ended."""

STEPS: dict[int, str] = {
    1: """
ALTER TABLE event ADD COLUMN member TEXT NOT NULL DEFAULT '';
ALTER TABLE event ADD COLUMN reason TEXT NOT NULL DEFAULT '';
"""
}
"""Format -> what makes the next one of it."""

_WAL_BYTES = 16 << 20
"""A write-ahead log that outgrew this during a long read is cut back to it."""

_TABLES = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE position (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL, again INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE snapshot (grp TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshot_commits (grp TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE state (
    grp TEXT PRIMARY KEY, gone_ms INTEGER NOT NULL, change INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE INDEX state_by_time ON state (gone_ms);
CREATE INDEX state_by_change ON state (change);
CREATE TABLE rebalance (
    id TEXT PRIMARY KEY, grp TEXT NOT NULL, at_ms INTEGER NOT NULL, change INTEGER NOT NULL,
    value BLOB NOT NULL
);
CREATE INDEX rebalance_by_group ON rebalance (grp, at_ms);
CREATE INDEX rebalance_by_time ON rebalance (at_ms);
CREATE INDEX rebalance_by_change ON rebalance (change);
CREATE TABLE event (
    id TEXT PRIMARY KEY, grp TEXT NOT NULL, at_ms INTEGER NOT NULL, change INTEGER NOT NULL,
    kind TEXT NOT NULL, text TEXT NOT NULL, member TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX event_by_time ON event (at_ms);
CREATE INDEX event_by_change ON event (change);
CREATE TABLE member (
    grp TEXT NOT NULL, member_id TEXT NOT NULL, since_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,
    rebalance_id TEXT, value BLOB NOT NULL, PRIMARY KEY (grp, member_id, since_ms)
);
CREATE INDEX member_by_group ON member (grp, until_ms);
CREATE INDEX member_by_time ON member (until_ms);
CREATE TABLE ownership (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, grp TEXT NOT NULL, since_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL, member_id TEXT NOT NULL, rebalance_id TEXT NOT NULL,
    PRIMARY KEY (topic, partition, grp, since_ms, member_id)
) WITHOUT ROWID;
CREATE INDEX ownership_by_group ON ownership (grp, until_ms);
CREATE INDEX ownership_by_time ON ownership (until_ms);
CREATE TABLE commits (
    grp TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    offset INTEGER NOT NULL, PRIMARY KEY (grp, topic, partition, at_ms)
) WITHOUT ROWID;
CREATE INDEX commits_by_time ON commits (at_ms);
CREATE TABLE lag (
    grp TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    end_offset INTEGER NOT NULL, committed INTEGER, PRIMARY KEY (grp, topic, partition, at_ms)
) WITHOUT ROWID;
CREATE INDEX lag_by_time ON lag (at_ms);
COMMIT;
"""


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """The file, in today's format; made, or brought up to it, by the writer. Raises FormatError and
    HistoryError; sqlite3.Error for what SQLite says."""
    if read_only and not path.exists():
        raise HistoryError(f"there is no history at {path}: `ringleader watch` writes one")
    if not read_only and not path.exists():
        # Clients, their hosts and offsets are in it: SQLite gives its other files the mode of this one. To
        # close a file that is there would end the locks of this process's other connections (POSIX), and
        # another process would take their write-ahead log away.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={'ro' if read_only else 'rwc'}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _check(connection, path, read_only)
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            # A crash of the machine may take the last transactions away: they are read again.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
            connection.execute("PRAGMA cache_size=-16384")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    try:
        [(application,)] = connection.execute("PRAGMA application_id")
        [(version,)] = connection.execute("PRAGMA user_version")
        [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise FormatError(f"{path} is no history: name another file") from None
        raise
    if not tables and not application:
        if read_only:
            raise HistoryError(f"{path} is empty: `ringleader watch` fills it")
        connection.executescript(_TABLES)
        return
    if application != APPLICATION_ID:
        raise FormatError(f"{path} is no history, but a database of another program: name another file")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{path} was written by a newer Ringleader (format {version}, this one knows {FORMAT_VERSION}): "
            "use that one, or name another file"
        )
    if version < FORMAT_VERSION and read_only:
        raise FormatError(
            f"{path} has the older format {version}: `ringleader watch --history {path}` brings it up to date"
        )
    for older in range(version, FORMAT_VERSION):
        connection.executescript(f"BEGIN IMMEDIATE;{STEPS[older]}PRAGMA user_version = {older + 1};COMMIT;")
