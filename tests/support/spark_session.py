"""One Spark session for all tests of a run that need a JVM; starting one costs seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FAST_START = (
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
)
"""Options of a JVM that is not for measuring. An archive of its classes, as Kafka's JVMs have one in
tests/interop, would spare five CPU seconds of each session, but takes 31 to make: a run on a new machine
has hardly more sessions than pay for that. Not to verify Spark's classes spares two, and takes nothing."""

CORES = 3
"""Of the session of all tests. Few machines have as many: tasks that follow the machine instead show."""


def worker_python(base: Path) -> str:
    """The command `ringleader-spark-python` of this tree, whatever is installed beside this Python."""
    command = base / "ringleader-spark-python"
    command.write_text(
        f"#!{sys.executable}\nfrom ringleader.spark_bridge.worker_python import main\n\nmain()\n"
    )
    command.chmod(0o755)
    return str(command)


@contextmanager
def spark_session(base: Path, master: str = f"local[{CORES}]") -> Iterator[Any]:
    """A session on loopback with the settings that start fastest. Its files go to ``base``."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f'--driver-memory 1g --driver-java-options "{FAST_START}" pyspark-shell'
    )
    # Workers run what PATH calls python3 otherwise, which may know none of the packages.
    os.environ["PYSPARK_PYTHON"] = worker_python(base)
    builder = SparkSession.builder.master(master).appName("ringleader-tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(base / "local"),
        "spark.sql.warehouse.dir": str(base / "warehouse"),
        # Micro-batches cost half as much with it; a local directory does not need the safer manager.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        gateway = session.sparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(30)
        # The next session of this process would talk to the JVM that is gone.
        SparkContext._gateway = SparkContext._jvm = None
