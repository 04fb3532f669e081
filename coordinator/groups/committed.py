"""A committed offset, as the log has it."""

from __future__ import annotations

from typing import NamedTuple


class CommittedOffset(NamedTuple):
    """One committed position. Any offset is kept, negative ones too: KafkaJS's reset to earliest commits
    -2."""

    offset: int
    leader_epoch: int
    """-1: none."""
    metadata: str
    commit_ms: int
    """Unix time of the commit."""
    expire_ms: int
    """Unix time from which it is gone; -1: the group's retention rules decide."""
