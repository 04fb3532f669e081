"""The Python of Spark's workers: PySpark comes from where it is installed, else from Spark's zip."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import py4j
import pyspark
import pytest

from ringleader.spark_bridge.worker_python import python_path
from tests.support.spark_session import worker_python
from tests.support.where_source import WhereSource

SITE = Path(pyspark.__file__).parents[1]
LIB = SITE / "pyspark/python/lib"


@pytest.mark.spark
def test_no_process_of_a_query_imports_pyspark_from_the_zip(spark: Any, tmp_path: Path) -> None:
    spark.dataSource.register(WhereSource)
    frame = spark.readStream.format("where").load()
    query = frame.writeStream.format("memory").queryName("where_it_is").trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    rows = {(row.process, row.file, row.zips) for row in spark.table("where_it_is").collect()}
    assert rows == {("driver", pyspark.__file__, 0), ("task", pyspark.__file__, 0)}


def zipped(path: Path, package: str, version: str) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package}/__init__.py", "")
        archive.writestr(f"{package}/version.py", version)
    return str(path)


def test_zips_of_what_is_installed_go_and_all_else_stays(tmp_path: Path) -> None:
    (py4j_zip,) = LIB.glob("py4j*.zip")
    other = zipped(tmp_path / "mine.zip", "mine", "")
    entries = [str(LIB / "pyspark.zip"), other, str(py4j_zip), "/opt/work", str(tmp_path / "pyspark.zip")]
    kept, why = python_path(entries, [str(SITE)])
    assert kept == [other, "/opt/work", str(tmp_path / "pyspark.zip")]
    assert why == []


def test_a_zip_of_what_is_not_installed_stays_and_why_is_said(tmp_path: Path) -> None:
    newer = zipped(tmp_path / "pyspark.zip", "pyspark", "__version__ = '99'")
    kept, why = python_path([newer], [str(SITE)])
    assert (kept, len(why)) == ([newer], 1)
    assert "another version is installed" in why[0]
    kept, why = python_path([str(LIB / "pyspark.zip")], [str(tmp_path)])
    assert kept == [str(LIB / "pyspark.zip")]
    assert "none is installed" in why[0]
    broken = tmp_path / "pyspark-broken.zip"
    broken.write_text("no zip")
    assert python_path([str(broken)], [str(SITE)])[0] == [str(broken)]


def test_the_command_is_that_python_with_its_arguments_and_environment(tmp_path: Path) -> None:
    command = worker_python(tmp_path)
    root = str(Path(__file__).parents[2])
    code = (
        "import sys, os, py4j, pyspark; print(sys.argv[1:], pyspark.__file__, py4j.__file__, sys.executable)"
    )
    path = os.pathsep.join([str(LIB / "pyspark.zip"), *map(str, LIB.glob("py4j*.zip")), root])
    done = subprocess.run(
        [command, "-W", "error", "-c", code, "-m", "a b"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[0] == f"['-m', 'a b'] {pyspark.__file__} {py4j.__file__} {sys.executable}"
    assert done.stderr == ""
    newer = zipped(tmp_path / "pyspark.zip", "pyspark", "__version__ = '99'")
    done = subprocess.run(
        [command, "-c", "raise SystemExit(7)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([newer, root])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7
    assert done.stderr.startswith("ringleader-spark-python: Spark's workers import pyspark from")
