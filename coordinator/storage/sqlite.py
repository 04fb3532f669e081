"""The default store: one SQLite file, one row for the last record of each key, one sync per transaction.

The file is in WAL mode with `synchronous=FULL`: a transaction appends its pages to the WAL and syncs it once,
before `append` returns. Checkpoints write the pages to the main file behind the syncs that SQLite needs.
The key-value table compacts itself: there is nothing to clean.

Everything that is read is checked: the tree of pages at the start, every row by its own checksum, and the WAL
for transactions behind a damaged one, which SQLite would drop without a word."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from itertools import repeat
from operator import xor
from pathlib import Path
from typing import Any, Literal

from crc32c import crc32c

from ringleader.coordinator.storage import wal
from ringleader.coordinator.storage.base import Batch, Failure, Row, StorageError
from ringleader.coordinator.storage.writer import WriterThread
from ringleader.host.durable import sync_path

FORMAT_VERSION = 2
"""In the file's header (`user_version`). Raise it with every change of the tables, and write the step up:
2 gave each row a checksum."""

APPLICATION_ID = 0x524C4452
"""In the file's header: "RLDR"."""

COLUMNS = 6
"""Of a record."""

ROWS_PER_STATEMENT = 128
"""Rows of one INSERT. One statement is one trip out of the interpreter's lock; a trip for each row would wait
for the event loop's thread each time."""

REPLAY_CHUNK_ROWS = 500
"""Rows that the loader takes at a time; between two chunks the event loop does its other work. More of them
leave the processor's cache before they are looked at."""

CHECKPOINT_PAGES = 2_000
"""The WAL is folded into the main file at this size, 8 MiB: rare enough not to be felt, quick to replay."""

CLOSE_TIMEOUT_S = 10.0
"""How long `close` waits for a disk that does not answer."""

PROBE_BYTES = 65_536
"""Room that a full disk must have again before it is written to."""

RESTORE = "put a copy of the data directory from before in its place"

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
    checksum INTEGER NOT NULL,
    PRIMARY KEY (partition, key)
) WITHOUT ROWID;
CREATE TABLE owner (partition INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""

_STEP_UP = f"""
BEGIN IMMEDIATE;
ALTER TABLE record ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE record SET checksum = checksum(partition, epoch, position, key, value);
PRAGMA user_version = {FORMAT_VERSION};
COMMIT;
"""

_FAILURES = {
    sqlite3.SQLITE_FULL: Failure.DISK_FULL,
    sqlite3.SQLITE_BUSY: Failure.BUSY,
    sqlite3.SQLITE_LOCKED: Failure.BUSY,
    sqlite3.SQLITE_TOOBIG: Failure.TOO_LARGE,
    sqlite3.SQLITE_CORRUPT: Failure.CORRUPT,
    sqlite3.SQLITE_NOTADB: Failure.CORRUPT,
    sqlite3.SQLITE_ERROR: Failure.CORRUPT,  # our statements are right: the tables are others
}

_INSERTS = [
    "INSERT OR REPLACE INTO record VALUES " + ",".join(["(?,?,?,?,?,?)"] * rows)
    for rows in range(ROWS_PER_STATEMENT + 1)
]
_DELETE = "DELETE FROM record WHERE partition = ? AND key = ?"
_STRAY = "SELECT 1 FROM record WHERE partition < 0 UNION ALL SELECT 1 FROM record WHERE partition >= ?"
_END = "INSERT OR REPLACE INTO fact VALUES (?, ?)"
_ENDS = "SELECT partition, max(position) FROM record GROUP BY partition"
_SCAN = f"""
SELECT position, epoch, key, value, checksum FROM record
WHERE partition = ? AND key > ? ORDER BY key LIMIT {REPLAY_CHUNK_ROWS}
"""
_REPLAY = "SELECT position, epoch, key, value, checksum FROM record WHERE partition = ? ORDER BY position"


class SqliteStorage:
    """See `Storage`. Methods with an underscore run on the writer's thread and own the connection."""

    pipeline = 1
    together = True
    confirmed_reads = False

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
        self._deleted: dict[int, int] = {}
        """By partition: where it ended when a record was deleted last. Readers may know of it."""
        self._broken: StorageError | None = None

    async def start(self) -> None:
        """See `Storage.start`. An unknown file is refused with FORMAT and stays as it is."""
        self._thread = WriterThread("ringleader-storage")
        self._broken = None
        self._positions.clear()
        try:
            await self._thread.run(self._start)
        except BaseException:
            await self.close()
            raise

    async def open(self, partition: int, epoch: int) -> int:
        """See `Storage.open`."""
        await self._on_thread().run(self._own, partition, epoch)
        return epoch

    async def release(self, partition: int) -> None:
        """See `Storage.release`: the process that has the file has all partitions."""

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`."""
        return await self._on_thread().run(self._append, batches)

    async def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """See `Storage.replay`. CORRUPT for a row that is not what was stored."""
        thread = self._on_thread()
        cursor = await thread.run(self._cursor, partition)
        while rows := await thread.run(self._fetch, cursor, partition):
            yield rows

    async def ends(self) -> list[int]:
        """By partition: the position of its last record, which may be deleted by now; 0: there was none."""
        return await self._on_thread().run(self._ends)

    async def scan(self, partition: int, after: bytes) -> list[Row]:
        """Some of the rows of a partition by key, those after this key; none at the end. Other than `replay`
        it may go on beside appends. CORRUPT for a row that is not what was stored."""
        return await self._on_thread().run(self._scan, partition, after)

    async def probe(self) -> None:
        """See `Storage.probe`."""
        await self._on_thread().run(self._probe)

    async def close(self) -> None:
        """See `Storage.close`. Folds the WAL into the main file, so that one file is all there is. A disk
        that does not answer is left behind with its thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            closing = thread.run(self._close)
            thread.stop()
            await asyncio.wait([closing], timeout=CLOSE_TIMEOUT_S)
            if closing.done():
                closing.exception()  # a dead thread cannot close; its files go with the process
                thread.join()

    def _on_thread(self) -> WriterThread:
        if self._thread is None:
            raise StorageError(Failure.CLOSED)
        return self._thread

    # ---- on the writer's thread ----

    def _start(self) -> None:
        try:
            if self._exists():
                self._check_header()
            else:
                self._create()
            self._connection = self._connect()
            self._check(self._connection)
        except sqlite3.Error as error:
            failure = self._failure(error)
            if failure is Failure.BUSY:
                failure = Failure.LOCKED
            raise self._described(failure, error) from error
        except ValueError as error:
            raise self._described(Failure.CORRUPT, error) from error  # of the few facts, or no text
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
        application, version = (int.from_bytes(header[at : at + 4], "big") for at in (68, 60))
        if application != APPLICATION_ID:
            raise StorageError(Failure.FORMAT, f"{self._path} is a database of another program")
        self._check_version(version)

    def _check_version(self, version: int) -> None:
        if not 1 <= version <= FORMAT_VERSION:
            raise StorageError(
                Failure.FORMAT,
                f"{self._path} has format version {version}, this ringleader knows up to {FORMAT_VERSION}",
            )

    def _create(self) -> None:
        """Make the file under another name, so that what has the name is always whole."""
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = OFF")  # `sync_path` does it, once for all
            connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
            connection.execute("INSERT INTO fact VALUES ('partitions', ?)", (self._partitions,))
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        sync_path(fresh)
        fresh.rename(self._path)
        sync_path(self._path.parent)

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

    def _check(self, connection: sqlite3.Connection) -> None:
        wal.refuse_holes(self._path, connection)
        [(verdict,)] = connection.execute("PRAGMA integrity_check(1)")
        if verdict != "ok":
            raise StorageError(Failure.CORRUPT, f"{self._path}: {verdict}; {RESTORE}")
        connection.text_factory = bytes  # a damaged row may say that it is text
        # The header may be older than what the WAL says.
        [(version,)] = connection.execute("PRAGMA user_version")
        self._check_version(version)
        if version == 1:
            connection.create_function("checksum", 5, _checksum, deterministic=True)
            connection.executescript(_STEP_UP)
        [(partitions,)] = connection.execute("SELECT value FROM fact WHERE name = 'partitions'")
        if partitions != self._partitions:
            raise StorageError(
                Failure.FORMAT,
                f"{self._path} has offsets.topic.num.partitions {partitions}, not {self._partitions}",
            )
        if connection.execute(_STRAY, (partitions,)).fetchone():
            raise StorageError(Failure.CORRUPT, f"{self._path}: a row is of no partition; {RESTORE}")
        self._epochs = dict(connection.execute("SELECT partition, epoch FROM owner"))
        facts = dict(connection.execute("SELECT name, value FROM fact"))
        ends = {number: facts.get(f"end-{number}".encode(), 0) for number in range(partitions)}
        self._deleted = {number: end for number, end in ends.items() if isinstance(end, int)}

    def _own(self, partition: int, epoch: int) -> None:
        connection = self._usable()
        self._refuse_older(partition, epoch)
        if epoch == self._epochs.get(partition, 0):
            return
        try:
            connection.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (partition, epoch))
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error
        self._epochs[partition] = epoch

    def _probe(self) -> None:
        connection = self._usable()
        try:
            connection.execute("INSERT OR REPLACE INTO fact VALUES ('probe', randomblob(?))", (PROBE_BYTES,))
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
        for partition, epoch, records in batches:
            self._refuse_older(partition, epoch)
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
                checksum = crc32c(value, crc32c(key, partition)) ^ position ^ epoch
                arguments += (partition, key, position, epoch, value, checksum)
        self._transact(connection, arguments, dead)
        return ends

    def _refuse_older(self, partition: int, epoch: int) -> None:
        known = self._epochs.get(partition, 0)
        if epoch < known:
            raise StorageError(Failure.FENCED, f"partition {partition}, epoch {epoch} after {known}")

    def _transact(
        self, connection: sqlite3.Connection, arguments: list[Any], dead: list[tuple[int, bytes]]
    ) -> None:
        rows = len(arguments) // COLUMNS
        if rows <= ROWS_PER_STATEMENT and not dead:
            if rows:
                connection.execute(_INSERTS[rows], arguments)  # a statement alone is a transaction
            return
        connection.execute("BEGIN IMMEDIATE")
        for start in range(0, rows, ROWS_PER_STATEMENT):
            part = arguments[start * COLUMNS : (start + ROWS_PER_STATEMENT) * COLUMNS]
            connection.execute(_INSERTS[len(part) // COLUMNS], part)
        if dead:
            connection.executemany(_DELETE, dead)
            # Positions are not used again, even when their records are gone.
            ends = {partition: self._positions[partition] for partition, _ in dead}
            connection.executemany(_END, [(f"end-{number}", end) for number, end in ends.items()])
        connection.execute("COMMIT")

    def _last_position(self, connection: sqlite3.Connection, partition: int) -> int:
        query = "SELECT coalesce(max(position), 0) FROM record WHERE partition = ?"
        [(position,)] = connection.execute(query, (partition,))
        return max(int(position), self._deleted.get(partition, 0))

    def _ends(self) -> list[int]:
        connection = self._usable()
        try:
            rows = dict(connection.execute(_ENDS))
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error
        for number in range(self._partitions):
            end = max(int(rows.get(number, 0)), self._deleted.get(number, 0))
            self._positions.setdefault(number, end)
        return [self._positions[number] for number in range(self._partitions)]

    def _scan(self, partition: int, after: bytes) -> list[Row]:
        connection = self._usable()
        try:
            # All at once: an open cursor would keep the WAL from being folded in.
            found = connection.execute(_SCAN, (partition, after)).fetchall()
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error
        return self._whole(found, partition)

    def _cursor(self, partition: int) -> sqlite3.Cursor:
        connection = self._usable()
        try:
            return connection.execute(_REPLAY, (partition,))
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error

    def _fetch(self, cursor: sqlite3.Cursor, partition: int) -> list[Row]:
        connection = self._usable()
        try:
            found = cursor.fetchmany(REPLAY_CHUNK_ROWS)
        except sqlite3.Error as error:
            raise self._failed(connection, error) from error
        return self._whole(found, partition)

    def _whole(self, found: list[Any], partition: int) -> list[Row]:
        """These rows, if they are what was stored."""
        if not found:
            return []
        positions, epochs, keys, values, stored = zip(*found, strict=True)
        # All of `_checksum` for all rows, without a line of Python for each.
        try:
            sums = map(crc32c, values, map(crc32c, keys, repeat(partition)))
            whole = tuple(map(xor, sums, map(xor, positions, epochs))) == stored
        except (TypeError, OverflowError):
            whole = False  # a number is none any more
        if not whole:
            raise self._damaged(found, partition)
        return list(zip(positions, epochs, keys, values, strict=True))

    def _damaged(self, found: list[Any], partition: int) -> StorageError:
        """Names the first of these rows that is not what was stored. Nothing of the store is believed after
        it."""
        for position, epoch, key, value, stored in found:
            with contextlib.suppress(TypeError, OverflowError):
                if _checksum(partition, epoch, position, key, value) == stored:
                    continue
            break
        where = f"{self._path}: partition {partition}, key {key[:100]!r} is not what was stored"
        self._broken = StorageError(Failure.CORRUPT, f"{where}; {RESTORE}")
        return self._broken

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Acknowledged transactions are in the WAL; the next open folds it in.
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    # ---- failures ----

    def _usable(self) -> sqlite3.Connection:
        if self._broken is not None:
            raise self._broken
        if self._connection is None:
            raise StorageError(Failure.CLOSED)
        return self._connection

    def _failed(self, connection: sqlite3.Connection, error: sqlite3.Error) -> StorageError:
        """Undo the transaction, and say what happened."""
        failed = self._described(self._failure(error), error)
        if connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                failed = StorageError(Failure.IO_ERROR, f"{self._path}: {error}, and rolling back failed")
        if failed.fatal:
            self._broken = failed
        return failed

    def _described(self, failure: Failure, error: Exception) -> StorageError:
        what_to_do = f"; {RESTORE}" if failure is Failure.CORRUPT else ""
        return StorageError(failure, f"{self._path}: {error}{what_to_do}")

    @staticmethod
    def _failure(error: sqlite3.Error) -> Failure:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return _FAILURES.get(code, Failure.IO_ERROR)


def _checksum(partition: int, epoch: int, position: int, key: bytes, value: bytes) -> int:
    """Over all that a row says: CRC-32C of key and value, begun with the partition; then the numbers."""
    return int(crc32c(value, crc32c(key, partition))) ^ position ^ epoch
