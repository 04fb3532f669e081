"""Tests beside a real Apache Kafka have a second try: the timeouts of the broker and its clients run by the
clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

BESIDE_KAFKA = (Path(__file__).parent / "clients", Path(__file__).parent / "cluster")
WHY = "Apache Kafka's broker and clients: timeouts that run by the clock"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Second tries; and tests that share what is started for their module stay on one process."""
    for item in items:
        if item.path.parent in BESIDE_KAFKA:
            item.add_marker(pytest.mark.second_try(WHY))
            if item.get_closest_marker("xdist_group") is None and _shares(item):
                item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _shares(item: Any) -> bool:
    found = item._fixtureinfo.name2fixturedefs.values()
    module = item.nodeid.partition("::")[0]
    return any(one.scope == "module" and one.baseid == module for several in found for one in several)
