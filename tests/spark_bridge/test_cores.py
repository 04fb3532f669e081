"""How many cores Spark was given: read from its command line, its properties, and the process's limits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.spark_bridge.batch.planning import cut_slices
from ringleader.spark_bridge.options.cores import cores_of, master_of, quotas, usable_cores
from ringleader.spark_bridge.values import OffsetRange
from ringleader.testing.coordinator import Coordinator
from tests.support.shares import WHOLE
from tests.support.spark_session import CORES

SUBMIT = ["java", "-cp", "x", "org.apache.spark.deploy.SparkSubmit"]


@pytest.mark.parametrize(
    ("command", "master"),
    [
        ([*SUBMIT, "--conf", "spark.master=local[2]", "--conf", "spark.ui.enabled=false"], "local[2]"),
        ([*SUBMIT, "--master", "yarn", "--conf", "spark.master=local[2]"], "yarn"),
        (["java", "-Dspark.master=spark://a:7077", "org.apache.spark.Other"], "spark://a:7077"),
        (SUBMIT, "local[*]"),
        (["java", "org.apache.spark.deploy.yarn.ApplicationMaster"], None),
    ],
)
def test_the_master_is_in_the_command_line(
    command: list[str], master: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert master_of(command) == master


def test_the_master_may_be_in_a_file_of_properties(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("# spark.master x\nspark.master   k8s://https://a\n")
    assert master_of(SUBMIT) == "k8s://https://a"
    (tmp_path / "own").write_text("spark.master=local[5]\n")
    assert master_of([*SUBMIT, "--properties-file", str(tmp_path / "own")]) == "local[5]"


def test_only_a_local_master_says_how_many_cores() -> None:
    assert [cores_of(master) for master in ("local", "local[3]", "local[4,2]")] == [1, 3, 4]
    assert cores_of("local[*]") == cores_of("local[*, 3]") == usable_cores()
    for master in ("yarn", "local-cluster[2,1,1024]", "spark://local[2]", None):
        assert cores_of(master) is None


def test_a_control_group_limits_the_cores(tmp_path: Path) -> None:
    (tmp_path / "pods" / "one").mkdir(parents=True)
    (tmp_path / "pods" / "cpu.max").write_text("400000 100000\n")
    (tmp_path / "pods" / "one" / "cpu.max").write_text("max 100000\n")
    assert quotas(["0::/pods/one"], tmp_path) == [4]
    (tmp_path / "pods" / "one" / "cpu.max").write_text("150000 100000\n")
    assert min(quotas(["0::/pods/one"], tmp_path)) == 2
    old = tmp_path / "cpu" / "docker"
    old.mkdir(parents=True)
    (old / "cpu.cfs_quota_us").write_text("100000\n")
    (old / "cpu.cfs_period_us").write_text("100000\n")
    assert quotas(["3:cpu,cpuacct:/docker", "2:memory:/docker"], tmp_path) == [1]
    assert quotas(["0::/elsewhere"], tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_limits_the_cores() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_where_cores_are_not_known_tasks_are_as_many_as_partitions() -> None:
    ranges = {("t", number): OffsetRange(0, 50_000) for number in range(7)}
    assert [len(cut_slices(ranges, cores)) for cores in (None, 2)] == [7, 2]
    ranges["t", 0] = OffsetRange(0, 1_000_000)
    rows = [sum(split.end - split.start for split in task) for task in cut_slices(ranges, None)]
    assert len(rows) == 7
    assert max(rows) < 300_000, "a big partition is cut"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """Sixteen thousand records, in eight partitions of a topic."""
    with Coordinator(topics={"t": 8}) as found:
        for partition in range(8):
            found.produce("t", *[b"x"] * 2_000, partition=partition)
        yield found


@pytest.mark.spark
def test_tasks_follow_what_spark_was_given(spark: Any, coordinator: Coordinator) -> None:
    assert spark.sparkContext.master == f"local[{CORES}]"
    reader = spark.read.format("ringleader").option("kafka.bootstrap.servers", coordinator.bootstrap)
    frame = reader.option("subscribe", "t").load()
    assert (frame.rdd.getNumPartitions(), frame.count()) == (CORES, 16_000)


@pytest.mark.spark
@pytest.mark.share
@pytest.mark.skipif(not WHOLE, reason="its three JVMs are for `make nightly`")
def test_tasks_are_as_many_as_partitions_where_executors_are_processes(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    script = """
        import sys
        from pathlib import Path
        from tests.support.spark_session import spark_session

        with spark_session(Path(sys.argv[1]), "local-cluster[1,1,1024]") as spark:
            reader = spark.read.format("ringleader").option("kafka.bootstrap.servers", sys.argv[2])
            frame = reader.option("subscribe", "t").load()
            print("tasks", frame.rdd.getNumPartitions(), "rows", frame.count())
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), coordinator.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert "tasks 8 rows 16000\n" in done.stdout, done.stderr
