"""One classic group: each of its records becomes a rebalance, with the evidence of its cause.

A record is written when the leader's assignment has come: the end of a rebalance, and nothing of its
beginning. The rest is concluded from the difference to the record before, from the times of commits, and from
polls if there were any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ringleader.insight.inference.causes import departures_alone, verdict
from ringleader.insight.inference.changes import RETURN_MS, Change, Departed, departed, returned
from ringleader.insight.inference.commits import Commits, Slot, newest_ms, usual_gap_ms
from ringleader.insight.inference.departures import Absence, departure_of
from ringleader.insight.inference.facts import ClassicGroup, ClientReport, Described, Output, Source
from ringleader.insight.inference.heard import Heard, Went
from ringleader.insight.inference.hindsight import Hindsight
from ringleader.insight.inference.holders import Holders
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.members import by_id, member_of, partition_counts, taken_over
from ringleader.insight.inference.polls import MOVING, Polls
from ringleader.insight.inference.takeovers import Takeovers
from ringleader.insight.inference.words import count, seconds
from ringleader.insight.inference.world import World
from ringleader.insight.model import (
    Cause,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    GroupState,
    Kind,
    Member,
    Move,
    Outcome,
    Rebalance,
    TopicPartition,
)
from ringleader.protocol.messages import GroupMetadataValue

_EAGER = {"range", "roundrobin", "sticky"}
"""Assignors of all clients whose members give up their partitions before each rebalance."""
_DEPARTED_MAX = 200
_OUTAGE_MS = 120_000
"""A group's rebalances may follow from an outage of its coordinator within this."""
_HEARTBEAT_MS = 3_000
"""The heartbeat interval of clients, unless a third of their session is shorter."""
_HEARD_MS = 300
"""To hear and answer."""
_STOPPED_MS = 60_000
"""Commits that do not come for this time, and for ten times as long as usual, have stopped."""
_NEAR_MS = 2_500
"""Polls that near to the end of a rebalance show the members until then."""
_SLOW_MS = 2_000
"""Phases that last this long are worth a sentence."""


class Classic(Restorable):
    """A group of the classic protocol. Conclusions go to `out`."""

    kind = Kind.CLASSIC
    state: Kept[GroupState | None]
    _holders: Kept[Holders]
    _polls: Kept[Polls]
    _last: Kept[Rebalance | None]
    _departed: Kept[list[Departed]]
    _takeovers: Kept[Takeovers]
    _hindsight: Kept[Hindsight]
    _heard: Kept[Heard]
    _counts: Kept[dict[str, int]]
    """Topic -> the number of partitions that assignments have had."""
    _visible_ms: Kept[int | None]
    """When something other than the leader was last seen to change."""
    _made: Kept[bool]
    """The record was read with which it began."""
    _stopped: Kept[dict[str, int]]
    """Members whose commits were reported as stopped -> their last commit."""

    def __init__(self, group: str, commits: Commits, world: World, out: list[Output]) -> None:
        self.group = group
        self.state = self._last = self._visible_ms = None
        self._commits = commits
        self._world = world
        self._out = out
        self._holders = Holders(group, out)
        self._polls = Polls()
        self._departed, self._counts, self._stopped = [], {}, {}
        self._takeovers = Takeovers(commits, out)
        self._hindsight = Hindsight(out)
        self._heard = Heard(group, out)
        self._made = self._cooperative = False
        commits.on_first = self._first_commit

    # ---- facts ----

    def record(self, fact: ClassicGroup) -> None:
        """A record with a value."""
        value = fact.value
        assert value is not None
        if not value.generation and not value.members:
            self._made = True
            return
        members = tuple(member_of(one, value.protocol_type) for one in value.members)
        after = self._polls.end(fact.at_ms)
        made = self._rebalance(fact.source, fact.at_ms, value, members)
        self._last = made
        self._stopped = {}
        self._counts = partition_counts(members, self._counts)
        self._polls = after
        self.state = GroupState(
            self.group,
            Kind.CLASSIC,
            "Stable" if members else "Empty",
            value.generation,
            value.protocol_type,
            value.protocol or "",
            value.leader or "",
            members,
            fact.at_ms,
        )
        for old_id, new_id in taken_over(by_id(made.before), by_id(members)).items():
            self._takeovers.add(by_id(made.before)[old_id], by_id(members)[new_id], made)
        nobody = not members and value.protocol_type != ""
        self._commits.generation(((one.topic, one.partition) for one in made.moves), nobody=nobody)
        self._hindsight.add(made)
        self._out += (made, self.state)
        self._holders.hold(made)

    def described(self, fact: Described) -> None:
        """A poll."""
        if self.state is None or fact.at_ms <= self.state.since_ms or fact.state == "Dead":
            return  # of the time before the last record
        self._polls.see(fact)
        if fact.state and fact.state != self.state.state:
            self.state = self.state._replace(state=fact.state)
            self._out.append(self.state)

    def topics_changed(self, at_ms: int) -> bool:
        """Topics were seen to change: whether that explains rebalances that were reported before."""
        changes = self._world.topic_changes(at_ms, at_ms)
        return self._corrected(self._hindsight.topics_changed(at_ms, changes))

    def client_reported(self, report: ClientReport) -> None:
        """A client reported on itself."""
        self._corrected(self._hindsight.reported_later(self._heard.add(report)))

    def _corrected(self, found: Mapping[str, Rebalance]) -> bool:
        if self._last is not None:
            self._last = found.get(self._last.id, self._last)
        return bool(found)

    def ended(self, at_ms: int) -> None:
        """The group is deleted."""
        self._holders.end(at_ms)
        if self.state is not None:
            self.state = self.state._replace(state="Dead", members=(), leader="", since_ms=at_ms)
            self._out.append(self.state)

    def tick(self, now_ms: int) -> bool:
        """Report members whose commits have stopped, while those of the others go on. Whether there were
        any."""
        if self.state is None or len(self.state.members) < 2 or self.moving():
            return False
        slots = {one.member_id: list(self._commits.of(one.assigned)) for one in self.state.members}
        found = False
        for one in self.state.members:
            gap_ms, last_ms = usual_gap_ms(slots[one.member_id]), newest_ms(slots[one.member_id])
            if gap_ms is None or last_ms is None or self._stopped.get(one.member_id) == last_ms:
                continue
            silent_ms = now_ms - last_ms
            others = [slot for other, of in slots.items() if other != one.member_id for slot in of]
            active = (newest_ms(others) or 0) >= last_ms + silent_ms // 2
            if silent_ms < max(_STOPPED_MS, 10 * gap_ms) or not active:
                continue
            self._stopped[one.member_id] = last_ms
            found = True
            text = (
                f"{one.name} has committed nothing for {seconds(silent_ms)}: before it did every "
                f"{seconds(gap_ms)}, and the others go on. It is still a member, with "
                f"{count(len(one.assigned), 'partition')}."
            )
            name = f"commits-stopped-{self.group}-{one.member_id}-{last_ms}"
            self._out.append(Event(name, self.group, now_ms, EventKind.COMMITS_STOPPED, text))
        return found

    def moving(self) -> bool:
        """Whether polls would show something now."""
        return self._polls.state in MOVING

    # ---- the rebalance ----

    def _rebalance(
        self, source: Source, at_ms: int, value: GroupMetadataValue, members: tuple[Member, ...]
    ) -> Rebalance:
        before = self.state
        self._cooperative = "cooperative" in (value.protocol or (before.protocol if before else ""))
        old, new = by_id(before.members if before else ()), by_id(members)
        change = self._change(source, at_ms, value, old, new)
        left = dict(change.left)
        if departures_alone(change):
            self._heard.alone(left)
        conclusion = verdict(change)
        self._corrected(self._hindsight.members_joined(change))
        if change.taken:
            conclusion = self._takeovers.judge(conclusion, change)
            why = Departure.FENCED if conclusion.cause is Cause.INSTANCE_FENCED else Departure.RESTARTED
            evidence = ("another process came with its instance id",)
            left |= {
                one.member_id: DepartureFinding(why, conclusion.confidence, None, evidence)
                for one, _ in change.taken
            }
        self._remember(change, conclusion.cause)
        stayed = [old[one] for one in old if one in new]
        began_ms, join_ms, leader_ms = self._phases(at_ms)
        last_joiner, waited = self._last_joiner(at_ms, stayed)
        moves, unowned_ms = self._moves(at_ms, old, new, began_ms)
        commits = [slot.at_ms for slot in self._commits.slots.values() if slot.count]
        phases = (*self._skipped(value), *_slow(join_ms, leader_ms), *waited)
        return Rebalance(
            id=f"offsets-{source.partition}-{source.offset}",
            group=self.group,
            kind=Kind.CLASSIC,
            generation=value.generation,
            at_ms=at_ms,
            cause=conclusion.cause,
            confidence=conclusion.confidence,
            evidence=(*conclusion.evidence, *phases),
            cause_members=conclusion.members,
            outcome=Outcome.STABLE if members else Outcome.EMPTY,
            protocol_type=value.protocol_type,
            protocol=value.protocol or "",
            leader=value.leader or "",
            members=members,
            joined=tuple(one.member_id for one in (*change.joined, *(new for _, new in change.taken))),
            left=left,
            before=before.members if before else (),
            began_ms=began_ms,
            join_ms=join_ms,
            join_last_member=last_joiner,
            leader_ms=leader_ms,
            moves=moves,
            unowned_ms=unowned_ms,
            last_commit_ms=max(commits, default=None),
        )

    def _change(
        self,
        source: Source,
        at_ms: int,
        value: GroupMetadataValue,
        old: dict[str, Member],
        new: dict[str, Member],
    ) -> Change:
        before, polls = self.state, self._polls
        since_ms = before.since_ms if before else at_ms
        taken = taken_over(old, new)
        joined = [new[one] for one in new if one not in old and one not in taken.values()]
        missing = [old[one] for one in old if one not in new and one not in taken]
        stayed = [old[one] for one in old if one in new]
        changed = [(one, new[one.member_id]) for one in stayed if new[one.member_id].topics != one.topics]
        # Static members that come back after it write a record each: it counts for the later ones, too.
        recent_ms = at_ms - _OUTAGE_MS
        coordinator_ms = self._world.coordinator_changed_ms(
            source.partition, recent_ms if taken else max(since_ms, recent_ms), at_ms
        )
        other_cause = bool(joined or changed or taken)

        def left(one: Member) -> DepartureFinding:
            seen = self._absence(one, at_ms, since_ms, stayed, len(missing) == 1, other_cause)
            seen = seen._replace(coordinator_changed=coordinator_ms is not None)
            return self._heard.went(
                Went(
                    one,
                    self._holders.there_since_ms(one.member_id),
                    seen.earliest_ms,
                    seen.latest_ms,
                    departure_of(seen),
                    f"offsets-{source.partition}-{source.offset}",
                    at_ms,
                )
            )

        return Change(
            kind=Kind.CLASSIC,
            at_ms=at_ms,
            since_ms=since_ms,
            generation=value.generation,
            known=before is not None or value.generation == 1 or self._made,
            members=tuple(new.values()),
            joined=joined,
            missing=missing,
            left={one.member_id: left(one) for one in missing},
            waited_ms=self._waited_ms(at_ms, stayed),
            eager=value.protocol in _EAGER,
            changed=changed,
            # Clients look at metadata every five minutes at the latest.
            topic_changes=self._world.topic_changes(
                max(since_ms - 30_000, at_ms - 6 * 60_000), at_ms + 30_000
            ),
            returned=returned(joined, self._departed, at_ms),
            before=before.members if before else (),
            leader=before.leader if before else "",
            generation_before=before.generation if before else 0,
            taken=[(old[a], new[b]) for a, b in taken.items()],
            counts=self._counts,
            topics_known=(self._world.topics or {}).keys(),
            coordinator_ms=coordinator_ms,
            visible_ms=self._visible_ms,
            glimpsed=[
                polls.names[one]
                for one in polls.there
                if one not in old and one not in new and one in polls.names
            ],
            poll_missing=polls.missing,
            poll_new={one: polls.there[one] for one in new if one not in old and one in polls.there},
        )

    def _remember(self, change: Change, cause: Cause) -> None:
        at_ms = change.at_ms
        if change.joined or change.missing or change.changed or change.taken or cause is Cause.TOPICS_CHANGED:
            self._visible_ms = at_ms
        self._departed += departed(change.left, change.missing, at_ms)
        kept = [one for one in self._departed if at_ms - one.at_ms <= RETURN_MS]
        self._departed = kept[-_DEPARTED_MAX:]

    def _skipped(self, value: GroupMetadataValue) -> Iterator[str]:
        if self.state is not None and value.generation > self.state.generation + 1:
            skipped = value.generation - self.state.generation - 1
            yield f"{count(skipped, 'generation')} before it never got an assignment, or is not in the topic"

    def _absence(
        self, member: Member, at_ms: int, since_ms: int, stayed: list[Member], alone: bool, other_cause: bool
    ) -> Absence:
        slots = list(self._commits.of(member.assigned))
        others = [of for one in stayed if (of := list(self._commits.of(one.assigned)))]
        last_ms = max((slot.at_ms for slot in slots), default=None)
        latest_ms = at_ms
        earliest_ms = max(since_ms, self._went_after_ms(at_ms, last_ms, stayed, others, alone))
        polls = self._polls
        missing_ms = polls.missing_since_ms(member.member_id)
        if missing_ms is not None:
            latest_ms = max(since_ms, min(latest_ms, missing_ms))
        earliest_ms = min(latest_ms, max(earliest_ms, polls.there.get(member.member_id, 0)))
        other_slots = [slot for of in others for slot in of]
        gap_ms = usual_gap_ms(slots)
        # It was there when the last record was written.
        return Absence(
            at_ms=at_ms,
            since_ms=since_ms,
            partitions=len(member.assigned),
            last_commit_ms=max((max(slot.at_ms, since_ms) for slot in slots), default=None),
            last_moved_ms=max((max(slot.moved_ms, since_ms) for slot in slots), default=None),
            gap_ms=gap_ms if gap_ms is not None else usual_gap_ms(other_slots),
            gap_borrowed=gap_ms is None,
            others_ms=max((slot.at_ms for slot in other_slots), default=None),
            others_moved_ms=max((slot.moved_ms for slot in other_slots), default=None),
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            other_cause=other_cause,
            waited_ms=self._waited_ms(at_ms, stayed),
            there_last=polls.began_ms is not None
            and polls.there.get(member.member_id, 0) >= max(polls.began_ms, at_ms - _NEAR_MS),
            static=member.instance_id is not None,
        )

    def _waited_ms(self, at_ms: int, stayed: list[Member]) -> int | None:
        """How long the group had waited in its join phase, where that is known."""
        polls = self._polls
        if polls.began_ms is not None:
            return (polls.completing_ms or at_ms) - polls.began_ms
        others = [of for one in stayed if (of := list(self._commits.of(one.assigned)))]
        if self._cooperative or not others:
            return None
        return max(at_ms - max(slot.at_ms for slot in of) for of in others)

    def _went_after_ms(
        self, at_ms: int, last_ms: int | None, stayed: list[Member], others: list[list[Slot]], alone: bool
    ) -> int:
        """When a member whose last commit was at `last_ms` went, at the earliest.

        A member that commits regularly learns of a rebalance within a heartbeat interval and joins as soon as
        it polls, which is within the time between its commits. An eager one then commits no more. A member
        whose commits ceased earlier has nothing to read, and shows nothing.
        """
        sessions = [one.session_timeout_ms for one in stayed if one.session_timeout_ms is not None]
        heartbeat_ms = min(_HEARTBEAT_MS, min(sessions, default=_HEARTBEAT_MS) // 3) + _HEARD_MS
        if not stayed:
            return at_ms - (_HEARD_MS if alone else heartbeat_ms)
        heard = []
        for of in others:
            newest_ms, gap_ms = max(slot.at_ms for slot in of), usual_gap_ms(of)
            if gap_ms is not None:
                since_ms = newest_ms - heartbeat_ms - (0 if self._cooperative else gap_ms)
                if last_ms is None or newest_ms >= last_ms - heartbeat_ms - gap_ms:
                    heard.append(since_ms)
        return min(heard, default=0)

    def _phases(self, at_ms: int) -> tuple[int | None, int | None, int | None]:
        """When it began, and how long it waited for members and for the leader's assignment."""
        began_ms, completing_ms = self._polls.began_ms, self._polls.completing_ms
        if began_ms is None or began_ms > at_ms:
            return None, None, None
        if completing_ms is None:
            return began_ms, at_ms - began_ms, None
        return began_ms, completing_ms - began_ms, max(0, at_ms - completing_ms)

    def _last_joiner(self, at_ms: int, stayed: Sequence[Member]) -> tuple[str, Sequence[str]]:
        """The member that the others waited for, and the evidence. Eager members commit when they join: the
        last commit of the last one is far behind those of the others."""
        nobody = "", ()
        if self._cooperative or len(stayed) < 2:
            return nobody
        lasts = []
        for one in stayed:
            slots = list(self._commits.of(one.assigned))
            gap_ms = usual_gap_ms(slots)
            if gap_ms is None or gap_ms > _SLOW_MS:
                return nobody
            lasts.append((max(slot.at_ms for slot in slots), one))
        lasts.sort(key=lambda one: one[0])
        (next_ms, _), (last_ms, last) = lasts[-2:]
        if last_ms - next_ms < _SLOW_MS:
            return nobody
        text = (
            f"{last.name} committed until {seconds(at_ms - last_ms)} before the end, the others had been "
            f"silent for {seconds(at_ms - next_ms)}: it was waited for"
        )
        return last.member_id, (text,)

    def _moves(
        self,
        at_ms: int,
        old: dict[str, Member],
        new: dict[str, Member],
        began_ms: int | None,
    ) -> tuple[tuple[Move, ...], int | None]:
        had = {partition: one for one in old.values() for partition in one.assigned}
        has = {partition: one for one in new.values() for partition in one.assigned}
        moves: list[Move] = []
        total: int | None = None
        for partition in sorted(had.keys() | has.keys()):
            giver, heir = had.get(partition), has.get(partition)
            same = giver is not None and heir is not None and giver.member_id == heir.member_id
            idle_ms = None
            if giver is not None:
                gave_up = began_ms if not (self._cooperative and giver.member_id in new) else None
                idle_ms = self._idle_ms(partition, at_ms, gave_up)
            else:
                free_ms = self._holders.free_since_ms(partition)
                idle_ms = None if free_ms is None else at_ms - free_ms
            if idle_ms is not None and heir is not None:
                total = (total or 0) + idle_ms
            if not same:
                moves.append(
                    Move(
                        *partition,
                        giver.member_id if giver else None,
                        heir.member_id if heir else None,
                        idle_ms,
                    )
                )
        return tuple(moves), total

    def _idle_ms(self, partition: TopicPartition, at_ms: int, gave_up_ms: int | None) -> int | None:
        """How long no member read it: since the rebalance began, or since its commits ceased to come."""
        found: int | None = None if gave_up_ms is None else at_ms - gave_up_ms
        slots = list(self._commits.of((partition,)))
        gap_ms = usual_gap_ms(slots)
        if gap_ms is not None:
            silent_ms = at_ms - slots[0].at_ms
            if silent_ms > 2 * gap_ms + 500:
                found = max(found or 0, silent_ms - gap_ms // 2)
        return found

    def _first_commit(self, at_ms: int) -> bool:
        if self._last is not None and self._last.first_commit_ms is None and self._last.members:
            self._last = replace(self._last, first_commit_ms=at_ms)
            self._out.append(self._last)
            self._takeovers.committed(self._last)
            self._hindsight.add(self._last)
            return True
        return False


def _slow(join_ms: int | None, leader_ms: int | None) -> Iterator[str]:
    if join_ms is not None and join_ms >= _SLOW_MS:
        yield f"polls saw it wait {seconds(join_ms)} for members to join"
    if leader_ms is not None and leader_ms >= _SLOW_MS:
        yield f"polls saw it wait {seconds(leader_ms)} for the leader's assignment"
