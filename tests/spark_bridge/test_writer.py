"""The sink as Spark calls it, without a JVM: options, schema, Arrow batches of every shape."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from ringleader.clients.produce.errors import ProduceError
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.options.build import OptionsError
from ringleader.spark_bridge.options.sink import sink_options
from ringleader.spark_bridge.sink import produce
from ringleader.spark_bridge.sink.produce import SinkSettings
from ringleader.spark_bridge.sink.rows import check_schema
from ringleader.spark_bridge.source import RingleaderDataSource
from ringleader.spark_bridge.stream_writer import RingleaderStreamWriter
from ringleader.spark_bridge.writer import RingleaderWriter, TaskRows
from ringleader.testing.coordinator import Coordinator

GOOD = {"kafka.bootstrap.servers": "a:9092", "topic": "t"}
HEADER = StructType().add("key", StringType()).add("value", BinaryType())
ROW = StructType().add("value", StringType())


def test_defaults_are_safe() -> None:
    chosen = SinkSettings.of(sink_options(GOOD))
    assert (chosen.acks, chosen.idempotent, chosen.max_in_flight, chosen.topic) == (-1, True, 5, "t")
    one = SinkSettings.of(sink_options(GOOD | {"kafka.acks": "1"}))
    assert (one.acks, one.idempotent) == (1, False)
    assert (
        sink_options(GOOD | {"KAFKA.ACKS": "-1", "Kafka.Compression.Type": "ZSTD"}).compression_type == "zstd"
    )
    assert sink_options(GOOD | {"checkpointLocation": "/x", "queryName": "q"}).topic == "t"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": "a"}, "'subscribe' belongs to a source"),
        ({"kafka.group.id": "g"}, "a sink is in no group"),
        ({"path": "x"}, "the option 'topic'"),
        ({"topic": "a b"}, "cannot be the name of a topic"),
        ({"kafka.transactional.id": "x"}, "writes at least once"),
        ({"kafka.key.serializer": "x"}, "binary or string"),
        ({"kafka.partitioner.class": "x"}, "column 'partition'"),
        ({"kafka.acks": "2"}, "'all' or '1'"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "needs kafka.acks=all"),
        ({"kafka.max.in.flight.requests.per.connection": "6"}, r"\(6\) must not exceed 5"),
        ({"kafka.compression.type": "brotli"}, "zstd"),
        ({"kafka.batch.size": "0"}, "greater than 0"),
        ({"kafka.compresion.type": "zstd"}, r"Did you mean 'kafka\.compression\.type'"),
        ({"kafka.bootstrap.servers": ""}, "names no server"),
    ],
)
def test_what_cannot_hold_is_refused_with_a_sentence(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        sink_options(GOOD | given)


def test_every_column_that_a_sink_takes(caplog: pytest.LogCaptureFixture) -> None:
    schema = StructType().add("key", BinaryType()).add("value", StringType()).add("topic", StringType())
    schema.add("partition", IntegerType()).add("headers", ArrayType(HEADER))
    check_schema(schema, None)
    copied = (
        schema.add("offset", LongType()).add("timestamp", TimestampType()).add("timestampType", IntegerType())
    )
    check_schema(copied, None)
    check_schema(ROW, "t")
    assert not caplog.records
    check_schema(copied.add("amount", LongType()), None)
    assert "columns that are not written: amount; a sink takes key, value" in caplog.text


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (StructType().add("key", StringType()), "needs a column 'value'"),
        (StructType().add("value", LongType()), "'value' is bigint; it must be binary or string"),
        (StructType().add("value", StringType()).add("partition", LongType()), "it must be int"),
        (StructType().add("value", StringType()).add("headers", StringType()), "array<struct"),
        (StructType().add("value", StringType()).add("header", LongType()), "Did you mean 'headers'"),
        (StructType().add("value", StringType()).add("Key", StringType()), "Did you mean 'key'"),
    ],
)
def test_a_schema_that_cannot_be_written_is_a_sentence(schema: StructType, expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        check_schema(schema, "t")
    with pytest.raises(OptionsError, match="option 'topic' or a column 'topic'"):
        check_schema(schema, None)


def test_a_topic_cannot_be_overwritten_but_complete_mode_writes_again() -> None:
    source = RingleaderDataSource(GOOD)
    with pytest.raises(OptionsError, match="cannot be overwritten"):
        source.writer(ROW, True)
    assert isinstance(source.writer(ROW, False), RingleaderWriter)
    assert isinstance(source.streamWriter(ROW, True), RingleaderStreamWriter)


def test_commit_and_abort_say_what_was_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ringleader.spark")
    batch, stream = RingleaderWriter(GOOD, ROW, False), RingleaderStreamWriter(GOOD, ROW)
    batch.commit([TaskRows(3, 100), TaskRows(4, 50)])
    batch.abort([TaskRows(3, 100), None])
    stream.commit([TaskRows(1, 9)], 7)
    stream.abort([None], 8)
    assert caplog.messages == [
        "wrote 7 rows (150 bytes of batches) in 2 tasks",
        "a write failed; 3 rows (100 bytes of batches) in 1 tasks of finished tasks stay in their topics",
        "batch 7 wrote 1 rows (9 bytes of batches) in 1 tasks",
        "batch 8 failed; 0 rows (0 bytes of batches) in 0 tasks of finished tasks stay in their topics",
    ]


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 2}) as found:
        yield found
    fetch.close_clusters()
    produce.close_clusters()


def read(coordinator: Coordinator) -> list[dict[str, Any]]:
    given = {"kafka.bootstrap.servers": coordinator.bootstrap, "subscribe": "t", "includeHeaders": "true"}
    reader = RingleaderBatchReader(given)
    return [row for task in reader.partitions() for arrow in reader.read(task) for row in arrow.to_pylist()]


@pytest.mark.parametrize("large", [False, True])
def test_a_task_writes_arrow_batches_of_every_shape(coordinator: Coordinator, large: bool) -> None:
    """As Spark does it: the writer travels to the executor, which hands it an iterator of batches."""
    text, binary = (pa.large_string(), pa.large_binary()) if large else (pa.string(), pa.binary())
    headers = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", binary)]))
    some_headers = [[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None, []]
    batches = [
        pa.RecordBatch.from_pydict({"value": pa.array(["a", "b", None], text)}),
        pa.RecordBatch.from_pydict({"value": pa.array([], binary)}),
        pa.RecordBatch.from_pydict(
            {
                "value": pa.array([b"c", b"d", b"e"], binary),
                "key": pa.array(["k", None, "l"], text),
                "partition": pa.array([1, None, None], pa.int32()),
                "headers": pa.array(some_headers, headers),
                "offset": pa.array([9, 9, 9], pa.int64()),
            }
        ).slice(0, 2),
    ]
    given = GOOD | {"kafka.bootstrap.servers": coordinator.bootstrap}
    writer = pickle.loads(pickle.dumps(RingleaderWriter(given, ROW, False)))
    written = writer.write(iter(batches))
    assert (written.rows, written.bytes > 0) == (5, True)
    rows = read(coordinator)
    assert sorted((row["value"] or b"", row["key"]) for row in rows) == [
        (b"", None),
        (b"a", None),
        (b"b", None),
        (b"c", b"k"),
        (b"d", None),
    ]
    (keyed,) = [row for row in rows if row["key"] == b"k"]
    assert keyed["partition"] == 1
    assert keyed["headers"] == [{"key": "h", "value": b"1"}, {"key": "n", "value": None}]


def test_a_task_that_fails_closes_what_it_opened(coordinator: Coordinator) -> None:
    given = GOOD | {"kafka.bootstrap.servers": coordinator.bootstrap}
    writer = RingleaderWriter(given, ROW, False)
    good = pa.RecordBatch.from_pydict({"value": pa.array(["a"] * 10)})
    bad = pa.RecordBatch.from_pydict({"value": pa.array(["a"]), "partition": pa.array([5], pa.int32())})
    with pytest.raises(ProduceError, match="partition 5 of topic t, which has partitions 0 to 1"):
        writer.write(iter([good, bad]))
    assert writer.write(iter([good])).rows == 10
    # Nothing of the failed task had filled a batch.
    assert [row["value"] for row in read(coordinator)] == [b"a"] * 10


def test_older_versions_of_pyspark_are_told_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.0 has neither the calls of the stream nor the base class of its sink."""
    for module in ("reader", "stream_writer"):
        monkeypatch.setitem(sys.modules, f"ringleader.spark_bridge.{module}", None)
    source = RingleaderDataSource(GOOD)
    with pytest.raises(OptionsError, match=r"needs PySpark 4\.1 or newer.*foreachBatch"):
        source.streamWriter(ROW, False)
    assert isinstance(source.writer(ROW, False), RingleaderWriter)
    reader = RingleaderDataSource({"kafka.bootstrap.servers": "x:1"}).streamReader(ROW)
    # Spark hides the exceptions of `streamReader` behind an error of its own.
    with pytest.raises(OptionsError, match=r"needs PySpark 4\.2 or newer.*spark\.read works"):
        reader.initialOffset()
