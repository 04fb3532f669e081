"""The picture that the audience sees, as data: built from the members' files and the daemon's journal and
answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Tail:
    """The lines of a JSON-lines file that were added since the last look. Other lines are passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Whole lines only: a line that is still being written comes at the next look."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                if line.startswith(b"{"):
                    yield json.loads(line)


@dataclass
class Generation:
    """One generation of a group: why it came to be, and who owned what in it, by client id."""

    group: str
    number: int
    at_s: float
    cause: str
    client: str
    """The client that caused it, its member id until that is known; empty when none did."""
    took_ms: int = 0
    owners: dict[str, list[int]] | None = None
    """None while it is not known: the next rebalance may begin before anybody asks."""

    @classmethod
    def from_entry(cls, entry: dict[str, Any], at_s: float) -> Generation:
        """From the daemon's journal entry."""
        return cls(
            group=entry["group_id"],
            number=entry["generation"],
            at_s=at_s,
            cause=str(entry["cause"]),
            client=entry.get("cause_member", ""),
            took_ms=int(entry.get("duration_ms", 0)),
        )

    @property
    def why(self) -> str:
        """The cause and who caused it."""
        return f"{self.cause}: {self.client}" if self.client else self.cause


@dataclass
class GroupNow:
    """A group as the daemon described it last."""

    known: bool = False
    """Whether the daemon has been asked at all, and every partition's end is known."""
    state: str = "-"
    owners: dict[str, list[int]] = field(default_factory=dict)
    lag: dict[int, int] = field(default_factory=dict)

    @property
    def total_lag(self) -> int:
        """Records that are produced and not committed, over all partitions."""
        return sum(self.lag.values())

    def lag_of(self, client: str) -> int:
        """Records not committed in the partitions that this client owns."""
        return sum(self.lag.get(partition, 0) for partition in self.owners.get(client, ()))


@dataclass
class Picture:
    """Everything that is on the screen."""

    total: int
    elapsed_s: float = 0.0
    phase: str = "starting"
    produced: int = 0
    producer_done: bool = False
    processed: dict[str, int] = field(default_factory=dict)
    alone: int = 0
    generations: list[Generation] = field(default_factory=list)
    groups: dict[str, GroupNow] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)
    """Member id -> client id."""

    def know(self, clients: dict[str, str]) -> None:
        """These member ids are of these clients: so are they in generations."""
        self.clients |= clients
        for generation in self.generations:
            generation.client = self.clients.get(generation.client, generation.client)

    def of_group(self, group: str) -> list[Generation]:
        """The generations of one group, oldest first."""
        return [generation for generation in self.generations if generation.group == group]

    def generation_because(self, group: str, cause: str, client: str) -> Generation | None:
        """The first generation that began for that cause on account of that client."""
        for found in self.of_group(group):
            if (found.cause, found.client) == (cause, client):
                return found
        return None
