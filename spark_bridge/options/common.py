"""Options that streams and batch reads share, and what sources and sinks share: the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.options.build import SECURITY_FIELD
from ringleader.spark_bridge.options.cores import spark_cores
from ringleader.spark_bridge.options.values import (
    Columns,
    FetchBytes,
    Millis,
    Partitions,
    Pattern,
    Properties,
    Rows,
    SecurityProtocol,
    Servers,
    Strategy,
    Timestamp,
    Timestamps,
    Topics,
)
from ringleader.spark_bridge.rows import COLUMNS
from ringleader.spark_bridge.tasks import DEFAULT_TIMEOUT_S, TaskSettings
from ringleader.spark_bridge.values import Subscription


class Connecting(BaseModel):
    """The common options of source and sink: how to reach the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    bootstrap_servers: Servers = Field(
        alias="kafka.bootstrap.servers",
        description="Brokers to ask first: host:port, comma separated.",
    )
    client_id: str = Field(
        "ringleader-spark",
        alias="kafka.client.id",
        max_length=200,
        description="Client id in requests; the coordinator builds the member id from it.",
    )
    request_timeout_ms: Millis = Field(
        Endpoint.request_timeout_ms,
        alias="kafka.request.timeout.ms",
        description="How long one request may take.",
    )
    security_protocol: SecurityProtocol = Field(
        "PLAINTEXT",
        alias="kafka.security.protocol",
        description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    security_properties: Properties = Field(
        (),
        alias=SECURITY_FIELD,
        repr=False,
        description="Kafka's settings for TLS and SASL: `sasl.mechanism` (PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512, OAUTHBEARER), `sasl.jaas.config` or `sasl.username` and `sasl.password`, "
        "`ssl.truststore.*` and `ssl.keystore.*` (PEM or PKCS12), or `ssl.ca.location`, "
        "`ssl.certificate.location`, `ssl.key.location`. Files must be readable where the query's "
        "driver and its tasks run.",
    )

    @property
    def bootstrap(self) -> str:
        """The servers as host:port, comma separated."""
        return _listed(self.bootstrap_servers)

    @property
    def security(self) -> tuple[tuple[str, str], ...]:
        """Kafka's security properties as given, sorted, without the prefix; () for PLAINTEXT. Secrets!"""
        return self._security(self.security_protocol)

    def _security(self, protocol: str) -> tuple[tuple[str, str], ...]:
        return () if protocol == "PLAINTEXT" else (("security.protocol", protocol), *self.security_properties)

    @property
    def endpoint(self) -> Endpoint:
        """The security settings that connections are made from."""
        return Endpoint(self.bootstrap_servers, self.client_id, self.request_timeout_ms, self.security)

    @model_validator(mode="after")
    def _secure(self) -> Connecting:
        given = dict(self.security_properties)
        if "security_protocol" in self.model_fields_set:
            given["security.protocol"] = self.security_protocol
        if given:
            from ringleader.clients.connection.security import security_from_properties

            security_from_properties(given)
        return self


class Reading(Connecting):
    coordinator_servers: Servers | None = Field(
        None,
        alias="ringleader.bootstrap.servers",
        description="Where groups are coordinated, if not at `kafka.bootstrap.servers`: membership and "
        "commits go there, records come straight from the brokers. host:port, comma separated.",
    )
    coordinator_security_protocol: SecurityProtocol | None = Field(
        None,
        alias="ringleader.security.protocol",
        description="In place of `kafka.security.protocol` for `ringleader.bootstrap.servers`; the other "
        "settings of TLS and SASL are the same for both.",
    )
    subscribe: Topics = Field(
        (),
        alias="subscribe",
        json_schema_extra={"shown": "this or a pattern"},
        description="Topics to read, comma separated. This or `subscribePattern`.",
    )
    subscribe_pattern: Pattern | None = Field(
        None,
        alias="subscribePattern",
        description="Reads every topic whose whole name this regular expression matches, as Python's "
        "`re.fullmatch` does (Java's possessive quantifiers and `\\p{..}` classes are not known to it). "
        "Internal topics are left out.",
    )
    assign: Partitions = Field(
        (),
        alias="assign",
        description='Partitions to read, as JSON `{"topicA":[0,1]}`; instead of subscribe or '
        "subscribePattern. A stream joins no group then: it commits for `kafka.group.id` while nobody is in "
        "that group, and fails with a sentence when somebody is.",
    )
    fail_on_data_loss: bool = Field(
        TaskSettings.fail_on_data_loss,
        alias="failOnDataLoss",
        description="Whether the query fails when offsets it should read are gone; otherwise it warns and "
        "goes on with what is there. A revoked partition is no loss.",
    )
    include_headers: bool = Field(
        TaskSettings.include_headers,
        alias="includeHeaders",
        description="Whether rows have a column `headers`, null when a record has none.",
    )
    columns: Columns | None = Field(
        None,
        alias="columns",
        description="Which columns rows have, comma separated; by default all, and `headers` with "
        "`includeHeaders`. Spark does not let a source in Python know what a query uses, so even `count()` "
        "has every value sent to it: leave out what is not needed, `columns=offset` say.",
    )
    min_partitions: Rows | None = Field(
        None,
        alias="minPartitions",
        description="Cut a batch into about this number of tasks, however small. Without it, tasks follow "
        "`parallelism`.",
    )
    max_records_per_partition: Rows | None = Field(
        None,
        alias="maxRecordsPerPartition",
        description="Rows of one task at most; more tasks are made, whatever else says.",
    )
    parallelism: Rows | None = Field(
        default_factory=spark_cores,
        alias="parallelism",
        json_schema_extra={"shown": "what Spark was given"},
        description="How many tasks a batch is cut into at most when minPartitions is not set: small "
        "partitions share a task, big ones are cut. Default: in local mode the cores that Spark was given "
        "(`local[N]`; for `local[*]` those that affinity and control group allow), on a cluster as many as "
        "the batch has partitions. Where the mode is not known (not on Linux), as on a cluster.",
    )
    starting_timestamp: Timestamp | None = Field(
        None,
        alias="startingTimestamp",
        description="As `startingOffsetsByTimestamp`, one time for all partitions. Beats both others.",
    )
    starting_offsets_by_timestamp: Timestamps | None = Field(
        None,
        alias="startingOffsetsByTimestamp",
        description='The first record of this time or later, in ms: JSON `{"topicA":{"0":1700000000000}}` '
        "that names every partition. Beats `startingOffsets`.",
    )
    starting_strategy: Strategy = Field(
        "error",
        alias="startingOffsetsByTimestampStrategy",
        description="When a partition has no record that late: error, or latest (its end).",
    )
    poll_timeout_ms: Millis = Field(
        TaskSettings.poll_timeout_ms,
        alias="kafkaConsumer.pollTimeoutMs",
        description="How long a task waits for the next records of its range, through reconnects and "
        "moved leaders.",
    )
    fetch_offset_retries: int = Field(
        3,
        ge=0,
        le=1_000,
        alias="fetchOffset.numRetries",
        description="How often a look-up of offsets is tried again that could not be had within "
        "`kafka.default.api.timeout.ms`.",
    )
    fetch_offset_pause_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        10, alias="fetchOffset.retryIntervalMs", description="The pause before such a try."
    )
    api_timeout_ms: Millis = Field(
        int(DEFAULT_TIMEOUT_S * 1000),
        alias="kafka.default.api.timeout.ms",
        description="How long a look-up of topics or offsets goes on through reconnects and moved leaders.",
    )
    fetch_max_bytes: FetchBytes = Field(
        TaskSettings.fetch_max_bytes,
        alias="kafka.fetch.max.bytes",
        description="Bytes of one answer to a task, about: a larger batch of records still comes whole.",
    )
    partition_max_bytes: FetchBytes = Field(
        TaskSettings.partition_max_bytes,
        alias="kafka.max.partition.fetch.bytes",
        description="The same, of one partition.",
    )
    fetch_max_wait_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        TaskSettings.fetch_max_wait_ms,
        alias="kafka.fetch.max.wait.ms",
        description="How long a broker waits with its answer when it has no record of the range at hand.",
    )
    isolation_level: Literal["read_uncommitted", "read_committed"] = Field(
        "read_uncommitted",
        alias="kafka.isolation.level",
        description="read_committed leaves out records of open and aborted transactions.",
    )

    @property
    def coordinator_bootstrap(self) -> str | None:
        """Where groups are coordinated, as host:port, comma separated; None: by the brokers."""
        return None if self.coordinator_servers is None else _listed(self.coordinator_servers)

    @property
    def coordinators(self) -> Endpoint:
        """The cluster to ask about groups."""
        if self.coordinator_servers is None:
            return self.endpoint
        security = self.security
        if self.coordinator_security_protocol is not None:
            security = self._security(self.coordinator_security_protocol)
        return Endpoint(self.coordinator_servers, self.client_id, self.request_timeout_ms, security)

    @model_validator(mode="after")
    def _coordinated(self) -> Reading:
        if self.coordinator_security_protocol is None:
            return self
        if self.coordinator_servers is None:
            raise ValueError("ringleader.security.protocol needs ringleader.bootstrap.servers")
        from ringleader.clients.connection.security import security_from_properties

        try:
            security_from_properties(dict(self.coordinators.security))
        except ValueError as error:
            raise ValueError(f"ringleader.security.protocol: {error}") from None
        return self

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The columns of a row, in their order."""
        if self.columns is not None:
            return self.columns
        return COLUMNS if self.include_headers else COLUMNS[:-1]

    @property
    def task(self) -> TaskSettings:
        """The part of the options that executors need."""
        return TaskSettings(
            self.endpoint,
            self.poll_timeout_ms,
            self.isolation_level == "read_committed",
            "headers" in self.row_columns,
            self.fail_on_data_loss,
            self.fetch_max_bytes,
            self.partition_max_bytes,
            self.fetch_max_wait_ms,
            None if self.columns is None else self.row_columns,
        )

    @model_validator(mode="after")
    def _headers_wanted(self) -> Reading:
        if self.include_headers and self.columns is not None and "headers" not in self.columns:
            raise ValueError("includeHeaders=true needs headers among columns")
        return self

    @property
    def subscription(self) -> Subscription:
        """Topics by name, or by pattern, or partitions."""
        topics = self.subscribe or tuple(sorted({topic for topic, _ in self.assign}))
        return Subscription(topics, self.subscribe_pattern, self.assign)

    @property
    def timed_start(self) -> bool:
        """Whether timestamps say where to start."""
        return self.starting_timestamp is not None or self.starting_offsets_by_timestamp is not None

    def check_start(self, wanted: tuple[str, ...]) -> None:
        """``wanted``: the topics known so far; () when a pattern says."""
        if wanted:
            check_topics(self.starting_offsets_by_timestamp, wanted, "startingOffsetsByTimestamp")


def _listed(servers: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in servers)


def check_topics(
    numbers: Mapping[TopicPartition, int] | str | None, topics: tuple[str, ...], name: str
) -> None:
    """JSON has to name the topics of the subscription, all of them and no others. Raises ValueError."""
    if not isinstance(numbers, Mapping):
        return
    if strange := sorted({topic for topic, _ in numbers} - set(topics)):
        raise ValueError(f"{name} names {', '.join(strange)}, which the subscription does not")
    if missing := sorted(set(topics) - {topic for topic, _ in numbers}):
        raise ValueError(
            f"{name} must name every partition of the subscription; {', '.join(missing)} is missing"
        )


def check_one(given: Mapping[str, bool]) -> None:
    named = [name for name, there in given.items() if there]
    if not named:
        raise ValueError(f"One of the options {' and '.join(map(repr, given))} is required")
    if len(named) > 1:
        raise ValueError(f"Only one of {', '.join(map(repr, named))} can say what to read")
