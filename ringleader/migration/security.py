"""Users, ACLs and quotas: the entries of the daemon's file, as they are, into the topic of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleader.coordinator.security.acls import Authorizer
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.store import FILE, SECTIONS, FileStore, Section, SecurityStore

ENTRIES_PER_CHANGE = 500


@dataclass(frozen=True, slots=True)
class Kept:
    """The users, ACLs and quotas of the daemon; nothing if it never had any."""

    sections: Mapping[Section, Mapping[str, Any]] = field(repr=False)
    secret: bytes = field(repr=False)

    def counts(self) -> dict[str, int]:
        """How many there are of each section."""
        return {name: len(self.sections[name]) for name in SECTIONS}


async def kept(directory: Path) -> Kept:
    """Raises OSError: DamagedError for what cannot be read."""
    if not (directory / FILE).exists():
        return Kept({name: {} for name in SECTIONS}, b"")
    store = FileStore(directory / FILE)
    await Security(store, Authorizer()).start()
    return Kept({name: dict(store.entries(name)) for name in SECTIONS}, store.secret)


def others(ours: Kept, store: SecurityStore) -> list[str]:
    """Which entries the cluster has already, and with other contents."""
    return [
        f"{name}/{key}"
        for name in SECTIONS
        for key, value in sorted(ours.sections[name].items())
        if store.entries(name).get(key, value) != value
    ]


async def write(ours: Kept, store: SecurityStore) -> None:
    """Write the entries that the cluster does not have yet. Raises KafkaError; called again, it goes on."""
    for name in SECTIONS:
        there = store.entries(name)
        missing = [item for item in ours.sections[name].items() if item[0] not in there]
        for begin in range(0, len(missing), ENTRIES_PER_CHANGE):
            await store.change(name, dict(missing[begin : begin + ENTRIES_PER_CHANGE]))
