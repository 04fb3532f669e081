"""A page over a made history, and a plain HTTP client."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit


class Answer(NamedTuple):
    """An answer to a request."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


async def ask(
    url: str,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    **params: str | float,
) -> Answer:
    """One request on a connection of its own."""
    place = urlsplit(url)
    query = f"?{urlencode(params)}" if params else ""

    def send() -> Answer:
        connection = (
            http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
            if tls is None
            else http.client.HTTPSConnection(str(place.hostname), place.port, timeout=60, context=tls)
        )
        try:
            connection.request(method, f"{path}{query}", body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    return await asyncio.to_thread(send)


async def ready(url: str) -> None:
    """Once the history has been read."""
    async with asyncio.timeout(60):
        while (await ask(url, "/health")).status != 200:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


class Stream:
    """Server-sent events."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self, *kinds: str) -> tuple[str, str, Any]:
        """Number, kind and data of the next message, of one of these kinds if any are given."""
        async with asyncio.timeout(60):
            found: dict[str, str] = {}
            while True:
                # Chunk sizes of the transfer encoding fit no field and are passed over.
                line = (await self._reader.readline()).decode().rstrip("\r\n")
                name, colon, value = line.partition(": ")
                if colon:
                    found[name] = value
                elif not line and "data" in found:
                    if not kinds or found["event"] in kinds:
                        return found["id"], found["event"], json.loads(found["data"])
                    found = {}


@asynccontextmanager
async def looking_on(url: str, last: str | None = None) -> AsyncIterator[Stream]:
    """The changes from now on, or after message number `last`."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    again = f"Last-Event-ID: {last}\r\n" if last else ""
    writer.write(f"GET /api/live HTTP/1.1\r\nHost: {place.netloc}\r\n{again}\r\n".encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    while (await reader.readline()).strip():
        pass
    try:
        yield Stream(reader)
    finally:
        writer.close()
        await writer.wait_closed()
