"""The rate at which one task of the Spark sink writes, compared with confluent-kafka's producer: ``python -m
bench.spark_sink``.

Without Spark: both are handed the Arrow batches that a task gets. Values of 1 KB into two partitions of an
Apache Kafka broker, acks=all and idempotent, batches of 1 MB at most; in turn, round by round, after one to
warm up. The broker shares the machine, so the client's own CPU time is shown too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer as Confluent

from bench.report import median
from ringleader.clients.admin import Admin
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings
from ringleader.spark_bridge.sink.rows import sink_rows
from tests.interop.kafka import BENCH_JVM, KafkaBroker

PARTITIONS = 2
VALUE_BYTES = 1024
BATCH_ROWS = 10_000
"""The rows that Spark puts into an Arrow batch."""
ROUNDS = 4
BATCH_BYTES = 1_000_000


def arrow_batch(with_keys: bool) -> Any:
    """A batch as Spark hands it to a task."""
    half = VALUE_BYTES // 2
    columns = {"value": pa.array([os.urandom(half) + b"x" * half for _ in range(BATCH_ROWS)])}
    if with_keys:
        columns["key"] = pa.array([b"key-%012d" % number for number in range(BATCH_ROWS)])
    return pa.RecordBatch.from_pydict(columns)


def write_ours(broker: KafkaBroker, topic: str, batch: Any, batches: int) -> None:
    """As a task of the sink."""
    endpoint = Endpoint(((broker.host, broker.port),))
    producer = SinkProducer(SinkSettings(endpoint=endpoint, topic=topic, batch_bytes=BATCH_BYTES))
    for _ in range(batches):
        producer.write_rows(sink_rows(batch, False))
    producer.flush()
    producer.close()


def write_confluent(broker: KafkaBroker, topic: str, batch: Any, batches: int) -> None:
    """As a task would that hands each row to a client."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": BATCH_BYTES,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1_000_000,
    }
    producer = Confluent(settings)
    for _ in range(batches):
        values = batch.column("value").to_pylist()
        keys = batch.column("key").to_pylist() if "key" in batch.schema.names else itertools.repeat(None)
        for value, key in zip(values, keys, strict=False):
            try:
                producer.produce(topic, value, key)
            except BufferError:
                producer.poll(1)
                producer.produce(topic, value, key)
        producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("confluent-kafka did not deliver everything")


async def make_topics(bootstrap: str, names: list[str]) -> None:
    """Their old segments go while the benchmark runs."""
    configs = {"retention.bytes": "200000000", "segment.bytes": "100000000"}
    async with Admin(bootstrap, timeout_ms=30_000) as admin:
        for name in names:
            await admin.create_topic(name, PARTITIONS, configs=configs)


def main(rows: int) -> None:
    """Run it, print the medians in rows per second."""
    writers: dict[str, Callable[[KafkaBroker, str, Any, int], None]] = {
        "ours": write_ours,
        "confluent-kafka": write_confluent,
    }
    work = {"without keys": arrow_batch(False), "with keys": arrow_batch(True)}
    pairs = list(itertools.product(work, writers))
    found: dict[tuple[str, str], list[tuple[float, float]]] = {pair: [] for pair in pairs}
    with (
        tempfile.TemporaryDirectory() as directory,
        KafkaBroker(Path(directory) / "kafka", jvm=BENCH_JVM) as broker,
    ):
        topics = {pair: f"topic-{number}" for number, pair in enumerate(pairs)}
        asyncio.run(make_topics(broker.bootstrap, list(topics.values())))
        for turn in range(ROUNDS + 1):
            for pair in pairs:
                began_s, began_cpu_s = time.perf_counter(), time.process_time()
                writers[pair[1]](broker, topics[pair], work[pair[0]], rows // BATCH_ROWS)
                took = time.perf_counter() - began_s, time.process_time() - began_cpu_s
                if turn:
                    found[pair].append(took)
    for (kind, name), times in found.items():
        wall, cpu = (rows / median([took[at] for took in times]) for at in (0, 1))
        print(f"{kind:12} {name:16} {wall:10,.0f} rows/s {cpu:10,.0f} rows/s of the client's CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
