"""The bytes of a connection that arrive at the page of insight and at the daemon's endpoint."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from ringleader.coordinator.config import Address
from ringleader.coordinator.http import HttpEndpoint
from ringleader.coordinator.http_access import HttpAccess
from ringleader.coordinator.logs import get_log
from ringleader.host.http_server import HttpServer, bound
from ringleader.insight.web import params
from ringleader.insight.web.app import application
from ringleader.insight.web.guard import HEADERS
from ringleader.insight.web.questions import QUESTIONS
from ringleader.insight.web.sources import Places, Source
from tests.fuzz.mutation import changed_bytes, changed_parts, joined, parts_of
from tests.fuzz.target import Target, promise, scratch
from tests.insight.made import Made

TOKEN = "a-token-that-no-corpus-has-4711"
LOGGERS = ("uvicorn.error", "asyncio")
ANSWER_S, END_S = 0.3, 20.0
"""A stream goes on for as long as its client is there; when that is gone everything ends."""
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class _Complaints(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[BaseException | str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(
            record.exc_info[1] if record.exc_info and record.exc_info[1] else record.getMessage()
        )


class _World:
    """Three servers that nothing connects to: the page, the page and the endpoint with a token."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.complaints = _Complaints()
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self.complaints)
        directory = scratch()
        with Made(directory / "made.sqlite") as made:
            group = made.group("orders", {"orders": 3}, ["app-1", "app-2"])
            made.wait(30)
            group.crash("app-2")
            group.join("app-3")
            made.wait(30)
        self.servers = self.loop.run_until_complete(self._start(directory / "made.sqlite"))

    async def _start(self, history: Path) -> list[HttpServer]:
        self.places = Places([Source("", history)])
        [place] = self.places.all
        self.following = asyncio.ensure_future(place.live.run())
        while not place.live.ready:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        self.endpoint = HttpEndpoint(Address("127.0.0.1", 0), HttpAccess(TOKEN, None), get_log())
        answers = self.endpoint._routes().items()
        guarded = Starlette(routes=[Route(path, self.endpoint._guarded(answer)) for path, answer in answers])
        page = application(self.places)
        with_token = application(self.places, token=TOKEN)
        servers = [HttpServer(app, bound("127.0.0.1", 0, 1), connections_max=9, headers=HEADERS)
                   for app in (page, with_token, guarded)]  # fmt: skip
        for server in servers:
            server.config.load()
            await server.on_tick(0)
        return servers

    def close(self) -> None:
        for server in self.servers:
            server._listening.close()
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self.complaints)

        async def end() -> None:
            self.endpoint.side.close()
            [place] = self.places.all
            place.live.end()
            self.following.cancel()
            await asyncio.gather(self.following, return_exceptions=True)
            await place.close()

        self.loop.run_until_complete(end())
        self.loop.close()


_world: list[_World] = []


def close() -> None:
    """All of them."""
    while _world:
        _world.pop().close()


def world() -> _World:
    """The servers of this process."""
    if not _world:
        _world.append(_World())
    return _world[0]


def check(data: bytes) -> None:
    if not data:
        return
    here = world()
    here.complaints.errors.clear()
    number = data[0] % len(here.servers)
    answer = here.loop.run_until_complete(_connection(here.servers[number], parts_of(data[1:])))
    for error in here.complaints.errors:
        if isinstance(error, BaseException):
            raise error
        promise(False, error)
    if answer:
        promise(_STATUS.match(answer) or answer.startswith(b"HTTP/1.1 "), f"it begins with {answer[:60]!r}")
        head = answer.partition(b"\r\n\r\n")[0].lower()
        promise(b"x-content-type-options: nosniff" in head, f"an answer without the headers: {head!r:.300}")
    if number and TOKEN.encode() not in data:
        promise(b'"now_ms"' not in answer and b"\nringleader_ready" not in answer, "told without the token")


async def _connection(server: HttpServer, arrivals: list[bytes]) -> bytes:
    kind: Any = server.config.http_protocol_class
    state = server.server_state
    protocol = kind(config=server.config, server_state=state, app_state={})
    transport = _Transport()
    protocol.connection_made(transport)
    for data in arrivals[:20]:
        if data and not transport.closing:  # no loop hands over nothing
            protocol.data_received(data)
            await asyncio.sleep(0)
    if state.tasks:
        await asyncio.wait(set(state.tasks), timeout=ANSWER_S)
    protocol.connection_lost(None)
    if state.tasks:
        _, late = await asyncio.wait(set(state.tasks), timeout=END_S)
        promise(not late, "it goes on though its client is gone")
    promise(not state.connections, "a connection is left")
    return bytes(transport.written)


def seeds() -> Iterator[bytes]:
    paths = ["/", "/health", "/ready", "/metrics", "/metrics?group=a&groups=all", "/api/groups?gone=true",
    "/nothing",
             "/static/page.css", "/static/../app.py"]  # fmt: skip
    paths += [f"/api/{name}" for name in QUESTIONS]
    paths += [
        f"/api/{name}?group=orders&since=1790000000000&until=2027-01-01T00:00:00Z&limit=5"
        for name in QUESTIONS
    ]
    for number, path in enumerate(paths):
        head = f"GET {path} HTTP/1.1\r\nHost: localhost:1\r\n\r\n".encode()
        yield bytes((number % 3,)) + joined([head])
        yield b"\0" + joined([head])
    post = b"POST /api/session HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 5\r\n\r\n"
    yield b"\1" + joined([post, b"hello"])
    yield b"\1" + joined(
        [b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ringleader_page=99.x\r\n\r\n"]
    )
    yield b"\2" + joined([b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n"] * 2)
    yield b"\0" + joined([b"GET /api/live HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n\r\n"])


SEEDS = list(seeds())
_PARAMETERS = (
    "group",
    "since",
    "until",
    "limit",
    "gone",
    "id",
    "at",
    "columns",
    "first",
    "points",
    "topic",
    "partition",
)
WORDS = (
    *(f"/api/{name}".encode() for name in QUESTIONS), *(f"&{name}=".encode() for name in _PARAMETERS),
    b"?", b"&", b"=", b"%00", b"%ff", b"%", b"..%2f", b"\r\n", b"\n", b" ", b"HEAD ", b"POST ",
    b"OPTIONS ", b"HTTP/1.0", b"HTTP/2",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
    b"Range: bytes=5-1\r\n", b"Range: bytes=0-1,3-4\r\n", b"If-None-Match: *\r\n",
    b"If-Modified-Since: x\r\n",
    b"Accept-Encoding: gzip\r\n", b"Host: \xe4\r\n", b"Authorization: Bearer \xff\r\n",
    b"Cookie: ringleader_page=1.2\xff\r\n",
    b"Last-Event-ID: 99999999999999999\r\n", b"Sec-Fetch-Site: cross-site\r\n", b"-1", b"1e9", b"9" * 18,
    b"9" * 5_000, b"NaN",
    b"9999-12-31T23:59:59%2b00:00", b"0001-01-01", b"2026-W01-1", b"orders", b"app-1", b"true",
    b"5\r\nhello\r\n0\r\n\r\n",
)  # fmt: skip


def mutate(data: bytes, rng: Random) -> bytes:
    if not data or rng.random() < 0.1:
        data = rng.choice(SEEDS)
    head = data[:1] if rng.random() < 0.9 else bytes((rng.randrange(3),))
    if rng.random() < 0.05:
        whole = b"".join(parts_of(data[1:]))
        cut = rng.randrange(len(whole) + 1)
        return head + joined([whole[:cut], whole[cut : cut + 60_000]])
    return head + changed_parts(data[1:], rng, lambda part, rng: changed_bytes(part, rng, WORDS), 10)


def plant(patch: Any) -> None:
    """A number of a question is not looked at."""
    patch.setattr(
        params.Params,
        "__init__",
        lambda self, given, allowed: setattr(self, "_given", {"since": "1"} | given),
    )
    patch.setattr(
        params.Params, "flag", lambda self, name, default: {"true": True, "false": False}[self._given[name]]
    )


TARGET = Target(
    "http",
    "Whatever arrives on a connection, nothing is logged as an error; every answer has the headers that "
    "keep a "
    "browser safe, figures are for who knows the token, and all ends when the client has gone.",
    check,
    seeds,
    mutate,
    plant,
    close,
)
