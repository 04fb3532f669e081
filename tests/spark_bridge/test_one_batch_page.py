"""docs/spark-one-batch.md: a query's calls, as the page has them, and what was durable at each."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from ringleader.testing.coordinator import Coordinator
from tests.support.traced_source import TracedSource

PAGE = Path(__file__).parents[2] / "docs" / "spark-one-batch.md"

Row = tuple[str, str, str, str, str]
"""Process, call, batches in the offset log, batches in the commit log, the group's offset."""


def written() -> list[Row]:
    """The table of the page, without its last column."""
    lines = PAGE.read_text().split("| Process | Call | Offsets | Commits | Group | What is done |\n")[1]
    table = lines.split("\n\n")[0].splitlines()[1:]
    rows = [[cell.strip().replace("`", "") for cell in line.split("|")[1:6]] for line in table]
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def traced(file: Path) -> list[Row]:
    """The calls of Spark, until it asks for nothing new again and again."""
    driver = "python_streaming_source_runner"
    rows: list[Row] = []
    for line in file.read_text().splitlines():
        one = json.loads(line)
        in_driver = one["module"] == driver
        process = "driver-side worker" if in_driver else "task" if one["call"] == "read" else "planner worker"
        logs = (" ".join(map(str, one[name])) for name in ("offsets", "commits"))
        group = "" if one["group"] is None else str(one["group"])
        rows.append((process, one["call"], *logs, group))
    return [row for row, _ in groupby(rows)]


@pytest.mark.spark
def test_spark_calls_as_the_page_says(spark: Any, tmp_path: Path) -> None:
    spark.dataSource.register(TracedSource)
    checkpoint, file = tmp_path / "checkpoint", tmp_path / "trace"
    with Coordinator() as coordinator:
        coordinator.create_topic("t", 1)
        coordinator.produce("t", *[b"%d" % number for number in range(10)])
        options = {
            "kafka.bootstrap.servers": coordinator.bootstrap,
            "kafka.group.id": "g",
            "subscribe": "t",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "5",
            "parallelism": "1",
            "trace": str(file),
            "checkpoint": str(checkpoint),
        }
        frame = spark.readStream.format("traced").options(**options).load()
        query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    page, seen = written(), traced(file)
    assert seen[: len(page)] == page
    assert {row[1] for row in seen[len(page) :]} <= {
        "latestOffset",
        "latestOffset returns start",
        "reportLatestOffset",
        "stop",
    }
