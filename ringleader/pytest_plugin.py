"""Fixtures for pytest, found by itself when Ringleader is installed. Nothing is loaded before one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ringleader.testing.coordinator import Coordinator


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Have the library imported as it is: pytest rewrites the assert statements of a plugin's whole package.

    That is slow, and threads must not do it at the same time, as ours would at their first requests:
    the `ast` of CPython 3.11 then raises "AST constructor recursion depth mismatch".
    """
    hook = pluginmanager.rewrite_hook
    for marks in ("_must_rewrite", "_marked_for_rewrite_cache"):
        found: Any = getattr(hook, marks, ())
        for name in [one for one in found if one.partition(".")[0] == "ringleader"]:
            found.remove(name) if isinstance(found, set) else found.pop(name)


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
