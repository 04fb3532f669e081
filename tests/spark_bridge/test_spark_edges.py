"""The messages and the end of a query in real Spark at the edges: no topic, wrong options, one batch only."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.spark_bridge.moving import starting_offsets
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.test_moving import checkpoint
from tests.spark_bridge.test_spark_streams import (
    PARTITIONS,
    PATIENCE_S,
    Query,
    Rows,
    every_row,
    lag,
    members,
    produce,
    until,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator() as found:
        yield found


def failure(query: Query) -> str:
    """The error that the query failed with."""
    from pyspark.errors import StreamingQueryException

    with query, pytest.raises(StreamingQueryException) as failed:
        query.handle.awaitTermination(PATIENCE_S)
    return str(failed.value)


def reports(query: Query) -> list[dict[str, Any]]:
    """`latestOffset` of the source in each progress with rows."""
    found = [progress for progress in query.handle.recentProgress if progress["numInputRows"]]
    values = [progress["sources"][0]["latestOffset"] for progress in found]
    return [json.loads(value) if isinstance(value, str) else value for value in values]


def test_a_topic_that_does_not_exist_fails_the_query_unless_it_is_to_wait(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    error = failure(Query(spark, coordinator, "g", tmp_path / "a", availableNow="true"))
    assert "no such topic: t. Create it" in error
    error = failure(Query(spark, coordinator, "g", tmp_path / "b"))
    assert "no such topic: t. Create it" in error
    with Query(spark, coordinator, "g", tmp_path / "c", waitForTopics="true") as query:
        until(lambda: members(coordinator, "g") == 1, "the query waits as a member")
        assert query.handle.isActive


def test_once_is_refused_as_its_batch_could_not_be_committed(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 40)
    query = Query(spark, coordinator, "g", tmp_path, once="true")
    assert "Use trigger(availableNow=True)" in failure(query)
    assert not query.rows.batches


def test_wrong_options_of_a_stream_come_out_clean(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    frame = (
        spark.readStream.format("ringleader")
        .option("kafka.bootstrap.servers", coordinator.bootstrap)
        .option("subscribe", "t")
        .load()
    )
    handle = frame.writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(Rows()).start()
    with pytest.raises(StreamingQueryException) as failed:
        handle.awaitTermination(PATIENCE_S)
    assert "The option 'kafka.group.id' is required" in str(failed.value)
    assert "UnboundLocalError" not in str(failed.value)


def test_the_lag_in_the_progress_is_what_the_batch_leaves(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 400)
    with Query(spark, coordinator, "g", tmp_path, maxOffsetsPerTrigger="300") as query:
        query.handle.processAllAvailable()
        first, second = reports(query)
        assert query.rows.seen == every_row(400)
        until(lambda: lag(coordinator, "g") == 0, "all committed")
    assert (first["lag"], second["lag"]) == (100, 0)
    assert first["source"] == "ringleader[t, group g]"
    names = ("minOffsetsBehindLatest", "avgOffsetsBehindLatest", "maxOffsetsBehindLatest")
    assert [first[name] for name in names] == [25, 25.0, 25]


def test_a_reset_of_the_group_into_the_last_batch_is_run_again(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 400)
    with Query(spark, coordinator, "g", tmp_path, availableNow="true") as query:
        assert query.handle.awaitTermination(PATIENCE_S)
        assert query.rows.seen == every_row(400)
    until(lambda: members(coordinator, "g") == 0, "the query gone")

    async def reset() -> None:
        async with Admin(coordinator.bootstrap) as admin:
            await admin.set_group_offsets("g", {("t", 0): 0, ("t", 1): 60})

    asyncio.run(reset())
    with Query(spark, coordinator, "g", tmp_path, availableNow="true") as again:
        assert again.handle.awaitTermination(PATIENCE_S)
    rerun = [(0, offset) for offset in range(100)] + [(1, offset) for offset in range(60, 100)]
    assert again.rows.seen == Counter(rerun)
    assert lag(coordinator, "g") == 0


def stream(spark: Any, coordinator: Coordinator, topic: str, group: str) -> Any:
    options = {"kafka.bootstrap.servers": coordinator.bootstrap, "kafka.group.id": group, "members": "1"}
    reader = spark.readStream.format("ringleader").options(**options, startingOffsets="earliest")
    return reader.option("subscribe", topic).load()


def test_a_dataframe_joined_with_itself_is_refused(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 40)
    frame = stream(spark, coordinator, "t", "g")
    joined = frame.alias("a").join(frame.alias("b"), on="value").select("a.partition", "a.offset")
    writer = joined.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    handle = writer.foreachBatch(Rows()).start()
    with pytest.raises(StreamingQueryException, match="this DataFrame is being read by another source"):
        handle.awaitTermination(PATIENCE_S)
    # One query of it after the other is what everybody does.
    rows = Rows()
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "alone")).foreachBatch(rows)
    for _ in range(3):
        handle = writer.start()
        handle.processAllAvailable()
        handle.stop()
    assert rows.seen == every_row(40)


def test_quiet_sources_do_not_hold_up_the_batches_of_others(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    for topic in ("t", "quiet", "silent"):
        coordinator.create_topic(topic, PARTITIONS)
    frame = stream(spark, coordinator, "t", "g")
    for topic in ("quiet", "silent"):
        frame = frame.union(stream(spark, coordinator, topic, topic))
    rows = Rows()
    handle = frame.writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(rows).start()
    for number in range(3):
        produce(coordinator, 40 * number, 40)
        handle.processAllAvailable()
    handle.stop()
    assert rows.seen == every_row(120)
    batches = [progress for progress in handle.recentProgress if progress["numInputRows"]]
    latest_offset_ms = sorted(progress["durationMs"]["latestOffset"] for progress in batches)
    assert latest_offset_ms[0] < 250, "both quiet sources blocked, one after the other"


def test_asynchronous_progress_tracking_leaves_spark_s_logs_behind_but_not_the_group(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 400)
    query = Query(spark, coordinator, "g", tmp_path, maxOffsetsPerTrigger="100")
    late = {"asyncProgressTrackingEnabled": "true", "asyncProgressTrackingCheckpointIntervalMs": "600000"}
    handle = query.frame.writeStream.format("noop").options(**late, checkpointLocation=str(tmp_path)).start()
    handle.processAllAvailable()
    until(lambda: lag(coordinator, "g") == 0, "everything committed to the group")
    handle.stop()
    assert sum(progress["numInputRows"] for progress in handle.recentProgress) == 400
    assert sorted(path.name for path in (tmp_path / "commits").glob("[0-9]*")) == ["0"]
    until(lambda: members(coordinator, "g") == 0, "the member gone")
    produce(coordinator, 400, 40)
    with Query(spark, coordinator, "g", tmp_path) as again:
        again.handle.processAllAvailable()
        assert again.rows.seen == every_row(440) - every_row(400)
        until(lambda: lag(coordinator, "g") == 0, "the new rows committed")


def test_topics_and_partitions_that_come_are_read_at_once_by_as_many_members(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    options = {"members": "auto", "parallelism": "4", "waitForTopics": "true"}
    never = {"kafka.metadata.max.age.ms": "600000"}
    with Query(spark, coordinator, "g", tmp_path, **options | never) as query:
        until(lambda: members(coordinator, "g") == 1, "one member that waits for the topic")
        coordinator.create_topic("t", 2)
        until(lambda: members(coordinator, "g") == 2, "a member for each partition")

        async def grow(partitions: int) -> None:
            async with Admin(coordinator.bootstrap) as admin:
                await admin.create_partitions("t", partitions)

        asyncio.run(grow(PARTITIONS))
        produce(coordinator, 0, 40)
        until(lambda: members(coordinator, "g") == PARTITIONS, "a member for each partition again")
        until(lambda: query.rows.seen == every_row(40), "the rows of all partitions, once")
        # No more members than `parallelism`: those that there are get the new partition.
        asyncio.run(grow(PARTITIONS + 1))
        coordinator.produce("t", b"x", partition=PARTITIONS)
        until(lambda: query.rows.seen[PARTITIONS, 0] == 1, "the row of the last partition")
        assert members(coordinator, "g") == PARTITIONS


def test_positions_of_a_deleted_topic_leave_the_checkpoint(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    options = {"subscribePattern": "[tu]", "failOnDataLoss": "false", "availableNow": "true"}
    coordinator.create_topic("t", PARTITIONS)
    coordinator.create_topic("u", 1)
    coordinator.produce("u", b"x")

    def positions() -> dict[str, Any]:
        produce(coordinator, 0, 40)
        with Query(spark, coordinator, "g", tmp_path, **options) as query:
            assert query.handle.awaitTermination(PATIENCE_S)
        newest = max((int(path.name), path) for path in (tmp_path / "offsets").glob("[0-9]*"))[1]
        found: dict[str, Any] = json.loads(newest.read_text().splitlines()[-1])["p"]
        return found

    assert positions().keys() == {"t", "u"}

    async def delete() -> None:
        async with Admin(coordinator.bootstrap) as admin:
            await admin.delete_topics(["u"])

    asyncio.run(delete())
    assert positions() == {"t": dict.fromkeys("0123", 20)}


def test_assigned_partitions_are_committed_for_a_group_without_members(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    total = 0
    for _ in range(2):
        produce(coordinator, total, 40)
        total += 40
        rows = Rows()
        options = {"kafka.bootstrap.servers": coordinator.bootstrap, "kafka.group.id": "g"}
        options |= {"assign": '{"t":[1,3]}', "startingOffsets": "earliest"}
        frame = spark.readStream.format("ringleader").options(**options).load()
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(rows)
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)
        new = every_row(total) - every_row(total - 40)
        assert rows.seen == Counter(row for row in new if row[0] in (1, 3))
        assert members(coordinator, "g") == 0

    async def ask() -> dict[int, int]:
        async with Admin(coordinator.bootstrap) as admin:
            return {tp[1]: at.offset for tp, at in (await admin.group_offsets("g")).items()}

    assert asyncio.run(ask()) == {1: 20, 3: 20}


def test_a_query_of_the_connector_moves_in(spark: Any, coordinator: Coordinator, tmp_path: Path) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 80)
    ended = json.dumps({"t": {str(number): number for number in range(PARTITIONS)}})
    # The files that Spark's own connector would have left.
    old = checkpoint(tmp_path / "old", "{}", ended, finished=2)
    (old / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    error = failure(Query(spark, coordinator, "g", old))
    assert "that of Spark's own Kafka connector" in error
    assert "ringleader-spark-offsets" in error
    offsets, _ = starting_offsets(old)
    query = Query(spark, coordinator, "g", tmp_path / "new", startingOffsets=offsets, availableNow="true")
    with query:
        assert query.handle.awaitTermination(PATIENCE_S)
    assert query.rows.seen == Counter(row for row in every_row(80) if row[1] >= row[0])
