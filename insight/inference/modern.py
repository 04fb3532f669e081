"""One group of the consumer protocol (KIP-848), or a share group (KIP-932): the broker assigns, and writes
down each step with its time.

A rebalance begins with a new group epoch, and ends when every member has what the assignor gave it. The
records before the epoch show the members that came and went; leave and expiry write the same ones, and only
commits can tell them apart: share groups commit nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ringleader.insight.inference.causes import departures_alone, verdict
from ringleader.insight.inference.changes import RETURN_MS, Change, Departed, departed, returned
from ringleader.insight.inference.commits import Commits, usual_gap_ms
from ringleader.insight.inference.departures import Absence, departure_of
from ringleader.insight.inference.facts import (
    ClientReport,
    CurrentAssignment,
    GroupEpoch,
    ModernMember,
    Output,
    Partitions,
    RegexResolved,
    Source,
    TargetEpoch,
)
from ringleader.insight.inference.heard import Heard, Went
from ringleader.insight.inference.hindsight import Hindsight
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import seconds
from ringleader.insight.inference.world import World
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    GroupState,
    Kind,
    Member,
    MemberSpan,
    Move,
    Outcome,
    Ownership,
    Rebalance,
    TopicPartition,
)

MODERN = {"consumer": Kind.CONSUMER, "share": Kind.SHARE}

DEFAULT_SESSION_MS = 45_000
"""Kafka's, for both."""

_JOINS_MAX = 20
_NEW_GROUP_EPOCH = 2
"""The first member's epoch of a group is 1 or 2, by the broker's version."""
_AWAY_EPOCH = -2


class Modern(Restorable):
    """A group whose broker assigns. Conclusions go to `out`."""

    _epoch: Kept[int | None]
    _hash: Kept[int]
    _members: Kept[dict[str, Member]]
    _since: Kept[dict[str, int]]
    """Member id -> since when it is there."""
    _epochs: Kept[dict[str, int]]
    """Member id -> the epoch it has reached; -2: a static member that is away."""
    _revoking: Kept[dict[str, int]]
    """Member id -> since when it has to give partitions up."""
    _held: Kept[dict[tuple[str, int, str], tuple[int, str]]]
    """Partition and member id -> since when, and by which rebalance."""
    _free: Kept[dict[TopicPartition, tuple[int, str]]]
    """Partition without an owner -> since when, and its last owner."""
    _regexes: Kept[dict[str, tuple[str, ...]]]
    """Pattern -> the topics that it matches."""
    _came: Kept[dict[str, Member]]
    """Since the last epoch."""
    _gone: Kept[dict[str, tuple[Member, int | None]]]
    """Since the last epoch; and since when it had been giving partitions up."""
    _changed: Kept[dict[str, tuple[str, ...]]]
    """Member id -> the topics it had, since the last epoch."""
    _matched: Kept[list[str]]
    """Patterns that match other topics, since the last epoch."""
    _lately: Kept[list[Departed]]
    _joins: Kept[dict[str, Rebalance]]
    """Member id -> the rebalance in which it joined, lately."""
    _open: Kept[Rebalance | None]
    _closed: Kept[Rebalance | None]
    """The one before, until something is committed."""
    _heard: Kept[Heard]
    _hindsight: Kept[Hindsight]
    _target_ms: Kept[int | None]
    """When the assignor had computed for the open one."""
    _last_id: Kept[str]

    def __init__(self, group: str, kind: Kind, commits: Commits, world: World, out: list[Output]) -> None:
        self.group = group
        self.kind = kind
        self._commits = commits
        self._world = world
        self._out = out
        self._epoch = self._open = self._closed = self._target_ms = None
        self._hash, self._last_id = 0, ""
        self._members, self._since, self._epochs, self._revoking = {}, {}, {}, {}
        self._held, self._free, self._regexes = {}, {}, {}
        self._came, self._gone, self._changed, self._joins = {}, {}, {}, {}
        self._matched, self._lately = [], []
        self._heard, self._hindsight = Heard(group, out), Hindsight(out)
        commits.on_first = self._first_commit

    # ---- facts ----

    def record(self, fact: Any) -> None:
        """A record of this group."""
        if isinstance(fact, GroupEpoch):
            self._begin(fact)
        elif isinstance(fact, ModernMember):
            self._member(fact)
        elif isinstance(fact, CurrentAssignment):
            self._current(fact)
        elif isinstance(fact, TargetEpoch):
            if self._open is not None and fact.epoch == self._open.generation and fact.epoch is not None:
                self._target_ms = fact.at_ms
                self._open = replace(self._open, leader_ms=fact.at_ms - (self._open.began_ms or fact.at_ms))
                self._settle(fact.at_ms)
        elif isinstance(fact, RegexResolved):
            topics = fact.topics or ()
            if fact.regex in self._regexes and topics != self._regexes[fact.regex]:
                self._matched.append(fact.regex)
            self._regexes[fact.regex] = topics
            if fact.topics is None:
                del self._regexes[fact.regex]

    def ended(self, at_ms: int) -> None:
        """The group is deleted, or of another kind now."""
        for member_id, member in self._members.items():
            owner = member._replace(assigned=())
            self._out.append(MemberSpan(self.group, owner, self._since[member_id], at_ms, None, None))
        for (topic, number, member_id), (since_ms, given) in self._held.items():
            self._out.append(Ownership(self.group, topic, number, member_id, since_ms, at_ms, given))
        self._members, self._held = {}, {}
        self._out.append(self._state("Dead", at_ms))

    # ---- members ----

    def _member(self, fact: ModernMember) -> None:
        member_id = fact.member_id
        had = self._members.get(member_id)
        if fact.deleted:
            if had is not None:
                self._gone[member_id] = (had, self._revoking.pop(member_id, None))
                del self._members[member_id]
                self._epochs.pop(member_id, None)
                self._came.pop(member_id, None)
                self._changed.pop(member_id, None)
            return
        topics = fact.topics
        if fact.regex is not None:
            topics = tuple(sorted({*topics, *self._regexes.get(fact.regex, ())}))
        session_ms = fact.session_timeout_ms or self._world.session_timeout_ms(self.kind)
        now = Member(
            member_id,
            fact.client_id,
            fact.host,
            fact.instance_id,
            topics,
            had.assigned if had is not None else (),
            session_ms,
            fact.rebalance_timeout_ms,
        )
        self._members[member_id] = now
        if had is not None:
            if had.topics != topics:
                self._changed.setdefault(member_id, had.topics)
            return
        self._since[member_id] = fact.at_ms
        self._epochs.setdefault(member_id, -1)
        self._out.append(MemberSpan(self.group, now, fact.at_ms, None, None, None))
        old_id = None
        if now.instance_id is not None:
            old_id = next(
                (one for one, (of, _) in self._gone.items() if of.instance_id == now.instance_id), None
            )
        if old_id is None:
            self._came[member_id] = now
        else:
            self._replaced(fact.source, fact.at_ms, now, self._gone.pop(old_id)[0])

    def _replaced(self, source: Source, at_ms: int, new: Member, old: Member) -> None:
        """A static member came back: no epoch follows."""
        rebalance_id = f"offsets-{source.partition}-{source.offset}"
        now = tuple(self._members.values())
        before = (*(one for one in now if one.member_id != new.member_id), old)
        epoch = self._epoch or 0
        conclusion = verdict(
            Change(
                kind=self.kind,
                at_ms=at_ms,
                since_ms=at_ms,
                generation=epoch,
                generation_before=epoch,
                known=True,
                members=now,
                joined=(),
                missing=(),
                left={},
                changed=(),
                topic_changes={},
                returned={},
                taken=[(old, new)],
            )
        )
        evidence = ("another process came with its instance id",)
        departure = DepartureFinding(Departure.RESTARTED, conclusion.confidence, None, evidence)
        self._end_span(old, at_ms, departure, rebalance_id)
        self._out.append(
            Rebalance(
                id=rebalance_id,
                group=self.group,
                kind=self.kind,
                generation=epoch,
                at_ms=at_ms,
                cause=conclusion.cause,
                confidence=conclusion.confidence,
                evidence=conclusion.evidence,
                cause_members=conclusion.members,
                protocol_type=self.kind.value,
                members=now,
                joined=(new.member_id,),
                left={old.member_id: departure},
                before=before,
                began_ms=at_ms,
            )
        )
        self._last_id = rebalance_id

    def _end_span(self, member: Member, at_ms: int, departure: DepartureFinding, rebalance_id: str) -> None:
        since_ms = self._since.pop(member.member_id, at_ms)
        self._out.append(
            MemberSpan(self.group, member._replace(assigned=()), since_ms, at_ms, departure, rebalance_id)
        )

    def client_reported(self, report: ClientReport) -> None:
        """A client reported on itself."""
        found = self._hindsight.reported_later(self._heard.add(report))
        if self._open is not None:
            self._open = found.get(self._open.id, self._open)
        if self._closed is not None:
            self._closed = found.get(self._closed.id, self._closed)
        self._joins = {one: found.get(made.id, made) for one, made in self._joins.items()}

    # ---- epochs ----

    def _begin(self, fact: GroupEpoch) -> None:
        assert fact.epoch is not None
        at_ms = fact.at_ms
        if self._open is not None:
            self._close(at_ms, Outcome.SUPERSEDED)
        rebalance_id = f"offsets-{fact.source.partition}-{fact.source.offset}"
        change = self._change(fact)
        if departures_alone(change):
            self._heard.alone(change.left)
        left, conclusion = change.left, verdict(change)
        self._correct_restarts(change)
        for one in change.missing:
            self._end_span(one, at_ms, left[one.member_id], rebalance_id)
        self._lately += departed(left, change.missing, at_ms)
        self._lately = [one for one in self._lately if at_ms - one.at_ms <= RETURN_MS]
        commits = [slot.at_ms for slot in self._commits.slots.values() if slot.count]
        self._commits.generation((), nobody=self.kind is Kind.CONSUMER and not self._members)
        self._open = Rebalance(
            id=rebalance_id,
            group=self.group,
            kind=self.kind,
            generation=fact.epoch,
            at_ms=at_ms,
            cause=conclusion.cause,
            confidence=conclusion.confidence,
            evidence=conclusion.evidence,
            cause_members=conclusion.members,
            outcome=Outcome.STABLE if self._members else Outcome.EMPTY,
            protocol_type=self.kind.value,
            members=tuple(self._members.values()),
            joined=tuple(self._came),
            left=left,
            before=tuple(change.before),
            began_ms=at_ms,
            last_commit_ms=max(commits, default=None),
        )
        self._target_ms = None
        self._last_id = rebalance_id
        self._epoch, self._hash = fact.epoch, fact.metadata_hash
        self._came, self._gone, self._changed, self._matched = {}, {}, {}, []
        self._out.append(self._open)
        self._hindsight.add(self._open)
        if self._members:
            self._out.append(self._state("Assigning", at_ms))
        else:
            self._close(at_ms, Outcome.EMPTY)

    def _change(self, fact: GroupEpoch) -> Change:
        assert fact.epoch is not None
        at_ms = fact.at_ms
        now = tuple(self._members.values())
        joined = tuple(self._came.values())
        missing = tuple(member for member, _ in self._gone.values())
        changed = [
            (self._members[member_id]._replace(topics=topics), self._members[member_id])
            for member_id, topics in self._changed.items()
        ]
        first = self._epoch is None and fact.epoch <= _NEW_GROUP_EPOCH
        return Change(
            kind=self.kind,
            at_ms=at_ms,
            since_ms=at_ms,
            generation=fact.epoch,
            known=first or fact.epoch == (self._epoch or 0) + 1,
            members=now,
            joined=joined,
            missing=missing,
            left={
                one: self._departure_of(member, fact, since) for one, (member, since) in self._gone.items()
            },
            changed=changed,
            topic_changes=self._world.topic_changes(at_ms - 10 * 60_000, at_ms + 30_000),
            returned=returned(joined, self._lately, at_ms),
            before=(*(one for one in now if one.member_id not in self._came), *missing),
            twins=[
                (twin, self._since[twin.member_id]) for twin in map(self._twin, missing) if twin is not None
            ],
            silent_twins=[twin for twin in map(self._silent_twin, joined) if twin is not None],
            counts=self._counts(),
            topics_known=(self._world.topics or {}).keys(),
            matched=self._matched,
            hash_changed=fact.metadata_hash != self._hash and self._hash != 0,
        )

    def _counts(self) -> dict[str, int]:
        """Topic -> partitions that members have had."""
        found: dict[str, int] = {}
        held = ((topic, number) for topic, number, _ in self._held)
        for topic, number in (*held, *self._free):
            found[topic] = max(found.get(topic, 0), number + 1)
        return found

    def _departure_of(
        self, member: Member, fact: GroupEpoch, revoking_since_ms: int | None
    ) -> DepartureFinding:
        at_ms = fact.at_ms
        slots = list(self._commits.of(member.assigned))
        others = [slot for one in self._members.values() for slot in self._commits.of(one.assigned)]
        gap_ms = usual_gap_ms(slots)
        session_ms = member.session_timeout_ms or self._world.session_timeout_ms(self.kind)
        finding = departure_of(
            Absence(
                at_ms=at_ms,
                since_ms=self._since.get(member.member_id, at_ms),
                partitions=len(member.assigned),
                last_commit_ms=max((slot.at_ms for slot in slots), default=None),
                last_moved_ms=max((slot.moved_ms for slot in slots), default=None),
                gap_ms=gap_ms if gap_ms is not None else usual_gap_ms(others),
                gap_borrowed=gap_ms is None,
                others_ms=max((slot.at_ms for slot in others), default=None),
                others_moved_ms=max((slot.moved_ms for slot in others), default=None),
                earliest_ms=at_ms,
                latest_ms=at_ms,
                session_timeout_ms=session_ms or DEFAULT_SESSION_MS,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                other_cause=False,
                waited_ms=None,
                session_assumed=session_ms is None,
                static=member.instance_id is not None,
                commits_count=False,
                revoking_ms=None if revoking_since_ms is None else at_ms - revoking_since_ms,
                can_commit=self.kind is Kind.CONSUMER,
            )
        )
        rebalance_id = f"offsets-{fact.source.partition}-{fact.source.offset}"
        since_ms = self._since.get(member.member_id)
        return self._heard.went(Went(member, since_ms, at_ms, at_ms, finding, rebalance_id, at_ms))

    def _correct_restarts(self, change: Change) -> None:
        """A member that joined while one of the same client id and host was silent took its place: that shows
        when the silent one is put out."""
        for old in change.missing:
            twin, silent_ms = self._twin(old), change.left[old.member_id].silent_ms
            if twin is None or silent_ms is None:
                continue
            later_ms = silent_ms - (change.at_ms - self._since[twin.member_id])
            joined = self._joins.get(twin.member_id)
            if later_ms <= 0 or joined is None:
                continue
            del self._joins[twin.member_id]
            if joined.cause is not Cause.MEMBER_JOINED or len(joined.joined) != 1:
                continue
            text = (
                f"it came {seconds(later_ms)} after the last commit of one of the same client id and host, "
                "which was put out later"
            )
            self._out.append(
                replace(
                    joined,
                    cause=Cause.MEMBER_RESTARTED,
                    confidence=Confidence.LIKELY,
                    evidence=(*joined.evidence, text),
                )
            )

    def _twin(self, old: Member) -> Member | None:
        """A member of the same client id and host that came later."""
        for one in self._members.values():
            same = (one.client_id, one.host) == (old.client_id, old.host)
            if same and self._since[one.member_id] > self._since.get(old.member_id, 0):
                return one
        return None

    def _silent_twin(self, new: Member) -> Member | None:
        """One of the same client id and host that does not commit as usual."""
        for one in self._members.values():
            if one.member_id in self._came or (one.client_id, one.host) != (new.client_id, new.host):
                continue
            slots = list(self._commits.of(one.assigned))
            gap_ms = usual_gap_ms(slots)
            newest_ms = max((slot.at_ms for slot in slots), default=None)
            if gap_ms is None or newest_ms is None or self._since[new.member_id] - newest_ms > gap_ms:
                return one
        return None

    # ---- assignments ----

    def _current(self, fact: CurrentAssignment) -> None:
        member_id, at_ms = fact.member_id, fact.at_ms
        assigned = self._partitions(fact.assigned)
        revoking = self._partitions(fact.revoking)
        member = self._members.get(member_id)
        if fact.epoch is None:
            if member is not None:
                self._hold(member_id, (), at_ms, self._stopped_ms(member, at_ms))
            return
        if member is None:
            # It was read before the member's own record, which compaction may have moved behind.
            member = self._members[member_id] = Member(member_id, "", "")
            self._since.setdefault(member_id, at_ms)
            self._came[member_id] = member
        self._epochs[member_id] = fact.epoch
        self._members[member_id] = member._replace(assigned=assigned)
        if revoking:
            self._revoking.setdefault(member_id, at_ms)
        else:
            self._revoking.pop(member_id, None)
        # Partitions that it has to give up, it reads on until it reports that it did.
        self._hold(member_id, (*assigned, *revoking), at_ms, {})
        if self._open is not None:
            self._out.append(
                MemberSpan(self.group, self._members[member_id], self._since[member_id], None, None, None)
            )
            self._settle(at_ms)

    def _partitions(self, given: Partitions) -> tuple[TopicPartition, ...]:
        return tuple(
            sorted(
                (self._world.name(topic_id), number)
                for topic_id, numbers in given.items()
                for number in numbers
            )
        )

    def _stopped_ms(self, member: Member, at_ms: int) -> dict[TopicPartition, int]:
        """When a member that went stopped reading, where its commits show it."""
        found: dict[TopicPartition, int] = {}
        slots = list(self._commits.of(member.assigned))
        gap_ms = usual_gap_ms(slots)
        if gap_ms is not None:
            for slot in slots:
                if at_ms - slot.at_ms > 2 * gap_ms + 500:
                    found[slot.topic, slot.partition] = slot.at_ms + gap_ms // 2
        return found

    def _hold(
        self,
        member_id: str,
        partitions: Iterable[TopicPartition],
        at_ms: int,
        stopped_ms: Mapping[TopicPartition, int],
    ) -> None:
        now = set(partitions)
        had = {(topic, number) for topic, number, of in self._held if of == member_id}
        for partition in sorted(had - now):
            since_ms, given = self._held.pop((*partition, member_id))
            until_ms = max(since_ms, stopped_ms.get(partition, at_ms))
            self._out.append(Ownership(self.group, *partition, member_id, since_ms, until_ms, given))
            if self.kind is Kind.CONSUMER:
                self._free[partition] = (until_ms, member_id)
                self._move(Move(*partition, member_id, None, None))
        for partition in sorted(now - had):
            self._held[(*partition, member_id)] = (at_ms, self._last_id)
            self._out.append(Ownership(self.group, *partition, member_id, at_ms, None, self._last_id))
            if self.kind is Kind.CONSUMER:
                free_ms, giver = self._free.pop(partition, (None, None))
                idle_ms = None if free_ms is None else at_ms - free_ms
                self._commits.moved((partition,))
                self._move(Move(*partition, giver, member_id, idle_ms))

    def _move(self, move: Move) -> None:
        if self._open is None:
            return
        moves = {(one.topic, one.partition): one for one in self._open.moves}
        moves[move.topic, move.partition] = move
        idle = [one.unowned_ms for one in moves.values() if one.unowned_ms is not None]
        self._open = replace(
            self._open,
            moves=tuple(moves[one] for one in sorted(moves)),
            unowned_ms=sum(idle) if idle else None,
        )

    def _settle(self, at_ms: int) -> None:
        """It is over when every member has reached the epoch and none has to give up anything."""
        if self._open is None or self._target_ms is None or self._revoking:
            return
        epoch = self._open.generation
        if all(reached in (epoch, _AWAY_EPOCH) for reached in self._epochs.values()) and self._all_given():
            self._close(at_ms, Outcome.STABLE)

    def _all_given(self) -> bool:
        # A topic without subscribers is not assigned.
        wanted = {topic for member in self._members.values() for topic in member.topics}
        free = any(giver is not None and topic in wanted for (topic, _), (_, giver) in self._free.items())
        return not free or self.kind is Kind.SHARE

    def _close(self, at_ms: int, outcome: Outcome) -> None:
        made = self._open
        assert made is not None
        self._open = self._closed = None
        sync_ms = None if self._target_ms is None else at_ms - self._target_ms
        made = replace(
            made,
            at_ms=at_ms,
            outcome=outcome,
            members=tuple(self._members.values()) if outcome is not Outcome.SUPERSEDED else made.members,
            sync_ms=sync_ms,
        )
        self._out.append(made)
        self._hindsight.add(made)
        for member_id in made.joined:
            self._joins[member_id] = made
        while len(self._joins) > _JOINS_MAX:
            del self._joins[next(iter(self._joins))]
        if made.first_commit_ms is None and outcome is Outcome.STABLE:
            self._closed = made
        if outcome is Outcome.EMPTY:
            self._free.clear()
        if outcome is not Outcome.SUPERSEDED:
            self._out.append(self._state("Stable" if self._members else "Empty", at_ms))

    def _state(self, state: str, at_ms: int) -> GroupState:
        some = tuple(self._members.values())
        return GroupState(
            self.group, self.kind, state, self._epoch or 0, self.kind.value, "", "", some, at_ms
        )

    def _first_commit(self, at_ms: int) -> bool:
        if self._open is not None and self._open.first_commit_ms is None:
            self._open = replace(self._open, first_commit_ms=at_ms)
        elif self._open is None and self._closed is not None:
            known, self._closed = replace(self._closed, first_commit_ms=at_ms), None
            self._out.append(known)
            self._hindsight.add(known)
            self._joins = {one: known if made.id == known.id else made for one, made in self._joins.items()}
        else:
            return False
        return True
