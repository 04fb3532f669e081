"""`History`: the file, opened to read or to write."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ringleader.host.lock_file import HeldError, LockFile
from ringleader.insight.codec import MEMBER_AND_END, REBALANCE, STATE
from ringleader.insight.history.errors import HistoryError, HistoryLockedError
from ringleader.insight.history.queries import Away, Position, Queries, sentence
from ringleader.insight.history.tables import FOREVER, connect
from ringleader.insight.model import (
    Commit,
    Event,
    GroupState,
    Lag,
    MemberSpan,
    Ownership,
    Rebalance,
    TopicPartition,
)

Output = Rebalance | MemberSpan | Ownership | Event | GroupState | Commit | Lag

MAX_AGE_MS = 30 * 24 * 3_600_000
"""Older entries are deleted, unless a caller sets another age."""
MAX_BYTES = 1 << 30
"""Of the file, unless a caller sets another size. The oldest entries go first."""
MIN_BYTES = 1 << 20
SAMPLES_LEAST_MS = 3_600_000
"""Where there is too much, committed offsets and lag go first, as far as they are older."""
STEPS = 50
"""Where there is too much, this part of the time is deleted at once."""
DEAD = "Dead"
"""The state of a group that is gone."""
PRUNE_ROWS = 20_000
"""Rows deleted of each table in one transaction, so that other users of the file wait only briefly."""

_TIMES = {
    "rebalance": "at_ms",
    "event": "at_ms",
    "state": "gone_ms",
    "member": "until_ms",
    "ownership": "until_ms",
    "commits": "at_ms",
    "lag": "at_ms",
}
"""Table -> when a row of it is over."""
SAMPLES = ("commits", "lag")


class History(Queries):
    """The history of the groups of one cluster. Any number of processes may read it, one may write it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        lock: LockFile | None,
        max_age_ms: int,
        max_bytes: int,
    ) -> None:
        super().__init__(path, connection)
        self._lock = lock
        self._max_age_ms = max_age_ms
        self._max_bytes = max_bytes
        self._change = self.cursor if lock else 0

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        read_only: bool = False,
        cluster_id: str | None = None,
        address: str | None = None,
        max_age_ms: int = MAX_AGE_MS,
        max_bytes: int = MAX_BYTES,
    ) -> Self:
        """The writer makes the file and its directory, brings an older format up to date, and keeps it within
        `max_age_ms` and `max_bytes`.

        `cluster_id`: the caller's cluster; a new file is of this one from now on. Raises
        HistoryLockedError when another process writes it, FormatError for a file of something else or of a
        newer Ringleader, HistoryError for that of another cluster, or when there is none to be read.
        """
        if max_age_ms <= 0:
            raise ValueError(f"the age of a history has to be above 0 ms, not {max_age_ms}")
        if max_bytes < MIN_BYTES:
            raise ValueError(f"the size of a history has to be at least {MIN_BYTES} bytes, not {max_bytes}")
        path = Path(path)
        lock = None
        try:
            if not read_only:
                path.parent.mkdir(0o700, parents=True, exist_ok=True)
                lock = LockFile(path.with_name(path.name + ".lock"))
                lock.acquire()
            history = cls(path, connect(path, read_only=read_only), lock, max_age_ms, max_bytes)
        except HeldError as error:
            raise HistoryLockedError(path, error.pid) from None
        except sqlite3.Error as error:
            _release(lock)
            raise HistoryError(sentence(path, error)) from error
        except OSError as error:
            _release(lock)
            raise HistoryError(f"{path} cannot be opened: {error.strerror or error}") from error
        except BaseException:
            _release(lock)
            raise
        try:
            history._is_of(cluster_id, address)
        except BaseException:
            history.close()
            raise
        return history

    def record(
        self,
        outputs: Iterable[Output],
        *,
        positions: Mapping[TopicPartition, Position] | None = None,
        snapshots: Mapping[str, bytes] | None = None,
        commits: Mapping[str, bytes] | None = None,
        read_ms: int | None = None,
    ) -> None:
        """All of this, or nothing. A process that is killed loses nothing, a machine that loses power the
        last moments, positions included.

        An output with the id of an earlier one takes its place: a rebalance and an event by id, a member by
        group, id and beginning, ownership by that and the partition, a commit and a lag by partition and
        time. `positions`: where the writer goes on, of the topics it reads. `snapshots` and `commits`: the
        snapshots of inference, by group; b"" deletes one. `read_ms`: the time up to which it is complete now
        (`newest_ms`). Raises HistoryError; it may be called again with the same.
        """
        rows = _Rows(self._change)
        for one in outputs:
            rows.add(one)
        with self._transaction() as connection:
            for statement, values in rows.statements():
                connection.executemany(statement, values)
            if positions:
                places = [(*tp, *position) for tp, position in positions.items()]
                connection.executemany("INSERT OR REPLACE INTO position VALUES (?,?,?,?)", places)
            for table, given in (("snapshot", snapshots or {}), ("snapshot_commits", commits or {})):
                kept = [(group, value) for group, value in given.items() if value]
                deleted = [(group,) for group, value in given.items() if not value]
                connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?,?)", kept)
                connection.executemany(f"DELETE FROM {table} WHERE grp = ?", deleted)
            if read_ms is not None:
                connection.execute("INSERT OR REPLACE INTO fact VALUES ('read_ms', ?)", (read_ms,))
        self._change = rows.change

    def tell_away(self, away: Away | None) -> None:
        """Keep that the cluster does not answer, or with None that it does. Raises HistoryError."""
        with self._transaction() as connection:
            if away is None:
                connection.execute("DELETE FROM fact WHERE name = 'away'")
            else:
                connection.execute("INSERT OR REPLACE INTO fact VALUES ('away', ?)", (json.dumps(away),))

    def tell_retention(self, retention_ms: int) -> None:
        """Keep how long the brokers keep offsets (offsets.retention.minutes). Raises HistoryError."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO fact VALUES ('retention_ms', ?)", (retention_ms,))

    def prune(self, now_ms: int) -> int:
        """Delete rows that are too old, or too many; their number. To be called now and then: each call
        does a part, so that other users of the file wait only briefly."""
        forgotten = self._forget(_TIMES, now_ms - self._max_age_ms)
        if forgotten or self._bytes() <= self._max_bytes:
            return forgotten
        oldest_ms = min((found[0] for table in SAMPLES if (found := self._oldest(table))), default=now_ms)
        if oldest_ms < now_ms - SAMPLES_LEAST_MS:
            return self._forget(SAMPLES, oldest_ms + (now_ms - SAMPLES_LEAST_MS - oldest_ms) // STEPS + 1)
        oldest_ms = self.oldest_ms or now_ms
        return self._forget(_TIMES, oldest_ms + (now_ms - oldest_ms) // STEPS + 1)

    def close(self) -> None:
        """Close the file, for another process to write."""
        super().close()
        _release(self._lock)

    # ---- inside ----

    def _is_of(self, cluster_id: str | None, address: str | None) -> None:
        known = self.cluster_id
        if cluster_id and known and cluster_id != known:
            raise HistoryError(
                f"{self.path} is the history of the cluster {known}, not of {cluster_id}: name another file"
            )
        if self._lock is None:
            return
        with self._transaction() as connection:
            for name, value in (("cluster_id", cluster_id), ("address", address)):
                if value:
                    connection.execute("INSERT OR REPLACE INTO fact VALUES (?,?)", (name, value))

    def _oldest(self, table: str) -> list[int]:
        time = _TIMES[table]
        return [row[0] for row in self._all(f"SELECT min({time}) FROM {table}") if row[0] is not None]

    def _forget(self, tables: Iterable[str], before_ms: int) -> int:
        forgotten = 0
        for table in tables:
            time = _TIMES[table]
            # WITHOUT ROWID tables cannot be cut by number: by the time of the last row that goes instead.
            [last] = self._all(
                f"SELECT max({time}) FROM "
                f"(SELECT {time} FROM {table} WHERE {time} < ? ORDER BY {time} LIMIT ?)",
                before_ms,
                PRUNE_ROWS,
            )
            if last[0] is not None:
                with self._transaction() as connection:
                    forgotten += connection.execute(f"DELETE FROM {table} WHERE {time} <= ?", last).rowcount
        return forgotten

    def _bytes(self) -> int:
        [[pages]], [[free]], [[size]] = (
            self._all(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self._lock is None:
            raise HistoryError(f"{self.path} was opened to be read only")
        with self._saying():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


class _Rows:
    """Values as rows of their tables: of several with one key the last."""

    def __init__(self, change: int) -> None:
        self.change = change
        self._rows: dict[type, dict[Any, tuple[Any, ...]]] = {}

    def add(self, one: Output) -> None:
        """As the last word on it."""
        key, row = getattr(self, f"_{type(one).__name__.lower()}")(one)
        rows = self._rows.setdefault(type(one), {})
        rows.pop(key, None)  # the last word also has the last place
        rows[key] = row

    def statements(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """The statements that write the rows."""
        for kind, rows in self._rows.items():
            table = _TABLE_OF[kind]
            values = ",".join("?" * len(next(iter(rows.values()))))
            yield f"INSERT OR REPLACE INTO {table} VALUES ({values})", rows.values()

    def _next(self) -> int:
        self.change += 1
        return self.change

    def _rebalance(self, one: Rebalance) -> tuple[Any, tuple[Any, ...]]:
        return one.id, (one.id, one.group, one.at_ms, self._next(), REBALANCE.pack(one))

    def _event(self, one: Event) -> tuple[Any, tuple[Any, ...]]:
        about = (one.kind.value, one.text, one.member, one.reason)
        return one.id, (one.id, one.group, one.at_ms, self._next(), *about)

    def _groupstate(self, one: GroupState) -> tuple[Any, tuple[Any, ...]]:
        return one.group, (
            one.group,
            one.since_ms if one.state == DEAD else FOREVER,
            self._next(),
            STATE.pack(one),
        )

    def _memberspan(self, one: MemberSpan) -> tuple[Any, tuple[Any, ...]]:
        key = (one.group, one.member.member_id, one.since_ms)
        value = MEMBER_AND_END.pack((one.member, one.gone))
        return key, (*key, FOREVER if one.until_ms is None else one.until_ms, one.rebalance_id, value)

    def _ownership(self, one: Ownership) -> tuple[Any, tuple[Any, ...]]:
        until_ms = FOREVER if one.until_ms is None else one.until_ms
        start = (one.topic, one.partition, one.group, one.since_ms)
        return (*start, one.member_id), (*start, until_ms, one.member_id, one.rebalance_id)

    def _commit(self, one: Commit) -> tuple[Any, tuple[Any, ...]]:
        return one[:4], tuple(one)

    def _lag(self, one: Lag) -> tuple[Any, tuple[Any, ...]]:
        return one[:4], tuple(one)


_TABLE_OF: dict[type, str] = {
    Rebalance: "rebalance",
    Event: "event",
    GroupState: "state",
    MemberSpan: "member",
    Ownership: "ownership",
    Commit: "commits",
    Lag: "lag",
}


def _release(lock: LockFile | None) -> None:
    if lock is not None:
        lock.release()
