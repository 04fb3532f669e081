"""A recorded history as a script: which processes there were, when they came, fell silent, were busy, went.

A process may be several members one after the other: who was put out of the group and came back to it from
the same place is taken to be the same process, that was silent or busy meanwhile. So another policy may keep
it in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median

from ringleader.insight.advice.past import HEARTBEAT_MS, Past, partition_counts, place
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.model import (
    Cause,
    Departure,
    DepartureFinding,
    Kind,
    Member,
    Outcome,
    Rebalance,
    TopicPartition,
)

REBALANCES_MAX = 500
"""Rebalances that are played: the last ones."""
NEAR_MS = 5_000
"""A rebalance of the replay that begins so near to one of the record takes as long as that one."""
SUCCESSOR_AFTER_MS = 600_000
"""A process that begins within this time after another one ended may have taken its place."""
SUCCESSOR_BEFORE_MS = 300_000
"""The same before its end: deployments that begin new processes first."""
DEAD_SHARE = 0.8
"""A member that was silent for this share of its session when it went had not left by itself."""
FOREVER_MS = 1 << 62
SESSION_MS = 45_000
"""Default of session.timeout.ms, where a record has none."""
REBALANCE_TIMEOUT_MS = 300_000
"""Default of max.poll.interval.ms."""


class NothingToReplayError(ValueError):
    """The sentence says why."""


class Ending(Enum):
    """How a process ends."""

    LEAVES = "leaves"
    DIES = "dies"
    """Without a word."""


@dataclass(slots=True)
class Window:
    """Something lasts from one time to another. Unix ms."""

    since_ms: int
    until_ms: int = FOREVER_MS
    gives_up_ms: int | None = None
    """Of a busy process: when its own client gave up its membership."""


@dataclass(slots=True)
class Process:
    """One process of a consumer."""

    number: int
    client_id: str
    host: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    member_ids: list[str]
    """Which it gets, one after the other."""
    begins_ms: int | None = None
    """None: it was there at the beginning."""
    ends_ms: int = FOREVER_MS
    ending: Ending = Ending.LEAVES
    silences: list[Window] = field(default_factory=list)
    """It sends no request, and it reads nothing."""
    busy: list[Window] = field(default_factory=list)
    """It beats, but does not rejoin."""
    changes: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    """New subscriptions."""
    place_number: int = -1
    """Processes that took each other's place have the same."""

    @property
    def place(self) -> tuple[str, str]:
        """As `past.place` of its members."""
        return (self.instance_id, "") if self.instance_id else (self.client_id, self.host)


@dataclass(slots=True)
class Script:
    """All of it."""

    group: str
    since_ms: int
    until_ms: int
    processes: list[Process]
    requests_ms: list[int]
    """When the leader asked for a rebalance."""
    protocol: str
    rebalances: list[Rebalance]
    """The record that it is made of."""
    first: dict[str, tuple[TopicPartition, ...]]
    """The partitions of each member at the beginning, by member id."""
    partitions: list[tuple[int, dict[str, int]]]
    """From when on, topic -> partitions."""
    begins: list[int]
    """When each of the rebalances began."""
    usual_join_ms: int = HEARTBEAT_MS
    """How long a join phase takes when the record has none at about that time."""

    def near(self, began_ms: int) -> tuple[Rebalance, int] | None:
        """The one of the record that began at about that time, and when."""
        number = bisect_right(self.begins, began_ms + NEAR_MS) - 1
        fits = [n for n in (number - 1, number) if n >= 0 and abs(self.begins[n] - began_ms) <= NEAR_MS]
        if not fits:
            return None
        best = min(fits, key=lambda n: abs(self.begins[n] - began_ms))
        return self.rebalances[best], self.begins[best]

    def join_ms(self, began_ms: int) -> tuple[int, str]:
        """How long the join phase of a rebalance takes that begins then, and whom it waits for longest."""
        found = self.near(began_ms)
        if found is None:
            return self.usual_join_ms, ""
        rebalance, its_begin_ms = found
        taken_ms = rebalance.join_ms
        if taken_ms is None:
            taken_ms = rebalance.at_ms - its_begin_ms
        return max(taken_ms, 1), rebalance.join_last_member

    def leader_ms(self, began_ms: int) -> int:
        """How long the leader computes in a rebalance that begins then."""
        found = self.near(began_ms)
        if found is not None and found[0].leader_ms is not None:
            return found[0].leader_ms
        known = [one.leader_ms for one in self.rebalances if one.leader_ms is not None]
        return int(median(known)) if known else 0

    def counts(self, at_ms: int) -> dict[str, int]:
        """Topic -> partitions at that time."""
        number = bisect_right(self.partitions, at_ms, key=lambda one: one[0]) - 1
        return self.partitions[max(number, 0)][1]


def script_of(past: Past) -> Script:
    """Raises NothingToReplayError for what cannot be played."""
    counted = [one for one in past.counted if one.outcome is not Outcome.SUPERSEDED][-REBALANCES_MAX:]
    if not counted:
        raise NothingToReplayError("There is no rebalance to play again.")
    if any(one.kind is not Kind.CLASSIC for one in counted):
        raise NothingToReplayError("The replay speaks the classic protocol only.")
    if any(one.protocol_type not in ("consumer", "") for one in counted):
        raise NothingToReplayError("The replay knows members of the type consumer only.")
    return _Writer(past, counted).written()


class _Writer:
    def __init__(self, past: Past, rebalances: list[Rebalance]) -> None:
        self.past, self.rebalances = past, rebalances
        self.without_generation = {one.id for one in past.rebalances} - {one.id for one in past.counted}
        self.processes: list[Process] = []
        self.alive: dict[str, Process] = {}
        self.away: dict[tuple[str, str], list[Process]] = {}
        self.requests_ms: list[int] = []
        self.last_ms = 0
        """A moment after the end of the last rebalance: until then all that were in it were alive."""
        self.counts: dict[str, int] = {}
        self.partitions: list[tuple[int, dict[str, int]]] = []

    def written(self) -> Script:
        first = self.rebalances[0]
        since_ms = self.past.began_ms(first) - 1
        before = first.before or tuple(
            member for member in first.members if member.member_id not in first.joined
        )
        self._saw(since_ms, [*before, *first.members])
        for member in before:
            self._begin(member, None)
        number = next(n for n, one in enumerate(self.past.rebalances) if one.id == first.id)
        for rebalance in self.past.rebalances[number:]:
            self._follow(rebalance, self.past.began_ms(rebalance))
            self.last_ms = rebalance.at_ms + 1
        for processes in self.away.values():
            for process in processes:
                if process.silences and process.silences[-1].until_ms == FOREVER_MS:
                    process.ends_ms, process.ending = process.silences.pop().since_ms, Ending.DIES
                elif process.busy and process.busy[-1].gives_up_ms is not None:
                    process.ends_ms = process.busy[-1].gives_up_ms
        protocols = [one.protocol for one in self.rebalances if one.protocol]
        if not any(process.topics for process in self.processes):
            raise NothingToReplayError("What the members subscribe to could not be read.")
        self._number_places()
        joins = [one.join_ms for one in self.rebalances if one.join_ms]
        return Script(
            self.past.group,
            since_ms,
            max(self.past.until_ms, self.rebalances[-1].at_ms + 1),
            self.processes,
            self.requests_ms,
            protocols[-1] if protocols else "",
            self.rebalances,
            {member.member_id: member.assigned for member in before},
            self.partitions,
            [self.past.began_ms(one) for one in self.rebalances],
            min(HEARTBEAT_MS, int(median(joins))) if joins else HEARTBEAT_MS,
        )

    def _saw(self, at_ms: int, members: Sequence[Member]) -> None:
        more = {t: n for t, n in partition_counts(members).items() if n > self.counts.get(t, 0)}
        if more or not self.partitions:
            self.counts = {**self.counts, **more}
            self.partitions.append((at_ms, self.counts))

    def _begin(self, member: Member, at_ms: int | None) -> None:
        process = Process(
            len(self.processes),
            member.client_id,
            member.host,
            member.instance_id,
            member.session_timeout_ms or SESSION_MS,
            member.rebalance_timeout_ms or REBALANCE_TIMEOUT_MS,
            member.topics,
            [member.member_id],
            at_ms,
        )
        self.processes.append(process)
        self.alive[member.member_id] = process

    def _follow(self, rebalance: Rebalance, began_ms: int) -> None:
        self._saw(began_ms, rebalance.members)
        requested = True
        for member_id, departure in rebalance.left.items():
            process = self.alive.pop(member_id, None)
            if process is not None:
                self._go(process, departure, rebalance, began_ms)
                requested = False
        by_id = {member.member_id: member for member in rebalance.members}
        joined = [by_id[one] for one in rebalance.joined if one in by_id and one not in self.alive]
        causes = set(rebalance.cause_members)
        # A member that is not the cause joined some time in the first phase.
        later_ms = began_ms + min((rebalance.join_ms or 0) // 2, HEARTBEAT_MS // 2)
        for member in joined:
            requested = False
            at_ms = began_ms if member.member_id in causes or not rebalance.left else later_ms
            waiting = self.away.get(place(member), [])
            if waiting:
                self._return(waiting.pop(0), member, at_ms)
            else:
                self._begin(member, at_ms)
        for member in rebalance.members:
            process = self.alive.get(member.member_id)
            if process is None:  # neither was it there nor did it join: the record has a hole
                self._begin(member, began_ms)
                continue
            topics = process.changes[-1][1] if process.changes else process.topics
            if member.topics and member.topics != topics:
                process.changes.append((began_ms, member.topics))
                requested = False
        if rebalance.outcome is not Outcome.SUPERSEDED:
            there = {member.member_id for member in rebalance.members}
            for member_id in [one for one in self.alive if one not in there]:
                # It went, and the record has a hole where that stood.
                self.alive.pop(member_id).ends_ms = began_ms
        if (
            requested
            and rebalance.cause is not Cause.REBALANCE_CONTINUED
            and rebalance.id not in self.without_generation
        ):
            self.requests_ms.append(began_ms)

    def _go(self, process: Process, departure: DepartureFinding, rebalance: Rebalance, began_ms: int) -> None:
        waiting = self.away.setdefault(process.place, [])
        silent_ms = departure.silent_ms or 0
        dead = silent_ms >= DEAD_SHARE * process.session_timeout_ms
        if departure.why in (Departure.SESSION_EXPIRED, Departure.NEW_MEMBER_TIMEOUT):
            process.silences.append(Window(max(began_ms - process.session_timeout_ms, self.last_ms)))
            waiting.append(process)
        elif departure.why is Departure.POLL_INTERVAL_EXCEEDED:
            busy_ms = max(began_ms - process.rebalance_timeout_ms, self.last_ms)
            process.busy.append(Window(busy_ms, gives_up_ms=began_ms))
            waiting.append(process)
        elif departure.why is Departure.NOT_REJOINED:
            process.busy.append(Window(began_ms - 1))
            waiting.append(process)
        elif departure.why is Departure.RESTARTED and dead:
            process.ends_ms = max(began_ms - silent_ms, self.last_ms)
            process.ending = Ending.DIES
        elif departure.why is Departure.FENCED or rebalance.id in self.without_generation:
            process.ends_ms, process.ending = began_ms, Ending.DIES
        else:
            process.ends_ms, process.ending = began_ms, Ending.LEAVES

    def _return(self, process: Process, member: Member, at_ms: int) -> None:
        window = process.silences[-1] if process.silences else None
        if window is None or window.until_ms != FOREVER_MS:
            window = process.busy[-1]
        window.until_ms = at_ms
        process.member_ids.append(member.member_id)
        self.alive[member.member_id] = process

    def _number_places(self) -> None:
        """Give each process the place of its predecessor: of the processes that ended at about the time when
        it began, the nearest of kin, and of these the one that ended last."""
        free = [one for one in self.processes if one.ends_ms != FOREVER_MS]
        number = 0
        for process in sorted(self.processes, key=lambda one: one.begins_ms or 0):
            heir_of = None
            if process.begins_ms is not None:
                begins_ms = process.begins_ms
                fits = [
                    one
                    for one in free
                    if one is not process
                    and (one.begins_ms or 0) < begins_ms
                    and begins_ms - SUCCESSOR_AFTER_MS <= one.ends_ms <= begins_ms + SUCCESSOR_BEFORE_MS
                ]
                heir_of = max(fits, key=lambda one: (_kinship(one, process), one.ends_ms), default=None)
            if heir_of is None:
                process.place_number, number = number, number + 1
            else:
                free.remove(heir_of)
                process.place_number = heir_of.place_number


def _kinship(one: Process, other: Process) -> int:
    return 2 * (one.client_id == other.client_id) + (one.host == other.host)


def cast(script: Script, policy: Policy) -> list[Process]:
    """The processes as the policy has them. Those that hold something at the beginning come first."""
    found = [one for one in script.processes if policy.topics is None or policy.topics & {*one.topics}]
    if policy.stays_ms is not None:
        found = _staying(found, policy.stays_ms)
    held = {one.number: len(script.first.get(one.member_ids[0], ())) for one in found}
    return sorted(found, key=lambda one: (one.begins_ms or 0, -held[one.number], one.number))


def _staying(processes: list[Process], stays_ms: int) -> list[Process]:
    """A process that was replaced within that time goes on instead."""
    found: list[Process] = []
    last: dict[int, Process] = {}
    for process in sorted(processes, key=lambda one: one.begins_ms or 0):
        before = last.get(process.place_number)
        if before is not None and (process.begins_ms or 0) - before.ends_ms <= stays_ms:
            before.ends_ms, before.ending = process.ends_ms, process.ending
            before.silences += process.silences
            before.busy += process.busy
            before.changes += process.changes
            continue
        kept = replace(
            process, silences=[*process.silences], busy=[*process.busy], changes=[*process.changes]
        )
        last[process.place_number] = kept
        found.append(kept)
    return found
