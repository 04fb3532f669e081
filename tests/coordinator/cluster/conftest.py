"""A log for all tests of this folder that keeps its lines."""

from __future__ import annotations

import pytest

from tests.support.cluster_nodes import Lines


@pytest.fixture
def lines() -> Lines:
    """What was logged."""
    return Lines()
