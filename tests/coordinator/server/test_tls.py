"""TLS listeners: accepted clients, their principals, and the limits of clients that do not get in."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import warnings
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.server import handshakes
from ringleader.protocol.messages import ApiVersionsRequest, FindCoordinatorRequest
from tests.support.certificates import Certificates
from tests.support.groupclient import form
from tests.support.served import Client, Served, serving, until

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
LONG_AGO = datetime(2020, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def alice(certificates: Certificates) -> Path:
    return certificates.issued("alice")


def tls(certificates: Certificates, client_auth: str = "none", **more: Any) -> dict[str, Any]:
    """Settings of one TLS listener, and of a plaintext one beside it."""
    return {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl_keystore_location": certificates.server,
        "ssl_truststore_location": certificates.authority,
        "ssl_client_auth": client_auth,
        **more,
    }


@contextlib.asynccontextmanager
async def come(served: Served, context: ssl.SSLContext, **more: Any) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection(served.host, served.port, ssl=context, **more))
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def plain(served: Served) -> AsyncIterator[Client]:
    address = served.server.listeners[1].address
    client = Client(*await asyncio.open_connection(*address))
    try:
        yield client
    finally:
        await client.close()


def principals(served: Served) -> list[str]:
    return [str(connection.session.principal) for connection in served.server.connections]


# ---- who it is ----


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_certificate_names_the_principal(
    certificates: Certificates, alice: Path, version: ssl.TLSVersion
) -> None:
    async with serving(**tls(certificates, "required")) as served:
        context = certificates.client_tls(alice)
        context.minimum_version = context.maximum_version = version
        async with come(served, context) as client:
            member = await form(client, "group")
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            assert (await client.call(member.commit(1), 7)).topics[0].partitions[0].error_code == 0
            found = await client.call(FindCoordinatorRequest(key="group"), 1)
            assert (found.host, found.port) == (served.host, served.port)
            assert principals(served) == ["User:CN=alice,OU=unit,O=org"]
            [connection] = served.server.connections
            assert connection.peer.startswith("127.0.0.1:")
            assert connection.host == "/127.0.0.1"
        await until(lambda: not served.server.connections)


async def test_rules_make_names(certificates: Certificates, alice: Path) -> None:
    rules = "RULE:^CN=(.*?),OU=unit.*$/$1/U"
    settings = tls(certificates, "requested", ssl_principal_mapping_rules=rules)
    async with serving(**settings) as served:
        async with come(served, certificates.client_tls(alice)) as client:
            await client.call(ApiVersionsRequest(), 0)
            assert principals(served) == ["User:ALICE"]
        await until(lambda: not served.server.connections)
        async with come(served, certificates.client_tls()) as client:
            await client.call(ApiVersionsRequest(), 0)
            assert principals(served) == ["User:ANONYMOUS"]


async def test_a_certificate_without_a_rule_is_cut_off(certificates: Certificates, alice: Path) -> None:
    settings = tls(certificates, "required", ssl_principal_mapping_rules="RULE:^CN=bob,.*$/bob/")
    async with serving(**settings) as served:
        async with come(served, certificates.client_tls(alice)) as client:
            client.send(ApiVersionsRequest(), 0)
            assert await client.rest() == b""
        [line] = served.events("connection closed")
        assert line["reason"].endswith("is for CN=alice,OU=unit,O=org")
        await until(lambda: not served.server.connections)


async def test_a_listener_has_settings_of_its_own(certificates: Certificates, alice: Path) -> None:
    settings = tls(certificates, listener_name={"ssl": {"ssl_client_auth": "required"}})
    async with serving(**settings) as served, come(served, certificates.client_tls(alice)) as client:
        await client.call(ApiVersionsRequest(), 0)
        assert principals(served) == ["User:CN=alice,OU=unit,O=org"]


# ---- who does not come in ----


async def refused(served: Served, context: ssl.SSLContext) -> str:
    """The error that a client gets, at the handshake or, with TLS 1.3, behind it."""
    try:
        async with come(served, context) as client:
            client.send(ApiVersionsRequest(), 0)
            assert await client.reader.read() == b""
    except ssl.SSLError as error:
        assert principals(served) == []
        return error.reason or ""
    raise AssertionError("it came in")


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_a_certificate(certificates: Certificates, version: ssl.TLSVersion) -> None:
    async with serving(**tls(certificates, "required")) as served:
        context = certificates.client_tls()
        context.minimum_version = context.maximum_version = version
        assert await refused(served, context) in (
            "SSLV3_ALERT_HANDSHAKE_FAILURE",
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        )
        [line] = served.events("TLS handshake failed")
        assert line["reason"] == "peer did not return a certificate"
        assert line["listener"] == "SSL"


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_with_a_certificate_that_is_not_accepted(
    certificates: Certificates, tmp_path: Path, client_auth: str
) -> None:
    others = Certificates(tmp_path / "others")
    wrong = {
        "TLSV1_ALERT_UNKNOWN_CA": others.issued("alice"),
        "SSLV3_ALERT_CERTIFICATE_EXPIRED": certificates.issued("old", until=LONG_AGO),
    }
    for alert, certificate in wrong.items():
        async with serving(**tls(certificates, client_auth)) as served:
            assert await refused(served, certificates.client_tls(certificate)) == alert
            [line] = served.events("TLS handshake failed")
            assert "the client's certificate is not accepted: " in line["reason"]


async def test_a_client_that_does_not_trust_the_server_is_told_in_the_log(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with serving(**tls(certificates)) as served:
        with pytest.raises(ssl.SSLCertVerificationError):
            async with come(served, Certificates(tmp_path / "others").client_tls()):
                pass
        await until(lambda: bool(served.events("TLS handshake failed")))
        [line] = served.events("TLS handshake failed")
        assert line["reason"].endswith("it may not trust the certificate")  # no loop sends its alert


async def test_the_certificate_is_for_no_other_host(certificates: Certificates) -> None:
    async with serving(**tls(certificates)) as served:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            async with come(served, certificates.client_tls(), server_hostname="elsewhere.example"):
                pass


async def test_a_port_check_fills_no_log(certificates: Certificates) -> None:
    async with serving(**tls(certificates)) as served:
        socket.create_connection((served.host, served.port)).close()
        await until(lambda: served.server.handshakes.failed == 1)
        assert not served.events("TLS handshake failed")


async def test_failures_beside_those_that_are_logged_are_counted_once(certificates: Certificates) -> None:
    async with serving(**tls(certificates)) as served:
        found = served.server.handshakes
        for _ in range(3):
            with begun(served, certificates) as one:
                await until(lambda: len(found) == 1)
                one.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await until(lambda: len(found) == 0)
        for _ in range(2):
            if found._quiet is not None:
                found._quiet.cancel()
                found._report_rest()
        assert [one["count"] for one in served.events("more TLS handshakes failed")] == [2]


async def test_tls_1_1_is_refused(certificates: Certificates) -> None:
    async with serving(**tls(certificates)) as served:
        context = certificates.client_tls()
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        assert await refused(served, context) == "TLSV1_ALERT_PROTOCOL_VERSION"


async def test_only_versions_and_ciphers_that_were_chosen(certificates: Certificates) -> None:
    chosen = {
        "ssl_enabled_protocols": "TLSv1.2",
        "ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    }
    async with serving(**tls(certificates, **chosen)) as served:
        async with come(served, certificates.client_tls()) as client:
            found = client.writer.get_extra_info("ssl_object")
            assert found.version() == "TLSv1.2"
            assert found.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
        await until(lambda: not served.server.connections)
        context = certificates.client_tls()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        assert await refused(served, context) == "TLSV1_ALERT_PROTOCOL_VERSION"


async def test_nobody_comes_back_without_its_certificate(certificates: Certificates, alice: Path) -> None:
    """Nor asks for the handshake again in the middle of a connection."""
    async with serving(**tls(certificates, "required")) as served:
        for version in VERSIONS:
            context = certificates.client_tls(alice)
            context.minimum_version = context.maximum_version = version
            async with come(served, context) as client:
                await client.call(ApiVersionsRequest(), 0)
                session = client.writer.get_extra_info("ssl_object").session
                assert session is None or not session.has_ticket
        assert served.server.tls["SSL"].context.options & ssl.OP_NO_RENEGOTIATION


async def test_plaintext_at_a_tls_port_and_the_reverse(certificates: Certificates) -> None:
    async with serving(**tls(certificates)) as served:
        async with served.connect() as client:
            client.send(ApiVersionsRequest(), 0)
            await client.rest()
        [line] = served.events("TLS handshake failed")
        assert line["reason"] == "plaintext on a TLS port"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(*served.server.listeners[1].address, ssl=certificates.client_tls())
        [line] = served.events("connection closed")
        assert "a TLS hello on a plaintext port" in line["reason"]


# ---- many, and slow ones ----


def knock(served: Served, count: int, message: bytes = b"\x16") -> list[socket.socket]:
    """Peers that begin a handshake, and no more."""
    found = []
    for _ in range(count):
        one = socket.create_connection((served.host, served.port))
        one.sendall(message)
        found.append(one)
    return found


async def hung_up(knocked: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    for one in knocked:
        one.setblocking(False)
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(20):
                while await loop.sock_recv(one, 1_024):
                    pass
        one.close()


async def test_a_client_that_sends_one_byte_is_cut_off(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "LOG_INTERVAL_S", 600)
    async with serving(**tls(certificates, tls_handshake_timeout_ms=100)) as served:
        await hung_up(knock(served, 1))
        [line] = served.events("TLS handshake failed")
        assert line["reason"] == "no ClientHello in time (tls.handshake.timeout.ms)"
        await until(lambda: not len(served.server.handshakes))
        await hung_up(knock(served, 20))
        assert len(served.events("TLS handshake failed")) == 1, "seldom enough that nobody fills the log"
        assert served.server.handshakes.failed == 21


async def test_a_handshake_counts_as_a_connection(certificates: Certificates) -> None:
    """And it is the first to go."""
    for limit in ("max_connections", "max_connections_per_ip"):
        settings: dict[str, Any] = {limit: 3, "tls_handshake_timeout_ms": 60_000}
        async with serving(**tls(certificates, **settings)) as served:
            knocked = knock(served, 3)
            await until(lambda: len(served.server.handshakes) == 3)
            knocked += knock(served, 1)
            await hung_up(knocked[:1])
            [line] = served.events("a peer that has not authenticated was closed")
            assert limit.replace("_", ".") in line["reason"]
            assert len(served.server.handshakes) == 3
            for one in knocked[1:]:
                one.close()
            await until(lambda: not len(served.server.handshakes))
        async with (
            serving(**tls(certificates, **settings)) as served,
            contextlib.AsyncExitStack() as stack,
        ):
            for _ in range(3):
                client = await stack.enter_async_context(come(served, certificates.client_tls()))
                await client.call(ApiVersionsRequest(), 0)
            await hung_up(knock(served, 1))
            [line] = served.events("TLS handshake failed")
            assert limit.replace("_", ".") in line["reason"]


def begun(served: Served, certificates: Certificates) -> socket.socket:
    """A peer that sends its whole ClientHello, and no more."""
    sent = ssl.MemoryBIO()
    context = certificates.client_tls()
    peer = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        peer.do_handshake()
    return knock(served, 1, sent.read())[0]


async def test_a_turn_that_is_over_ends_once(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "TURN_S", 0.01)
    async with serving(**tls(certificates, tls_handshake_timeout_ms=60_000)) as served:
        found = served.server.handshakes
        ended: list[int] = []
        real = found._over

        def over(arrival: Any) -> None:
            real(arrival)
            ended.append(found._busy)

        monkeypatch.setattr(found, "_over", over)
        peer = begun(served, certificates)
        await until(lambda: len(ended) == 1)
        peer.close()
        await until(lambda: len(ended) == 2)
        assert ended == [0, 0]
        await until(lambda: not found._becoming)


async def test_a_peer_that_gave_way_while_it_waited_has_no_turn(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "TURN_S", 600)
    settings: dict[str, Any] = {"tls_max_handshakes": 1, "tls_handshake_timeout_ms": 60_000}
    async with serving(**tls(certificates, **settings)) as served:
        found = served.server.handshakes
        peers = []
        for _ in range(3):
            peers.append(begun(served, certificates))
            await until(lambda: found._busy + sum(map(len, found._waiting.values())) == len(peers))
        [(waiting, _), _] = found._waiting["127.0.0.1"]
        waiting.give_way()
        await until(lambda: len(found) == 2)
        peers[0].close()
        await until(lambda: len(found) == 1 and found._busy == 1)
        assert not found._waiting, "the last one has its turn"
        for one in peers:
            one.close()


async def test_a_stop_ends_handshakes(certificates: Certificates) -> None:
    async with serving(**tls(certificates, tls_max_handshakes=1, tls_handshake_timeout_ms=60_000)) as served:
        knocked = knock(served, 3)
        await until(lambda: len(served.server.handshakes) == 3)
    await hung_up(knocked)


# ---- other certificates ----


async def test_certificates_are_exchanged_and_nobody_is_cut_off(
    certificates: Certificates, alice: Path, tmp_path: Path
) -> None:
    others = Certificates(tmp_path / "others")
    shown, trusted = tmp_path / "shown.pem", tmp_path / "trusted.pem"
    shutil.copy(certificates.server, shown)
    shutil.copy(certificates.authority, trusted)
    settings = tls(certificates, "required", ssl_keystore_location=shown, ssl_truststore_location=trusted)
    async with serving(**settings) as served, come(served, certificates.client_tls(alice)) as old:
        member = await form(old, "group")

        shown.write_bytes(b"half of a fi")
        served.server.reload_certificates()
        served.server.reload_certificates()
        [line] = served.events("certificates cannot be read; those from before stay")
        assert "is not PEM" in line["reason"]
        async with come(served, certificates.client_tls(alice)) as client:
            await client.call(ApiVersionsRequest(), 0)

        shutil.copy(others.server, shown)
        shutil.copy(others.authority, trusted)
        served.server.reload_certificates()
        served.server.reload_certificates()
        assert len(served.events("certificates read again")) == 1
        async with come(served, others.client_tls(others.issued("bob"))) as client:
            await client.call(ApiVersionsRequest(), 0)
            assert (await old.call(member.heartbeat(), 3)).error_code == 0
            assert sorted(principals(served)) == [
                "User:CN=alice,OU=unit,O=org",
                "User:CN=bob,OU=unit,O=org",
            ]
        context = others.client_tls(alice)  # whose authority nobody trusts any more
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            async with come(served, context) as client:
                await client.reader.read()
        assert (await old.call(member.heartbeat(), 3)).error_code == 0
        served.server.reload_certificates(unchanged=True)
        assert len(served.events("certificates read again")) == 2
