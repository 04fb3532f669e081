"""Clients that send more than a request while it is being answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from ringleader.host.http_server import HttpServer, bound
from tests.support.served import until

PATIENCE_S = 20.0
LARGE = b"x" * 20_000_000
"""More than the operating system takes for a client that does not read."""


class Application:
    """Answers once it may, and keeps what it was told."""

    def __init__(self, body: bytes = b"well") -> None:
        self.requested, self.may_answer, self.answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.messages: list[str] = []
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requested.set()
        await self.may_answer.wait()
        self.messages.append((await receive())["type"])
        headers = [(b"content-length", b"%d" % len(self._body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
        self.answered.set()


@contextlib.asynccontextmanager
async def serving(
    application: Application, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[tuple[HttpServer, asyncio.StreamReader, asyncio.StreamWriter]]:
    """And a connection to it. The server ends well, and logs no error."""
    listening = bound("127.0.0.1", 0, 1)
    server = HttpServer(application, listening, connections_max=9)
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            yield server, reader, writer
        finally:
            writer.close()
            server.should_exit = True
            await task
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def the_connection(server: HttpServer) -> Any:
    """The server's one, once it has it."""
    await until(lambda: bool(server.server_state.connections))
    [connection] = server.server_state.connections
    return connection


@pytest.mark.parametrize("more", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x00\x16 no HTTP\r\n\r\n"])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("last", ["HTTP/1.0\r\n", "HTTP/1.1\r\nConnection: close\r\n"])
async def test_the_last_request_is_answered_whatever_comes_behind_it(
    last: str, at_once: bool, more: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    application = Application()
    async with serving(application, caplog) as (_, reader, writer):
        request = f"GET / {last}Host: a\r\n\r\n".encode()
        writer.write(request + (more if at_once else b""))
        await application.requested.wait()
        if not at_once:
            writer.write(more)
            await asyncio.sleep(0.05)  # it comes, and nothing tells of it
        application.may_answer.set()
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"well")
    assert answer.count(b"HTTP/1.1") == 1


async def test_what_answers_is_told_that_the_rest_of_its_request_is_no_http(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client has not read all answers yet, so that the connection stays for a while."""
    application = Application(b"x" * 60_000)
    application.may_answer.set()
    async with serving(application, caplog) as (server, reader, writer):
        connection = await the_connection(server)
        while not connection.transport.get_write_buffer_size():
            application.answered.clear()
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await application.answered.wait()
        for event in (application.requested, application.may_answer, application.answered):
            event.clear()
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        await application.requested.wait()
        writer.write(b"no length\r\n")
        await until(connection.transport.is_closing)
        application.may_answer.set()
        await application.answered.wait()
        *_, last = (await reader.read()).split(b"HTTP/1.1 ")
    assert last.startswith(b"400 ")
    assert application.messages[-1] == "http.disconnect"


async def test_a_server_ends_while_a_refusal_waits_for_its_reader(caplog: pytest.LogCaptureFixture) -> None:
    application = Application(LARGE)
    application.may_answer.set()
    async with serving(application, caplog) as (server, _, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        connection = await the_connection(server)
        writer.write(b"no HTTP\r\n\r\n")
        await until(connection.transport.is_closing)
