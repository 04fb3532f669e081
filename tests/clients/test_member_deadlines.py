"""A member's calls end when the caller said, and do not disturb the calls of others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ringleader.clients.connection.security import SaslPlain
from ringleader.clients.errors import (
    AuthenticationError,
    ConnectionLostError,
    CoordinatorUnavailableError,
    MembershipOverError,
    RequestTimedOutError,
    RetriableError,
)
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import FindCoordinatorResponse, FindCoordinatorResponseCoordinator
from ringleader.testing.coordinator import Coordinator
from tests.support.ports import free_address
from tests.support.scripted_broker import ScriptedBroker
from tests.support.sharding import PATIENCE_S, assign, member

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
        assert one.machine.state.link.found == 1


# ---- ready ----


def sync_member(bootstrap: str, **options: Any) -> SyncGroupMember:
    return SyncGroupMember(bootstrap, "jobs", protocols=[MemberProtocol("deal")], assign=assign, **options)


async def test_ready_returns_when_the_coordinator_was_found(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.ready(PATIENCE_S)
        assert one.machine.state.link.found
        await one.ready(0)
    with pytest.raises(MembershipOverError):
        await one.ready(PATIENCE_S)


def test_ready_of_a_synchronous_member(coordinator: Coordinator) -> None:
    one = sync_member(coordinator.bootstrap)
    with pytest.raises(MembershipOverError):
        one.ready(0)
    with one:
        one.ready(PATIENCE_S)
        assert one.machine.state.link.found


async def test_ready_names_the_addresses_that_cannot_be_reached() -> None:
    bootstrap = free_address()
    async with member(bootstrap) as one:
        with pytest.raises(ConnectionLostError, match=f"none of the bootstrap.*{bootstrap}.*refused"):
            await one.ready(1)
    with (
        sync_member(bootstrap) as two,
        pytest.raises(ConnectionLostError, match=f"none of the bootstrap.*{bootstrap}.*refused"),
    ):
        two.ready(1)


async def test_ready_tells_that_there_is_no_coordinator() -> None:
    none = FindCoordinatorResponseCoordinator(key="jobs", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answer = FindCoordinatorResponse(coordinators=[none])
    async with ScriptedBroker({10: lambda *_: answer}) as broker, member(broker.address) as one:
        with pytest.raises(CoordinatorUnavailableError, match=r"within 0\.5 s.*COORDINATOR_NOT_AVAILABLE"):
            await one.ready(0.5)


async def test_ready_raises_what_ended_the_membership(coordinator: Coordinator) -> None:
    """The coordinator does not ask for SASL."""
    async with member(coordinator, sasl=SaslPlain("somebody", "secret")) as one:
        with pytest.raises(AuthenticationError, match="does not ask for SASL"):
            await one.ready(PATIENCE_S)
    two = sync_member(coordinator.bootstrap, sasl=SaslPlain("somebody", "secret"))
    with two, pytest.raises(AuthenticationError, match="does not ask for SASL"):
        two.ready(PATIENCE_S)
