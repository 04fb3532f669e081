"""The executor side of the sink: writes a task's rows, over connections that outlive the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.producer import Producer, ProduceSettings
from ringleader.protocol.compression import Compression
from ringleader.spark_bridge.network.clusters import Clusters
from ringleader.spark_bridge.sink.rows import by_topic

if TYPE_CHECKING:
    from ringleader.spark_bridge.options.sink import SinkOptions


@dataclass(frozen=True, kw_only=True)
class SinkSettings(ProduceSettings):
    """The settings of a task that writes."""

    endpoint: Endpoint
    topic: str | None = None
    prefix: str = "kafka."

    @classmethod
    def of(cls, options: SinkOptions) -> SinkSettings:
        """The part of the options that executors need."""
        return cls(
            endpoint=options.endpoint,
            topic=options.topic,
            acks=-1 if options.acks == "all" else 1,
            idempotent=options.idempotent,
            codec=Compression[options.compression_type.upper()],
            batch_bytes=options.batch_size_bytes,
            max_request_bytes=options.max_request_bytes,
            buffer_bytes=options.buffer_bytes,
            max_in_flight=options.max_in_flight,
            request_timeout_ms=options.request_timeout_ms,
            delivery_timeout_s=options.delivery_timeout_ms / 1000,
            max_block_s=options.max_block_ms / 1000,
            retry_backoff_s=options.retry_backoff_ms / 1000,
        )


_clusters = Clusters()


def close_clusters() -> None:
    """Close this process's connections of sinks."""
    _clusters.close()


class SinkProducer(Producer):
    """Writes the rows of a task until ``flush``; connections that owe no answer stay for the next task."""

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(_clusters.get(settings.endpoint), settings)
        self._topic = settings.topic

    def write_rows(self, rows: ArrowRows) -> None:
        """Take rows, each for the topic of the options or its own. Raises ProduceError."""
        for topic, some in by_topic(rows, self._topic):
            self.write(topic, some)
