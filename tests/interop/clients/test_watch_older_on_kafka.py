"""A watcher on an Apache Kafka before 4.0 names causes, of what was there before it and of what it sees."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiokafka

from ringleader.insight.history import History
from ringleader.insight.model import Cause
from tests.interop.kafka import OLDER_POM, KafkaBroker
from tests.interop.secured import make_topics
from tests.support.command import command_line, environment

GROUP, TOPIC = "team", "orders"
PATIENCE_S = 120.0

_VICTIM = """
import asyncio, sys
from aiokafka import TopicPartition
from tests.interop.clients.test_watch_older_on_kafka import TOPIC, member

async def work():
    consumer = await member(sys.argv[1], "victim", session_timeout_ms=6_000)
    for _ in range(20):  # a rhythm of commits, without which nothing tells how long it was silent
        await consumer.commit({TopicPartition(TOPIC, one.partition): 0 for one in consumer.assignment()})
        await asyncio.sleep(0.1)
    print("works", flush=True)
    await asyncio.Event().wait()

asyncio.run(work())
"""


async def member(bootstrap: str, name: str, session_timeout_ms: int = 30_000) -> aiokafka.AIOKafkaConsumer:
    """One that has joined, and commits often."""
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        client_id=name,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=200,
        auto_commit_interval_ms=200,
    )
    await consumer.start()
    return consumer


@contextmanager
def watch(bootstrap: str, history: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, over all that the cluster still has."""
    running = subprocess.Popen(
        command_line("watch", "--from-start", "--history", str(history), "--no-page", "--json"),
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    too_long = threading.Timer(PATIENCE_S, running.kill)
    too_long.start()
    try:
        assert running.stderr is not None
        assert any("watching" in line for line in running.stderr)
        yield running
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == 0
    finally:
        too_long.cancel()
        running.kill()
        running.communicate()


def rebalance(watching: subprocess.Popen[str], generation: int) -> dict[str, Any]:
    """The report of the rebalance that led there."""
    assert watching.stdout is not None
    for line in watching.stdout:
        event: dict[str, Any] = json.loads(line)
        if event["type"] == "rebalance" and event["group"] == GROUP and event["generation"] == generation:
            return event
    raise AssertionError(f"the watcher ended before generation {generation}")


def come_and_be_killed(bootstrap: str) -> None:
    """A member in a process of its own."""
    victim = subprocess.Popen([sys.executable, "-c", _VICTIM, bootstrap], stdout=subprocess.PIPE, text=True)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "works\n"
    finally:
        victim.kill()
        victim.communicate()


async def seen(bootstrap: str, history: Path) -> None:
    await make_topics(bootstrap, {TOPIC: 4})
    first = await member(bootstrap, "first")
    second = await member(bootstrap, "second")
    await second.stop()
    with watch(bootstrap, history) as watching:
        await asyncio.to_thread(come_and_be_killed, bootstrap)
        joined = await asyncio.to_thread(rebalance, watching, 4)
        assert {one["client_id"] for one in joined["members"]} == {"first", "victim"}
        await asyncio.to_thread(rebalance, watching, 5)
        await first.stop()
    with History.open(history, read_only=True) as kept:
        causes = {one.generation: one.cause for one in kept.rebalances(GROUP)}
    assert {generation: causes[generation] for generation in range(1, 6)} == {
        1: Cause.MEMBER_JOINED,
        2: Cause.MEMBER_JOINED,
        3: Cause.MEMBER_LEFT,
        4: Cause.MEMBER_JOINED,
        5: Cause.SESSION_EXPIRED,
    }


def test_it_names_the_causes(tmp_path: Path) -> None:
    few = {"offsets.topic.num.partitions": "1"}
    with KafkaBroker(tmp_path / "kafka", properties=few, pom=OLDER_POM) as broker:
        asyncio.run(seen(broker.bootstrap, tmp_path / "history"))
