"""Clients in wide use read from the daemon in fetch sessions, those that have any."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.server.handlers.fetch_sessions import FetchSessions
from tests.interop.kafka import tool
from tests.support.consuming import until
from tests.support.topiclog import batch

PARTITIONS, EACH, ROUNDS = 5, 3, 4
ALL = ROUNDS * EACH
TIMEOUT_S = 60

Seen = list[tuple[int, int]]
"""Partitions and offsets of records that were read."""


def with_kafka_python(bootstrap: str) -> Seen:
    """Read all records."""
    reader = kafka.KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1_000,
        fetch_max_wait_ms=50,
    )
    with contextlib.closing(reader):
        return [(one.partition, one.offset) for one, _ in zip(reader, range(ALL), strict=False)]


def with_confluent(bootstrap: str) -> Seen:
    """Likewise."""
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
    )
    seen: Seen = []
    with contextlib.closing(reader):
        reader.subscribe(["t"])
        while len(seen) < ALL:
            one: Any = reader.poll(TIMEOUT_S)
            assert one is not None
            assert not one.error()
            seen.append((one.partition(), one.offset()))
    return seen


def with_java(bootstrap: str) -> Seen:
    """Likewise, with Kafka's console consumer."""
    done = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "t", "--from-beginning", "--max-messages", str(ALL)),
        *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
        *("--formatter-property", "print.value=false"),
        timeout_s=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    lines = [
        line.replace("Partition:", "").replace("Offset:", "").split() for line in done.stdout.splitlines()
    ]
    return [(int(partition), int(offset)) for partition, offset in lines]


class Counted:
    """The incremental requests that the daemon took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        proceed = FetchSessions.proceed

        def counting(sessions: FetchSessions, session_id: int, epoch: int, *, by_id: bool) -> Any:
            session = proceed(sessions, session_id, epoch, by_id=by_id)
            self.count += 1
            return session

        monkeypatch.setattr(FetchSessions, "proceed", counting)

    def is_beyond(self, count: int, reading: asyncio.Task[Seen]) -> bool:
        """Whether more came, or none will come."""
        return self.count > count or reading.done()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    settings = Settings(
        listen="127.0.0.1:0",
        data_dir=tmp_path / "node",
        topic=f"t:{PARTITIONS}",
        group_initial_rebalance_delay_ms=0,
    )
    async with Node(settings) as node:
        yield node


@pytest.mark.parametrize(
    ("read", "has_sessions"), [(with_kafka_python, True), (with_confluent, False), (with_java, True)]
)
async def test_records_are_read_in_sessions(
    node: Node, monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Seen], has_sessions: bool
) -> None:
    counted = Counted(monkeypatch)
    reading = asyncio.create_task(asyncio.to_thread(read, f"{node.host}:{node.port}"))
    expected = []
    for number in range(ROUNDS):
        if has_sessions:
            # Records come while the client waits in its session for them.
            await until(partial(counted.is_beyond, counted.count + 1, reading))
        await node.topics.append("t", number, batch(EACH))
        expected += [(number, offset) for offset in range(EACH)]
    assert sorted(await reading) == expected
    assert (counted.count > 0) == has_sessions
