"""Attacks on listeners that authenticate: they cost the attacker more than the others, whose heartbeats are
answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.security.scram import MAX_ITERATIONS, MECHANISMS, SHA_512
from ringleader.coordinator.server.connection import BLOCKED, FLUSH_BYTES
from ringleader.coordinator.server.handlers import security as security_handlers
from ringleader.coordinator.server.handshakes import Arrival, Handshakes
from ringleader.coordinator.server.sasl import Sasl
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    DescribeGroupsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.support.certificates import Certificates
from tests.support.groupclient import Member, form
from tests.support.registered import ALICE, PASSWORD, ScramClient, credential, registered
from tests.support.served import Client, Served, connected, serving, until

ELSEWHERE = "127.0.0.2"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.asynccontextmanager
async def attacked(certificates: Certificates, directory: Path, **settings: Any) -> AsyncIterator[Served]:
    """A server of TLS, of SASL, and of neither, in this order."""
    chosen = {
        "listeners": "SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl_keystore_location": certificates.server,
        "sasl_enabled_mechanisms": "SCRAM-SHA-512,PLAIN",
        "sasl_cleartext_without_tls": True,
        "connection_failed_authentication_delay_ms": 0,
        **settings,
    }
    security = await registered(directory)
    strongest = credential(SHA_512, iterations=MAX_ITERATIONS)
    await security.users.change({ALICE: {SHA_512.name: strongest}})
    async with serving(handlers=security_handlers.register, sasl=Sasl(security.users), **chosen) as served:
        yield served


@contextlib.asynccontextmanager
async def member_of(served: Served) -> AsyncIterator[tuple[Client, Member]]:
    """A bystander at work, through the listener that asks nothing."""
    async with connected(*served.server.listeners[2].address) as client:
        yield client, await form(client, "bystanders")


async def beats(client: Client, member: Member) -> None:
    assert (await client.call(member.heartbeat(), 3)).error_code == 0


@contextlib.asynccontextmanager
async def coming(
    served: Served, listener: int, source: str = "127.0.0.1", **more: Any
) -> AsyncIterator[Client]:
    address = served.server.listeners[listener].address
    client = Client(*await asyncio.open_connection(*address, local_addr=(source, 0), **more))
    try:
        yield client
    finally:
        await client.close()


# ---- handshakes ----


async def test_a_flood_of_whole_handshakes_leaves_turns_for_heartbeats(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between one heartbeat and the next there are no more handshakes than a few turns of the loop have."""
    at_once = 5
    begun: list[str] = []
    begin = Handshakes._begin

    def counted(self: Handshakes, arrival: Arrival) -> None:
        begun.append(arrival.address)
        begin(self, arrival)

    monkeypatch.setattr(Handshakes, "_begin", counted)
    async with (
        attacked(certificates, tmp_path, tls_max_handshakes=at_once) as served,
        coming(served, 0, ssl=certificates.client_tls()) as client,
    ):
        member = await form(client, "bystanders")
        command = ("-m", "tests.support.handshake_flood", served.host, str(served.port), ELSEWHERE, "20")
        flood = await asyncio.create_subprocess_exec(sys.executable, *command)
        try:
            await until(lambda: begun.count(ELSEWHERE) > 50)
            between = []
            for _ in range(50):
                before = len(begun)
                await beats(client, member)
                between.append(len(begun) - before)
            async with coming(served, 0, ssl=certificates.client_tls()) as newcomer:
                assert (await newcomer.call(ApiVersionsRequest(), 0)).error_code == 0
        finally:
            flood.kill()
            await flood.wait()
        assert begun.count(ELSEWHERE) > 50 + sum(between) / 2
        assert max(between) <= 10 * at_once
        await until(lambda: not len(served.server.handshakes) and len(served.server.connections) == 1)
        assert served.server.held_bytes == 0


def hello(version: bytes, ciphers: bytes, record: bytes = b"\x03\x01") -> bytes:
    """A ClientHello without extensions."""
    body = version + bytes(32) + b"\0" + struct.pack(">H", len(ciphers)) + ciphers + b"\1\0"
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    return b"\x16" + record + struct.pack(">H", len(message)) + message


OLD, NEW = b"\x00\x0a\x00\x2f", b"\xc0\x2b\xc0\x2c"
FALLBACK = b"\x56\x00"
"""TLS_FALLBACK_SCSV: the client has tried a newer version before (RFC 7507)."""
ALERT, HANDSHAKE_FAILURE, PROTOCOL_VERSION, INAPPROPRIATE_FALLBACK = b"\x15", 40, 70, 86


@pytest.mark.parametrize(
    ("message", "alert"),
    [
        pytest.param(hello(b"\x03\x00", OLD, b"\x03\x00"), HANDSHAKE_FAILURE, id="SSL 3.0"),
        pytest.param(hello(b"\x03\x01", OLD), PROTOCOL_VERSION, id="TLS 1.0"),
        pytest.param(hello(b"\x03\x02", NEW), PROTOCOL_VERSION, id="TLS 1.1"),
        pytest.param(hello(b"\x03\x03", NEW + FALLBACK), INAPPROPRIATE_FALLBACK, id="a forced fallback"),
        pytest.param(hello(b"\x03\x03", OLD), HANDSHAKE_FAILURE, id="no forward secrecy"),
        pytest.param(
            b"\x80\x1c\x01\x00\x02\x00\x03\x00\x00\x00\x10\x07\x00\xc0" + bytes(16), None, id="SSL 2.0"
        ),
        pytest.param(b"\x16\x03\x01\xff\xff" + b"\x01" * 200, None, id="a record that is too long"),
        pytest.param(b"\x14\x03\x03\x00\x01\x01", None, id="another record first"),
    ],
)
async def test_no_older_protocol(
    certificates: Certificates, tmp_path: Path, message: bytes, alert: int | None
) -> None:
    async with attacked(certificates, tmp_path) as served, coming(served, 0) as client:
        client.writer.write(message)
        answer = await client.rest()
        if alert is not None:
            assert (answer[:1], answer[-1]) == (ALERT, alert)
        await until(lambda: served.server.handshakes.failed == 1)
        assert len(served.events("TLS handshake failed")) == 1
        assert not served.server.connections


async def test_nobody_renegotiates(certificates: Certificates, tmp_path: Path) -> None:
    """With TLS 1.2 a client could ask for handshake after handshake on one connection."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("There is no openssl, the command: no other client asks for a renegotiation")
    async with attacked(certificates, tmp_path) as served, member_of(served) as (client, member):
        connect = ("s_client", "-tls1_2", "-connect", f"{served.host}:{served.port}")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            openssl, *connect, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(20):
            await process.stdout.readuntil(b"Verify return code")
            process.stdin.write(b"R\n")
            output = await process.stdout.read()
            await process.wait()
        assert b"RENEGOTIATING" in output
        assert b"no renegotiation" in output
        await beats(client, member)


async def test_a_peer_of_tls_that_takes_no_answers_holds_no_more_than_its_bound(
    certificates: Certificates, tmp_path: Path
) -> None:
    bound = 16_384
    async with (
        attacked(certificates, tmp_path, connection_output_max_bytes=bound) as served,
        member_of(served) as (bystander, member),
        coming(served, 0, ssl=certificates.client_tls()) as greedy,
    ):
        request = DescribeGroupsRequest(groups=[f"nobody's {number}" for number in range(2_000)])
        answer_bytes = len(await _answer(greedy, request))
        [connection] = [one for one in served.server.connections if one.listener.name == "SSL"]
        # So that it does not take megabytes until the sockets of both ends are full.
        for transport, buffer in (
            (connection._transport, socket.SO_SNDBUF),
            (greedy.writer.transport, socket.SO_RCVBUF),
        ):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, buffer, bound)
        sent, most = 1, 0
        while sent < 10 or not connection._state & BLOCKED:
            sent = greedy.send(request, 5)
            await beats(bystander, member)
        for _ in range(20):
            sent = greedy.send(request, 5)
            await beats(bystander, member)
            most = max(most, connection._transport.get_write_buffer_size())
        # The bytes that one turn of the loop hands over come on top.
        assert most <= bound + 2 * (answer_bytes + FLUSH_BYTES)
        # All of them are answered once it takes them.
        for number in range(2, sent + 1):
            assert int.from_bytes((await greedy.frame())[:4], "big") == number
            await beats(bystander, member)


async def _answer(client: Client, request: DescribeGroupsRequest) -> bytes:
    client.send(request, 5)
    return await client.frame()


# ---- SASL ----


def plain(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


async def shaken(client: Client, mechanism: str) -> Client:
    assert (await client.call(SaslHandshakeRequest(mechanism=mechanism), 1)).error_code == 0
    return client


async def test_a_flood_of_passwords_keeps_nobody_from_elsewhere_waiting(
    certificates: Certificates, tmp_path: Path
) -> None:
    count = 60
    async with (
        attacked(certificates, tmp_path) as served,
        member_of(served) as (bystander, member),
        contextlib.AsyncExitStack() as stack,
    ):
        sasl = served.server.sasl
        assert sasl is not None
        guessing = [await stack.enter_async_context(coming(served, 1, ELSEWHERE)) for _ in range(count)]
        for client in guessing:
            await shaken(client, "PLAIN")
        async with coming(served, 1) as alice:
            await shaken(alice, "PLAIN")
            for client in guessing:
                client.send(SaslAuthenticateRequest(auth_bytes=plain(ALICE, "a guess")), 2)
            answer = await alice.call(SaslAuthenticateRequest(auth_bytes=plain(ALICE, PASSWORD)), 2)
            assert answer.error_code == 0
            assert sasl.failed < count / 2
            await beats(bystander, member)
        # A client that hangs up has nothing more checked.
        await stack.aclose()
        await until(lambda: len(served.server.connections) == 1)
        assert served.server.held_bytes == 0


async def test_strangers_hold_no_more_memory_than_all_may(certificates: Certificates, tmp_path: Path) -> None:
    limit = 1_048_576
    async with (
        attacked(certificates, tmp_path, queued_max_request_bytes=limit) as served,
        member_of(served) as (bystander, member),
        contextlib.AsyncExitStack() as stack,
    ):
        begun = struct.pack(">i", 524_288) + bytes(400_000)
        strangers = [await stack.enter_async_context(coming(served, 1, ELSEWHERE)) for _ in range(8)]
        for client in strangers:
            client.writer.write(begun)
            await beats(bystander, member)
        await until(lambda: len(served.events("connection closed")) >= 6)
        assert served.server.held_bytes <= limit
        assert all("the most of" in line["reason"] for line in served.events("connection closed"))
        await beats(bystander, member)


async def test_what_waits_to_be_checked_counts_as_held(certificates: Certificates, tmp_path: Path) -> None:
    limit = 1_048_576
    async with (
        attacked(certificates, tmp_path, queued_max_request_bytes=limit) as served,
        member_of(served) as (bystander, member),
        contextlib.AsyncExitStack() as stack,
    ):
        # Checking takes long enough for them to wait for each other.
        long = plain(ALICE, "x" * 60_000)
        strangers = [await stack.enter_async_context(coming(served, 1, ELSEWHERE)) for _ in range(40)]
        for client in strangers:
            await shaken(client, "PLAIN")
        for client in strangers:
            client.send(SaslAuthenticateRequest(auth_bytes=long), 2)
        await until(lambda: bool(served.events("connection closed")))
        assert "the most of" in served.events("connection closed")[0]["reason"]
        await beats(bystander, member)


async def test_a_recorded_login_is_good_for_nothing(certificates: Certificates, tmp_path: Path) -> None:
    """Word for word, with the same nonce of the client."""
    async with attacked(certificates, tmp_path) as served:
        scram = ScramClient()
        messages: list[bytes] = []
        async with coming(served, 1) as client:
            await shaken(client, "SCRAM-SHA-512")
            first = await client.call(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
            messages = [scram.first, scram.final(first.auth_bytes)]
            assert (await client.call(SaslAuthenticateRequest(auth_bytes=messages[1]), 2)).error_code == 0
        for _ in range(3):
            async with coming(served, 1) as client:
                await shaken(client, "SCRAM-SHA-512")
                answers = [await client.call(SaslAuthenticateRequest(auth_bytes=one), 2) for one in messages]
                assert [one.error_code for one in answers] == [0, ErrorCode.SASL_AUTHENTICATION_FAILED]
                assert await client.rest() == b""
        assert served.server.sasl is not None
        assert (served.server.sasl.succeeded, served.server.sasl.failed) == (1, 3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_an_exchange_that_is_left_in_the_middle_leaves_nothing(
    certificates: Certificates, tmp_path: Path, mechanism: str
) -> None:
    settings = {"sasl_enabled_mechanisms": ",".join(MECHANISMS)}
    async with (
        attacked(certificates, tmp_path, **settings) as served,
        member_of(served) as (bystander, member),
    ):
        whole = ScramClient(mechanism=MECHANISMS[mechanism]).first
        for stop in range(0, len(whole), 7):
            async with coming(served, 1) as client:
                await shaken(client, mechanism)
                client.send(SaslAuthenticateRequest(auth_bytes=whole[:stop]), 2)
                await beats(bystander, member)
        await until(lambda: len(served.server.connections) == 1)
        assert served.server.held_bytes == 0
        assert served.server.sasl is not None
        assert served.server.sasl.succeeded == 0
