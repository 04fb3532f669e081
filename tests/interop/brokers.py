"""The settings that scenarios can ask for, and servers that run with them: Apache Kafka and our daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetFetchRequest,
)
from ringleader.protocol.schema import Message
from tests.interop.kafka import TEST_PROPERTIES, KafkaBroker
from tests.interop.language import RESTARTED
from tests.interop.worlds import Caller, create_topic
from tests.support.daemon import Daemon

TOPICS = {"orders": 3, "payments": 2}
"""Topics that all scenarios share, with their partitions."""

PROPERTIES: dict[str, dict[str, str]] = {
    "plain": {},
    "delay": {"group.initial.rebalance.delay.ms": "1000"},
    "small": {"group.max.size": "2"},
    "brief": {"offsets.retention.check.interval.ms": "200"},
    RESTARTED: {},
}
"""By name of `broker:` in a scenario: what it has besides `TEST_PROPERTIES`."""

KAFKA_ONLY = {
    "num.io.threads": "4",
    # It looks for transactions that were not ended in time only now and then.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}

AFTER_RESTART = {"group.max.size": "2"}
"""What RESTARTED has from its restart on."""

_OFFSETS_PARTITIONS = 50
_WARM_TIMEOUT_S = 60
_ASK_AGAIN_S = 0.1
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def properties_of(broker: str) -> dict[str, str]:
    """All settings of a broker, under Kafka's names."""
    return {**TEST_PROPERTIES, **PROPERTIES[broker]}


def settings_of(broker: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The same for `Settings`, with some more of them."""
    chosen = {**properties_of(broker), **(more or {})}
    return {name.replace(".", "_"): value for name, value in chosen.items()}


def kafka(broker: str, directory: Path) -> KafkaBroker:
    """Apache Kafka with these settings, not started."""
    return KafkaBroker(directory, properties={**KAFKA_ONLY, **PROPERTIES[broker]})


def kafka_again(broker: KafkaBroker) -> None:
    """Stop it and start it again, with `AFTER_RESTART`."""
    broker.stop()
    with (broker.directory / "server.properties").open("a") as properties:
        properties.writelines(f"{name}={value}\n" for name, value in AFTER_RESTART.items())
    broker.start()


class OurDaemon(Daemon):
    """Our daemon with the settings of a scenario."""

    def __init__(self, broker: str, directory: Path) -> None:
        # Hundreds of connections from one address, and tests that wait for no disk.
        self._words = ["--storage-sync", "off", "--log-level", "warning", *_flags(properties_of(broker))]
        topics = [f"{name}:{count}" for name, count in TOPICS.items()]
        super().__init__(directory, topics=topics, options=self._words)

    def again(self) -> None:
        """Stop it and start it again, with `AFTER_RESTART`."""
        self.stop()
        self._words += _flags(AFTER_RESTART)
        self.start()


def _flags(properties: Mapping[str, str]) -> list[str]:
    return [word for name, value in properties.items() for word in ("--" + name.replace(".", "-"), value)]


async def warm_up(host: str, port: int) -> None:
    """Wait until topics and coordinators are there: Kafka makes them on first use. Raises TimeoutError."""
    async with asyncio.timeout(_WARM_TIMEOUT_S):
        caller = await Caller.connect(host, port)
        for name, partitions in TOPICS.items():
            await create_topic(caller, name, partitions)
        for key_type in (0, 1):
            await _until_served(caller, FindCoordinatorRequest(key="warm", key_type=key_type), 1)
        for number in range(_OFFSETS_PARTITIONS):
            # One letter each: 50 neighbours are 50 partitions.
            group_id = chr(ord("A") + number)
            fetch = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=True)
            await _until_served(caller, fetch, 7)
        # The first producer id comes from the controller.
        first = InitProducerIdRequest(transactional_id="warm", transaction_timeout_ms=1_000)
        await _until_served(caller, first, 2)
        await caller.close()


async def _until_served(caller: Caller, request: Message, version: int) -> None:
    for _ in range(int(_WARM_TIMEOUT_S / _ASK_AGAIN_S)):
        if (await caller.call(request, version)).error_code not in _NOT_YET:
            return
        await asyncio.sleep(_ASK_AGAIN_S)
