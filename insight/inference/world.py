"""The facts that concern all groups of a cluster: its topics, and the coordinators."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from ringleader.insight.inference.facts import CoordinatorSeen, Output, SessionTimeouts, Topic, TopicsSeen
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import count, listed
from ringleader.insight.model import Event, EventKind, Kind

REMEMBERED_MS = 15 * 60_000
"""Changes of topics and coordinators explain what comes within this."""

NAMES_MAX = 1_000_000
"""Topic ids whose names are known."""

_JOURNALLED_MAX = 10_000
"""Changes of topics that the journal reported; all since the last poll."""

_TOGETHER_MS = 10_000
"""Partitions that lose their coordinator within this are one event."""


class World(Restorable):
    """`out` gets events; `changed` says whether `dump` has changed."""

    looked_ms: Kept[int]
    """When all groups were last looked at, for commits that do not come."""
    topics: Kept[dict[str, Topic] | None]
    _names: Kept[dict[bytes, str]]
    _sessions: Kept[dict[Kind, int]]
    _moves: Kept[list[tuple[int, str, int, int]]]
    """Topics whose partitions changed: when, the name, the number before and after."""
    _leaders: Kept[dict[int, tuple[int, int, bool]]]
    """Partition of `__consumer_offsets` -> broker (or node), epoch, whether it answers."""
    _away: Kept[list[tuple[int, int]]]
    """When a partition's coordinator was seen away, back or another."""
    _event: Kept[tuple[str, int, EventKind, int, list[int]] | None]
    """The last event of a coordinator: id, time, kind, broker, partitions."""

    def __init__(self, out: list[Output]) -> None:
        self.changed = False
        self.looked_ms = 0
        self.topics = None
        self._names, self._sessions, self._leaders = {}, {}, {}
        self._moves, self._away = [], []
        self._event = None
        self._out = out
        self._journalled: dict[tuple[EventKind, str], int] = {}
        """Changes of topics that the journal reported, and no poll has seen: when."""
        self._seen: dict[tuple[EventKind, str], Event] = {}
        """Changes of topics that a poll has seen, and the journal has not reported."""

    def session_timeouts(self, fact: SessionTimeouts) -> None:
        """The brokers' settings."""
        timeouts = {Kind.CONSUMER: fact.consumer_ms, Kind.SHARE: fact.share_ms}
        now = {kind: session_ms for kind, session_ms in timeouts.items() if session_ms is not None}
        self.changed |= now != self._sessions
        self._sessions = now

    def session_timeout_ms(self, kind: Kind) -> int | None:
        """Of groups whose members do not bring their own; None: not known."""
        return self._sessions.get(kind)

    def name(self, topic_id: bytes) -> str:
        """Of a topic; its id in Kafka's form where it is not known (deleted before it was ever seen)."""
        return self._names.get(topic_id) or base64.urlsafe_b64encode(topic_id).decode().rstrip("=")

    def topics_seen(self, fact: TopicsSeen) -> bool:
        """Events, and what explains rebalances later; whether anything changed."""
        before, self.topics = self.topics, dict(fact.topics)
        for name, topic in fact.topics.items():
            if any(topic.topic_id):
                self._names[topic.topic_id] = name
        while len(self._names) > NAMES_MAX:
            del self._names[next(iter(self._names))]  # the oldest, long deleted
        if before is None:
            self.changed = True
            return False
        known = len(self._moves)
        for name in sorted(before.keys() | fact.topics.keys()):
            had = before[name].partitions if name in before else 0
            has = fact.topics[name].partitions if name in fact.topics else 0
            if had == has:
                continue
            self.changed = True
            self._moves.append((fact.at_ms, name, had, has))
            if not had:
                kind, text = EventKind.TOPIC_CREATED, f"Topic {name} was created: {count(has, 'partition')}."
            elif not has:
                kind, text = EventKind.TOPIC_DELETED, f"Topic {name} was deleted."
            else:
                kind, text = EventKind.PARTITIONS_ADDED, f"Topic {name} has {has} partitions, it had {had}."
            if self._journalled.pop((kind, name), None) is None:
                event = Event(f"topic-{name}-{fact.at_ms}", "", fact.at_ms, kind, text)
                self._seen[kind, name] = event
                self._out.append(event)
        since_ms, moved = fact.at_ms - REMEMBERED_MS, len(self._moves) > known
        self._moves = [one for one in self._moves if one[0] >= since_ms]
        self._journalled = {key: at_ms for key, at_ms in self._journalled.items() if at_ms >= since_ms}
        self._seen = {key: event for key, event in self._seen.items() if event.at_ms >= since_ms}
        return moved

    def journalled(self, event: Event, topic: str) -> None:
        """An event that the journal reports. A change of a topic that polls see, too, is one event: this
        one."""
        if topic:
            seen = self._seen.pop((event.kind, topic), None)
            if seen is None:
                self._journalled[event.kind, topic] = event.at_ms
                if len(self._journalled) > _JOURNALLED_MAX:
                    del self._journalled[next(iter(self._journalled))]
            else:
                event = event._replace(id=seen.id)
        self._out.append(event)

    def topic_changes(self, since_ms: int, until_ms: int) -> dict[str, tuple[int, int]]:
        """Topics whose partitions changed then: how many they had, and have."""
        found: dict[str, tuple[int, int]] = {}
        for at_ms, name, had, has in self._moves:
            if since_ms <= at_ms <= until_ms:
                # Of a topic that was created and deleted, the last of the two counts.
                goes_on = name in found and found[name][1] and has
                found[name] = (found[name][0] if goes_on else had, has)
        return found

    def deleted(self) -> set[str]:
        """Topics that were seen to be deleted lately."""
        return {name for _, name, _, has in self._moves if not has} - (self.topics or {}).keys()

    def coordinator_seen(self, fact: CoordinatorSeen) -> None:
        """Events, and what explains rebalances later."""
        partition = fact.offsets_partition
        before = self._leaders.get(partition)
        now = (fact.broker, fact.leader_epoch, fact.reachable)
        if before == now:
            return
        self._leaders[partition] = now
        self.changed = True
        if before is None:
            if not fact.reachable:
                self._coordinator(fact, EventKind.COORDINATOR_AWAY)
            return
        if before[2] and not fact.reachable:
            self._coordinator(fact, EventKind.COORDINATOR_AWAY)
        elif fact.reachable and (not before[2] or before[:2] != now[:2]):
            self._coordinator(fact, EventKind.COORDINATOR_BACK)

    def _coordinator(self, fact: CoordinatorSeen, kind: EventKind) -> None:
        self._away.append((fact.at_ms, fact.offsets_partition))
        self._away = [one for one in self._away if one[0] >= fact.at_ms - REMEMBERED_MS]
        event = self._event
        if (
            event is None
            or event[2] is not kind
            or event[3] != fact.broker
            or fact.at_ms - event[1] > _TOGETHER_MS
        ):
            event = (f"coordinator-{fact.broker}-{fact.at_ms}", fact.at_ms, kind, fact.broker, [])
        event[4].append(fact.offsets_partition)
        self._event = event
        name, at_ms, kind, broker, partitions = event
        topic = "the groups' topic" if fact.is_node else "__consumer_offsets"
        groups = f"the groups of {count(len(partitions), 'partition')} of {topic}"
        server = f"{'Node' if fact.is_node else 'Broker'} {broker}"
        state = "does not answer" if kind is EventKind.COORDINATOR_AWAY else "coordinates now"
        self._out.append(Event(name, "", at_ms, kind, f"{server} {state}: {groups}."))

    def coordinator_changed_ms(self, partition: int, since_ms: int, until_ms: int) -> int | None:
        """When the coordinator of a partition's groups was last seen away, back or another then."""
        found = [at_ms for at_ms, of in self._away if of == partition and since_ms <= at_ms <= until_ms]
        return max(found, default=None)


def change_text(changes: Mapping[str, tuple[int, int]]) -> str:
    """Topics that changed, in words."""
    return listed([f"{name} had {had} partitions and has {has}" for name, (had, has) in changes.items()])
