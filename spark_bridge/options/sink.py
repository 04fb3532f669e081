"""The options of the sink: ``df.write`` and ``df.writeStream`` with format ``ringleader``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from ringleader.clients.produce.producer import ProduceSettings
from ringleader.spark_bridge.options.build import build
from ringleader.spark_bridge.options.common import Connecting
from ringleader.spark_bridge.options.kafka import PRODUCER
from ringleader.spark_bridge.options.values import Acks, Compression, Millis, Topic

IDEMPOTENT_IN_FLIGHT = 5
"""The number of batches of a producer in a partition that a broker recognizes, the newest ones."""

_SOURCE = "belongs to a source; a sink gets its topic from the option 'topic' or a column 'topic'."
REFUSED = {
    "subscribe": f"'subscribe' {_SOURCE}",
    "subscribepattern": f"'subscribePattern' {_SOURCE}",
    "assign": f"'assign' {_SOURCE}",
    "path": "a topic is named by the option 'topic', not by a path in save() or start().",
    "kafka.group.id": "'kafka.group.id' belongs to a source: a sink is in no group.",
    "ringleader.bootstrap.servers": "'ringleader.bootstrap.servers' belongs to a source: a sink is in no "
    "group, and writes to 'kafka.bootstrap.servers'.",
    "kafka.key.serializer": "'kafka.key.serializer' does not apply: keys are written as they are, binary or "
    "string.",
    "kafka.value.serializer": "'kafka.value.serializer' does not apply: values are written as they are, "
    "binary or string; use to_json or to_avro in the query.",
    "kafka.partitioner.class": "'kafka.partitioner.class' does not apply: rows say their partition in the "
    "column 'partition', or go where Kafka's default partitioner puts them.",
    "kafka.interceptor.classes": "'kafka.interceptor.classes' does not apply: there is no Java client here.",
    "kafka.transactional.id": "'kafka.transactional.id' does not apply: Spark gives a sink no point where a "
    "transaction of all tasks could commit, so the sink writes at least once.",
}
# Spark itself puts these among a sink's options; and a column `headers` is written in any case.
_IGNORED = ("checkpointlocation", "queryname", "includeheaders")


class SinkOptions(Connecting):
    """Options of ``df.write.format("ringleader")`` and ``df.writeStream.format("ringleader")``."""

    topic: Topic | None = Field(
        None,
        alias="topic",
        description="Topic that all rows go to. Beats a column `topic`; needed where there is none.",
    )
    acks: Acks = Field(
        "all",
        alias="kafka.acks",
        description="all: written when every replica in sync has it. 1: when the leader has it (then a "
        "broker's crash may lose rows, and kafka.enable.idempotence is off). 0 is taken as 1: a task would "
        "not know otherwise whether its rows have come.",
    )
    enable_idempotence: bool | None = Field(
        None,
        alias="kafka.enable.idempotence",
        json_schema_extra={"shown": "`true` with acks=all"},
        description="Whether brokers drop what the sink sends again after a broken connection. Default: "
        "true with kafka.acks=all. A task that Spark runs again has its rows twice either way.",
    )
    compression_type: Compression = Field(
        "none", alias="kafka.compression.type", description="none, gzip, snappy, lz4 or zstd."
    )
    batch_size_bytes: Annotated[int, Field(gt=0, le=64 * 1024 * 1024)] = Field(
        ProduceSettings.batch_bytes,
        alias="kafka.batch.size",
        description="Bytes of a batch before compression; a partition's batch goes when it is full, or the "
        "task's rows have ended.",
    )
    linger_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0,
        alias="kafka.linger.ms",
        description="Taken, and without effect: a task is done only when all its rows are, so no batch "
        "waits for a clock.",
    )
    max_request_bytes: Annotated[int, Field(gt=0, le=256 * 1024 * 1024)] = Field(
        ProduceSettings.max_request_bytes,
        alias="kafka.max.request.size",
        description="Bytes of one request, and so of one row, uncompressed. The topic's `max.message.bytes` "
        "has to allow for it.",
    )
    buffer_bytes: Annotated[int, Field(gt=0, le=2**40)] = Field(
        ProduceSettings.buffer_bytes,
        alias="kafka.buffer.memory",
        description="Bytes of batches not yet full that a task holds; beyond it they go as they are.",
    )
    max_in_flight: Annotated[int, Field(gt=0, le=100)] = Field(
        IDEMPOTENT_IN_FLIGHT,
        alias="kafka.max.in.flight.requests.per.connection",
        description="Requests sent ahead of their answers. A partition's rows keep their order in any case.",
    )
    delivery_timeout_ms: Millis = Field(
        int(ProduceSettings.delivery_timeout_s * 1000),
        alias="kafka.delivery.timeout.ms",
        description="How long a batch is tried, through reconnects and moved leaders, before its task fails.",
    )
    max_block_ms: Millis = Field(
        int(ProduceSettings.max_block_s * 1000),
        alias="kafka.max.block.ms",
        description="How long a task waits for a topic to be there. Brokers that create topics by themselves "
        "are asked to; the others never will.",
    )
    retry_backoff_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        int(ProduceSettings.retry_backoff_s * 1000),
        alias="kafka.retry.backoff.ms",
        description="The pause before a batch is tried again.",
    )

    @property
    def idempotent(self) -> bool:
        """Whether batches carry a producer id and sequences."""
        return self.acks == "all" if self.enable_idempotence is None else self.enable_idempotence

    @model_validator(mode="after")
    def _fit(self) -> SinkOptions:
        if self.enable_idempotence and self.acks != "all":
            raise ValueError("kafka.enable.idempotence=true needs kafka.acks=all")
        if self.idempotent and self.max_in_flight > IDEMPOTENT_IN_FLIGHT:
            raise ValueError(
                f"kafka.max.in.flight.requests.per.connection ({self.max_in_flight}) must not exceed "
                f"{IDEMPOTENT_IN_FLIGHT} with kafka.enable.idempotence"
            )
        return self


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Check the options of a sink.

    Raises OptionsError with one sentence for each reason.
    """
    return build(SinkOptions, options, REFUSED, _IGNORED, PRODUCER)
