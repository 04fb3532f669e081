"""Producers at their bounds: room in memory, sizes of requests, epochs, and records that cannot go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader import AbortableTransactionError, DeliveryTimeoutError, ProduceError, Producer
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from ringleader.clients.produce.entrance import entrance
from ringleader.clients.produce.memory import Memory
from ringleader.clients.produce.model import ProducerSettings
from ringleader.clients.produce.topics import Topics
from ringleader.coordinator.server.handlers import versions
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.records import iter_batches
from ringleader.testing.coordinator import Coordinator
from tests.clients.test_producer import SOON, written
from tests.support.consuming import PATIENCE_S, until
from tests.support.scripted_broker import CLOSE, VERSIONS, ScriptedBroker
from tests.support.tables import turns
from tests.support.two_brokers import two_brokers

PRODUCED = VERSIONS | {0: (3, 9), 22: (0, 4)}
PATIENT: dict[str, Any] = {"request_timeout_ms": 60_000, "delivery_timeout_ms": 120_000}


def sent_batches(coordinator: Coordinator) -> list[list[bytes]]:
    """The batches of each Produce request."""
    return [
        [part.records for topic in seen.request.topic_data for part in topic.partition_data]
        for seen in coordinator.faults.seen("Produce")
    ]


async def test_who_waits_for_room_gets_all_there_is(coordinator: Coordinator) -> None:
    """A record takes 29 bytes more than its value."""
    coordinator.faults.delay("Produce", 3_600)
    async with Producer(
        coordinator.bootstrap, buffer_memory=1_290, max_block_ms=10_000, linger_ms=0, **SOON
    ) as producer:
        await producer.partitions("t")
        sent = [await producer.send("t", bytes(100), partition=0)]
        large = asyncio.create_task(producer.send("t", bytes(1_261), partition=0))
        await turns()
        small = asyncio.create_task(producer.send("t", bytes(100), partition=0))
        await turns()
        assert not large.done()
        assert not small.done()
        large.cancel()
        sent.append(await small)  # nobody is before it any more
        large = asyncio.create_task(producer.send("t", bytes(1_261), partition=0))
        await turns()
        assert not large.done()
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        sent.append(await large)
        await asyncio.gather(*sent)


async def test_a_batch_does_not_linger_while_a_record_waits_for_room(coordinator: Coordinator) -> None:
    async with Producer(
        coordinator.bootstrap, buffer_memory=1_290, max_block_ms=10_000, linger_ms=60_000, **PATIENT
    ) as producer:
        sent = [await producer.send("t", bytes(100), partition=0) for _ in range(25)]
        await producer.flush()
        assert [found.result().offset for found in sent] == list(range(25))


async def test_a_batch_that_is_full_to_the_byte_goes_at_once(coordinator: Coordinator) -> None:
    """No next record says that it does not fit."""
    async with Producer(coordinator.bootstrap, batch_size=1_290, linger_ms=60_000, **PATIENT) as producer:
        await producer.partitions("t")
        for _ in range(9):
            await producer.send("t", bytes(100), partition=0)
        await turns()
        assert producer.metrics().requests == 0
        last = await producer.send("t", bytes(100), partition=0)
        assert (await asyncio.wait_for(last, PATIENCE_S)).offset == 9


async def test_a_partition_that_was_left_does_not_linger(coordinator: Coordinator) -> None:
    """Without a key: seven records of 129 bytes fill a batch, and the eighth goes to another partition."""
    async with Producer(coordinator.bootstrap, batch_size=1_000, linger_ms=60_000, **PATIENT) as producer:
        sent = [await producer.send("t", bytes(100)) for _ in range(8)]
        first = [await found for found in sent[:7]]
        assert len({found.partition for found in first}) == 1
        assert not sent[7].done()
        await producer.flush()
        assert sent[7].result().partition != first[0].partition
        assert producer.metrics().buffered_bytes == 0


async def test_partitions_take_turns_while_their_batches_stay_open(coordinator: Coordinator) -> None:
    """Without a key: a large batch is filled in several turns of 16 records each."""
    async with Producer(coordinator.bootstrap, batch_size=200_000, linger_ms=60_000, **PATIENT) as producer:
        await producer.partitions("t")
        sent = [await producer.send("t", bytes(980)) for _ in range(128)]
        await turns()
        assert producer.metrics().requests == 0
        await producer.flush()
        found = [one.result().partition for one in sent]
        rounds = [set(found[at : at + 16]) for at in range(0, 128, 16)]
        assert all(len(one) == 1 for one in rounds)
        assert len(set.union(*rounds[:4])) == 4
        assert rounds[:4] == rounds[4:]
        assert producer.metrics().requests == 1


async def test_batches_of_several_partitions_go_together_as_far_as_a_request_may_be(
    coordinator: Coordinator,
) -> None:
    async with Producer(
        coordinator.bootstrap, max_request_size=2_000, linger_ms=60_000, **PATIENT
    ) as producer:
        sent = [await producer.send("t", bytes(800), partition=number) for number in range(4)]
        await producer.flush()
        assert all(found.result() for found in sent)
    sizes = [[len(data) for data in batches] for batches in sent_batches(coordinator)]
    assert [len(batches) for batches in sizes] == [2, 2]
    assert all(sum(batches) <= 2_000 for batches in sizes)


async def test_one_request_at_a_time_goes_to_a_node_that_has_not_answered(coordinator: Coordinator) -> None:
    """Over a connection that is just being opened they may come in any order."""
    async with Producer(coordinator.bootstrap, linger_ms=0, **PATIENT, **SOON) as producer:
        sent = [await producer.send("t", b"0", partition=0)]
        await sent[0]
        coordinator.faults.drop("Produce")
        coordinator.faults.delay("Produce", 3_600)
        sent.append(await producer.send("t", b"1", partition=0))
        await until(lambda: len(coordinator.faults.seen("Produce")) == 3)
        sent.append(await producer.send("t", b"2", partition=1))
        await turns()
        assert producer.metrics().requests == 3
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        await asyncio.gather(*sent)
    assert [record.value for record in await written(coordinator, 3)] == [b"0", b"1", b"2"]


async def test_a_new_epoch_begins_when_nothing_of_the_old_one_is_on_its_way(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, batch_size=200, linger_ms=0, **PATIENT, **SOON) as producer:
        await producer.send_and_wait("t", b"0", partition=0)
        coordinator.faults.error("Produce", ErrorCode.INVALID_RECORD)
        # The first behind the gap is refused long before the second is answered.
        coordinator.faults.delay("Produce", 0.3, nth=2, times=1)
        failed, *sent = [await producer.send("t", b"%0150d" % number, partition=0) for number in range(1, 4)]
        with pytest.raises(ProduceError, match="INVALID_RECORD"):
            await failed
        assert [(await found).offset for found in sent] == [1, 2]
    batches = [data for of in sent_batches(coordinator) for data in of]
    assert len(batches) == 6
    headers = [next(iter_batches(data)).header for data in batches]
    assert [(header.producer_epoch, header.base_sequence) for header in headers] == [
        *((0, sequence) for sequence in range(4)),
        (1, 0),
        (1, 1),
    ]


async def test_nothing_goes_ahead_of_the_first_batch_of_a_new_epoch(coordinator: Coordinator) -> None:
    """A leader that does not have it would store what came behind it."""
    async with Producer(coordinator.bootstrap, batch_size=200, linger_ms=0, **PATIENT, **SOON) as producer:
        await producer.send_and_wait("t", b"0", partition=0)
        coordinator.faults.error("Produce", ErrorCode.INVALID_RECORD)
        coordinator.faults.delay("Produce", 0.3, nth=2, times=1)
        coordinator.faults.delay("Produce", 3_600, nth=2, times=1)
        failed, *sent = [await producer.send("t", b"%0150d" % number, partition=0) for number in range(1, 4)]
        with pytest.raises(ProduceError, match="INVALID_RECORD"):
            await failed
        await until(lambda: len(sent_batches(coordinator)) >= 5)
        await turns()
        assert producer.metrics().requests == 5
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        assert [(await found).offset for found in sent] == [1, 2]


async def test_the_backoff_grows_with_failures_in_a_row_only(coordinator: Coordinator) -> None:
    """Of ten in all, the last pauses would be longer than a record may take."""
    hours: dict[str, Any] = {"retry_backoff_ms": 100, "retry_backoff_max_ms": 7_200_000}
    short: dict[str, Any] = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 10_000}
    async with Producer(coordinator.bootstrap, linger_ms=0, **hours, **short) as producer:
        for number in range(10):
            coordinator.faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS)
            assert (await producer.send_and_wait("t", b"", partition=0)).offset == number
        assert producer.metrics().retries == 10


async def test_a_request_is_waited_for_as_long_as_its_oldest_batch_may_be(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The younger one in it goes again in time."""
    loop, ahead_s = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead_s)
    options: dict[str, Any] = {"request_timeout_ms": 20_000, "delivery_timeout_ms": 20_000, "linger_ms": 0}
    async with Producer(
        coordinator.bootstrap, max_in_flight_requests_per_connection=1, **options, **SOON
    ) as producer:
        await producer.send_and_wait("t", b"", partition=0)
        coordinator.faults.delay("Produce", 3_600)
        before = await producer.send("t", b"before", partition=0)
        await until(lambda: len(coordinator.faults.seen("Produce")) == 2)
        older = await producer.send("t", b"older", partition=1)
        ahead_s += 10
        younger = await producer.send("t", b"younger", partition=2)
        coordinator.faults.disconnect()
        await until(lambda: len(coordinator.faults.seen("Produce")) == 3)
        coordinator.faults.clear()
        ahead_s += 11
        with pytest.raises(DeliveryTimeoutError):
            await older
        coordinator.faults.disconnect()
        assert (await younger).offset == 0
        await asyncio.gather(before, return_exceptions=True)


class Alone(ScriptedBroker):
    """A broker with one partition, whose answers to Produce are those given."""

    def __init__(self, leader: int = 1, epoch: int = 0, **answer: Any) -> None:
        super().__init__({0: self._produce, 3: self._metadata, 22: self._init}, PRODUCED)
        self._leader = leader
        self._epoch = epoch
        self._answer = answer

    def _metadata(self, *_: Any) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        partition = MetadataResponsePartition(partition_index=0, leader_id=self._leader)
        topic = MetadataResponseTopic(name="t", partitions=[partition])
        return MetadataResponse(brokers=[broker], controller_id=1, topics=[topic])

    def _init(self, *_: Any) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=7, producer_epoch=self._epoch)

    def _produce(self, *_: Any) -> ProduceResponse:
        part = ProduceResponsePartitionProduceResponse(index=0, **self._answer)
        topic = ProduceResponseTopicProduceResponse(name="t", partition_responses=[part])
        return ProduceResponse(responses=[topic])


async def test_records_of_a_partition_without_a_leader_have_an_end() -> None:
    timeouts: dict[str, Any] = {"linger_ms": 0, "request_timeout_ms": 100, "delivery_timeout_ms": 100}
    async with Alone(leader=-1) as broker, Producer(broker.address, **timeouts, **SOON) as producer:
        with pytest.raises(DeliveryTimeoutError, match="not confirmed within 100 ms"):
            await producer.send_and_wait("t", b"0")
        assert "Produce" not in broker.names()


async def test_topics_are_looked_at_again_after_a_look_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that waits for a leader would wait for the next look at all topics, minutes later."""
    loop, ahead_s = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead_s)
    async with (
        Alone(leader=-1, base_offset=5) as broker,
        Producer(broker.address, linger_ms=0, **PATIENT, **SOON) as producer,
    ):
        sent = await producer.send("t", b"0", partition=0)
        metadata, broker.handlers[3] = broker.handlers[3], lambda *_: CLOSE
        await broker.until("Metadata", broker.names().count("Metadata") + 1)
        ahead_s += 31  # longer than one look takes
        await until(lambda: "topics cannot be looked at" in caplog.text)
        broker._leader, broker.handlers[3] = 1, metadata
        assert (await asyncio.wait_for(sent, PATIENCE_S)).offset == 5


async def test_behind_the_last_epoch_is_none() -> None:
    forgotten = ErrorCode.UNKNOWN_PRODUCER_ID
    async with (
        Alone(epoch=2**15 - 1, error_code=forgotten) as broker,
        Producer(broker.address, linger_ms=0, **SOON) as producer,
    ):
        with pytest.raises(ProduceError, match="UNKNOWN_PRODUCER_ID"):
            await asyncio.wait_for(await producer.send("t", b"0"), 20)


async def test_a_time_that_a_broker_gave_is_the_record_s() -> None:
    async with Alone(base_offset=5, log_append_time_ms=0) as broker, Producer(broker.address) as producer:
        assert await producer.send_and_wait("t", b"0", timestamp_ms=77) == ("t", 0, 5, 0)


@pytest.fixture
def first_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator, which begins after it, has the first version of transactions only."""
    monkeypatch.setattr(versions, "TRANSACTION_VERSION", {})


@pytest.mark.usefixtures("first_version")
@pytest.mark.parametrize("way", ["too large", "refused", "unknown"])
async def test_a_batch_that_was_given_up_is_no_gap_in_the_next_transaction(
    coordinator: Coordinator, way: str
) -> None:
    """The leader knows the producer: it takes nothing behind a sequence that it misses."""
    coordinator.create_topic("small", 1, {"max.message.bytes": "300"})
    async with Producer(coordinator.bootstrap, transactional_id="x", linger_ms=0, **SOON) as producer:
        async with producer.transaction():
            await producer.send("small", b"1")
        with pytest.raises(AbortableTransactionError):  # noqa: PT012
            async with producer.transaction():
                await (await producer.send("small", b"gone"))
                if way == "refused":
                    coordinator.faults.error("Produce", ErrorCode.INVALID_RECORD)
                elif way == "unknown":
                    coordinator.faults.error("Produce", ErrorCode.UNKNOWN_SERVER_ERROR)
                lost = await producer.send("small", bytes(1_000) if way == "too large" else b"2")
                await producer.flush()
        with pytest.raises(ProduceError):
            await lost
        for value in (b"3", b"4"):
            async with producer.transaction():
                await producer.send("small", value)
    assert [record.value for record in coordinator.records("small")] == [b"1", b"3", b"4"]


@pytest.mark.usefixtures("first_version")
@pytest.mark.parametrize("ends", ["abort_transaction", "stop"])
async def test_nothing_is_added_to_a_transaction_behind_its_end(coordinator: Coordinator, ends: str) -> None:
    """It would be in a transaction that nobody ends."""
    async with Producer(coordinator.bootstrap, transactional_id="x", linger_ms=0, **SOON) as producer:
        await producer.partitions("t")
        coordinator.faults.error("AddPartitionsToTxn", ErrorCode.CONCURRENT_TRANSACTIONS, times=5)
        producer.begin_transaction()
        await producer.send("t", b"0")
        await until(lambda: bool(coordinator.faults.seen("AddPartitionsToTxn")))
        await getattr(producer, ends)()
    seen = [one.api for one in coordinator.faults.seen() if one.api in ("AddPartitionsToTxn", "EndTxn")]
    assert seen == ["AddPartitionsToTxn"] * (len(seen) - 1) + ["EndTxn"]


async def test_no_batch_goes_to_another_leader_before_the_former_has_answered() -> None:
    """Else it may be written before those that are under way there, which then come again."""
    moved, requested = asyncio.Event(), asyncio.Event()
    order: list[tuple[int, int]] = []

    def produce(node: int) -> Any:
        async def answer(request: Any, _version: int, _id: int) -> ProduceResponse:
            (data,) = [part.records for topic in request.topic_data for part in topic.partition_data]
            (batch,) = iter_batches(data)
            first = batch.header.base_sequence
            order.append((node, first))
            if first:
                requested.set()
                await moved.wait()
            part = ProduceResponsePartitionProduceResponse(index=0, base_offset=first)
            topic = ProduceResponseTopicProduceResponse(name="t", partition_responses=[part])
            return ProduceResponse(responses=[topic])

        return answer

    async with two_brokers() as cluster:
        cluster.leaders = {"t": [1]}
        cluster.on(0, produce(1), produce(2))
        cluster.on(22, lambda *_: InitProducerIdResponse(producer_id=7, producer_epoch=0))
        async with Producer(cluster.bootstrap, linger_ms=0, metadata_max_age_ms=20, **SOON) as producer:
            sent = [await producer.send("t", b"0")]
            await sent[0]
            sent.append(await producer.send("t", b"1"))
            await requested.wait()
            cluster.leaders = {"t": [2]}
            looks = len(cluster.requests_of(MetadataRequest))
            await until(lambda: len(cluster.requests_of(MetadataRequest)) > looks + 2)
            sent.append(await producer.send("t", b"2"))
            await turns()
            await until(lambda: len(cluster.requests_of(MetadataRequest)) > looks + 4)
            assert order == [(1, 0), (1, 1)]
            moved.set()
            await asyncio.gather(*sent)
    assert order == [(1, 0), (1, 1), (2, 2)]


async def test_a_record_whose_caller_is_cancelled_when_its_room_is_given_takes_none() -> None:
    door = entrance(by_murmur2=True)
    memory = Memory(100, door)
    assert memory.take_now(100)
    waiting = asyncio.create_task(memory.take(50))
    await asyncio.sleep(0)
    memory.give(100)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (memory.used_bytes, memory.has_room(100)) == (0, True)


async def test_looks_for_topics_begin_with_short_waits_when_all_was_well_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a leader that moves after many others is known later than the first."""
    settings = ProducerSettings(retry_backoff_ms=1, retry_backoff_max_ms=64)
    cluster: Any = None
    topics = Topics(cluster, settings, lambda: None, lambda _place: None)
    waits_s, sleep = list[float](), asyncio.sleep

    async def note(wait_s: float) -> None:
        waits_s.append(wait_s)
        await sleep(0)

    monkeypatch.setattr("ringleader.clients.produce.topics.asyncio.sleep", note)
    running = asyncio.create_task(topics.run())

    async def look() -> float:
        count = len(waits_s)
        topics.stale()
        while len(waits_s) == count:
            await sleep(0)
        return waits_s[-1]

    for _ in range(10):
        await look()
    await sleep(0.1)
    assert await look() < 0.002
    running.cancel()
    await asyncio.wait([running])


async def test_calls_that_waited_for_a_topic_hold_up_none_that_come_when_it_is_known() -> None:
    class Answers(Cluster):
        async def metadata(self, topics: Any = None, **_options: Any) -> ClusterMetadata:
            await asyncio.sleep(0)
            partitions = (PartitionMetadata(0, 0, 0, (0,), (0,)),)
            found = {name: TopicMetadata(name, bytes(16), False, partitions, 0) for name in topics}
            return ClusterMetadata(0, {}, found)

    topics = Topics(Answers("h:1"), ProducerSettings(), lambda: None, lambda _place: None)
    soon_s = asyncio.get_running_loop().time() + 20
    waiting = [asyncio.create_task(topics.partition("t", None, 0, 1, soon_s)) for _ in range(2)]
    await asyncio.sleep(0)
    assert topics.is_awaited("t")
    assert await asyncio.gather(*waiting) == [0, 0]
    assert not topics.is_awaited("t")
