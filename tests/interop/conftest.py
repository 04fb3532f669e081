"""Tests beside a real Apache Kafka have a second try: the timeouts of the broker and its clients run by the
clock."""

from __future__ import annotations

from pathlib import Path

import pytest

BESIDE_KAFKA = (Path(__file__).parent / "clients", Path(__file__).parent / "cluster")
WHY = "Apache Kafka's broker and clients: timeouts that run by the clock"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent in BESIDE_KAFKA:
            item.add_marker(pytest.mark.second_try(WHY))
