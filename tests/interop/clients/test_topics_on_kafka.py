"""Our consumers and their leader against Apache Kafka: patterns, topics that change, lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ringleader.clients.admin import Admin
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from tests.interop.secured import Door, Secured

PATIENCE_S = 60.0
QUICK: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
    "metadata_max_age_ms": 100,
}


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def owned(member: GroupMember) -> list[tuple[str, int]]:
    return [] if member.assigned is None else partitions_of(member.assigned)


async def until_owned(member: GroupMember, **shares: int) -> None:
    want = sorted((topic, number) for topic, count in shares.items() for number in range(count))
    await until(lambda: owned(member) == want)


async def test_a_pattern(door: Door, group: str, request: pytest.FixtureRequest) -> None:
    """Topics appear, grow, are created again, and go; the members' names say which run it is."""
    prefix = f"pattern-{request.node.callspec.id}"
    options = QUICK | door.security | {"assignors": ["cooperative-sticky"]}
    async with (
        Admin(door.bootstrap, **door.security) as admin,
        consumer_member(door.bootstrap, group, pattern=f"{prefix}-.*", **options) as member,
    ):
        await member.wait_assigned(PATIENCE_S)
        assert owned(member) == []
        await admin.create_topic(f"{prefix}-a", 2)
        await until_owned(member, **{f"{prefix}-a": 2})
        await admin.create_topic(f"{prefix}-b", 1)
        await until_owned(member, **{f"{prefix}-a": 2, f"{prefix}-b": 1})
        await admin.create_partitions(f"{prefix}-b", 3)
        await until_owned(member, **{f"{prefix}-a": 2, f"{prefix}-b": 3})
        await admin.delete_topics([f"{prefix}-a"])
        await until_owned(member, **{f"{prefix}-b": 3})
        generation = member.generation
        await admin.delete_topics([f"{prefix}-b"])
        await admin.create_topic(f"{prefix}-b", 3)
        await until(lambda: member.generation > generation)
        await until_owned(member, **{f"{prefix}-b": 3})


async def test_a_static_leader_that_comes_back(secured: Secured, group: str) -> None:
    door = secured.plain()
    options: dict[str, Any] = QUICK | {"group_instance_id": "one"}
    async with Admin(door.bootstrap) as admin:
        await admin.create_topic("static", 2)
        async with consumer_member(door.bootstrap, group, ["static"], **options) as before:
            await until_owned(before, static=2)
        await admin.create_partitions("static", 3)
        async with consumer_member(door.bootstrap, group, ["static"], **options) as after:
            await until_owned(after, static=3)


async def test_lag(secured: Secured, group: str) -> None:
    door = secured.plain()
    options: dict[str, Any] = QUICK | {
        "assignors": ["lag-aware"],
        "lag_check_ms": 200,
        "auto_offset_reset": "earliest",
    }
    async with Admin(door.bootstrap) as admin:
        await admin.create_topic("lagging", 4)
        async with AIOKafkaProducer(bootstrap_servers=door.bootstrap) as producer:

            async def produce(partition: int, count: int) -> None:
                sent = [await producer.send("lagging", b"x", partition=partition) for _ in range(count)]
                await asyncio.gather(*sent)

            await produce(0, 300)
            await admin.set_group_offsets(group, {("lagging", 0): 200})
            for partition in (1, 2, 3):
                await produce(partition, 30)
            async with (
                consumer_member(door.bootstrap, group, ["lagging"], **options) as one,
                consumer_member(door.bootstrap, group, ["lagging"], **options) as two,
            ):

                def shares() -> list[list[int]]:
                    return sorted([number for _, number in owned(member)] for member in (one, two))

                await until(lambda: shares() == [[0], [1, 2, 3]])
                await produce(1, 1_000)
                await produce(2, 1_000)
                await until(lambda: sorted((1 in share) + (2 in share) for share in shares()) == [1, 1])
