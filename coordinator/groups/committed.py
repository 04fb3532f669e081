"""Offsets as the log has them: committed, and not committed yet."""

from __future__ import annotations

from typing import NamedTuple

from ringleader.protocol.schema import ZERO_UUID


class CommittedOffset(NamedTuple):
    """One committed position, read from its record. Any offset is kept, negative ones too: KafkaJS's reset to
    earliest commits -2."""

    offset: int
    leader_epoch: int
    """-1: none."""
    metadata: str
    commit_ms: int
    """Unix time of the commit."""
    expire_ms: int
    """Unix time from which it is gone; -1: the group's retention rules decide."""
    topic_id: bytes = ZERO_UUID
    """Of the topic that it was committed for, which may have been deleted since; zero: not known."""


class Uncommitted:
    """An offset of an open transaction. It counts when the transaction commits."""

    __slots__ = ("order", "superseded", "value")

    def __init__(self, value: bytes, order: int) -> None:
        self.value = value
        """As the record that commits it will have it."""
        self.order = order
        """When it took effect, among all records of the shard."""
        self.superseded = False
        """Something later is committed already: the end of the transaction changes nothing here."""
