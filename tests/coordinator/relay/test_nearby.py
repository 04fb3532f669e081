"""A node reads from followers in its rack for consumers of the rack, as brokers' leaders name them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.coordinator.relay import nearby
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
)
from tests.support.relayed import RelayNode, relaying
from tests.support.served import Client, connected, until
from tests.support.two_brokers import TwoBrokers, fetched, two_brokers

NEWEST = 12
MOVED = ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT = ErrorCode.OFFSET_OUT_OF_RANGE


class Replicas:
    """Broker 1, in rack a, leads partitions 0 and 2; it sends who is in rack b to broker 2, which follows."""

    def __init__(self, cluster: TwoBrokers) -> None:
        self.cluster = cluster
        self.requests: list[tuple[int, str]] = []
        """Broker and rack of each Fetch."""
        self.refused: dict[int, int] = {}
        """The follower's error for a partition in place of records."""
        self.named = 2
        self.records = os.urandom(100)
        cluster.racks = {1: "a", 2: "b"}
        cluster.on(1, self.leader, self.follower)

    async def leader(self, request: FetchRequest, version: int, _: int) -> FetchResponse:
        self.requests.append((1, request.rack_id))
        if request.rack_id == "b":
            return fetched(request, preferred_read_replica=self.named)
        return fetched(request, b"leader")

    async def follower(self, request: FetchRequest, version: int, _: int) -> FetchResponse:
        self.requests.append((2, request.rack_id))
        answer = fetched(request, self.records)
        for one in answer.responses[0].partitions:
            if one.partition_index in self.refused:
                one.error_code, one.records = self.refused[one.partition_index], b""
        return answer


@asynccontextmanager
async def placed(rack: str = "b") -> AsyncIterator[tuple[Replicas, RelayNode, Client]]:
    """A client of a node in this rack; it waits for a minute, which is longer than a test may take."""
    async with two_brokers() as cluster:
        replicas = Replicas(cluster)
        async with (
            relaying(cluster.bootstrap, racks=(rack,)) as [node],
            connected("127.0.0.1", node.port) as client,
        ):
            yield replicas, node, client


async def fetch(client: Client, *partitions: int, rack: str = "b", version: int = NEWEST) -> Any:
    """By partition: its records, or its error; nobody is named."""
    parts = [FetchRequestFetchPartition(one, 5, 50, partition_max_bytes=1_000_000) for one in partitions]
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchRequestFetchTopic("orders", partitions=parts)],
        rack_id=rack,
    )
    [topic] = (await client.call(request, version)).responses
    assert all(one.preferred_read_replica == -1 for one in topic.partitions)
    return {one.partition_index: one.error_code or one.records for one in topic.partitions}


@pytest.mark.parametrize("version", [11, NEWEST])
async def test_records_come_from_the_follower_that_the_leader_names(version: int) -> None:
    """The first answer is empty, and comes at once: the client asks once more."""
    async with placed() as (replicas, node, client):
        assert await fetch(client, 0, 2, version=version) == {0: b"", 2: b""}
        for _ in range(2):
            found = await fetch(client, 0, 2, version=version)
            assert found == {0: replicas.records, 2: replicas.records}
        assert replicas.requests == [(1, "b"), (2, "b"), (2, "b")]
        async with connected("127.0.0.1", node.port) as other:
            assert await fetch(other, 0) == {0: replicas.records}, "what one was told is known to all"


async def test_of_several_leaders_too() -> None:
    async with placed() as (replicas, _, client):
        assert await fetch(client, 0, 1) == {0: b"", 1: replicas.records}
        assert await fetch(client, 0, 1) == {0: replicas.records, 1: replicas.records}
        # At one broker by now: its answer is passed on as it comes.
        assert replicas.requests[-1] == (2, "b")


@pytest.mark.parametrize(("own", "rack"), [("b", ""), ("b", "a"), ("b", "unknown"), ("a", "b"), ("", "b")])
async def test_a_client_of_another_rack_is_served_by_the_leader(own: str, rack: str) -> None:
    async with placed(own) as (replicas, _, client):
        assert await fetch(client, 0, rack=rack) == {0: b"leader"}
        assert replicas.requests == [(1, "")]


async def test_a_leader_that_names_nobody_serves() -> None:
    async with placed("a") as (replicas, _, client):
        for _ in range(2):
            assert await fetch(client, 0, rack="a") == {0: b"leader"}
        assert replicas.requests == [(1, "a")] * 2


@pytest.mark.parametrize("code", [OUT, MOVED, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR])
async def test_what_a_follower_refuses_is_the_leaders_to_say(code: int) -> None:
    """One of its partitions costs the other ones nothing."""
    async with placed() as (replicas, _, client):
        await fetch(client, 0, 2)
        replicas.refused[0] = code
        assert await fetch(client, 0, 2) == {0: MOVED, 2: replicas.records}
        assert await fetch(client, 0, 2) == {0: b"leader", 2: replicas.records}
        assert (1, "") in replicas.requests, "and names no follower"


async def test_the_leader_alone_says_that_an_offset_is_out_of_range() -> None:
    async with placed() as (replicas, _, client):
        await fetch(client, 0)
        replicas.refused[0] = OUT
        assert await fetch(client, 0) == {0: MOVED}
        replicas.cluster.on(1, lambda request, *_: fetched(request, error_code=OUT), replicas.follower)
        assert await fetch(client, 0) == {0: OUT}


async def test_a_follower_that_is_gone_is_given_up() -> None:
    async with placed() as (replicas, _, client):
        await fetch(client, 0)
        assert await fetch(client, 0) == {0: replicas.records}
        await replicas.cluster.brokers[2].__aexit__(None, None, None)
        assert await fetch(client, 0) == {0: MOVED}
        assert await fetch(client, 0) == {0: b"leader"}
        async with replicas.cluster.brokers[2]:
            pass


@pytest.mark.parametrize("named", [1, 7])
async def test_a_leader_that_names_itself_or_nobody_who_is_known_serves(named: int) -> None:
    async with placed() as (replicas, _, client):
        replicas.named = named
        assert await fetch(client, 0) == {0: b""}
        assert await fetch(client, 0) == {0: b"leader"}


async def test_after_the_lapse_the_leader_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with placed() as (replicas, node, client):
        now_s = 1_000.0
        monkeypatch.setattr(node.relay.nearby, "_now_s", lambda: now_s)
        await fetch(client, 0)
        now_s += nearby.FOLLOWER_S - 1
        assert await fetch(client, 0) == {0: replicas.records}
        now_s += 2
        assert await fetch(client, 0) == {0: b""}
        replicas.refused[0] = OUT
        await fetch(client, 0)
        now_s += nearby.LEADER_S - 1
        assert await fetch(client, 0) == {0: b"leader"}
        del replicas.refused[0]
        now_s += 2
        assert await fetch(client, 0) == {0: b""}
        assert await fetch(client, 0) == {0: replicas.records}


async def test_a_question_that_waits_at_a_follower_is_not_asked_again() -> None:
    """Of several brokers: what the follower has not brought yet goes into a later answer."""
    async with placed() as (replicas, _, client):
        waiting = asyncio.Event()
        waited = 0

        async def follower(request: FetchRequest, *_: int) -> FetchResponse:
            nonlocal waited
            if request.max_wait_ms:
                waited += 1
                await waiting.wait()
                return fetched(request, b"late")
            return fetched(request)

        replicas.refused[2] = MOVED
        await fetch(client, 0, 2)
        await fetch(client, 0, 2)  # from now on the leader alone serves 2
        replicas.cluster.on(1, replicas.leader, follower)
        assert await fetch(client, 0, 2) == {0: b"", 2: b"leader"}
        assert await fetch(client, 0, 2) == {0: b"", 2: b"leader"}
        await until(lambda: waited == 1)
        waiting.set()
