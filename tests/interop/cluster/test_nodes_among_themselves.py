"""Real nodes that reach each other over TLS, with certificates and a login: who dies is found by pings, and
nobody else is a node."""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.request
from pathlib import Path

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import SaslScram
from ringleader.clients.errors import AuthenticationError, ClientError
from ringleader.coordinator.security.among_nodes import NODE
from tests.chaos.targets import Node
from tests.interop.cluster.test_nodes_security import ADMIN, FLAGS, PASSWORD, until
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.certificates import Certificates
from tests.support.command import run_here
from tests.support.ports import free_ports

NAME = "among-themselves"
LOGGED_IN = 'ringleader_authentications_total{result="succeeded"} '


class PingedNode(Node):
    """Its one listener asks for a certificate and a login."""

    def __init__(
        self, directory: Path, brokers: KafkaCluster, node_id: int, certificates: Certificates
    ) -> None:
        settings = directory.with_suffix(".properties")
        settings.write_text(
            f"ssl.keystore.location={certificates.server}\n"
            f"ssl.truststore.location={certificates.authority}\n"
            "listener.name.sasl_ssl.ssl.client.auth=required\n"
            "sasl.enabled.mechanisms=SCRAM-SHA-512\n"
        )
        [http] = free_ports(1)
        self._metrics = f"http://127.0.0.1:{http}/metrics"
        options = [
            *("--config", str(settings), "--http-listen", f"127.0.0.1:{http}"),
            *(word for flag in FLAGS for word in (f"--cluster-{flag}", f"__{NAME}-{flag}")),
            *("--cluster-replication-factor", "1", "--offsets-topic-num-partitions", "4"),
            *("--cluster-session-timeout-ms", "60000"),  # pings have to find it, or nobody does
            *("--authorizer", "acl", "--super-users", f"User:{ADMIN};{NODE}"),
        ]
        super().__init__(directory, brokers.bootstrap, node_id, options)
        self.tracebacks_expected = False

    def command(self) -> list[str]:
        """Of the next start."""
        command = super().command()
        at = command.index("--listen")
        command[at : at + 2] = ["--listeners", f"SASL_SSL://{self.bootstrap}"]
        return command

    async def is_pinged(self) -> bool:
        """Whether the other one is through."""

        def get() -> str:
            with urllib.request.urlopen(self._metrics, timeout=10) as answer:
                return str(answer.read().decode())

        found = await asyncio.to_thread(get)
        return any(line.startswith(LOGGED_IN) and line.split()[-1] != "0" for line in found.splitlines())


@pytest.mark.timeout(300)
async def test_a_node_that_dies_behind_tls_and_a_login_is_found_by_pings(
    one_broker: KafkaCluster, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path / "certificates")
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    users = ["users", "add", ADMIN, "--cluster", one_broker.bootstrap, "--cluster-replication-factor", "1"]
    users += ["--cluster-security-topic", f"__{NAME}-security-topic", "--password-file", str(password)]
    done = await asyncio.to_thread(run_here, None, *users)
    assert (done.code, done.err) == (0, "")
    one, two = (PingedNode(tmp_path / f"node-{n}", one_broker, n, certificates) for n in (1, 2))

    async def taken_for_dead(reason: str) -> None:
        async def reported() -> bool:
            lines = [line for line in one.log().splitlines() if "node taken for dead" in line]
            return any("node=2" in line and reason in line for line in lines)

        await until(reported)

    try:
        await asyncio.to_thread(one.start)
        await asyncio.to_thread(two.start)
        await until(two.is_pinged)
        await until(one.is_pinged)
        await asyncio.to_thread(two.kill)
        await taken_for_dead("it refuses connections")
        await asyncio.to_thread(two.start)
        await until(two.is_pinged)
        os.kill(two.pid, signal.SIGSTOP)
        await taken_for_dead("pings without an answer")
        os.kill(two.pid, signal.SIGCONT)
        tls = certificates.client_tls(certificates.server)
        with pytest.raises(AuthenticationError):
            async with Admin(one.bootstrap, tls=tls, sasl=SaslScram(NODE.name, PASSWORD)) as admin:
                await admin.list_topics()
        async with Admin(one.bootstrap, tls=tls, sasl=SaslScram(ADMIN, PASSWORD)) as admin:
            with pytest.raises(ClientError, match=f"{NODE.name} is what nodes call themselves"):
                await admin.set_scram_user(NODE.name, PASSWORD)
            assert list(await admin.scram_users()) == [ADMIN]
        for node in (one, two):
            assert "a node cannot be asked" not in node.log()
            assert "TLS handshake failed" not in node.log()
    finally:
        for node in (one, two):
            node.kill()
