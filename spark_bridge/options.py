"""The options of the source: Spark's Kafka connector's names, checked before anything connects.

The model below is the documentation too (``docs/spark.md`` shows it). Names are matched without
regard to case. What is unknown, contradictory, or means something else to a group member is refused
with a sentence that says what to do instead.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ringleader.spark_bridge.offsets import EARLIEST, LATEST, TopicPartition
from ringleader.spark_bridge.resume import ReplayPolicy

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_SERVER = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:/,]+):(\d{1,5})\Z")


class OptionsError(ValueError):
    """The options of a source cannot be used; the message has one sentence for each reason."""


# Options that users bring from Spark's Kafka connector and that cannot hold for a member of a group.
REFUSED = {
    "assign": "'assign' contradicts membership: the group's leader assigns the partitions. Use 'subscribe'.",
    "subscribepattern": "'subscribePattern' is not supported yet; name the topics in 'subscribe'.",
    "groupidprefix": "'groupIdPrefix' makes a new group for every query; here the group is the point. "
    "Set 'kafka.group.id'.",
    "kafka.auto.offset.reset": "'kafka.auto.offset.reset' does not apply: use 'startingOffsets' for a group "
    "without offsets, and 'failOnDataLoss' for offsets that are gone.",
    "kafka.enable.auto.commit": "'kafka.enable.auto.commit' does not apply: offsets are committed when Spark "
    "has logged the batch, never by a timer.",
    "kafka.key.deserializer": "'kafka.key.deserializer' does not apply: keys come as binary; cast in the "
    "query.",
    "kafka.value.deserializer": "'kafka.value.deserializer' does not apply: values come as binary; cast in "
    "the query.",
    "kafka.interceptor.classes": "'kafka.interceptor.classes' does not apply: there is no Java client here.",
    "kafka.partition.assignment.strategy": "'kafka.partition.assignment.strategy' is fixed: the query offers "
    "range and roundrobin.",
    "kafka.group.instance.id": "'kafka.group.instance.id' is not supported yet: a query joins as a dynamic "
    "member.",
    "kafka.group.protocol": "'kafka.group.protocol' is not supported yet: a query joins with the classic "
    "protocol.",
    "path": "a topic is named by the option 'subscribe', not by a path in load().",
    "topic": "'topic' belongs to a sink; name the topics to read in 'subscribe'.",
}


def _json_offsets(value: Any) -> Any:
    """``earliest``, ``latest``, ``committed`` or ``{"topic": {"0": 23, "1": -1}}``."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in ("earliest", "latest", "committed"):
        return word
    try:
        parsed = json.loads(value)
        return {
            (str(topic), int(partition)): _offset(offset)
            for topic, partitions in parsed.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            'is neither "earliest", "latest" nor JSON like {"topicA":{"0":23,"1":-1}} (-2 earliest, -1 '
            "latest)"
        ) from None


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < EARLIEST:
        raise ValueError
    return value


def _topics(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if not _TOPIC.match(name) or name in (".", ".."):
            raise ValueError(f"holds {name!r}, which cannot be the name of a topic")
    return tuple(sorted(set(names)))


def _servers(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = []
    for item in filter(None, (part.strip() for part in value.split(","))):
        match = _SERVER.match(item)
        if match is None or not 0 < int(match[2]) < 65536:
            raise ValueError(f"holds {item!r}, which is not host:port")
        found.append((match[1].strip("[]"), int(match[2])))
    if not found:
        raise ValueError("names no server")
    return tuple(found)


Offsets: TypeAlias = Annotated[
    Literal["earliest", "latest", "committed"] | dict[TopicPartition, int], BeforeValidator(_json_offsets)
]
Rows: TypeAlias = Annotated[int, Field(gt=0, le=2**62)]
Millis: TypeAlias = Annotated[int, Field(gt=0, le=2**31 - 1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    bootstrap_servers: Annotated[tuple[tuple[str, int], ...], BeforeValidator(_servers)] = Field(
        alias="kafka.bootstrap.servers",
        description="Brokers to ask first: host:port, comma separated.",
    )
    subscribe: Annotated[tuple[str, ...], BeforeValidator(_topics)] = Field(
        alias="subscribe", description="Topics to read, comma separated."
    )
    fail_on_data_loss: bool = Field(
        True,
        alias="failOnDataLoss",
        description="Whether the query fails when offsets it should read are gone; otherwise it warns and "
        "goes on "
        "with what is there. A revoked partition is no loss.",
    )
    include_headers: bool = Field(
        False,
        alias="includeHeaders",
        description="Whether rows have a column `headers`, null when a record has none.",
    )
    min_partitions: Rows | None = Field(
        None,
        alias="minPartitions",
        description="Cut a batch into about so many tasks, however small. Without it, tasks follow "
        "`parallelism`.",
    )
    parallelism: Rows = Field(
        default_factory=lambda: os.cpu_count() or 1,
        alias="parallelism",
        description="How many tasks a batch is cut into at most when minPartitions is not set: small "
        "partitions share a "
        "task, big ones are cut. Default: the cores of the driver's machine; on a cluster, set your "
        "executors' cores.",
    )
    poll_timeout_ms: Millis = Field(
        120_000,
        alias="kafkaConsumer.pollTimeoutMs",
        description="How long a task waits for the next records of its range, through reconnects and "
        "moved leaders.",
    )
    client_id: str = Field(
        "ringleader-spark",
        alias="kafka.client.id",
        max_length=200,
        description="Client id in requests; the coordinator builds the member id from it.",
    )
    isolation_level: Literal["read_uncommitted", "read_committed"] = Field(
        "read_uncommitted",
        alias="kafka.isolation.level",
        description="read_committed leaves out records of open and aborted transactions.",
    )
    security_protocol: Literal["PLAINTEXT"] = Field(
        "PLAINTEXT", alias="kafka.security.protocol", description="Only PLAINTEXT for now."
    )
    request_timeout_ms: Millis = Field(
        30_000, alias="kafka.request.timeout.ms", description="How long one request may take."
    )

    @property
    def bootstrap(self) -> str:
        """The servers as host:port, comma separated."""
        return ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.bootstrap_servers
        )


class StreamOptions(_Model):
    """Options of ``spark.readStream.format("ringleader")``."""

    group_id: str = Field(
        alias="kafka.group.id",
        min_length=1,
        max_length=32_767,
        description="The consumer group this query is a member of.",
    )
    starting_offsets: Offsets = Field(
        "latest",
        alias="startingOffsets",
        description="Where a partition starts for which the group has no committed offset: earliest, "
        "latest, or JSON "
        "that names every partition (-2 earliest, -1 latest). A group's committed offset always wins.",
    )
    max_offsets_per_trigger: Rows | None = Field(
        None,
        alias="maxOffsetsPerTrigger",
        description="Rows of a batch in all, shared in proportion to each partition's backlog, at least 1 "
        "for each with "
        "any.",
    )
    replay_policy: ReplayPolicy = Field(
        ReplayPolicy.CLIP,
        alias="replayPolicy",
        description="What a batch reads that runs again after a restart. clip: what the group has not "
        "yet committed; "
        "exact: the same ranges again, for sinks that rely on the batch id.",
    )
    session_timeout_ms: Millis = Field(
        45_000,
        alias="kafka.session.timeout.ms",
        description="Silence after which the coordinator removes the member.",
    )
    rebalance_timeout_ms: Millis = Field(
        300_000,
        alias="kafka.max.poll.interval.ms",
        description="How long a rebalance waits for this query to finish its batch; must exceed trigger "
        "interval plus "
        "batch time.",
    )
    heartbeat_interval_ms: Millis = Field(
        3_000, alias="kafka.heartbeat.interval.ms", description="Time between heartbeats."
    )

    @model_validator(mode="after")
    def _fit(self) -> StreamOptions:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"kafka.heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be below "
                f"kafka.session.timeout.ms "
                f"({self.session_timeout_ms}); a third of it is usual"
            )
        if self.starting_offsets == "committed":
            raise ValueError(
                "startingOffsets=committed is for spark.read: a stream always starts at the group's "
                "committed offsets, and "
                "startingOffsets says where the group has none"
            )
        _check_topics(self.starting_offsets, self.subscribe, "startingOffsets")
        return self


class BatchOptions(_Model):
    """Options of ``spark.read.format("ringleader")``: a plain read, never a member."""

    group_id: str | None = Field(
        None,
        alias="kafka.group.id",
        min_length=1,
        max_length=32_767,
        description="Whose committed offsets startingOffsets=committed means. A batch read neither joins "
        "nor commits.",
    )
    starting_offsets: Offsets = Field(
        "earliest",
        alias="startingOffsets",
        description="earliest, committed (the offsets of kafka.group.id, earliest where it has none), or "
        "JSON.",
    )
    ending_offsets: Offsets = Field(
        "latest", alias="endingOffsets", description="latest, or JSON (-1 latest); ends are exclusive."
    )

    @model_validator(mode="after")
    def _fit(self) -> BatchOptions:
        if self.starting_offsets == "latest" or _holds(self.starting_offsets, LATEST):
            raise ValueError(
                "startingOffsets of a batch read cannot be latest: there would be nothing to read"
            )
        if self.ending_offsets in ("earliest", "committed") or _holds(self.ending_offsets, EARLIEST):
            raise ValueError("endingOffsets must be latest, or JSON with offsets or -1")
        if self.starting_offsets == "committed" and self.group_id is None:
            raise ValueError("startingOffsets=committed needs kafka.group.id")
        _check_topics(self.starting_offsets, self.subscribe, "startingOffsets")
        _check_topics(self.ending_offsets, self.subscribe, "endingOffsets")
        return self


M = TypeVar("M", bound=_Model)
STREAM_ONLY = {"maxoffsetspertrigger": "maxOffsetsPerTrigger", "replaypolicy": "replayPolicy"}
BATCH_ONLY = {"endingoffsets": "endingOffsets"}


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Check the options of a streaming query.

    Raises OptionsError with one sentence for each reason.
    """
    return _build(
        StreamOptions, options, BATCH_ONLY, "a stream has no end: 'endingOffsets' is for spark.read."
    )


def batch_options(options: Mapping[str, str]) -> BatchOptions:
    """Check the options of a batch read.

    Raises OptionsError with one sentence for each reason. Options that only steer membership are
    ignored, so that the options of a stream can be used again.
    """
    steering = ("kafka.session.timeout.ms", "kafka.max.poll.interval.ms", "kafka.heartbeat.interval.ms")
    kept = {name: value for name, value in options.items() if name.lower() not in steering}
    return _build(
        BatchOptions, kept, STREAM_ONLY, "a batch read has no triggers: {name!r} is for spark.readStream."
    )


def _build(model: type[M], options: Mapping[str, str], misplaced: Mapping[str, str], sentence: str) -> M:
    names = {alias.lower(): alias for field in model.model_fields.values() if (alias := field.alias)}
    values: dict[str, str] = {}
    reasons: list[str] = []
    for given, value in options.items():
        name = given.lower()
        if name in names:
            values[names[name]] = value
        elif name in REFUSED:
            reasons.append(REFUSED[name])
        elif name in misplaced:
            reasons.append(sentence.format(name=misplaced[name]))
        else:
            reasons.append(_unknown(given, list(names.values())))
    try:
        built = model.model_validate(values)
    except ValidationError as error:
        reasons.extend(_sentence(problem) for problem in error.errors())
    if reasons:
        raise OptionsError(" ".join(reasons))
    return built


def _unknown(given: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(given.lower(), [name.lower() for name in names], n=1)
    hint = f" Did you mean {next(name for name in names if name.lower() == near[0])!r}?" if near else ""
    return f"The option {given!r} is not known to format ringleader.{hint}"


def _sentence(problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    text = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "missing":
        why = " (it is the group that the query joins)" if name == "kafka.group.id" else ""
        return f"The option {name!r} is required{why}."
    if not name:
        return f"{text}."
    return f"The option {name!r} with value {str(problem['input'])!r:.80}: {text}."


def _holds(offsets: Any, value: int) -> bool:
    return isinstance(offsets, dict) and value in offsets.values()


def _check_topics(offsets: Any, topics: tuple[str, ...], name: str) -> None:
    if isinstance(offsets, dict):
        if strange := sorted({topic for topic, _ in offsets} - set(topics)):
            raise ValueError(f"{name} names {', '.join(strange)}, which 'subscribe' does not")
        if missing := sorted(set(topics) - {topic for topic, _ in offsets}):
            raise ValueError(
                f"{name} must name every partition of the subscription; {', '.join(missing)} is missing"
            )
