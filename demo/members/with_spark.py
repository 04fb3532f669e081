"""Two Spark streaming queries in one application. ``python -m demo.members.with_spark``.

The first is a stateless member of the shared group, beside members that use other libraries. The second is
alone in its group, reads everything, and keeps flights, cancellations and mean departure delay by carrier:
state is right there because no partition ever moves away.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from demo import plan
from demo.ledger import Ledger

# The columns of a departure that the queries need.
DEPARTURE = StructType([StructField("carrier", StringType()), StructField("dep_delay", IntegerType())])
# Rows of one batch: the shared member stays quick to give up its partitions, the lone query need not.
SHARED_MAX_OFFSETS = 20_000
ALONE_MAX_OFFSETS = 80_000
# Half the cost of a small batch; a local directory does not need the safer manager.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def session() -> SparkSession:
    """A small local session: loopback only, no page, one shuffle partition for sixteen carriers."""
    # Spark's Python workers must be this Python, whatever the path says.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    built = (
        SparkSession.builder.master("local[2]")
        .appName("ringleader-demo")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.scheduler.mode", "FAIR")
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("WARN")
    return built


def flights(
    spark: SparkSession, bootstrap: str, group: str, name: str, max_offsets: int, protocol: str
) -> DataFrame:
    """The topic as a stream, read as the member `name` of `group`."""
    reader = (
        spark.readStream.format("ringleader")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.group.id", group)
        .option("kafka.client.id", name)
        .option("kafka.group.protocol", protocol)
        .option("members", 1)
        .option("kafka.max.poll.interval.ms", plan.REBALANCE_TIMEOUT_MS)
        .option("subscribe", plan.TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", max_offsets)
    )
    if protocol == "classic":
        reader = (
            # The others of the group know no cooperative assignor: one of theirs, and one member as they are.
            reader.option("kafka.partition.assignment.strategy", "range,roundrobin")
            .option("kafka.session.timeout.ms", plan.SESSION_TIMEOUT_MS)
            .option("kafka.heartbeat.interval.ms", plan.HEARTBEAT_INTERVAL_MS)
        )
    return reader.load()


def write_down(ledger: Ledger) -> Callable[[DataFrame, int], None]:
    """A sink that reads each departure; which offsets it saw is on disk before the batch ends."""

    def sink(batch: DataFrame, batch_id: int) -> None:
        departure = sf.from_json(sf.col("value").cast("string"), DEPARTURE)
        # One action, so that the batch is fetched once.
        seen = batch.select("partition", "offset", departure.getField("carrier").alias("carrier")).toArrow()
        offsets: dict[int, list[int]] = defaultdict(list)
        for partition, offset in zip(
            seen.column("partition").to_pylist(), seen.column("offset").to_pylist(), strict=True
        ):
            offsets[partition].append(offset)
        ledger.processed({partition: sorted(found) for partition, found in offsets.items()})
        ledger.note("batch", batch=batch_id, records=seen.num_rows)

    return sink


def keep_table(path: Path) -> Callable[[DataFrame, int], None]:
    """A sink that replaces the delay table with the newest state, whole or not at all."""

    def sink(batch: DataFrame, batch_id: int) -> None:
        rows = {row["carrier"]: row.asDict() for row in batch.collect()}
        draft = path.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"batch": batch_id, "carriers": rows}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    return sink


def shared_query(stream: DataFrame, ledger: Ledger, checkpoint: Path) -> StreamingQuery:
    """Start the stateless member of the shared group."""
    writer = stream.writeStream.queryName(plan.SPARK).foreachBatch(write_down(ledger))
    return writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="1 second").start()


def alone_query(stream: DataFrame, table: Path, checkpoint: Path) -> StreamingQuery:
    """Start the query that keeps the delay table."""
    departure = sf.from_json(sf.col("value").cast("string"), DEPARTURE).alias("departure")
    delay = sf.col("dep_delay")
    delays = (
        stream.select(departure)
        .select("departure.*")
        .groupBy("carrier")
        .agg(
            sf.count("*").alias("flights"),
            sf.count_if(delay.isNull()).alias("cancelled"),
            sf.avg(delay).alias("mean_delay"),
        )
    )
    writer = (
        delays.writeStream.queryName(plan.SPARK_ALONE).outputMode("complete").foreachBatch(keep_table(table))
    )
    return writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="2 seconds").start()


def run(bootstrap: str, places: plan.Places, ledger: Ledger, protocol: str) -> int:
    """Run both queries until SIGTERM; returns the exit code, 1 when a query failed."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    spark = session()
    queries: list[StreamingQuery] = []
    try:
        shared = flights(spark, bootstrap, plan.SHARED_GROUP, plan.SPARK, SHARED_MAX_OFFSETS, protocol)
        queries.append(shared_query(shared, ledger, places.out / "checkpoint-shared"))
        alone = flights(spark, bootstrap, plan.ALONE_GROUP, plan.SPARK_ALONE, ALONE_MAX_OFFSETS, protocol)
        queries.append(alone_query(alone, places.table, places.out / "checkpoint-alone"))
        ledger.note("started")
        failed: Any = None
        while failed is None and not stop.wait(0.5):
            failed = next((query.exception() for query in queries if not query.isActive), None)
        if failed is not None:
            print(failed, file=sys.stderr)
            return 1
    finally:
        # A query that is not stopped lives on as a member after its session.
        for query in queries:
            query.stop()
        spark.stop()
    ledger.note("left")
    return 0


def main() -> int:
    """Be both queries."""
    parser = plan.arguments(__doc__)
    parser.add_argument("--protocol", choices=plan.PLAYERS, required=True)
    args = parser.parse_args()
    places = plan.Places(args.out)
    with Ledger(places.ledger(plan.SPARK)) as ledger:
        return run(args.bootstrap, places, ledger, args.protocol)


if __name__ == "__main__":
    sys.exit(main())
