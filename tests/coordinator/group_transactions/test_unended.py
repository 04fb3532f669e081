"""Offsets whose transaction was over when they were written: they go at the second look that finds no open
transaction of their producer, and on no doubt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from ringleader.clients.errors import RetriableError
from ringleader.coordinator.group_transactions.markers import Markers
from ringleader.coordinator.group_transactions.unended import Place, Unended
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.fenced_store import FencedLog, FencedStorage

GROUPS = "groups"
PRODUCER, OTHER = 7, 8
State = kafka.DescribeTransactionsResponseTransactionState


class Cluster:
    """The coordinators of the cluster, and who takes commits: `open` are the producers whose transaction has
    partition 0 in it."""

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self.open: set[int] = set()
        self.away = False
        self.forgotten: set[int] = set()
        self.topic = GROUPS
        self.looks = 0
        self.in_turn: Callable[[], None] = lambda: None
        """Called when no commit of the producer is under way."""

    async def under_way(self, producer_ids: Iterable[int]) -> list[str]:
        """See `Coordinated`."""
        self.looks += 1
        if self.away:
            raise RetriableError("away")
        return [str(one) for one in producer_ids if one in self.open | self.forgotten]

    async def describe(self, transactional_id: str) -> State:
        """See `Coordinated`."""
        producer_id = int(transactional_id)
        if producer_id in self.forgotten:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        topic = kafka.DescribeTransactionsResponseTopicData(self.topic, [0, 1])
        return State(producer_id=producer_id, topics=[topic])

    @asynccontextmanager
    async def turn(self, _place: Place) -> AsyncIterator[None]:
        """See `Turns`."""
        self.in_turn()
        yield

    @asynccontextmanager
    async def settled(self, partition: int) -> AsyncIterator[Markers]:
        """See `Turns`."""
        topology: Any = None
        yield Markers(partition, GROUPS, self._runtime, topology, get_log(), 0)


Made = tuple[GroupRuntime, Cluster, Unended]


@pytest.fixture
async def made() -> AsyncIterator[Made]:
    """A node with an offset of each producer, which an owner before it had written."""
    log = FencedLog()
    for position, producer_id in enumerate((PRODUCER, OTHER)):
        key = records.pending_key("g", "t", producer_id, producer_id)
        log.rows[0].append((position, 0, key, records.offset_value(5, -1, "", 0, -1)))
    runtime = GroupRuntime(GroupSettings(), FencedStorage(log), partitions=1)
    await runtime.start_empty()
    await runtime.acquire(0)
    cluster = Cluster(runtime)
    yield runtime, cluster, Unended(runtime, cluster, GROUPS, cast(Any, cluster), get_log())
    await runtime.stop()


def left(runtime: GroupRuntime) -> set[int]:
    """Producers with offsets."""
    return set(runtime.shards[0].open_producers())


async def test_they_go_at_the_second_look_and_those_of_an_open_transaction_stay(made: Made) -> None:
    runtime, cluster, unended = made
    cluster.open = {OTHER}
    await unended.look()
    assert left(runtime) == {PRODUCER, OTHER}
    await unended.look()
    assert left(runtime) == {OTHER}
    for _ in range(3):
        await unended.look()
    assert left(runtime) == {OTHER}


async def test_a_transaction_of_another_partition_or_topic_is_none_of_theirs(made: Made) -> None:
    runtime, cluster, unended = made
    cluster.open, cluster.topic = {PRODUCER, OTHER}, "orders"
    for _ in range(2):
        await unended.look()
    assert left(runtime) == set()


async def test_what_was_open_at_one_of_two_looks_stays(made: Made) -> None:
    runtime, cluster, unended = made
    for number in range(6):
        cluster.open = {PRODUCER, OTHER} if number % 2 else set()
        await unended.look()
        assert left(runtime) == {PRODUCER, OTHER}


async def test_a_look_without_an_answer_is_none(made: Made) -> None:
    runtime, cluster, unended = made
    await unended.look()
    cluster.away = True
    await unended.look()
    cluster.away = False
    await unended.look()
    assert left(runtime) == {PRODUCER, OTHER}
    await unended.look()
    assert left(runtime) == set()


async def test_a_transaction_that_is_forgotten_between_two_questions_is_over(made: Made) -> None:
    runtime, cluster, unended = made
    cluster.forgotten, cluster.open = {PRODUCER}, {OTHER}
    for _ in range(2):
        await unended.look()
    assert left(runtime) == {OTHER}


async def test_a_producer_that_has_come_back_meanwhile_keeps_its_offsets(made: Made) -> None:
    runtime, cluster, unended = made

    def come_back() -> None:
        cluster.open = {PRODUCER, OTHER}

    await unended.look()
    cluster.in_turn = come_back
    await unended.look()
    assert left(runtime) == {PRODUCER, OTHER}


async def test_a_shard_that_is_not_this_nodes_is_not_looked_at(made: Made) -> None:
    runtime, cluster, unended = made
    await runtime.release(0)
    for _ in range(2):
        await unended.look()
    assert cluster.looks == 0
