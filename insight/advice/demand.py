"""The number of members that a group would use: what it is behind, in parts that cannot be divided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ringleader.insight.model import Lag, TopicPartition


class Demand(NamedTuple):
    """The need of a group now."""

    members: int
    """Members that would have something to do."""
    lag: int
    """Records that are not committed yet, over all partitions with a committed offset."""
    at_ms: int | None
    """The time of the newest measurement; None: there is none."""


def demand(rows: Iterable[Lag], records_per_member: int, topics: frozenset[str] = frozenset()) -> Demand:
    """The demand by measurements in the order of time; of `topics` alone, where some are given.

    A partition has one owner however far behind it is: one with `records_per_member` records or more takes
    one member, and the others share members by their lag. So a single hot partition asks for one member,
    where its lag alone would ask for many that stay idle. A partition with records and without a commit
    takes no more than one member for all such: how much of it will be read is not known.
    """
    newest: dict[TopicPartition, Lag] = {}
    for row in rows:
        if not topics or row.topic in topics:
            newest[row.topic, row.partition] = row
    lags = [max(row.end_offset - row.committed, 0) for row in newest.values() if row.committed is not None]
    full = sum(lag >= records_per_member for lag in lags)
    rest = sum(lag for lag in lags if lag < records_per_member)
    fresh = any(row.committed is None and row.end_offset for row in newest.values())
    members = max(full + -(-rest // records_per_member), int(fresh))
    return Demand(members, sum(lags), max((row.at_ms for row in newest.values()), default=None))
