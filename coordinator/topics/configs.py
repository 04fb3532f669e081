"""Topic configurations: which keys there are, what they may hold, what they do here.

Keys, types and defaults are Apache Kafka's. Each key says whether it has an effect; the rest is checked, kept
and shown, so that tools which set it work, and documented as without effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ringleader.coordinator.topics.settings import TopicSettings
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.wire import INT32_MAX, INT64_MAX


class ConfigType(IntEnum):
    """Type numbers of DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


Check = Callable[[str], None]
"""Raises ValueError for a value that a key may not hold."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key of a topic's configuration."""

    name: str
    type: ConfigType
    given: str | None
    """The default, where no broker setting gives it."""
    check: Check
    documentation: str = "Accepted and shown; it has no effect on the embedded topic log."
    broker_key: str | None = None
    """The broker setting that the default comes from."""

    def default(self, settings: TopicSettings) -> str:
        """The value for topics that do not set it."""
        if self.broker_key is None:
            return self.given or ""
        return str(getattr(settings, self.broker_key.replace(".", "_")))


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configurations with an effect, as values. Times in ms, sizes in bytes, -1 for no limit."""

    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    max_message_bytes: int
    append_time: bool


def _whole(low: int, high: int) -> Check:
    def check(value: str) -> None:
        if not low <= int(value) <= high:
            raise ValueError(f"must be between {low} and {high}")

    return check


def _one_of(*allowed: str) -> Check:
    def check(value: str) -> None:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")

    return check


def _fraction(value: str) -> None:
    if not 0 <= float(value) <= 1:
        raise ValueError("must be between 0 and 1")


def _policies(value: str) -> None:
    if not value or not {part.strip() for part in value.split(",")} <= {"delete", "compact"}:
        raise ValueError("must be delete, compact, or both")


def _anything(value: str) -> None:
    pass


_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = ConfigType
_CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_NEVER = str(INT64_MAX)
_TIMES = "CreateTime keeps the producer's timestamps; LogAppendTime replaces them by the time of appending."
_POLICY = (
    "delete: records go by time and size. compact: accepted, yet nothing is ever compacted: without delete, "
    "every record is kept."
)

_ROWS: tuple[tuple[str, ConfigType, str | None, Check, *tuple[str, ...]], ...] = (
    ("cleanup.policy", _LIST, "delete", _policies, _POLICY),
    ("compression.gzip.level", _INT, "-1", _whole(-1, 9)),
    ("compression.lz4.level", _INT, "9", _whole(1, 17)),
    ("compression.type", _STRING, "producer", _one_of(*_CODECS)),
    ("compression.zstd.level", _INT, "3", _whole(-131072, 22)),
    ("delete.retention.ms", _LONG, "86400000", _whole(0, INT64_MAX)),
    ("file.delete.delay.ms", _LONG, "60000", _whole(0, INT64_MAX)),
    ("flush.messages", _LONG, _NEVER, _whole(1, INT64_MAX)),
    ("flush.ms", _LONG, _NEVER, _whole(0, INT64_MAX)),
    ("follower.replication.throttled.replicas", _LIST, "", _anything),
    ("index.interval.bytes", _INT, "4096", _whole(0, INT32_MAX)),
    ("leader.replication.throttled.replicas", _LIST, "", _anything),
    ("max.compaction.lag.ms", _LONG, _NEVER, _whole(1, INT64_MAX)),
    ("max.message.bytes", _INT, None, _whole(0, INT32_MAX), "Largest record batch, as it is sent.",
        "message.max.bytes"),
    ("message.timestamp.after.max.ms", _LONG, _NEVER, _whole(0, INT64_MAX)),
    ("message.timestamp.before.max.ms", _LONG, _NEVER, _whole(0, INT64_MAX)),
    ("message.timestamp.type", _STRING, "CreateTime", _one_of("CreateTime", "LogAppendTime"), _TIMES),
    ("min.cleanable.dirty.ratio", _DOUBLE, "0.5", _fraction),
    ("min.compaction.lag.ms", _LONG, "0", _whole(0, INT64_MAX)),
    ("min.insync.replicas", _INT, "1", _whole(1, INT32_MAX)),
    ("preallocate", _BOOLEAN, "false", _one_of("true", "false")),
    ("retention.bytes", _LONG, None, _whole(-1, INT64_MAX),
        "How much of a partition is kept, in whole files; -1 keeps all of it.", "log.retention.bytes"),
    ("retention.ms", _LONG, None, _whole(-1, INT64_MAX),
        "How long records are kept; -1 keeps them for ever.", "log.retention.ms"),
    ("segment.bytes", _INT, None, _whole(14, INT32_MAX),
        "A partition's file is closed at this size.", "log.segment.bytes"),
    ("segment.index.bytes", _INT, "10485760", _whole(4, INT32_MAX)),
    ("segment.jitter.ms", _LONG, "0", _whole(0, INT64_MAX)),
    ("segment.ms", _LONG, None, _whole(1, INT64_MAX),
        "A partition's file is closed when its first record is this old.", "log.roll.ms"),
    ("unclean.leader.election.enable", _BOOLEAN, "false", _one_of("true", "false")),
)  # fmt: skip

KEYS: Mapping[str, ConfigKey] = {row[0]: ConfigKey(*row) for row in _ROWS}
"""All keys by name, in the order of their names."""


def validate(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configurations if all may be set so. Raises KafkaError (INVALID_CONFIG) with one sentence."""
    found: dict[str, str] = {}
    for name, value in configs.items():
        key = KEYS.get(name)
        if key is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic config: {name}")
        try:
            key.check(value)
        except ValueError as error:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {name}: {error}"
            ) from None
        found[name] = value
    return found


def effective(configs: Mapping[str, str], settings: TopicSettings) -> TopicConfig:
    """The values that hold for a topic with these (valid) configurations."""

    def value(name: str) -> str:
        return configs.get(name) or KEYS[name].default(settings)

    keeps_all = "delete" not in value("cleanup.policy")
    return TopicConfig(
        retention_ms=-1 if keeps_all else int(value("retention.ms")),
        retention_bytes=-1 if keeps_all else int(value("retention.bytes")),
        segment_bytes=int(value("segment.bytes")),
        segment_ms=int(value("segment.ms")),
        max_message_bytes=int(value("max.message.bytes")),
        append_time=value("message.timestamp.type") == "LogAppendTime",
    )
