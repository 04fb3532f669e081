"""Pings over TLS and behind a login: who is dead is found as ever, and who is not believed is not dead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.cluster import pings as pings_module
from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.cluster.pings import HANGS_UP, Greeting
from ringleader.coordinator.cluster.suspicion import PING_INTERVAL_S
from ringleader.coordinator.security.among_nodes import MECHANISM, NODE, NodeCredentials, password_of
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.security.records import secret_record
from ringleader.coordinator.security.scram import SHA_256, Credential, Credentials, Mechanism
from ringleader.coordinator.security.settings import TlsSettings
from ringleader.coordinator.security.store import SECRET_BYTES
from ringleader.coordinator.security.tls import Tls
from ringleader.coordinator.server.phases import Phase
from ringleader.coordinator.serving import StartError
from ringleader.protocol.messages import ApiVersionsRequest, HeartbeatRequest, ListGroupsRequest
from ringleader.testing import Coordinator
from tests.coordinator.cluster.test_pings import Seen, pinging
from tests.coordinator.server.test_sasl import guarded, handshake, token
from tests.support.certificates import Certificates
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.quota_scripts import altering
from tests.support.registered import PASSWORD, ScramClient
from tests.support.served import Served, connected, serving, until
from tests.support.sessions import session_of

SECRET, OTHER_SECRET = b"of all nodes", b"of others"
UNREACHABLE = "a node cannot be asked whether it is there"
REACHABLE_AGAIN = "a node can be asked again whether it is there"
LOGIN = Greeting(password=lambda: password_of(SECRET))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of somebody whom nobody here trusts."""
    return Certificates(tmp_path_factory.mktemp("others"))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is not believed is asked again at once."""
    monkeypatch.setattr(pings_module, "DISBELIEF_S", 0.01)


def shown(certificates: Certificates, **more: Any) -> dict[str, Any]:
    """The settings that nodes show."""
    return {
        "ssl_keystore_location": certificates.server,
        "ssl_truststore_location": certificates.authority,
        **more,
    }


def over_tls(certificates: Certificates, **more: Any) -> Greeting:
    return Greeting(Tls(TlsSettings(**shown(certificates, **more))).connecting)


@contextlib.asynccontextmanager
async def listening(certificates: Certificates, **more: Any) -> AsyncIterator[Served]:
    """A node whose listener speaks TLS."""
    async with serving(listeners="SSL://127.0.0.1:0", **shown(certificates, **more)) as served:
        yield served


@contextlib.asynccontextmanager
async def asking(directory: Path, nodes: Credentials | None = None, **more: Any) -> AsyncIterator[Served]:
    """A node whose listener wants SASL, and has no mechanism in common with nodes but theirs."""
    async with guarded(directory, sasl_enabled_mechanisms="PLAIN", **more) as served:
        assert served.server.sasl is not None
        served.server.sasl.nodes = nodes
        yield served


async def found_dead(served: Served, seen: Seen) -> None:
    served.server.stop_accepting()
    await served.server.close_connections(0)
    await until(lambda: "refused" in seen.reported)
    assert seen.due(0) == [(2, "it refuses connections")]


async def is_there_but_disbelieved(seen: Seen, lines: Lines) -> str:
    """The reason in the log, of which there is one line however often it is tried."""
    await until(lambda: seen.reported.count("heard") >= 12)
    assert "refused" not in seen.reported
    assert seen.due(0) == []
    [line] = lines
    assert (line["event"], line["level"], line["node"]) == (UNREACHABLE, "warning", 2)
    return str(line["reason"])


# ---- TLS ----


@pytest.mark.parametrize("client_auth", ["none", "required"])
async def test_over_tls_a_node_is_heard_on_one_connection_then_refuses(
    certificates: Certificates, client_auth: str, lines: Lines
) -> None:
    async with (
        listening(certificates, ssl_client_auth=client_auth) as served,
        pinging(served.port, greeting=over_tls(certificates), lines=lines) as (seen, _),
    ):
        await until(lambda: seen.reported.count("heard") >= 4)
        [connection] = served.server.connections
        shows = connection.session.principal.name.startswith("CN=server")
        assert shows == (client_auth == "required")
        await found_dead(served, seen)
    assert lines == []


async def test_a_node_that_is_silent_in_the_handshake_is_missed(certificates: Certificates) -> None:
    accepted = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    greeting = over_tls(certificates)
    async with server, pinging(server.sockets[0].getsockname()[1], greeting=greeting) as (seen, _):
        await until(lambda: bool(accepted))
        silent_s = len(seen.reported)
        await until(lambda: seen.reported[silent_s:].count("missed") >= 3)
        assert "heard" not in seen.reported


@pytest.mark.usefixtures("soon")
async def test_a_node_with_an_untrusted_certificate_is_there_until_it_is_dead(
    certificates: Certificates, others: Certificates, lines: Lines
) -> None:
    trusted = over_tls(certificates).tls
    contexts = [over_tls(others).tls]

    def current() -> Any:
        assert contexts[-1] is not None
        return contexts[-1]()

    async with (
        listening(certificates) as served,
        pinging(served.port, greeting=Greeting(current), lines=lines) as (seen, _),
    ):
        assert "is not trusted" in await is_there_but_disbelieved(seen, lines)
        contexts.append(trusted)
        await until(lambda: len(served.server.connections) == 1 and len(lines) == 2)
        assert lines[1]["event"] == REACHABLE_AGAIN
        await found_dead(served, seen)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_node_that_does_not_trust_our_certificate_is_there(
    certificates: Certificates, others: Certificates, lines: Lines, version: str
) -> None:
    more = {"ssl_client_auth": "required", "ssl_enabled_protocols": version}
    ours = over_tls(others, ssl_truststore_location=certificates.authority)
    async with (
        listening(certificates, **more) as served,
        pinging(served.port, greeting=ours, lines=lines) as (seen, _),
    ):
        reason = await is_there_but_disbelieved(seen, lines)
        assert "does not accept this client's certificate" in reason or reason == HANGS_UP
        assert not served.server.connections


@pytest.mark.usefixtures("soon")
async def test_a_certificate_has_to_be_for_the_host_unless_that_is_switched_off(
    certificates: Certificates, lines: Lines
) -> None:
    elsewhere = certificates.issued("elsewhere", "elsewhere.example")
    async with listening(certificates, ssl_keystore_location=elsewhere) as served:
        async with pinging(served.port, greeting=over_tls(certificates), lines=lines) as (seen, _):
            assert "is for another host name" in await is_there_but_disbelieved(seen, lines)
        anywhere = over_tls(certificates, ssl_endpoint_identification_algorithm="")
        async with pinging(served.port, greeting=anywhere, lines=lines) as (seen, _):
            await until(lambda: len(served.server.connections) == 1 and seen.reported.count("heard") >= 3)
            assert len(lines) == 1


@pytest.mark.usefixtures("soon")
async def test_a_node_that_hangs_up_again_and_again_is_named_once(
    certificates: Certificates, lines: Lines
) -> None:
    async with (
        serving() as served,
        pinging(served.port, greeting=over_tls(certificates), lines=lines) as (seen, _),
    ):
        await until(lambda: len(served.log) >= 12)
        assert "refused" not in seen.reported
        assert [line["reason"] for line in lines] == [HANGS_UP]


async def test_certificates_read_again_count_on_the_next_connection(
    tmp_path: Path, certificates: Certificates, others: Certificates
) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_bytes(others.authority.read_bytes())
    tls = Tls(TlsSettings(**shown(certificates, ssl_truststore_location=authority)))
    before = tls.connecting()
    assert tls.connecting() is before
    authority.write_bytes(certificates.authority.read_bytes())
    assert tls.changed()
    tls.reload()
    async with (
        listening(certificates) as served,
        pinging(served.port, greeting=Greeting(tls.connecting)) as (seen, _),
    ):
        await until(lambda: len(served.server.connections) == 1 and seen.reported.count("heard") >= 3)
    authority.write_text("nothing")
    with pytest.raises(ValueError, match=r"ssl\.truststore\.location"):
        tls.reload()
    assert tls.connecting() is not before


# ---- SASL ----


async def test_a_node_logs_in_to_another_and_logs_nothing(tmp_path: Path, lines: Lines) -> None:
    async with (
        asking(tmp_path, NodeCredentials(lambda: SECRET), connections_max_reauth_ms=1) as served,
        pinging(served.port, greeting=LOGIN, lines=lines) as (seen, _),
    ):
        await until(lambda: seen.reported.count("heard") >= 6)
        [connection] = served.server.connections
        assert (session_of(connection).phase, connection.session.principal) == (Phase.NODE, NODE)
        assert served.server.sasl is not None
        assert (served.server.sasl.succeeded, served.server.sasl.failed) == (1, 0)
        await found_dead(served, seen)
    assert not [line for line in served.log if line["level"] in ("warning", "error")]
    assert lines == []


async def test_a_node_logs_in_over_tls(tmp_path: Path, certificates: Certificates) -> None:
    greeting = replace(LOGIN, tls=over_tls(certificates).tls)
    more = shown(certificates, listeners="SASL_SSL://127.0.0.1:0")
    async with (
        asking(tmp_path, NodeCredentials(lambda: SECRET), **more) as served,
        pinging(served.port, greeting=greeting) as (seen, _),
    ):
        await until(lambda: seen.reported.count("heard") >= 6)
        assert [connection.session.principal for connection in served.server.connections] == [NODE]
        await found_dead(served, seen)


@pytest.mark.parametrize("request_", [HeartbeatRequest(group_id="g", member_id="m"), ListGroupsRequest()])
async def test_a_node_may_ask_for_versions_and_nothing_else(tmp_path: Path, request_: Any) -> None:
    async with asking(tmp_path, NodeCredentials(lambda: SECRET)) as served, served.connect() as client:
        scram = ScramClient(NODE.name, password_of(SECRET), SHA_256)
        assert (await handshake(client, MECHANISM)).error_code == 0
        first = await token(client, scram.first)
        last = await token(client, scram.final(first.auth_bytes))
        assert (last.error_code, last.session_lifetime_ms) == (0, 0)
        for _ in range(2):
            assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        client.send(request_, 0)
        assert await client.rest() == b""
        [line] = served.events("connection closed")
        assert line["reason"] == f"unknown API {request_.API_KEY}"


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        (NODE.name, "a guess", MECHANISM),
        (NODE.name, password_of(OTHER_SECRET), MECHANISM),
        ("alice", password_of(SECRET), MECHANISM),
        (NODE.name, password_of(SECRET), SHA_256.name),
        (NODE.name, PASSWORD, SHA_256.name),
    ],
)
async def test_nobody_else_is_a_node(tmp_path: Path, user: str, password: str, mechanism: str) -> None:
    more = {"sasl_enabled_mechanisms": "SCRAM-SHA-256"}
    sasl_of = NodeCredentials(lambda: SECRET)
    # A user of that name cannot be made; one that is there all the same does not come in.
    async with guarded(tmp_path, NODE.name, "bob", **more) as served, served.connect() as client:
        assert served.server.sasl is not None
        served.server.sasl.nodes = sasl_of
        scram = ScramClient(user, password, SHA_256)
        assert (await handshake(client, mechanism)).error_code == 0
        answer = await token(client, scram.first)
        if not answer.error_code:
            answer = await token(client, scram.final(answer.auth_bytes))
        assert answer.error_code == 58
        assert await client.rest() == b""
        assert served.server.sasl.succeeded == 0


async def test_a_daemon_by_itself_knows_no_logins_of_nodes(tmp_path: Path) -> None:
    async with asking(tmp_path) as served, served.connect() as client:
        answer = await handshake(client, MECHANISM)
        assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN"])


class Impostor(NodeCredentials):
    """Knows what proofs are checked with, and not what they are made of."""

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        return replace(super().credential(user, mechanism), server_key=b"made up")


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (None, "it takes no logins of nodes: it answers UNSUPPORTED_SASL_MECHANISM"),
        (NodeCredentials(lambda: OTHER_SECRET), "it does not believe that this is a node of its cluster"),
        (Impostor(lambda: SECRET), "it is no node of this cluster: the server could not prove"),
    ],
)
async def test_a_node_that_fails_to_authenticate_is_there(
    tmp_path: Path, lines: Lines, nodes: Credentials | None, reason: str
) -> None:
    async with (
        asking(tmp_path, nodes) as served,
        pinging(served.port, greeting=LOGIN, lines=lines) as (seen, _),
    ):
        assert (await is_there_but_disbelieved(seen, lines)).startswith(reason)
        assert not [line for line in served.log if password_of(SECRET) in str(line)]


async def test_a_node_that_is_slow_to_refuse_is_not_missed_for_it(tmp_path: Path, lines: Lines) -> None:
    slow = {"connection_failed_authentication_delay_ms": 60_000}
    async with (
        asking(tmp_path, NodeCredentials(lambda: OTHER_SECRET), **slow) as served,
        pinging(served.port, greeting=LOGIN, lines=lines) as (seen, _),
    ):
        assert served.server.sasl is not None
        await until(lambda: served.server.sasl is not None and served.server.sasl.failed == 1)
        reported = list(seen.reported)
        await asyncio.sleep(3 * PING_INTERVAL_S)
        assert seen.reported == reported


# ---- nodes ----


async def test_no_quota_keeps_nodes_from_hearing_each_other(lines: Lines) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
    with Coordinator() as kafka_cluster:
        async with Nodes(kafka_cluster, lines) as nodes:
            more = {**settings, "inter_broker_listener_name": "SASL_PLAINTEXT"}
            await nodes.start(1, **more)
            two = await nodes.start(2, **more)
            async with connected(two.host, two.port) as client:
                quota = altering(({"user": None}, {"request_percentage": 1e-6}))
                assert (await client.call(quota, 1, "administrator")).entries[0].error_code == 0
            await until(lambda: principals(two) == [NODE])
            before = two.server.routes[ApiVersionsRequest.API_KEY].requests
            await until(lambda: two.server.routes[ApiVersionsRequest.API_KEY].requests >= before + 4)
            [connection] = (other for other in two.server.connections if other.session.principal == NODE)
            assert connection.account is not None, "the quota counts for everybody else"
            assert not connection.is_muted


async def test_nodes_believe_each_other_by_the_last_secret(lines: Lines) -> None:
    """Where several start at once for the first time, each has made one."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "inter_broker_listener_name": "SASL_PLAINTEXT",
    }
    with Coordinator() as kafka_cluster:
        async with Nodes(kafka_cluster, lines) as nodes:
            one = await nodes.start(1, **settings)
            last = bytes(range(SECRET_BYTES))
            key, value = secret_record(last)
            kafka_cluster.produce("__ringleader_security", value, key=key)
            await until(lambda: one.security is not None and one.security.store.secret == last)
            two = await nodes.start(2, **settings)
            await until(lambda: principals(one) == principals(two) == [NODE])
    assert not lines.of(UNREACHABLE)


async def test_nodes_find_each_other_over_tls_and_a_login(certificates: Certificates, lines: Lines) -> None:
    settings = shown(
        certificates,
        listeners="PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        inter_broker_listener_name="SASL_SSL",
    )
    with Coordinator() as kafka_cluster:
        async with Nodes(kafka_cluster, lines) as nodes:
            one, two = await nodes.start(1, **settings), await nodes.start(2, **settings)
            await until(lambda: principals(one) == principals(two) == [NODE])
            two.server.stop_accepting()
            await two.server.close_connections(0)
            await until(lambda: bool(lines.of("node taken for dead")))
            [line, *_] = lines.of("node taken for dead")
            assert (line["node"], line["reason"]) == (2, "it refuses connections")
    assert not lines.of(UNREACHABLE)
    assert not lines.of("authentication failed")


def principals(node: ClusterNode) -> list[Principal]:
    return [one.session.principal for one in node.server.connections if one.listener.security_protocol.sasl]


async def test_a_node_that_cannot_ask_the_others_does_not_start(
    certificates: Certificates, lines: Lines, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    settings = shown(certificates, listeners="SSL://127.0.0.1:0", ssl_truststore_location=nothing)
    with Coordinator() as kafka_cluster:
        async with Nodes(kafka_cluster, lines) as nodes:
            with pytest.raises(StartError, match=r"SSL://.*: ssl\.truststore\.location: .* is not PEM"):
                await nodes.start(1, **settings)


def test_no_secret_is_shown() -> None:
    assert LOGIN.password is not None
    assert LOGIN.password() not in repr(LOGIN)
    assert SECRET.decode() not in LOGIN.password()
