"""Principals that come through TLS and SASL, each by a mechanism of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.protocol import messages as kafka
from tests.support.registered import ScramClient
from tests.support.requests_of_all import ALICE, BOB, CAROL, MALLORY
from tests.support.served import Client

LISTENER, PROTOCOL = "SECURE", "SASL_SSL"
PLAIN = "PLAIN"
MECHANISM_OF: Mapping[str, str] = {
    ALICE: "SCRAM-SHA-512",
    BOB: PLAIN,
    CAROL: "SCRAM-SHA-256",
    MALLORY: "SCRAM-SHA-512",
}
OFFERED = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def password_of(name: str) -> str:
    """Of its own."""
    return f"the password of {name}"


@dataclass(frozen=True, slots=True)
class Entrance:
    """A listener of SASL_SSL, and what its clients trust."""

    host: str
    port: int
    tls: ssl.SSLContext

    @contextlib.asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[Client]:
        """A client that has said who it is."""
        client = Client(*await self.open(name))
        try:
            yield client
        finally:
            await client.close()

    async def open(self, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that has said who it is."""
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        client = Client(reader, writer)
        mechanism = MECHANISM_OF[name]
        hello = await client.call(kafka.SaslHandshakeRequest(mechanism=mechanism), 1)
        assert hello.error_code == 0
        if mechanism == PLAIN:
            await _token(client, f"\0{name}\0{password_of(name)}".encode())
            return reader, writer
        scram = ScramClient(name, password_of(name), MECHANISMS[mechanism])
        await _token(client, scram.final(await _token(client, scram.first)))
        return reader, writer


async def _token(client: Client, data: bytes) -> bytes:
    answer = await client.call(kafka.SaslAuthenticateRequest(auth_bytes=data), 2)
    assert answer.error_code == 0, answer.error_message
    return bytes(answer.auth_bytes)
