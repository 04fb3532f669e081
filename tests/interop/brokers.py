"""The settings that scenarios can ask for, and servers that run with them: Apache Kafka and our daemon."""

from __future__ import annotations

import asyncio
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
from tests.interop.worlds import Caller, create_topic
from tests.support.daemon import Daemon

TOPICS = {"orders": 3, "payments": 2}
"""Topics that all scenarios share, with their partitions."""

PROPERTIES: dict[str, dict[str, str]] = {
    "plain": {},
    "delay": {"group.initial.rebalance.delay.ms": "1000"},
    "small": {"group.max.size": "2"},
    "brief": {"offsets.retention.check.interval.ms": "200"},
}
"""By name of `broker:` in a scenario: what it has besides `TEST_PROPERTIES`."""

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


def settings_of(broker: str) -> dict[str, Any]:
    """The same for `Settings`."""
    return {name.replace(".", "_"): value for name, value in properties_of(broker).items()}


def kafka(broker: str, directory: Path) -> KafkaBroker:
    """Apache Kafka with these settings, not started."""
    # Twice the usual threads: hundreds of scenarios run side by side.
    return KafkaBroker(directory, properties={**PROPERTIES[broker], "num.io.threads": "4"})


def daemon(broker: str, directory: Path) -> Daemon:
    """Our daemon with these settings, not started."""
    options = [
        word
        for name, value in properties_of(broker).items()
        for word in ("--" + name.replace(".", "-"), value)
    ]
    # Hundreds of connections from one address.
    options += ["--storage-sync", "off", "--log-level", "warning"]
    return Daemon(directory, topics=[f"{name}:{count}" for name, count in TOPICS.items()], options=options)


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
