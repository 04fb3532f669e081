"""Format ``ringleader-history``: the tables of exported files, from these or from a watcher's file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringleader.insight.columns.files import write
from ringleader.insight.columns.model import TABLES
from ringleader.insight.columns.rows import Selection, groups_in
from ringleader.insight.history import History
from ringleader.spark_bridge.errors import OptionsError
from ringleader.spark_bridge.history import HistoryDataSource, Part
from ringleader.testing.coordinator import Coordinator
from tests.insight.feed.watching import PARTITIONS, TOPIC, Pods, watching
from tests.insight.made import START_MS, incidents

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history file with three groups."""
    return incidents(tmp_path_factory.mktemp("made") / "prod.sqlite")


@pytest.fixture(scope="module")
def lake(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of it: two directories, one for each half of the time."""
    directory = tmp_path_factory.mktemp("lake")
    with History.open(store, read_only=True) as history:
        groups = groups_in(history)
        middle_ms = START_MS + 120_000
        write(history, directory / "first", Selection(groups, None, middle_ms))
        write(history, directory / "second", Selection(groups, middle_ms))
        write(history, directory / "all" / "of it", Selection(groups))
    return directory


def frame(spark: Any, path: Path, **options: str) -> Any:
    return spark.read.format("ringleader-history").options(**options).load(str(path))


def rows(found: Any) -> list[str]:
    return sorted(map(str, found.collect()))


@pytest.mark.parametrize("table", TABLES)
def test_a_history_and_its_files_have_the_same_rows_and_types(
    spark: Any, store: Path, lake: Path, table: str
) -> None:
    stored = frame(spark, store, table=table)
    files = frame(spark, lake / "all" / "of it", table=table)
    plain = spark.read.parquet(str(lake / "all" / "of it" / f"{table}.parquet"))
    assert stored.schema == files.schema == plain.schema
    assert rows(stored) == rows(files) == rows(plain) != []


def test_directories_of_exports_are_read_together(spark: Any, store: Path, lake: Path) -> None:
    assert rows(frame(spark, lake)) == rows(frame(spark, store))


def test_what_a_real_watcher_writes_is_read_while_it_writes(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "watched.sqlite"
    with Coordinator(topics={TOPIC: PARTITIONS}) as coordinator:
        pods = Pods(coordinator.bootstrap, "billing")
        try:
            with watching(coordinator.bootstrap, file) as watch:
                pods.up()
                pods.up()
                watch.catch_up()
                before = frame(spark, file).select("cause", "confidence").collect()
                pods.down()
                watch.catch_up()
                found = frame(spark, file).orderBy("at")
                after = found.select("cause", "confidence").collect()
                moved = frame(spark, file, table="moves").count()
                assert moved == found.selectExpr("sum(moved)").first()[0]
        finally:
            pods.close()
    assert ("member joined", "exact") in before
    assert [tuple(row) for row in after[len(before) :]] == [("member left", "exact")]


@pytest.mark.parametrize("where", ["store", "lake"])
def test_groups_and_times_are_options(spark: Any, store: Path, lake: Path, where: str) -> None:
    path = {"store": store, "lake": lake / "all"}[where]
    with History.open(store, read_only=True) as history:
        wanted = history.rebalances("orders", since_ms=START_MS + 60_000, until_ms=START_MS + 179_999)
        lives = history.members("orders", since_ms=START_MS + 60_000, until_ms=START_MS + 179_999)
    between = {
        name: moment(START_MS + after).isoformat() for name, after in (("since", 60_000), ("until", 180_000))
    }
    found = frame(spark, path, groups="orders", **between)
    assert sorted(row.id for row in found.collect()) == sorted(one.id for one in wanted)
    found = frame(spark, path, groups='["orders"]', table="members", **between)
    assert sorted(row.member_id for row in found.collect()) == sorted(one.member.member_id for one in lives)
    both = frame(spark, path, groups="orders, audit").select("group").distinct().collect()
    assert sorted(row.group for row in both) == ["audit", "orders"]


def moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


@pytest.fixture
def pushing(spark: Any) -> Iterator[None]:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    yield
    spark.conf.unset(name)


@pytest.mark.parametrize("where", ["store", "lake"])
def test_filters_that_are_pushed_change_no_row(
    spark: Any, pushing: None, store: Path, lake: Path, where: str
) -> None:
    path = {"store": store, "lake": lake / "all"}[where]
    at = f"timestamp_millis({START_MS + 60_000})"
    with History.open(store, read_only=True) as history:
        end = f"timestamp_millis({history.rebalances('orders')[2].at_ms})"
    for table, condition in [
        ("rebalances", "`group` = 'orders'"),
        ("rebalances", f"`group` in ('orders', 'audit') and at > {at}"),
        ("rebalances", f"at <= {at}"),
        ("rebalances", f"at <= {end}"),
        ("members", f"since <= {at} and until >= {at}"),
        ("members", "until is null"),
        ("moves", f"topic = 'orders' and not at < {at}"),
        ("costs", f"since < {at}"),
        ("events", "`group` = ''"),
        ("rebalances", "`group` = 'no such group'"),
    ]:
        plain = frame(spark, path, table=table).where(condition)
        pushed = frame(spark, path, table=table, pushFilters="true").where(condition)
        assert rows(pushed) == rows(plain), condition


def test_filters_narrow_what_is_read(spark: Any, store: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

    source = HistoryDataSource({"path": str(store), "pushFilters": "true"})
    reader: Any = source.reader(source.schema())
    filters = [
        In(("group",), ("orders", "audit")),
        EqualTo(("group",), "orders"),
        GreaterThanOrEqual(("at",), moment(START_MS + 60_000)),
        LessThan(("at",), moment(START_MS + 120_000)),
    ]
    assert reader.pushFilters(filters) == filters
    parts = reader.partitions()
    assert [group for part in parts if isinstance(part, Part) for group in part.groups] == ["orders"]
    read = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    with History.open(store, read_only=True) as history:
        wanted = history.rebalances("orders", since_ms=START_MS + 60_000, until_ms=START_MS + 120_000)
    assert [row["id"] for row in read] == [one.id for one in wanted] != []


# ---- what is wrong ----


def test_a_wrong_path_is_one_sentence_in_spark(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"there is no history at .*none\.sqlite: `ringleader watch`"):
        frame(spark, tmp_path / "none.sqlite")


def refused(**options: str) -> str:
    source = HistoryDataSource(options)
    with pytest.raises(OptionsError) as error:
        source.schema()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_is_one_sentence(store: Path, lake: Path, tmp_path: Path) -> None:
    path = str(store)
    assert refused() == "The option 'path' is required."
    assert "there is no rebalances.parquet in" in refused(path=str(tmp_path))
    for where in (path, str(lake)):
        sentence = refused(path=where, groups="order")
        assert sentence == "There is no group order in the history; did you mean orders?"
    assert "mount it, or read exported files with spark.read.parquet" in refused(path="s3a://lake/history")
    assert refused(path=path, grups="a") == (
        "The option 'grups' is not known to format ringleader-history. Did you mean 'groups'?"
    )
    assert "a time is 2h, for two hours ago" in refused(path=path, since="yesterday")
    assert "'rebalances'" in refused(path=path, table="rebalance")
    older = tmp_path / "older.sqlite"
    older.write_bytes(store.read_bytes())
    connection = sqlite3.connect(older)
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    assert refused(path=str(older)) == (
        f"{older} has the older format 0: `ringleader watch --history {older}` brings it up to date."
    )
    assert "is no history" in refused(path=__file__)


def test_files_of_others_and_of_a_newer_ringleader_are_refused(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "rebalances.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    assert refused(path=str(tmp_path)) == (
        f"{file} is no file of `ringleader history --export`: name another directory."
    )
    table = pq.read_table(lake / "first" / "rebalances.parquet")
    metadata = {**table.schema.metadata, b"ringleader.format": b"9"}
    pq.write_table(table.replace_schema_metadata(metadata), file)
    assert "was written by a newer Ringleader (format 9, this one knows 1)" in refused(path=str(tmp_path))
    file.write_bytes(b"PAR1")
    assert re.match(rf"{file} is no Parquet file that can be read: ", refused(path=str(tmp_path)))


def test_a_schema_of_ones_own_is_refused(store: Path) -> None:
    from pyspark.sql.types import StructType

    source = HistoryDataSource({"path": str(store)})
    with pytest.raises(OptionsError, match="takes no schema"):
        source.reader(StructType())
