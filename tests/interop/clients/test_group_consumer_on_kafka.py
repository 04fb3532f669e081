"""GroupConsumer on an Apache Kafka broker: librdkafka writes, ours reads, every record once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from confluent_kafka import Producer

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import SaslOAuthBearer, SaslScram
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.errors import AuthenticationError
from ringleader.clients.model import TopicPartition
from tests.interop.secured import USER, Door, Secured, token
from tests.support.consuming import PATIENCE_S, Sink, consumer, read_count, until

PARTITIONS = 4


class Log:
    """A topic of this test's own, and what was written to it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.written: dict[TopicPartition, list[bytes]] = {}

    def places(self, *partitions: int) -> list[TopicPartition]:
        return [(self.topic, partition) for partition in partitions or range(PARTITIONS)]

    async def write(self, count: int, **options: Any) -> None:
        """Write `count` records, partition by partition in turn."""
        await asyncio.to_thread(self._write, count, options)

    def _write(self, count: int, options: dict[str, Any]) -> None:
        # Idempotent: else a batch that is sent again comes behind the next one.
        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": 5, "enable.idempotence": True}
        producer = Producer(settings | options)
        transactional = "transactional.id" in options
        if transactional:
            producer.init_transactions(PATIENCE_S)
            producer.begin_transaction()
        for number in range(count):
            place = (self.topic, number % PARTITIONS)
            value = b"%d" % len(self.written.setdefault(place, []))
            producer.produce(self.topic, value, partition=place[1], timestamp=1_000 + number)
            self.written[place].append(value)
        assert producer.flush(PATIENCE_S) == 0
        if transactional:
            producer.commit_transaction(PATIENCE_S)

    async def abort(self, count: int) -> None:
        """Abort `count` records that nobody is to see."""

        def work() -> None:
            producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.topic})
            producer.init_transactions(PATIENCE_S)
            producer.begin_transaction()
            for number in range(count):
                producer.produce(self.topic, b"never", partition=number % PARTITIONS)
            assert producer.flush(PATIENCE_S) == 0
            producer.abort_transaction(PATIENCE_S)

        await asyncio.to_thread(work)


@pytest.fixture
async def log(secured: Secured, group: str) -> AsyncIterator[Log]:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    async with Admin(secured.broker.bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS)
        yield Log(secured.broker.bootstrap, topic)
        await admin.delete_topics([topic])


def at(door: Door, group: str, log: Log, name: str = "a", **options: Any) -> GroupConsumer:
    given = {"group": group, "topics": [log.topic], **door.security}
    return consumer(door.bootstrap, name, **(given | options))


async def test_every_record_once_and_in_order(door: Door, group: str, log: Log) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        await log.write(200, **{"compression.type": codec})
    async with at(door, group, log) as one:
        sink = await read_count(one, 1_000)
        assert sink.values == log.written
        assert one.assignment() == log.places()
        assert set((await one.lag()).values()) == {0}
        await log.write(40)
        await read_count(one, 1_040, sink)
        assert sink.values == log.written
        await one.commit()
        committed = await one.committed()
        assert {place: position.offset for place, position in committed.items()} == dict.fromkeys(
            log.places(), 260
        )


async def test_what_moves_is_committed_first(door: Door, group: str, log: Log) -> None:
    """Cooperative: the first one reads on while the second one joins, and nothing is read twice."""
    await log.write(400)
    sink = Sink()

    async def read_on(consumer: GroupConsumer) -> None:
        async for batch in consumer:
            sink.add(batch)

    async with at(door, group, log, max_poll_records=10) as one, asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read_on(one))]
        await until(lambda: sink.total >= 100)
        async with at(door, group, log, "b", max_poll_records=10) as two:
            readers.append(tasks.create_task(read_on(two)))
            await until(lambda: len(one.assignment()) == len(two.assignment()) == PARTITIONS // 2)
            assert sorted(one.assignment() + two.assignment()) == log.places()
            await log.write(40)
            await until(lambda: sink.total >= 440)
            metrics = one.metrics().member
            assert (metrics.times_lost, metrics.revocations) == (0, 1)
            assert sink.values == log.written
            for reader in readers:
                reader.cancel()


async def test_only_what_was_committed(door: Door, group: str, log: Log) -> None:
    await log.write(40, **{"transactional.id": f"{log.topic}-1"})
    await log.abort(100)
    await log.write(40, **{"transactional.id": f"{log.topic}-2"})
    async with at(door, group, log, isolation_level="read_committed") as one:
        sink = await read_count(one, 80)
        assert sink.values == log.written
        assert await one.getmany(timeout_s=0.2) == []
        assert set((await one.lag()).values()) == {0}
    async with at(door, f"{group}-all", log) as one:
        assert (await read_count(one, 180)).total == 180


async def test_seek_pause_and_times(door: Door, group: str, log: Log) -> None:
    await log.write(400)
    first, second, *_ = log.places()
    async with at(door, group, log, auto_commit=False) as one:
        await one.wait_assigned(PATIENCE_S)
        await read_count(one, 400)
        assert await one.beginning_offsets([first]) == {first: 0}
        assert await one.end_offsets([first]) == {first: 100}
        assert await one.offsets_for_times({first: 1_200, second: 9_999}) == {
            first: (50, 1_200),
            second: None,
        }
        one.seek(first, 90)
        sink = await read_count(one, 10)
        assert sink.offsets == {first: list(range(90, 100))}
        one.pause(first)
        one.seek_to_beginning(first, second)
        assert (await read_count(one, 100)).offsets == {second: list(range(100))}
        one.resume(first)
        assert (await read_count(one, 100)).offsets == {first: list(range(100))}
        assert await one.committed() == {}


async def test_a_consumer_that_is_refused_says_so(secured: Secured, group: str, log: Log) -> None:
    with pytest.raises(AuthenticationError, match=f"refused user '{USER}'"):
        await at(secured.secure(SaslScram(USER, "wrong")), group, log).start()


async def test_a_broker_that_refuses_the_reader_alone_is_heard_of(
    secured: Secured, group: str, log: Log
) -> None:
    """The member gets its tokens in a loop of its own; the reader does in this one, and gets none."""
    here = asyncio.get_running_loop()

    async def partial() -> str:
        if asyncio.get_running_loop() is here:
            raise AuthenticationError("this account is closed")
        return token()

    with pytest.raises(AuthenticationError, match="this account is closed"):
        await at(secured.secure(SaslOAuthBearer(partial)), group, log).start()


async def test_reading_goes_on_after_a_restart(secured: Secured, group: str, log: Log) -> None:
    await log.write(400)
    async with at(secured.secure(), group, log, session_timeout_ms=30_000, max_poll_records=10) as one:
        sink = await read_count(one, 100)
        await asyncio.to_thread(secured.broker.stop)
        await asyncio.to_thread(secured.broker.start)
        await read_count(one, 400, sink)
        assert sink.values == log.written
        assert one.metrics().member.times_lost == 0
