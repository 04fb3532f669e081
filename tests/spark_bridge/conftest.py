"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.spark_session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
