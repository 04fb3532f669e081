"""GroupConsumer on an Apache Kafka broker: what others write and abort, and whom it shares with."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from tests.interop.clients.java_clients import JavaClients, JavaProducer
from tests.interop.clients.python_members import WatchedConfluent
from tests.interop.clients.watch import WatchBoard
from tests.interop.secured import Secured
from tests.support.consuming import PATIENCE_S, Sink, consumer, read, read_count, until

pytestmark = pytest.mark.xdist_group("kafka")  # one broker for all

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 4


@pytest.fixture
async def topic(secured: Secured) -> str:
    """A new one."""
    name = f"consumed-{uuid.uuid4().hex[:8]}"
    async with Admin(secured.broker.bootstrap) as admin:
        await admin.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def transactions(secured: Secured, topic: str) -> Iterator[confluent_kafka.Producer]:
    """A producer of transactions."""
    config = {"bootstrap.servers": secured.broker.bootstrap, "transactional.id": topic, "linger.ms": 0}
    producer = confluent_kafka.Producer(config)
    producer.init_transactions(PATIENCE_S)
    yield producer
    producer.purge()


def at(secured: Secured, topic: str, name: str = "a", **options: Any) -> GroupConsumer:
    return consumer(secured.broker.bootstrap, name, topics=[topic], group=topic, **options)


def send(producer: confluent_kafka.Producer, topic: str, values: list[str], partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@contextlib.asynccontextmanager
async def reading(one: GroupConsumer, sink: Sink) -> AsyncIterator[None]:
    task = asyncio.create_task(read(one, sink, lambda: False))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("codec", CODECS)
async def test_what_other_producers_compress(
    secured: Secured, topic: str, java_clients: JavaClients, codec: str
) -> None:
    values = [f"{number} " + "x" * (number % 50) for number in range(300)]
    bootstrap = secured.broker.bootstrap
    config = {"compression.type": codec, "linger.ms": "5", "batch.size": "2000"}
    async with JavaProducer(java_clients, bootstrap, config) as java:
        await java.send(topic, [(0, value) for value in values])
    python = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=5
    )
    async with python:
        for value in values:
            await python.send(topic, value.encode(), partition=1, headers=[("h", b"1")])
    librdkafka = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
    await asyncio.to_thread(send, librdkafka, topic, values, 2)
    async with at(secured, topic) as one:
        sink = await read_count(one, 900)
    expected = [value.encode() for value in values]
    assert sink.values == {(topic, partition): expected for partition in range(3)}


async def test_transactions(secured: Secured, topic: str, transactions: confluent_kafka.Producer) -> None:
    for number, end in enumerate([transactions.commit_transaction, transactions.abort_transaction] * 3):
        transactions.begin_transaction()
        send(transactions, topic, [f"{number}-{one}" for one in range(3)])
        end(PATIENCE_S)
    transactions.begin_transaction()
    send(transactions, topic, ["open"])
    place = (topic, 0)
    async with (
        at(secured, topic, isolation_level="read_committed") as committed,
        consumer(secured.broker.bootstrap, "b", topics=[topic], group=f"{topic}-b") as everything,
    ):
        sink = await read_count(committed, 9)
        assert sink.values[place] == [b"%d-%d" % (n, one) for n in (0, 2, 4) for one in range(3)]
        raw = await read_count(everything, 19)
        assert raw.values[place][-1] == b"open"
        assert sum(value[:1] in (b"1", b"3", b"5") for value in raw.values[place]) == 9
        # Markers and what was aborted are behind the reader, up to the open transaction.
        assert await committed.getmany(timeout_s=0.2) == []
        assert await committed.position(place) == 24
        assert (await committed.end_offsets([place]))[place] == 24
        assert (await committed.lag())[place] == 0
        await committed.commit()
        assert (await committed.committed([place]))[place].offset == 24
        await asyncio.to_thread(transactions.commit_transaction, PATIENCE_S)
        await read_count(committed, 10, sink)
        assert sink.values[place][-1] == b"open"


async def test_shared_with_librdkafka(secured: Secured, topic: str) -> None:
    """Two of ours and a cooperative member of librdkafka: nobody stops, every record is read."""
    bootstrap = secured.broker.bootstrap
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    board = WatchBoard()
    sinks = [Sink(), Sink()]
    sent = 0

    async def more() -> int:
        for partition in range(PARTITIONS):
            values = [f"{sent}-{number}" for number in range(25)]
            await asyncio.to_thread(send, producer, topic, values, partition)
        return sent + 25 * PARTITIONS

    def read_to_end() -> bool:
        end = sent // PARTITIONS - 1
        return all(
            any(end in sink.offsets.get((topic, partition), []) for sink in sinks)
            for partition in range(PARTITIONS)
        )

    revoked: list[Any] = []
    async with at(secured, topic, on_revoked=revoked.append) as one, reading(one, sinks[0]):
        sent = await more()
        await until(lambda: sinks[0].total == sent)
        async with at(secured, topic, "b") as two, reading(two, sinks[1]):
            await until(lambda: [len(one.assignment()), len(two.assignment())] == [2, 2])
            assert [len(share) for share in revoked] == [2]
            sent = await more()
            await until(lambda: sum(sink.total for sink in sinks) == sent)
            other = WatchedConfluent(board, bootstrap, topic, topic, "c", **WatchedConfluent.cooperative)
            await other.join()
            await until(lambda: len(one.assignment()) + len(two.assignment()) == 3)
            await board.until(lambda now: now.owned.get("c") not in (None, ()))
            sent = await more()
            await until(lambda: sum(sink.total for sink in sinks) + len(board.got.get("c", [])) >= sent)
            await other.leave()
            await until(lambda: len(one.assignment()) + len(two.assignment()) == 4)
        await until(lambda: len(one.assignment()) == 4)
        sent = await more()
        await until(read_to_end)
    theirs = set(board.got.get("c", []))
    for partition in range(PARTITIONS):
        ours = [offset for sink in sinks for offset in sink.offsets.get((topic, partition), [])]
        assert set(ours) | {offset for of, offset in theirs if of == partition} == set(range(sent // 4))
        # The member of librdkafka commits nothing: what it has read comes again, and nothing else.
        again = {(partition, offset) for offset in ours if ours.count(offset) > 1}
        assert again <= theirs


async def test_positions(secured: Secured, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": secured.broker.bootstrap, "linger.ms": 0})
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=1, timestamp=1_000 * (number + 1))
    assert await asyncio.to_thread(producer.flush, PATIENCE_S) == 0
    place = (topic, 1)
    async with at(secured, topic, max_poll_records=4) as one:
        batch = await one.__anext__()
        assert (batch.topic_partition, len(batch), batch.lag) == (place, 4, 6)
        await one.commit()
        assert (await one.committed([place]))[place].leader_epoch == 0
        found = await one.offsets_for_times({place: 4_500, (topic, 0): 1})
        assert found == {place: (4, 5_000), (topic, 0): None}
        one.seek_to_end(place)
        assert await one.position(place) == 10
        one.seek(place, 8)
        assert [record.value for record in (await one.__anext__()).records] == [b"8", b"9"]
        one.seek(place, 99)
        assert (await one.__anext__()).record.offset == 0


async def test_a_record_above_the_limits(secured: Secured, topic: str) -> None:
    large = b"x" * 600_000
    producer = confluent_kafka.Producer({"bootstrap.servers": secured.broker.bootstrap})
    producer.produce(topic, large, partition=0)
    producer.produce(topic, large, partition=1)
    assert await asyncio.to_thread(producer.flush, PATIENCE_S) == 0
    names = ("max_partition_fetch_bytes", "fetch_max_bytes", "buffer_max_bytes")
    small: dict[str, Any] = dict.fromkeys(names, 1_000)
    async with at(secured, topic, **small) as one:
        sink = await read_count(one, 2)
    assert sink.values == {(topic, 0): [large], (topic, 1): [large]}
