"""Producers: every record that was accepted is written once, in order, or its result says why not."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import random
import threading
from collections import defaultdict
from concurrent.futures import Future
from typing import Any

import confluent_kafka
import pytest
from kafka.partitioner.default import murmur2

from ringleader import (
    BrokerError,
    DeliveryTimeoutError,
    GroupConsumer,
    PartitionConsumer,
    ProduceError,
    Producer,
    ProducerClosedError,
    Record,
    RecordMetadata,
    RecordTooLargeError,
    SendTimeoutError,
    SerializationError,
    SyncProducer,
    UnknownPartitionError,
)
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, until
from tests.support.tables import turns

SOON: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


async def written(coordinator: Coordinator, count: int, **options: Any) -> list[Record]:
    """The records of the topic `t`; none beyond that count."""
    found: list[Record] = []
    async with PartitionConsumer(
        coordinator.bootstrap, ["t"], auto_offset_reset="earliest", **options
    ) as consumer:
        while len(found) < count:
            batches = await consumer.getmany(timeout_s=PATIENCE_S)
            assert batches, f"{len(found)} of {count} records are there"
            found += [record for batch in batches for record in batch]
        assert not any(dict(await consumer.lag()).values())
    return sorted(found, key=lambda record: (record.partition, record.offset))


@pytest.mark.parametrize("named", [None, 0])
async def test_calls_that_wait_for_a_topic_keep_their_order(
    coordinator: Coordinator, named: int | None
) -> None:
    """Also before a call that comes when the topic is known, and the earlier ones are about to go on."""
    coordinator.faults.delay("Metadata", 0.05)
    async with Producer(coordinator.bootstrap, **SOON) as producer:

        async def send(number: int) -> asyncio.Future[RecordMetadata]:
            return await producer.send("t", b"%d" % number, key=b"k", partition=named)

        calls = [asyncio.create_task(send(number)) for number in range(50)]
        await calls[0]
        later = [await send(number) for number in range(50, 60)]
        found = [await (await call) for call in calls] + [await one for one in later]
        assert [one.offset for one in found] == list(range(60))
        assert len(coordinator.faults.seen("Metadata")) < 10


async def test_a_call_that_waits_behind_others_for_a_topic_has_its_own_end(coordinator: Coordinator) -> None:
    coordinator.faults.delay("Metadata", 3_600)
    async with Producer(coordinator.bootstrap, **SOON, max_block_ms=1_000) as producer:
        calls = [asyncio.create_task(producer.send("t", b"v", partition=0)) for _ in range(3)]
        calls[1].cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in ended] == [SendTimeoutError, asyncio.CancelledError, SendTimeoutError]
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        assert (await producer.send_and_wait("t", b"v", partition=0)).offset == 0


async def test_calls_that_wait_for_a_topic_share_the_answer_that_refuses_it(coordinator: Coordinator) -> None:
    """A call that comes after the question is not answered by it: the topic may have been allowed between."""
    coordinator.faults.delay("Metadata", 0.05)
    async with Producer(coordinator.bootstrap, **SOON) as producer:
        await producer.send_and_wait("t", b"v")
        requests = len(coordinator.faults.seen("Metadata"))
        calls = [asyncio.create_task(producer.send("no/name", b"v")) for _ in range(20)]
        await until(lambda: len(coordinator.faults.seen("Metadata")) > requests)
        calls += [asyncio.create_task(producer.send("no/name", b"v")) for _ in range(20)]
        refused = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(one) for one in refused} == {BrokerError}
        assert {getattr(one, "code", None) for one in refused} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert len(set(map(id, refused))) == len(calls), "each call has an error of its own"
        assert len(coordinator.faults.seen("Metadata")) == requests + 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_a_record_is_read_as_it_was_written(coordinator: Coordinator, codec: Any) -> None:
    headers = (("a", b"1"), ("a", None), ("é", b""))
    async with Producer(coordinator.bootstrap, compression_type=codec) as producer:
        first = await producer.send("t", b"one", key=b"k", partition=2, headers=headers, timestamp_ms=77)
        second = await producer.send("t", None, key=b"k", partition=2)
        assert await first == RecordMetadata("t", 2, 0, 77)
        assert (await second)[:3] == ("t", 2, 1)
        assert (await producer.send_and_wait("t", b"", partition=2)).offset == 2
        assert producer.metrics().records == 3
        assert producer.metrics().buffered_bytes == 0
    one, two, three = await written(coordinator, 3)
    assert (one.key, one.value, tuple(one.headers), one.timestamp_ms) == (b"k", b"one", headers, 77)
    assert (two.key, two.value, tuple(two.headers)) == (b"k", None, ())
    assert (three.key, three.value) == (None, b"")


async def test_serializers_make_bytes(coordinator: Coordinator) -> None:
    async with Producer(
        coordinator.bootstrap, key_serializer=str.encode, value_serializer=lambda v: json.dumps(v).encode()
    ) as producer:
        await producer.send_and_wait("t", {"n": 1}, key="ada")
        with pytest.raises(SerializationError, match="value_serializer raised TypeError") as raised:
            await producer.send("t", {1, 2}, key="ada")
        assert (raised.value.origin, type(raised.value.__cause__)) == ("value", TypeError)
        await producer.send_and_wait("t", None, key=None)
    values = {(record.key, record.value) for record in await written(coordinator, 2)}
    assert values == {(b"ada", b'{"n": 1}'), (None, None)}


async def test_small_records_go_together_and_full_batches_at_once(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, linger_ms=20_000, batch_size=1_000) as producer:
        sent = [await producer.send("t", b"%04d" % n, partition=0) for n in range(100)]
        await until(sent[0].done)
        assert not sent[-1].done()
        await producer.flush()
        assert [found.result().offset for found in sent] == list(range(100))
        assert 2 <= producer.metrics().requests <= 6
    assert [int(record.value) for record in await written(coordinator, 100)] == list(range(100))


async def test_a_flush_waits_for_what_an_earlier_one_was_not_awaited_for(coordinator: Coordinator) -> None:
    patience: dict[str, Any] = {"request_timeout_ms": 60_000, "delivery_timeout_ms": 120_000}
    async with Producer(coordinator.bootstrap, linger_ms=0, **patience) as producer:
        await producer.partitions("t")
        coordinator.faults.delay("Produce", 3_600)
        sent = await producer.send("t", b"a", partition=0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.flush(), 0.05)
        flushing = asyncio.create_task(producer.flush())
        await turns()
        assert not flushing.done()
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        await flushing
        assert sent.done()


@pytest.mark.parametrize("idempotent", [True, False])
async def test_whatever_fails_every_record_is_written_once_and_in_order(
    coordinator: Coordinator, seed: int, idempotent: bool
) -> None:
    chance, faults, count = random.Random(seed), coordinator.faults, 1_500
    # Without a producer id only what a broker refuses can be sent again without a double.
    kinds = ["drop", "lost", "moved", "few"] if idempotent else ["moved", "few"]
    settings: dict[str, Any] = {"enable_idempotence": idempotent, "batch_size": chance.choice([200, 2_000])}
    async with Producer(
        coordinator.bootstrap, linger_ms=chance.choice([0, 5]), **SOON, **settings
    ) as producer:
        sent = []
        for number in range(count):
            if number % 50 == 25:
                match chance.choice(kinds):
                    case "drop":
                        faults.drop("Produce", nth=chance.randint(1, 3))
                    case "lost":
                        faults.drop("Produce", nth=chance.randint(1, 3), done=True)
                    case "moved":
                        faults.error("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, nth=chance.randint(1, 3))
                    case "few":
                        faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, nth=chance.randint(1, 3))
            sent.append(await producer.send("t", b"%d" % number, key=b"%d" % (number % 7)))
        found = await asyncio.gather(*sent)
        assert producer.metrics().retries
    records = await written(coordinator, count)
    order: dict[bytes, list[int]] = defaultdict(list)
    for record in records:
        order[record.key].append(int(record.value))
        assert found[int(record.value)][:3] == ("t", record.partition, record.offset)
    assert sorted(number for numbers in order.values() for number in numbers) == list(range(count))
    assert all(numbers == sorted(numbers) for numbers in order.values())


async def test_what_could_not_be_delivered_fails_and_the_rest_goes_on_without_a_double(
    coordinator: Coordinator,
) -> None:
    lost = coordinator.faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, nth=2, times=-1)
    timeouts: dict[str, Any] = {"linger_ms": 0, "request_timeout_ms": 1_500, "delivery_timeout_ms": 1_500}
    async with Producer(coordinator.bootstrap, **timeouts, **SOON) as producer:
        await producer.send_and_wait("t", b"0", partition=1)
        undelivered = await producer.send("t", b"1", partition=1)
        await until(lambda: lost.hits > 0 or bool(coordinator.faults.seen("Produce")[1:]))
        with pytest.raises(DeliveryTimeoutError, match="not confirmed within 1500 ms"):
            await undelivered
        coordinator.faults.clear()
        # Behind the gap: the leader refuses the old sequence, and the new epoch begins.
        after = [await producer.send("t", b"%d" % n, partition=1) for n in range(2, 9)]
        assert [(await found).offset for found in after] == list(range(1, 8))
        assert producer.metrics().failed_records == 1
    assert [record.value for record in await written(coordinator, 8)] == [
        b"0",
        *(b"%d" % n for n in range(2, 9)),
    ]


async def test_what_a_leader_knows_to_be_a_double_is_written(coordinator: Coordinator) -> None:
    """It keeps the newest five batches of a producer: of an earlier one it only says that it has it."""
    coordinator.faults.drop("Produce", done=True)
    coordinator.faults.error("Produce", ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    async with Producer(coordinator.bootstrap, linger_ms=0, **SOON) as producer:
        found = await producer.send_and_wait("t", b"0", partition=1)
        assert found[:3] == ("t", 1, -1), "where it is nobody says"
        assert (await producer.send_and_wait("t", b"1", partition=1)).offset == 1
        assert producer.metrics().failed_records == 0
    assert [record.value for record in await written(coordinator, 2)] == [b"0", b"1"]


async def test_a_batch_that_is_too_large_for_the_topic_is_halved(coordinator: Coordinator) -> None:
    coordinator.create_topic("small", 1, {"max.message.bytes": "600"})
    async with Producer(coordinator.bootstrap, linger_ms=1_000, **SOON) as producer:
        sent = [await producer.send("small", b"%03d" % n * 10) for n in range(100)]
        huge = await producer.send("small", bytes(700))
        last = await producer.send("small", b"last")
        await producer.flush()
        with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
            await huge
        assert [(await found).offset for found in sent] == list(range(100))
        assert (await last).offset == 100
        assert producer.metrics().buffered_bytes == 0


async def test_what_is_wrong_with_a_record_keeps_no_other(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, max_request_size=2_000, buffer_memory=5_000) as producer:
        with pytest.raises(RecordTooLargeError, match="max_request_size"):
            await producer.send("t", bytes(3_000))
        with pytest.raises(RecordTooLargeError, match="buffer_memory"):
            await producer.send("t", bytes(6_000))
        with pytest.raises(
            UnknownPartitionError, match="partition 4 of topic t, which has partitions 0 to 3"
        ):
            await producer.send("t", b"", partition=4)
        with pytest.raises(TypeError, match="value of a record is str, not bytes"):
            await producer.send("t", "text")
        with pytest.raises(ValueError, match="headers are"):
            await producer.send("t", b"", headers=[("a", "b")])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="the name of a header cannot be sent as UTF-8: character 1"):
            await producer.send("t", b"", headers=[("a\ud800", b"")])
        with pytest.raises(ValueError, match="timestamp_ms has to be 0"):
            await producer.send("t", b"", timestamp_ms=-1)
        with pytest.raises(BrokerError, match="cannot be written to: INVALID_TOPIC_EXCEPTION"):
            await producer.send("no topic!", b"")
        assert producer.metrics().buffered_bytes == 0
        assert await producer.partitions("t") == 4
        await producer.send_and_wait("t", b"fine")
    assert [record.value for record in await written(coordinator, 1)] == [b"fine"]


async def test_a_topic_that_gets_more_partitions(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        await producer.send_and_wait("t", b"", partition=3)
        for count in (5, 7):  # by one, and by two
            coordinator.run(coordinator.node.topics.grow("t", count))
            assert (await producer.send_and_wait("t", b"", partition=count - 1)).partition == count - 1


async def test_nothing_is_accepted_in_the_turn_in_which_it_stops(coordinator: Coordinator) -> None:
    producer = Producer(coordinator.bootstrap)
    await producer.start()
    for _ in range(3):  # records without a key take the shortest way from then on
        await producer.send_and_wait("t", b"0")
    assert producer._sender is not None
    producer._ms_ends_s = math.inf  # no call lets the loop do other work
    producer._sender.entrance.begin(1_000, 3_600)
    # In one turn of the loop: the first learns that it may send, and the last one that it may not.
    first = asyncio.create_task(producer.send("t", b"1"))
    stopping = asyncio.create_task(producer.stop())
    late = asyncio.create_task(producer.send("t", b"2"))
    with pytest.raises(ProducerClosedError):
        await late
    await stopping
    assert (await first).result().offset >= 0
    assert len(await written(coordinator, 4)) == 4


async def test_memory_is_bounded_and_send_waits_for_room(coordinator: Coordinator) -> None:
    slow = coordinator.faults.delay("Produce", 3_600)
    async with Producer(
        coordinator.bootstrap, buffer_memory=3_000, batch_size=500, max_block_ms=200, linger_ms=0
    ) as producer:
        sent: list[asyncio.Future[RecordMetadata]] = []
        try:
            while True:
                sent.append(await producer.send("t", bytes(100)))
        except SendTimeoutError as error:
            assert "no room for a record of 129 bytes after 200 ms" in str(error)  # noqa: PT017
        assert 20 <= len(sent) <= 25
        waiting = [asyncio.create_task(producer.send("t", bytes(100))) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        assert slow.hits
        accepted: list[Any] = await asyncio.gather(*waiting, return_exceptions=True)
        first, cancelled, third = accepted
        assert isinstance(cancelled, asyncio.CancelledError)
        for found in (first, third):
            assert asyncio.isfuture(found)
            sent.append(found)
        await asyncio.gather(*sent)
        assert producer.metrics().buffered_bytes == 0
    await written(coordinator, len(sent))


async def test_the_partition_of_a_key_is_that_of_other_clients(coordinator: Coordinator, seed: int) -> None:
    chance = random.Random(seed)
    keys = [chance.randbytes(chance.randint(1, 40)) for _ in range(500)]
    coordinator.create_topic("many", 12)
    places: dict[str, dict[bytes, int]] = {}
    for partitioner in ("murmur2_random", "consistent_random"):
        theirs: dict[bytes, int] = {}

        def delivered(error: Any, message: Any, theirs: dict[bytes, int] = theirs) -> None:
            assert error is None
            theirs[message.key()] = message.partition()

        other = confluent_kafka.Producer(
            {"bootstrap.servers": coordinator.bootstrap, "partitioner": partitioner}
        )
        for key in keys:
            other.produce("many", b"", key=key, on_delivery=delivered)
        await asyncio.to_thread(other.flush)
        places[partitioner] = theirs
    kafka_python = {key: (murmur2(key) & 0x7FFFFFFF) % 12 for key in keys}
    for ours, their_name in (("murmur2", "murmur2_random"), ("consistent_random", "consistent_random")):
        async with Producer(coordinator.bootstrap, partitioner=ours) as producer:  # type: ignore[arg-type]
            sent = {key: await producer.send("many", b"", key=key) for key in keys}
            await producer.flush()
            assert {key: found.result().partition for key, found in sent.items()} == places[their_name]
    assert kafka_python == places["murmur2_random"]


async def test_records_without_a_key_fill_one_partition_after_the_other(coordinator: Coordinator) -> None:
    """Nine records of 109 bytes fill a batch."""
    async with Producer(coordinator.bootstrap, batch_size=1_000, linger_ms=50) as producer:
        sent = [await producer.send("t", bytes(80)) for _ in range(400)]
        await producer.flush()
        order = [found.result().partition for found in sent]
        changes = sum(before != after for before, after in itertools.pairwise(order))
        assert set(order) == {0, 1, 2, 3}
        assert changes <= 400 // 9
        empty = [await producer.send("t", b"", key=b"") for _ in range(3)]
        await producer.flush()
        assert len({found.result().partition for found in empty}) == 1  # Java hashes an empty key, too
    async with Producer(coordinator.bootstrap, partitioner=lambda topic, key, count: count - 1) as producer:
        assert (await producer.send_and_wait("t", b"")).partition == 3
    async with Producer(coordinator.bootstrap, partitioner=lambda topic, key, count: count) as producer:
        with pytest.raises(UnknownPartitionError, match="the partitioner chose partition 4"):
            await producer.send("t", b"")


async def test_stopping_writes_what_was_accepted(coordinator: Coordinator) -> None:
    producer = Producer(coordinator.bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000)
    with pytest.raises(ProducerClosedError, match="was not started"):
        await producer.send("t", b"")
    async with producer:
        sent = [await producer.send("t", b"%d" % n) for n in range(50)]
    assert all(found.done() and found.result() for found in sent)
    with pytest.raises(ProducerClosedError, match="has been stopped"):
        await producer.send("t", b"")
    await producer.stop()
    with pytest.raises(ProducerClosedError, match="started before"):
        await producer.start()
    await written(coordinator, 50)


async def test_what_stopping_cannot_write_fails(coordinator: Coordinator) -> None:
    coordinator.faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=-1)
    producer = Producer(coordinator.bootstrap, linger_ms=0, **SOON)
    await producer.start()
    found = await producer.send("t", b"")
    await producer.stop(timeout_s=0.05)
    with pytest.raises(ProducerClosedError, match="has been stopped"):
        await found


async def test_what_is_under_way_when_stopping_takes_too_long_fails(coordinator: Coordinator) -> None:
    coordinator.faults.delay("Produce", 3600)
    producer = Producer(coordinator.bootstrap, linger_ms=0, **SOON)
    await producer.start()
    found = [await producer.send("t", b"") for _ in range(2)]
    await until(lambda: bool(coordinator.faults.seen("Produce")))
    await producer.stop(timeout_s=0)
    for one in found:
        with pytest.raises(ProducerClosedError, match="has been stopped"):
            await asyncio.wait_for(one, 30)


async def test_a_copy_of_the_process_and_another_loop_are_refused(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        producer._process = os.getpid() + 1
        with pytest.raises(ProducerClosedError, match=r"a copy of it \(fork\): make a new producer here"):
            await producer.send("t", b"")
        producer._process = os.getpid()
        errors: list[str] = []

        def elsewhere() -> None:
            with pytest.raises(RuntimeError, match="in the event loop that called start") as raised:
                asyncio.run(producer.flush())
            errors.append(str(raised.value))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert errors


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"acks": 1}, "enable_idempotence needs acks"),
        ({"acks": 0}, "acks has to be one of 'all', 1"),
        ({"max_in_flight_requests_per_connection": 6}, "at most 5"),
        ({"transactional_id": ""}, "transactional_id is empty"),
        ({"transactional_id": "x", "enable_idempotence": False}, "transactional_id needs enable_idempotence"),
        ({"delivery_timeout_ms": 1_000}, "delivery_timeout_ms has to be at least linger_ms"),
        ({"compression_type": "zip"}, "compression_type has to be one of"),
        ({"linger_ms": -1}, "linger_ms has to be at least 0"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Producer("127.0.0.1:9092", **options)


def test_options_that_there_are_not() -> None:
    with pytest.raises(TypeError, match=r"Producer\(\) has no option 'lingerms'; did you mean 'linger_ms'\?"):
        Producer("127.0.0.1:9092", lingerms=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="it is linger_ms here"):
        Producer("127.0.0.1:9092", **{"linger.ms": 5})  # type: ignore[arg-type]


def test_from_threads(coordinator: Coordinator) -> None:
    results: list[Future[RecordMetadata]] = []
    with SyncProducer(coordinator.bootstrap, compression_type="lz4") as producer:

        def send(name: int) -> None:
            results.extend(
                producer.send("t", b"%d" % n, key=b"%d" % name, partition=name) for n in range(1_500)
            )

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        assert all(found.done() for found in results)
        assert producer.send_and_wait("t", b"1500", partition=0).offset == 1_500
        wrong = producer.send("t", b"", partition=9)
        with pytest.raises(UnknownPartitionError):
            wrong.result(PATIENCE_S)
        last = producer.send("t", b"1501", partition=0)
        assert (producer.partitions("t"), producer.metrics().failed_records) == (4, 0)
    assert last.result().offset == 1_501
    with pytest.raises(ProducerClosedError, match="has been stopped"):
        producer.send("t", b"")
    records = asyncio.run(written(coordinator, 6_002))
    for partition in range(4):
        numbers = [int(record.value) for record in records if record.partition == partition]
        assert numbers == list(range(len(numbers)))


async def test_a_producer_writes_while_a_consumer_reads(coordinator: Coordinator) -> None:
    async with (
        Producer(coordinator.bootstrap) as producer,
        GroupConsumer(coordinator.bootstrap, "g", ["t"], auto_offset_reset="earliest") as consumer,
    ):
        sent = await producer.send_and_wait("t", b"x")
        batch = await consumer.getone(PATIENCE_S)
        assert batch is not None
        assert batch.record[:3] == sent[:3]
        assert issubclass(DeliveryTimeoutError, ProduceError)
