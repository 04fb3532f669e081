"""A log that keeps its lines, and nodes before what stands for a cluster, for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines, Nodes


@pytest.fixture
def lines() -> Lines:
    """The lines that were logged."""
    return Lines()


@pytest.fixture
def kafka_cluster() -> Iterator[Coordinator]:
    """Stands for the cluster."""
    with Coordinator(topics={"orders": 3}) as coordinator:
        yield coordinator


@pytest.fixture
async def nodes(kafka_cluster: Coordinator, lines: Lines) -> AsyncIterator[Nodes]:
    """None is started yet."""
    async with Nodes(kafka_cluster, lines) as made:
        yield made
