"""The Spark side of `bench.spark`, in the interpreter that has the connector's PySpark.

`python -m bench.spark_job JSON`: runs what the JSON says and prints one JSON object per measurement.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.plan import in_turn
from bench.spark_empty import EmptySource
from tests.support.spark_session import worker_python

CONNECTOR, OURS, EMPTY = "Spark's connector", "ringleader", "empty Python source"
EMPTY_ROWS = f"{EMPTY}, 1 row a slice"
NAMES = (CONNECTOR, OURS)
_CORES = 2
_TIMEOUT_S = 300
_LOOK_S = 0.1
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

Job = dict[str, Any]


def main() -> int:
    """Runs the job; returns the exit code."""
    job: Job = json.loads(sys.argv[1])
    # The workers are this interpreter, too, as the docs advise to run it.
    os.environ["PYSPARK_PYTHON"] = worker_python(Path(job["directory"]))
    spark = _session(job["jars"])
    try:
        with tempfile.TemporaryDirectory(dir=job["directory"]) as work:
            for what in job["measure"]:
                for result in MEASUREMENTS[what](spark, job, Path(work)):
                    kind = result.pop("kind", "")
                    print(json.dumps({"what": what + kind, **result}), flush=True)
    finally:
        spark.stop()
    return 0


def _session(jars: list[str]) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{_CORES}]").appName("bench")
    settings = {
        "spark.jars": ",".join(jars),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.dataSource.register(EmptySource)
    return spark


def _options(job: Job, name: str, topic: str, group: str) -> dict[str, str]:
    found = {"kafka.bootstrap.servers": job["bootstrap"], "subscribe": topic, "startingOffsets": "earliest"}
    return found | ({"kafka.group.id": group} if name == OURS else {})


def _format(name: str) -> str:
    return {CONNECTOR: "kafka", OURS: "ringleader", EMPTY: EmptySource.name()}[name]


# -- rows per second


def batch(spark: SparkSession, job: Job, work: Path) -> Iterator[Job]:
    """A whole topic of each kind by `spark.read`, into the noop sink."""
    for number in range(-job["warmups"], job["rounds"]):
        for (kind, topic), name in itertools.product(job["topics"].items(), in_turn(NAMES, number)):
            reader = spark.read.format(_format(name))
            frame = reader.options(**_options(job, name, topic, f"batch-{number}-{os.getpid()}")).load()
            meter = _Meter(spark)
            frame.write.format("noop").mode("overwrite").save()
            yield meter.rate(name, number, job["records"]) | {"kind": kind}


def stream(spark: SparkSession, job: Job, work: Path) -> Iterator[Job]:
    """A whole topic of each kind by AvailableNow, a quarter in each micro-batch, into the noop sink."""
    for number in range(-job["warmups"], job["rounds"]):
        for (kind, topic), name in itertools.product(job["topics"].items(), in_turn(NAMES, number)):
            options = _options(job, name, topic, f"stream-{topic}-{number}-{os.getpid()}")
            options["maxOffsetsPerTrigger"] = str(job["rows_per_batch"])
            frame = spark.readStream.format(_format(name)).options(**options).load()
            meter = _Meter(spark)
            with meter.watched():
                progress = _available_now(frame, work / f"stream-{_format(name)}-{topic}-{number}")
            rows = sum(one["numInputRows"] for one in progress)
            if rows != job["records"]:
                raise RuntimeError(f"{name} read {rows} of {job['records']} records")
            # The connector's limits do not add up: a few rows come in a batch of their own at the end.
            whole = [one["durationMs"] for one in progress if one["numInputRows"] > job["rows_per_batch"] / 2]
            yield meter.rate(name, number, rows) | {
                "kind": kind,
                "batch_ms": [spent["triggerExecution"] for spent in whole],
                "add_batch_ms": [spent["addBatch"] for spent in whole],
                **_warm(meter, progress[1 : len(whole)]),
            }


def _warm(meter: _Meter, batches: list[Job]) -> Job:
    """Rows per second of micro-batches that follow each other: of their tasks by the clock, and of all that
    Spark's processes do from the first one's start to the last one's end by CPU time."""
    first, last = batches[0], batches[-1]
    begin_s, end_s = (datetime.fromisoformat(one["timestamp"]).timestamp() for one in (first, last))
    cpu_s = meter.cpu_s_at(end_s + last["durationMs"]["triggerExecution"] / 1000) - meter.cpu_s_at(begin_s)
    rows = sum(one["numInputRows"] for one in batches)
    tasks_s = sum(one["durationMs"]["addBatch"] for one in batches) / 1000
    return {"warm_rows_per_s": rows / tasks_s, "warm_rows_per_cpu_s": rows / cpu_s}


class _Meter:
    """Time by the clock, and the CPU time of Spark: its JVM and the Python workers below it."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._root = int(gateway.jvm.java.lang.ProcessHandle.current().pid())
        self._cpu_s = _tree_cpu_s(self._root)
        self._jvm_cpu_s = _times()[self._root][1] / _TICKS_PER_S
        self._begin = time.monotonic()
        self._looks = [(time.time(), 0.0)]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the CPU time every now and then, for `cpu_s_at`."""
        done = threading.Event()

        def look() -> None:
            while not done.wait(_LOOK_S):
                self._looks.append((time.time(), self.cpu_s))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self._looks.append((time.time(), self.cpu_s))

    def cpu_s_at(self, unix_s: float) -> float:
        """The CPU time since the start at a moment that was watched, from the looks before and after it."""
        after = min(bisect.bisect(self._looks, (unix_s,)), len(self._looks) - 1)
        (before_s, less), (after_s, more) = self._looks[after - 1], self._looks[after]
        return less + (more - less) * min(1.0, (unix_s - before_s) / (after_s - before_s))

    @property
    def seconds(self) -> float:
        """By the clock since the start."""
        return time.monotonic() - self._begin

    @property
    def cpu_s(self) -> float:
        """Of the CPUs since the start."""
        return _tree_cpu_s(self._root) - self._cpu_s

    def rate(self, name: str, number: int, rows: int) -> Job:
        """Rows per second since the start, and per CPU second."""
        seconds, cpu_s = self.seconds, self.cpu_s
        jvm_cpu_s = _times()[self._root][1] / _TICKS_PER_S - self._jvm_cpu_s
        found = {"name": name, "round": number, "seconds": seconds, "cpu_s": cpu_s, "jvm_cpu_s": jvm_cpu_s}
        return found | {"rows_per_s": rows / seconds, "rows_per_cpu_s": rows / cpu_s}


def _tree_cpu_s(root: int) -> float:
    """User and system time of a process and all below it, those that have ended included."""
    times = _times()
    wanted = {root}
    while more := {pid for pid, found in times.items() if found[0] in wanted} - wanted:
        wanted |= more
    return sum(times[pid][2] for pid in wanted) / _TICKS_PER_S


def _times() -> dict[int, tuple[int, int, int]]:
    """Parent, CPU ticks of its own, and with those of its children that have ended, of all processes."""
    found: dict[int, tuple[int, int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ticks = [int(field) for field in fields[11:15]]
                found[int(entry.name)] = int(fields[1]), sum(ticks[:2]), sum(ticks)
    return found


def _available_now(frame: DataFrame, checkpoint: Path) -> list[Job]:
    query = frame.writeStream.format("noop").trigger(availableNow=True)
    running = query.option("checkpointLocation", str(checkpoint)).start()
    try:
        if not running.awaitTermination(_TIMEOUT_S):
            raise RuntimeError(f"not done after {_TIMEOUT_S} s")
        return [json.loads(one.json) for one in running.recentProgress]
    finally:
        running.stop()


# -- fixed costs


def fixed(spark: SparkSession, job: Job, work: Path) -> Iterator[Job]:
    """Micro-batches of one row in each of two slices, and the time from a warm start to the first rows."""
    shapes: list[tuple[str, str, dict[str, str]]] = [
        (f"{EMPTY}, no rows", EMPTY, {"rows": "0"}),
        (EMPTY_ROWS, EMPTY, {"rows": "1"}),
        *((name, name, {}) for name in NAMES),
    ]
    for number in range(-1, job["rounds"]):
        for label, name, more in in_turn(shapes, number):
            if name == EMPTY:
                options = more | {"batches": str(job["small_batches"])}
            else:
                options = _options(job, name, job["small_topic"], f"fixed-{number}-{os.getpid()}")
                options["maxOffsetsPerTrigger"] = str(_CORES)
            frame = spark.readStream.format(_format(name)).options(**options).load()
            place = work / f"fixed-{shapes.index((label, name, more))}-{number}"
            progress = _available_now(frame, place)
            # The first batch carries the start.
            later = [one["durationMs"]["triggerExecution"] for one in progress[1 : job["small_batches"]]]
            stages = {
                key: statistics.median(
                    one["durationMs"].get(key, 0) for one in progress[1 : job["small_batches"]]
                )
                for key in progress[1]["durationMs"]
            }
            yield {
                "name": label,
                "round": number,
                "batch_ms": statistics.median(later),
                "stages_ms": stages,
            }


def start(spark: SparkSession, job: Job, work: Path) -> Iterator[Job]:
    """From `load` of a new query in a warm session until its first rows are in the sink."""
    for number in range(-1, job["rounds"]):
        shapes = [(EMPTY_ROWS, EMPTY, {"rows": "1"}), *((name, name, {}) for name in NAMES)]
        for label, name, more in in_turn(shapes, number):
            meter = _Meter(spark)
            options = (
                more
                if name == EMPTY
                else _options(job, name, job["small_topic"], f"start-{number}-{os.getpid()}")
            )
            frame = spark.readStream.format(_format(name)).options(**options).load()
            query = frame.writeStream.format("noop").option(
                "checkpointLocation", str(work / f"start-{_format(name)}-{number}")
            )
            running = query.start()
            try:
                while not any(one["numInputRows"] for one in running.recentProgress):
                    if meter.seconds > _TIMEOUT_S or running.exception() is not None:
                        raise RuntimeError(f"{name}: no rows: {running.exception()}")
                    time.sleep(0.01)
                spent = {"first_rows_s": meter.seconds, "cpu_s": meter.cpu_s}
                [progress, *_] = [
                    json.loads(one.json) for one in running.recentProgress if one["numInputRows"]
                ]
            finally:
                running.stop()
            yield {"name": label, "round": number, "stages_ms": progress["durationMs"]} | spent


MEASUREMENTS: dict[str, Callable[[SparkSession, Job, Path], Iterator[Job]]] = {
    "batch": batch,
    "stream": stream,
    "fixed": fixed,
    "start": start,
}

if __name__ == "__main__":
    sys.exit(main())
