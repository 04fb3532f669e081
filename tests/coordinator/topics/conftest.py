"""Fixtures of several tests of the topic log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.durable import SyncWatch


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncWatch]:
    """Every sync below `tmp_path / "live"`, which is there and durable."""
    (tmp_path / "live").mkdir()
    watching = SyncWatch(tmp_path / "live", monkeypatch)
    yield watching
    watching.close()
