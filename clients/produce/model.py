"""Plain values of a producer: its settings, where a record was written, its counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ringleader.clients.checks import MAX_INT64, check_bounds, check_fields
from ringleader.clients.with_context import WithContext

Serializer = Callable[[Any], bytes] | WithContext
"""Makes bytes of a key or a value. Not asked where there is none: None stays."""
Partitioner = Callable[[str, bytes | None, int], int]
"""From topic, key and number of partitions: the partition."""
Acks = Literal["all", 1]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
PartitionerName = Literal["murmur2", "consistent_random"]


class RecordMetadata(NamedTuple):
    """The place of a record that was written."""

    topic: str
    partition: int
    offset: int
    """-1: the broker had the record already, and does not know where any more."""
    timestamp_ms: int
    """Unix time: the record's, or the broker's if the topic has `message.timestamp.type=LogAppendTime`."""


@dataclass(frozen=True, slots=True)
class ProducerMetrics:
    """Counters since the start. The Java producer's name, if there is one, in brackets."""

    client_id: str
    records: int
    """Confirmed by a broker [record-send-total]."""
    failed_records: int
    """Not written, or not known to be [record-error-total]."""
    bytes: int
    """Bytes of confirmed batches, compressed [byte-total]."""
    requests: int
    """Produce requests."""
    retries: int
    """Batches that were sent again [record-retry-total counts records]."""
    buffered_bytes: int
    """The bytes of all records that were accepted and are not confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer behaves, under the Java producer's names and with its defaults, but for `batch_size`.
    Raises ValueError for what cannot work."""

    acks: Acks = "all"
    """"all": every in-sync replica has to have a record; 1: the leader only, which needs
    enable_idempotence=False."""
    enable_idempotence: bool = True
    """Brokers discard what is sent a second time, and the order of a partition's records stays."""
    compression_type: CompressionType = "none"
    partitioner: PartitionerName | Partitioner = "murmur2"
    """For records that name no partition. "murmur2": a key's partition as in the Java producer;
    "consistent_random": as librdkafka's default. Records without a key go to the partitions in turn, 16 KB to
    each (KIP-794). Or a function."""
    linger_ms: int = 5
    """How long a batch that is not full waits for more records."""
    batch_size: int = 262_144
    """Bytes of a partition's batch, at most, unless one record is larger. With Java's 16,384 most of
    the time goes into requests. No record waits longer for it, and no memory is taken before."""
    buffer_memory: int = 32 * 1024 * 1024
    """The bytes of records that are accepted and not confirmed; `send` waits while there are as many."""
    max_request_size: int = 1_048_576
    max_in_flight_requests_per_connection: int = 5
    max_block_ms: int = 60_000
    """How long `send` waits for a topic, for room, and for serializers that wait."""
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    """A record that no broker has confirmed in this time, retries included, has failed."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    transactional_id: str | None = None
    """Makes the producer transactional: one id for each producer that may run at the same time."""
    transaction_timeout_ms: int = 60_000
    """The coordinator aborts a transaction that is open for longer."""
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None

    @property
    def with_context(self) -> bool:
        """Whether a serializer may wait, or not be available."""
        return any(isinstance(one, WithContext) for one in (self.key_serializer, self.value_serializer))

    def __post_init__(self) -> None:
        check_fields(self)
        check_bounds(self, "batch_size", "max_request_size", "request_timeout_ms", least=1)
        check_bounds(self, "delivery_timeout_ms", "transaction_timeout_ms", "max_block_ms", least=1)
        check_bounds(self, "buffer_memory", "metadata_max_age_ms", least=1, most=MAX_INT64)
        check_bounds(self, "linger_ms", "retry_backoff_ms", "retry_backoff_max_ms")
        check_bounds(self, "max_in_flight_requests_per_connection", least=1)
        if self.enable_idempotence and self.acks != "all":
            raise ValueError('enable_idempotence needs acks="all": give enable_idempotence=False with acks=1')
        if self.enable_idempotence and self.max_in_flight_requests_per_connection > 5:
            raise ValueError("enable_idempotence needs max_in_flight_requests_per_connection of at most 5")
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ValueError("transactional_id needs enable_idempotence")
        if self.transactional_id == "":
            raise ValueError("transactional_id is empty")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise ValueError(
                f"delivery_timeout_ms has to be at least linger_ms + request_timeout_ms "
                f"({self.linger_ms + self.request_timeout_ms}), not {self.delivery_timeout_ms}"
            )
