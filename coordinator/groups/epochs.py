"""The journal's notes of groups of the consumer protocol: each rebalance from its first group epoch until all
members have what the target gives them.

Nothing of the group depends on them. The changes of an event are worked out after it, from the members that
its records concern; epochs that come before the target is computed are one rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from operator import itemgetter

from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import (
    AWAY_EPOCH,
    ConsumerMember,
    Current,
    MemberState,
    Subscription,
)
from ringleader.coordinator.consumer_groups.records import CURRENT, SUBSCRIPTION, decode_key
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.deadlines import NEVER, DeadlineHeap
from ringleader.coordinator.groups.deadlines import GroupDeadline
from ringleader.coordinator.groups.epoch_notes import (
    EpochProgress,
    Event,
    Had,
    Notes,
    Place,
    beyond,
    had_before,
    had_now,
    is_step,
)
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.reports import FINISH_TIMEOUT_MS, Reports
from ringleader.coordinator.journal.entries import (
    Cause,
    DepartedMember,
    Departure,
    EpochEntry,
    IncidentKind,
    OffsetChange,
    Outcome,
    Seated,
    Wait,
)
from ringleader.coordinator.machine import Ticket
from ringleader.coordinator.unix_time import UnixTime

AWAITED_MAX = 10
"""The most members reported, at one look at a rebalance, as those that hold others up."""
AWAITED_PARTITIONS_MAX = 1_000

_CAUSES = {
    Departure.LEFT: Cause.MEMBER_LEFT,
    Departure.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    Departure.NOT_REVOKED: Cause.NOT_REVOKED,
    Departure.NOT_REJOINED: Cause.NOT_REVOKED,
    Departure.NOT_SYNCED: Cause.SYNC_MISSING,
}


class Epochs:
    """The notes of one shard."""

    def __init__(
        self,
        reports: Reports,
        groups: Mapping[str, Group],
        deadlines: DeadlineHeap[GroupDeadline],
        unix_time: UnixTime,
        topics: Topics,
        session_ms: Callable[[str, Subscription], int],
        assignor: str,
    ) -> None:
        """`assignor`: of groups whose members ask for none."""
        self._reports = reports
        self._groups = groups
        self._deadlines = deadlines
        self._unix_time = unix_time
        self._topics = topics
        self._session_ms = session_ms
        self._assignor = assignor
        self._notes: dict[str, Notes] = {}
        self._events: dict[Group, Event] = {}

    @property
    def pending(self) -> bool:
        """Whether `settle` has anything to do."""
        return bool(self._events)

    def clear(self) -> None:
        """Forget everything."""
        self._notes.clear()
        self._events.clear()

    # ---- while an event is handled ----

    def about(self, group: Group, key: bytes) -> bool:
        """A record is about to take effect. Whether it says what a member subscribes to, or has."""
        named = decode_key(key)
        if named is not None and named[0] in (SUBSCRIPTION, CURRENT):
            self.about_member(group, named[2])
            return True
        self._event(group)
        return False

    def about_member(self, group: Group, member_id: str) -> None:
        """Likewise, of a member whose subscription or partitions it is."""
        was = self._event(group).was
        if member_id not in was:
            known = None if group.consumer is None else group.consumer.members.get(member_id)
            was[member_id] = None if known is None else (known.subscription, known.current)

    def _event(self, group: Group) -> Event:
        event = self._events.get(group)
        if event is None:
            event = self._events[group] = Event()
            if group.group_id not in self._notes:
                epoch = 0 if group.consumer is None else group.consumer.epoch
                self._notes[group.group_id] = Notes(epoch, was_classic=bool(group.members))
        return event

    def going(self, group: Group, member: ConsumerMember, why: Departure, due_ms: int, now_ms: int) -> None:
        """A member is about to be removed. `due_ms`: of its session."""
        session_ms = self._session_ms(group.group_id, member.subscription)
        heard_ms = min(now_ms, (now_ms if due_ms == NEVER else due_ms) - session_ms)
        self._event(group).going[member.member_id] = why, heard_ms

    # ---- after it ----

    def settle(self, ticket: Ticket | None, now_ms: int) -> None:
        """The event is over: note what it changed. `ticket`: of the request that it was, if any."""
        events, self._events = self._events, {}
        for group, event in events.items():
            notes = self._notes.get(group.group_id)
            if notes is not None:
                self._settle(group, notes, event, ticket, now_ms)

    def _settle(self, group: Group, notes: Notes, event: Event, ticket: Ticket | None, now_ms: int) -> None:
        if group.members:  # it is a classic one again, which tells of its rebalances itself
            self._end(group, notes, (), now_ms)
            del self._notes[group.group_id]
            return
        consumer = group.consumer or ConsumerGroup(group.group_id)
        members = consumer.members
        if is_step(notes, consumer, event):  # most events of a large group's rebalance
            self._move(notes, consumer, event, now_ms)
            if notes.open is not None:
                self._progress(group, notes, notes.open, consumer, event, now_ms)
            return
        if notes.was_classic:  # its members stay, and have what they had
            notes.was_classic = False
            for one in event.was:
                member = members.get(one)
                if member is not None and member.subscription.classic is not None:
                    event.was[one] = member.subscription, member.current
        event.joined = [one for one, was in event.was.items() if was is None and one in members]
        event.left = {one: was for one, was in event.was.items() if was is not None and one not in members}
        if ticket is not None:
            notes.principals.update(dict.fromkeys(event.joined, ticket.principal))
        self._find_replaced(group, notes, consumer, event, ticket, now_ms)
        if consumer.epoch > notes.epoch or (event.left and not members):
            self._begin(group, notes, consumer, event, now_ms)
        else:
            notes.unplaced += event.joined
        notes.epoch = consumer.epoch
        self._move(notes, consumer, event, now_ms)
        if notes.open is not None:
            self._progress(group, notes, notes.open, consumer, event, now_ms)
        for member_id, was in event.was.items():
            member = members.get(member_id)
            if member is not None and member.is_away and was is not None and was[1].epoch != AWAY_EPOCH:
                notes.away[member_id] = self._unix_time.now_ms(now_ms)
                self._tell(group, IncidentKind.STATIC_AWAY, member, ticket, now_ms)
        for member_id in (*event.left, *event.replaced.values()):
            notes.principals.pop(member_id, None)
            notes.away.pop(member_id, None)
        if not members:
            self._notes.pop(group.group_id, None)

    def _find_replaced(
        self,
        group: Group,
        notes: Notes,
        consumer: ConsumerGroup,
        event: Event,
        ticket: Ticket | None,
        now_ms: int,
    ) -> None:
        for old_id, (described, _) in list(event.left.items()):
            fresh = consumer.static_members.get(described.instance_id or "")
            if fresh is None or fresh not in event.joined:
                continue
            event.joined.remove(fresh)
            del event.left[old_id]
            event.replaced[fresh] = old_id
            notes.unplaced = [fresh if one == old_id else one for one in notes.unplaced]
            member = consumer.members[fresh]
            self._tell(
                group,
                IncidentKind.STATIC_RETURNED,
                member,
                ticket,
                now_ms,
                old_member_id=old_id,
                last_heard_ms=notes.away.get(old_id, -1),
            )
            running = notes.open
            if running is not None and old_id in running.had:
                running.had[fresh] = running.had.pop(old_id)
            if running is not None:
                running.unsettled.discard(old_id)

    def _begin(self, group: Group, notes: Notes, consumer: ConsumerGroup, event: Event, now_ms: int) -> None:
        """There is another group epoch: the next rebalance, or still the one whose target is to come."""
        event.joined = notes.unplaced + event.joined
        notes.unplaced = []
        if notes.open is None or notes.open.leader_synced_ms >= 0:  # each join of a thousand goes past this
            before = had_before(notes, consumer, event)
            if notes.open is not None:
                self._end(group, notes, self._seated(group.group_id, before), now_ms)
            cause, trigger = _cause(event, consumer)
            notes.open = EpochProgress(
                group.group_id, cause, trigger, consumer.epoch, now_ms, before, group.committed_ms
            )
        running = notes.open
        running.generation = max(consumer.epoch, notes.epoch)
        running.joined.update(dict.fromkeys(event.joined))
        for member_id, (described, _) in event.left.items():
            running.joined.pop(member_id, None)
            why, heard_ms = event.going.get(member_id, (Departure.LEFT, now_ms))
            running.left[member_id] = DepartedMember(
                why,
                self._unix_time.now_ms(now_ms),
                self._unix_time.now_ms(heard_ms),
                described.client_id,
                described.client_host,
                described.instance_id,
                notes.principals.get(member_id),
            )

    def _seated(self, group_id: str, members: Mapping[str, Had]) -> tuple[Seated, ...]:
        return tuple(
            Seated(
                member_id,
                described.client_id,
                described.client_host,
                described.instance_id,
                self._session_ms(group_id, described),
                described.rebalance_timeout_ms,
                described.topic_names,
                current.epoch,
                current.assigned,
                principal,
            )
            for member_id, (described, current, principal) in members.items()
        )

    # ---- partitions ----

    def _move(
        self,
        notes: Notes,
        consumer: ConsumerGroup,
        event: Event,
        now_ms: int,
    ) -> None:
        """Note which members gave partitions up, and which got them."""
        unix_ms = self._unix_time.now_ms(now_ms)
        taken: list[tuple[Place, str]] = []
        old_ids = {*event.replaced.values()}
        for member_id in (one for one in event.was if one not in old_ids):
            member = consumer.members.get(member_id)
            was = event.was.get(event.replaced.get(member_id, member_id))
            if was is not None and member is not None and member.current.holds_as(was[1]):
                continue
            before = Current() if was is None else was[1]
            after = Current() if member is None else member.current
            since_ms = unix_ms
            if event.going.get(member_id, (None, 0))[0] is Departure.SESSION_EXPIRED:
                since_ms = self._unix_time.now_ms(event.going[member_id][1])
            for place in beyond(before, after):
                notes.free[place] = member_id, since_ms
                if notes.open is not None:
                    notes.open.moves[place] = member_id, None, None
            taken += [(place, member_id) for place in beyond(after, before)]
        for place, member_id in taken:
            giver, free_ms = notes.free.pop(place, (None, None))
            if notes.open is None:
                continue
            if giver == member_id:  # it has again what it gave up
                notes.open.moves.pop(place, None)
                continue
            gap_ms = None if free_ms is None else max(0, unix_ms - free_ms)
            notes.open.moves[place] = giver, member_id, gap_ms

    # ---- the way to the target ----

    def _progress(
        self,
        group: Group,
        notes: Notes,
        running: EpochProgress,
        consumer: ConsumerGroup,
        event: Event,
        now_ms: int,
    ) -> None:
        epoch = consumer.assignment_epoch
        if running.leader_synced_ms < 0 and epoch >= running.generation and consumer.members:
            running.leader_synced_ms = now_ms
            running.unsettled = {one.member_id for one in consumer.members.values() if not _is_at(one, epoch)}
            self._deadlines.arm(running, now_ms + FINISH_TIMEOUT_MS)
        for member_id in event.was:
            member = consumer.members.get(member_id)
            if member is None or (running.leader_synced_ms >= 0 and _is_at(member, epoch)):
                running.unsettled.discard(member_id)
            elif running.leader_synced_ms >= 0:
                running.unsettled.add(member_id)
            self._waits(running, consumer, member_id, now_ms)
        if not consumer.members:
            self._finish(group, notes, Outcome.EMPTY, (), now_ms)
        elif running.leader_synced_ms >= 0 and not running.unsettled:
            self._finish(group, notes, Outcome.STABLE, self._members(notes, consumer), now_ms)

    def _waits(self, running: EpochProgress, consumer: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """Note whose partitions a member waits for now."""
        member = consumer.members.get(member_id)
        if member is not None and member.current.state is not MemberState.UNRELEASED_PARTITIONS:
            member = None
        if member is None and member_id not in running.awaited:
            return
        awaited: dict[str, list[Place]] = {}
        if member is not None:
            for topic_id, wanted in member.target.items():
                for partition in wanted.difference(member.current.assigned.get(topic_id, ())):
                    holder = consumer.holder(topic_id, partition)
                    if holder is not None and holder != member_id:
                        awaited.setdefault(holder, []).append((topic_id, partition))
        unix_ms = self._unix_time.now_ms(now_ms)
        for holder, places in awaited.items():
            if (member_id, holder) not in running.waits:
                running.waits[member_id, holder] = Wait(member_id, holder, tuple(sorted(places)), unix_ms)
        for holder in running.awaited.pop(member_id, ()):
            if holder not in awaited:
                running.waits[member_id, holder] = running.waits[member_id, holder]._replace(until_ms=unix_ms)
        still = [holder for holder in awaited if running.waits[member_id, holder].until_ms < 0]
        if still:
            running.awaited[member_id] = still

    def look(self, running: EpochProgress, now_ms: int) -> None:
        """A rebalance takes long: tell who holds it up, and look again later."""
        notes = self._notes.get(running.group_id or "")
        group = self._groups.get(running.group_id or "")
        if notes is None or notes.open is not running or group is None or group.consumer is None:
            return
        members = group.consumer.members
        awaited = [one for one in running.waits.values() if one.until_ms < 0 and one.holder in members]
        holders: dict[str, list[Wait]] = {}
        for wait in awaited:
            holders.setdefault(wait.holder, []).append(wait)
        for holder, waits in islice(holders.items(), AWAITED_MAX):
            places = [place for one in waits for place in one.places]
            rows: list[OffsetChange] = [
                (topic.name, partition, None, None)
                for topic_id, partition in islice(places, AWAITED_PARTITIONS_MAX)
                if (topic := self._topics.of_id(topic_id)) is not None
            ]
            self._tell(
                group,
                IncidentKind.REVOCATION_AWAITED,
                members[holder],
                None,
                now_ms,
                partitions=tuple(rows),
                waiting=tuple(one.waiter for one in waits[:AWAITED_MAX]),
                since_ms=min(one.since_ms for one in waits),
            )
        self._deadlines.arm(running, now_ms + FINISH_TIMEOUT_MS)

    def _tell(
        self,
        group: Group,
        kind: IncidentKind,
        member: ConsumerMember,
        ticket: Ticket | None,
        now_ms: int,
        **more: object,
    ) -> None:
        self._reports.incident(
            group.group_id,
            kind,
            ticket,
            now_ms,
            member_id=member.member_id,
            client_id=member.subscription.client_id,
            client_host=member.subscription.client_host,
            group_instance_id=member.subscription.instance_id,
            **more,
        )

    # ---- the end ----

    def finish_all(self, group: Group, now_ms: int) -> None:
        """The shard will be no more: tell of a rebalance that is under way."""
        notes, consumer = self._notes.get(group.group_id), group.consumer
        if notes is not None and consumer is not None:
            self._end(group, notes, self._members(notes, consumer), now_ms)

    def _end(self, group: Group, notes: Notes, members: tuple[Seated, ...], now_ms: int) -> None:
        """Tell of a rebalance that is under way: it goes on no more."""
        if notes.open is not None:
            self._finish(group, notes, Outcome.SUPERSEDED, members, now_ms)

    def _members(self, notes: Notes, consumer: ConsumerGroup) -> tuple[Seated, ...]:
        return self._seated(consumer.group_id, had_now(notes, consumer))

    def _finish(
        self, group: Group, notes: Notes, outcome: Outcome, members: tuple[Seated, ...], now_ms: int
    ) -> None:
        running, notes.open = notes.open, None
        assert running is not None
        self._deadlines.cancel(running)
        entry = self._entry(group, running, outcome, members, now_ms)
        if outcome is Outcome.STABLE:
            group.no_commit_since = running
        self._reports.epoch_entry(group, entry, now_ms)

    def _entry(
        self,
        group: Group,
        running: EpochProgress,
        outcome: Outcome,
        members: tuple[Seated, ...],
        now_ms: int,
    ) -> EpochEntry:
        preferred = None if group.consumer is None else group.consumer.preferred_assignor()
        unix_ms = self._unix_time.now_ms(now_ms)
        # There may be tens of thousands of partitions: a thread of the journal does more with them.
        before = self._seated(group.group_id, running.had)
        named = set(map(itemgetter(0), running.moves))
        named.update(*(one.assigned for one in (*members, *before)))
        named.update(*(map(itemgetter(0), one.places) for one in running.waits.values()))
        target_ms = running.leader_synced_ms if running.leader_synced_ms >= 0 else now_ms
        waits = (
            one if one.until_ms >= 0 else one._replace(until_ms=unix_ms) for one in running.waits.values()
        )
        return EpochEntry(
            group_id=group.group_id,
            generation=running.generation,
            cause=running.cause,
            cause_member=running.cause_member,
            outcome=outcome,
            protocol=(preferred or self._assignor) if members else "",
            members=members,
            before=before,
            joined=tuple(running.joined),
            gone=running.left,
            at_ms=unix_ms,
            duration_ms=now_ms - running.started_ms,
            leader_ms=target_ms - running.started_ms,
            sync_ms=now_ms - target_ms,
            moves=running.moves,
            waits=tuple(waits),
            topics={
                topic_id: topic.name
                for topic_id in named
                if (topic := self._topics.of_id(topic_id)) is not None
            },
            last_commit_ms=running.last_commit_ms,
        )


def _is_at(member: ConsumerMember, epoch: int) -> bool:
    return member.is_away or member.current.is_stable_at(epoch)


def _cause(event: Event, consumer: ConsumerGroup) -> tuple[Cause, str]:
    for member_id in event.left:
        return _CAUSES[event.going.get(member_id, (Departure.LEFT, 0))[0]], member_id
    for member_id in event.joined:
        return Cause.MEMBER_JOINED, member_id
    for member_id, was in event.was.items():
        member = consumer.members.get(member_id)
        if member is not None and was is not None and _topics(was[0]) != _topics(member.subscription):
            return Cause.MEMBER_CHANGED, member_id
    return Cause.TOPICS_CHANGED, ""


def _topics(described: Subscription) -> tuple[frozenset[str], str]:
    return described.topic_names, described.topic_regex
