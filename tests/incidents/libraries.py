"""The Python libraries as the members here need them: opened with the same words, asked to poll."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from ringleader import GroupConsumer
from tests.interop.clients.mixed import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, OURS
from tests.support.members import know_topic

POLL_S = 0.2
POLLED = 200
METADATA_MS = 3_000
"""So long it takes until a leader sees that partitions were added."""
JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "slow": "ringleader.interop.SlowRangeAssignor",
}

Config = Mapping[str, Any]
"""bootstrap, group, client_id, instance_id, session_ms, heartbeat_ms, max_poll_ms, commit_ms (0: it never
commits), assignor, protocol, slow_ms (how long it thinks when it leads; its assignor is "slow" then)."""


def java_config(config: Config) -> dict[str, str]:
    """The same in Kafka's names."""
    found: dict[str, Any] = {
        "bootstrap.servers": config["bootstrap"],
        "group.id": config["group"],
        "client.id": config["client_id"],
        "auto.offset.reset": "latest",
        "max.poll.interval.ms": config["max_poll_ms"],
        "enable.auto.commit": str(config["commit_ms"] > 0).lower(),
        "auto.commit.interval.ms": config["commit_ms"] or 5_000,
        "metadata.max.age.ms": METADATA_MS,
        "slow.ms": config["slow_ms"],
        "group.protocol": config["protocol"],
    }
    if config["instance_id"] is not None:
        found["group.instance.id"] = config["instance_id"]
    if config["protocol"] == "classic":
        found["session.timeout.ms"] = config["session_ms"]
        found["heartbeat.interval.ms"] = config["heartbeat_ms"]
        found["partition.assignment.strategy"] = JAVA_ASSIGNORS[config["assignor"]]
    return {name: str(value) for name, value in found.items()}


class Library(Protocol):
    """A consumer in its group."""

    def __init__(self, config: Config) -> None: ...

    async def open(self, topics: Sequence[str]) -> None:
        """Make it and subscribe."""

    async def poll(self) -> None:
        """Ask for records once. Raises what ends the application."""

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these instead of those before."""

    async def close(self) -> None:
        """A clean end."""


class Confluent:
    """librdkafka."""

    def __init__(self, config: Config) -> None:
        self._config: dict[str, Any] = {**java_config({**config, "assignor": "range"})}
        for name in ("slow.ms", "metadata.max.age.ms"):
            del self._config[name]
        self._config["topic.metadata.refresh.interval.ms"] = METADATA_MS
        self._config["reconnect.backoff.max.ms"] = 500
        self._config["error_cb"] = self._happens
        self._fatal: confluent_kafka.KafkaError | None = None
        if config["protocol"] == "classic":
            self._config["partition.assignment.strategy"] = config["assignor"]

    def _happens(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal() or error.code() == confluent_kafka.KafkaError._FATAL:
            self._fatal = error

    async def open(self, topics: Sequence[str]) -> None:
        """Make it and subscribe."""
        self._consumer = confluent_kafka.Consumer(self._config)
        self._consumer.subscribe(list(topics))

    async def poll(self) -> None:
        """Ask for records once."""
        for message in self._consumer.consume(POLLED, POLL_S):
            if (error := message.error()) is not None:
                self._happens(error)
        if self._fatal is not None:
            raise confluent_kafka.KafkaException(self._fatal)

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these instead of those before."""
        self._consumer.subscribe(list(topics))

    async def close(self) -> None:
        """A clean end."""
        self._consumer.close()


def _python_options(config: Config) -> dict[str, Any]:
    return {
        "group_id": config["group"],
        "client_id": config["client_id"],
        "group_instance_id": config["instance_id"],
        "session_timeout_ms": config["session_ms"],
        "heartbeat_interval_ms": config["heartbeat_ms"],
        "max_poll_interval_ms": config["max_poll_ms"],
        "metadata_max_age_ms": METADATA_MS,
        "auto_offset_reset": "latest",
        "auto_commit_interval_ms": config["commit_ms"] or 5_000,
    }


class Aiokafka:
    """aiokafka."""

    def __init__(self, config: Config) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=config["bootstrap"],
            enable_auto_commit=config["commit_ms"] > 0,
            partition_assignment_strategy=(AiokafkaRange,),
            **_python_options(config),
        )

    async def open(self, topics: Sequence[str]) -> None:
        """Subscribe and start."""
        self._consumer.subscribe(list(topics))
        await self._consumer.start()

    async def poll(self) -> None:
        """Ask for records once."""
        await self._consumer.getmany(timeout_ms=int(POLL_S * 1000))

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these instead of those before."""
        self._consumer.subscribe(list(topics))

    async def close(self) -> None:
        """A clean end."""
        await self._consumer.stop()


class _Slow(RangePartitionAssignor):  # type: ignore[misc]  # its library is untyped
    slow_ms = 0

    @classmethod
    def assign(cls, *arguments: Any) -> Any:
        time.sleep(cls.slow_ms / 1000)
        return super().assign(*arguments)


class KafkaPython:
    """kafka-python."""

    def __init__(self, config: Config) -> None:
        assignors = {
            "range": RangePartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
            "slow": type("Slow", (_Slow,), {"slow_ms": config["slow_ms"]}),
        }
        self._options = {
            "bootstrap_servers": config["bootstrap"],
            "enable_auto_commit": config["commit_ms"] > 0,
            "partition_assignment_strategy": (assignors[config["assignor"]],),
            **_python_options(config),
        }

    async def open(self, topics: Sequence[str]) -> None:
        """Make it and subscribe."""
        self._consumer = kafka.KafkaConsumer(**self._options)
        self._consumer.subscribe(list(topics))
        know_topic(self._consumer, topics[0])

    async def poll(self) -> None:
        """Ask for records once."""
        try:
            # A join that outlasts one poll is where this library loses its way (3.0.12).
            self._consumer.poll(timeout_ms=5 * int(POLL_S * 1000))
        except kafka.errors.KafkaError as error:
            if not error.retriable:
                raise

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these instead of those before."""
        self._consumer.subscribe(list(topics))

    async def close(self) -> None:
        """A clean end."""
        self._consumer.close()


class Ours:
    """A `GroupConsumer`."""

    def __init__(self, config: Config) -> None:
        options = _python_options(config)
        if config["protocol"] == "classic":
            options["assignors"] = [config["assignor"]]
        else:
            options["group_protocol"] = config["protocol"]
            del options["session_timeout_ms"], options["heartbeat_interval_ms"]
        self._bootstrap: str = config["bootstrap"]
        self._group: str = options.pop("group_id")
        self._commits: bool = config["commit_ms"] > 0
        self._options = options

    async def open(self, topics: Sequence[str]) -> None:
        """Make it and start."""
        self._consumer = GroupConsumer(
            self._bootstrap, self._group, list(topics), auto_commit=self._commits, **self._options
        )
        await self._consumer.start()

    async def poll(self) -> None:
        """Ask for records once."""
        await self._consumer.getmany(timeout_s=POLL_S)

    async def subscribe(self, topics: Sequence[str]) -> None:
        """To these instead of those before."""
        await self._consumer.subscribe(list(topics))

    async def close(self) -> None:
        """A clean end."""
        await self._consumer.stop()


LIBRARIES: dict[str, type[Library]] = {
    CONFLUENT: Confluent,
    AIOKAFKA: Aiokafka,
    KAFKA_PYTHON: KafkaPython,
    OURS: Ours,
}
__all__ = ["AIOKAFKA", "CONFLUENT", "JAVA", "KAFKA_PYTHON", "LIBRARIES", "OURS", "Config", "java_config"]
