"""The fetch of Spark's tasks against an Apache Kafka broker, without Spark: all codecs, transactions that end
both ways, records above the limits, gaps, the broker's time, secrets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from ringleader.clients.admin import Admin
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.fetching.fetch import read_slice
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange
from tests.interop.secured import PASSWORD, USER, Secured

Row = dict[str, Any]


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    yield
    fetch.close_clusters()


@pytest.fixture
async def topic(secured: Secured) -> str:
    """A topic of this test's own, with two partitions."""
    return await made(secured, {})


async def made(secured: Secured, configs: dict[str, str]) -> str:
    name = f"spark-{uuid.uuid4().hex[:8]}"
    async with Admin(secured.broker.bootstrap, timeout_ms=30_000) as admin:
        await admin.create_topic(name, 2, configs=configs)
    return name


def endpoint(address: str, **security: str) -> Endpoint:
    host, _, port = address.rpartition(":")
    given = {name.replace("_", "."): value for name, value in security.items()}
    return Endpoint(((host, int(port)),), security=tuple(sorted(given.items())))


def settings(secured: Secured, **more: Any) -> TaskSettings:
    return TaskSettings(endpoint(secured.broker.bootstrap), **{"poll_timeout_ms": 20_000} | more)


def producer(secured: Secured, **more: Any) -> Producer:
    return Producer({"bootstrap.servers": secured.broker.bootstrap, "linger.ms": 50, **more})


def rows(found: TaskSettings, *ranges: tuple[str, int, int, int]) -> list[Row]:
    return [
        row for batch in read_slice(found, [SliceRange(*one) for one in ranges]) for row in batch.to_pylist()
    ]


def end(secured: Secured, topic: str, committed: bool = False) -> int:
    log = KafkaLog(endpoint(secured.broker.bootstrap), committed)
    try:
        return log.ends([(topic, 0)])[topic, 0]
    finally:
        log.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_with_keys_headers_and_nulls(secured: Secured, topic: str, codec: str) -> None:
    values = [None if n % 97 == 0 else b"%d " % n * (n % 300) for n in range(2_000)]
    keys = [None if n % 5 == 0 else b"key-%d" % n for n in range(2_000)]
    writer = producer(secured, **{"compression.type": codec})
    for n, (key, value) in enumerate(zip(keys, values, strict=True)):
        some: list[tuple[str, str | bytes | None]] = [("trace", b"%d" % n), ("none", None)]
        headers = some if n % 3 == 0 else None
        writer.produce(topic, value, key, 0, timestamp=1_700_000_000_000 + 7 * n, headers=headers)
    writer.flush()
    found = rows(settings(secured, include_headers=True), (topic, 0, 10, 1_990))
    assert [row["offset"] for row in found] == list(range(10, 1_990))
    assert [row["value"] for row in found] == values[10:1_990]
    assert [row["key"] for row in found] == keys[10:1_990]
    stamps = [round(row["timestamp"].timestamp() * 1000) for row in found]
    assert stamps == [1_700_000_000_000 + 7 * n for n in range(10, 1_990)]
    assert {row["timestampType"] for row in found} == {0}
    assert found[2]["headers"] == [{"key": "trace", "value": b"12"}, {"key": "none", "value": None}]
    assert found[3]["headers"] is None


async def test_the_brokers_time(secured: Secured) -> None:
    topic = await made(secured, {"message.timestamp.type": "LogAppendTime"})
    writer = producer(secured)
    for n in range(500):
        writer.produce(topic, b"v" * 500, partition=0, timestamp=1_000 + n)
    writer.flush()
    found = rows(settings(secured), (topic, 0, 0, 500))
    assert {row["timestampType"] for row in found} == {1}
    assert min(row["timestamp"].year for row in found) > 2020


def test_a_record_larger_than_all_limits(secured: Secured, topic: str) -> None:
    small = settings(secured, fetch_max_bytes=1_000, partition_max_bytes=1_000)
    writer = producer(secured)
    for size in (10, 700_000, 10, 900_000):
        writer.produce(topic, b"x" * size, partition=0)
        writer.flush()
    assert [len(row["value"]) for row in rows(small, (topic, 0, 0, 4))] == [
        10,
        700_000,
        10,
        900_000,
    ]


def test_aborted_and_open_transactions(secured: Secured, topic: str) -> None:
    """Commit, abort, commit, and one that stays open: the last stable offset is where it begins."""
    writer = producer(secured, **{"transactional.id": topic})
    writer.init_transactions()
    for number, ending in enumerate(
        (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction)
    ):
        writer.begin_transaction()
        for _ in range(100):
            writer.produce(topic, b"%d" % number * 1_000, partition=0)
        writer.flush()
        ending()
    stable = end(secured, topic)
    writer.begin_transaction()
    writer.produce(topic, b"open", partition=0)
    writer.flush()
    assert (stable, end(secured, topic), end(secured, topic, committed=True)) == (303, 304, 303)
    committed = rows(settings(secured, read_committed=True), (topic, 0, 0, stable))
    assert [row["offset"] for row in committed] == [*range(100), *range(202, 302)]
    assert {row["value"][:1] for row in committed} == {b"0", b"2"}
    everything = rows(settings(secured), (topic, 0, 0, stable + 1))
    assert [row["offset"] for row in everything] == [*range(100), *range(101, 201), *range(202, 302), 303]
    writer.abort_transaction()


async def test_offsets_that_are_gone(secured: Secured, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    writer = producer(secured)
    for _ in range(100):
        writer.produce(topic, b"v" * 100, partition=0)
    writer.flush()
    await truncated(secured, topic, 40)
    with pytest.raises(
        DataLossError, match=f"offsets 0 to 40 of {topic}-0 are gone: the log holds 40 to 100"
    ):
        rows(settings(secured), (topic, 0, 0, 100))
    lenient = settings(secured, fail_on_data_loss=False)
    assert [row["offset"] for row in rows(lenient, (topic, 0, 0, 100))] == list(range(40, 100))
    assert rows(lenient, (topic, 0, 200, 300)) == []
    assert "skipped (failOnDataLoss=false)" in caplog.text


async def truncated(secured: Secured, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": secured.broker.bootstrap})
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(20)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"])
@pytest.mark.parametrize("listener", ["SECURE", "SASL", "BRIEF"])
def test_secrets(secured: Secured, topic: str, listener: str, mechanism: str) -> None:
    writer = producer(secured)
    for _ in range(300):
        writer.produce(topic, b"v" * 1_000, partition=0)
    writer.flush()
    protocol = "SASL_SSL" if listener == "SECURE" else "SASL_PLAINTEXT"
    given = {
        "security_protocol": protocol,
        "ssl_ca_location": str(secured.certificates.authority),
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
    }
    right = endpoint(secured.broker.address(listener), **given, sasl_password=PASSWORD)
    assert len(rows(TaskSettings(right, 20_000), (topic, 0, 0, 300))) == 300
    wrong = endpoint(secured.broker.address(listener), **given, sasl_password="no")
    with pytest.raises(SourceError, match=f"refused user '{USER}'"):
        rows(TaskSettings(wrong, 20_000), (topic, 0, 0, 300))


def test_a_clients_certificate(secured: Secured, topic: str) -> None:
    writer = producer(secured)
    writer.produce(topic, b"v", partition=0)
    writer.flush()
    given = {
        "security_protocol": "SSL",
        "ssl_ca_location": str(secured.certificates.authority),
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(secured.certificates.issued("client")),
    }
    found = TaskSettings(endpoint(secured.broker.address("MUTUAL"), **given), 20_000)
    assert [row["value"] for row in rows(found, (topic, 0, 0, 1))] == [b"v"]
