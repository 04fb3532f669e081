"""A large answer wakes the loop when there is much of it, and nothing else waits for that."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.clients.connection.connection import Connection, open_connection
from ringleader.clients.connection.incoming import Incoming
from ringleader.clients.connection.low_water import LEAST_BYTES, is_reliable
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ConnectionLostError, RequestTimedOutError
from ringleader.protocol.messages import HeartbeatRequest
from tests.support.certificates import Certificates
from tests.support.scripted_broker import CLOSE, ScriptedBroker

SIZE = 1024 * 1024
PIECE = 16 * 1024
RAW = Request(HeartbeatRequest, lambda _version: HeartbeatRequest(group_id="g"), raw=True)
Send = Callable[[bytes], Awaitable[None]]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Watched(Connection):
    """One that tells of each receive."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.receives = 0
        self.received = asyncio.Event()

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        self.receives += 1
        self.received.set()

    @property
    def mark(self) -> int:
        """The bytes that have to be there before the loop is woken."""
        assert self._transport is not None
        sock: socket.socket = self._transport.get_extra_info("socket")
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@asynccontextmanager
async def fetching(
    answer: Callable[[Send, bytes], Awaitable[Any]],
    *,
    server_tls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Watched]:
    """A connection to a broker that sends an answer of `SIZE` bytes as `answer` does."""

    async def send(data: bytes) -> None:
        [writer] = broker.writers
        writer.write(data)
        await writer.drain()

    async def reply(_request: Any, _version: int, number: int) -> Any:
        return await answer(send, (SIZE - 4).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(SIZE - 8))

    async with ScriptedBroker({12: reply}, tls=server_tls) as broker:
        connection = await open_connection(
            "127.0.0.1", broker.port, client_id="t", timeout_s=5.0, tls=tls, make=Watched
        )
        assert isinstance(connection, Watched)
        try:
            yield connection
        finally:
            connection.close()


async def test_a_large_answer_wakes_the_loop_seldom() -> None:
    async def in_pieces(send: Send, data: bytes) -> None:
        for start in range(0, SIZE, PIECE):
            await send(data[start : start + PIECE])
            for _ in range(3):  # turns in which the other side could receive it
                await asyncio.sleep(0)

    async with fetching(in_pieces) as connection:
        before = connection.receives
        answer = await connection.ask(RAW, 5)
        assert len(answer.frame) == SIZE - 4
        assert connection.receives - before < SIZE // PIECE / 4
        assert connection.mark == 1


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
async def test_the_mark_is_there_for_the_answer_only(encrypted: bool, certificates: Certificates) -> None:
    """With TLS it is left alone."""
    go_on = asyncio.Event()

    async def half(send: Send, data: bytes) -> None:
        await send(data[: SIZE // 2])
        await go_on.wait()
        await send(data[SIZE // 2 : SIZE - PIECE])
        await send(data[SIZE - PIECE :])

    server_tls = certificates.server_tls() if encrypted else None
    tls = certificates.client_tls() if encrypted else None
    async with fetching(half, server_tls=server_tls, tls=tls) as connection:
        assert connection.mark == 1
        connection.received.clear()
        answer = asyncio.create_task(connection.ask(RAW, 5))
        await connection.received.wait()
        if encrypted:
            assert connection.mark == 1
        else:
            assert LEAST_BYTES <= connection.mark < SIZE
        go_on.set()
        assert len((await answer).frame) == SIZE - 4
        assert connection.mark == 1


async def test_a_broker_that_hangs_up_in_the_middle_of_an_answer() -> None:
    async def half(send: Send, data: bytes) -> Any:
        await send(data[: SIZE // 2])
        return CLOSE

    async with fetching(half) as connection:
        with pytest.raises(ConnectionLostError, match="closed by"):
            await connection.ask(RAW, 5)


async def test_a_broker_that_stops_in_the_middle_of_an_answer() -> None:
    async def half(send: Send, data: bytes) -> None:
        await send(data[: SIZE // 2])

    async with fetching(half) as connection:
        with pytest.raises(RequestTimedOutError, match=r"0.1 s"):
            await connection.ask(RAW, 5, request_timeout_s=0.1)
        assert connection.ended.is_set()


async def test_an_answer_that_fills_the_kernels_room() -> None:
    """A socket that has room for less than is waited for."""

    async def whole(send: Send, data: bytes) -> None:
        await send(data)

    async with fetching(whole) as connection:
        assert connection._transport is not None
        sock: socket.socket = connection._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LEAST_BYTES)
        assert len((await connection.ask(RAW, 5)).frame) == SIZE - 4


def test_how_much_is_missing() -> None:
    incoming = Incoming()
    missing = []
    for part in (b"\0\0", b"\0\x0a", b"1234", b"567890"):
        incoming.room()[: len(part)] = part
        incoming.received(len(part))
        missing.append(incoming.missing_bytes)
    assert missing == [0, 10, 6, 0]


@pytest.mark.parametrize(
    ("platform", "release", "reliable"),
    [
        ("linux", "5.12.0", True),
        ("linux", "6.1.0-13-amd64", True),
        ("linux", "5.11.22", False),
        ("linux", "4.4.0", False),
        ("linux", "", False),
        ("darwin", "23.1.0", False),
    ],
)
def test_systems_whose_sockets_wait_for_ever(platform: str, release: str, reliable: bool) -> None:
    assert is_reliable(platform, release) is reliable
