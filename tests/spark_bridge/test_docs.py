"""The options' model is their documentation: the page shows what the code takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.document import table
from ringleader.spark_bridge.options.sink import SinkOptions

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.mark.parametrize("model", [StreamOptions, BatchOptions, SinkOptions])
def test_the_page_shows_every_option(model: type[BaseModel]) -> None:
    assert table(model) in PAGE.read_text(), (
        "run python -m ringleader.spark_bridge.options.document and paste"
    )
