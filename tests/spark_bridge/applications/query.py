"""A Spark application with one streaming query; until SIGTERM. ``python -m ... --bootstrap .. --out ..``"""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from tests.spark_bridge.applications.ledger import Ledger, ranges_of
from tests.support.spark_session import FAST_START

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java = f"{FAST_START} -Djava.io.tmpdir={args.out}"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f'--driver-memory 512m --driver-java-options "{java}" pyspark-shell'
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(args.master).appName("chaos")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.local.dir", str(args.out / "local"))
    spark = builder.getOrCreate()
    ledger = Ledger(args.out / "ledger")

    def sink(frame: Any, batch_id: int) -> None:
        found = frame.select("partition", "offset").toArrow()
        partitions, offsets = found.column("partition").to_pylist(), found.column("offset").to_pylist()
        ledger.read(ranges_of(zip(partitions, offsets, strict=True)))

    reader = spark.readStream.format("ringleader").option("kafka.bootstrap.servers", args.bootstrap)
    for option in args.option:
        reader = reader.option(*option.split("=", 1))
    writer = reader.load().writeStream.foreachBatch(sink)
    query = (
        writer.option("checkpointLocation", str(args.out / "checkpoint"))
        .trigger(processingTime="300 milliseconds")
        .start()
    )
    try:
        while query.isActive and not stop.wait(0.2):
            pass
        failed = query.exception()
    finally:
        query.stop()
        spark.stop()
    if failed is not None:
        print(failed, file=sys.stderr)
    return 1 if failed is not None else 0


if __name__ == "__main__":
    sys.exit(main())
