"""Java clients at a listener that asks for certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaClients, JavaError, JavaMember, JavaProducer
from tests.interop.clients.team import GROUP, PARTITIONS, TOPIC
from tests.interop.clients.watch import WatchBoard
from tests.support.certificates import Certificates
from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def daemon(tmp_path: Path, certificates: Certificates) -> Iterator[Daemon]:
    """A daemon that lets in clients by their certificates' names, in Java's form."""
    options = [
        *("--group-initial-rebalance-delay-ms", "0"),
        *("--ssl-keystore-location", str(certificates.server)),
        *("--ssl-truststore-location", str(certificates.authority)),
        *("--ssl-client-auth", "required"),
        *("--ssl-principal-mapping-rules", "RULE:^CN=alice,OU=unit,O=org$/alice/"),
    ]
    with Daemon(tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"], options=options, listener="SSL") as running:
        yield running


def config(certificates: Certificates, shown: Path | None, version: str = "TLSv1.3") -> dict[str, str]:
    more = {} if shown is None else {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(shown)}
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "ssl.enabled.protocols": version,
        **more,
    }


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_client_with_a_certificate_produces_and_consumes(
    daemon: Daemon, certificates: Certificates, java_clients: JavaClients, version: str
) -> None:
    given = config(certificates, certificates.issued("alice"), version)
    async with JavaProducer(java_clients, daemon.bootstrap, given) as producer:
        assert await producer.send(TOPIC, [(0, "one"), (1, "two")]) == [(0, 0), (1, 0)]
    board = WatchBoard()
    member = JavaMember(board, java_clients, daemon.bootstrap, GROUP, TOPIC, "a", given)
    await member.join()
    await board.until(lambda _: sorted(board.values.get("a", ())) == ["one", "two"])
    await member.leave()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("name", [None, "stranger"])
async def test_a_client_without_a_trusted_certificate_is_refused_at_once(
    daemon: Daemon,
    certificates: Certificates,
    java_clients: JavaClients,
    tmp_path: Path,
    version: str,
    name: str | None,
) -> None:
    """Java takes an alert for the last word; without one it would try again and again."""
    shown = None if name is None else Certificates(tmp_path / "others").issued(name)
    given = config(certificates, shown, version)
    async with JavaProducer(java_clients, daemon.bootstrap, given) as producer:
        with pytest.raises(JavaError, match="SslAuthenticationException"):
            await producer.send(TOPIC, [(0, "one")])
