"""What may be due in a shard of groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from ringleader.coordinator import deadlines

if TYPE_CHECKING:
    from ringleader.coordinator.groups.group import Group


class Kind(IntEnum):
    """What a deadline is for; decides who is told when it is due."""

    MEMBER = 0
    """Session of a member; for a new member, the wait for its first join phase."""
    PENDING = 1
    """Session of a member id that was given out with MEMBER_ID_REQUIRED and has not come back."""
    JOIN = 2
    """The join phase of a group."""
    SYNC = 3
    """The sync phase of a group."""
    CLEANUP = 4
    """The next look for expired offsets and empty groups."""
    PROOF = 5
    """The next proof that the shard is still owned."""
    JOURNAL = 6
    """A rebalance whose last followers do not come for their shares is told as it is."""


@dataclass(slots=True, eq=False, repr=False)
class Deadline(deadlines.Deadline):
    """See `coordinator.deadlines`."""

    group: Group | None
    kind: Kind
