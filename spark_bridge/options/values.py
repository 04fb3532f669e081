"""The forms of option values: offsets, timestamps, patterns, durations, servers, secrets.

Spark hands every value over as a string. Each function turns one into what the code works with, or
raises ValueError with the rest of a sentence that begins with the option's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from ringleader.clients.model import EARLIEST, TopicPartition
from ringleader.protocol import json_text
from ringleader.spark_bridge.rows import COLUMNS
from ringleader.spark_bridge.values import MAX_OFFSET, MAX_PARTITION

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_SERVER = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:/,]+):(\d{1,5})\Z")
_DURATION = re.compile(r"(\d{1,15})\s*([a-z]*)\Z")
_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
# Kafka's Java client names assignors by class.
_JAVA_ASSIGNORS = {
    "rangeassignor": "range",
    "roundrobinassignor": "roundrobin",
    "stickyassignor": "sticky",
    "cooperativestickyassignor": "cooperative-sticky",
}


def topic_name(name: str) -> str:
    """A name that a topic can have."""
    if not _TOPIC.match(name) or name in (".", ".."):
        raise ValueError(f"holds {name!r}, which cannot be the name of a topic")
    return name


def _topic(value: Any) -> Any:
    return topic_name(value) if isinstance(value, str) else value


def _topics(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    names = {name for part in value.split(",") if (name := part.strip())}
    if not names:
        raise ValueError("names no topic")
    return tuple(sorted(map(topic_name, names)))


def _columns(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    known = {name.lower(): name for name in COLUMNS}
    wanted = {name for part in value.split(",") if (name := part.strip().lower())}
    if strange := sorted(wanted - known.keys()):
        raise ValueError(f"holds {strange[0]!r}, which is none of {', '.join(COLUMNS)}")
    if not wanted:
        raise ValueError("names no column")
    return tuple(name for name in COLUMNS if name.lower() in wanted)


def _pattern(value: Any) -> Any:
    if isinstance(value, str):
        if not value:
            raise ValueError("is empty, so it matches no topic")
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"is not a regular expression of Python: {error}") from None
    return value


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


def _numbers(value: str, least: int) -> dict[TopicPartition, int]:
    """``{"topic": {"0": 23}}`` by partition. Raises ValueError, AttributeError or TypeError."""
    found: dict[TopicPartition, int] = {}
    for topic, partitions in json_text.loads(value).items():
        for partition, number in partitions.items():
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MAX_OFFSET:
                raise ValueError
            found[str(topic), _partition(partition)] = number
    return found


def _partition(value: Any) -> int:
    if isinstance(value, float):
        raise ValueError
    number = int(value)
    if not 0 <= number <= MAX_PARTITION:
        raise ValueError
    return number


def _json_offsets(value: Any) -> Any:
    """``earliest``, ``latest``, ``committed`` or ``{"topic": {"0": 23, "1": -1}}``."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in ("earliest", "latest", "committed"):
        return word
    try:
        return _numbers(value, EARLIEST)
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            'is neither "earliest", "latest" nor JSON like {"topicA":{"0":23,"1":-1}} (-2 earliest, -1 '
            "latest)"
        ) from None


def _json_timestamps(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return _numbers(value, 0)
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            'is not JSON like {"topicA":{"0":1700000000000}} (milliseconds since 1970)'
        ) from None


def _json_assignment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        found = {
            (str(topic), _partition(partition))
            for topic, partitions in json_text.loads(value).items()
            for partition in partitions
        }
    except (ValueError, AttributeError, TypeError):
        found = set()
    if not found:
        raise ValueError('is not JSON like {"topicA":[0,1],"topicB":[2]}')
    return tuple(sorted(found))


def _duration_ms(value: Any) -> Any:
    """``15m``, ``90s``, ``500`` (milliseconds), as Spark reads them."""
    if not isinstance(value, str):
        return value
    match = _DURATION.match(value.strip().lower())
    if match is None or match[2] not in _UNITS_MS:
        raise ValueError("is not a time like 500ms, 30s, 15m or 1h")
    return int(match[1]) * _UNITS_MS[match[2]]


def _word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _members(value: Any) -> Any:
    word = _word(value)
    if word == "auto" or not isinstance(word, str):
        return word
    if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= MAX_MEMBERS:
        raise ValueError(f"is neither auto nor a number from 1 to {MAX_MEMBERS}")
    return int(word)


def _assignors(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from ringleader.clients.assignors import ASSIGNORS

    known = {*ASSIGNORS, "lag-aware"}
    names = []
    for item in value.split(","):
        name = item.strip().lower().rpartition(".")[2]
        names.append(_JAVA_ASSIGNORS.get(name, name))
        if names[-1] not in known:
            raise ValueError(f"holds {item.strip()!r}, which is none of {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(names))


def _security(value: Any) -> Any:
    """Properties without the prefix ``kafka.``, checked as a whole. Secrets must not get into messages."""
    if not isinstance(value, Mapping):
        return value
    return tuple(sorted(value.items()))


MAX_MEMBERS = 1_000

Rows: TypeAlias = Annotated[int, Field(gt=0, le=2**62)]
FetchBytes: TypeAlias = Annotated[int, Field(gt=0, le=512 * 1024 * 1024)]
Millis: TypeAlias = Annotated[int, Field(gt=0, le=2**31 - 1)]
Timestamp: TypeAlias = Annotated[int, Field(ge=0, le=MAX_OFFSET)]
Duration: TypeAlias = Annotated[Millis, BeforeValidator(_duration_ms)]
Topic: TypeAlias = Annotated[str, BeforeValidator(_topic)]
Topics: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_topics)]
Columns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_columns)]
Pattern: TypeAlias = Annotated[str, BeforeValidator(_pattern)]
Servers: TypeAlias = Annotated[tuple[tuple[str, int], ...], BeforeValidator(_servers)]
Partitions: TypeAlias = Annotated[tuple[TopicPartition, ...], BeforeValidator(_json_assignment)]
Timestamps: TypeAlias = Annotated[dict[TopicPartition, int], BeforeValidator(_json_timestamps)]
Offsets: TypeAlias = Annotated[
    Literal["earliest", "latest", "committed"] | dict[TopicPartition, int], BeforeValidator(_json_offsets)
]
Strategy: TypeAlias = Annotated[Literal["error", "latest"], BeforeValidator(_word)]
GroupProtocol: TypeAlias = Annotated[Literal["auto", "classic", "consumer"], BeforeValidator(_word)]
Members: TypeAlias = Annotated[Literal["auto"] | int, BeforeValidator(_members)]
Assignors: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_assignors)]
SecurityProtocol: TypeAlias = Annotated[
    Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], BeforeValidator(_upper)
]
Properties: TypeAlias = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_security)]
Compression: TypeAlias = Annotated[Literal["none", "gzip", "snappy", "lz4", "zstd"], BeforeValidator(_word)]
Acks: TypeAlias = Annotated[Literal["all", "1"], BeforeValidator(lambda value: _acks(value))]


def _acks(value: Any) -> Any:
    word = _word(value)
    return {"-1": "all", "0": "1"}.get(word, word)
