"""A member's calls end when the caller said, and do not disturb the calls of others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ringleader.clients.errors import RequestTimedOutError, RetriableError
from ringleader.clients.group.membership import GroupMember
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, member

CALLS: list[Callable[[GroupMember], Awaitable[Any]]] = [
    lambda one: one.commit({("t", 0): 1}, timeout_s=0.5),
    lambda one: one.committed([("t", 0)], timeout_s=0.5),
]


async def no_connection(one: GroupMember) -> None:
    """Wait until the member has lost all of them."""
    assert one._driver._cluster is not None
    for connection in list(one._driver._cluster._connections.values()):
        await connection.ended.wait()


@pytest.mark.parametrize("call", CALLS, ids=["commit", "committed"])
async def test_a_call_ends_in_time_while_connecting_hangs(
    coordinator: Coordinator, call: Callable[[GroupMember], Awaitable[Any]]
) -> None:
    """As with a daemon that is stopped: its port takes connections, and nothing comes. No heartbeat tells the
    member before."""
    async with member(coordinator, session_timeout_ms=30_000, heartbeat_interval_ms=20_000) as one:
        await one.wait_assigned(PATIENCE_S)
        try:
            coordinator.faults.delay("*", 60)
            coordinator.faults.disconnect()
            await asyncio.wrap_future(one._driver.submit(lambda: no_connection(one)))
            began = time.monotonic()
            with pytest.raises(RetriableError):
                await call(one)
            assert time.monotonic() - began < 5
        finally:
            coordinator.faults.clear()
            coordinator.faults.disconnect()


async def test_an_impatient_call_leaves_the_connection_to_the_others(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await one.commit({("t", 0): 1})
        coordinator.faults.delay("OffsetFetch", 2, times=1)
        patient = asyncio.create_task(one.committed([("t", 0)]))
        with pytest.raises(RequestTimedOutError):
            await one.committed([("t", 0)], timeout_s=0.3)
        assert (await patient)["t", 0].offset == 1
        assert len(coordinator.faults.seen("OffsetFetch")) <= 2
        assert one.machine.link.found == 1
