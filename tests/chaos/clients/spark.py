"""A Spark streaming query that is alone in its group. ``python -m tests.chaos.clients.spark``."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.chaos.clients.common import POLL_BOUND_S, TOPIC, Notes, Place, arguments, stopped_by_signal
from tests.chaos.history import History
from tests.support.spark_session import spark_session

TRIGGER = "1 second"


def run(place: Place, history: History, directory: Path) -> None:
    """Run the query until stopped. Raises what the query failed with."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)

    def write_down(batch: Any, _number: int) -> None:
        found: dict[int, list[int]] = defaultdict(list)
        for row in batch.select("partition", "offset").collect():
            found[row["partition"]].append(row["offset"])
        for partition, offsets in found.items():
            notes.processed(partition, sorted(offsets))

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with spark_session(directory, "local[1]") as spark:
        stream = (
            spark.readStream.format("ringleader")
            .option("kafka.bootstrap.servers", place.brokers)
            .option("ringleader.bootstrap.servers", place.bootstrap)
            .option("kafka.group.id", group)
            .option("subscribe", TOPIC)
            .option("members", 1)
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            stream.writeStream.foreachBatch(write_down)
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        try:
            while not stop.wait(0.5):
                if not query.isActive:
                    raise RuntimeError(f"the query ended: {query.exception()}")
        finally:
            call = history.begin("stop", POLL_BOUND_S)
            query.stop()
            call.ok()


def main() -> None:
    """Be one query."""
    place = arguments(__doc__)
    with History(place.history) as history, tempfile.TemporaryDirectory(prefix="chaos-spark-") as directory:
        run(place, history, Path(directory))


if __name__ == "__main__":
    main()
