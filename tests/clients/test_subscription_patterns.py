"""`SubscriptionPattern`: the coordinator of the consumer protocol matches topics, in the syntax of RE2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ringleader import InvalidRegularExpressionError, MembershipUnsupportedError, SubscriptionPattern
from ringleader.clients.consumer import GroupConsumer, SyncGroupConsumer
from ringleader.clients.group.subscription import consumer_member, partitions_of, sync_consumer_member
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, until

QUICK: dict[str, Any] = {
    "group_consumer_assignment_interval_ms": 0,
    "group_consumer_heartbeat_interval_ms": 100,
}
CALLS: dict[str, Any] = {
    "GroupConsumer": lambda **options: GroupConsumer("h:1", "g", **options),
    "SyncGroupConsumer": lambda **options: SyncGroupConsumer("h:1", "g", **options),
    "consumer_member": lambda **options: consumer_member("h:1", "g", **options),
    "sync_consumer_member": lambda **options: sync_consumer_member("h:1", "g", **options),
}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"orders-de": 2, "other": 1}, **QUICK) as found:
        yield found


def consumer(where: Coordinator, *topics: str, **options: Any) -> GroupConsumer:
    more = {"group_protocol": "consumer", "auto_offset_reset": "earliest"} | options
    return GroupConsumer(where.bootstrap, "g", topics or None, **more)


def has(one: GroupConsumer, **counts: int) -> bool:
    places = {(topic.replace("_", "-"), number) for topic, count in counts.items() for number in range(count)}
    return set(one.assignment()) == places


@pytest.mark.parametrize("call", CALLS)
def test_it_needs_the_consumer_protocol_and_a_text(call: str) -> None:
    one = SubscriptionPattern("orders-.*")
    assert (one, one.pattern) == (SubscriptionPattern("orders-.*"), "orders-.*")
    CALLS[call](pattern=one, group_protocol="consumer")
    with pytest.raises(ValueError, match='it needs group_protocol="consumer"'):
        CALLS[call](pattern=one)
    with pytest.raises(ValueError, match="either topics or a pattern"):
        CALLS[call](topics=["t"], pattern=one, group_protocol="consumer")
    wrongs: list[Any] = ["", 5, None, "x" * 40_000, "\udc80"]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="SubscriptionPattern"):
            SubscriptionPattern(wrong)


async def test_the_coordinator_matches_what_is_there_and_what_comes(coordinator: Coordinator) -> None:
    async with consumer(coordinator, pattern=SubscriptionPattern("orders-.*")) as one:
        await until(lambda: has(one, orders_de=2))
        coordinator.create_topic("orders-eu", 1)
        coordinator.create_topic("my-orders-eu", 1)
        await until(lambda: has(one, orders_de=2, orders_eu=1))
    expressions = [
        message.subscribed_topic_regex
        for message in (each.request for each in coordinator.faults.seen("ConsumerGroupHeartbeat"))
        if isinstance(message, ConsumerGroupHeartbeatRequest) and message.subscribed_topic_regex is not None
    ]
    assert expressions == ["orders-.*"], "it is told once"


async def test_what_is_new_begins_at_its_beginning(coordinator: Coordinator) -> None:
    """The consumer looked at all topics when it began, though it does not match them itself."""
    pattern = SubscriptionPattern("orders-.*")
    async with consumer(coordinator, pattern=pattern, auto_offset_reset="latest") as one:
        await until(lambda: has(one, orders_de=2))
        coordinator.create_topic("orders-eu", 1)
        coordinator.produce("orders-eu", b"first")
        record = await one.getone(PATIENCE_S)
        assert record is not None
        assert (record.topic, record.record.value) == ("orders-eu", b"first")


async def test_another_subscription_at_run_time(coordinator: Coordinator) -> None:
    """From names to an expression of the coordinator, to one of the client, and back."""
    async with consumer(coordinator, "other", metadata_max_age_ms=50) as one:
        await until(lambda: has(one, other=1))
        await one.subscribe(pattern=SubscriptionPattern("orders-.*"))
        await until(lambda: has(one, orders_de=2))
        await one.subscribe(["other"])
        await until(lambda: has(one, other=1))
        await one.subscribe(pattern=re.compile("(?=orders).*"))
        await until(lambda: has(one, orders_de=2))
        await one.subscribe(pattern=SubscriptionPattern("o[a-z]+"))
        await until(lambda: has(one, other=1))


async def test_an_expression_that_is_none_of_re2_ends_the_membership(coordinator: Coordinator) -> None:
    async with consumer(coordinator, pattern=SubscriptionPattern("(?=orders).*")) as one:
        with pytest.raises(InvalidRegularExpressionError, match=r"SubscriptionPattern '\(\?=orders\)\.\*'"):
            await one.getone(PATIENCE_S)
    classic = GroupConsumer(coordinator.bootstrap, "h", ["other"])
    async with classic:
        with pytest.raises(ValueError, match='it needs group_protocol="consumer"'):
            await classic.subscribe(pattern=SubscriptionPattern("o.*"))


async def test_a_member_and_a_blocking_consumer_take_it_too(coordinator: Coordinator) -> None:
    pattern = SubscriptionPattern("orders-.*")
    member = consumer_member(coordinator.bootstrap, "m", pattern=pattern, group_protocol="consumer")
    async with member:
        await until(lambda: member.assigned is not None and len(partitions_of(member.assigned)) == 2)


async def test_a_coordinator_without_expressions_is_an_error_that_says_so(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsumerGroupHeartbeatRequest, "MAX_VERSION", 0)
    async with consumer(coordinator, pattern=SubscriptionPattern("o.*")) as one:
        with pytest.raises(MembershipUnsupportedError, match="matches no SubscriptionPattern"):
            await one.getone(PATIENCE_S)
