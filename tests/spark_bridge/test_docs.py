"""The options' model is their documentation: the page shows what the code takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.document import table
from ringleader.spark_bridge.options.history import HistoryOptions
from ringleader.spark_bridge.options.sink import SinkOptions
from tools import spark_options_page, spark_versions
from tools.wheels import CONSTRAINTS

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
HISTORIES = PAGE.with_name("history-data.md")


@pytest.mark.parametrize(
    ("model", "page"),
    [(StreamOptions, PAGE), (BatchOptions, PAGE), (SinkOptions, PAGE), (HistoryOptions, HISTORIES)],
)
def test_the_page_shows_every_option(model: type[BaseModel], page: Path) -> None:
    assert table(model) in page.read_text(), (
        "run python -m ringleader.spark_bridge.options.document and paste"
    )


def test_the_page_of_the_connectors_options_is_up_to_date() -> None:
    written = spark_options_page.PAGE.read_text()
    assert written == spark_options_page.render(), "run python -m tools.spark_options_page"


@pytest.mark.parametrize("model", [StreamOptions, BatchOptions, SinkOptions])
def test_every_option_that_is_taken_stands_beside_the_connectors(model: type[BaseModel]) -> None:
    written = spark_options_page.PAGE.read_text()
    names = [name for field in model.model_fields.values() for name in (field.alias or "").split(", ")]
    assert [name for name in names if f"`{name}`" not in written] == []


def test_the_page_says_of_versions_of_spark_what_is_tried() -> None:
    head, _, *rows = PAGE.read_text().split("## Versions of Spark")[1].split("\n\n")[2].splitlines()
    assert head == spark_versions.table({}).splitlines()[0]
    found = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert tuple(version for version, *_ in found) == spark_versions.VERSIONS
    assert {answer for _, *answers in found for answer in answers} <= {"yes", "no"}
    assert f"pyspark=={spark_versions.VERSIONS[-1]}" in CONSTRAINTS.read_text().splitlines()


def test_a_version_lacks_what_it_says_and_all_else_fails() -> None:
    outputs = ("", "OptionsError: a stream needs PySpark 4.2 or newer", "AssertionError: [1]", "")
    parts = dict(zip(spark_versions.PARTS, outputs, strict=True))
    row = spark_versions.table({"9.9.9": parts}).splitlines()[-1]
    assert row == "| 9.9.9 | yes | no | **fails** | yes |"
