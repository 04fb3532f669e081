"""The store on one real broker: who owns a partition, and what becomes of everybody else."""

from __future__ import annotations

import asyncio

import pytest

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import KafkaStorage
from tests.interop.cluster.stores import RECORD_BYTES, held, nodes, rows
from tests.interop.kafka_cluster import KafkaCluster


async def refused(store: KafkaStorage, partition: int, epoch: int) -> Failure:
    """The reason why an append is refused."""
    with pytest.raises(StorageError) as error:
        await store.append([(partition, epoch, [(b"refused", b"1")])])
    assert not error.value.fatal
    return error.value.failure


async def test_an_owner_finds_what_the_one_before_wrote_and_that_one_is_fenced(
    one_broker: KafkaCluster,
) -> None:
    async with nodes(one_broker) as cluster:
        first, second = await cluster.node(1), await cluster.node(2)
        epoch = await first.open(0, 0)
        assert await rows(first, 0) == []
        ends = await first.append([(0, epoch, [(b"a", b"1"), (b"b", b"2")]), (0, epoch, [(b"a", None)])])
        assert ends[1] == ends[0] + 1
        newer = await second.open(0, 0)
        assert newer > epoch
        # Between fence and replay: what lies before the claim counts, and nothing comes after it.
        assert await refused(first, 0, epoch) is Failure.FENCED
        assert await refused(first, 0, epoch) is Failure.FENCED, "nothing is sent any more"
        assert await rows(second, 0) == [(b"a", b"1"), (b"b", b"2"), (b"a", None)]
        [position] = await second.append([(0, newer, [(b"c", b"3")])])
        assert position > ends[1] + 1
        newest = await first.open(0, 0)
        assert newest > newer
        assert await held(first, 0) == {b"b": b"2", b"c": b"3"}
        assert await refused(second, 0, newer) is Failure.FENCED
        assert await refused(first, 0, epoch) is Failure.FENCED, "of a former opening"


async def test_partitions_are_owned_one_by_one(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        first, second = await cluster.node(1), await cluster.node(2)
        mine, theirs = await asyncio.gather(first.open(0, 0), second.open(1, 0))
        await asyncio.gather(
            first.append([(0, mine, [(b"a", b"first")])]), second.append([(1, theirs, [(b"a", b"second")])])
        )
        assert await refused(first, 1, 0) is Failure.CLOSED
        await first.release(0)
        assert await refused(first, 0, mine) is Failure.CLOSED
        await second.open(0, 0)
        assert await held(second, 0) == {b"a": b"first"}
        await first.open(1, 0)
        assert await held(first, 1) == {b"a": b"second"}


async def test_appends_go_in_a_pipeline_and_keep_their_order(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        store = await cluster.node(1)
        epochs = [await store.open(partition, 0) for partition in (0, 1)]
        calls = [
            store.append([(partition, epochs[partition], [(b"k", b"%d" % number)])])
            for number in range(200)
            for partition in (0, 1)
        ]
        positions = [position for [position] in await asyncio.gather(*calls)]
        assert positions[::2] == sorted(positions[::2])
        await store.open(0, 0)
        assert [value for _, value in await rows(store, 0)] == [b"%d" % number for number in range(200)]


async def test_large_appends_are_divided_and_large_records_are_not(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        store = await cluster.node(1)
        epoch = await store.open(0, 0)
        many = [(b"%d" % number, b"x" * 400_000) for number in range(8)]
        one = (b"large", bytes(range(250)) * (RECORD_BYTES // 250))
        ends = await store.append([(0, epoch, many[:2]), (0, epoch, many), (0, epoch, [one])])
        assert ends == [2, 10, 11]
        await store.open(0, 0)
        assert await held(store, 0) == dict([*many, one])


async def test_a_closed_store_refuses(one_broker: KafkaCluster) -> None:
    async with nodes(one_broker) as cluster:
        store = await cluster.node(1)
        epoch = await store.open(0, 0)
        await store.close()
        assert await refused(store, 0, epoch) is Failure.CLOSED
        with pytest.raises(StorageError) as closed:
            await store.open(0, 0)
        assert closed.value.failure is Failure.CLOSED
