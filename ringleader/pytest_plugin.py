"""Fixtures for pytest, found by itself when Ringleader is installed. Nothing is loaded before one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ringleader.testing.coordinator import Coordinator


@pytest.fixture
def ringleader_coordinator() -> Iterator[Coordinator]:
    """A fresh coordinator for one test; see `ringleader.testing`."""
    from ringleader.testing.coordinator import Coordinator

    with Coordinator() as coordinator:
        yield coordinator


@pytest.fixture(scope="session")
def ringleader_session_coordinator() -> Iterator[Coordinator]:
    """One coordinator for all tests of the session: give each test topics and groups of its own."""
    from ringleader.testing.coordinator import Coordinator

    with Coordinator() as coordinator:
        yield coordinator
