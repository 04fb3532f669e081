"""The hot path of ConsumerGroupHeartbeat gives the same bytes and the same effects as the general one. The
machine's own side of it: invariant C12 of the simulation of consumer groups."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.consumer import ConsumerHandler
from ringleader.coordinator.server import heartbeats
from ringleader.coordinator.server.handlers import consumer_groups
from ringleader.coordinator.server.heartbeats import HeartbeatCache
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.support.groupclient import form
from tests.support.served import Client, Served, serving

VERSIONS = pytest.mark.parametrize("version", [0, 1])
INTERVAL = "consumer.heartbeat.interval.ms"


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The members whose heartbeats took the general way."""
    ways: list[str] = []
    original = ConsumerHandler.heartbeat

    def heartbeat(
        self: ConsumerHandler, request: ConsumerGroupHeartbeatRequest, *more: Any
    ) -> ConsumerGroupHeartbeatResponse | None:
        ways.append(request.member_id)
        return original(self, request, *more)

    monkeypatch.setattr(ConsumerHandler, "heartbeat", heartbeat)
    return ways


@asynccontextmanager
async def consumers() -> AsyncIterator[Served]:
    """A server with a topic of two partitions, where targets are computed at once."""
    async with serving(handlers=consumer_groups.register, group_consumer_assignment_interval_ms=0) as served:
        served.runtime.topics.put(Topic("orders", b"o" * 16, 2))
        yield served


async def joined(
    client: Client, version: int, member_id: str = "m", instance_id: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat by which a member stays that has joined."""
    join = ConsumerGroupHeartbeatRequest("g", member_id, 0, instance_id, rebalance_timeout_ms=30_000)
    join.subscribed_topic_names, join.topic_partitions = ["orders"], []
    answer = await client.call(join, version)
    assert answer.error_code == ErrorCode.NONE
    return ConsumerGroupHeartbeatRequest("g", member_id, answer.member_epoch, instance_id)


async def answer_bytes(client: Client, request: ConsumerGroupHeartbeatRequest, version: int) -> bytes:
    """The response without its correlation id."""
    client.send(request, version)
    return (await client.frame())[4:]


@VERSIONS
async def test_same_bytes_and_effects(version: int, general: list[str]) -> None:
    async with consumers() as served, served.connect() as client:
        beat = await joined(client, version, instance_id="i")
        answers = [await answer_bytes(client, beat, version)]
        general.clear()
        for _ in range(3):
            served.clock.ahead_ms += 40_000  # more than twice the session altogether
            served.runtime.wake()
            answers.append(await answer_bytes(client, beat, version))
        assert len(set(answers)) == 1
        for _ in range(3):  # as many in one read
            client.send(beat, version)
        answers += [(await client.frame())[4:] for _ in range(3)]
        assert len(set(answers)) == 1
        assert general == []
        assert served.server.routes[ConsumerGroupHeartbeatRequest.API_KEY].requests == 8


async def test_classic_and_modern_members_of_one_connection(general: list[str]) -> None:
    async with consumers() as served, served.connect() as client:
        member = await form(client, "classic")
        beat = await joined(client, 1)
        for _ in range(4):
            assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
            assert (await client.call(beat, 1)).error_code == ErrorCode.NONE
        assert general == ["m", "m"]  # it joins, and is learnt


async def test_news_take_the_general_way(general: list[str]) -> None:
    async with consumers() as served, served.connect() as client, served.connect() as other:
        beat = await joined(client, 1)
        await client.call(beat, 1)
        await client.call(beat, 1)
        await joined(other, 1, "n")
        revoked = await client.call(beat, 1)
        assert revoked.assignment is not None
        owned = [as_owned(one) for one in revoked.assignment.topic_partitions]
        moved = await client.call(replace(beat, topic_partitions=owned), 1)
        assert moved.member_epoch > beat.member_epoch
        fenced = await client.call(replace(beat, member_epoch=moved.member_epoch + 1), 1)
        assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        beat = replace(beat, member_epoch=moved.member_epoch)
        for _ in range(2):
            assert (await client.call(beat, 1)).assignment is None
        served.runtime.topics.put(Topic("orders", b"o" * 16, 4))
        grown = await client.call(beat, 1)
        assert grown.member_epoch > beat.member_epoch
        assert grown.assignment is not None


def as_owned(one: Any) -> Any:
    """A topic of an answer, in the form in which a request says that it is owned."""
    return ConsumerGroupHeartbeatRequestTopicPartitions(one.topic_id, one.partitions)


async def test_another_interval_is_told_and_learnt(general: list[str]) -> None:
    async with consumers() as served, served.connect() as client:
        beat = await joined(client, 1)
        for wanted in (5_000, 7_000):
            served.runtime.configs.apply({"g": {INTERVAL: wanted}})
            general.clear()
            for _ in range(3):
                assert (await client.call(beat, 1)).heartbeat_interval_ms == wanted
            assert general == ["m"]


async def test_a_member_that_speaks_from_another_client_is_noted(general: list[str]) -> None:
    async with consumers() as served, served.connect() as client:
        beat = await joined(client, 1)
        await client.call(beat, 1)
        await client.call(beat, 1)
        for client_id in ("another", "client"):
            await client.call(beat, 1, client_id)
            group = served.runtime.shards[served.runtime.partition_of("g")]._groups["g"].consumer
            assert group is not None
            assert group.members["m"].subscription.client_id == client_id


async def test_each_connection_learns_for_itself(general: list[str]) -> None:
    async with consumers() as served, served.connect() as client, served.connect() as other:
        beat = await joined(client, 1)
        for one in (client, other):
            general.clear()
            for _ in range(3):
                await one.call(beat, 1)
            assert general == ["m"]
        assert served.server.heartbeats.known == {}


@pytest.mark.leaves("request failed")
async def test_a_failure_of_the_machine_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with consumers() as served, served.connect() as client:
        beat = await joined(client, 1)
        await client.call(beat, 1)

        def fails(*_: Any) -> int:
            raise RuntimeError("for the test")

        served.runtime.stays[served.runtime.partition_of("g")] = fails
        assert (await client.call(beat, 1)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert served.events("request failed")


@VERSIONS
async def test_news_in_the_answer_to_a_remembered_heartbeat(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not decoded again: that gives the same answers."""
    frames: list[list[bytes]] = []
    for is_remembered in (True, False):
        if not is_remembered:
            monkeypatch.setattr(HeartbeatCache, "request_of", lambda *_: None)
        async with consumers() as served, served.connect() as client:
            beat = await joined(client, version, instance_id="i")
            answers = [await answer_bytes(client, beat, version) for _ in range(2)]
            assert answers[0] == answers[1]
            served.runtime.topics.put(Topic("orders", b"o" * 16, 3))
            answers.append(await answer_bytes(client, beat, version))  # there is another target
            assert answers[2] != answers[1]
            frames.append(answers)
    assert frames[0] == frames[1]


async def test_so_many_are_remembered_of_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "OWN_HEARTBEATS", 2)
    async with consumers() as served, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(served.connect()) for _ in range(6)]
        beat, counts = await joined(clients[0], 1), list[int]()
        for client in clients:
            await client.call(beat, 1)
            counts.append(sum(map(len, served.server.heartbeats._own.values())))
    assert counts == [1, 2, 1, 2, 3, 1]
