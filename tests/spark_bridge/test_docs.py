"""The options' model is their documentation: the page shows what the code takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.document import table
from ringleader.spark_bridge.options.sink import SinkOptions
from tools import spark_options_page

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.mark.parametrize("model", [StreamOptions, BatchOptions, SinkOptions])
def test_the_page_shows_every_option(model: type[BaseModel]) -> None:
    assert table(model) in PAGE.read_text(), (
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
