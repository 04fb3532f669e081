"""Connections with TLS and SASL: the order of things, sessions that end, and what goes wrong in words."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from typing import Any

import pytest

from ringleader.clients.connection.authentication import printable
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.connection import open_connection
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import Sasl, SaslOAuthBearer, SaslPlain, SaslScram
from ringleader.clients.connection.tls import tls_error
from ringleader.clients.errors import (
    AuthenticationError,
    ConnectionLostError,
    MembershipError,
    RetriableError,
    TlsError,
    UnsupportedVersionError,
)
from ringleader.protocol.messages import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from tests.support.certificates import Certificates
from tests.support.sasl_server import (
    BEAT,
    KINDS,
    SASL_VERSIONS,
    connected,
    guarded,
    server,
)
from tests.support.scripted_broker import CLOSE, ScriptedBroker
from tests.support.sharding import member


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


# ---- SASL ----


@pytest.mark.parametrize("sasl", KINDS, ids=lambda sasl: str(sasl.mechanism))
async def test_the_order_of_things(sasl: Sasl) -> None:
    async with guarded(server()) as broker:
        connection = await connected(broker, sasl=sasl)
        await connection.ask(BEAT, 5)
        rounds = 2 if isinstance(sasl, SaslScram) else 1
        assert broker.names() == ["SaslHandshake", *["SaslAuthenticate"] * rounds, "Heartbeat"]
        versions = {type(request).__name__: version for request, version in broker.requests}
        assert (versions["SaslHandshakeRequest"], versions["SaslAuthenticateRequest"]) == (1, 2)
        connection.close()


@pytest.mark.parametrize("version", [0, 1])
async def test_older_versions_of_sasl_authenticate(version: int) -> None:
    async with ScriptedBroker(server().handlers, SASL_VERSIONS | {36: (0, version)}) as broker:
        connection = await connected(broker, sasl=KINDS[2])
        assert broker.requests[-1][1] == version
        connection.close()


@pytest.mark.parametrize("versions", [{17: (0, 0)}, {}], ids=["handshake v0", "no handshake"])
async def test_brokers_that_are_too_old(versions: dict[int, tuple[int, int]]) -> None:
    served = {key: one for key, one in SASL_VERSIONS.items() if key != 17} | versions
    async with ScriptedBroker(server().handlers, served) as broker:
        with pytest.raises(UnsupportedVersionError, match=r"Apache Kafka 1.0|does not serve Sasl"):
            await connected(broker, sasl=KINDS[0])
        assert "SaslAuthenticate" not in broker.names()


async def test_a_broker_that_tells_strangers_little_is_asked_again() -> None:
    sasl = server()

    def versions(*_call: Any) -> Any:
        keys = SASL_VERSIONS if sasl.logins else {key: SASL_VERSIONS[key] for key in (17, 18, 36)}
        listed = [ApiVersionsResponseApiVersion(key, *bounds) for key, bounds in keys.items()]
        return ApiVersionsResponse(api_keys=listed)

    async with guarded(sasl) as broker:
        broker.handlers[18] = versions
        connection = await connected(broker, sasl=KINDS[0])
        await connection.ask(BEAT, 5)
        connection.close()


@pytest.mark.parametrize(
    ("sasl", "user"),
    [
        (SaslPlain("ann", "wr0ng"), r"user 'ann' \(PLAIN\)"),
        (SaslScram("ann", "wr0ng"), r"user 'ann' \(SCRAM-SHA-512\)"),
        (SaslScram("bob", "wr0ng", "SHA-256"), r"user 'bob' \(SCRAM-SHA-256\)"),
        (SaslOAuthBearer(lambda: "wr0ng"), r"the token \(OAUTHBEARER\)"),
    ],
)
async def test_a_wrong_password(sasl: Sasl, user: str, caplog: pytest.LogCaptureFixture) -> None:
    """The broker's own words are repeated, fit for one line."""
    caplog.set_level(logging.DEBUG)
    async with guarded(server()) as broker:
        with pytest.raises(
            AuthenticationError, match=rf"refused {user}: who is \[31m that\?: check"
        ) as raised:
            await connected(broker, sasl=sasl)
        assert raised.value.code == 58
        assert not isinstance(raised.value, RetriableError)
    assert "wr0ng" not in caplog.text + str(raised.value)


async def test_mechanisms_that_there_are_not() -> None:
    sasl = server()
    sasl.mechanisms = ["GSSAPI", *(f"X-{n}" for n in range(50))]
    async with guarded(sasl) as broker:
        with pytest.raises(AuthenticationError, match=r"PLAIN; it takes GSSAPI, X-0") as raised:
            await connected(broker, sasl=KINDS[0])
        assert "X-20" not in str(raised.value)


async def test_a_port_that_asks_nobody() -> None:
    handlers = {17: lambda *_: SaslHandshakeResponse(error_code=34)}
    async with ScriptedBroker(handlers, SASL_VERSIONS) as broker:
        with pytest.raises(AuthenticationError, match="does not ask for SASL"):
            await connected(broker, sasl=KINDS[0])


async def test_a_server_that_cannot_prove_itself() -> None:
    sasl = server()
    sasl.forged = True
    async with guarded(sasl) as broker:
        with pytest.raises(AuthenticationError, match=r"127.0.0.1:\d+, SCRAM-SHA-512: .*not the one it says"):
            await connected(broker, sasl=KINDS[2])


async def test_a_server_that_never_comes_to_an_end() -> None:
    sasl = server()
    async with guarded(sasl) as broker:
        broker.handlers[36] = lambda *_: SaslAuthenticateResponse(auth_bytes=b"r=x,s=eA==,i=1")
        with pytest.raises(AuthenticationError, match="'1' SCRAM iterations"):
            await connected(broker, sasl=KINDS[1])
        with pytest.raises(AuthenticationError, match="was refused"):
            await connected(broker, sasl=KINDS[3])


async def test_a_port_that_asks_for_sasl() -> None:
    async with guarded(server()) as broker, Cluster(broker.address) as cluster:
        with pytest.raises(AuthenticationError, match=r"asks for SASL: give sasl=.*PLAIN, SCRAM-SHA-256"):
            await cluster.metadata([])


async def test_a_broker_that_hangs_up_for_another_reason() -> None:
    handlers = {12: lambda *_: CLOSE, 17: lambda *_: SaslHandshakeResponse(error_code=34)}
    async with ScriptedBroker(handlers, SASL_VERSIONS) as broker:
        connection = await connected(broker)
        with pytest.raises(ConnectionLostError, match="closed by"):
            await connection.ask(BEAT, 5)


async def test_answers_are_short_before_anybody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.clients.connection.wire.MAX_GREETING_BYTES", 500)
    sasl = server()
    async with guarded(sasl) as broker:
        connection = await connected(broker, sasl=KINDS[2])
        broker.handlers[3] = lambda *_: MetadataResponse(cluster_id="x" * 1_000)
        await connection.ask(plain(MetadataRequest()), 5)
        sasl.mechanisms = ["X" * 1_000]
        with pytest.raises(ConnectionLostError, match="announced an answer"):
            await connected(broker, sasl=KINDS[2])
        connection.close()


# ---- tokens ----


async def test_where_token_callbacks_run() -> None:
    ran: list[object] = []

    def plainly() -> str:
        ran.append(threading.current_thread() is threading.main_thread())
        return "s3cret"

    async def in_the_loop() -> str:
        ran.append(asyncio.get_running_loop())
        return "s3cret"

    async with guarded(server()) as broker:
        for callback in (plainly, in_the_loop, lambda: in_the_loop()):
            (await connected(broker, sasl=SaslOAuthBearer(callback))).close()
    assert ran == [False, asyncio.get_running_loop(), asyncio.get_running_loop()]


async def test_callbacks_that_give_no_token() -> None:
    release = threading.Event()

    def never() -> str:
        release.wait()
        return ""

    def fails() -> str:
        raise OSError("away")

    def refuses() -> str:
        raise AuthenticationError("this account is closed")

    async with guarded(server()) as broker:
        with pytest.raises(RetriableError, match=r"did not return within 0\.2 s"):
            await connected(broker, 0.2, sasl=SaslOAuthBearer(never))
        release.set()
        for callback, error, why in (
            (fails, RetriableError, "OSError: away"),
            (refuses, AuthenticationError, "this account is closed"),
            (lambda: 7, AuthenticationError, "gave int"),
            (lambda: "two words", AuthenticationError, "no bearer token"),
        ):
            with pytest.raises(error, match=why):
                await connected(broker, sasl=SaslOAuthBearer(callback))  # type: ignore[arg-type]
        assert "SaslAuthenticate" not in broker.names()


# ---- TLS ----


async def test_tls_and_sasl(certificates: Certificates) -> None:
    async with guarded(server(), tls=certificates.server_tls()) as broker:
        connection = await connected(broker, sasl=KINDS[2], tls=certificates.client_tls())
        await connection.ask(BEAT, 5)
        connection.close()


async def test_certificates_of_others(certificates: Certificates, tmp_path_factory: Any) -> None:
    strangers = Certificates(tmp_path_factory.mktemp("strangers"))
    async with ScriptedBroker(tls=certificates.server_tls()) as broker:
        with pytest.raises(TlsError, match=r"is not trusted: .*ssl.truststore.location") as raised:
            await connected(broker, tls=strangers.client_tls())
        assert not isinstance(raised.value, RetriableError)
    elsewhere = certificates.server_tls(certificates.issued("elsewhere", "elsewhere.example"))
    async with ScriptedBroker(tls=elsewhere) as broker:
        with pytest.raises(TlsError, match=r"is for another host name: .*127\.0\.0\.1"):
            await connected(broker, tls=certificates.client_tls())
        unchecked = certificates.client_tls()
        unchecked.check_hostname = False
        (await connected(broker, tls=unchecked)).close()


async def test_a_server_that_asks_for_a_certificate(certificates: Certificates) -> None:
    async with ScriptedBroker(tls=certificates.server_tls(ask=True)) as broker:
        tls = certificates.client_tls(certificates.issued("client"))
        (await connected(broker, tls=tls)).close()
        with pytest.raises(ConnectionLostError, match="client certificate"):
            await connected(broker, tls=certificates.client_tls())


async def test_tls_to_a_plain_port(certificates: Certificates) -> None:
    """A broker takes the greeting for a request that is too long, and hangs up."""
    async with Plain() as port:
        with pytest.raises(TlsError, match=r"does not speak TLS: leave tls= out"):
            await open_connection(
                "127.0.0.1", port, client_id=None, timeout_s=5, tls=certificates.client_tls()
            )


async def test_a_plain_client_at_a_tls_port(certificates: Certificates) -> None:
    async with ScriptedBroker(tls=certificates.server_tls()) as broker:
        with pytest.raises(TlsError, match="speaks TLS: give tls="):
            await connected(broker)


async def test_somebody_else_answers(certificates: Certificates) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    listening = await asyncio.start_server(rude, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        for tls in (None, certificates.client_tls()):
            with pytest.raises(ConnectionLostError):
                await open_connection("127.0.0.1", port, client_id=None, timeout_s=5, tls=tls)


class Plain:
    """A broker without TLS that hangs up on frames that are too long, as Apache Kafka does."""

    async def __aenter__(self) -> int:
        self._broker = await ScriptedBroker().__aenter__()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        await self._server.wait_closed()
        await self._broker.__aexit__(None, None, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = await reader.readexactly(4)
        if int.from_bytes(size, "big") < 1_000_000:
            body = await reader.readexactly(int.from_bytes(size, "big"))
            inner, out = await asyncio.open_connection("127.0.0.1", self._broker.port)
            out.write(size + body)
            answer = await inner.readexactly(4)
            writer.write(answer + await inner.readexactly(int.from_bytes(answer, "big")))
            out.close()
        writer.close()


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "asks for a client certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not accept this client's certificate: unknown ca"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "certificate expired"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "no TLS version or cipher in common: handshake failure"),
        ("WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("UNEXPECTED_EOF_WHILE_READING", None),
        ("TLSV1_ALERT_INTERNAL_ERROR", None),
    ],
)
def test_tls_errors_are_explained(reason: str, why: str | None) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    found = tls_error("broker:9093", error)
    assert (found is None) == (why is None)
    assert why is None or why in str(found)


def test_words_of_a_broker_fit_on_one_line() -> None:
    assert printable("a\nb\x1b[31m\u2028c.") == "a b [31m c"
    assert len(printable("x" * 100_000)) < 600


# ---- members ----


async def test_a_member_that_is_refused_ends() -> None:
    errors: list[MembershipError] = []
    async with guarded(server()) as broker:
        wrong = SaslScram("ann", "wr0ng")
        async with member(broker.address, on_failed=errors.append, sasl=wrong) as one:
            with pytest.raises(AuthenticationError, match=r"group 'jobs'.*refused user 'ann'"):
                await one.wait_assigned(20)
        assert isinstance(one.error, AuthenticationError)
        assert errors == [one.error]
        assert broker.names().count("SaslHandshake") == 1
