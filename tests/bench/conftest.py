"""Benchmarks that only have to run, several at once: each process of pytest has a processor of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_processor(request: pytest.FixtureRequest, worker_id: str) -> Iterator[None]:
    """A benchmark puts its servers on the first processor that it may use: all would wait for that one."""
    before = os.sched_getaffinity(0)
    if request.node.get_closest_marker("bench") and worker_id != "master":
        processors = sorted(before)
        os.sched_setaffinity(0, {processors[int(worker_id.removeprefix("gw")) % len(processors)]})
    yield
    os.sched_setaffinity(0, before)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those with three brokers and nodes take longest, and begin first."""
    items.sort(key=lambda item: item.path.name != "test_nodes.py")
