"""Logs that are late again and again, or when the node stops."""

from __future__ import annotations

import asyncio

import pytest

from tests.coordinator.runtime.test_moves import node
from tests.support.served import until
from tests.support.tables import NOT_AVAILABLE


async def test_a_node_that_stops_waits_for_no_late_append(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.coordinator.runtime.log.LATE_S", 0.01)
    async with node(0, storage_timeout_ms=600_000) as runtime:
        runtime.store.hold(0)
        assert await runtime.put(0, b"a", 1).result() == NOT_AVAILABLE
        assert runtime.late == {0}
    assert not runtime.store.is_open


async def test_a_log_that_was_late_is_watched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.coordinator.runtime.log.LATE_S", 0.01)
    monkeypatch.setattr("ringleader.coordinator.runtime.log.LATE_INTERVAL_S", 0.01)
    async with node(0, 1) as runtime:
        for number in range(3):
            runtime.store.hold(0)
            assert await runtime.put(0, b"a", number).result() == NOT_AVAILABLE
            runtime.store.resume(0)
            await until(lambda: not runtime.late)
            await asyncio.sleep(0.05)  # the watch ends meanwhile
