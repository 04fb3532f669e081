"""Random use of a consumer, and what must come: from each partition the next record, whatever happened."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.fetch.model import Batch
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import Compression
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Source, consumer, places, value

LENGTH = 120
STEPS = ("put", "put", "many", "many", "one", "next", "seek", "pause", "commit", "fault")
TROUBLES = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR)


class Model:
    """The records that a consumer has to deliver next."""

    def __init__(self, one: GroupConsumer, source: Source, chance: random.Random) -> None:
        self.one, self.source, self.chance = one, source, chance
        self.next: dict[TopicPartition, int] = dict.fromkeys(places(range(4)), 0)
        self.processed = dict(self.next)
        self.in_hand: dict[TopicPartition, int] = {}
        self.of_another_task = False
        """The records in hand were given to another task than the one that commits."""

    def delivered(self, batches: list[Batch]) -> None:
        for batch in batches:
            assert batch.topic_partition not in self.one.paused()
            first = self.next[batch.topic_partition]
            offsets = range(first, first + len(batch))
            assert [record.offset for record in batch.records] == list(offsets)
            assert [record.value for record in batch.records] == [
                value(batch.topic_partition, n) for n in offsets
            ]
            assert batch.next_offset == first + len(batch)
            self.next[batch.topic_partition] = self.in_hand[batch.topic_partition] = batch.next_offset

    def processes(self) -> None:
        """The records in hand are processed."""
        self.processed |= self.in_hand
        self.in_hand.clear()
        self.of_another_task = False

    async def step(self, coordinator: Coordinator) -> None:
        chance, place = self.chance, self.chance.choice(places(range(4)))
        match chance.choice(
            ["put", "put", "many", "many", "one", "next", "seek", "pause", "commit", "fault"]
        ):
            case "put":
                self.source.put(place, chance.randint(1, 40), compression=chance.choice(list(Compression)))
            case "many":
                self.processes()
                self.delivered(await self.one.getmany(chance.randint(1, 60), chance.choice([0, 0.02])))
            case "one":
                self.processes()
                if (batch := await self.one.getone(0)) is not None:
                    self.delivered([batch])
            case "next":
                self.processes()
                asking = asyncio.create_task(self.one.getmany(20))
                await asyncio.wait([asking], timeout=chance.choice([0, 0.01]))
                asking.cancel()
                await asyncio.wait([asking])
                if not asking.cancelled():
                    self.delivered(asking.result())
                    self.of_another_task = True
            case "seek":
                target = chance.randint(0, self.source.counts.get(place, 0))
                self.one.seek(place, target)
                self.next[place] = self.processed[place] = target
                self.in_hand.pop(place, None)
            case "pause":
                (self.one.resume if place in self.one.paused() else self.one.pause)(place)
            case "commit":
                await self.one.commit()
                if not self.of_another_task:
                    self.processes()
                committed = await self.one.committed()
                assert {at: committed[at].offset for at in committed} == self.processed
            case "fault":
                if chance.random() < 0.3:
                    coordinator.faults.disconnect()
                else:
                    coordinator.faults.error("Fetch", chance.choice(TROUBLES))


@pytest.mark.parametrize("seed", range(6), indirect=True)
async def test_random_use(coordinator: Coordinator, seed: int) -> None:
    chance = random.Random(seed)
    source = Source(coordinator)
    small = chance.choice([2_000, 1024 * 1024])
    limits: dict[str, Any] = {"max_partition_fetch_bytes": small, "buffer_max_bytes": 4 * small}
    async with consumer(coordinator, auto_commit=False, **limits) as one:
        await one.wait_assigned(PATIENCE_S)
        for place in places(range(4)):
            await one.position(place)
        model = Model(one, source, chance)
        for _ in range(LENGTH):
            await model.step(coordinator)
        one.resume(*places(range(4)))
        async with asyncio.timeout(PATIENCE_S):
            while any(model.next[place] < count for place, count in source.counts.items()):
                model.processes()
                model.delivered(await one.getmany())
        await one.commit()
        assert {at: found.offset for at, found in (await one.committed()).items()} == model.next
