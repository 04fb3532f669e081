"""What concerns all groups of a cluster: its topics, and who coordinates."""

from __future__ import annotations

import base64
import json
from typing import Any

from ringleader.insight.inference.commits import FORMAT, checked
from ringleader.insight.inference.facts import CoordinatorSeen, Output, SessionTimeouts, Topic, TopicsSeen
from ringleader.insight.inference.words import count, listed
from ringleader.insight.model import Event, EventKind, Kind

REMEMBERED_MS = 15 * 60_000
"""Changes of topics and coordinators explain what comes within this."""

NAMES_MAX = 1_000_000
"""Topic ids whose names are known."""

_TOLD_MAX = 10_000
"""Changes of topics that the journal told of; all since the last poll."""

_TOGETHER_MS = 10_000
"""Partitions that lose their coordinator within this are one event."""


class World:
    """`out` gets events; `changed` says whether `dump` has changed."""

    def __init__(self, out: list[Output]) -> None:
        self.changed = False
        self.looked_ms = 0
        """When all groups were last looked at, for what does not happen in them."""
        self.topics: dict[str, Topic] | None = None
        self._names: dict[bytes, str] = {}
        self._sessions: dict[str, int] = {}
        self._moves: list[tuple[int, str, int, int]] = []
        self._leaders: dict[int, tuple[int, int, bool]] = {}
        self._away: list[tuple[int, int]] = []
        self._event: tuple[str, int, EventKind, int, list[int]] | None = None
        self._out = out
        self._told: dict[tuple[EventKind, str], int] = {}
        """Changes of topics that the journal told of, and no poll has seen: when."""
        self._seen: dict[tuple[EventKind, str], Event] = {}
        """The other way round."""

    def session_timeouts(self, fact: SessionTimeouts) -> None:
        """The brokers' settings."""
        now = {Kind.CONSUMER.value: fact.consumer_ms, Kind.SHARE.value: fact.share_ms}
        self.changed |= now != self._sessions
        self._sessions = now

    def session_timeout_ms(self, kind: Kind) -> int | None:
        """Of groups whose members do not bring their own; None: not told."""
        return self._sessions.get(kind.value)

    def name(self, topic_id: bytes) -> str:
        """Of a topic; its id in Kafka's form where it is not known (deleted before it was ever seen)."""
        return self._names.get(topic_id) or base64.urlsafe_b64encode(topic_id).decode().rstrip("=")

    def topics_seen(self, fact: TopicsSeen) -> None:
        """Events, and what explains rebalances later."""
        before, self.topics = self.topics, dict(fact.topics)
        for name, topic in fact.topics.items():
            if any(topic.topic_id):
                self._names[topic.topic_id] = name
        while len(self._names) > NAMES_MAX:
            del self._names[next(iter(self._names))]  # the oldest, long deleted
        if before is None:
            self.changed = True
            return
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
            if self._told.pop((kind, name), None) is None:
                event = Event(f"topic-{name}-{fact.at_ms}", "", fact.at_ms, kind, text)
                self._seen[kind, name] = event
                self._out.append(event)
        since_ms = fact.at_ms - REMEMBERED_MS
        self._moves = [one for one in self._moves if one[0] >= since_ms]
        self._told = {key: at_ms for key, at_ms in self._told.items() if at_ms >= since_ms}
        self._seen = {key: event for key, event in self._seen.items() if event.at_ms >= since_ms}

    def journalled(self, said: Event, topic: str) -> None:
        """An event that the journal tells of. What polls see of topics, too, is one event: this one."""
        if topic:
            seen = self._seen.pop((said.kind, topic), None)
            if seen is None:
                self._told[said.kind, topic] = said.at_ms
                if len(self._told) > _TOLD_MAX:
                    del self._told[next(iter(self._told))]
            else:
                said = said._replace(id=seen.id)
        self._out.append(said)

    def topic_changes(self, since_ms: int, until_ms: int) -> dict[str, tuple[int, int]]:
        """Topics whose partitions changed then: how many they had, and have."""
        found: dict[str, tuple[int, int]] = {}
        for at_ms, name, had, has in self._moves:
            if since_ms <= at_ms <= until_ms:
                found[name] = (found[name][0] if name in found else had, has)
        return found

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
        groups = f"the groups of {count(len(partitions), 'partition')} of __consumer_offsets"
        says = "does not answer" if kind is EventKind.COORDINATOR_AWAY else "coordinates now"
        self._out.append(Event(name, "", at_ms, kind, f"Broker {broker} {says}: {groups}."))

    def coordinator_changed_ms(self, partition: int, since_ms: int, until_ms: int) -> int | None:
        """When the coordinator of a partition's groups was last seen away, back or another then."""
        found = [at_ms for at_ms, of in self._away if of == partition and since_ms <= at_ms <= until_ms]
        return max(found, default=None)

    def dump(self) -> bytes:
        """JSON."""
        topics = self.topics
        said: dict[str, Any] = {
            "format": FORMAT,
            "topics": None
            if topics is None
            else {name: [one.partitions, one.topic_id.hex()] for name, one in topics.items()},
            "names": {topic_id.hex(): name for topic_id, name in self._names.items()},
            "looked": self.looked_ms,
            "sessions": self._sessions,
            "moves": self._moves,
            "leaders": [[partition, *said] for partition, said in self._leaders.items()],
            "away": self._away,
            "event": self._event,
        }
        return json.dumps(said, separators=(",", ":")).encode()

    def load(self, data: bytes) -> None:
        """What `dump` made. Raises `ValueError`."""
        said = checked(data)
        if said["topics"] is not None:
            self.topics = {
                name: Topic(partitions, bytes.fromhex(topic_id))
                for name, (partitions, topic_id) in said["topics"].items()
            }
        self._names = {bytes.fromhex(topic_id): name for topic_id, name in said["names"].items()}
        self.looked_ms, self._sessions = said["looked"], said["sessions"]
        self._moves = [tuple(one) for one in said["moves"]]
        self._leaders = {partition: tuple(rest) for partition, *rest in said["leaders"]}
        self._away = [tuple(one) for one in said["away"]]
        if said["event"] is not None:
            name, at_ms, kind, broker, partitions = said["event"]
            self._event = (name, at_ms, EventKind(kind), broker, partitions)


def change_text(changes: dict[str, tuple[int, int]]) -> str:
    """Topics that changed, in words."""
    return listed([f"{name} had {had} partitions and has {has}" for name, (had, has) in changes.items()])
