"""The topics of the cluster, as groups of the consumer protocol see them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

_HASHED = struct.Struct(">16si")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[frozenset[str], ...] = ()
    """Those of the replicas of each partition; none: nothing is known of them. A group takes note of others
    at its next epoch: brokers that come and go are no reason for one."""

    def fingerprint(self) -> bytes:
        """Eight bytes that change with its id, name or number of partitions."""
        digest = blake2b(_HASHED.pack(self.topic_id, self.partitions), digest_size=8)
        digest.update(self.name.encode())
        return digest.digest()


@dataclass(slots=True)
class Topics:
    """All topics, by name and by id. One for all shards of a process; it changes between their calls only."""

    version: int = 0
    """Grows with every change."""
    names_version: int = 0
    """Grows when a name is new, or when principals may see others than before: what regular expressions match
    may be other topics then."""
    complete: bool = True
    """Whether every topic is known here. A missing topic means nothing before."""
    _by_name: dict[str, Topic] = field(default_factory=dict)
    _by_id: dict[bytes, Topic] = field(default_factory=dict)

    def put(self, topic: Topic) -> None:
        """A topic was created or changed, or made again under another id."""
        before = self._by_name.get(topic.name)
        if before == topic:
            return
        self.version += 1
        if before is None:
            self.names_version += 1
        if before is not None and before.topic_id != topic.topic_id:
            self._by_id.pop(before.topic_id, None)
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic

    def remove(self, name: str) -> None:
        """A topic was deleted."""
        before = self._by_name.pop(name, None)
        if before is not None:
            self.version += 1
            self._by_id.pop(before.topic_id, None)

    def seen_anew(self) -> None:
        """Principals may see others of them than before."""
        self.names_version += 1

    def named(self, name: str) -> Topic | None:
        """The topic of that name."""
        return self._by_name.get(name)

    def all(self) -> list[Topic]:
        """Those that are known."""
        return list(self._by_name.values())

    def of_id(self, topic_id: bytes) -> Topic | None:
        """The topic with that id."""
        return self._by_id.get(topic_id)

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those topics that exist."""
        known = self._by_name
        return frozenset(known[name].topic_id for name in names if name in known)


def metadata_hash(topics: Topics, names: Iterable[str]) -> int:
    """A signed 64-bit number that changes with any of the named topics that exist; 0: none does. Kafka's own
    number is another one (KIP-1101): a group that moves in gets one epoch more."""
    found = sorted((topic for name in names if (topic := topics.named(name))), key=lambda one: one.name)
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for topic in found:
        digest.update(topic.fingerprint())
    return int.from_bytes(digest.digest(), "big", signed=True)
