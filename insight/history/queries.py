"""The questions that a history answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from ringleader.insight.codec import MEMBER_AND_END, REBALANCE, STATE
from ringleader.insight.history.errors import HistoryError
from ringleader.insight.history.tables import FOREVER
from ringleader.insight.model import (
    Commit,
    Event,
    EventKind,
    GroupState,
    Lag,
    MemberSpan,
    Ownership,
    Rebalance,
    TopicPartition,
    report_id,
)

CHANGES_AT_ONCE = 1_000
"""The most that `changes` returns."""

_EVENT = "id, grp, at_ms, kind, text, member, reason"
"""The columns that `_event` reads."""
_CHANGES = f"""
SELECT change, 'rebalance', value, NULL, NULL, NULL, NULL, NULL, NULL FROM rebalance WHERE change > ?1
UNION ALL SELECT change, 'event', {_EVENT} FROM event WHERE change > ?1
UNION ALL SELECT change, 'state', value, NULL, NULL, NULL, NULL, NULL, NULL FROM state WHERE change > ?1
ORDER BY change LIMIT ?2
"""


class Position(NamedTuple):
    """Where one goes on in a partition: `next_offset` is the first record that is not in the history yet,
    `again` where to read from, so that open transactions are known (the same, where there are none)."""

    next_offset: int
    again: int


class Away(NamedTuple):
    """A cluster that does not answer its watcher."""

    since_ms: int
    why: str
    """The error of the first request that failed."""


class Queries:
    """The read side. All times are Unix time in milliseconds; lists are in the order of time. May be used by
    several threads. Everything raises HistoryError for a file that cannot be read."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    # ---- the whole ----

    @property
    def cluster_id(self) -> str:
        """Of the cluster that this is the history of; "" for one that does not say."""
        return str(self._fact("cluster_id") or "")

    @property
    def address(self) -> str:
        """HOST:PORT, where the cluster was reached last."""
        return str(self._fact("address") or "")

    @property
    def away(self) -> Away | None:
        """Since when the cluster does not answer the watcher; None: it answers, as far as that is known."""
        stored = self._fact("away")
        return None if stored is None else Away(*json.loads(stored))

    @property
    def retention_ms(self) -> int | None:
        """How long the brokers keep offsets of groups without members; None: they did not say."""
        stored = self._fact("retention_ms")
        return None if stored is None else int(stored)

    @property
    def newest_ms(self) -> int | None:
        """Up to when it tells; None: nothing yet."""
        stored = self._fact("read_ms")
        return None if stored is None else int(stored)

    @property
    def oldest_ms(self) -> int | None:
        """The first moment that something is known of; None: nothing yet."""
        queries = (
            "SELECT min(at_ms) FROM rebalance",
            "SELECT min(at_ms) FROM event",
            "SELECT min(at_ms) FROM commits",
            "SELECT min(at_ms) FROM lag",
            "SELECT min(since_ms) FROM member",
        )
        found = [row[0] for query in queries for row in self._all(query) if row[0] is not None]
        return min(found, default=None)

    @property
    def cursor(self) -> int:
        """For `changes`: what comes from now on."""
        return max(row[0] or 0 for table in _READ for row in self._all(f"SELECT max(change) FROM {table}"))

    def positions(self) -> dict[TopicPartition, Position]:
        """Where a writer goes on, in each partition of the topics that it reads."""
        return {
            (topic, partition): Position(*offsets)
            for topic, partition, *offsets in self._all(
                "SELECT topic, partition, next_offset, again FROM position"
            )
        }

    def snapshots(self) -> list[tuple[str, bytes, bytes]]:
        """Of each group what `record` was given last: snapshot and commits, b"" for what there is not."""
        groups = dict(self._all("SELECT grp, value FROM snapshot"))
        commits = dict(self._all("SELECT grp, value FROM snapshot_commits"))
        return [(one, groups.get(one, b""), commits.get(one, b"")) for one in sorted({*groups, *commits})]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is asked in the block is of one moment, whatever is written meanwhile."""
        with self._saying():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    # ---- groups ----

    def groups(self) -> list[GroupState]:
        """All that were seen, by name; those that are gone have the state Dead."""
        return [STATE.unpack(row[0]) for row in self._all("SELECT value FROM state ORDER BY grp")]

    def group(self, group: str) -> GroupState | None:
        """None: never seen."""
        return next(
            (STATE.unpack(row[0]) for row in self._all("SELECT value FROM state WHERE grp = ?", group)), None
        )

    def rebalances(
        self,
        group: str | None = None,
        *,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Rebalance]:
        """Those that ended within the time, of one group or of all. Of more than `limit` the oldest, or with
        `newest_first` the newest."""
        return [*self.each_rebalance(group, since_ms, until_ms, limit=limit, newest_first=newest_first)]

    def knows(self, group: str) -> bool:
        """Whether it was ever seen."""
        return self.group(group) is not None or bool(self.rebalances(group, limit=1))

    def each_rebalance(
        self,
        group: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        *,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Rebalance]:
        """As `rebalances`, one after the other; without a limit all within the time."""
        where = _Where("at_ms", since_ms, until_ms)
        where.equal("grp", group)
        order = "DESC" if newest_first else "ASC"
        query = f"SELECT value FROM rebalance{where} ORDER BY at_ms {order}, rowid {order} LIMIT ?"
        most = -1 if limit is None else limit
        return (REBALANCE.unpack(row[0]) for row in self._each(query, *where.values, most))

    def rebalance(self, id: str) -> Rebalance | None:  # noqa: A002
        """None: there is none, or no longer."""
        found = self._all("SELECT value FROM rebalance WHERE id = ?", id)
        return next((REBALANCE.unpack(row[0]) for row in found), None)

    def members(
        self, group: str, *, since_ms: int | None = None, until_ms: int | None = None
    ) -> list[MemberSpan]:
        """Members whose life touches the time."""
        return [*self.each_member(group, since_ms, until_ms)]

    def each_member(
        self, group: str, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[MemberSpan]:
        """As `members`, one after the other."""
        where = _Where("until_ms", since_ms, None)
        where.equal("grp", group)
        where.most("since_ms", until_ms)
        query = (
            "SELECT since_ms, nullif(until_ms, ?), rebalance_id, value "
            f"FROM member{where} ORDER BY since_ms, rowid"
        )
        for since, until, rebalance_id, value in self._each(query, FOREVER, *where.values):
            member, departure = MEMBER_AND_END.unpack(value)
            yield MemberSpan(group, member, since, until, departure, rebalance_id)

    # ---- partitions ----

    def ownership(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[Ownership]:
        """The owners of partitions, as far as they touch the time."""
        where = _Where("until_ms", since_ms, None)
        where.equal("grp", group)
        where.equal("topic", topic)
        where.equal("partition", partition)
        where.most("since_ms", until_ms)
        return self._ownership(where)

    def owners_at(self, topic: str, partition: int, at_ms: int) -> list[Ownership]:
        """The owners of that partition then, in all groups. Of a handover at that very moment, the new
        owner."""
        where = _Where("until_ms", at_ms + 1, None)
        where.equal("topic", topic)
        where.equal("partition", partition)
        where.most("since_ms", at_ms)
        return self._ownership(where)

    def commits(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[Commit]:
        """Committed offsets, thinned: of each partition one in 10 s, the last before and the first after each
        rebalance, and the newest."""
        where = _samples(group, topic, partition, since_ms, until_ms)
        query = f"SELECT topic, partition, at_ms, offset FROM commits{where} ORDER BY at_ms"
        names: dict[str, str] = {}
        return [
            Commit(group, names.setdefault(topic, topic), *row)
            for topic, *row in self._each(query, *where.values)
        ]

    def offsets_at(self, group: str, at_ms: int) -> dict[TopicPartition, Commit]:
        """The committed offset of each partition then."""
        query = (
            "SELECT grp, topic, partition, max(at_ms), offset FROM commits WHERE grp = ? AND at_ms <= ? "
            "GROUP BY topic, partition"
        )
        found = [Commit(*row) for row in self._all(query, group, at_ms)]
        return {(one.topic, one.partition): one for one in found}

    def lag(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[Lag]:
        """How far behind it was, every few seconds."""
        return [*self._lag("at_ms", group, _samples(group, topic, partition, since_ms, until_ms))]

    def each_lag(self, group: str, since_ms: int | None = None, until_ms: int | None = None) -> Iterator[Lag]:
        """As `lag`, one after the other, partition by partition."""
        order = "topic, partition, at_ms"
        return self._lag(order, group, _samples(group, None, None, since_ms, until_ms))

    # ---- the rest ----

    def events(
        self, group: str | None = None, *, since_ms: int | None = None, until_ms: int | None = None
    ) -> list[Event]:
        """Of one group, of the cluster as a whole (""), or all."""
        return [*self.each_event(group, since_ms, until_ms)]

    def each_event(
        self, group: str | None = None, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[Event]:
        """As `events`, one after the other."""
        where = _Where("at_ms", since_ms, until_ms)
        where.equal("grp", group)
        query = f"SELECT {_EVENT} FROM event{where} ORDER BY at_ms, rowid"
        return map(_event, self._each(query, *where.values))

    def reports(self, group: str) -> dict[str, Event]:
        """The last reports of the clients of members about themselves (KIP-714), by member id."""
        first = report_id(group, "")
        # The character after "-", which ends `first`.
        query = f"SELECT {_EVENT} FROM event WHERE id >= ? AND id < ? AND grp = ?"
        found = map(_event, self._all(query, first, f"{first[:-1]}.", group))
        return {one.id.removeprefix(first): one for one in found}

    def changes(self, after: int) -> tuple[int, list[Rebalance | Event | GroupState]]:
        """The entries since the cursor was `after`, in that order, and the cursor that goes on from there; of
        several states of a group the last. At most `CHANGES_AT_ONCE`: ask again until there are none."""
        found = self._all(_CHANGES, after, CHANGES_AT_ONCE)
        return (found[-1][0] if found else after), [_READ[row[1]](row[2:]) for row in found]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ---- inside ----

    def _ownership(self, where: _Where) -> list[Ownership]:
        query = (
            "SELECT grp, topic, partition, member_id, since_ms, nullif(until_ms, ?), rebalance_id "
            f"FROM ownership{where} ORDER BY since_ms, topic, partition"
        )
        return [Ownership(*row) for row in self._all(query, FOREVER, *where.values)]

    def _lag(self, order: str, group: str, where: _Where) -> Iterator[Lag]:
        query = f"SELECT topic, partition, at_ms, end_offset, committed FROM lag{where} ORDER BY {order}"
        names: dict[str, str] = {}
        for topic, *row in self._each(query, *where.values):
            yield Lag(group, names.setdefault(topic, topic), *row)

    def _fact(self, name: str) -> Any:
        return next((row[0] for row in self._all("SELECT value FROM fact WHERE name = ?", name)), None)

    def _all(self, query: str, *values: Any) -> list[Any]:
        return [*self._each(query, *values)]

    def _each(self, query: str, *values: Any) -> Iterator[Any]:
        with self._saying():
            yield from self._connection.execute(query, values)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise HistoryError(sentence(self.path, error)) from error


class _Where:
    """Conditions, and the values in them."""

    def __init__(self, time: str, since_ms: int | None, until_ms: int | None) -> None:
        self._conditions: list[str] = []
        self.values: list[Any] = []
        if since_ms is not None:
            self._add(f"{time} >= ?", since_ms)
        self.most(time, until_ms)

    def equal(self, column: str, value: Any) -> None:
        """Unless it is None."""
        if value is not None:
            self._add(f"{column} = ?", value)

    def most(self, column: str, value: int | None) -> None:
        """At most that, unless it is None."""
        if value is not None:
            self._add(f"{column} <= ?", value)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""

    def _add(self, condition: str, value: Any) -> None:
        self._conditions.append(condition)
        self.values.append(value)


def _samples(
    group: str, topic: str | None, partition: int | None, since_ms: int | None, until_ms: int | None
) -> _Where:
    where = _Where("at_ms", since_ms, until_ms)
    where.equal("grp", group)
    where.equal("topic", topic)
    where.equal("partition", partition)
    return where


def _event(row: Iterable[Any]) -> Event:
    id, group, at_ms, kind, *about = row  # noqa: A001
    return Event(id, group, at_ms, EventKind(kind), *about)


_READ: dict[str, Callable[[Any], Rebalance | Event | GroupState]] = {
    "rebalance": lambda row: REBALANCE.unpack(row[0]),
    "event": _event,
    "state": lambda row: STATE.unpack(row[0]),
}


def sentence(path: Path, error: sqlite3.Error) -> str:
    """An error of SQLite as a sentence for people."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"the disk is full: make room for {path}, or name a file on another one"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another program keeps {path} for itself: end it"
    if code == sqlite3.SQLITE_CANTOPEN:
        return f"{path} cannot be opened: check that its directory exists and that you may write there"
    if code == sqlite3.SQLITE_READONLY:
        return f"{path} cannot be written: check the rights of the file and its directory"
    if code == sqlite3.SQLITE_CORRUPT:
        return f"{path} is damaged ({error}): move it away, and the history begins again"
    return f"{path}: {error}"
