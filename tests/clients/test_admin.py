"""Admin against the real daemon."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.descriptions import GroupListing, PartitionLag
from ringleader.clients.errors import BrokerError, ConnectionLostError, RetriableError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import EARLIEST, MemberProtocol, OffsetAndMetadata
from ringleader.testing.coordinator import Coordinator
from tests.support.ports import free_address

QUICK: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100}


async def test_topics(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.create_topic("orders", 3, configs={"retention.ms": "60000"})
        with pytest.raises(BrokerError, match=r"'orders'.*TOPIC_ALREADY_EXISTS") as raised:
            await admin.create_topic("orders")
        assert raised.value.code == 36
        assert [(t.name, len(t.partitions)) for t in await admin.list_topics()] == [("orders", 3), ("t", 4)]
        await admin.create_partitions("orders", 5)
        found, other = await admin.describe_topics(["orders", "t"])
        assert (found.name, len(found.partitions), found.internal) == ("orders", 5, False)
        assert len(found.id) == 16
        assert found.id != other.id
        places = [("orders", p) for p in range(5)]
        assert await admin.end_offsets(places) == dict.fromkeys(places, 0)
        assert await admin.start_offsets(places[:1]) == {places[0]: 0}
        assert await admin.offsets_at({places[0]: 1, places[1]: EARLIEST}) == {places[0]: -1, places[1]: 0}
        await admin.delete_topics(["orders"])
        assert [t.name for t in await admin.list_topics()] == ["t"]
        for ask in (admin.describe_topics(["orders"]), admin.delete_topics(["orders"])):
            with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await ask
        for place in (("orders", 0), ("t", 4)):
            with pytest.raises(BrokerError):
                await admin.end_offsets([place])


async def test_groups(coordinator: Coordinator) -> None:
    async with (
        Admin(coordinator.bootstrap) as admin,
        consumer_member(coordinator.bootstrap, "readers", ["t"], client_id="r", **QUICK) as reader,
        GroupMember(
            coordinator.bootstrap,
            "jobs",
            protocol_type="sharding",
            protocols=[MemberProtocol("deal", b"\xff")],
            assign=lambda _, members: {members[0].member_id: b"\xfe"},
            **QUICK,
        ) as worker,
    ):
        await reader.wait_assigned(20)
        await worker.wait_assigned(20)
        await reader.commit({("t", 0): 3})
        assert await admin.list_groups() == [
            GroupListing("jobs", "sharding", "Stable", "classic"),
            GroupListing("readers", "consumer", "Stable", "classic"),
        ]
        assert await admin.list_groups(["Empty"]) == []
        assert [one.group_id for one in await admin.list_groups(types=["classic"])] == ["jobs", "readers"]
        assert await admin.list_groups(types=["consumer"]) == []
        readers, jobs, missing = await admin.describe_groups(["readers", "jobs", "nobody"])
        (one,) = readers.members
        assert (readers.state, readers.protocol_type) == ("Stable", "consumer")
        assert readers.protocol == "cooperative-sticky"
        assert (one.client_id, one.client_host, one.topics) == ("r", "/127.0.0.1", ("t",))
        assert one.assignment == {"t": [0, 1, 2, 3]}
        assert (readers.group_type, readers.group_epoch, one.member_epoch) == ("classic", None, None)
        assert one.target_assignment is None
        (other,) = jobs.members
        assert (other.assignment, other.raw_metadata, other.raw_assignment) == ({}, b"\xff", b"\xfe")
        assert (missing.state, missing.members) == ("Dead", ())
        lag = await admin.lag("readers")
        assert lag[0] == PartitionLag("t", 0, 3, 0, 0)
        assert [one.partition for one in lag] == [0, 1, 2, 3]
        assert [one.committed for one in lag] == [3, None, None, None]
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            await admin.delete_groups(["readers"])
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            await admin.set_group_offsets("readers", {("t", 0): 1})


async def test_offsets_of_a_group_without_members(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.set_group_offsets("by hand", {("t", 0): 7, ("t", 1): OffsetAndMetadata(8, "why")})
        everything = {("t", 0): OffsetAndMetadata(7), ("t", 1): OffsetAndMetadata(8, "why")}
        assert await admin.group_offsets("by hand") == everything
        assert await admin.group_offsets("by hand", [("t", 1), ("t", 3)]) == {("t", 1): everything["t", 1]}
        assert await admin.group_offsets("nobody") == {}
        await admin.delete_groups(["by hand"])
        with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
            await admin.delete_groups(["by hand"])


async def test_all_names_that_are_refused_are_reported(coordinator: Coordinator) -> None:
    coordinator.create_topic("there")
    async with Admin(coordinator.bootstrap) as admin:
        for ask in (admin.delete_topics(["gone", "there", "away"]), admin.describe_topics(["gone", "away"])):
            with pytest.raises(BrokerError, match=r"'gone': UNKNOWN_TOPIC.*; .*'away': UNKNOWN_TOPIC"):
                await ask
        assert [one.name for one in await admin.list_topics()] == ["t"]
        with pytest.raises(BrokerError, match=r"no partition t-7.*; no partition t-8"):
            await admin.end_offsets([("t", 7), ("t", 0), ("t", 8)])
        await admin.set_group_offsets("idle", {("t", 0): 1})
        with pytest.raises(BrokerError, match=r"'nobody': GROUP_ID_NOT.*; .*'none': GROUP_ID_NOT"):
            await admin.delete_groups(["nobody", "idle", "none"])
        assert await admin.list_groups() == []
        with pytest.raises(BrokerError, match=r"offset of a-0 .*UNKNOWN_TOPIC.*offset of b-1 "):
            await admin.set_group_offsets("idle", {("a", 0): 1, ("b", 1): 2})


async def test_one_deadline_for_all_requests_of_a_call(coordinator: Coordinator) -> None:
    """Each answer takes less than the time of the call, all together take more."""
    coordinator.faults.delay("*", 0.4)
    async with Admin(coordinator.bootstrap, timeout_ms=1_000) as admin:
        with pytest.raises(RetriableError):
            await admin.lag("g")


async def test_one_deadline_for_several_calls(coordinator: Coordinator) -> None:
    coordinator.faults.delay("Metadata", 60)
    began = time.monotonic()
    async with Admin(coordinator.bootstrap, timeout_ms=60_000) as admin:
        bounded = admin.within(1)
        for _ in range(2):
            with pytest.raises(RetriableError):
                await bounded.list_topics()
    assert time.monotonic() - began < 30
    coordinator.faults.disconnect()


def test_lag() -> None:
    assert PartitionLag("t", 0, 3, 0, 10).lag == 7
    assert PartitionLag("t", 0, None, 4, 10).lag == 6
    assert PartitionLag("t", 0, 12, 0, 10).lag == 0
    assert PartitionLag("t", 0, 3, None, None).lag is None


async def test_the_lag_of_a_deleted_topic(coordinator: Coordinator) -> None:
    coordinator.create_topic("gone")
    async with Admin(coordinator.bootstrap) as admin:
        await admin.set_group_offsets("g", {("t", 0): 7})
        assert await admin.lag("nobody") == []
        await admin.delete_topics(["gone"])
        assert [one.topic for one in await admin.lag("g")] == ["t"]


async def test_nobody_answers() -> None:
    bootstrap = free_address()
    async with Admin(bootstrap, timeout_ms=200) as admin:
        with pytest.raises(ConnectionLostError, match=bootstrap):
            await admin.list_topics()
        with pytest.raises(RetriableError):
            await admin.describe_groups(["g"])


def test_another_event_loop_is_told_at_once(coordinator: Coordinator) -> None:
    """Its connections belong to the first one: in another one no answer ever comes."""
    admin = Admin(coordinator.bootstrap)

    async def use() -> None:
        await admin.list_topics()
        await admin.close()

    asyncio.run(use())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="was first used in an event loop that has ended"):
            asyncio.run(admin.list_topics())
    asyncio.run(admin.close())  # there is nothing left to close


async def test_a_loop_next_to_the_first_is_told_at_once(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.list_topics()

        def elsewhere() -> None:
            for call in (admin.list_topics, admin.close):
                with pytest.raises(RuntimeError, match="is not the one that runs here"):
                    asyncio.run(call())

        await asyncio.to_thread(elsewhere)
        assert await admin.list_topics()
