"""Spark reads a Kafka topic: our source beside Spark's own Kafka connector, on the same broker in one run.

Records are those of Kafka's load tool, all of one size; JSON objects of various lengths; and values of
various lengths that hardly compress, from two producers of which one compresses. The broker has its default
settings: a new group's first rebalance waits for more members.

Needs a JDK with a compiler, Maven, and half a gigabyte for a PySpark of the connector's version, which gets
a virtual environment of its own in the user's cache directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.plan import KAFKA, RINGLEADER, Plan
from bench.processes import work_dir
from bench.report import Goal, median, print_goals, save, say, table
from bench.spark_fetch import CONFLUENT, PARTITIONS, measure, profile
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.spark_bridge.network.log import KafkaLog
from tests.interop.kafka import BENCH_JVM, KAFKAS_PARTITIONS, KafkaBroker, tool
from tests.interop.kafka import VERSION as KAFKA_VERSION
from tests.interop.maven import InteropError, cache, jars, java, javac
from tests.interop.secured import make_topics
from tests.support.tied import tied
from tools.wheels import CONSTRAINTS, ROOT

SPARK_VERSION = "4.2.0"
"""The newest that the connector is published for; bench/spark_connector/pom.xml has it, too."""
CONNECTOR = "Spark's connector"
EMPTY, EMPTY_ROWS = "empty Python source, no rows", "empty Python source, 1 row a slice"
MIXED = ", mixed"
KINDS = ("", ", JSON", MIXED)
"""Of records: of 1 KB all, JSON of various lengths, and two producers' with batches of two codecs."""
BOTH = "lz4 and none"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd", BOTH)
VALUE_BYTES = 1024
LEAST_BYTES, MOST_BYTES = 256, 1792
"""Of a value of various lengths: about 1 KB in the middle."""
PAYLOADS = 5_000
"""The number of different values from which producers draw."""
READS, WARM, QUERY, CPU, START, SLOWER = 1.5, 1.4, 1.1, 1.0, 1.5, 1.3
"""Goals: at least these multiples of the connector's rates, by the clock and (`CPU`) by CPU seconds; at most
these multiples of an empty source's times."""
KAFKA_DEFAULTS = {
    **KAFKAS_PARTITIONS,
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "6000",
}
"""Broker settings that the tests' brokers have otherwise."""
_SOURCES = Path(__file__).parent / "spark_connector"
_JOB_TIMEOUT_S = 3_600

Result = dict[str, Any]


def run(plan: Plan) -> Result:
    """Runs it, prints the tables, writes spark.json, returns its content."""
    python, libraries = interpreter(), connector()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(work_dir(plan.data_dir))
        broker = KafkaBroker(directory / "kafka", jvm=BENCH_JVM, properties=KAFKA_DEFAULTS)
        stack.enter_context(broker)
        address = broker.host, broker.port
        topics = {codec: f"codec-{codec.replace(' ', '-')}" for codec in CODECS}
        payloads(directory / "payloads.json")
        fill(broker.bootstrap, "large", plan.spark_records, "none")
        fill(broker.bootstrap, "json", plan.spark_records, "none", directory / "payloads.json")
        fill_mixed(broker.bootstrap, "mixed", plan.spark_records)
        for codec, topic in topics.items():
            if codec == BOTH:
                fill_mixed(broker.bootstrap, topic, plan.spark_records // 10)
            else:
                fill(broker.bootstrap, topic, plan.spark_records // 10, codec)
        fill_evenly(broker.bootstrap, "small", plan.spark_small_batches + 1)
        say("  fetching without Spark")
        ends = {codec: (topic, _ends(address, topic)) for codec, topic in topics.items()}
        found = measure(address, ends, plan.rounds)
        steps = profile(address, *ends["none"], plan.rounds)
        job = {
            "jars": [str(path) for path in libraries],
            "directory": str(directory),
            "bootstrap": broker.bootstrap,
            "measure": ["batch", "stream", "fixed", "start"],
            "topics": dict(zip(KINDS, ("large", "json", "mixed"), strict=True)),
            "small_topic": "small",
            "records": plan.spark_records,
            "rows_per_batch": plan.spark_records // 4,
            "small_batches": plan.spark_small_batches,
            "warmups": plan.spark_warmups,
            "rounds": plan.rounds,
        }
        found += list(_job(python, job))
        # The size of what was read, to compare rows of various lengths.
        found_bytes = json_bytes(directory / "payloads.json")
    results = summary(found) | {"steps": steps}
    goals = _goals(results)
    _print(results)
    print_goals(goals)
    about = {
        "brokers": {KAFKA: f"{KAFKA_VERSION}, one broker (KRaft), {' '.join(BENCH_JVM)}, default settings"},
        "json_bytes": found_bytes,
        "spark": f"PySpark {SPARK_VERSION}, local[2], noop sink",
        "records": plan.spark_records,
    }
    save(plan.out_dir, "spark", about | {"results": results, "rounds": found}, goals)
    return about | {"results": results}


# ---- what is needed ----


def interpreter() -> Path:
    """A Python with PySpark of the connector's version and this checkout. Raises `InteropError`."""
    pins = CONSTRAINTS.read_text().splitlines()
    wanted = [line for line in pins if line.split("==")[0] == "pyarrow"] + [f"pyspark=={SPARK_VERSION}"]
    name = hashlib.sha256(" ".join([*wanted, str(ROOT), sys.version]).encode()).hexdigest()[:16]
    directory = cache().parent / f"spark-{name}"
    python = directory / "bin" / "python"
    if (directory / ".ready").exists():
        return python
    say(f"  making an environment with PySpark {SPARK_VERSION} (half a gigabyte, once)")
    shutil.rmtree(directory, ignore_errors=True)
    for command in (
        [sys.executable, "-m", "venv", str(directory)],
        [str(python), "-m", "pip", "install", "--quiet", *wanted, "--editable", str(ROOT)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InteropError(f"PySpark {SPARK_VERSION} cannot be installed: {done.stderr.strip()[-500:]}")
    (directory / ".ready").touch()
    return python


def connector() -> list[Path]:
    """Spark's Kafka connector, its jars and what stands in for its token provider. Raises `InteropError`."""
    fetched = jars(_SOURCES / "pom.xml")
    # PySpark has the codecs itself.
    wanted = ("spark-sql-kafka", "kafka-clients", "commons-pool2")
    found = [path for path in sorted(fetched.iterdir()) if path.name.startswith(wanted)]
    return [*found, _stand_in()]


def _stand_in() -> Path:
    sources = sorted(_SOURCES.rglob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    made = cache() / f"spark-stand-in-{digest}.jar"
    if made.exists():
        return made
    site = interpreter().parent.parent / "lib"
    [libraries] = site.glob("python*/site-packages/pyspark/jars")
    classes = made.with_suffix(f".{os.getpid()}")
    draft = classes / "made.jar"
    compiler = Path(javac())
    for command in (
        [str(compiler), "-d", str(classes), "-cp", f"{libraries}/*", *map(str, sources)],
        [str(compiler.with_name("jar")), "cf", str(draft), "-C", str(classes), "org"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InteropError(f"the connector's stand-in does not compile:\n{done.stderr}")
    draft.replace(made)
    shutil.rmtree(classes)
    return made


def payloads(file: Path) -> None:
    """JSON objects of various lengths, a line each; the same ones in every run."""
    chance = random.Random(13)
    lines = []
    for number in range(PAYLOADS):
        text = "".join(chance.choices(string.ascii_letters, k=MOST_BYTES))
        head = {"id": number, "at": 1_700_000_000_000 + number, "amount": round(chance.random() * 1e4, 2)}
        size = chance.randint(LEAST_BYTES, MOST_BYTES)
        room = size - len(json.dumps(head | {"text": ""}))
        lines.append(json.dumps(head | {"text": text[:room]}))
    file.write_text("\n".join(lines))


def json_bytes(file: Path) -> dict[str, int]:
    """Of the lines: the shortest, the middle one, the longest."""
    sizes = sorted(len(line) for line in file.read_text().splitlines())
    return {"least": sizes[0], "median": sizes[len(sizes) // 2], "most": sizes[-1]}


def fill(bootstrap: str, topic: str, records: int, codec: str, lines: Path | None = None) -> None:
    """A topic of two partitions with `count` records, by Kafka's own load tool with its defaults: of 1 KB, or
    drawn from the lines of a file."""
    say(f"  {records:,} records, {'JSON' if lines else f'{VALUE_BYTES} bytes'}, {codec}")
    create = ["--create", "--topic", topic, "--partitions", str(PARTITIONS)]
    produce = ["--topic", topic, "--num-records", str(records)]
    produce += ["--payload-file", str(lines)] if lines else ["--record-size", str(VALUE_BYTES)]
    produce += ["--throughput", "-1", "--producer-props", f"bootstrap.servers={bootstrap}"]
    for name, arguments in (
        ("org.apache.kafka.tools.TopicCommand", ["--bootstrap-server", bootstrap, *create]),
        ("org.apache.kafka.tools.ProducerPerformance", [*produce, f"compression.type={codec}"]),
    ):
        done = tool(name, *arguments, timeout_s=600)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")


def hardly_compressible() -> list[bytes]:
    """Values of various lengths: a few fields that repeat, then chance; the same ones in every run."""
    chance = random.Random(14)
    heads = (b'{"id":%d,"kind":"measurement","blob":' % chance.randrange(10**9) for _ in range(PAYLOADS))
    return [head + chance.randbytes(chance.randint(LEAST_BYTES, MOST_BYTES) - len(head)) for head in heads]


def fill_mixed(bootstrap: str, topic: str, records: int) -> None:
    """A topic of two partitions with `count` records, by two of librdkafka's producers in turn. They have its
    defaults, but one compresses with lz4, so that batches of two codecs follow each other."""
    say(f"  {records:,} records, {LEAST_BYTES} to {MOST_BYTES} bytes that hardly compress, lz4 and none")
    asyncio.run(make_topics(bootstrap, {topic: PARTITIONS}))
    values, chance = hardly_compressible(), random.Random(15)
    producers = [
        Producer({"bootstrap.servers": bootstrap, "compression.type": codec}) for codec in ("lz4", "none")
    ]
    for number in range(records):
        # Each producer writes to all partitions.
        producer = producers[number // PARTITIONS % len(producers)]
        while True:
            try:
                producer.produce(topic, chance.choice(values), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if left := sum(producer.flush(60) for producer in producers):
        raise RuntimeError(f"{left} records could not be written to {topic}")


def fill_evenly(bootstrap: str, topic: str, records: int) -> None:
    """A topic with `count` small records in each of its two partitions."""
    asyncio.run(make_topics(bootstrap, {topic: PARTITIONS}))
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(records * PARTITIONS):
        producer.produce(topic, b"v" * VALUE_BYTES, partition=number % PARTITIONS)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records could not be written to {topic}")


def _ends(address: tuple[str, int], topic: str) -> list[int]:
    log = KafkaLog(Endpoint((address,)), False)
    try:
        found = log.ends([(topic, number) for number in range(PARTITIONS)])
    finally:
        log.close()
    return [found[topic, number] for number in range(PARTITIONS)]


def _job(python: Path, job: Result) -> Iterator[Result]:
    environment = {**os.environ, "JAVA_HOME": str(Path(java()).resolve().parent.parent)}
    # An installed package has its byte code; this checkout may be forbidden to write any.
    environment["PYTHONDONTWRITEBYTECODE"] = ""
    environment["PYTHONPYCACHEPREFIX"] = str(Path(job["directory"]) / "bytecode")
    command = [str(python), "-m", "bench.spark_job", json.dumps(job)]
    log = Path(job["directory"]) / "spark.log"
    with log.open("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment
        )
        tied(process)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                found: Result = json.loads(line)
                say(f"  {described(found)}")
                yield found
            if process.wait(_JOB_TIMEOUT_S):
                errors.seek(0)
                raise RuntimeError(f"Spark failed:\n{errors.read()[-5_000:]}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def described(one: Result) -> str:
    """A measurement in a line."""
    parts = [f"{one['what']}, {one['name']}, round {one['round']}:"]
    for key, text in (
        ("rows_per_s", "{:,.0f} rows/s"),
        ("rows_per_cpu_s", "{:,.0f} per CPU second"),
        ("warm_rows_per_s", "warm {:,.0f} rows/s"),
        ("warm_rows_per_cpu_s", "{:,.0f} per CPU second"),
        ("batch_ms", "{} ms"),
        ("first_rows_s", "{:.2f} s"),
    ):
        if key in one:
            parts.append(text.format(one[key]))
    return " ".join(parts)


# ---- what comes out ----


def summary(found: Sequence[Result]) -> Result:
    """Medians of the rounds that count: what -> name (or codec and name) -> figure -> median."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for one in found:
        if one["round"] >= 0:
            name = f"{one['codec']}, {one['name']}" if "codec" in one else one["name"]
            groups.setdefault((one["what"], name), []).append(one)
    results: Result = {}
    for (what, name), rounds in groups.items():
        results.setdefault(what, {})[name] = _medians(rounds)
    return results


def _medians(rounds: Sequence[Result]) -> Result:
    found: Result = {}
    for key, value in rounds[0].items():
        if key in ("what", "name", "codec", "round"):
            continue
        if isinstance(value, dict):
            found[key] = {name: median(one[key].get(name, 0) for one in rounds) for name in value}
        elif isinstance(value, list):
            found[key] = median(number for one in rounds for number in one[key])
        else:
            found[key] = median(one[key] for one in rounds)
    return found


def _goals(results: Result) -> list[Goal]:
    fixed, start = results["fixed"], results["start"]
    cost = {name: one["batch_ms"] for name, one in fixed.items()}
    join_ms = start[RINGLEADER]["stages_ms"]["latestOffset"]
    first_s = {name: one["first_rows_s"] for name, one in start.items()}
    fetch = results["fetch"]
    return [
        *(goal for kind in KINDS for goal in _rate_goals(results, kind)),
        Goal("fixed cost of a micro-batch", EMPTY_ROWS, cost[RINGLEADER] / cost[EMPTY_ROWS], SLOWER, True),
        Goal(
            "warm start to first rows, without the join",
            EMPTY_ROWS,
            (first_s[RINGLEADER] - join_ms / 1000) / first_s[EMPTY_ROWS],
            START,
            True,
        ),
        *(
            Goal(
                f"rows of a fetch per CPU second, {codec}",
                CONFLUENT,
                fetch[f"{codec}, {RINGLEADER}"]["rows_per_cpu_s"]
                / fetch[f"{codec}, {CONFLUENT}"]["rows_per_cpu_s"],
                1,
            )
            for codec in CODECS
        ),
    ]


def _rate_goals(results: Result, kind: str) -> Iterator[Goal]:
    """Of one kind of records."""
    batch, stream = results[f"batch{kind}"], results[f"stream{kind}"]
    rates = [
        ("a batch read", batch, "rows_per_s", "rows_per_cpu_s", READS),
        ("a warm micro-batch", stream, "warm_rows_per_s", "warm_rows_per_cpu_s", WARM),
        ("a whole AvailableNow query", stream, "rows_per_s", "rows_per_cpu_s", QUERY),
    ]
    for title, of, by_clock, by_cpu, bound in rates:
        for unit, key, wanted in (("s", by_clock, bound), ("CPU second", by_cpu, CPU)):
            ratio = of[RINGLEADER][key] / of[CONNECTOR][key]
            yield Goal(f"rows/{unit} of {title}{kind}", CONNECTOR, ratio, wanted)


def rate_rows(results: Result) -> Iterator[list[object]]:
    """Rows of the table of rates, under `RATES`."""
    titles = {f"batch{kind}": f"batch read{kind}" for kind in KINDS}
    titles |= {f"stream{kind}": f"streaming, AvailableNow{kind}" for kind in KINDS}
    titles["fetch"] = "fetch without Spark"
    for what, title in titles.items():
        for name, one in results[what].items():
            yield _rate_row(f"{title}, {name}", one, "")
            if what.startswith("stream"):
                yield _rate_row(f"{title}, warm micro-batches, {name}", one, "warm_")


def _rate_row(title: str, one: Result, of: str) -> list[object]:
    jvm_us = ""
    if "jvm_cpu_s" in one and not of:
        jvm_us = f"{one['jvm_cpu_s'] / one['cpu_s'] * 1e6 / one['rows_per_cpu_s']:.2f}"
    by_clock, by_cpu = (one[f"{of}{key}"] for key in ("rows_per_s", "rows_per_cpu_s"))
    batch_ms = f"{one['batch_ms']:,.0f}" if "batch_ms" in one and not of else ""
    return [title, f"{by_clock:,.0f}", f"{by_cpu:,.0f}", f"{1e6 / by_cpu:.2f}", jvm_us, batch_ms]


def cost_rows(results: Result) -> Iterator[list[object]]:
    """Rows of the table of fixed costs: name, micro-batch in ms, of which the tasks, start to first rows."""
    for name, one in results["fixed"].items():
        start = results["start"].get(name)
        yield [
            name,
            f"{one['batch_ms']:,.0f}",
            f"{one['stages_ms']['addBatch']:,.0f}",
            "" if start is None else f"{start['first_rows_s']:.2f}",
            "" if start is None else f"{start['stages_ms']['latestOffset'] / 1000:.2f}",
        ]


RATES = ("", "rows/s", "rows per CPU second", "CPU us a row", "of which the JVM", "micro-batch ms")
COSTS = ("", "micro-batch ms", "of which tasks", "start to first rows s", "of which the first latestOffset")


def _print(results: Result) -> None:
    table("Records of about 1 KB", RATES, rate_rows(results))
    table("Fixed costs", COSTS, cost_rows(results))
