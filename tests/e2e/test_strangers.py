"""Strangers against members: peers that never log in do what is drawn, in large numbers, while clients that
have logged in work, others log in, and the daemon's memory stays within its bound."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from ringleader.protocol import messages as kafka
from ringleader.protocol.frames import encode_request
from tests.coordinator.server.test_strangers import client_hello
from tests.coordinator.server.test_throttle import produce
from tests.support.certificates import Certificates
from tests.support.daemon import Daemon
from tests.support.groupclient import Member, form
from tests.support.ports import free_ports
from tests.support.registered import ALICE, PASSWORD, ScramClient
from tests.support.served import Client

STRANGERS = 2_400
ROUND = 80
POOL_BYTES = 16_777_216
FRAME_BYTES = 524_288
MEMORY_BYTES = 2 * POOL_BYTES + 33_554_432
"""More than at the beginning: what the allocator keeps, and connections that are about to be closed, come on
top of the pool."""

HELLO = client_hello()
VERSIONS = encode_request(kafka.ApiVersionsRequest(), 0, 1, "stranger")
HANDSHAKE = encode_request(kafka.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1, 2, "stranger")
HALF_LOGIN = HANDSHAKE + encode_request(
    kafka.SaslAuthenticateRequest(auth_bytes=ScramClient().first), 2, 3, "stranger"
)
OPENINGS: dict[str, Callable[[random.Random], bytes]] = {
    "nothing": lambda drawn: b"",
    "a part of a hello": lambda drawn: HELLO[: drawn.randrange(1, len(HELLO))],
    "a hello": lambda drawn: HELLO,
    "garbage": lambda drawn: drawn.randbytes(drawn.randrange(1, 4_096)),
    "the largest frame but for a byte": lambda drawn: struct.pack(">i", FRAME_BYTES) + bytes(FRAME_BYTES - 1),
    "a part of a frame": lambda drawn: (
        struct.pack(">i", drawn.randrange(1, FRAME_BYTES)) + bytes(drawn.randrange(65_536))
    ),
    "ApiVersions again and again": lambda drawn: VERSIONS * drawn.randrange(1, 5_000),
    "SaslHandshake again and again": lambda drawn: HANDSHAKE * drawn.randrange(1, 5_000),
    "half a login": lambda drawn: HALF_LOGIN,
    "a login with a wrong end": lambda drawn: HALF_LOGIN + drawn.randbytes(500),
}


async def stranger(port: int, drawn: random.Random) -> socket.socket | None:
    """One that has said what it says, and does not read."""
    opening = OPENINGS[drawn.choice(list(OPENINGS))](drawn)
    loop = asyncio.get_running_loop()
    one = socket.socket()
    one.setblocking(False)
    with contextlib.suppress(ConnectionError, TimeoutError):
        await loop.sock_connect(one, ("127.0.0.1", port))
        async with asyncio.timeout(5):
            await loop.sock_sendall(one, opening)
    if drawn.random() < 0.2:
        one.close()
        return None
    return one


async def member(port: int, certificates: Certificates, tls: bool) -> Client:
    context = certificates.client_tls() if tls else None
    client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=context))
    scram = ScramClient()
    assert (await client.call(kafka.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)).error_code == 0
    first = await client.call(kafka.SaslAuthenticateRequest(auth_bytes=scram.first), 2)
    last = kafka.SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes))
    assert (await client.call(last, 2)).error_code == 0
    return client


async def work(client: Client) -> None:
    answer = await client.call(produce(), 9)
    [[result]] = [topic.partition_responses for topic in answer.responses]
    assert result.error_code == 0


async def guarded(
    directory: Path, plain: int, metrics: int, certificates: Certificates, **more: str
) -> Daemon:
    """A daemon that Alice can log in to, with TLS and without; not started yet."""
    command = [
        sys.executable,
        "-m",
        "ringleader",
        "users",
        "add",
        ALICE,
        "--data-dir",
        str(directory / "data"),
    ]
    pipe = asyncio.subprocess.PIPE
    adding = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=subprocess.DEVNULL)
    await adding.communicate(PASSWORD.encode() + b"\n")
    options = {
        "ssl-keystore-location": certificates.server,
        "connections-unauthenticated-max-bytes": POOL_BYTES,
        "authorizer": "acl",
        "super-users": f"User:{ALICE}",
        "group-initial-rebalance-delay-ms": 0,
        "http-listen": f"127.0.0.1:{metrics}",
        **more,
    }
    return Daemon(
        directory,
        topics=["orders:1"],
        options=[text for name, value in options.items() for text in (f"--{name}", str(value))],
        listener="SASL_SSL",
        beside=f"SASL_PLAINTEXT://127.0.0.1:{plain}",
    )


async def held_by_strangers(metrics: int) -> int:
    """As the daemon says."""
    reader, writer = await asyncio.open_connection("127.0.0.1", metrics)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    page = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    found = re.search(r"^ringleader_unauthenticated_held_bytes (\S+)$", page, re.MULTILINE)
    assert found is not None, page
    return int(float(found[1]))


async def nothing_is_held(metrics: int) -> None:
    async with asyncio.timeout(60):
        while await held_by_strangers(metrics):  # noqa: ASYNC110 - the daemon says it when it is asked
            await asyncio.sleep(0.05)


async def test_strangers_against_members(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    certificates = Certificates(tmp_path / "certificates")
    plain, metrics = free_ports(2)
    daemon = await guarded(tmp_path, plain, metrics, certificates)
    await asyncio.to_thread(daemon.start)
    here: list[socket.socket] = []
    members: list[Client] = []
    try:
        members = [await member(plain, certificates, False), await member(daemon.port, certificates, True)]
        for one in members:
            await work(one)
        process = psutil.Process(daemon.pid)
        before = most = process.memory_info().rss
        for _ in range(STRANGERS // ROUND):
            coming = [stranger(drawn.choice((plain, daemon.port)), drawn) for _ in range(ROUND)]
            going = asyncio.gather(*coming)
            while not going.done():
                for one in members:
                    await work(one)
                most = max(most, process.memory_info().rss)
            here += [one for one in going.result() if one is not None]
            newcomer = await member(
                *drawn.choice(((plain, certificates, False), (daemon.port, certificates, True)))
            )
            await work(newcomer)
            await newcomer.close()
        for one in members:
            await work(one)
        print(f"memory: {before:,} and {most - before:,} more at most")
        assert most - before <= MEMORY_BYTES
        for open_one in here:
            open_one.close()
        await nothing_is_held(metrics)
    finally:
        for open_one in here:
            open_one.close()
        for one in members:
            await one.close()
        await asyncio.to_thread(daemon.stop)
    assert daemon.log().count("a peer that has not authenticated was closed") < 100


SILENT = ((True, b""), (False, b""), (True, HELLO[: len(HELLO) // 2]), (True, HELLO), (False, HALF_LOGIN))
"""Whether peers come to the port with TLS, and what they say before they fall silent."""
SILENT_PEERS = 1_500
LOGINS = 16


async def fall_silent(port: int, opening: bytes) -> socket.socket:
    loop = asyncio.get_running_loop()
    one = socket.socket()
    one.setblocking(False)
    await loop.sock_connect(one, ("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):
        await loop.sock_sendall(one, opening)
    return one


async def test_clients_log_in_and_work_in_the_middle_of_silent_peers(tmp_path: Path, seed: int) -> None:
    """More of those come than the pool has room for; not one client is closed."""
    drawn = random.Random(seed)
    certificates = Certificates(tmp_path / "certificates")
    plain, metrics = free_ports(2)
    patient = {"tls-handshake-timeout-ms": "600000", "sasl-authentication-timeout-ms": "600000"}
    daemon = await guarded(tmp_path, plain, metrics, certificates, **patient)
    await asyncio.to_thread(daemon.start)
    here: list[socket.socket] = []
    clients: list[tuple[Client, Member]] = []

    async def flood() -> None:
        for _ in range(SILENT_PEERS):
            tls, opening = drawn.choice(SILENT)
            here.append(await fall_silent(daemon.port if tls else plain, opening))
            await asyncio.sleep(0)

    try:
        coming = asyncio.create_task(flood())
        for number in range(LOGINS):
            tls = number % 2 == 1
            client = await member(daemon.port if tls else plain, certificates, tls)
            clients.append((client, await form(client, f"group-{number}")))
            for one, joined in (clients[-1], drawn.choice(clients)):
                [topic] = (await one.call(joined.commit(number), 8)).topics
                assert topic.partitions[0].error_code == 0
                assert (await one.call(joined.heartbeat(), 3)).error_code == 0
        await coming
        assert await held_by_strangers(metrics) > 0
        for one, joined in clients:
            assert (await one.call(joined.heartbeat(), 3)).error_code == 0
        for silent in here:
            silent.close()
        await nothing_is_held(metrics)
        for one, joined in clients:
            assert (await one.call(joined.heartbeat(), 3)).error_code == 0
    finally:
        for silent in here:
            silent.close()
        for one, _ in clients:
            await one.close()
        await asyncio.to_thread(daemon.stop)
    assert "they hold more than connections.unauthenticated.max.bytes" in daemon.log()
    assert "authentication failed" not in daemon.log()
