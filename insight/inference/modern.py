"""One group of the consumer protocol (KIP-848), or a share group (KIP-932): the broker assigns, and writes
down each step with its time.

A rebalance begins with a new group epoch, and ends when every member has what the assignor gave it. Who
came and who went stands in the records before the epoch; leave and expiry write the same ones, and only
commits can tell them apart: share groups commit nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ringleader.insight.history.values import (
    member_of,
    member_row,
    packed,
    rebalance_data,
    rebalance_of,
    unpacked,
)
from ringleader.insight.inference.causes import BY_DEPARTURE, Verdict
from ringleader.insight.inference.commits import Commits, usual_gap_ms
from ringleader.insight.inference.departures import Absence, why_gone
from ringleader.insight.inference.facts import (
    CurrentAssignment,
    GroupEpoch,
    ModernMember,
    Output,
    Partitions,
    RegexResolved,
    Source,
    TargetEpoch,
)
from ringleader.insight.inference.words import listed, members, seconds
from ringleader.insight.inference.world import World, change_text
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    Gone,
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

_RESTART_MS = 60_000
_JOINS_MAX = 20
_NEW_GROUP_EPOCH = 2
"""The first member's epoch of a group is 1 or 2, by the broker's version."""
_AWAY_EPOCH = -2


class Left(NamedTuple):
    """Who went not long ago."""

    client_id: str
    host: str
    at_ms: int
    why: Departure
    sure: bool


class Modern:
    """What is concluded goes to `out`."""

    def __init__(self, group: str, kind: Kind, commits: Commits, world: World, out: list[Output]) -> None:
        self.group = group
        self.kind = kind
        self._commits = commits
        self._world = world
        self._out = out
        self._epoch: int | None = None
        self._hash = 0
        self._members: dict[str, Member] = {}
        self._since: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        """Member id -> the epoch it has reached; -2: a static member that is away."""
        self._revoking: dict[str, int] = {}
        """Member id -> since when it has to give partitions up."""
        self._held: dict[tuple[str, int, str], tuple[int, str]] = {}
        """Partition and member id -> since when, and by which rebalance."""
        self._free: dict[TopicPartition, tuple[int, str]] = {}
        """Partition nobody has -> since when, and who had it."""
        self._regexes: dict[str, tuple[str, ...]] = {}
        self._came: dict[str, Member] = {}
        """Since the last epoch."""
        self._gone: dict[str, tuple[Member, int | None]] = {}
        """Since the last epoch; and since when it had been giving partitions up."""
        self._changed: dict[str, tuple[str, ...]] = {}
        """Member id -> the topics it had, since the last epoch."""
        self._matched: list[str] = []
        """Patterns that match other topics, since the last epoch."""
        self._lately: list[Left] = []
        self._joins: dict[str, Rebalance] = {}
        """Member id -> in which it joined, lately."""
        self._open: Rebalance | None = None
        self._closed: Rebalance | None = None
        """The one before, until something is committed."""
        self._target_ms: int | None = None
        self._last_id = ""
        commits.on_first = self._first_commit

    # ---- facts ----

    def told(self, fact: Any) -> None:
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
            gone = member._replace(assigned=())
            self._out.append(MemberSpan(self.group, gone, self._since[member_id], at_ms, None, None))
        for (topic, number, member_id), (since_ms, given) in self._held.items():
            self._out.append(Ownership(self.group, topic, number, member_id, since_ms, at_ms, given))
        self._members, self._held = {}, {}
        self._out.append(self._state("Dead", at_ms))

    # ---- members ----

    def _member(self, fact: ModernMember) -> None:
        member_id = fact.member_id
        had = self._members.get(member_id)
        if fact.gone:
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
        text = f"{new.instance_id} came back with another member id; epoch {self._epoch} went on as it was"
        came = ("another process came with its instance id",)
        gone = Gone(Departure.RESTARTED, Confidence.LIKELY, None, came)
        self._end_span(old, at_ms, gone, rebalance_id)
        now = tuple(self._members.values())
        self._out.append(
            Rebalance(
                id=rebalance_id,
                group=self.group,
                kind=self.kind,
                generation=self._epoch or 0,
                at_ms=at_ms,
                cause=Cause.STATIC_MEMBER_REPLACED,
                confidence=Confidence.LIKELY,
                evidence=(text,),
                cause_members=(new.member_id,),
                protocol_type=self.kind.value,
                members=now,
                joined=(new.member_id,),
                left={old.member_id: gone},
                before=(*(one for one in now if one.member_id != new.member_id), old),
                began_ms=at_ms,
            )
        )
        self._last_id = rebalance_id

    def _end_span(self, member: Member, at_ms: int, gone: Gone, rebalance_id: str) -> None:
        since_ms = self._since.pop(member.member_id, at_ms)
        self._out.append(
            MemberSpan(self.group, member._replace(assigned=()), since_ms, at_ms, gone, rebalance_id)
        )

    # ---- epochs ----

    def _begin(self, fact: GroupEpoch) -> None:
        assert fact.epoch is not None
        at_ms = fact.at_ms
        if self._open is not None:
            self._close(at_ms, Outcome.SUPERSEDED)
        rebalance_id = f"offsets-{fact.source.partition}-{fact.source.offset}"
        known = (self._epoch is None and fact.epoch <= _NEW_GROUP_EPOCH) or fact.epoch == (
            self._epoch or 0
        ) + 1
        left = {one: self._why_gone(member, at_ms, since) for one, (member, since) in self._gone.items()}
        said = self._verdict(fact, left) if known else Verdict(
            Cause.UNKNOWN, Confidence.UNKNOWN, (f"the record before epoch {fact.epoch} was not read",)
        )  # fmt: skip
        before = [one for one in self._members.values() if one.member_id not in self._came]
        before += [one for one, _ in self._gone.values()]
        for member_id, (member, _) in self._gone.items():
            self._end_span(member, at_ms, left[member_id], rebalance_id)
            gone = left[member_id]
            sure = gone.confidence is not Confidence.POSSIBLE
            self._lately.append(Left(member.client_id, member.host, at_ms, gone.why, sure))
        self._lately = [one for one in self._lately if at_ms - one.at_ms <= _RESTART_MS]
        commits = [slot.at_ms for slot in self._commits.slots.values() if slot.count]
        self._commits.generation(())
        self._commits.nobody = self.kind is Kind.CONSUMER and not self._members
        self._open = Rebalance(
            id=rebalance_id,
            group=self.group,
            kind=self.kind,
            generation=fact.epoch,
            at_ms=at_ms,
            cause=said.cause,
            confidence=said.confidence,
            evidence=said.evidence,
            cause_members=said.members,
            outcome=Outcome.STABLE if self._members else Outcome.EMPTY,
            protocol_type=self.kind.value,
            members=tuple(self._members.values()),
            joined=tuple(self._came),
            left=left,
            before=tuple(before),
            began_ms=at_ms,
            last_commit_ms=max(commits, default=None),
        )
        self._target_ms = None
        self._last_id = rebalance_id
        self._epoch, self._hash = fact.epoch, fact.metadata_hash
        self._came, self._gone, self._changed, self._matched = {}, {}, {}, []
        self._out.append(self._open)
        if self._members:
            self._out.append(self._state("Assigning", at_ms))
        else:
            self._close(at_ms, Outcome.EMPTY)

    def _why_gone(self, member: Member, at_ms: int, revoking_since: int | None) -> Gone:
        limit_ms = member.rebalance_timeout_ms
        if revoking_since is not None and limit_ms is not None and at_ms - revoking_since >= limit_ms - 500:
            text = (
                f"it had been asked {seconds(at_ms - revoking_since)} before to give partitions up, "
                "and had not; "
                f"its rebalance timeout is {seconds(limit_ms)}"
            )
            return Gone(Departure.NOT_REJOINED, Confidence.LIKELY, None, (text,))
        if self.kind is Kind.SHARE:
            text = (
                "a share group's member that leaves and one that expires write the same records, and "
                "commit nothing"
            )
            return Gone(Departure.UNKNOWN, Confidence.UNKNOWN, None, (text,))
        slots = list(self._commits.of(member.assigned))
        since_ms = self._since.get(member.member_id, at_ms)
        others = [slot for one in self._members.values() for slot in self._commits.of(one.assigned)]
        gap_ms = usual_gap_ms(slots)
        session_ms = member.session_timeout_ms or self._world.session_timeout_ms(self.kind)
        return why_gone(
            Absence(
                at_ms=at_ms,
                since_ms=since_ms,
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
                rebalance_timeout_ms=limit_ms,
                other_cause=False,
                waited_ms=None,
                session_assumed=session_ms is None,
                static=member.instance_id is not None,
                commits_count=False,
            )
        )

    def _verdict(self, fact: GroupEpoch, left: Mapping[str, Gone]) -> Verdict:
        at_ms = fact.at_ms
        if self._gone:
            first = next(iter(self._gone))
            gone = left[first]
            some = [member for member, _ in self._gone.values()]
            text = f"{members(some)} {'is' if len(some) == 1 else 'are'} in the group no more"
            twin = self._twin(some[0])
            evidence = [text, *gone.evidence]
            if twin is not None:
                ago_ms = at_ms - self._since[twin.member_id]
                evidence.append(f"one of the same client id came from the same host {seconds(ago_ms)} before")
                if gone.silent_ms is not None and gone.silent_ms > ago_ms:
                    self._was_restart(twin, gone.silent_ms - ago_ms)
            cause = BY_DEPARTURE.get(gone.why, Cause.UNKNOWN)
            sure = gone.confidence if cause is not Cause.UNKNOWN else Confidence.UNKNOWN
            if gone.why is Departure.NOT_REJOINED:
                cause, sure = Cause.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE
            return Verdict(cause, sure, tuple(evidence), tuple(self._gone))
        if self._came:
            return self._joined(at_ms)
        if self._changed:
            words = []
            for member_id, had in self._changed.items():
                now = self._members[member_id]
                gained, lost = set(now.topics) - set(had), set(had) - set(now.topics)
                said = [f"gained {listed(sorted(gained))}"] if gained else []
                said += [f"lost {listed(sorted(lost))}"] if lost else []
                words.append(f"the subscription of {now.name} {' and '.join(said)}")
            return Verdict(Cause.MEMBER_CHANGED, Confidence.CERTAIN, tuple(words), tuple(self._changed))
        if self._matched:
            text = f"the pattern {listed(self._matched)} matches other topics than before"
            return Verdict(Cause.TOPICS_CHANGED, Confidence.LIKELY, (text,))
        topics = {topic for one in self._members.values() for topic in one.topics}
        found = self._world.topic_changes(at_ms - 10 * 60_000, at_ms + 30_000)
        told = {name: counts for name, counts in found.items() if name in topics}
        if fact.metadata_hash != self._hash and self._hash:
            text = "the hash of its topics' partitions, which the group keeps, has changed"
            evidence = [text, *([change_text(told)] if told else [])]
            return Verdict(Cause.TOPICS_CHANGED, Confidence.CERTAIN, tuple(evidence))
        if told:
            return Verdict(Cause.TOPICS_CHANGED, Confidence.LIKELY, (change_text(told),))
        text = "the same members with the same subscriptions and topics; the broker does not say why"
        return Verdict(Cause.UNKNOWN, Confidence.UNKNOWN, (text,))

    def _was_restart(self, twin: Member, later_ms: int) -> None:
        """Who joined took the place of one that had ended without leaving, as is known now."""
        joined = self._joins.pop(twin.member_id, None)
        if joined is None or joined.cause is not Cause.MEMBER_JOINED or len(joined.joined) != 1:
            return
        text = (
            f"it came {seconds(later_ms)} after the last commit of one of the same client id and host, which "
            "was put out later"
        )
        self._out.append(
            replace(
                joined,
                cause=Cause.MEMBER_RESTARTED,
                confidence=Confidence.LIKELY,
                evidence=(*joined.evidence, text),
            )
        )

    def _twin(self, gone: Member) -> Member | None:
        for one in self._members.values():
            same = (one.client_id, one.host) == (gone.client_id, gone.host)
            if same and self._since[one.member_id] > self._since.get(gone.member_id, 0):
                return one
        return None

    def _joined(self, at_ms: int) -> Verdict:
        some = list(self._came.values())
        text = f"{members(some)} {'is' if len(some) == 1 else 'are'} new"
        evidence = [text]
        free = [one for one in self._lately if at_ms - one.at_ms <= _RESTART_MS]
        whys = []
        for member in some:
            for one in reversed(free):
                if (one.client_id, one.host) == (member.client_id, member.host):
                    free.remove(one)
                    whys.append((one.why, one.sure))
                    evidence.append(
                        "one of the same client id went from the same host "
                        f"{seconds(at_ms - one.at_ms)} before "
                        f"({one.why.value})"
                    )
                    break
        if len(whys) == len(some) and {why for why, _ in whys} <= {Departure.LEFT, Departure.UNKNOWN}:
            sure = Confidence.LIKELY if {*whys} == {(Departure.LEFT, True)} else Confidence.POSSIBLE
            return Verdict(Cause.MEMBER_RESTARTED, sure, tuple(evidence[1:]), tuple(self._came))
        silent = [one for one in map(self._silent_twin, some) if one is not None]
        if silent:
            evidence.append(
                f"{members(silent)} of the same client id and host is still there, and nothing shows "
                "that it is "
                "alive: the new one may be its restart"
            )
        sure = Confidence.POSSIBLE if silent else Confidence.CERTAIN
        return Verdict(Cause.MEMBER_JOINED, sure, tuple(evidence), tuple(self._came))

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
        # What it still has to give up, it reads on until it says so.
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
        """When a member that went stopped to read, where its commits show it."""
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
        """It is over when every member has reached the epoch and nobody has to give up anything."""
        if self._open is None or self._target_ms is None or self._revoking:
            return
        epoch = self._open.generation
        if all(reached in (epoch, _AWAY_EPOCH) for reached in self._epochs.values()) and self._all_given():
            self._close(at_ms, Outcome.STABLE)

    def _all_given(self) -> bool:
        # Nobody gets what nobody subscribes to any more.
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
            told, self._closed = replace(self._closed, first_commit_ms=at_ms), None
            self._out.append(told)
            self._joins = {one: told if made.id == told.id else made for one, made in self._joins.items()}
        else:
            return False
        return True

    # ---- snapshots ----

    def dump(self) -> dict[str, Any]:
        """JSON."""
        return {
            "epoch": self._epoch,
            "hash": self._hash,
            "members": [member_row(one) for one in self._members.values()],
            "since": self._since,
            "epochs": self._epochs,
            "revoking": self._revoking,
            "held": [[*where, *held] for where, held in self._held.items()],
            "free": [[*where, *free] for where, free in self._free.items()],
            "regexes": self._regexes,
            "came": list(self._came),
            "gone": [[member_row(member), since] for member, since in self._gone.values()],
            "changed": self._changed,
            "matched": self._matched,
            "lately": self._lately,
            "joins": {one: unpacked(rebalance_data(made)) for one, made in self._joins.items()},
            "open": None if self._open is None else unpacked(rebalance_data(self._open)),
            "closed": None if self._closed is None else unpacked(rebalance_data(self._closed)),
            "target": self._target_ms,
            "last": self._last_id,
            "nobody": self._commits.nobody,
        }

    def load(self, said: dict[str, Any]) -> None:
        """What `dump` made."""
        self._epoch, self._hash = said["epoch"], said["hash"]
        self._members = {one.member_id: one for one in map(member_of, said["members"])}
        self._since, self._epochs, self._revoking = said["since"], said["epochs"], said["revoking"]
        self._held = {(topic, number, of): (since, by) for topic, number, of, since, by in said["held"]}
        self._free = {(topic, number): (since, of) for topic, number, since, of in said["free"]}
        self._regexes = {regex: tuple(topics) for regex, topics in said["regexes"].items()}
        self._came = {one: self._members[one] for one in said["came"]}
        gone = [(member_of(row), since) for row, since in said["gone"]]
        self._gone = {member.member_id: (member, since) for member, since in gone}
        self._changed = {one: tuple(topics) for one, topics in said["changed"].items()}
        self._matched = said["matched"]
        self._lately = [Left(*one)._replace(why=Departure(one[3])) for one in said["lately"]]
        self._joins = {one: rebalance_of(packed(made)) for one, made in said["joins"].items()}
        self._open = None if said["open"] is None else rebalance_of(packed(said["open"]))
        self._closed = None if said["closed"] is None else rebalance_of(packed(said["closed"]))
        self._target_ms, self._last_id = said["target"], said["last"]
        self._commits.nobody = said["nobody"]
