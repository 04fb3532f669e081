"""The default store: one SQLite file, one row for the last record of each key, one sync per transaction.

The file is in WAL mode with `synchronous=FULL`: a transaction appends its pages to the WAL and syncs it once,
before `append` returns. Checkpoints write the pages to the main file behind the syncs that SQLite needs.
The key-value table compacts itself: there is nothing to clean.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ringleader.coordinator.storage.base import Batch, Failure, Row, StorageError
from ringleader.coordinator.storage.writer import WriterThread

FORMAT_VERSION = 1
"""In the file's header (`user_version`). Raise it with every change of the tables, and write the step up."""

APPLICATION_ID = 0x524C4452
"""In the file's header: "RLDR"."""

ROWS_PER_STATEMENT = 128
"""Rows of one INSERT. One statement is one trip out of the interpreter's lock; a trip for each row would wait
for the event loop's thread each time."""

REPLAY_CHUNK_ROWS = 2_000
"""Rows that the loader takes at a time; between two chunks the event loop does its other work."""

CHECKPOINT_PAGES = 2_000
"""The WAL is folded into the main file at this size, 8 MiB: rare enough not to be felt, quick to replay."""

CACHE_KIB = 32_768
"""Pages of the main file that are kept in memory, so that commits of many groups need not read them."""

_MAGIC = b"SQLite format 3\0"

_TABLES = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
CREATE TABLE record (
    partition INTEGER NOT NULL,
    key BLOB NOT NULL,
    position INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (partition, key)
) WITHOUT ROWID;
CREATE TABLE owner (partition INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""

_FAILURES = {
    sqlite3.SQLITE_FULL: Failure.DISK_FULL,
    sqlite3.SQLITE_BUSY: Failure.BUSY,
    sqlite3.SQLITE_LOCKED: Failure.BUSY,
    sqlite3.SQLITE_TOOBIG: Failure.TOO_LARGE,
    sqlite3.SQLITE_CORRUPT: Failure.CORRUPT,
    sqlite3.SQLITE_NOTADB: Failure.CORRUPT,
}

_INSERTS = [
    "INSERT OR REPLACE INTO record VALUES " + ",".join(["(?,?,?,?,?)"] * rows)
    for rows in range(ROWS_PER_STATEMENT + 1)
]
_DELETE = "DELETE FROM record WHERE partition = ? AND key = ?"
_REPLAY = "SELECT position, epoch, key, value FROM record WHERE partition = ? ORDER BY position"


class SqliteStorage:
    """See `Storage`. Methods with an underscore run on the writer's thread and own the connection."""

    pipeline = 1

    def __init__(
        self, path: Path, synchronous: Literal["full", "off"] = "full", *, partitions: int = 50
    ) -> None:
        """`synchronous="off"` leaves the writing to the operating system: a crash of the machine may then
        lose what was acknowledged. `partitions` is written into a new file and must fit an old one."""
        self._path = path
        self._synchronous = synchronous
        self._partitions = partitions
        self._thread: WriterThread | None = None
        self._connection: sqlite3.Connection | None = None
        self._positions: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._broken: StorageError | None = None

    async def start(self) -> None:
        """See `Storage.start`. An unknown file is refused with FORMAT and stays as it is."""
        self._thread = WriterThread("ringleader-storage")
        self._broken = None
        self._positions.clear()
        try:
            await self._thread.run(self._open)
        except BaseException:
            await self.close()
            raise

    async def open(self, partition: int, epoch: int) -> None:
        """See `Storage.open`."""
        await self._writer().run(self._own, partition, epoch)

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        return await self._writer().run(self._append, batches)

    async def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """See `Storage.replay`."""
        cursor = await self._writer().run(self._cursor, partition)
        while rows := await self._writer().run(self._fetch, cursor):
            yield rows

    async def probe(self) -> None:
        """See `Storage.probe`."""
        await self._writer().run(self._probe)

    def _writer(self) -> WriterThread:
        if self._thread is None:
            raise StorageError(Failure.CLOSED)
        return self._thread

    async def close(self) -> None:
        """See `Storage.close`. Folds the WAL into the main file, so that one file is all there is."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await thread.run(self._close)
            thread.stop()
            thread.join()

    # ---- on the writer's thread ----

    def _open(self) -> None:
        try:
            if self._exists():
                self._check_header()
            else:
                self._create()
            self._connection = self._connect()
            self._check_facts(self._connection)
        except sqlite3.Error as error:
            failure = self._failure(error)
            if failure is Failure.BUSY:
                failure = Failure.LOCKED
            raise StorageError(failure, f"{self._path}: {error}") from error
        except OSError as error:
            raise StorageError(Failure.IO_ERROR, str(error)) from error

    def _exists(self) -> bool:
        return self._path.exists() and self._path.stat().st_size > 0

    def _check_header(self) -> None:
        """Read the versions without SQLite: opening a foreign file with it could write into it."""
        with self._path.open("rb") as stream:
            header = stream.read(100)
        if len(header) < 100 or not header.startswith(_MAGIC):
            raise StorageError(Failure.FORMAT, f"{self._path} is not a database of ringleader")
        version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if application != APPLICATION_ID:
            raise StorageError(Failure.FORMAT, f"{self._path} is a database of another program")
        if version != FORMAT_VERSION:
            raise StorageError(
                Failure.FORMAT,
                f"{self._path} has format version {version}, this ringleader knows version {FORMAT_VERSION}",
            )

    def _create(self) -> None:
        """Make the file under another name, so that what has the name is always whole."""
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            connection.executescript(_TABLES)
            connection.execute("INSERT INTO fact VALUES ('partitions', ?)", (self._partitions,))
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        _sync(fresh)
        fresh.rename(self._path)
        _sync(self._path.parent)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=ROWS_PER_STATEMENT + 32,
            timeout=0.5,
        )
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._synchronous.upper()}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_facts(self, connection: sqlite3.Connection) -> None:
        [(partitions,)] = connection.execute("SELECT value FROM fact WHERE name = 'partitions'")
        if partitions != self._partitions:
            raise StorageError(
                Failure.FORMAT,
                f"{self._path} has offsets.topic.num.partitions {partitions}, not {self._partitions}",
            )
        self._epochs = dict(connection.execute("SELECT partition, epoch FROM owner"))

    def _own(self, partition: int, epoch: int) -> None:
        known = self._epochs.get(partition, -1)
        if epoch < known:
            raise StorageError(Failure.FENCED, f"partition {partition}, epoch {epoch} after {known}")

    def _probe(self) -> None:
        connection = self._usable()
        try:
            connection.execute("INSERT OR REPLACE INTO fact VALUES ('probe', zeroblob(65536))")
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error

    def _append(self, batches: Sequence[Batch]) -> list[int]:
        connection = self._usable()
        try:
            return self._write(connection, batches)
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error

    def _write(self, connection: sqlite3.Connection, batches: Sequence[Batch]) -> list[int]:
        last: dict[tuple[int, bytes], tuple[int, int, bytes | None]] = {}
        ends: list[int] = []
        owners: dict[int, int] = {}
        for partition, epoch, records in batches:
            known = self._epochs.get(partition, -1)
            if epoch < known:
                raise StorageError(Failure.FENCED, f"partition {partition}, epoch {epoch} after {known}")
            if epoch > known:
                owners[partition] = epoch
            position = self._positions.get(partition)
            if position is None:
                position = self._last_position(connection, partition)
            for key, value in records:
                position += 1
                last[partition, key] = position, epoch, value
            # A failed transaction leaves a gap in the positions; nothing counts them.
            self._positions[partition] = position
            ends.append(position)
        arguments: list[Any] = []
        dead: list[tuple[int, bytes]] = []
        for (partition, key), (position, epoch, value) in last.items():
            if value is None:
                dead.append((partition, key))
            else:
                arguments += (partition, key, position, epoch, value)
        self._transact(connection, arguments, dead, owners)
        self._epochs.update(owners)
        return ends

    def _transact(
        self,
        connection: sqlite3.Connection,
        arguments: list[Any],
        dead: list[tuple[int, bytes]],
        owners: dict[int, int],
    ) -> None:
        rows = len(arguments) // 5
        if rows <= ROWS_PER_STATEMENT and not dead and not owners:
            if rows:
                connection.execute(_INSERTS[rows], arguments)  # a statement alone is a transaction
            return
        connection.execute("BEGIN IMMEDIATE")
        for start in range(0, rows, ROWS_PER_STATEMENT):
            part = arguments[start * 5 : (start + ROWS_PER_STATEMENT) * 5]
            connection.execute(_INSERTS[len(part) // 5], part)
        if dead:
            connection.executemany(_DELETE, dead)
        if owners:
            connection.executemany("INSERT OR REPLACE INTO owner VALUES (?, ?)", owners.items())
        connection.execute("COMMIT")

    def _last_position(self, connection: sqlite3.Connection, partition: int) -> int:
        query = "SELECT coalesce(max(position), 0) FROM record WHERE partition = ?"
        [(position,)] = connection.execute(query, (partition,))
        return int(position)

    def _cursor(self, partition: int) -> sqlite3.Cursor:
        connection = self._usable()
        try:
            return connection.execute(_REPLAY, (partition,))
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error

    def _fetch(self, cursor: sqlite3.Cursor) -> list[tuple[int, int, bytes, bytes | None]]:
        connection = self._usable()
        try:
            return cursor.fetchmany(REPLAY_CHUNK_ROWS)
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # What was acknowledged is in the WAL; the next open folds it in.
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    # ---- failures ----

    def _usable(self) -> sqlite3.Connection:
        if self._broken is not None:
            raise StorageError(self._broken.failure, str(self._broken))
        if self._connection is None:
            raise StorageError(Failure.CLOSED)
        return self._connection

    def _failed(self, connection: sqlite3.Connection, error: sqlite3.Error) -> StorageError:
        """Undo the transaction, and say what happened."""
        failed = StorageError(self._failure(error), f"{self._path}: {error}")
        if connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                failed = StorageError(Failure.IO_ERROR, f"{self._path}: {error}, and rolling back failed")
        if failed.fatal:
            self._broken = failed
        return failed

    @staticmethod
    def _failure(error: sqlite3.Error) -> Failure:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return _FAILURES.get(code, Failure.IO_ERROR)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
