"""Consumers of four libraries, rolled from one protocol to the other: each commits what it has noted, and
gives nothing up before that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiokafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from confluent_kafka import Consumer, KafkaException
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from ringleader.clients.consumer import GroupConsumer

HEARTBEAT_MS, SESSION_MS = 100, 10_000
POLL_S = 0.1

Seen = list[tuple[int, int]]
"""Partition and offset of each record, in the order in which they were noted."""


class _ThreadMember(threading.Thread):
    """A consumer whose library blocks."""

    def __init__(self, bootstrap: str, group: str, topic: str, seen: Seen) -> None:
        super().__init__()
        self.where, self.topic, self.seen = (bootstrap, group), topic, seen
        self.ended = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.read()
        except BaseException as error:  # the test raises it
            self.error = error

    def read(self) -> None:
        """Until it is ended."""
        raise NotImplementedError


_PYTHON_OPTIONS: dict[str, Any] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": HEARTBEAT_MS,
    "session_timeout_ms": SESSION_MS,
    "max_poll_records": 10,
}
"""Of kafka-python and aiokafka, which call them alike."""


class KafkaPython(_ThreadMember):
    """Classic."""

    def read(self) -> None:
        bootstrap, group = self.where
        consumer: Any = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=(KafkaPythonRange,),
            **_PYTHON_OPTIONS,
        )
        while not self.ended.is_set():
            found = consumer.poll(timeout_ms=500)
            self.seen.extend((one.partition, one.offset) for some in found.values() for one in some)
            if found:
                consumer.commit()
        consumer.close()


class Librdkafka(_ThreadMember):
    """Of the given protocol."""

    def __init__(self, *given: Any, protocol: str) -> None:
        super().__init__(*given)
        self.protocol = protocol

    def read(self) -> None:
        bootstrap, group = self.where
        options: dict[str, Any] = {"group.protocol": self.protocol}
        if self.protocol == "classic":
            options["partition.assignment.strategy"] = "range"
            options |= {"heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": SESSION_MS}
        usual = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
        where = {"bootstrap.servers": bootstrap, "group.id": group}
        consumer = Consumer(where | usual | options)
        consumer.subscribe([self.topic])
        while not self.ended.is_set():
            message = consumer.poll(POLL_S)
            if message is None or message.error():
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.seen.append((partition, offset))
            try:
                consumer.commit(message=message, asynchronous=False)
            except KafkaException:  # the epoch moved on meanwhile: again under the new one
                consumer.commit(message=message, asynchronous=False)
        consumer.close()


@asynccontextmanager
async def _thread(member: _ThreadMember) -> AsyncIterator[None]:
    member.start()
    try:
        yield
    finally:
        member.ended.set()
        await asyncio.to_thread(member.join)
        if member.error is not None:
            raise member.error


@asynccontextmanager
async def _aiokafka(bootstrap: str, group: str, topic: str, seen: Seen) -> AsyncIterator[None]:
    in_hand = asyncio.Lock()
    ended = False

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
        async def on_partitions_revoked(self, revoked: Any) -> None:
            async with in_hand:  # what was fetched is committed first
                pass

        async def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=(AiokafkaRange,),
        **_PYTHON_OPTIONS,
    )
    consumer.subscribe([topic], listener=Listener())

    async def read() -> None:
        while not ended:
            # Not under the lock: getmany() waits for the end of a rebalance, whatever its timeout, and the
            # rebalance for the listener.
            found = await consumer.getmany(timeout_ms=50)
            async with in_hand:
                seen.extend((one.partition, one.offset) for some in found.values() for one in some)
                if found:
                    await consumer.commit()

    await consumer.start()
    task = asyncio.create_task(read())
    try:
        yield
    finally:
        ended = True
        try:
            await task
        finally:
            await consumer.stop()


@asynccontextmanager
async def _ours(
    bootstrap: str, group: str, topic: str, seen: Seen, protocol: Literal["classic", "consumer"]
) -> AsyncIterator[None]:
    ended = False
    timing: dict[str, Any] = {}
    if protocol == "classic":
        timing = {"heartbeat_interval_ms": HEARTBEAT_MS, "session_timeout_ms": SESSION_MS}
        timing["assignors"] = ["range"]
    async with GroupConsumer(
        bootstrap, group, [topic], group_protocol=protocol, auto_offset_reset="earliest", **timing
    ) as consumer:

        async def read() -> None:
            while not ended:
                for batch in await consumer.getmany(timeout_s=0.05):
                    seen.extend((batch.topic_partition[1], record.offset) for record in batch.records)
                await consumer.commit()

        task = asyncio.create_task(read())
        try:
            yield
        finally:
            ended = True
            await task


LIBRARIES = ("ours", "librdkafka", "aiokafka", "kafka-python")


def member(
    library: str, protocol: Literal["classic", "consumer"], bootstrap: str, group: str, topic: str, seen: Seen
) -> Any:
    """A context in which a consumer of the library reads. The two that speak the classic protocol alone are
    replaced by librdkafka in the other one."""
    given = bootstrap, group, topic, seen
    if library == "ours":
        return _ours(*given, protocol)
    if library == "librdkafka" or protocol == "consumer":
        return _thread(Librdkafka(*given, protocol=protocol))
    return _aiokafka(*given) if library == "aiokafka" else _thread(KafkaPython(*given))
