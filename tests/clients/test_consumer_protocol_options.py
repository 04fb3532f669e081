"""GroupConsumer(group_protocol="consumer"): its options, and a coordinator that does not serve it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.errors import MembershipUnsupportedError
from ringleader.clients.group.machine.consumer_protocol import ConsumerProtocol
from ringleader.clients.group.subscription import consumer_member, sync_consumer_member
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S

CALLS: dict[str, Any] = {
    "GroupConsumer": lambda **options: GroupConsumer("h:1", "g", "t", **options),
    "consumer_member": lambda **options: consumer_member("h:1", "g", ["t"], **options),
    "sync_consumer_member": lambda **options: sync_consumer_member("h:1", "g", ["t"], **options),
}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 1}) as found:
        yield found


@pytest.mark.parametrize("call", CALLS)
def test_options_that_the_coordinator_decides_are_refused(call: str) -> None:
    classic: dict[str, Any] = {
        "session_timeout_ms": 9_000,
        "heartbeat_interval_ms": 1_000,
        "assignors": ["range"],
        "weight": 2.0,
        "imbalance": 0.2,
        "lag_check_ms": 5,
    }
    for name, value in classic.items():
        with pytest.raises(ValueError, match=rf'{call}\(\): {name}: without .*group_protocol="consumer"'):
            CALLS[call](group_protocol="consumer", **{name: value})
    with pytest.raises(ValueError, match="assignors, session_timeout_ms: without a meaning"):
        CALLS[call](group_protocol="consumer", session_timeout_ms=9_000, assignors=["range"])


@pytest.mark.parametrize("call", CALLS)
def test_the_coordinators_assignor_is_an_option_of_the_consumer_protocol(call: str) -> None:
    with pytest.raises(ValueError, match='group_remote_assignor needs group_protocol="consumer"'):
        CALLS[call](group_remote_assignor="range")
    with pytest.raises(ValueError, match="group_remote_assignor is empty"):
        CALLS[call](group_protocol="consumer", group_remote_assignor="")
    with pytest.raises(ValueError, match="group_protocol has to be one of 'classic', 'consumer'"):
        CALLS[call](group_protocol="new")


def test_each_member_has_an_id_of_its_own_from_the_beginning() -> None:
    one, two = (consumer_member("h:1", "g", ["t"], group_protocol="consumer") for _ in range(2))
    assert isinstance(one.machine.state.rules, ConsumerProtocol)
    assert "" != one.member_id != two.member_id
    assert not isinstance(consumer_member("h:1", "g", ["t"]).machine.state.rules, ConsumerProtocol)


async def test_a_coordinator_without_the_protocol_is_an_error_that_says_what_to_use() -> None:
    without = Coordinator(topics={"t": 4}, group_coordinator_rebalance_protocols="classic")
    with without as coordinator:
        await _says_what_to_use(coordinator)


async def _says_what_to_use(coordinator: Coordinator) -> None:
    async with GroupConsumer(coordinator.bootstrap, "g", "t", group_protocol="consumer") as consumer:
        with pytest.raises(MembershipUnsupportedError, match='use group_protocol="classic"'):
            await consumer.getone(PATIENCE_S)
        with pytest.raises(MembershipUnsupportedError, match="KIP-848"):
            await consumer.wait_assigned(PATIENCE_S)
