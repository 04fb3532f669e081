"""How fast connections may come: from one address, and all together."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.quotas import ClientQuotas, Windows, to_key
from ringleader.coordinator.server import arriving
from ringleader.coordinator.server.arriving import NO_DELAY, Arriving, Delay
from ringleader.protocol import messages as kafka
from tests.support.certificates import Certificates
from tests.support.quota_scripts import altering
from tests.support.served import WAIT_S, Client, connected, until

HELLO = kafka.ApiVersionsRequest("test", "1")
WINDOWS = Windows(11, 1_000)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def of_addresses(**rates: float) -> ClientQuotas:
    """Address -> connections per second; `default` for all others."""
    quotas = ClientQuotas()
    for name, rate in rates.items():
        address = None if name == "default" else name.replace("_", ".").removeprefix("ip.")
        quotas.apply({to_key({"ip": address}): {"connection_creation_rate": rate}})
    return quotas


async def test_connections_beyond_the_quota_are_held_and_refused() -> None:
    now = [0]
    found = Arriving(of_addresses(default=1.0, ip_10_0_0_1=2.0), None, WINDOWS, lambda: now[0], get_log())
    assert [found.delay("10.0.0.9") for _ in range(10)] == [NO_DELAY] * 10
    # 11 in the ten seconds that count as full: 1.1 per second.
    assert found.delay("10.0.0.9") == Delay(1_000, True)
    assert found.delay("10.0.0.9") == Delay(1_000, True)  # what is refused does not count
    assert [found.delay("10.0.0.1") for _ in range(20)] == [NO_DELAY] * 20
    assert found.delay("10.0.0.1").refused
    now[0] = 11_000
    assert found.delay("10.0.0.9") == NO_DELAY


async def test_what_is_refused_does_not_count_later_either() -> None:
    now = [0]
    found = Arriving(of_addresses(default=1.0), None, WINDOWS, lambda: now[0], get_log())
    assert [found.delay("10.0.0.9") for _ in range(5)] == [NO_DELAY] * 5
    now[0] = 5_000
    assert [found.delay("10.0.0.9") for _ in range(5)] == [NO_DELAY] * 5
    assert all(found.delay("10.0.0.9").refused for _ in range(5))
    now[0] = 11_000  # the first five are too long ago
    assert [found.delay("10.0.0.9") for _ in range(5)] == [NO_DELAY] * 5
    assert found.delay("10.0.0.9").refused


async def test_no_flood_is_held_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "MAX_HELD", 3)
    found = Arriving(of_addresses(default=1.0), None, WINDOWS, lambda: 0, get_log())
    delays = [found.delay("10.0.0.9") for _ in range(16)]
    assert delays == [NO_DELAY] * 10 + [Delay(1_000, True)] * 3 + [Delay(0, True)] * 3


async def test_an_address_is_one_however_it_is_written() -> None:
    quotas = ClientQuotas()
    key = to_key({"ip": "0:0:0:0:0:0:0:1"})
    quotas.apply({key: {"connection_creation_rate": 0.01}})
    found = Arriving(quotas, None, WINDOWS, lambda: 0, get_log())
    assert found.delay("::1").refused
    assert found.delay("::2") == NO_DELAY
    quotas.apply({to_key({"ip": "::1"}): {"connection_creation_rate": 100.0}})
    assert found.delay("::1") == NO_DELAY
    quotas.apply({key: None})
    quotas.apply({to_key({"ip": "::1"}): None})
    assert not quotas.of_addresses


async def test_what_is_too_much_for_the_node_comes_in_one_after_the_other() -> None:
    now = [0]
    found = Arriving(None, 10, Windows(2, 1_000), lambda: now[0], get_log())
    assert [found.delay("10.0.0.9").ms for _ in range(23)] == [0] * 20 + [100, 200, 300]
    now[0] = 300
    assert found.delay("10.0.0.9") == Delay(100, False)


@contextlib.asynccontextmanager
async def node(directory: Path, **settings: Any) -> AsyncIterator[Node]:
    options = {"listen": "127.0.0.1:0", **settings}
    async with Node(Settings(data_dir=directory, **options)) as started:
        yield started


def once_a_second(address: str | None) -> Any:
    return altering(({"ip": address}, {"connection_creation_rate": 1.0}))


async def test_a_refused_connection_is_not_listened_to_and_closed(tmp_path: Path) -> None:
    async with node(tmp_path) as served, connected(served.host, served.port) as administrator:
        # Its own connection counts for nothing: it came before.
        await administrator.call(once_a_second("127.0.0.1"), 1)
        clients = [Client(*await asyncio.open_connection(served.host, served.port)) for _ in range(10)]
        for client in clients:
            assert (await client.call(HELLO, 3)).error_code == 0
        late = Client(*await asyncio.open_connection(served.host, served.port))
        late.send(HELLO, 3)
        late.writer.write(bytes(10_000_000))
        await until(lambda: any(connection.is_muted for connection in served.server.connections))
        [held] = [connection for connection in served.server.connections if connection.is_muted]
        assert await late.rest() == b""
        assert held not in served.server.connections
        assert served.server.routes[18].requests == len(clients)
        assert (await administrator.call(HELLO, 3)).error_code == 0
        for client in (late, *clients):
            with contextlib.suppress(ConnectionError):
                await client.close()


async def test_over_tls_it_is_refused_before_the_handshake(
    tmp_path: Path, certificates: Certificates
) -> None:
    options: dict[str, Any] = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl_keystore_location": certificates.server,
    }
    settings = Settings(data_dir=tmp_path, **options)
    context = certificates.client_tls()
    clients: list[Client] = []

    async def come() -> Client:
        streams = await asyncio.open_connection(
            served.host, served.port, ssl=context, server_hostname="localhost"
        )
        return Client(*streams)

    async def come_on() -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                clients.append(await come())

    async with Node(settings) as served:
        administrator = await come()
        await administrator.call(once_a_second(None), 1)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await come_on()
        assert len(clients) == 10
        assert served.server.throttles == 1
        assert (await administrator.call(HELLO, 3)).error_code == 0
        for client in (administrator, *clients):
            await client.close()


async def test_all_that_come_are_let_in_when_it_is_their_turn(tmp_path: Path) -> None:
    settings = {"max_connection_creation_rate": 50, "quota_window_num": 2}
    async with node(tmp_path, **settings) as served:
        clients = [Client(*await asyncio.open_connection(served.host, served.port)) for _ in range(110)]
        for client in clients:
            assert (await client.call(HELLO, 3)).error_code == 0
        for client in clients:
            await client.close()
