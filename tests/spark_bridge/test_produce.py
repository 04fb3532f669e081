"""The sink's producing: everything once and in order while brokers fail in every way they know."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.errors import ProduceError
from ringleader.clients.produce.partitioner import partition_of_key
from ringleader.protocol.compression import Compression
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import ProduceRequest
from ringleader.protocol.records import BatchHeader, iter_batches
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings, close_clusters
from tests.spark_bridge.broker import Partition
from tests.spark_bridge.sink_broker import SinkBroker
from tests.support.shares import share

PARTITIONS = 3


@pytest.fixture
def broker() -> Iterator[SinkBroker]:
    topics = {"t": {number: Partition() for number in range(PARTITIONS)}, "u": {0: Partition()}}
    with SinkBroker(topics) as found:
        yield found
    close_clusters()


def settings(broker: SinkBroker, **changes: Any) -> SinkSettings:
    plain = SinkSettings(
        endpoint=Endpoint(((broker.host, broker.port),), request_timeout_ms=5_000),
        topic="t",
        batch_bytes=1_000,
        max_request_bytes=4_000,
        delivery_timeout_s=20.0,
        max_block_s=0.05,
        retry_backoff_s=0.001,
    )
    return replace(plain, **changes)


def values(count: int, start: int = 0, size: int = 50) -> list[bytes]:
    return [b"%06d" % number + b"." * (size - 6) for number in range(start, start + count)]


def rows(
    found: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    partitions: list[int | None] | None = None,
    topics: list[str | None] | None = None,
) -> ArrowRows:
    some = None if keys is None else pa.array(keys, pa.binary())
    return ArrowRows(
        pa.array(found, pa.binary()),
        some,
        None,
        None if topics is None else pa.array(topics, pa.string()),
        None if partitions is None else pa.array(partitions, pa.int32()),
    )


def write(chosen: SinkSettings, *parts: ArrowRows) -> SinkProducer:
    producer = SinkProducer(chosen)
    try:
        for part in parts:
            producer.write_rows(part)
        producer.flush()
    finally:
        producer.close()
    return producer


def log(broker: SinkBroker, topic: str = "t") -> list[bytes]:
    found = [value for number in broker.topics[topic] for value in broker.values(topic, number)]
    assert None not in found
    return [value for value in found if value is not None]


def all_to(partition: int, count: int) -> ArrowRows:
    return rows(values(count), partitions=[partition] * count)


def test_rows_without_a_key_spread_evenly_in_whole_batches(broker: SinkBroker) -> None:
    producer = write(settings(broker), rows(values(300)), rows(values(300, 300)))
    assert sorted(log(broker)) == values(600)
    shares = [len(broker.values("t", number)) for number in range(PARTITIONS)]
    assert max(shares) - min(shares) <= 20
    assert producer.rows == 600
    deltas = [
        view.header.last_offset_delta for data in broker.topics["t"][0].batches for view in iter_batches(data)
    ]
    assert min(deltas[:-1]) >= 9


def test_a_key_goes_where_java_puts_it_and_stays_in_order(broker: SinkBroker) -> None:
    keys = [b"key-%d" % (number % 17) for number in range(400)]
    write(settings(broker), rows(values(400), keys))
    for number in range(PARTITIONS):
        assert [(record.key, record.value) for record in broker.records("t", number)] == [
            (key, value)
            for key, value in zip(keys, values(400), strict=True)
            if partition_of_key(key, PARTITIONS) == number
        ]


def test_partition_topic_and_null_as_each_row_says(broker: SinkBroker) -> None:
    chosen = settings(broker, topic=None)
    some = rows(
        [b"a", None, b"c", b"d"],
        [b"k", b"k", None, None],
        [2, 1, None, None],
        ["t", "t", "u", "u"],
    )
    write(chosen, some)
    assert broker.values("t", 2) == [b"a"]
    assert broker.values("t", 1) == [None]
    assert broker.values("u", 0) == [b"c", b"d"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (rows([b"a"], partitions=[3]), "partition 3 of topic t, which has partitions 0 to 2"),
        (rows([b"a"], partitions=[-1]), "partition -1 of topic t"),
        (rows([b"a" * 5_000]), r"a record for topic t takes 50\d\d bytes; kafka\.max\.request\.size is 4000"),
    ],
)
def test_a_row_that_cannot_go_is_a_sentence(broker: SinkBroker, part: ArrowRows, expected: str) -> None:
    with pytest.raises(ProduceError, match=expected):
        write(settings(broker), part)


def test_a_row_without_a_topic_is_a_sentence(broker: SinkBroker) -> None:
    with pytest.raises(ProduceError, match="the column 'topic' is null"):
        write(settings(broker, topic=None), rows([b"a", b"b"], topics=["t", None]))
    with pytest.raises(ProduceError, match="the column 'topic' is null"):
        write(settings(broker, topic=None), rows([b"a"]))


def test_a_topic_is_made_only_by_a_broker_that_makes_topics(broker: SinkBroker) -> None:
    with pytest.raises(ProduceError, match="topic new does not exist, and the brokers do not make it"):
        write(settings(broker, topic="new"), rows([b"a"]))
    broker.creates.add("new")
    write(settings(broker, topic="new", max_block_s=5.0), rows([b"a"]))
    assert log(broker, "new") == [b"a"]


def test_requests_go_ahead_of_answers_once_the_leader_knows_the_producer(broker: SinkBroker) -> None:
    write(settings(broker), all_to(0, 400))
    assert broker.values("t", 0) == values(400)
    assert broker.identities == 1
    assert all(request.acks == -1 for request in broker.produced)


@pytest.mark.parametrize("idempotent", [True, False])
def test_answers_that_are_lost_double_nothing_with_a_producer_id(
    broker: SinkBroker, idempotent: bool
) -> None:
    lost: list[ProduceRequest] = []

    def lose(request: ProduceRequest) -> bool:
        if len(broker.produced) in (3, 9, 10):
            lost.append(request)
            return True
        return False

    broker.lose = lose
    producer = write(settings(broker, idempotent=idempotent), all_to(1, 400))
    assert {tp: found.records for tp, found in producer.written().items()} == {("t", 1): 400}
    found = broker.values("t", 1)
    assert len(lost) == 3
    assert list(dict.fromkeys(found)) == values(400)
    assert (len(found) == 400) == idempotent


def test_a_connection_that_breaks_before_a_request_is_served_reorders_nothing(broker: SinkBroker) -> None:
    seen: list[Message] = []

    def breaks(request: Message) -> bool:
        if not isinstance(request, ProduceRequest):
            return True
        seen.append(request)
        return len(seen) not in (2, 5, 6, 11)

    broker.script = breaks
    write(settings(broker), all_to(2, 500))
    assert broker.values("t", 2) == values(500)


@pytest.mark.parametrize("idempotent", [True, False])
def test_errors_that_pass_keep_the_order(broker: SinkBroker, idempotent: bool) -> None:
    passing = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]
    count = 0

    def refuse(topic: str, partition: int, header: BatchHeader) -> int:
        nonlocal count
        count += 1
        return passing[count % 3] if count in (1, 4, 9, 10, 17, 30) else 0

    broker.refuse = refuse
    write(settings(broker, idempotent=idempotent), all_to(0, 600))
    assert broker.values("t", 0) == values(600)


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(4, whole=12)), indirect=True)
@pytest.mark.parametrize("idempotent", [True, False])
def test_no_mix_of_failures_loses_or_reorders_rows(broker: SinkBroker, seed: int, idempotent: bool) -> None:
    """Any request may be refused, lost before or after it is served, and leaders move between two brokers."""
    chance = random.Random(seed)
    passing = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]
    with SinkBroker(broker.topics, node=1) as other:
        broker.peers = other.peers = [broker, other]
        other.sequences = broker.sequences

        def refuse(topic: str, partition: int, header: BatchHeader) -> int:
            if chance.random() < 0.04:
                broker.topics[topic][partition].leader ^= 1
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            if header.batch_length > 800:
                return ErrorCode.MESSAGE_TOO_LARGE
            return chance.choice(passing) if chance.random() < 0.08 else 0

        for node in (broker, other):
            node.refuse = refuse
            node.lose = lambda request: chance.random() < 0.05
            node.script = lambda request: not isinstance(request, ProduceRequest) or chance.random() > 0.05
        keys = [b"%d" % (number % 30) for number in range(1_200)]
        found = values(1_200)
        parts = [rows(found[at : at + 150], keys[at : at + 150]) for at in range(0, 1_200, 150)]
        producer = write(settings(broker, idempotent=idempotent, delivery_timeout_s=60.0), *parts)
    assert sum(one.records for one in producer.written().values()) == 1_200
    for number in range(PARTITIONS):
        wanted = [v for k, v in zip(keys, found, strict=True) if partition_of_key(k, PARTITIONS) == number]
        there = broker.values("t", number)
        if idempotent:
            assert there == wanted
        else:
            # Doubles come as whole batches again; what is new each time comes in order.
            assert list(dict.fromkeys(there)) == wanted


def test_a_leader_that_moves_is_followed(broker: SinkBroker) -> None:
    with SinkBroker(broker.topics, node=1) as other:
        broker.peers = other.peers = [broker, other]

        def moves(topic: str, partition: int, header: BatchHeader) -> int:
            if header.base_sequence == 0:
                return 0
            broker.topics["t"][0].leader = 1
            other.sequences = broker.sequences
            return ErrorCode.NOT_LEADER_OR_FOLLOWER

        broker.refuse = moves
        write(settings(broker), all_to(0, 300))
        assert other.produced
    assert broker.values("t", 0) == values(300)


def test_a_batch_too_large_for_the_topic_is_halved(broker: SinkBroker) -> None:
    broker.refuse = lambda topic, partition, header: (
        ErrorCode.MESSAGE_TOO_LARGE if header.batch_length > 300 else 0
    )
    write(settings(broker), all_to(0, 100))
    assert broker.values("t", 0) == values(100)
    with pytest.raises(ProduceError, match=r"a record for topic t takes 5\d\d bytes, .*max\.message\.bytes"):
        write(settings(broker), rows([b"x" * 500]))


def test_what_does_not_pass_fails_the_task(broker: SinkBroker) -> None:
    broker.refuse = lambda topic, partition, header: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(ProduceError, match="records cannot be written to t-0: TOPIC_AUTHORIZATION_FAILED"):
        write(settings(broker), all_to(0, 1))
    broker.refuse = lambda topic, partition, header: ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(
        ProduceError, match=r"t-0 were not taken .*delivery\.timeout\.ms\): NOT_ENOUGH_REPLICAS"
    ):
        write(settings(broker, delivery_timeout_s=0.02), all_to(0, 1))
    broker.refuse = lambda topic, partition, header: 0
    broker.topics["t"][0].leader = 9
    with pytest.raises(ProduceError, match="no leader"):
        write(settings(broker, delivery_timeout_s=0.02), all_to(0, 1))


def test_a_broker_that_has_lost_the_sequence_fails_the_task(broker: SinkBroker) -> None:
    broker.refuse = lambda topic, partition, header: (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if header.base_sequence > 30 else 0
    )
    with pytest.raises(ProduceError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        write(settings(broker), all_to(0, 100))


def test_a_failed_task_leaves_no_answer_for_the_next(broker: SinkBroker) -> None:
    broker.refuse = lambda topic, partition, header: (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED if header.base_sequence > 30 else 0
    )
    with pytest.raises(ProduceError):
        write(settings(broker), all_to(0, 200))
    broker.refuse = lambda topic, partition, header: 0
    write(settings(broker), all_to(1, 200))
    assert broker.values("t", 1) == values(200)


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_arrives(broker: SinkBroker, codec: Compression) -> None:
    write(settings(broker, codec=codec, acks=1, idempotent=False), all_to(0, 50))
    assert broker.values("t", 0) == values(50)
    headers = [view.header for data in broker.topics["t"][0].batches for view in iter_batches(data)]
    assert {header.compression for header in headers} == {codec}
    assert broker.produced[0].acks == 1


def test_many_partitions_stay_within_the_buffer(broker: SinkBroker) -> None:
    broker.topics["t"] = {number: Partition() for number in range(40)}
    chosen = settings(broker, buffer_bytes=5_000)
    producer = SinkProducer(chosen)
    for start in range(0, 800, 40):
        producer.write_rows(rows(values(40, start), partitions=list(range(40))))
    assert sum(queue.builder.size_bytes for queue in producer._queues.values()) <= 5_000
    producer.flush()
    producer.close()
    assert sorted(log(broker)) == values(800)


def test_nobody_there_is_a_sentence() -> None:
    chosen = SinkSettings(
        endpoint=Endpoint((("127.0.0.1", 1),)), topic="t", max_block_s=0.0, retry_backoff_s=0.001
    )
    with pytest.raises(ProduceError, match="topic t cannot be looked up: cannot connect"):
        write(chosen, rows([b"a"]))
    close_clusters()
