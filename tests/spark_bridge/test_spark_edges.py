"""What a query in real Spark says and does at the edges: no topic, wrong options, one batch only."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.testing.coordinator import Coordinator
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
    """What the query failed with."""
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
    said = failure(Query(spark, coordinator, "g", tmp_path / "a", availableNow="true"))
    assert "no such topic: t. Create it" in said
    said = failure(Query(spark, coordinator, "g", tmp_path / "b"))
    assert "no such topic: t. Create it" in said
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
