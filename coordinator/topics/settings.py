"""Settings of the topic log: Kafka's broker names in snake case, then our own."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ringleader.protocol.wire import INT32_MAX, INT64_MAX


class TopicSettings(BaseModel):
    """What an operator may change about topics; most can be set per topic. The descriptions are the
    documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    num_partitions: int = Field(
        1, ge=1, le=10_000, description="Partitions of a topic whose creator does not say."
    )
    message_max_bytes: int = Field(
        1_048_588, ge=1_024, le=INT32_MAX, description="Largest record batch, as it is sent."
    )
    log_segment_bytes: int = Field(
        1_073_741_824, ge=16_384, le=INT32_MAX, description="A partition's file is closed at this size."
    )
    log_roll_ms: int = Field(
        604_800_000,
        ge=1,
        le=INT64_MAX,
        description="A partition's file is closed at this age of its first record.",
    )
    log_retention_ms: int = Field(
        604_800_000, ge=-1, le=INT64_MAX, description="How long records are kept; -1 keeps them for ever."
    )
    log_retention_bytes: int = Field(
        -1,
        ge=-1,
        le=INT64_MAX,
        description="How much of a partition is kept (whole files only); -1 keeps all of it.",
    )
    log_retention_check_interval_ms: int = Field(
        300_000,
        ge=1,
        le=INT64_MAX,
        description="How often records that may go are looked for. A wall clock that jumps, and back again "
        "within this time, deletes none.",
    )
    producer_id_expiration_ms: int = Field(
        86_400_000,
        ge=1,
        le=INT32_MAX,
        description="An idempotent producer that has not produced to a partition for this long is forgotten "
        "there.",
    )
    tail_cache_bytes: int = Field(
        67_108_864,
        ge=0,
        le=INT64_MAX,
        description="The newest records that are kept in memory for readers at the end, over all partitions.",
    )
