"""A connection that is gone takes no memory until the collector comes: it comes seldom in a daemon."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.login import Login
from ringleader.coordinator.server.pace import Pace
from ringleader.coordinator.server.session import Session
from ringleader.protocol.messages import ApiVersionsRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.quota_scripts import altering
from tests.support.registered import ALICE, PASSWORD, registered
from tests.support.served import connected, until

OF_A_CLIENT = (Connection, Session, Pace, Login)


def left() -> list[Any]:
    return [one for one in gc.get_objects() if isinstance(one, OF_A_CLIENT)]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
async def test_nothing_of_a_connection_waits_for_the_collector(tmp_path: Path, protocol: str) -> None:
    await (await registered(tmp_path)).store.close()
    gc.collect()
    gc.disable()
    try:
        before = len(left())
        settings = Settings(
            data_dir=tmp_path,
            listeners=f"{protocol}://127.0.0.1:0",
            sasl_enabled_mechanisms="PLAIN",
            sasl_cleartext_without_tls=True,
        )
        async with Node(settings) as node:
            for _ in range(3):
                async with connected(node.host, node.port) as client:
                    if protocol == "SASL_PLAINTEXT":
                        await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                        token = f"\0{ALICE}\0{PASSWORD}".encode()
                        assert not (await client.call(SaslAuthenticateRequest(token), 2)).error_code
                    await client.call(altering(({"client-id": "client"}, {"request_percentage": 50.0})), 1)
                    assert (await client.call(ApiVersionsRequest("test", "1"), 3)).error_code == 0
                    assert len(left()) > before
                await until(lambda: not node.server.connections)
                assert len(left()) == before
    finally:
        gc.enable()
