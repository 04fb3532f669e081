"""Inference reads what an Apache Kafka broker of now writes about members of now."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiokafka
import confluent_kafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ringleader.insight.inference.engine import Inference
from ringleader.insight.model import Cause, Confidence, Departure, Rebalance
from tests.interop.kafka import KafkaBroker

OFFSETS = "__consumer_offsets"
GROUP = "team"
TOPIC = "orders"
WAIT_S = 60.0


class Reading:
    """The one partition of `__consumer_offsets`, from its beginning on."""

    def __init__(self, bootstrap: str) -> None:
        self.inference = Inference()
        self.rebalances: dict[str, Rebalance] = {}
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
        )
        self._consumer.assign([confluent_kafka.TopicPartition(OFFSETS, 0, 0)])

    async def until(self, generation: int) -> Rebalance:
        """The rebalance of the group that ended in that generation."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for one in self.rebalances.values():
                    if one.generation == generation:
                        return one
                await self._read()

    async def _read(self) -> None:
        message = await asyncio.to_thread(self._consumer.poll, 0.5)
        if message is None or message.error() is not None:
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.inference.record(partition, offset, message.timestamp()[1], message.key(), message.value())
        assert self.inference.unreadable == 0, self.inference.last_unreadable
        for output in self.inference.drain():
            if isinstance(output, Rebalance) and output.group == GROUP:
                self.rebalances[output.id] = output

    def close(self) -> None:
        self._consumer.close()


async def member(bootstrap: str, name: str) -> aiokafka.AIOKafkaConsumer:
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        client_id=name,
        session_timeout_ms=30_000,
        heartbeat_interval_ms=200,
        auto_commit_interval_ms=200,
    )
    await consumer.start()
    return consumer


async def rebalance_all(bootstrap: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 4, 1)])
    await admin.close()
    a = await member(bootstrap, "a")
    reading = Reading(bootstrap)
    try:
        first = await reading.until(1)
        assert (first.cause, first.confidence) == (Cause.MEMBER_JOINED, Confidence.CERTAIN)
        assert [(one.client_id, one.topics) for one in first.members] == [("a", (TOPIC,))]
        assert len(first.members[0].assigned) == 4
        b = await member(bootstrap, "b")
        second = await reading.until(2)
        assert second.cause is Cause.MEMBER_JOINED
        assert [len(one.assigned) for one in second.members] == [2, 2]
        assert len(second.moves) == 2
        await b.stop()
        third = await reading.until(3)
        (departure,) = third.left.values()
        # In a session of half a minute nothing else is possible, on a machine of any load.
        assert (third.cause, departure.why) == (Cause.MEMBER_LEFT, Departure.LEFT)
        assert [len(one.assigned) for one in third.members] == [4]
    finally:
        await a.stop()
        reading.close()


def test_a_group_that_forms_grows_and_shrinks(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "kafka", properties={"offsets.topic.num.partitions": "1"}) as broker:
        asyncio.run(rebalance_all(broker.bootstrap))
