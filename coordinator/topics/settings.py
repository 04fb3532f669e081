"""Settings of the topic log: Kafka's broker names in snake case, then our own."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ringleader.protocol.wire import INT32_MAX, INT64_MAX


class TopicSettings(BaseModel):
    """The settings of topics; most can be set per topic. The descriptions are the
    documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    num_partitions: int = Field(
        1, ge=1, le=10_000, description="Number of partitions of a topic that is created without a number."
    )
    message_max_bytes: int = Field(
        1_048_588, ge=1_024, le=INT32_MAX, description="Largest record batch, as the producer sends it."
    )
    log_segment_bytes: int = Field(
        1_073_741_824, ge=16_384, le=INT32_MAX, description="Size at which a new file of a partition begins."
    )
    log_roll_ms: int = Field(
        604_800_000,
        ge=1,
        le=INT64_MAX,
        description="Age of the first record in a partition's file at which a new file begins.",
    )
    log_retention_ms: int = Field(
        604_800_000, ge=-1, le=INT64_MAX, description="How long records are kept. -1: forever."
    )
    log_retention_bytes: int = Field(
        -1,
        ge=-1,
        le=INT64_MAX,
        description="Size to which a partition is limited; whole files are deleted. -1: no limit.",
    )
    log_retention_check_interval_ms: int = Field(
        300_000,
        ge=1,
        le=INT64_MAX,
        description="How often old records are deleted. If the wall clock jumps and returns within this "
        "time, no record is deleted.",
    )
    producer_id_expiration_ms: int = Field(
        86_400_000,
        ge=1,
        le=INT32_MAX,
        description="A partition forgets an idempotent producer that has not written to it for this long.",
    )
    tail_cache_bytes: int = Field(
        67_108_864,
        ge=0,
        le=INT64_MAX,
        description="Memory for the newest records of all partitions, for consumers that read the end of "
        "a partition.",
    )
