"""Which part of format `ringleader` works with which PySpark: ``make spark-versions``.

Each version gets a virtual environment of its own in the user's cache directory (half a gigabyte), and every
part is tried in a real Spark against a coordinator of this tree. Prints the table of docs/spark.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringleader.testing.coordinator import Coordinator
from tools.java_home import java_home
from tools.wheels import CONSTRAINTS, ROOT

VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
PARTS = ("batch read", "batch sink", "stream", "stream sink")
EACH = "batch sink in foreachBatch"
"""Tried as well: the page has it where there is no stream sink."""
LACKING = ("needs PySpark", "DATA_SOURCE_NOT_FOUND")
"""Texts of the failures where a version lacks what a part needs; any other failure is a fault, not a "no"."""
FAILS = "**fails**"
RECORDS = 20
_TIMEOUT_S = 600

_TRIAL = """
import json, os, sys, tempfile
from pyspark.sql import SparkSession

part, bootstrap, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.log.level": "OFF",
            "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "1"}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
given = {"kafka.bootstrap.servers": bootstrap}
source = {**given, "subscribe": "from", "startingOffsets": "earliest"}
rows = spark.range(records).selectExpr("cast(id as string) as value")


def written(topic):
    found = spark.read.format("ringleader").options(**{**given, "subscribe": topic}).load()
    return sorted(int(row[0]) for row in found.selectExpr("cast(value as string)").collect())


def ended(query):
    if not query.awaitTermination(120):
        query.stop()
        raise SystemExit("no end")


wanted = list(range(records))
work = tempfile.mkdtemp()
if part == "batch read":
    found = written("from")
elif part == "batch sink":
    rows.write.format("ringleader").mode("append").options(**given, topic="to-batch").save()
    found = written("to-batch")
elif part == "stream":
    kept = []
    frame = spark.readStream.format("ringleader").options(**source, **{"kafka.group.id": "g"}).load()
    query = frame.selectExpr("cast(value as string)").writeStream.option("checkpointLocation", work)
    query = query.foreachBatch(lambda batch, _: kept.extend(batch.collect()))
    ended(query.trigger(availableNow=True).start())
    found = sorted(int(row[0]) for row in kept)
else:
    rows.write.json(work + "/in")
    frame = spark.readStream.schema("value string").json(work + "/in")
    if part == "stream sink":
        query, topic = frame.writeStream.format("ringleader").options(**given, topic="to-stream"), "to-stream"
    else:
        topic = "to-each"
        query = frame.writeStream.foreachBatch(
            lambda batch, _: batch.write.format("ringleader").mode("append")
            .options(**given, topic=topic).save()
        )
    ended(query.option("checkpointLocation", work + "/out").trigger(availableNow=True).start())
    found = written(topic)
assert found == wanted, found
"""


def interpreter(version: str) -> Path:
    """A Python with this PySpark and this tree."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ringleader"
    directory = home / f"pyspark-{version}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = directory / "bin" / "python"
    if not (directory / ".ready").exists():
        shutil.rmtree(directory, ignore_errors=True)
        pins = CONSTRAINTS.read_text().splitlines()
        arrow = [line for line in pins if line.split("==")[0] == "pyarrow"]
        for command in (
            [sys.executable, "-m", "venv", str(directory)],
            [str(python), "-m", "pip", "install", "--quiet", *arrow, f"pyspark=={version}", "pydantic"],
        ):
            subprocess.run(command, check=True)
        (directory / ".ready").touch()
    command = [str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[clients]"]
    subprocess.run(command, check=True)
    return python


def tried(python: Path, part: str, bootstrap: str) -> str:
    """ "" when the part works, else the line that says why not."""
    environment = {**os.environ, "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": str(python)}
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            [str(python), "-c", _TRIAL, part, bootstrap, str(RECORDS)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            cwd=work,
            env=environment,
        )
    if not done.returncode:
        return ""
    lines = [line.strip() for line in reversed(done.stderr.splitlines())]
    lacking = (line for line in lines if any(words in line for words in LACKING))
    return next(lacking, "") or next((line for line in lines if "rror" in line), "failed")


def _answer(why: str) -> str:
    if not why:
        return "yes"
    return "no" if any(words in why for words in LACKING) else FAILS


def table(found: dict[str, dict[str, str]]) -> str:
    """As docs/spark.md has it."""
    lines = [f"| PySpark | {' | '.join(PARTS)} |", "|---|" + "---|" * len(PARTS)]
    for version, parts in found.items():
        lines.append(f"| {version} | {' | '.join(_answer(parts[part]) for part in PARTS)} |")
    return "\n".join(lines)


def main(versions: Sequence[str]) -> int:
    """Try all; returns the exit code: 1 when a part fails that the version has what it needs for."""
    found: dict[str, dict[str, str]] = {}
    for version in versions or VERSIONS:
        python = interpreter(version)
        with Coordinator() as coordinator:
            for topic in ("from", "to-batch", "to-stream", "to-each"):
                coordinator.create_topic(topic, 2)
            _fill(coordinator)
            found[version] = {part: tried(python, part, coordinator.bootstrap) for part in (*PARTS, EACH)}
        for part, why in found[version].items():
            print(f"{version}, {part}: {why or 'works'}", flush=True)
    print(table(found))
    return int(any(_answer(why) == FAILS for parts in found.values() for why in parts.values()))


def _fill(coordinator: Any) -> None:
    import asyncio

    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=coordinator.bootstrap) as producer:
            for number in range(RECORDS):
                await producer.send_and_wait("from", b"%d" % number, partition=number % 2)

    asyncio.run(send())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
