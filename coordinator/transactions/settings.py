"""Settings and limits of the transaction coordinator: Kafka's broker names in snake case, then our own."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ringleader.protocol.wire import INT32_MAX, INT64_MAX


class TransactionSettings(BaseModel):
    """The settings of transactions. Those that are `exclude`d only tests change. The
    descriptions are the documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    transaction_max_timeout_ms: int = Field(
        900_000, ge=1, le=INT32_MAX, description="Longest transaction timeout that a producer may request."
    )
    transactional_id_expiration_ms: int = Field(
        604_800_000,
        ge=1,
        le=INT64_MAX,
        description="A transactional id without an open transaction is removed after it was unused for "
        "this long.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = Field(
        3_600_000, ge=1, le=INT64_MAX, description="How often such transactional ids are removed."
    )

    # --- our own limits; Kafka has none of them ---

    transaction_max_ids: int = Field(
        100_000, ge=1, le=INT32_MAX, description="Largest number of transactional ids."
    )
    transaction_max_partitions: int = Field(
        100_000, ge=1, le=INT32_MAX, description="Largest number of partitions and groups in one transaction."
    )
    transactional_id_max_bytes: int = Field(4_096, exclude=True)
    """Length of a transactional id in UTF-8. InitProducerId above it: INVALID_REQUEST."""
    transaction_retry_ms: int = Field(1_000, exclude=True)
    """A write that failed (a marker, the end of a transaction) is tried again after this time."""
