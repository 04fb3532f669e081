"""PartitionConsumer: partitions without a group."""

from __future__ import annotations

import asyncio

import pytest

from ringleader import BrokerError, NotAssignedError, PartitionConsumer
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Sink, Source, places


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    found = Source(coordinator)
    found.fill(batches=1, count=10)
    return found


async def read(one: PartitionConsumer, count: int) -> Sink:
    sink = Sink()
    async with asyncio.timeout(PATIENCE_S):
        while sink.total < count:
            sink.add(await anext(one))
    return sink


async def test_a_whole_topic(coordinator: Coordinator, source: Source) -> None:
    async with PartitionConsumer(coordinator.bootstrap, ["t"], auto_offset_reset="earliest") as one:
        assert one.assignment() == places(range(4))
        (await read(one, 40)).exactly(source)
        assert one.metrics().records == 40
        assert coordinator.faults.seen("JoinGroup") == coordinator.faults.seen("OffsetFetch") == []


async def test_partitions_come_and_go(coordinator: Coordinator, source: Source) -> None:
    async with PartitionConsumer(
        coordinator.bootstrap, [("t", 0), ("t", 1)], auto_offset_reset="earliest", max_poll_records=4
    ) as one:
        first = await anext(one)
        kept, removed = (
            first.topic_partition,
            next(place for place in places([0, 1]) if place != first.topic_partition),
        )
        await one.assign([kept, ("t", 3)])
        sink = await read(one, 16)
        assert {at: offsets[0] for at, offsets in sink.offsets.items()} == {kept: 4, ("t", 3): 0}
        with pytest.raises(NotAssignedError):
            one.seek(removed, 0)
        await one.assign([])
        assert await one.getmany(timeout_s=0.05) == []


async def test_at_the_end_and_by_time(coordinator: Coordinator, source: Source) -> None:
    async with PartitionConsumer(coordinator.bootstrap, [("t", 2)]) as one:
        assert await one.position(("t", 2)) == 10
        found = await one.offsets_for_times({("t", 2): 1_006})
        assert found == {("t", 2): (6, 1_006)}
        one.seek(("t", 2), 6)
        assert (await anext(one)).record.offset == 6


async def test_a_missing_topic_or_partition_is_reported(coordinator: Coordinator, source: Source) -> None:
    for wanted, words in (
        (["nope"], "topic 'nope': UNKNOWN_TOPIC_OR_PARTITION"),
        ([("t", 4)], "topic 't' has no partition 4: it has 4"),
    ):
        one = PartitionConsumer(coordinator.bootstrap, wanted)
        with pytest.raises(BrokerError, match=words):
            await one.start()
    for wrong in ([("t", "0")], [5], [("t",)], [""], [("t", -1)]):
        with pytest.raises(ValueError, match="a partition is"):
            PartitionConsumer(coordinator.bootstrap, wrong)  # type: ignore[arg-type]
