"""The owner of a partition finds in its log how transactions ended: also those that ended before it came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.coordinator.group_transactions import markers as module
from ringleader.coordinator.group_transactions.markers import Markers, end_transaction
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import build_pairs
from ringleader.testing import Coordinator
from tests.support.fenced_store import FencedLog, FencedStorage
from tests.support.served import WAIT_S, until

TOPIC = "groups"
COMMITTED, ABORTED, OPEN = 1_000, 1_001, 1_002
"""Producers, by what became of their transactions before the owner came."""
OFFSETS = {COMMITTED: 5, ABORTED: 6, OPEN: 7}
FETCH_BYTES = 4_096


@pytest.fixture
def kafka_cluster() -> Iterator[Coordinator]:
    """Stands for the cluster."""
    with Coordinator(topics={TOPIC: 1}) as coordinator:
        yield coordinator


class Log:
    """The partition: on the cluster, and as the store replays it."""

    def __init__(self, kafka_cluster: Coordinator) -> None:
        self._kafka_cluster = kafka_cluster
        self.shared = FencedLog()

    def write(self, *content: tuple[bytes, bytes]) -> None:
        """An owner writes it."""
        rows = self.shared.rows[0]
        rows += [(len(rows) + number, 0, key, value) for number, (key, value) in enumerate(content)]
        topics = self._kafka_cluster.node.topics
        self._kafka_cluster.run(topics.append(TOPIC, 0, build_pairs(content, 0)))

    def end(self, producer_id: int, *, committed: bool) -> int:
        """The cluster ends a transaction; the offset behind its marker."""
        topics = self._kafka_cluster.node.topics
        self._kafka_cluster.run(topics.end_transaction(TOPIC, 0, producer_id, 0, committed=committed))
        return topics.partition(TOPIC, 0).next_offset


def pending(producer_id: int) -> tuple[bytes, bytes]:
    """The record that the owner writes for an offset in a transaction."""
    key = records.pending_key("g", "t", producer_id - COMMITTED, producer_id)
    return key, records.offset_value(OFFSETS[producer_id], -1, "", 0, -1)


def committed(runtime: GroupRuntime) -> dict[int, int]:
    """By partition of the topic."""
    group = runtime.shards[0]._groups["g"]
    return {
        partition: records.decode_offset_value(value).offset
        for partition, value in group.offsets.get("t", {}).items()
    }


@asynccontextmanager
async def owner(kafka_cluster: Coordinator, log: Log) -> AsyncIterator[tuple[GroupRuntime, Markers]]:
    """An owner that has just taken the partition over, and reads the log for markers."""
    async with Cluster(kafka_cluster.bootstrap) as cluster:
        runtime = GroupRuntime(GroupSettings(), FencedStorage(log.shared), partitions=1)
        await runtime.start_empty()
        await runtime.acquire(0)
        markers = Markers(0, TOPIC, runtime, Topology(cluster), get_log(), None)
        running = asyncio.create_task(markers.run())
        try:
            yield runtime, markers
        finally:
            await runtime.stop()
            async with asyncio.timeout(WAIT_S):
                await running


@pytest.fixture
def log(kafka_cluster: Coordinator, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Three transactions: one was committed, one aborted, one is open; in more than one answer."""
    monkeypatch.setattr(module, "FETCH_BYTES", FETCH_BYTES)
    made = Log(kafka_cluster)
    for producer_id in OFFSETS:
        made.write(pending(producer_id))
        made.write((records.offset_key("h", "t", 0), bytes(FETCH_BYTES)))
    made.shared.rows[0] = [row for row in made.shared.rows[0] if len(row[3] or b"") < FETCH_BYTES]
    made.end(COMMITTED, committed=True)
    made.write((records.offset_key("h", "t", 0), bytes(FETCH_BYTES)))
    made.shared.rows[0].pop()
    made.end(ABORTED, committed=False)
    return made


async def test_what_ended_before_the_shard_was_loaded_ends_here_and_what_is_open_stays(
    kafka_cluster: Coordinator, log: Log
) -> None:
    async with owner(kafka_cluster, log) as (runtime, markers):
        assert set(runtime.shards[0].open_producers()) == set(OFFSETS)
        end = kafka_cluster.node.topics.partition(TOPIC, 0).next_offset
        async with asyncio.timeout(WAIT_S):
            await markers.reached(end)
        assert runtime.shards[0].open_producers() == [OPEN]
        assert committed(runtime) == {0: 5}
        behind = log.end(OPEN, committed=True)
        async with asyncio.timeout(WAIT_S):
            await markers.reached(behind)
        assert runtime.shards[0].open_producers() == []
        assert committed(runtime) == {0: 5, 2: 7}


async def test_reading_goes_on_while_a_commit_uses_it_though_nothing_is_open(
    kafka_cluster: Coordinator, log: Log
) -> None:
    """The commit's own offsets are about to be written, and somebody has to see their marker."""
    async with owner(kafka_cluster, log) as (runtime, markers):
        markers.users = 1
        behind = log.end(OPEN, committed=True)
        async with asyncio.timeout(WAIT_S):
            await markers.reached(behind)
            assert runtime.shards[0].open_producers() == []
            log.write((records.offset_key("h", "t", 0), b""))
            await markers.reached(behind + 1)
        markers.users = 0


async def test_a_later_life_of_the_shard_keeps_what_is_open_in_it(
    kafka_cluster: Coordinator, log: Log
) -> None:
    """Another owner may have taken it for the producer's next transaction in between."""
    async with owner(kafka_cluster, log) as (runtime, _):
        former = runtime.shards[0]
        await runtime.release(0)
        await runtime.acquire(0)
        with pytest.raises(KafkaError):
            await end_transaction(runtime, 0, former, OPEN, committed=False)
        assert OPEN in runtime.shards[0].open_producers()


async def test_waiting_calls_end_when_the_shard_goes_and_its_next_owner_finds_the_same(
    kafka_cluster: Coordinator, log: Log
) -> None:
    async with owner(kafka_cluster, log) as (runtime, markers):
        waiting = asyncio.create_task(markers.reached(10**6))
        await until(lambda: bool(markers._waiting))
        await runtime.release(0)
        with pytest.raises(KafkaError):
            async with asyncio.timeout(WAIT_S):
                await waiting
        with pytest.raises(KafkaError):
            await markers.reached(0)
    async with owner(kafka_cluster, log) as (runtime, _):
        await until(lambda: runtime.shards[0].open_producers() == [OPEN])
        assert committed(runtime) == {0: 5}


async def test_what_was_read_ends_the_waits_of_the_tries_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, left = [], [False, False, True, False, True]

    class Counted(Backoff):
        def next_ms(self) -> int:
            tries.append(self._tries)
            super().next_ms()
            return 0

    async def read_on(markers: Markers, _position: int) -> None:
        if not left.pop(0):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    monkeypatch.setattr(module, "Backoff", Counted)
    monkeypatch.setattr(Markers, "_read_on", read_on)
    shard = SimpleNamespace(phase=Phase.SERVING, open_producers=lambda: left)
    runtime: Any = SimpleNamespace(shards=[shard])
    topology: Any = None
    await Markers(0, TOPIC, runtime, topology, get_log(), 0).run()
    assert tries == [0, 1, 0]
