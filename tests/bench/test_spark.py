"""The report of the Spark benchmark from its measurements; the run itself needs a JDK, Maven and a
PySpark."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

from bench import spark, spark_job
from bench.document import numbers
from bench.plan import RINGLEADER, in_turn
from bench.report import save
from ringleader.protocol.compression import Compression, compress


def measurements(factor: float) -> list[dict[str, Any]]:
    """As a run gives them; ours is `factor` times as fast as the others, in every round that counts."""
    found: list[dict[str, Any]] = []
    for number in (-1, 0, 1, 2):
        for kind, name in product(spark.KINDS, (spark.CONNECTOR, RINGLEADER)):
            speed = 1.0 if number < 0 or name != RINGLEADER else factor
            rates = {
                "rows_per_s": 300e3 * speed,
                "rows_per_cpu_s": 150e3 * speed,
                "cpu_s": 6.0,
                "jvm_cpu_s": 4.0,
            }
            one = {"name": name, "round": number}
            found.append({"what": f"batch{kind}", **one, **rates})
            warm = {"warm_rows_per_s": 500e3 * speed, "warm_rows_per_cpu_s": 250e3 * speed}
            times = {"batch_ms": [900, 700, 710], "add_batch_ms": [800, 600, 610]}
            found.append({"what": f"stream{kind}", **one, **rates, **warm, **times})
        for name in (spark.EMPTY, spark.EMPTY_ROWS, spark.CONNECTOR, RINGLEADER):
            one = {"name": name, "round": number}
            stages = {"addBatch": 80 / factor, "latestOffset": 500}
            found.append({"what": "fixed", **one, "batch_ms": 160 / factor, "stages_ms": stages})
            if name != spark.EMPTY:
                found.append({"what": "start", **one, "first_rows_s": 1.5, "stages_ms": stages})
        for codec in spark.CODECS:
            for name, speed in ((RINGLEADER, factor), ("confluent-kafka", 1.0)):
                rates = {"rows_per_s": 900e3 * speed, "rows_per_cpu_s": 600e3 * speed}
                found.append({"what": "fetch", "codec": codec, "name": name, "round": number, **rates})
    return found


def test_medians_goals_and_the_document(tmp_path: Path) -> None:
    results = spark.summary(measurements(1.5))
    assert results["batch"][RINGLEADER]["rows_per_s"] == 450e3
    goals = spark._goals(results)
    assert all(goal.reached for goal in goals)
    assert not all(goal.reached for goal in spark._goals(spark.summary(measurements(1.1))))
    sizes = {"least": 256, "median": 1_000, "most": 1_792}
    about = {"spark": "PySpark", "records": 1_000_000, "json_bytes": sizes}
    results["steps"] = {"receive": 0.4, "columns": 0.6}
    saved = json.loads(save(tmp_path, "spark", about | {"results": results}, goals).read_text())
    written = numbers({"spark": saved})
    assert "| batch read, ringleader | 450,000 | 225,000 | 4.44 | 2.96 |  |" in written
    assert "| streaming, AvailableNow, ringleader | 450,000 | 225,000 | 4.44 | 2.96 | 710 |" in written
    assert "rows of a fetch per CPU second, lz4 and none | confluent-kafka | 1.500" in written
    assert "receive 0.40, columns 0.60" in written
    assert "rows/s of a batch read | Spark's connector | 1.500 | at least 1.5 | reached" in written
    assert "| batch read, JSON, ringleader | 450,000 |" in written
    assert "| streaming, AvailableNow, mixed, warm micro-batches, ringleader | 750,000 | 375,000 |" in written
    assert "rows/CPU second of a warm micro-batch, mixed | Spark's connector | 1.500 | at least 1 " in written
    assert "rows/s of a whole AvailableNow query, JSON | Spark's connector | 1.500 | at least 1.1" in written


def test_each_comes_first_in_every_other_round() -> None:
    rounds = [in_turn((spark.CONNECTOR, RINGLEADER), number) for number in range(-1, 3)]
    assert [names[0] for names in rounds] == [spark.CONNECTOR, RINGLEADER] * 2
    assert all(sorted(names) == sorted(rounds[0]) for names in rounds)


def test_payloads_are_json_of_various_lengths_and_the_same_in_every_run(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    spark.payloads(one)
    spark.payloads(other)
    assert one.read_bytes() == other.read_bytes()
    lines = one.read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == spark.PAYLOADS
    sizes = spark.json_bytes(one)
    assert (sizes["least"], sizes["most"]) == (spark.LEAST_BYTES, spark.MOST_BYTES)
    assert 950 < sizes["median"] < 1_100


def test_mixed_values_hardly_compress_but_enough_that_a_producer_compresses_them() -> None:
    values = spark.hardly_compressible()
    assert values == spark.hardly_compressible()
    assert {len(value) for value in values} <= set(range(spark.LEAST_BYTES, spark.MOST_BYTES + 1))
    whole = b"".join(values)
    assert 0.9 * len(whole) < len(compress(Compression.LZ4, whole)) < len(whole)


def test_both_processes_call_things_by_the_same_names() -> None:
    assert (spark_job.CONNECTOR, spark_job.OURS) == (spark.CONNECTOR, RINGLEADER)
    assert spark_job.EMPTY_ROWS == spark.EMPTY_ROWS
    assert f"{spark_job.EMPTY}, no rows" == spark.EMPTY
    for what in spark_job.MEASUREMENTS:
        assert what in spark.summary(measurements(1.0))


def test_lines_say_what_was_measured() -> None:
    for one in measurements(1.0):
        assert spark.described(one).startswith(f"{one['what']}, ")
