"""Plain values of `GroupConsumer`: its settings, a batch of records, its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ringleader.clients.checks import check_fields, check_least
from ringleader.clients.fetch.fetcher import FetchSettings
from ringleader.clients.group.lags import OffsetReset
from ringleader.clients.metrics import MemberMetrics
from ringleader.clients.model import TopicPartition
from ringleader.protocol.records import Record

Isolation = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one partition in the order of their offsets, at least one."""

    topic: str
    partition: int
    records: list[Record]
    next_offset: int
    """What to commit when the batch is processed. Not always the last offset plus one: behind the batch
    there may be transaction markers, aborted records, or holes that compaction left."""
    high_watermark: int
    """The end of the log when the records were fetched."""
    lag: int
    """How many offsets were left behind this batch then; for readers of committed records those before the
    first open transaction."""

    @property
    def place(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def record(self) -> Record:
        """The first record: the only one, if it came from `getone`."""
        return self.records[0]

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, slots=True)
class FetchMetrics:
    """Counters since the start. The Java consumer's name, if there is one, in brackets."""

    records: int
    """Handed out [records-consumed-total]."""
    batches: int
    """Handed out."""
    fetches: int
    """Fetch requests [fetch-total]."""
    failed_fetches: int
    """Fetch requests, and partitions in their answers, that failed and are tried again."""
    fetched_bytes: int
    """Bytes of records, as compressed as they came [bytes-consumed-total]."""
    buffered_bytes: int
    """Fetched and not yet decoded."""
    lags: Mapping[TopicPartition, int]
    """Offsets between position and end, as of each partition's last answer [records-lag]."""


@dataclass(frozen=True, slots=True)
class ConsumerMetrics(FetchMetrics):
    """The same of a consumer in a group."""

    member: MemberMetrics
    """Those of the membership."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How a consumer behaves, under the Java consumer's names. Raises ValueError for what cannot work."""

    auto_offset_reset: OffsetReset = "latest"
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    isolation_level: Isolation = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    buffer_max_bytes: int = 64 * 1024 * 1024
    """What is fetched ahead, of all partitions together; soft, for a large batch still comes whole."""
    check_crcs: bool = True
    client_rack: str | None = None
    metadata_max_age_ms: int = 30_000
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        check_fields(self)
        check_least(self, "auto_commit_interval_ms", "max_poll_records", "max_poll_interval_ms", least=1)
        check_least(self, "fetch_max_bytes", "max_partition_fetch_bytes", "buffer_max_bytes", least=1)
        check_least(self, "metadata_max_age_ms", "request_timeout_ms", least=1)
        check_least(self, "fetch_min_bytes", "fetch_max_wait_ms")

    @property
    def committed_only(self) -> bool:
        """Whether aborted transactions are left out."""
        return self.isolation_level == "read_committed"

    def fetching(self) -> FetchSettings:
        """The fetcher's part."""
        return FetchSettings(
            min_bytes=self.fetch_min_bytes,
            max_wait_ms=self.fetch_max_wait_ms,
            max_bytes=self.fetch_max_bytes,
            max_partition_bytes=self.max_partition_fetch_bytes,
            buffer_max_bytes=self.buffer_max_bytes,
            committed_only=self.committed_only,
            client_rack=self.client_rack or "",
            request_timeout_ms=self.request_timeout_ms,
        )
