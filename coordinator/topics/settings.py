"""What the topic log is told. Names and defaults are Kafka's broker settings, in snake_case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Broker-wide defaults of the topic log; most can be set per topic (see `configs`)."""

    num_partitions: int = 1
    """Partitions of a topic whose creator does not say."""
    message_max_bytes: int = 1_048_588
    """Largest record batch as it is sent, per topic `max.message.bytes`."""
    log_segment_bytes: int = 1_073_741_824
    """A partition's file is closed at this size, per topic `segment.bytes`."""
    log_roll_ms: int = 604_800_000
    """A partition's file is closed at this age of its first record, per topic `segment.ms`."""
    log_retention_ms: int = 604_800_000
    """How long records are kept, -1 for ever, per topic `retention.ms`."""
    log_retention_bytes: int = -1
    """How much of a partition is kept, in whole files, -1 all of it, per topic `retention.bytes`."""
    log_retention_check_interval_ms: int = 300_000
    """How often records that may go are looked for."""
    producer_id_expiration_ms: int = 86_400_000
    """An idempotent producer that has not produced to a partition for this long is forgotten there."""
    storage_sync: str = "full"
    """"full": files are synced when they are closed for good and at a clean stop; "off": never. Records are
    not synced one by one in either case."""
    tail_cache_bytes: int = 64 * 1024 * 1024
    """The newest records of all partitions together that are kept in memory for readers at the end."""
