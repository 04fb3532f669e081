"""Real clients say who they are to a daemon: four libraries by each mechanism, and sessions that end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import confluent_kafka.admin
import kafka
import kafka.net.sasl.oauth
import pytest

from ringleader import Producer, SyncProducer
from ringleader.cli import run
from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import Sasl, SaslOAuthBearer, SaslPlain, SaslScram
from ringleader.clients.errors import AuthenticationError
from ringleader.coordinator.config import Settings, SettingsError, load_settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.coordinator.serving import StartError
from tests.support.certificates import Certificates
from tests.support.daemon import Daemon
from tests.support.registered import ALICE, PASSWORD, credential
from tests.support.served import until
from tests.support.tokens import TokenService

WAIT_S = 30
KINDS: dict[str, Sasl] = {
    "PLAIN": SaslPlain(ALICE, PASSWORD),
    "SCRAM-SHA-256": SaslScram(ALICE, PASSWORD, "SHA-256"),
    "SCRAM-SHA-512": SaslScram(ALICE, PASSWORD),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("daemon")
    password = directory / "password"
    password.write_text(PASSWORD)
    add = ["users", "add", ALICE, "--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]
    assert run([*add, "--password-file", str(password), "--data-dir", str(directory / "data")]) == 0
    options = [
        "--sasl-enabled-mechanisms",
        "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "--sasl-cleartext-without-tls",
    ]
    with Daemon(directory, topics=["orders:1"], options=options, listener="SASL_PLAINTEXT") as started:
        yield started
    assert PASSWORD not in started.log()


async def by_ours(bootstrap: str, mechanism: str, password: str) -> Any:
    kind = KINDS[mechanism]
    assert not isinstance(kind, SaslScram) or kind.mechanism == mechanism
    sasl: Sasl = (
        SaslPlain(ALICE, password)
        if isinstance(kind, SaslPlain)
        else SaslScram(ALICE, password, mechanism.removeprefix("SCRAM-"))
    )
    async with Admin(bootstrap, sasl=sasl) as admin:
        return {one.name for one in await admin.list_topics()}


async def by_aiokafka(bootstrap: str, mechanism: str, password: str) -> Any:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=ALICE,
        sasl_plain_password=password,
    )
    try:
        await consumer.start()
        return await consumer.topics()
    finally:
        await consumer.stop()


async def by_kafka_python(bootstrap: str, mechanism: str, password: str) -> Any:
    def ask() -> Any:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=ALICE,
            sasl_plain_password=password,
        )
        try:
            return consumer.topics()
        finally:
            consumer.close()

    return await asyncio.to_thread(ask)


async def by_confluent(bootstrap: str, mechanism: str, password: str) -> Any:
    admin = confluent_kafka.admin.AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": ALICE,
            "sasl.password": password,
        }
    )
    found = await asyncio.to_thread(admin.list_topics, timeout=WAIT_S)
    return set(found.topics)


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
@pytest.mark.parametrize("mechanism", KINDS)
@pytest.mark.parametrize("ask", [by_ours, by_aiokafka, by_kafka_python, by_confluent])
async def test_a_library_is_let_in(daemon: Daemon, ask: Any, mechanism: str) -> None:
    async with asyncio.timeout(WAIT_S):
        assert "orders" in await ask(daemon.bootstrap, mechanism, PASSWORD)


@pytest.mark.parametrize("made", [Producer, SyncProducer])
@pytest.mark.parametrize("mechanism", KINDS)
async def test_a_producer_is_let_in(daemon: Daemon, mechanism: str, made: Any) -> None:
    def write(sasl: Sasl) -> Any:
        with SyncProducer(daemon.bootstrap, sasl=sasl) as producer:
            return producer.send_and_wait("orders", b"")

    async def send(sasl: Sasl) -> Any:
        if made is SyncProducer:
            return await asyncio.to_thread(write, sasl)
        async with Producer(daemon.bootstrap, sasl=sasl) as producer:
            return await producer.send_and_wait("orders", b"")

    async with asyncio.timeout(WAIT_S):
        assert (await send(KINDS[mechanism])).topic == "orders"
        with pytest.raises(AuthenticationError, match="refused user 'alice'"):
            await send(replace(KINDS[mechanism], password="wrong"))  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", KINDS)
async def test_a_wrong_password_is_said(daemon: Daemon, mechanism: str) -> None:
    with pytest.raises(AuthenticationError, match="refused user 'alice'"):
        await by_ours(daemon.bootstrap, mechanism, "wrong")
    with pytest.raises(aiokafka.errors.KafkaError):
        await by_aiokafka(daemon.bootstrap, mechanism, "wrong")


async def test_confluent_makes_and_removes_users(daemon: Daemon) -> None:
    made: Any = confluent_kafka.admin
    settings = {
        "bootstrap.servers": daemon.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": ALICE,
        "sasl.password": PASSWORD,
    }
    admin = made.AdminClient(settings)
    kind = made.ScramCredentialInfo(made.ScramMechanism.SCRAM_SHA_256, 5_000)
    alteration = made.UserScramCredentialUpsertion("bob", kind, PASSWORD.encode())
    [done] = admin.alter_user_scram_credentials([alteration]).values()
    await asyncio.to_thread(done.result, WAIT_S)
    [described] = admin.describe_user_scram_credentials(["bob"]).values()
    found = await asyncio.to_thread(described.result, WAIT_S)
    kept = [(one.mechanism, one.iterations) for one in found.scram_credential_infos]
    assert kept == [(kind.mechanism, 5_000)]
    async with Admin(daemon.bootstrap, sasl=SaslScram("bob", PASSWORD, "SHA-256")) as bob:
        assert set(await bob.scram_users()) == {ALICE, "bob"}
    [removal] = admin.alter_user_scram_credentials(
        [made.UserScramCredentialDeletion("bob", kind.mechanism)]
    ).values()
    await asyncio.to_thread(removal.result, WAIT_S)
    async with Admin(daemon.bootstrap, sasl=SaslScram(ALICE, PASSWORD)) as alice:
        assert set(await alice.scram_users()) == {ALICE}


async def test_over_tls_passwords_may_come_as_they_are(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    settings = Settings(
        listeners="SASL_SSL://127.0.0.1:0",
        data_dir=tmp_path / "data",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
        ssl_keystore_location=str(certificates.server),
        connections_max_reauth_ms=3_600_000,
    )
    async with Node(settings) as node:
        await node.security.users.change({ALICE: {one.name: credential(one) for one in MECHANISMS.values()}})
        tls = certificates.client_tls()
        for sasl in (KINDS["PLAIN"], KINDS["SCRAM-SHA-512"]):
            async with Admin(node.bootstrap, tls=tls, sasl=sasl) as admin:
                assert [one.name for one in await admin.list_topics()] == []
                assert {str(one.session.principal) for one in node.server.connections} == {"User:alice"}
        with pytest.raises(AuthenticationError, match="Invalid username or password"):
            async with Admin(node.bootstrap, tls=tls, sasl=SaslPlain(ALICE, "wrong")) as admin:
                await admin.list_topics()


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
async def test_a_client_stays_logged_in(tmp_path: Path) -> None:
    settings = Settings(
        listeners="SASL_PLAINTEXT://127.0.0.1:0", data_dir=tmp_path, connections_max_reauth_ms=1_200
    )
    async with Node(settings) as node:
        await node.security.users.change({ALICE: {one.name: credential(one) for one in MECHANISMS.values()}})
        sasl = node.server.sasl
        assert sasl is not None
        async with Admin(node.bootstrap, sasl=SaslScram(ALICE, PASSWORD)) as admin:
            await admin.list_topics()
            before = set(node.server.connections)
            first = sasl.succeeded
            await until(lambda: sasl.succeeded >= first + len(before))
            await admin.list_topics()
            assert node.server.connections & before
            assert sasl.failed == 0


SESSION_MS = 1_000


def polls(bootstrap: str, assigned: list[Any], stop: threading.Event) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": ALICE,
            "sasl.password": PASSWORD,
            "group.id": "g",
            "heartbeat.interval.ms": 200,
        }
    )
    consumer.subscribe(["orders"], on_assign=lambda _, share: assigned.append(share))
    while not stop.is_set():
        consumer.poll(0.05)
    consumer.close()


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
async def test_a_member_keeps_its_share_when_sessions_end(tmp_path: Path) -> None:
    """librdkafka authenticates again on its connections, or comes again when it is hung up on."""
    settings = Settings(
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        data_dir=tmp_path,
        topic="orders:1",
        group_initial_rebalance_delay_ms=0,
        connections_max_reauth_ms=SESSION_MS,
    )
    async with Node(settings) as node:
        await node.security.users.change({ALICE: {one.name: credential(one) for one in MECHANISMS.values()}})
        sasl = node.server.sasl
        assert sasl is not None
        assigned: list[Any] = []
        stop = threading.Event()
        polling = asyncio.create_task(asyncio.to_thread(polls, node.bootstrap, assigned, stop))
        try:
            await until(lambda: len(assigned) == 1)
            first = sasl.succeeded
            await until(lambda: sasl.succeeded >= first + 4)
        finally:
            stop.set()
            await polling
        assert len(assigned) == 1
        assert sasl.failed == 0


@pytest.fixture
async def trusting(tmp_path: Path) -> AsyncIterator[tuple[Node, TokenService]]:
    """A node that believes the tokens of a service."""
    service = TokenService()
    (tmp_path / "keys.json").write_bytes(service.jwks())
    settings = Settings(
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        data_dir=tmp_path / "data",
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_cleartext_without_tls=True,
        sasl_oauthbearer_jwks_endpoint_url=(tmp_path / "keys.json").as_uri(),
        sasl_oauthbearer_expected_issuer="us",
    )
    async with Node(settings) as node:
        yield node, service


async def test_a_token_lets_its_bearer_in_until_it_expires(trusting: tuple[Node, TokenService]) -> None:
    node, service = trusting
    given: list[str] = []

    def token() -> str:
        given.append(service.token(iss="us", exp=time.time() + 2))
        return given[-1]

    async with Admin(node.bootstrap, sasl=SaslOAuthBearer(token)) as admin:
        await admin.list_topics()
        assert {str(one.session.principal) for one in node.server.connections} == {"User:alice"}
        before = set(node.server.connections)
        sasl = node.server.sasl
        assert sasl is not None
        await until(lambda: sasl.succeeded >= 2 * len(before))
        await admin.list_topics()
        assert before & node.server.connections
        assert len(given) >= 2


async def test_a_token_that_is_no_good_is_refused(trusting: tuple[Node, TokenService]) -> None:
    node, service = trusting
    for token in (service.token(iss="them"), service.token(iss="us", exp=1), TokenService().token(iss="us")):
        with pytest.raises(AuthenticationError, match="invalid_token"):
            async with Admin(node.bootstrap, sasl=SaslOAuthBearer(partial(str, token))) as admin:
                await admin.list_topics()


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
async def test_aiokafka_and_confluent_bear_tokens(trusting: tuple[Node, TokenService]) -> None:
    node, service = trusting

    class Provider(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return service.token(iss="us")

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=node.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    )
    async with asyncio.timeout(WAIT_S):
        await consumer.start()
        await consumer.topics()
        await consumer.stop()
    expires_s = time.time() + 3_600
    settings: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (service.token(iss="us", exp=expires_s), expires_s),
    }
    admin = confluent_kafka.admin.AdminClient(settings)
    await asyncio.to_thread(admin.poll, 0)
    await asyncio.to_thread(admin.list_topics, timeout=WAIT_S)


@pytest.mark.second_try("aiokafka, kafka-python, librdkafka: timeouts that run by the clock")
async def test_kafka_python_bears_tokens(trusting: tuple[Node, TokenService]) -> None:
    node, service = trusting

    class Provider(kafka.net.sasl.oauth.AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return service.token(iss="us")

    def ask() -> Any:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=node.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        try:
            return consumer.topics()
        finally:
            consumer.close()

    assert isinstance(await asyncio.to_thread(ask), set)
    assert node.server.sasl is not None
    assert node.server.sasl.succeeded >= 1
    assert node.server.sasl.failed == 0


@pytest.mark.parametrize("url", ["file:///nowhere/keys.json", "http://keys.example/", None])
async def test_without_keys_nothing_starts(tmp_path: Path, url: str | None) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "data_dir": str(tmp_path),
        "sasl_enabled_mechanisms": "OAUTHBEARER",
        "sasl_cleartext_without_tls": True,
        "sasl_oauthbearer_jwks_endpoint_url": url,
    }
    if url is None:
        with pytest.raises(SettingsError, match=r"needs sasl\.oauthbearer\.jwks\.endpoint\.url"):
            load_settings(settings)
        return
    with pytest.raises(StartError, match=r"^sasl\.oauthbearer\.jwks\.endpoint\.url"):
        await Node(load_settings(settings)).start()
