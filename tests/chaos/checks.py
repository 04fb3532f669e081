"""Is what the processes saw what the coordinator promises? Pure functions over histories, as Jepsen has them.

Each returns violations in words, none if the promise was kept. Times are seconds of one monotonic clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tests.chaos.history import FAILED, OK, OPEN, UNKNOWN, Process

Place = tuple[str, str]
"""A group and a partition of it, as "topic:0"."""
Spans = list[tuple[int, int]]
"""Half-open ranges of offsets."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One try to commit one partition. `token`: its metadata, of its own where the writer gives each one."""

    place: Place
    offset: int
    token: str
    client: str
    began_s: float
    ended_s: float
    end: str


@dataclass(frozen=True, slots=True)
class Read:
    """The answer of one OffsetFetch about one partition; -1 and "": nothing is committed."""

    place: Place
    offset: int
    token: str
    client: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class View:
    """The answer that one member got about one generation; `members` is empty where it does not lead."""

    group: str
    generation: int
    member: str
    leader: str
    members: tuple[str, ...]
    client: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Owned:
    """The partitions that a member has in a generation, all of them. `member` may be unknown: ""."""

    group: str
    generation: int
    member: str
    partitions: frozenset[int]
    client: str
    at_s: float


_One = TypeVar("_One", Commit, Read)


def _at(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.3f}"


# ---- offsets ----


def turned_back(commits: Iterable[Commit], reads: Iterable[Read]) -> list[str]:
    """No acknowledged commit is lost or turned back: an OffsetFetch that began after the acknowledgement
    answers that offset, or one that was committed at the same time or since.

    A commit of unknown outcome counts from its beginning until its writer gave it up: a writer goes on only
    with a request that the coordinator took up later.
    """
    return [
        f"{one.place[0]} {one.place[1]}: {one.client} asked at {_at(one.began_s)} and read {one.offset}, "
        f"though {floor.offset} was acknowledged to {floor.client} at {_at(floor.ended_s)}, "
        f"{one.began_s - floor.ended_s:.3f} s before"
        for one, floor in stale(commits, reads)
    ]


def stale(commits: Iterable[Commit], reads: Iterable[Read]) -> list[tuple[Read, Commit]]:
    """The reads that `turned_back` tells of, each with an acknowledged commit that it is behind."""
    written = _by_place(commits)
    found = []
    for place, reads_there in _by_place(reads).items():
        floors = _Floors([one for one in written.get(place, []) if one.end != FAILED])
        found += [(one, floor) for one in reads_there if (floor := floors.of(one)) is not None]
    return found


class _Floors:
    """The offsets that a read must not be below, of one partition."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = sorted(commits, key=lambda one: one.began_s)
        self._begins = [one.began_s for one in self._commits]
        self._acked = sorted((one for one in commits if one.end == OK), key=lambda one: one.ended_s)
        self._acks = [one.ended_s for one in self._acked]
        self._highest: list[Commit] = []
        self._latest: list[float] = []
        for one in self._acked:
            best = self._highest[-1] if self._highest else one
            self._highest.append(one if one.offset >= best.offset else best)
            self._latest.append(max(one.began_s, self._latest[-1] if self._latest else one.began_s))
        lengths = [one.ended_s - one.began_s for one in commits if one.end != OPEN]
        self._longest_s = max(lengths, default=0.0)
        self._open = [one for one in commits if one.end == OPEN]

    def of(self, read: Read) -> Commit | None:
        """The acknowledged commit that the read is behind, None if it is not."""
        before = bisect_left(self._acks, read.began_s)
        if not before or read.offset >= self._highest[before - 1].offset:
            return None
        # It is below what was acknowledged at some time: was something lower committed since?
        since_s = self._latest[before - 1]
        first = bisect_left(self._begins, since_s - self._longest_s)
        last = bisect_left(self._begins, read.ended_s)
        possible = [one for one in self._commits[first:last] if one.ended_s > since_s]
        possible += [one for one in self._open if one.began_s < read.ended_s]
        if any(one.offset <= read.offset for one in possible):
            return None
        acked = [one for one in possible if one.end == OK and one.ended_s < read.began_s]
        return min(acked, key=lambda one: one.offset)


def not_one_register(commits: Iterable[Commit], reads: Iterable[Read]) -> list[str]:
    """A committed offset is one register: all reads and commits can be put into one order that keeps to real
    time, in which each read answers the commit before it.

    For partitions whose commits have a token each, as Gibbons and Korach decide it: the time from the first
    end to the last beginning among a commit and its reads belongs to this value alone.
    """
    written = _by_place(commits)
    found = []
    for place, reads_there in _by_place(reads).items():
        values = {one.token: one for one in written.get(place, [])}
        if len(values) < len(written.get(place, [])) or "" in values:
            raise ValueError(f"{place}: the commits need a token each")
        found += [f"{place[0]} {place[1]}: {why}" for why in _order(values, reads_there)]
    return found


def _order(values: Mapping[str, Commit], reads: Sequence[Read]) -> list[str]:
    found = []
    of_value: dict[str, list[Read]] = defaultdict(list)
    begins = [one.began_s for one in values.values()] + [one.began_s for one in reads]
    began_s = min(begins, default=0.0)
    first = Commit(("", ""), -1, "", "nobody", began_s - 2.0, began_s - 1.0, OK)
    for one in reads:
        value = first if one.token == "" else values.get(one.token)
        if value is None:
            found.append(f"{one.client} read {one.offset} {one.token!r}, which nobody committed")
        elif value.offset != one.offset:
            found.append(
                f"{one.client} read {one.offset} {one.token!r}, and that was a commit of {value.offset}"
            )
        elif value.end == FAILED:
            found.append(
                f"{one.client} read {one.offset} {one.token!r}, which {value.client} was told to have failed"
            )
        elif one.ended_s < value.began_s:
            found.append(f"{one.client} read {one.offset} {one.token!r} before it was committed")
        else:
            of_value[value.token].append(one)
    # A value that nobody read, and whose write was not acknowledged, may have had no effect at all.
    zones = []
    for value in (first, *values.values()):
        of = of_value[value.token]
        if value.end == OK or of:
            acked_s = value.ended_s if value.end == OK else math.inf
            first_end_s = min([acked_s, *(one.ended_s for one in of)])
            last_begin_s = max([value.began_s, *(one.began_s for one in of)])
            zones.append((first_end_s, last_begin_s, value))
    forward = sorted((zone for zone in zones if zone[0] < zone[1]), key=lambda zone: zone[0])
    for one_zone, next_zone in pairwise(forward):
        if next_zone[0] < one_zone[1]:
            found.append(
                f"{one_zone[2].offset} {one_zone[2].token!r} was seen until {_at(one_zone[1])}, though "
                f"{next_zone[2].offset} {next_zone[2].token!r} was there at {_at(next_zone[0])}"
            )
    starts = [zone[0] for zone in forward]
    for first_end_s, last_begin_s, value in zones:
        if first_end_s < last_begin_s:
            continue
        # It was there between its last beginning and its first end: not all of this time another one was.
        place = bisect_right(starts, last_begin_s) - 1
        if place >= 0 and forward[place][0] < last_begin_s and first_end_s < forward[place][1]:
            other = forward[place][2]
            found.append(
                f"{value.offset} {value.token!r} was there between {_at(last_begin_s)} and "
                f"{_at(first_end_s)}, though {other.offset} {other.token!r} was from "
                f"{_at(forward[place][0])} to {_at(forward[place][1])}"
            )
    return found


def _by_place(ones: Iterable[_One]) -> dict[Place, list[_One]]:
    found: dict[Place, list[_One]] = defaultdict(list)
    for one in ones:
        found[one.place].append(one)
    return found


def given_up(commits: Iterable[Commit]) -> list[str]:
    """No writer leaves it at a commit of unknown outcome: it tries again until an answer says that this one
    counts, or that it does not. One that was under way when its writer ended is none."""
    last: dict[tuple[Place, str], Commit] = {}
    for one in sorted(commits, key=lambda one: one.began_s):
        if one.end != OPEN:
            last[one.place, one.client] = one
    return [
        f"{one.place[0]} {one.place[1]}: {one.client} gave up the commit of {one.offset}"
        f" at {_at(one.ended_s)}"
        for one in last.values()
        if one.end == UNKNOWN
    ]


# ---- generations ----


def two_contents(views: Iterable[View], owned: Iterable[Owned]) -> list[str]:
    """A generation has one leader and one list of members, which has all that were assigned in it; and no
    generation is given out after a member had its partitions in a later one.

    One that nobody had partitions in yet may be lost with its coordinator: then its members are in the one
    before again, of the same content, until the next one comes.
    """
    found = []
    by_group: dict[str, list[View]] = defaultdict(list)
    for one in views:
        by_group[one.group].append(one)
    assigned: dict[str, list[Owned]] = defaultdict(list)
    for had in owned:
        assigned[had.group].append(had)
    for group, seen in by_group.items():
        by_generation: dict[int, list[View]] = defaultdict(list)
        for one in seen:
            by_generation[one.generation].append(one)
        for generation, of in sorted(by_generation.items()):
            name = f"{group}, generation {generation}"
            if len(leaders := {one.leader for one in of}) > 1:
                found.append(f"{name} has several leaders: {', '.join(sorted(leaders))}")
            lists = {frozenset(one.members) for one in of if one.members}
            if len(lists) > 1:
                found.append(f"{name} has several lists of members: {sorted(map(sorted, lists))}")
            elif lists and (strangers := {one.member for one in of} - next(iter(lists))):
                found.append(f"{name} was told to {', '.join(sorted(strangers))}, who is not in its list")
        found += [f"{group}: {why}" for why in _backwards(seen, assigned[group])]
    return found


def _backwards(seen: Iterable[View], assigned: Iterable[Owned]) -> Iterable[str]:
    ordered = sorted(assigned, key=lambda one: one.at_s)
    times = [one.at_s for one in ordered]
    highest: list[Owned] = []
    for one in ordered:
        highest.append(one if not highest or one.generation > highest[-1].generation else highest[-1])
    for view in seen:
        before = bisect_left(times, view.began_s)
        if before and highest[before - 1].generation > view.generation:
            yield (
                f"{view.client} asked at {_at(view.began_s)} and was told generation {view.generation}, "
                f"though {highest[before - 1].generation} was there at {_at(highest[before - 1].at_s)}"
            )


def two_owners(owned: Iterable[Owned]) -> list[str]:
    """In a generation each partition has one owner, and a member one set of partitions."""
    found = []
    sets: dict[tuple[str, int, str], Owned] = {}
    owners: dict[tuple[str, int, int], Owned] = {}
    for one in sorted(owned, key=lambda one: one.at_s):
        name = f"{one.group}, generation {one.generation}"
        holder = one.member or one.client
        before = sets.setdefault((one.group, one.generation, holder), one)
        if before.partitions != one.partitions:
            found.append(
                f"{name}: {one.client} had {sorted(before.partitions)} at {_at(before.at_s)}, and "
                f"{sorted(one.partitions)} at {_at(one.at_s)}"
            )
        for partition in sorted(one.partitions):
            owner = owners.setdefault((one.group, one.generation, partition), one)
            if (owner.member or owner.client) != holder:
                found.append(f"{name}: partition {partition} was given to {owner.client} and to {one.client}")
    return found


# ---- records ----


def skipped(produced: Mapping[int, Spans], processed: Mapping[str, Mapping[int, Spans]]) -> list[str]:
    """Every record that was acknowledged to its producer was processed in every group. `produced` by
    partition; `processed` by group, then partition."""
    found = []
    for group, by_partition in processed.items():
        for partition, spans in produced.items():
            for start, end in without(merged(spans), merged(by_partition.get(partition, []))):
                found.append(f"{group}: offsets {start} to {end - 1} of partition {partition} were skipped")
    return found


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    """The same offsets in as few spans as can be, in order."""
    whole: Spans = []
    for start, end in sorted(spans):
        if whole and start <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return whole


def without(spans: Spans, others: Spans) -> Spans:
    """The parts of `spans` that are in none of `others`; both merged."""
    left: Spans = []
    for start, end in spans:
        for cut_end, cut_start in others:
            if cut_start <= start or cut_end >= end:
                continue
            if cut_end > start:
                left.append((start, cut_end))
            start = max(start, cut_start)
        if start < end:
            left.append((start, end))
    return left


# ---- calls ----


def too_long(processes: Iterable[Process]) -> list[str]:
    """Every call ended within its bound; one that had no end was not under way longer than that."""
    found = []
    for one in processes:
        for call in one.calls:
            took_s = min(call.ended_s, one.last_s) - call.began_s
            if took_s > call.bound_s:
                how = "ended" if call.end != OPEN else "had not ended"
                found.append(
                    f"{one.client}: {call.what} at {_at(call.began_s)} {how} after {took_s:.1f} s; "
                    f"its bound is {call.bound_s:g} s"
                )
    return found
