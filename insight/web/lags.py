"""Lag of groups in records and in time, from end offsets that were seen a while ago."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from ringleader.insight.model import Lag, TopicPartition

POINTS_MAX = 120
"""End offsets that are remembered of a partition. When there are more every other one goes: the memory
reaches twice as far back, half as finely."""
PARTITIONS_MAX = 50_000
"""Of all groups together."""


class GroupLag(NamedTuple):
    """How far a group is behind now."""

    records: int
    """Summed over partitions with a committed offset."""
    behind_ms: int
    """Of the partition that is furthest behind: how long ago its next record was written, about."""
    at_least: bool
    """It is older than what is remembered."""
    at_ms: int


class _Points:
    """One partition: when which end offset was seen."""

    __slots__ = ("committed", "ends", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.ends: list[int] = []
        self.committed: int | None = None

    def add(self, row: Lag) -> None:
        self.committed = row.committed
        if self.ends and row.end_offset < self.ends[-1]:  # the topic was created again
            self.times.clear()
            self.ends.clear()
        self.times.append(row.at_ms)
        self.ends.append(row.end_offset)
        if len(self.times) > POINTS_MAX:
            del self.times[1:-1:2], self.ends[1:-1:2]

    def behind(self, committed: int, now_ms: int) -> tuple[int, bool]:
        """How long ago the record at `committed` was written, and whether it was longer ago than that."""
        if committed >= self.ends[-1]:
            return 0, False
        # The record at `committed` came when the end offset went above it.
        index = bisect_left(self.ends, committed + 1)
        if index == 0:
            return max(now_ms - self.times[0], 0), True
        low, high = self.ends[index - 1], self.ends[index]
        share = (committed - low) / (high - low)
        written_ms = self.times[index - 1] + share * (self.times[index] - self.times[index - 1])
        return max(round(now_ms - written_ms), 0), False


class Lags:
    """Of all groups. No clock: the time is an argument."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, _Points]] = {}
        self._partitions = 0
        self.left_out = 0
        """Partitions that were one too many to be remembered."""

    def add(self, group: str, rows: Iterable[Lag]) -> None:
        """Take over measurements, in the order of time."""
        known = self._groups.setdefault(group, {})
        for row in rows:
            place = (row.topic, row.partition)
            points = known.get(place)
            if points is None:
                if self._partitions >= PARTITIONS_MAX:
                    self.left_out += 1
                    continue
                self._partitions += 1
                points = known[place] = _Points()
            points.add(row)

    def forget(self, group: str) -> None:
        """A group that is gone."""
        self._partitions -= len(self._groups.pop(group, {}))

    def newest_ms(self, group: str) -> int | None:
        """When it was measured last."""
        return max((points.times[-1] for points in self._groups.get(group, {}).values()), default=None)

    def of(self, group: str, now_ms: int) -> GroupLag | None:
        """None: nothing was measured where it has committed."""
        records, behind_ms, at_least, at_ms = 0, 0, False, None
        for points in self._groups.get(group, {}).values():
            if points.committed is None:
                continue
            at_ms = max(at_ms or 0, points.times[-1])
            records += max(points.ends[-1] - points.committed, 0)
            longest = max((behind_ms, at_least), points.behind(points.committed, now_ms))
            behind_ms, at_least = longest
        return None if at_ms is None else GroupLag(records, behind_ms, at_least, at_ms)
