"""Strangers against members: peers that never log in do what is drawn, in large numbers, while clients that
have logged in work, others log in, and the daemon's memory stays within its bound."""

from __future__ import annotations

import asyncio
import contextlib
import random
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
from tests.support.registered import ALICE, PASSWORD, ScramClient
from tests.support.served import Client

STRANGERS = 2_400
ROUND = 80
POOL_BYTES = 16_777_216
FRAME_BYTES = 524_288
MEMORY_BYTES = 3 * POOL_BYTES + 33_554_432
"""More than at the beginning: what the allocator keeps, and connections that are about to be closed, come on
top of the pool."""

HELLO = client_hello()
VERSIONS = encode_request(kafka.ApiVersionsRequest(), 0, 1, "stranger")
HANDSHAKE = encode_request(kafka.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1, 2, "stranger")
HALF_LOGIN = HANDSHAKE + encode_request(
    kafka.SaslAuthenticateRequest(auth_bytes=ScramClient().first), 2, 3, "stranger"
)
SAID: dict[str, Callable[[random.Random], bytes]] = {
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
    said = SAID[drawn.choice(list(SAID))](drawn)
    loop = asyncio.get_running_loop()
    one = socket.socket()
    one.setblocking(False)
    with contextlib.suppress(ConnectionError, TimeoutError):
        await loop.sock_connect(one, ("127.0.0.1", port))
        async with asyncio.timeout(5):
            await loop.sock_sendall(one, said)
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


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def test_strangers_against_members(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    certificates = Certificates(tmp_path / "certificates")
    command = [
        sys.executable,
        "-m",
        "ringleader",
        "users",
        "add",
        ALICE,
        "--data-dir",
        str(tmp_path / "data"),
    ]
    pipe = asyncio.subprocess.PIPE
    adding = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=subprocess.DEVNULL)
    await adding.communicate(PASSWORD.encode() + b"\n")
    plain = free_port()
    options = {
        "ssl-keystore-location": certificates.server,
        "connections-unauthenticated-max-bytes": POOL_BYTES,
        "authorizer": "acl",
        "super-users": f"User:{ALICE}",
    }
    daemon = Daemon(
        tmp_path,
        topics=["orders:1"],
        options=[text for name, value in options.items() for text in (f"--{name}", str(value))],
        listener="SASL_SSL",
        beside=f"SASL_PLAINTEXT://127.0.0.1:{plain}",
    )
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
    finally:
        for open_one in here:
            open_one.close()
        for one in members:
            await one.close()
        await asyncio.to_thread(daemon.stop)
    assert daemon.log().count("a peer that has not authenticated was closed") < 100
