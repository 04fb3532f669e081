"""Writes docs/spark-options.md: the options of Spark's Kafka connector, and what becomes of them here.

Whether an option is taken, passed over or refused is asked of the code itself; so is why it is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ringleader.spark_bridge.options import (
    BatchOptions,
    OptionsError,
    StreamOptions,
    batch_options,
    stream_options,
)
from ringleader.spark_bridge.options.document import cell, default
from ringleader.spark_bridge.options.sink import SinkOptions, sink_options

PAGE = Path(__file__).parents[1] / "docs" / "spark-options.md"

_TIMES = '{"t":{"0":1700000000000}}'
_SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@dataclass(frozen=True)
class Option:
    """An option of the connector: its default there, a value to try, what differs here and why.

    `other`: a value that the connector takes, to see what is said of it here.
    """

    name: str
    theirs: str
    value: str
    why: str = ""
    other: str = ""


@dataclass(frozen=True)
class Kind:
    """A way to use the format: its checker, and the least it needs."""

    model: type[BaseModel]
    check: Any
    least: dict[str, str]

    def field(self, name: str) -> FieldInfo | None:
        """The model's field of an option."""
        return next((one for one in self.model.model_fields.values() if one.alias == name), None)

    def tried(self, option: Option) -> tuple[str, str]:
        """Its cell in the table: default, `passed over` or `refused`; and the sentence of the refusal."""
        needs = _SUBSCRIPTIONS - {option.name} if option.name in _SUBSCRIPTIONS else set()
        given = {name: value for name, value in self.least.items() if name not in needs}
        try:
            self.check(given | {option.name: option.value})
        except OptionsError as error:
            return "refused", str(error)
        field = self.field(option.name)
        return ("passed over" if field is None else default(field)), ""


_SUBSCRIPTIONS = {"subscribe", "subscribePattern", "assign"}
STREAM = Kind(StreamOptions, stream_options, _SERVERS | {"kafka.group.id": "g", "subscribe": "t"})
BATCH = Kind(BatchOptions, batch_options, _SERVERS | {"subscribe": "t"})
SINK = Kind(SinkOptions, sink_options, _SERVERS)

SOURCE_OPTIONS = (
    Option("kafka.bootstrap.servers", "required", "127.0.0.1:9092"),
    Option("subscribe", "one of three", "t"),
    Option(
        "subscribePattern",
        "one of three",
        "t.*",
        "A regular expression of Python, not of Java; it has to match the whole name there and here.",
    ),
    Option(
        "assign",
        "one of three",
        '{"t":[0]}',
        "A stream joins no group with it, as there; it commits for `kafka.group.id` while nobody is in that "
        "group.",
    ),
    Option(
        "startingOffsets",
        "`latest`, batch `earliest`",
        "earliest",
        "There it counts for a query without checkpoint. Here for a partition without an offset of the "
        "group, which always wins. A batch read also takes `committed`: the group's offsets.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        "none",
        _TIMES,
        "In a stream as `startingOffsets`: where the group has none.",
    ),
    Option(
        "startingTimestamp",
        "none",
        "1700000000000",
        "In a stream as `startingOffsets`: where the group has none.",
    ),
    Option("startingOffsetsByTimestampStrategy", "`error`", "latest"),
    Option("endingOffsets", "`latest`, batch only", "latest", "A stream has no end, there and here."),
    Option("endingOffsetsByTimestamp", "none, batch only", _TIMES, "A stream has no end, there and here."),
    Option("endingTimestamp", "none, batch only", "1700000000000", "A stream has no end, there and here."),
    Option(
        "failOnDataLoss",
        "`true`",
        "false",
        "A partition that moves to another member of the group is no loss.",
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "`spark.network.timeout` (120 s)",
        "120000",
        "A task does not know Spark's settings, so the default is a number.",
    ),
    Option(
        "fetchOffset.numRetries",
        "`3`",
        "3",
        "Tried again is what could not be had within `kafka.default.api.timeout.ms`, which follows moved "
        "leaders by itself.",
    ),
    Option("fetchOffset.retryIntervalMs", "`10`", "10"),
    Option(
        "maxOffsetsPerTrigger",
        "none, stream only",
        "1000",
        "All members of the query together. A batch read passes it over with a warning, there and here.",
    ),
    Option(
        "minOffsetsPerTrigger",
        "none, stream only",
        "10",
        "Counts rows of the partitions that the query owns at the time; the first batch after a start "
        "never waits.",
    ),
    Option("maxTriggerDelay", "`15m`, stream only", "15m"),
    Option(
        "minPartitions",
        "none",
        "8",
        "There a task is one partition without it; here tasks follow `parallelism`, since a task of Python "
        "costs tens of milliseconds: small partitions share one, big ones are cut.",
    ),
    Option("maxRecordsPerPartition", "none", "1000", "As there: a limit of rows for a task."),
    Option("groupIdPrefix", "`spark-kafka-source`", "mine"),
    Option(
        "kafka.group.id",
        "a new one for each query",
        "g",
        "There a name for authorization, and two queries under one are a mistake. Here the group that the "
        "query joins and commits to. A batch read takes it for `startingOffsets=committed`.",
    ),
    Option("includeHeaders", "`false`", "true"),
)

SINK_OPTIONS = (
    Option("kafka.bootstrap.servers", "required", "127.0.0.1:9092"),
    Option("topic", "none", "t", "Beats a column `topic`, there and here."),
    Option(
        "includeHeaders",
        "`false`",
        "true",
        "A column `headers` is written when the rows have one, there and here.",
    ),
)

CONSUMER_SETTINGS = (
    Option("kafka.client.id", "made by Spark", "mine"),
    Option(
        "kafka.client.rack",
        "none",
        "r",
        "For assignors that know racks; reading from the nearest replica is not done.",
    ),
    Option(
        "kafka.group.instance.id",
        "none",
        "i",
        "There the consumers never join a group; here it is static membership.",
    ),
    Option(
        "kafka.group.protocol",
        "`classic`",
        "consumer",
        "There no group is joined; here it counts. By default a query that is alone in its group looks "
        "whether the coordinator serves `consumer`, which lets it begin at once.",
    ),
    Option("kafka.group.remote.assignor", "none", "", "There no group is joined; here it counts."),
    Option(
        "kafka.partition.assignment.strategy",
        "without effect",
        "range",
        "There no group is joined; here it counts.",
    ),
    Option(
        "kafka.session.timeout.ms", "without effect", "45000", "There no group is joined; here it counts."
    ),
    Option(
        "kafka.heartbeat.interval.ms", "without effect", "3000", "There no group is joined; here it counts."
    ),
    Option(
        "kafka.max.poll.interval.ms",
        "without effect",
        "300000",
        "How long a rebalance waits for a batch: more than trigger interval and batch together.",
    ),
    Option("kafka.isolation.level", "`read_uncommitted`", "read_committed"),
    Option("kafka.request.timeout.ms", "`30000`", "30000"),
    Option("kafka.default.api.timeout.ms", "`60000`", "60000"),
    Option("kafka.auto.offset.reset", "refused", "earliest"),
    Option("kafka.enable.auto.commit", "refused", "true"),
    Option("kafka.key.deserializer", "refused", "x"),
    Option("kafka.value.deserializer", "refused", "x"),
    Option("kafka.interceptor.classes", "refused", "x"),
    *(
        Option(name, f"`{value}`", value, why)
        for name, value, why in (
            ("kafka.fetch.min.bytes", "1", "A task fetches what its range holds."),
            ("kafka.fetch.max.bytes", "52428800", "A task asks for less when its range is small."),
            ("kafka.fetch.max.wait.ms", "500", "A task reads what is there already, so fetches seldom wait."),
            ("kafka.max.partition.fetch.bytes", "1048576", "A task asks for less when its range is small."),
            ("kafka.max.poll.records", "500", "There is no poll: tasks decode whole batches to columns."),
            (
                "kafka.metadata.max.age.ms",
                "300000",
                "The query itself looks for new topics and partitions at each trigger.",
            ),
            ("kafka.check.crcs", "true", "Every batch is checked."),
            ("kafka.auto.commit.interval.ms", "5000", "Commits follow Spark's batches, never a timer."),
            ("kafka.allow.auto.create.topics", "true", "A source makes no topics."),
            ("kafka.exclude.internal.topics", "true", "Patterns never match internal topics."),
            (
                "kafka.connections.max.idle.ms",
                "540000",
                "A worker keeps its connections while Spark keeps the worker.",
            ),
            ("kafka.receive.buffer.bytes", "65536", "The system's."),
            ("kafka.send.buffer.bytes", "131072", "The system's."),
            ("kafka.reconnect.backoff.ms", "50", "Ours has its own, bounded by the timeouts above."),
            ("kafka.reconnect.backoff.max.ms", "1000", "Ours has its own, bounded by the timeouts above."),
            ("kafka.retry.backoff.ms", "100", "Ours has its own, bounded by the timeouts above."),
            ("kafka.retry.backoff.max.ms", "1000", "Ours has its own, bounded by the timeouts above."),
            ("kafka.socket.connection.setup.timeout.ms", "10000", "Bounded by `kafka.request.timeout.ms`."),
            ("kafka.client.dns.lookup", "use_all_dns_ips", "All addresses of a name are tried."),
            ("kafka.metric.reporters", "x", "There is no Java client; the query's progress has the numbers."),
            (
                "kafka.metrics.num.samples",
                "2",
                "There is no Java client; the query's progress has the numbers.",
            ),
        )
    ),
)

PRODUCER_SETTINGS = (
    Option("kafka.acks", "`all`", "all", other="0"),
    Option("kafka.enable.idempotence", "`true`", "true"),
    Option("kafka.compression.type", "`none`", "zstd"),
    Option("kafka.batch.size", "`16384`", "16384", "Larger, since a task has many rows at hand."),
    Option("kafka.linger.ms", "`0`", "5"),
    Option("kafka.max.request.size", "`1048576`", "1048576"),
    Option("kafka.buffer.memory", "`33554432`", "33554432"),
    Option("kafka.max.in.flight.requests.per.connection", "`5`", "5"),
    Option("kafka.delivery.timeout.ms", "`120000`", "120000"),
    Option("kafka.max.block.ms", "`60000`", "60000"),
    Option("kafka.retry.backoff.ms", "`100`", "100"),
    Option("kafka.request.timeout.ms", "`30000`", "30000"),
    Option("kafka.client.id", "`producer-1` and so on", "mine"),
    Option("kafka.retries", "`2147483647`", "5"),
    Option("kafka.partitioner.class", "none", "x"),
    Option("kafka.transactional.id", "none", "x"),
    Option("kafka.key.serializer", "refused", "x"),
    Option("kafka.value.serializer", "refused", "x"),
    Option("kafka.interceptor.classes", "refused", "x"),
    Option(
        "kafka.metadata.max.age.ms", "`300000`", "300000", "Leaders are asked for again when one has moved."
    ),
)

SECURITY = (
    Option("kafka.security.protocol", "`PLAINTEXT`", "PLAINTEXT"),
    Option(
        "kafka.sasl.*, kafka.ssl.*",
        "Kafka's",
        "",
        "In the names of the Java clients or of librdkafka; keys and "
        "certificates are PEM or PKCS12, not JKS. Kerberos (GSSAPI) and delegation tokens are not known.",
    ),
)

SESSION = (
    (
        "`spark.kafka.consumer.cache.*`, `spark.kafka.consumer.fetchedData.cache.*`",
        "A Python worker keeps its connections for as long as Spark keeps the worker, a minute without work; "
        "nothing is fetched ahead of a task.",
    ),
    ("`spark.kafka.producer.cache.*`", "As above: the connections of a worker outlive its tasks."),
    (
        "`spark.kafka.clusters.*`, `spark.security.credentials.kafka.enabled`",
        "Delegation tokens are handed to JVMs only. Give the credentials as `kafka.sasl.*`.",
    ),
    (
        "`spark.sql.streaming.kafka.useDeprecatedOffsetFetching`",
        "Offsets are looked up by requests of our own.",
    ),
    (
        "`java.security.auth.login.config`",
        "There is no JVM in the way: `kafka.sasl.jaas.config`, or "
        "`kafka.sasl.username` and `kafka.sasl.password`.",
    ),
)


def render() -> str:
    """The page."""
    lines = [
        "# Options: beside Spark's own Kafka connector",
        "",
        "Written by `python -m tools.spark_options_page`; a test compares. The meaning of each option stands",
        "in [Spark](spark.md#options).",
        "",
        'A job\'s `format("kafka")` becomes `format("ringleader")`, and a stream needs `kafka.group.id`. A',
        "column shows the default where the option is taken. *Passed over*: accepted, without effect.",
        "*Refused*: the query does not start, and a sentence says why. Of the connector is said what its",
        "guide says (Spark 4), of client settings what Kafka's clients say (3.9).",
        "",
        "## Reading",
        "",
        *_table(SOURCE_OPTIONS, {"stream": STREAM, "batch read": BATCH}),
        "",
        "## Writing",
        "",
        '`df.write` needs `.mode("append")` next to its options. The connector takes Spark\'s default mode, '
        "`errorifexists`, too; for a source in Python Spark itself refuses it.",
        "",
        *_table(SINK_OPTIONS, {"sink": SINK}),
        "",
        "## Settings of the Kafka consumer",
        "",
        *_table(CONSUMER_SETTINGS, {"stream": STREAM, "batch read": BATCH}),
        "",
        "## Settings of the Kafka producer",
        "",
        *_table(PRODUCER_SETTINGS, {"sink": SINK}),
        "",
        "## TLS and SASL",
        "",
        *_table(SECURITY, {"stream": STREAM, "batch read": BATCH, "sink": SINK}),
        "",
        "## Settings of the session",
        "",
        "| Setting of the connector | Here |",
        "|---|---|",
        *(f"| {name} | Without effect. {why} |" for name, why in SESSION),
        "",
        "## Only here",
        "",
        "| Option | Default | For | Meaning |",
        "|---|---|---|---|",
        *_ours(),
    ]
    return "\n".join(lines) + "\n"


def _table(options: Sequence[Option], kinds: dict[str, Kind]) -> Iterator[str]:
    yield f"| Option | Spark's connector | Here: {' | '.join(kinds)} | What differs, and why |"
    yield "|---" * (len(kinds) + 3) + "|"
    for option in options:
        found = [_of(kind, option) for kind in kinds.values()]
        name = ", ".join(f"`{part}`" for part in option.name.split(", "))
        refused = dict.fromkeys(refusal for _, refusal in found if refusal and not option.why)
        why = " ".join(filter(None, [option.why, *refused, _other(option, kinds.values())]))
        yield f"| {name} | {option.theirs} | {' | '.join(one for one, _ in found)} | {cell(why)} |"


def _other(option: Option, kinds: Iterable[Kind]) -> str:
    refusals = [kind.tried(replace(option, value=option.other))[1] for kind in kinds] if option.other else []
    return next(filter(None, refusals), "")


def _of(kind: Kind, option: Option) -> tuple[str, str]:
    field = kind.field(option.name)
    if not option.value and field is not None:
        return default(field), ""
    return kind.tried(option)


def _ours() -> Iterator[str]:
    theirs = {option.name for option in (*SOURCE_OPTIONS, *SINK_OPTIONS)}
    kinds = {"stream": STREAM, "batch read": BATCH, "sink": SINK}
    seen: dict[str, tuple[FieldInfo, list[str]]] = {}
    for word, kind in kinds.items():
        for field in kind.model.model_fields.values():
            name = field.alias or ""
            if name not in theirs and not name.startswith("kafka."):
                seen.setdefault(name, (field, []))[1].append(word)
    for name, (field, words) in seen.items():
        yield f"| `{name}` | {default(field)} | {', '.join(words)} | {cell(field.description)} |"


if __name__ == "__main__":
    # Such a warning is for queries.
    logging.disable()
    PAGE.write_text(render())
