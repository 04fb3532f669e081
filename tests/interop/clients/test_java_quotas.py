"""Kafka's own kafka-configs, as it is, sets and shows quotas of a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.team import PARTITIONS, TOPIC
from tests.interop.clients.test_java_console import Console
from tests.support.daemon import Daemon

ALTER = "kafka-configs --alter --entity-type"
DESCRIBE = "kafka-configs --describe --entity-type"
ALICES = "Quota configs for user-principal 'alice' are"
APPS = "Quota configs for client-id 'app' are consumer_byte_rate=2000.0"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of its own."""
    with Daemon(tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"]) as running:
        yield running


@pytest.fixture
async def console(daemon: Daemon, java_clients: JavaClients) -> Console:
    """The tools."""
    found = Console(daemon.bootstrap, java_clients)
    await found.open()
    return found


async def test_quotas_of_users_clients_and_addresses(console: Console) -> None:
    assert await console.lines(f"{DESCRIBE} users") == []
    await console.lines(
        f"{ALTER} users --entity-name alice --add-config producer_byte_rate=1000,request_percentage=5.5"
    )
    await console.lines(f"{ALTER} clients --entity-name app --add-config consumer_byte_rate=2000")
    both = "users --entity-name alice --entity-type clients --entity-name app"
    await console.lines(f"{ALTER} {both} --add-config controller_mutation_rate=0.5")
    await console.lines(f"{ALTER} users --entity-default --add-config producer_byte_rate=7000")
    await console.lines(f"{ALTER} ips --entity-name 10.0.0.1 --add-config connection_creation_rate=50")
    assert set(await console.lines(f"{DESCRIBE} users")) == {
        f"{ALICES} request_percentage=5.5, producer_byte_rate=1000.0",
        "Quota configs for the default user-principal are producer_byte_rate=7000.0",
    }
    assert await console.lines(f"{DESCRIBE} clients") == [APPS]
    assert await console.lines(f"{DESCRIBE} ips") == [
        "Quota configs for ip '10.0.0.1' are connection_creation_rate=50.0"
    ]
    assert await console.lines(f"{DESCRIBE} {both}") == [
        "Quota configs for user-principal 'alice', client-id 'app' are controller_mutation_rate=0.5"
    ]
    await console.lines(f"{ALTER} users --entity-name alice --delete-config producer_byte_rate")
    assert await console.lines(f"{DESCRIBE} users --entity-name alice") == [
        f"{ALICES} request_percentage=5.5"
    ]


async def test_users_are_shown_with_their_credentials_and_quotas(console: Console) -> None:
    await console.lines(f"{ALTER} users --entity-name alice --add-config SCRAM-SHA-512=[password=secret]")
    await console.lines(f"{ALTER} users --entity-name alice --add-config producer_byte_rate=1000")
    assert await console.lines(f"{DESCRIBE} users") == [
        f"{ALICES} producer_byte_rate=1000.0",
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-512=iterations=4096",
    ]


async def test_what_is_no_quota_is_refused(console: Console) -> None:
    code, out, err = await console.run(
        f"{ALTER} clients --entity-name app --add-config producer_byte_rate=-5"
    )
    assert code != 0
    assert "must be greater than 0" in out + err
