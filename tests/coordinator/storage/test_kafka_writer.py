"""The Kafka store's handling of answers that a real broker gives rarely."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ConnectionLostError
from ringleader.clients.model import Node
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import leaders
from ringleader.coordinator.storage.kafka import writer as module
from ringleader.coordinator.storage.kafka.writer import Sender, Writer, uptime_s
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.records import iter_batches
from tests.support.scripted_broker import CLOSE, VERSIONS, ScriptedBroker

TOPIC = "groups"


class Log:
    """A broker of one topic that takes batches in their order, and answers something else on request."""

    def __init__(self, verdicts: Iterable[Any] = ()) -> None:
        self.verdicts = list(verdicts)
        """Of the next requests: an error code for all their batches, CLOSE, or None: as it should be."""
        self.taken: dict[int, list[tuple[int, bytes]]] = {}
        """By partition: sequence numbers and values."""
        self.broker = ScriptedBroker({0: self._produce, 3: self._metadata}, {**VERSIONS, 0: (3, 9)})
        self.offset_of: Callable[[int], int] = lambda sequence: sequence
        self.sequences = 2**31
        """The number after which a sequence number is 0 again."""
        self.order: list[int] = []
        """Of the batches that were taken, the partitions."""
        self.requests = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def _metadata(self, _request: Any, _version: int, _correlation_id: int) -> MetadataResponse:
        parts = [MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(4)]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(1, "127.0.0.1", self.broker.port)],
            topics=[MetadataResponseTopic(name=TOPIC, partitions=parts)],
        )

    async def _produce(self, request: ProduceRequest, _version: int, _correlation_id: int) -> Any:
        self.requests += 1
        await self.gate.wait()
        verdict = self.verdicts.pop(0) if self.verdicts else None
        if verdict is CLOSE:
            return CLOSE
        answers = [
            ProduceResponsePartitionProduceResponse(
                part.index, *self._append(part.index, part.records or b"", verdict)
            )
            for part in request.topic_data[0].partition_data
        ]
        return ProduceResponse([ProduceResponseTopicProduceResponse(TOPIC, partition_responses=answers)])

    def _append(self, partition: int, data: bytes, verdict: int | None) -> tuple[int, int]:
        if verdict is not None:
            return verdict, -1
        log = self.taken.setdefault(partition, [])
        [batch] = iter_batches(bytes(data))
        sequence, due = batch.header.base_sequence, len(log) % self.sequences
        if sequence > due:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        if sequence == due:
            self.order.append(partition)
            log += [(sequence + n, record.value or b"") for n, record in enumerate(batch.records())]
        return 0, self.offset_of(sequence)


@asynccontextmanager
async def sending(log: Log, forgotten_s: float = 60) -> AsyncIterator[tuple[Sender, list[Writer]]]:
    """A sender to it, and writers of its partitions."""
    async with log.broker as broker, Cluster(broker.address) as cluster:
        sender = Sender(cluster, TOPIC, 5_000, forgotten_s)
        sender.leaders.moved()
        try:
            yield sender, [Writer(n, f"partition {n}", 7, 1, uptime_s()) for n in range(4)]
        finally:
            await sender.close()


def append(sender: Sender, writer: Writer, value: bytes, timeout_s: float = 30) -> asyncio.Future[int]:
    """One record."""
    future = writer.add([(b"k", value)], asyncio.get_running_loop().time() + timeout_s)
    sender.ready(writer)
    return future


async def failure(future: asyncio.Future[int]) -> StorageError:
    """The error that it fails with."""
    with pytest.raises(StorageError) as failed:
        await future
    return failed.value


async def test_what_comes_in_one_turn_is_one_request_and_what_waits_is_one_batch() -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        assert await asyncio.gather(*(append(sender, writer, b"1") for writer in writers)) == [0] * 4
        assert log.requests == 1
        log.gate.clear()
        under_way = [append(sender, writers[0], b"2")]
        await log.broker.until("Produce", 2)
        for number in range(3, 20):
            under_way.append(append(sender, writers[0], b"%d" % number))
            await asyncio.sleep(0)
        log.gate.set()
        assert await asyncio.gather(*under_way) == list(range(1, 19))
        assert log.requests == 3, "what came while one was under way is the next one"
        assert log.taken[0] == [(n, b"%d" % (n + 1)) for n in range(19)]


async def test_a_broker_has_one_request_at_a_time_and_the_next_one_takes_all() -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        log.gate.clear()
        under_way = [append(sender, writers[0], b"1")]
        await log.broker.until("Produce", 1)
        for writer in writers[1:]:
            under_way.append(append(sender, writer, b"1"))
            await asyncio.sleep(0)
        log.gate.set()
        await asyncio.gather(*under_way)
        assert log.requests == 2


@pytest.mark.parametrize("offset", [0, 1, 2])
async def test_a_log_that_begins_again_acknowledges_nothing(offset: int) -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        for value in (b"1", b"2", b"3"):
            await append(sender, writers[0], value)
        log.offset_of = lambda _sequence: offset  # made again, it takes what comes
        failed = await failure(append(sender, writers[0], b"3"))
        assert failed.failure is Failure.AWAY
        assert "what was acknowledged is gone" in str(failed)


@pytest.mark.parametrize(
    "trouble",
    [
        [CLOSE],
        [CLOSE, CLOSE, CLOSE],
        [ErrorCode.NOT_LEADER_OR_FOLLOWER],
        [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND],
        [ErrorCode.REQUEST_TIMED_OUT, None, ErrorCode.LEADER_NOT_AVAILABLE],
        [None, ErrorCode.CORRUPT_MESSAGE, CLOSE, None, ErrorCode.KAFKA_STORAGE_ERROR],
    ],
)
async def test_what_was_not_taken_is_sent_again_and_the_order_stays(trouble: list[Any]) -> None:
    log = Log(trouble)
    async with sending(log) as (sender, writers):
        futures = []
        for number in range(12):
            futures.append(append(sender, writers[number % 2], b"%d" % (number // 2)))
            await asyncio.sleep(0.002)
        assert await asyncio.gather(*futures) == [number // 2 for number in range(12)]
        for partition in (0, 1):
            assert log.taken[partition] == [(n, b"%d" % n) for n in range(6)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, Failure.FENCED),
        (ErrorCode.PRODUCER_FENCED, Failure.FENCED),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Failure.AWAY),
        (ErrorCode.UNKNOWN_PRODUCER_ID, Failure.AWAY),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Failure.AWAY),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Failure.AWAY),
        (ErrorCode.MESSAGE_TOO_LARGE, Failure.TOO_LARGE),
    ],
)
async def test_what_no_retry_cures_ends_the_partition_and_no_other(
    code: ErrorCode, expected: Failure
) -> None:
    log = Log([code])
    async with sending(log) as (sender, writers):
        first = append(sender, writers[0], b"1")
        await log.broker.until("Produce")
        other = append(sender, writers[1], b"1")
        failed = await failure(first)
        assert failed.failure is expected
        assert code.name in str(failed)
        assert await other == 0
        with pytest.raises(StorageError) as ended:
            append(sender, writers[0], b"2")
        assert ended.value is failed
        assert 0 not in log.taken


async def test_all_that_was_called_before_a_failure_fails_with_it() -> None:
    log = Log([ErrorCode.INVALID_PRODUCER_EPOCH])
    async with sending(log) as (sender, writers):
        log.gate.clear()
        futures = [append(sender, writers[0], b"0")]
        await log.broker.until("Produce")
        futures += [append(sender, writers[0], b"%d" % number) for number in range(1, 5)]
        log.gate.set()
        for future in futures:
            assert (await failure(future)).failure is Failure.FENCED
        assert writers[0].idle


async def test_a_broker_that_does_not_answer_is_given_up_in_time() -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        log.gate.clear()
        failed = await failure(append(sender, writers[0], b"1", timeout_s=0.3))
        assert failed.failure is Failure.AWAY
        assert "not acknowledged in time, last: no answer" in str(failed)
        log.gate.set()
        assert await append(sender, writers[1], b"1") == 0


async def test_a_writer_that_was_silent_for_too_long_sends_nothing() -> None:
    log = Log()
    async with sending(log, forgotten_s=100) as (sender, writers):
        assert await append(sender, writers[2], b"1") == 0  # who leads is known from here on
        writers[0].known_s -= 101
        failed = await failure(append(sender, writers[0], b"1"))
        assert failed.failure is Failure.AWAY
        assert log.requests == 1
        writers[1].known_s -= 99
        assert await append(sender, writers[1], b"1") == 0


async def test_the_oldest_append_of_a_batch_says_when_it_is_overdue() -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        log.gate.clear()
        first = append(sender, writers[0], b"1", timeout_s=0.3)
        append(sender, writers[0], b"2").add_done_callback(asyncio.Future.exception)
        async with asyncio.timeout(10):
            assert (await failure(first)).failure is Failure.AWAY
        log.gate.set()


async def test_each_append_is_overdue_in_its_own_time() -> None:
    log = Log()
    async with sending(log) as (sender, writers):
        assert await append(sender, writers[3], b"1") == 0  # who leads is known from here on
        log.gate.clear()
        later = append(sender, writers[0], b"1", timeout_s=600)
        futures = [append(sender, writers[n], b"1", timeout_s=n * 0.3) for n in (1, 2)]
        async with asyncio.timeout(20):
            for future in futures:
                assert (await failure(future)).failure is Failure.AWAY
        assert not later.done()
        log.gate.set()
        assert await later == 0


async def test_looks_for_leaders_come_less_and_less_often_until_there_is_calm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Counted:
        resets = 0

        def reset(self) -> None:
            self.resets += 1

        def next_ms(self) -> float:
            return 0.0

    backoff: Any = Counted()
    log = Log()
    async with log.broker as broker, Cluster(broker.address) as cluster:
        looking = leaders.Leaders(cluster, TOPIC, lambda: None)
        looking._backoff = backoff
        monkeypatch.setattr(leaders, "CALM_S", asyncio.get_running_loop().time() / 2)
        for _ in range(3):
            await looking.next_news()
        assert backoff.resets == 1, "before the first look it was calm"
        await looking.close()


async def test_what_is_acknowledged_shows_that_the_cluster_knows_the_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    up_s = 1_000.0
    monkeypatch.setattr(module, "uptime_s", lambda: up_s)
    log = Log()
    async with sending(log, forgotten_s=100) as (sender, writers):
        writers[0].known_s = up_s
        for number in range(3):
            up_s += 60
            assert await append(sender, writers[0], b"1") == number


async def test_after_an_acknowledgement_it_is_soon_tried_again() -> None:
    writer = Writer(0, "partition 0", 7, 1, uptime_s())
    for offset in (0, 1):
        writer.add([(b"k", b"v")])
        again_s = []
        for _ in range(5):
            assert writer.next(1e9) is not None
            again_s.append(writer.refused("NOT_ENOUGH_REPLICAS", 0.0))
        assert again_s[0] <= 1.2 * module.AGAIN_MS / 1000 < again_s[-1]
        assert writer.next(1e9) is not None
        writer.acknowledged(offset)


async def test_sequence_numbers_begin_again_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEQUENCES", 5)
    log = Log()
    log.sequences = 5
    log.offset_of = lambda _sequence: len(log.taken[0]) - 1
    async with sending(log) as (sender, writers):
        for number in range(12):
            assert await append(sender, writers[0], b"%d" % number) == number
    assert [value for _, value in log.taken[0]] == [b"%d" % number for number in range(12)]


async def test_a_busy_partition_keeps_no_other_from_a_full_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REQUEST_BYTES", 1)
    monkeypatch.setattr(module, "BATCH_BYTES", 1)
    log = Log()
    async with sending(log) as (sender, writers):
        log.gate.clear()
        futures = [append(sender, writers[0], b"%d" % number) for number in range(4)]
        await log.broker.until("Produce")
        futures += [append(sender, writer, b"0") for writer in writers[1:]]
        log.gate.set()
        await asyncio.gather(*futures)
    assert log.order == [0, 0, 1, 2, 3, 0, 0], "who came while it was under way is not passed over again"


async def test_a_former_leader_that_is_silent_is_asked_over_no_old_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A later request would wait behind the one that it does not answer."""
    monkeypatch.setattr(leaders, "SUSPICIOUS_S", 0.0)
    closed: list[tuple[Node, str]] = []

    class Silent(Cluster):
        async def send(self, *_request: Any, **_options: Any) -> Any:
            await asyncio.Event().wait()

        def disconnect(self, node: Node, purpose: str = "") -> None:
            closed.append((node, purpose))

    former, present = Node(1, "h", 1), Node(2, "h", 2)
    found = leaders.Leaders(Silent("h:1"), TOPIC, lambda: None)
    found.known = {0: present}
    with pytest.raises(ConnectionLostError, match="another broker leads"):
        await found.ask(former, [0], plain(ProduceRequest()), timeout_ms=60_000, purpose="append")
    await found.close()
    assert closed == [(former, "append")]
