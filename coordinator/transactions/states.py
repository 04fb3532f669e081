"""States of a transaction, and what is known of one. Source: KIP-98, KIP-890; Kafka's TransactionMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

Partition = tuple[str, int]
"""Topic and partition; for the offsets of a group, `OFFSETS_TOPIC` and the partition of the group."""

OFFSETS_TOPIC = "__consumer_offsets"

NO_EPOCH = -1
NO_ID = -1
MAX_EPOCH = 32_766
"""The last epoch that is given out; one more fences its owner, and a new producer id begins."""

V1, V2 = 0, 2
"""Kinds of transactions, numbered as in Kafka's records. The end of one of V2 raises the epoch (KIP-890)."""


class State(IntEnum):
    """Numbers as in Kafka's records."""

    EMPTY = 0
    """There is a producer id, but no transaction since."""
    ONGOING = 1
    PREPARE_COMMIT = 2
    """It is committed, yet not all partitions know."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


NEXT: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT}),
    State.ONGOING: frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.COMPLETE_COMMIT}),
    State.PREPARE_ABORT: frozenset({State.COMPLETE_ABORT}),
    State.COMPLETE_COMMIT: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT}),
    State.COMPLETE_ABORT: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT}),
}
"""Which state may follow. An abort of V2 needs no partitions."""

PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
COMPLETE = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}


@dataclass(frozen=True, slots=True)
class Transaction:
    """The stored state of a transactional id."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[Partition] = frozenset()
    started_ms: int = -1
    """Unix time when the first partition was added."""
    updated_ms: int = -1
    """Unix time of the last change."""
    aborted: bool = False
    """Whether a transaction of this epoch (after the end of one of V2: of the epoch that ended) was
    aborted."""
    version: int = V1
    """The kind that the client asked for last."""
    previous_id: int = NO_ID
    """The producer id before."""
    next_id: int = NO_ID
    """The producer id that the next transaction begins with, if the epochs run out with this one."""

    @property
    def ended(self) -> tuple[int, int]:
        """Producer id and epoch of the records of the transaction that is complete."""
        if self.version != V2:
            return self.producer_id, self.epoch
        return (self.producer_id, self.epoch - 1) if self.epoch else (self.previous_id, MAX_EPOCH)
