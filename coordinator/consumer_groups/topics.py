"""The topics of the cluster, as groups of the consumer protocol see them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

_HASHED = struct.Struct(">16si")

REMEMBERED_MAX = 200_000
"""Names in the sets of which `Topics` remembers what it worked out, all together."""


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
    _fingerprints: dict[str, bytes] = field(default_factory=dict)
    """By name, those that were asked for."""
    _ids: dict[frozenset[str], frozenset[bytes]] = field(default_factory=dict)
    _hashes: dict[frozenset[str], int] = field(default_factory=dict)
    """By a group's or a member's topics, until any topic changes: thousands of members ask for the same."""
    _remembered: int = 0
    """Names in the keys of both, about."""

    def put(self, topic: Topic) -> None:
        """A topic was created or changed, or made again under another id."""
        before = self._by_name.get(topic.name)
        if before == topic:
            return
        self._changed(topic.name)
        if before is None:
            self.names_version += 1
        if before is not None and before.topic_id != topic.topic_id:
            self._by_id.pop(before.topic_id, None)
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic

    def remove(self, name: str) -> None:
        """A topic was deleted."""
        before = self._by_name.pop(name, None)
        if before is not None:
            self._changed(name)
            self._by_id.pop(before.topic_id, None)

    def _changed(self, name: str) -> None:
        self.version += 1
        self._fingerprints.pop(name, None)
        self._forget()

    def _forget(self) -> None:
        self._ids.clear()
        self._hashes.clear()
        self._remembered = 0

    def _remember(self, known: dict[frozenset[str], T], names: frozenset[str], found: T) -> None:
        if self._remembered > REMEMBERED_MAX:
            self._forget()
        self._remembered += 1 + len(names)
        known[names] = found

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

    def ids(self, names: frozenset[str]) -> frozenset[bytes]:
        """The ids of those topics that exist."""
        found = self._ids.get(names)
        if found is None:
            known = self._by_name
            found = frozenset(known[name].topic_id for name in names if name in known)
            self._remember(self._ids, names, found)
        return found

    def metadata_hash(self, names: frozenset[str]) -> int:
        """A signed 64-bit number that changes with any of the named topics that exist; 0: none does. Kafka's
        own number is another one (KIP-1101): a group that moves in gets one epoch more."""
        found = self._hashes.get(names)
        if found is None:
            digest, there = blake2b(digest_size=8), sorted(names & self._by_name.keys())
            for name in there:
                fingerprint = self._fingerprints.get(name)
                if fingerprint is None:
                    fingerprint = self._fingerprints[name] = self._by_name[name].fingerprint()
                digest.update(fingerprint)
            found = int.from_bytes(digest.digest(), "big", signed=True) if there else 0
            self._remember(self._hashes, names, found)
        return found
