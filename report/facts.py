"""The cluster's knowledge of a group: its members, its lag, its pace; and the offsets of a window."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringleader.clients.admin import Admin
from ringleader.clients.descriptions import GroupDescription, PartitionLag
from ringleader.clients.model import TopicPartition


class ReportError(Exception):
    """There is nothing to report on; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition: the offsets to read [`start`, `end`), and where the group is in it."""

    topic: str
    partition: int
    start: int
    end: int
    left_out: int
    """The number of older offsets of the window that the limit leaves no room for."""
    lag: int | None
    owner: str | None
    """Member id; None when no member has it."""
    consumed_per_s: float | None
    """Records for which the group committed, each second while it was watched; None when it was not."""

    @property
    def scale(self) -> float:
        """The number of records of the window behind each one that is read."""
        read = self.end - self.start
        return (read + self.left_out) / read if read else 1.0


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """One member and what it has to do."""

    member_id: str
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    partitions: int
    lag: int
    consumed_per_s: float | None

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do: there are no partitions for it."""
        return self.partitions == 0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group as it was seen. `watched_s`: for how long, to learn how fast it works."""

    group_id: str
    state: str
    members: tuple[MemberFacts, ...]
    partitions: tuple[PartitionFacts, ...]
    watched_s: float

    @property
    def left_out(self) -> int:
        """Offsets of the window that are not read, for the limit."""
        return sum(one.left_out for one in self.partitions)

    def counts(self) -> dict[str, int]:
        """Topic -> number of partitions."""
        found: dict[str, int] = {}
        for one in self.partitions:
            found[one.topic] = max(found.get(one.topic, 0), one.partition + 1)
        return found


async def look(
    admin: Admin,
    group_id: str,
    topics: Iterable[str] = (),
    *,
    since_ms: int,
    max_records: int,
    watch_s: float = 0.0,
) -> GroupFacts:
    """Look at a group. `topics`: those to report on; without any, those that the group reads.

    The window of a partition begins at the first record of `since_ms` (epoch) or later. Of all windows
    together at most `max_records` are read, the newest of each partition (see `shares`). With `watch_s` the
    committed offsets are looked at twice, so far apart. Raises ReportError, and what `Admin` raises.
    """
    (group,) = await admin.describe_groups([group_id])
    before = await admin.lag(group_id)
    there = {topic.name: topic for topic in await admin.list_topics()}
    named = set(topics)
    if missing := sorted(named - there.keys()):
        raise ReportError(f"no such topic: {', '.join(missing)}")
    # A group may have commits of topics that were deleted.
    wanted = sorted(named or _topics_of(group, before) & there.keys())
    if not wanted:
        raise ReportError(f"group {group_id} reads no topic: it has neither members nor committed offsets")
    places = [(name, p.partition) for name in wanted for p in there[name].partitions]
    window = await _window(admin, places, since_ms)
    read = shares({place: end - start for place, (start, end) in window.items()}, max_records)
    consumed: dict[TopicPartition, float] = {}
    after = before
    if watch_s > 0:
        await asyncio.sleep(watch_s)
        after = await admin.lag(group_id)
        consumed = _consumed(before, after, watch_s)
    return _facts(group, window, read, {(one.topic, one.partition): one for one in after}, consumed, watch_s)


def _topics_of(group: GroupDescription, lags: Iterable[PartitionLag]) -> set[str]:
    return {one.topic for one in lags} | {topic for member in group.members for topic in member.topics}


async def _window(
    admin: Admin, places: list[TopicPartition], since_ms: int
) -> dict[TopicPartition, tuple[int, int]]:
    ends = await admin.end_offsets(places)
    starts = await admin.start_offsets(places)
    since = await admin.offsets_at(dict.fromkeys(places, since_ms))
    found = {}
    for place in places:
        end = ends.get(place, 0)
        first = since.get(place, end)
        first = end if first < 0 else first
        found[place] = (max(starts.get(place, 0), min(first, end)), end)
    return found


def shares(counts: Mapping[TopicPartition, int], most: int) -> dict[TopicPartition, int]:
    """How many records to read of each partition, `most` in all: what small ones leave, big ones get."""
    found = {}
    for index, (place, count) in enumerate(sorted(counts.items(), key=lambda one: one[1])):
        found[place] = min(count, most // (len(counts) - index))
        most -= found[place]
    return found


def _consumed(
    before: Iterable[PartitionLag], after: Iterable[PartitionLag], watch_s: float
) -> dict[TopicPartition, float]:
    had = {(one.topic, one.partition): one.committed for one in before}
    found = {}
    for one in after:
        place = (one.topic, one.partition)
        first = had.get(place)
        if one.committed is not None and first is not None:
            found[place] = max(0, one.committed - first) / watch_s
    return found


def _facts(
    group: GroupDescription,
    window: Mapping[TopicPartition, tuple[int, int]],
    read: Mapping[TopicPartition, int],
    lags: Mapping[TopicPartition, PartitionLag],
    consumed: Mapping[TopicPartition, float],
    watch_s: float,
) -> GroupFacts:
    owners = {
        (topic, p): member.member_id
        for member in group.members
        for topic, ps in member.assignment.items()
        for p in ps
    }
    partitions = tuple(
        PartitionFacts(
            *place,
            end - read[place],
            end,
            end - read[place] - start,
            lags[place].lag if place in lags else None,
            owners.get(place),
            consumed.get(place) if watch_s > 0 else None,
        )
        for place, (start, end) in sorted(window.items())
    )
    members = tuple(
        MemberFacts(
            member.member_id,
            member.client_id,
            member.client_host,
            member.topics,
            sum(map(len, member.assignment.values())),
            sum(one.lag or 0 for place, one in lags.items() if owners.get(place) == member.member_id),
            sum(rate for place, rate in consumed.items() if owners.get(place) == member.member_id)
            if watch_s > 0
            else None,
        )
        for member in sorted(group.members, key=lambda one: (one.client_id, one.member_id))
    )
    return GroupFacts(group.group_id, group.state, members, partitions, watch_s)
