"""Memory that the groups of one process hold, counted as it changes (`group.metadata.max.bytes`).

A group counts what its members hold twice: as it is, and for their places in the group's record. A record
that is larger than that counts as it is (long assignments, and members that have gone since the last sync).
And a member counts at least `LEAST_BYTES`. So it costs nothing to come back with another small offer, nor to
store a small assignment, and who is in a group stays in it when all room is taken.

Committed offsets are not counted: see `offset.metadata.max.bytes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleader.coordinator.consumer_groups.memory import text_bytes

MEMBER_BYTES = 512
"""Size of a member without its texts and its metadata, about."""
LEAST_BYTES = 1_024


@dataclass(slots=True)
class MemoryTotal:
    """Bytes of all groups of the process: one for all shards."""

    counted: int = 0


@dataclass(slots=True)
class MemoryShare:
    """Bytes of the groups of one life of a shard."""

    total: MemoryTotal = field(default_factory=MemoryTotal)
    counted: int = 0

    def change(self, by: int) -> None:
        """A group holds more, or less."""
        self.counted += by
        self.total.counted += by

    def give_back(self) -> None:
        """The life is over: whatever it counts from now on, it counts for itself."""
        self.total.counted -= self.counted
        self.total = MemoryTotal()


def member_bytes(
    member_id: str, group_instance_id: str | None, client_id: str, protocols: tuple[tuple[str, bytes], ...]
) -> int:
    """Bytes that a member with this offer counts; one that has not joined yet, without an offer."""
    size = text_bytes(member_id) + text_bytes(group_instance_id) + text_bytes(client_id)
    for name, metadata in protocols:
        size += text_bytes(name) + len(metadata)
    return max(LEAST_BYTES, MEMBER_BYTES + size)


def group_bytes(members: int, record: int) -> int:
    """Bytes that a group counts: `members` is the sum of its `member_bytes`, `record` its record's size."""
    return members + max(members, record)
