"""Settings and limits of the transaction coordinator: Kafka's broker names in snake case, then our own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """What an operator may change about transactions. Times in milliseconds."""

    transaction_max_timeout_ms: int = 900_000
    """InitProducerId with a longer transaction timeout is refused with INVALID_TRANSACTION_TIMEOUT."""
    transactional_id_expiration_ms: int = 604_800_000
    """A transactional id without an open transaction is forgotten when nothing was done with it this long."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    """How often such ids are looked for."""

    # --- our own limits; Kafka has none of them ---

    transaction_max_ids: int = 100_000
    """Transactional ids. InitProducerId that would make one more: POLICY_VIOLATION."""
    transaction_max_partitions: int = 100_000
    """Partitions of one transaction, groups included. Above it: POLICY_VIOLATION."""
    transactional_id_max_bytes: int = 4_096
    """Length of a transactional id in UTF-8. InitProducerId above it: INVALID_REQUEST."""
    transaction_retry_ms: int = 1_000
    """What could not be written (a marker, the end of a transaction) is tried again after this time."""
