"""Format ``ringleader`` in Spark: found by its name, refused with sentences, read as a plain batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringleader.protocol.records import Record, build_batch
from ringleader.spark_bridge.committing import plan_read
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.broker import Broker, Partition

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

READS = {"kafka.group.id": "g", "subscribe": "t"}


def test_the_format_is_found_by_name_and_has_the_connectors_rows(spark: Any) -> None:
    from pyspark.errors import PySparkException

    reader = spark.readStream.format("RingLeader").option("kafka.bootstrap.servers", "127.0.0.1:1")
    reader = reader.option("subscribe", "t").option("Kafka.Group.Id", "g")
    assert reader.load().schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int>"
    )
    assert reader.option("includeHeaders", "true").load().schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    with pytest.raises(PySparkException, match="makes a new group for every query"):
        reader.option("groupIdPrefix", "mine").load()


def test_a_batch_read_gives_every_column(spark: Any) -> None:
    first = [
        Record(n, 1_700_000_000_000 + n, b"k%d" % n, b"v%d" % n, [("h", b"x")] * (n % 2)) for n in range(30)
    ]
    second = [Record(n, 1_700_000_000_000, None, None) for n in range(3)]
    topics = {"t": {0: Partition(build_batch(first)), 1: Partition(build_batch(second))}}
    with Broker(topics) as broker:
        frame = (
            spark.read.format("ringleader")
            .option("kafka.bootstrap.servers", f"127.0.0.1:{broker.port}")
            .option("subscribe", "t")
            .option("includeHeaders", "true")
            .option("minPartitions", "4")
            .load()
        )
        rows = frame.selectExpr("*", "unix_millis(timestamp) as ms").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [(0, n) for n in range(30)] + [
        (1, n) for n in range(3)
    ]
    seventh = rows[7].asDict(recursive=True)
    assert (seventh["key"], seventh["value"], seventh["topic"]) == (b"k7", b"v7", "t")
    assert (seventh["ms"], seventh["timestampType"]) == (1_700_000_000_007, 0)
    assert seventh["headers"] == [{"key": "h", "value": b"x"}]
    assert rows[6].headers is None
    assert (rows[30].key, rows[30].value) == (None, None)


def test_rows_have_the_columns_that_are_asked_for(spark: Any, tmp_path: Path) -> None:
    with Coordinator() as coordinator:
        coordinator.create_topic("t", 1)
        coordinator.produce("t", b"a", b"b", b"c")
        given = {"kafka.bootstrap.servers": coordinator.bootstrap, "startingOffsets": "earliest", **READS}
        reader = spark.read.format("ringleader").options(**given)
        numbers = reader.option("columns", "Offset").load()
        assert numbers.schema.simpleString() == "struct<offset:bigint>"
        assert numbers.count() == 3
        assert sorted(row.offset for row in numbers.collect()) == [0, 1, 2]
        with_headers = reader.option("columns", "headers, value").load()
        assert with_headers.columns == ["value", "headers"]
        assert sorted(with_headers.collect()) == [(b"a", None), (b"b", None), (b"c", None)]
        stream = spark.readStream.format("ringleader").options(**given, columns="partition,value").load()
        found: list[Any] = []
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path))
        writer = writer.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert sorted(found) == [(b"a", 0), (b"b", 0), (b"c", 0)]


def test_a_batch_read_with_nothing_to_read_has_no_rows(spark: Any) -> None:
    with Coordinator() as coordinator:

        def read(**options: str) -> list[Any]:
            given = {"kafka.bootstrap.servers": coordinator.bootstrap, "kafka.group.id": "g"} | options
            rows: list[Any] = spark.read.format("ringleader").options(**given).load().collect()
            return rows

        coordinator.create_topic("t", 2)
        assert read(subscribe="t") == [], "an empty topic"
        assert read(subscribePattern="none-.*") == []
        coordinator.produce("t", b"a", b"b")
        nothing = json.dumps({"t": {"0": 1, "1": 0}})
        assert read(subscribe="t", startingOffsets=nothing, endingOffsets=nothing) == [], "an empty range"
        at_its_end = plan_read({"kafka.bootstrap.servers": coordinator.bootstrap} | READS)
        at_its_end.commit()
        assert read(subscribe="t", startingOffsets="committed") == [], "nothing new for the group"
