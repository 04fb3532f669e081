"""`auto_offset_reset="by_duration:..."` begins where Java's consumer does, on Kafka and on the daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ringleader.clients.consumer import PartitionConsumer
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol import messages as kafka
from ringleader.protocol.records import Record, build_batch
from tests.interop.kafka import KafkaBroker, tool
from tests.support.served import connected

AGES_S = (3 * 86_400, 7_200, 1_800, 600)
BEGINS = {"P7D": 0, "P2D": 1, "PT1H": 2, "PT20M0.5S": 3}
PATIENCE_S = 60.0


@asynccontextmanager
async def kafka_broker(directory: Path) -> AsyncIterator[tuple[str, int]]:
    with KafkaBroker(directory) as broker:
        yield broker.host, broker.port


@asynccontextmanager
async def daemon(directory: Path) -> AsyncIterator[tuple[str, int]]:
    async with Node(Settings(listen="127.0.0.1:0", data_dir=directory)) as node:
        yield node.host, node.port


async def _fill(host: str, port: int) -> None:
    async with connected(host, port) as client:
        topic = kafka.CreateTopicsRequestCreatableTopic("t", 1, 1)
        made = await client.call(kafka.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert not made.topics[0].error_code
        now_ms = time.time_ns() // 10**6
        for age_s in AGES_S:
            batch = build_batch([Record(0, now_ms - age_s * 1_000, None, b"%d" % age_s)])
            data = kafka.ProduceRequestPartitionProduceData(0, batch)
            request = kafka.ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[kafka.ProduceRequestTopicProduceData("t", partition_data=[data])],
            )
            async with asyncio.timeout(PATIENCE_S):
                while (await client.call(request, 9)).responses[0].partition_responses[0].error_code:
                    pass


def _java(bootstrap: str, duration: str, count: int) -> list[str]:
    done = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "t", "--max-messages", str(count)),
        *("--command-property", f"auto.offset.reset=by_duration:{duration}"),
        timeout_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("where", [kafka_broker, daemon])
async def test_it_begins_where_java_does(where: type, tmp_path: Path) -> None:
    async with where(tmp_path / "data") as (host, port):
        bootstrap = f"{host}:{port}"
        await _fill(host, port)
        for duration, begin in BEGINS.items():
            async with PartitionConsumer(
                bootstrap, [("t", 0)], auto_offset_reset=f"by_duration:{duration}"
            ) as one:
                assert await one.position(("t", 0)) == begin, duration
        values = [str(age_s) for age_s in AGES_S]
        for duration in ("P2D", "PT1H"):
            read = await asyncio.to_thread(_java, bootstrap, duration, len(AGES_S) - BEGINS[duration])
            assert read == values[BEGINS[duration] :]
        async with PartitionConsumer(bootstrap, [("t", 0)], auto_offset_reset="by_duration:PT10S") as one:
            assert await one.position(("t", 0)) == len(AGES_S)
