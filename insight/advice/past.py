"""The material of advice: the history of one group in a window of time, and the processes behind members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, takewhile
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ringleader.insight.advice.words import clock
from ringleader.insight.model import (
    Commit,
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    GroupState,
    Kind,
    Lag,
    Member,
    MemberSpan,
    Move,
    Rebalance,
    TopicPartition,
)

if TYPE_CHECKING:
    from ringleader.insight.history.queries import Queries

REBALANCES_MAX = 10_000
"""Rebalances that are looked at: the last ones."""
PARTS_MAX = 500_000
"""For findings: members in these rebalances, their partitions, and moves, as far as these are read. Where
nothing is equal in two rebalances, which is rare, they take some 140 MB."""
COMMITS_MS = 3_600_000
HEARTBEAT_MS = 3_000
"""Default of heartbeat.interval.ms: so late a member learns of a rebalance. Where the beginning of one is not
known, it is taken to be this time before its end."""

PUT_OUT = (
    Departure.SESSION_EXPIRED,
    Departure.POLL_INTERVAL_EXCEEDED,
    Departure.NOT_REJOINED,
    Departure.NOT_SYNCED,
    Departure.NOT_REVOKED,
)
"""Members that went so were put out by the coordinator."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A member that came."""

    member: Member
    rebalance: Rebalance
    at_ms: int
    """When it asked, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Going:
    """A member that went."""

    member: Member
    """As it was last, with its partitions."""
    departure: DepartureFinding
    rebalance: Rebalance
    at_ms: int
    """When the group noticed."""
    back: Arrival | None
    """The first that came from the same place (`place`) afterwards, or in the same rebalance."""

    @property
    def silent_since_ms(self) -> int:
        """The time of its last request."""
        found_ms = self.at_ms
        exact = self.departure.confidence is Confidence.EXACT
        if self.departure.silent_ms is not None:
            # The journal counts until the member went, inference until the group's record.
            found_ms = (self.at_ms if exact else self.rebalance.at_ms) - self.departure.silent_ms
        if self.departure.why is Departure.SESSION_EXPIRED and not exact:
            # Its partitions may have been committed for it: it was silent for its session all the same.
            found_ms = min(found_ms, self.at_ms - (self.member.session_timeout_ms or 0))
        return found_ms

    @property
    def away_ms(self) -> int | None:
        """From its last request until it was back; None: it did not come back."""
        return None if self.back is None else max(self.back.at_ms - self.silent_since_ms, 0)


class Behind(NamedTuple):
    """How far a group was behind in one partition over a time."""

    since_ms: int
    """The first measurement."""
    newest: Lag
    measured: int
    """Measurements of a time when something was committed; the rest is about these."""
    ends: tuple[Lag, ...]
    """The first of them, the one in the middle, and the last; none where there are none."""
    first: float
    """Records behind, on average in the first quarter of them."""
    last: float
    """Likewise in the last quarter."""


@dataclass(frozen=True)
class Past:
    """One group between two times. All lists are ordered by time."""

    group: str
    since_ms: int
    until_ms: int
    rebalances: Sequence[Rebalance] = ()
    spans: Sequence[MemberSpan] = ()
    commits: Sequence[Commit] = ()
    lags: Sequence[Lag] = ()
    """As `commits`, of the last part of the time."""
    behind: Mapping[TopicPartition, Behind] = field(default_factory=dict)
    """How far behind each partition was in the whole time."""
    events: Sequence[Event] = ()
    state: GroupState | None = None
    """As it is now."""
    offsets: Mapping[TopicPartition, Commit] = field(default_factory=dict)
    """The last commit of each partition, of a group without members."""
    retention_ms: int | None = None
    """The brokers' offsets.retention.minutes, in milliseconds; None: not known."""
    left_out: str = ""
    """One sentence, where older rebalances were not read, though they lie within the time."""

    @classmethod
    def read(
        cls,
        history: Queries,
        group: str,
        since_ms: int,
        until_ms: int,
        *,
        commits_ms: int = COMMITS_MS,
        counted: bool = False,
        parts_max: int | None = None,
    ) -> Past:
        """From a history. At most `REBALANCES_MAX` rebalances, and those with `parts_max` parts (see
        `PARTS_MAX`; None: however many); the window begins later then (`left_out`). `commits_ms`:
        commits and lags of that last time are read; of many partitions there are very many. `counted`: the
        partitions that members had and that moved are counted only, but for the newest rebalance; enough
        for `advise` without a replay."""
        each = history.each_rebalance(group, since_ms, until_ms, limit=REBALANCES_MAX + 1, newest_first=True)
        newest = next(each, None)
        whole_ms = newest.at_ms if newest is not None and counted else 0
        room = _Room(whole_ms, parts_max)
        some = takewhile(room.has, chain([] if newest is None else [newest], each))
        found = list(shared(some, whole_ms))
        if room.full_of:
            since_ms = found[-1].at_ms
        state = history.group(group)
        is_empty = state is not None and state.state == "Empty" and state.since_ms <= until_ms
        return cls(
            group,
            since_ms,
            until_ms,
            sorted(found, key=lambda one: (one.at_ms, one.generation)),
            history.members(group, since_ms=since_ms, until_ms=until_ms),
            history.commits(group, since_ms=max(since_ms, until_ms - commits_ms), until_ms=until_ms),
            history.lag(group, since_ms=max(since_ms, until_ms - commits_ms), until_ms=until_ms),
            _behind(history.each_lag(group, since_ms, until_ms)),
            history.events(group, since_ms=since_ms, until_ms=until_ms),
            state,
            history.offsets_at(group, until_ms) if is_empty else {},
            history.retention_ms,
            f"Rebalances before {clock(since_ms)} are left out: {room.full_of} are looked at, at most."
            if room.full_of
            else "",
        )

    @cached_property
    def counted(self) -> list[Rebalance]:
        """The rebalances. A static member that took its place again without a new generation made none."""
        found: list[Rebalance] = []
        generation = None
        for one in self.rebalances:
            if one.kind is not Kind.CLASSIC or one.generation != generation:
                found.append(one)
            generation = one.generation
        return found

    @property
    def records_behind(self) -> int:
        """By the newest measurements, summed over partitions; one that was measured before its last commit
        counts as 0."""
        newest = [one.newest for one in self.behind.values()]
        return sum(max(one.end_offset - one.committed, 0) for one in newest if one.committed is not None)

    @cached_property
    def known(self) -> dict[str, Member]:
        """Every member that was seen, by member id, as it was last with partitions."""
        found = {one.member.member_id: one.member for one in self.spans}
        for rebalance in self.rebalances:
            for member in (*rebalance.before, *rebalance.members):
                if member.assigned or member.member_id not in found:
                    found[member.member_id] = member
        return found

    def name(self, member_id: str) -> str:
        """How a person knows the member."""
        member = self.known.get(member_id)
        return member.name if member else member_id

    def names(self, member_ids: Iterable[str]) -> tuple[str, ...]:
        """Names without repetition, in order."""
        return tuple(dict.fromkeys(self.name(one) for one in member_ids))

    def began_ms(self, rebalance: Rebalance) -> int:
        """When it began; where that is not known, a heartbeat before its end, but after the one before it."""
        if rebalance.began_ms is not None:
            return rebalance.began_ms
        number = self._number[rebalance.id]
        before_ms = self.rebalances[number - 1].at_ms if number else 0
        return max(rebalance.at_ms - HEARTBEAT_MS, min(before_ms + 1, rebalance.at_ms))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {one.id: number for number, one in enumerate(self.rebalances)}

    @cached_property
    def arrivals(self) -> list[Arrival]:
        """Members that came."""
        found = []
        for rebalance in self.rebalances:
            by_id = {member.member_id: member for member in rebalance.members}
            for member_id in rebalance.joined:
                member = by_id.get(member_id) or self.known.get(member_id)
                if member is not None:
                    found.append(Arrival(member, rebalance, self.began_ms(rebalance)))
        return found

    @cached_property
    def goings(self) -> list[Going]:
        """Members that went."""
        by_place: dict[tuple[str, str], list[Arrival]] = defaultdict(list)
        for arrival in self.arrivals:
            by_place[place(arrival.member)].append(arrival)
        found = []
        for rebalance in self.rebalances:
            before = {member.member_id: member for member in rebalance.before}
            for member_id, departure in rebalance.left.items():
                member = before.get(member_id) or self.known.get(member_id)
                if member is None:
                    continue
                at_ms = self.began_ms(rebalance)
                back = next(
                    (
                        one
                        for one in by_place.get(place(member), ())
                        if one.rebalance.at_ms >= rebalance.at_ms and one.member.member_id != member_id
                    ),
                    None,
                )
                found.append(Going(member, departure, rebalance, at_ms, back))
        return found

    @cached_property
    def partitions(self) -> dict[str, int]:
        """Topic -> how many partitions, as far as anything was seen of them."""
        return partition_counts(member for one in self.rebalances for member in (*one.before, *one.members))


class _Room:
    """Takes rebalances, the newest first, until there are too many."""

    def __init__(self, whole_ms: int, parts_max: int | None) -> None:
        """`whole_ms`: as of `shared`."""
        self.full_of = ""
        """The limit that was reached, in words."""
        self._whole_ms = whole_ms
        self._parts_max = parts_max
        self._rebalances = self._parts = 0

    def has(self, one: Rebalance) -> bool:
        """Whether there is room for it. The newest is always taken."""
        self._rebalances += 1
        self._parts += len(one.members)
        if one.at_ms >= self._whole_ms:
            self._parts += sum(len(member.assigned) for member in one.members) + len(one.moves)
        if self._rebalances > REBALANCES_MAX:
            self.full_of = f"{REBALANCES_MAX:,} rebalances"
        elif self._parts_max is not None and self._parts > self._parts_max and self._rebalances > 1:
            self.full_of = f"{self._parts_max:,} members and partitions in rebalances"
        return not self.full_of


def shared(rebalances: Iterable[Rebalance], whole_ms: int = 0) -> Iterator[Rebalance]:
    """The same; what is equal in several of them is in memory once: members with their partitions, who are
    before and after a rebalance and in the next one, ids and topics. A day of a large group is some ten times
    smaller. Of those that ended before `whole_ms`, the partitions that members had and that moved are
    `Counted`: more partitions are no more memory."""
    known: dict[Hashable, Any] = {}

    def one(value: Any) -> Any:
        return known.setdefault(value, value)

    def counted(some: tuple[Any, ...]) -> Any:
        return one(Counted(len(some)))

    def member(value: Member) -> Member:
        if not whole:
            value = value._replace(assigned=counted(value.assigned))
        found: Member | None = known.get(value)
        if found is None:
            assigned = (
                one(tuple(one((one(topic), partition)) for topic, partition in value.assigned))
                if whole
                else value.assigned
            )
            texts = (one(value.member_id), one(value.client_id), one(value.host))
            found = known[value] = Member(*texts, value.instance_id, one(value.topics), assigned, *value[-2:])
        return found

    for each in rebalances:
        whole = each.at_ms >= whole_ms
        yield replace(
            each,
            members=one(tuple(map(member, each.members))),
            before=one(tuple(map(member, each.before))),
            moves=tuple(
                Move(one(topic), partition, one(giver), one(heir), unowned_ms)
                for topic, partition, giver, heir, unowned_ms in each.moves
            )
            if whole
            else counted(each.moves),
        )


class Counted(tuple[Any, ...]):
    """A count without its elements in memory: it has a length, and raises TypeError when it is read."""

    _length: int

    def __new__(cls, count: int) -> Self:
        """A tuple that is as long as it says."""
        found = super().__new__(cls)
        found._length = count
        return found

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"there are {self._length}, of which nothing else is known here")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and other._length == self._length

    def __hash__(self) -> int:
        return hash((Counted, self._length))


def _behind(lags: Iterable[Lag]) -> dict[TopicPartition, Behind]:
    """Of each partition; `lags` are ordered by partition, then by time. One partition's are in memory."""
    return {tp: _summed([*some]) for tp, some in groupby(lags, key=lambda one: (one.topic, one.partition))}


def _summed(lags: Sequence[Lag]) -> Behind:
    known = [one for one in lags if one.committed is not None]
    if not known:
        return Behind(lags[0].at_ms, lags[-1], 0, (), 0.0, 0.0)
    quarter = max(len(known) // 4, 1)
    behind = [max(one.end_offset - (one.committed or 0), 0) for one in known]
    ends = (known[0], known[len(known) // 2], known[-1])
    return Behind(lags[0].at_ms, lags[-1], len(known), ends, mean(behind[:quarter]), mean(behind[-quarter:]))


def place(member: Member) -> tuple[str, str]:
    """The place where a member runs: the same after its process has restarted there."""
    return (member.instance_id, "") if member.instance_id else (member.client_id, member.host)


def least_sure(found: Iterable[Confidence]) -> Confidence:
    """Of several conclusions that one rests on."""
    order = list(Confidence)
    return max(found, key=order.index)


def partition_counts(members: Iterable[Member]) -> dict[str, int]:
    """Topic -> the least number of partitions it can have, by those that members own."""
    found: dict[str, int] = {}
    for member in members:
        for topic, partition in member.assigned:
            if partition >= found.get(topic, 0):
                found[topic] = partition + 1
    return found
