"""The Spark source on Apache Kafka: a stream beside a plain member, restarts, and batch reads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from tests.interop.secured import PASSWORD, USER, Secured, make_topics
from tests.support.spark_session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TOPIC, GROUP = "spark-source", "spark-source"
PARTITIONS = 4
PATIENCE_S = 120.0

Row = tuple[int, int]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


class Query:
    """One streaming query over TLS and SCRAM; stopped at the end of its block."""

    def __init__(self, spark: Any, secured: Secured, checkpoint: Path) -> None:
        self.seen: Counter[Row] = Counter()
        stream = spark.readStream.format("ringleader").options(**options(secured))
        stream = stream.option("startingOffsets", "earliest").option("members", "2")
        stream = stream.option("kafka.heartbeat.interval.ms", "200")
        self._writer = (
            stream.load().writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(self._keep)
        )
        self.handle: Any = None

    def __enter__(self) -> Query:
        self.handle = self._writer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.handle.stop()

    def _keep(self, frame: Any, _batch_id: int) -> None:
        self.seen.update((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def options(secured: Secured) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "kafka.bootstrap.servers": secured.broker.address("SECURE"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
        "kafka.ssl.ca.location": str(secured.certificates.authority),
        "kafka.group.id": GROUP,
        "subscribe": TOPIC,
    }


class PlainMember:
    """A `GroupConsumer` on a thread of its own; commits what it has seen."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: Counter[Row] = Counter()
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._consume()))

    def __enter__(self) -> PlainMember:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)

    async def _consume(self) -> None:
        consumer = GroupConsumer(
            self._bootstrap, GROUP, [TOPIC], auto_offset_reset="earliest", heartbeat_interval_ms=200
        )
        async with consumer:
            while not self._stop.is_set():
                for batch in await consumer.getmany(timeout_s=0.1):
                    self.seen.update((batch.partition, record.offset) for record in batch.records)


def produce(bootstrap: str, start: int, count: int) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(start, start + count):
                await producer.send(TOPIC, b"v%d" % number, partition=number % PARTITIONS)

    asyncio.run(send())


def every_row(count: int) -> Counter[Row]:
    return Counter((number % PARTITIONS, number // PARTITIONS) for number in range(count))


def committed(bootstrap: str) -> int:
    async def ask() -> int:
        async with Admin(bootstrap) as admin:
            return sum(place.offset for place in (await admin.group_offsets(GROUP)).values())

    return asyncio.run(ask())


def members(bootstrap: str) -> int:
    async def ask() -> int:
        async with Admin(bootstrap) as admin:
            (found,) = await admin.describe_groups([GROUP])
        return len(found.members)

    return asyncio.run(ask())


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.1)


def test_a_stream_shares_a_group_restarts_and_is_read_in_batches(
    spark: Any, secured: Secured, tmp_path: Path
) -> None:
    bootstrap = secured.broker.bootstrap
    asyncio.run(make_topics(bootstrap, {TOPIC: PARTITIONS}))
    produce(bootstrap, 0, 400)
    with Query(spark, secured, tmp_path) as query:
        query.handle.processAllAvailable()
        assert query.seen == every_row(400)
        until(lambda: committed(bootstrap) == 400, "the first rows committed")
        assert members(bootstrap) == 2
        with PlainMember(bootstrap) as plain:
            until(lambda: members(bootstrap) == 3, "three members")
            total = 400
            while not plain.seen:
                produce(bootstrap, total, 40)
                total += 40
                time.sleep(0.2)
                assert total < 40_000, "the plain member gets no records"
        until(lambda: members(bootstrap) == 2, "the plain member gone")
        produce(bootstrap, total, 40)
        total += 40
        until(lambda: committed(bootstrap) == total, "everything committed")
        assert query.seen + plain.seen == every_row(total), "each record once"
    until(lambda: members(bootstrap) == 0, "the query gone at once")
    produce(bootstrap, total, 100)
    with Query(spark, secured, tmp_path) as again:
        again.handle.processAllAvailable()
        assert again.seen == every_row(total + 100) - every_row(total)
        until(lambda: committed(bootstrap) == total + 100, "the second run committed")
    produce(bootstrap, total + 100, 40)
    read = spark.read.format("ringleader").options(**options(secured))
    assert read.load().count() == total + 140
    assert read.option("startingOffsets", "committed").load().count() == 40
    assert members(bootstrap) == 0
