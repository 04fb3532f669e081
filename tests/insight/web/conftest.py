"""One history with something of everything, for all tests that only read it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.insight.made import incidents


@pytest.fixture(scope="session")
def recent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quarter of an hour of a small cluster, over not long ago."""
    path = tmp_path_factory.mktemp("insight") / "recent.sqlite"
    return incidents(path, start_ms=time.time_ns() // 1_000_000 - 3_600_000)
