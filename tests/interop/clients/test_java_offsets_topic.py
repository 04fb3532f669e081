"""`__consumer_offsets` and the journal of a daemon, read by Kafka's own console consumer and formatters."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition

from ringleader.coordinator.groups.routing import partition_for
from tests.interop.clients.team import TOPIC
from tests.interop.kafka import tool
from tests.support.daemon import Daemon

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer."
GROUP = "read-by-formatters"


async def _read(daemon: Daemon, topic: str, partition: int, count: int, *more: str) -> str:
    arguments = ["--topic", topic, "--partition", str(partition), "--offset", "earliest"]
    done = await asyncio.to_thread(
        tool,
        CONSOLE,
        "--bootstrap-server",
        daemon.bootstrap,
        *arguments,
        "--max-messages",
        str(count),
        *more,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def _decoded(text: str) -> list[dict[str, Any]]:
    """The formatters write one object behind the other, without a line end."""
    decoder, found, at = json.JSONDecoder(), [], text.find("{")
    while at >= 0:
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = text.find("{", end)
    return found


async def test_kafkas_formatters_read_what_groups_committed_and_are(daemon: Daemon) -> None:
    member = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=daemon.bootstrap, group_id=GROUP, enable_auto_commit=False
    )
    await member.start()
    try:
        await member.commit({AioPartition(TOPIC, partition): 40 + partition for partition in (0, 1)})
        where = partition_for(GROUP)
        # The group's record, and an offset for each of two partitions.
        text = await _read(
            daemon, "__consumer_offsets", where, 3, "--formatter", f"{FORMATTERS}OffsetsMessageFormatter"
        )
        offsets = {
            (one["key"]["data"]["topic"], one["key"]["data"]["partition"]): one["value"]["data"]["offset"]
            for one in _decoded(text)
            if one["key"]["data"]["group"] == GROUP
        }
        assert offsets == {(TOPIC, 0): 40, (TOPIC, 1): 41}
        text = await _read(
            daemon,
            "__consumer_offsets",
            where,
            3,
            "--formatter",
            f"{FORMATTERS}GroupMetadataMessageFormatter",
        )
        [group] = [one for one in _decoded(text) if one["key"]["data"]["group"] == GROUP]
        assert group["value"]["data"]["protocolType"] == "consumer"
        [found] = group["value"]["data"]["members"]
        assert found["clientHost"] == "/127.0.0.1"
    finally:
        await member.stop()
    entries = _decoded(await _read(daemon, "__ringleader_journal", 0, 2))
    assert [one.get("event", one["kind"]) for one in entries] == ["started", "rebalance"]
