"""A daemon that asks for certificates: clients of four libraries, and certificates that change meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from ringleader import (
    Admin,
    AuthenticationError,
    GroupConsumer,
    Producer,
    SaslPlain,
    SaslScram,
    SyncProducer,
    TlsError,
)
from ringleader.cli import run
from tests.support.certificates import HOSTS, Certificates
from tests.support.daemon import Daemon
from tests.support.registered import ALICE, PASSWORD

VALUES = [b"one", b"two", b"three"]
PATIENCE_S = 30


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def alice(certificates: Certificates) -> Path:
    return certificates.issued("alice")


@pytest.fixture(scope="module")
def shown(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate file that the daemon shows, until a test replaces it."""
    return Path(shutil.copy(certificates.server, tmp_path_factory.mktemp("shown") / "server.pem"))


@pytest.fixture(scope="module")
def daemon(
    certificates: Certificates, shown: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    options = [
        *("--ssl-keystore-location", str(shown)),
        *("--ssl-truststore-location", str(certificates.authority)),
        *("--ssl-client-auth", "required"),
        *("--group-initial-rebalance-delay-ms", "0"),
    ]
    topics = ["ours:1", "kafka-python:1", "aiokafka:1", "librdkafka:1", "exchanged:1", "written:1"]
    directory = tmp_path_factory.mktemp("daemon")
    with Daemon(directory, topics=topics, options=options, listener="SSL") as running:
        yield running


def produce(daemon: Daemon, certificates: Certificates, alice: Path, topic: str) -> None:
    """By librdkafka."""
    producer = confluent_kafka.Producer(_librdkafka(daemon, certificates, alice))
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def _librdkafka(daemon: Daemon, certificates: Certificates, alice: Path) -> dict[str, Any]:
    return {
        "bootstrap.servers": daemon.bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(certificates.authority),
        "ssl.certificate.location": str(alice),
        "ssl.key.location": str(alice),
    }


async def _ours(daemon: Daemon, certificates: Certificates, alice: Path, topic: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    tls = certificates.client_tls(alice)
    async with GroupConsumer(
        daemon.bootstrap, topic, [topic], auto_offset_reset="earliest", tls=tls
    ) as consumer:
        async for batch in consumer:
            found += batch.values
            if len(found) >= len(VALUES):
                break
    return found


async def _aiokafka(
    daemon: Daemon, certificates: Certificates, alice: Path, topic: str
) -> list[bytes | None]:
    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=daemon.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        security_protocol="SSL",
        ssl_context=certificates.client_tls(alice),
    )
    await consumer.start()
    try:
        return [(await consumer.getone()).value for _ in VALUES]
    finally:
        await consumer.stop()


def _kafka_python(daemon: Daemon, certificates: Certificates, alice: Path, topic: str) -> list[bytes | None]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=daemon.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        security_protocol="SSL",
        ssl_context=certificates.client_tls(alice),
    )
    try:
        return [next(consumer).value for _ in VALUES]
    finally:
        consumer.close()


def _confluent(daemon: Daemon, certificates: Certificates, alice: Path, topic: str) -> list[bytes | None]:
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(_librdkafka(daemon, certificates, alice) | group)
    consumer.subscribe([topic])
    try:
        found: list[bytes | None] = []
        while len(found) < len(VALUES):
            for message in consumer.consume(len(VALUES), PATIENCE_S):
                assert message.error() is None
                found.append(message.value())
        return found
    finally:
        consumer.close()


READERS: dict[str, Callable[..., Any]] = {
    "ours": _ours,
    "aiokafka": _aiokafka,
    "kafka-python": _kafka_python,
    "librdkafka": _confluent,
}


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
@pytest.mark.parametrize("library", READERS)
async def test_clients_of_every_library(
    daemon: Daemon, certificates: Certificates, alice: Path, library: str
) -> None:
    await asyncio.to_thread(produce, daemon, certificates, alice, library)
    read = READERS[library](daemon, certificates, alice, library)
    assert (await read if asyncio.iscoroutine(read) else read) == VALUES


def _write(daemon: Daemon, tls: ssl.SSLContext, topic: str) -> None:
    """By our blocking producer."""
    with SyncProducer(daemon.bootstrap, tls=tls) as producer:
        for value in VALUES:
            producer.send_and_wait(topic, value)


async def test_our_producers_write(daemon: Daemon, certificates: Certificates, alice: Path) -> None:
    tls = certificates.client_tls(alice)
    async with Producer(daemon.bootstrap, tls=tls) as producer:
        first = await producer.send_and_wait("written", VALUES[0])
    await asyncio.to_thread(_write, daemon, tls, "written")
    assert first.offset == 0
    assert await _ours(daemon, certificates, alice, "written") == [VALUES[0], *VALUES]
    with pytest.raises(TlsError, match="asks for a client certificate"):
        async with Producer(daemon.bootstrap, tls=certificates.client_tls()) as stranger:
            await stranger.send("written", b"")


async def test_a_client_without_a_certificate_is_refused(daemon: Daemon, certificates: Certificates) -> None:
    admin = Admin(daemon.bootstrap, tls=certificates.client_tls(), timeout_ms=10_000)
    with pytest.raises(TlsError, match="asks for a client certificate"):
        async with admin:
            await admin.list_topics()


def _serial(daemon: Daemon, certificates: Certificates, alice: Path) -> str:
    """Of the certificate that a new connection is shown."""
    context = certificates.client_tls(alice)
    with (
        socket.create_connection(("127.0.0.1", daemon.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        shown = wrapped.getpeercert()
    assert shown is not None
    return str(shown["serialNumber"])


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
@pytest.mark.parametrize("signalled", [True, False], ids=["by SIGHUP", "by themselves"])
async def test_certificates_are_exchanged_under_a_running_consumer(
    daemon: Daemon, certificates: Certificates, alice: Path, shown: Path, signalled: bool
) -> None:
    tls = certificates.client_tls(alice)
    group = f"exchanged-{signalled}"
    async with (
        Producer(daemon.bootstrap, tls=tls) as producer,
        GroupConsumer(
            daemon.bootstrap, group, ["exchanged"], auto_offset_reset="earliest", tls=tls
        ) as consumer,
    ):
        await producer.send_and_wait("exchanged", b"before")
        await _read(consumer, 1)
        await asyncio.to_thread(produce, daemon, certificates, alice, "exchanged")
        await _read(consumer, len(VALUES))
        rebalances = consumer.metrics().member.rebalances
        before = await asyncio.to_thread(_serial, daemon, certificates, alice)
        shutil.copy(certificates.issued("server", *HOSTS), shown)
        if signalled:
            daemon.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.to_thread(_serial, daemon, certificates, alice) == before:
                pass
        await asyncio.to_thread(produce, daemon, certificates, alice, "exchanged")
        await _read(consumer, len(VALUES))
        await producer.send_and_wait("exchanged", b"after")
        await _read(consumer, 1)
        assert consumer.metrics().member.rebalances == rebalances


async def _read(consumer: GroupConsumer, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async for batch in consumer:
            count -= len(batch)
            if count <= 0:
                return


def test_sighup_ends_no_daemon(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        daemon.process.send_signal(signal.SIGHUP)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.stop()


async def test_sasl_within_tls(certificates: Certificates, tmp_path: Path) -> None:
    """Nobody is asked for a certificate there, whatever holds for SSL; PLAIN is offered, as nobody overhears
    it."""
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    add = ["users", "add", ALICE, "--password-file", str(password), "--data-dir", str(tmp_path / "data")]
    assert await asyncio.to_thread(run, add) == 0
    options = [
        *("--ssl-keystore-location", str(certificates.server)),
        *("--ssl-client-auth", "required"),
        *("--sasl-enabled-mechanisms", "PLAIN,SCRAM-SHA-512"),
    ]
    with Daemon(tmp_path, topics=["orders:1"], options=options, listener="SASL_SSL") as daemon:
        for sasl in (SaslPlain(ALICE, PASSWORD), SaslScram(ALICE, PASSWORD)):
            async with Admin(daemon.bootstrap, tls=certificates.client_tls(), sasl=sasl) as admin:
                assert "orders" in {topic.name for topic in await admin.list_topics()}
            async with Producer(daemon.bootstrap, tls=certificates.client_tls(), sasl=sasl) as producer:
                await producer.send_and_wait("orders", b"")
        with pytest.raises(AuthenticationError):
            async with Admin(
                daemon.bootstrap, tls=certificates.client_tls(), sasl=SaslPlain(ALICE, "wrong")
            ) as admin:
                await admin.list_topics()
        assert PASSWORD not in daemon.log()
