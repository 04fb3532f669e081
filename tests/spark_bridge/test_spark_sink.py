"""The sink in Spark: a round trip of a batch and of a stream, reads by time and pattern, refusals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.produce.partitioner import partition_of_key
from ringleader.testing.coordinator import Coordinator

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PARTITIONS = 3


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"out-a": PARTITIONS, "out-b": 1, "in": 2}) as found:
        yield found


def reader(spark: Any, coordinator: Coordinator, **options: str) -> Any:
    return (
        spark.read.format("ringleader")
        .option("kafka.bootstrap.servers", coordinator.bootstrap)
        .options(**options)
    )


def writer(frame: Any, coordinator: Coordinator, **options: str) -> Any:
    return (
        frame.write.format("ringleader")
        .mode("append")
        .option("kafka.bootstrap.servers", coordinator.bootstrap)
        .options(**options)
    )


def test_a_batch_makes_the_round_trip(spark: Any, coordinator: Coordinator) -> None:
    frame = spark.range(0, 3_000, numPartitions=2).selectExpr(
        "concat('key-', id % 50) as key",
        "cast(id as string) as value",
        "if(id < 2900, 'out-a', 'out-b') as topic",
        "if(id % 50 = 7, 0, null) as partition",
        "if(id % 2 = 0, array(struct('h' as key, cast('x' as binary) as value)), null) as headers",
    )
    writer(frame, coordinator).save()
    back = reader(spark, coordinator, subscribePattern="out-.*", includeHeaders="true").load()
    rows = back.selectExpr(
        "cast(key as string) key", "int(string(value)) id", "topic", "partition", "headers"
    )
    found = rows.collect()
    assert sorted(row.id for row in found) == list(range(3_000))
    for row in found:
        assert row.topic == ("out-a" if row.id < 2_900 else "out-b")
        assert (row.headers is not None) == (row.id % 2 == 0)
        if row.topic == "out-a":
            by_key = partition_of_key(f"key-{row.id % 50}".encode(), PARTITIONS)
            assert row.partition == (0 if row.id % 50 == 7 else by_key)

    # By time: what is written from now on.
    time.sleep(0.01)
    now_ms = int(time.time() * 1000)
    writer(spark.range(1).selectExpr("'late' as value"), coordinator, topic="out-a").save()
    options = {"subscribePattern": "out-[ab]", "startingTimestamp": str(now_ms)}
    late = reader(spark, coordinator, startingOffsetsByTimestampStrategy="latest", **options).load()
    assert [bytes(row.value) for row in late.collect()] == [b"late"]


def test_a_stream_copies_a_topic(spark: Any, coordinator: Coordinator, tmp_path: Path) -> None:
    writer(spark.range(500).selectExpr("cast(id as string) as value"), coordinator, topic="in").save()
    stream = (
        spark.readStream.format("ringleader")
        .option("kafka.bootstrap.servers", coordinator.bootstrap)
        .option("kafka.group.id", "copier")
        .option("subscribe", "in")
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        stream.drop("topic", "partition")
        .writeStream.format("ringleader")
        .option("kafka.bootstrap.servers", coordinator.bootstrap)
        .option("topic", "out-a")
        .option("kafka.compression.type", "zstd")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    found = reader(spark, coordinator, subscribe="out-a").load().selectExpr("int(string(value)) id").collect()
    assert sorted(row.id for row in found) == list(range(500))


def test_what_a_sink_cannot_do_is_refused_when_the_query_is_planned(
    spark: Any, coordinator: Coordinator
) -> None:
    from pyspark.errors import PySparkException

    frame = spark.range(3)
    with pytest.raises(PySparkException, match="A sink needs a column 'value'"):
        writer(frame, coordinator, topic="out-a").save()
    with pytest.raises(PySparkException, match="Did you mean 'headers'"):
        writer(frame.selectExpr("'' as value", "id as header"), coordinator, topic="out-a").save()
    values = frame.selectExpr("cast(id as string) as value")
    with pytest.raises(PySparkException, match=r'set \.mode\("append"\)'):
        writer(values, coordinator, topic="out-a").mode("overwrite").save()


def test_what_a_job_brings_along_loads(spark: Any, coordinator: Coordinator) -> None:
    """Columns that no record has, and settings of Kafka's clients that have no effect here."""
    brought = {"kafka.acks": "0", "kafka.retries": "5", "includeHeaders": "true", "topic": "out-b"}
    frame = spark.range(3).selectExpr("cast(id as string) as value", "id", "id * 2 as amount")
    writer(frame, coordinator, **brought).save()
    brought = {"kafka.max.poll.records": "500", "kafka.fetch.max.bytes": "52428800", "subscribe": "out-b"}
    found = reader(spark, coordinator, **brought).load().selectExpr("string(value) as value").collect()
    assert sorted(row.value for row in found) == ["0", "1", "2"]
