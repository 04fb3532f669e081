"""Fetching as a Spark task does: ours beside confluent-kafka's batch `consume`, to the same Arrow columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, TopicPartition

from bench.plan import RINGLEADER, in_turn
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.fetching.batches import record_batches
from ringleader.spark_bridge.fetching.columns import answer_batches
from ringleader.spark_bridge.fetching.fetch import close_clusters, read_slice
from ringleader.spark_bridge.rows import arrow_schema
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange

CONFLUENT = "confluent-kafka"
PARTITIONS = 2
_AT_ONCE = 5_000
_TIMEOUT_S = 30.0

Job = dict[str, Any]


def ours(address: tuple[str, int], topic: str, ends: list[int]) -> Iterator[pa.RecordBatch]:
    """As the tasks of the source do it."""
    settings = TaskSettings(Endpoint((address,)))
    return read_slice(settings, [SliceRange(topic, number, 0, end) for number, end in enumerate(ends)])


def confluents(address: tuple[str, int], topic: str, ends: list[int]) -> Iterator[pa.RecordBatch]:
    """The fastest way through confluent-kafka: librdkafka fetches and decodes ahead in its own threads."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"{address[0]}:{address[1]}",
            "group.id": "bench",
            "enable.auto.commit": False,
            "check.crcs": True,
            "queued.max.messages.kbytes": 65_536,
            "fetch.max.bytes": 8 * 1024 * 1024,
            "max.partition.fetch.bytes": 4 * 1024 * 1024,
        }
    )
    schema = arrow_schema(False)
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(len(ends))])
        left = sum(ends)
        while left > 0:
            found = consumer.consume(min(_AT_ONCE, left), _TIMEOUT_S)
            if not found:
                raise RuntimeError(f"confluent-kafka: {left} records have not come")
            left -= len(found)
            yield _columns(found, schema)
    finally:
        consumer.close()


def _columns(found: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    stamps = [message.timestamp() for message in found]
    arrays = [
        [message.key() for message in found],
        [message.value() for message in found],
        [message.topic() for message in found],
        [message.partition() for message in found],
        [message.offset() for message in found],
        [1000 * stamp for _, stamp in stamps],
        [int(kind == TIMESTAMP_LOG_APPEND_TIME) for kind, _ in stamps],
    ]
    columns = [pa.array(values, kind) for values, kind in zip(arrays, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


WAYS: dict[str, Callable[[tuple[str, int], str, list[int]], Iterator[pa.RecordBatch]]] = {
    RINGLEADER: ours,
    CONFLUENT: confluents,
}


def profile(address: tuple[str, int], topic: str, ends: list[int], rounds: int) -> Job:
    """CPU microseconds for each record of our fetch, step by step; the least of the rounds."""
    settings = TaskSettings(Endpoint((address,)))
    ranges = [SliceRange(topic, number, 0, end) for number, end in enumerate(ends)]
    steps: dict[str, list[float]] = {"receive": [], "check": [], "columns": []}
    for _ in range(rounds):
        spent = dict.fromkeys(steps, 0.0)
        answers = fetch._SliceFetcher(settings, ranges).answers()
        while True:
            begin_s = time.process_time()
            answer = next(answers, None)
            spent["receive"] += time.process_time() - begin_s
            if answer is None:
                break
            part, data = answer.part, answer.data.records or b""
            begin_s = time.process_time()
            list(record_batches(data, answer.start, part.end))
            found_s = time.process_time()
            for _batch in answer_batches(topic, 0, data, answer.start, part.end, include_headers=False):
                pass
            spent["check"] += found_s - begin_s
            # The second way does the first one's work again.
            spent["columns"] += time.process_time() - found_s - (found_s - begin_s)
        for name, seconds in spent.items():
            steps[name].append(seconds * 1e6 / sum(ends))
    return {name: min(found) for name, found in steps.items()}


def measure(address: tuple[str, int], topics: dict[str, tuple[str, list[int]]], rounds: int) -> list[Job]:
    """Codec -> topic and its log ends; each way in turn, one round more first that does not count."""
    found: list[Job] = []
    for number in range(-1, rounds):
        for codec, (topic, ends) in topics.items():
            for name, way in in_turn(tuple(WAYS.items()), number):
                begin_s, begin_cpu_s = time.monotonic(), time.process_time()
                rows = sum(batch.num_rows for batch in way(address, topic, ends))
                seconds, cpu_s = time.monotonic() - begin_s, time.process_time() - begin_cpu_s
                if rows != sum(ends):
                    raise RuntimeError(f"{name} read {rows} of {sum(ends)} records")
                one = {"what": "fetch", "codec": codec, "name": name, "round": number}
                found.append(one | {"rows_per_s": rows / seconds, "rows_per_cpu_s": rows / cpu_s})
    close_clusters()
    return found
