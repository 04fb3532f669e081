"""Between the clients of one event loop and the brokers: answers get lost, requests are held back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

Chosen = Callable[[int], bool]
"""Whether something is to happen to a request of that API key."""


class Proxies:
    """One in front of each broker that is connected to. Set `loses` and `holds` at any time."""

    def __init__(self) -> None:
        self.loses: Chosen = lambda _api_key: False
        """The broker gets the request, and its answer never comes: the connection ends instead."""
        self.holds: Chosen = lambda _api_key: False
        """Neither this request nor what comes after it on its connection gets to the broker before
        `let_go`."""
        self.held = asyncio.Event()
        """A request is being held."""
        self.lost = 0
        self._free = asyncio.Event()
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def let_go(self) -> None:
        """Bytes that are held go on, and nothing is held any more."""
        self.holds = lambda _api_key: False
        self._free.set()

    async def address(self, host: str, port: int) -> tuple[str, int]:
        """Where to connect to instead."""
        if (host, port) not in self._servers:

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                self._tasks.add(task)
                try:
                    await self._serve(host, port, reader, writer)
                except asyncio.CancelledError:
                    pass  # `close`; a server of streams would report it
                finally:
                    self._tasks.discard(task)

            self._servers[host, port] = await asyncio.start_server(serve, "127.0.0.1", 0)
        server = self._servers[host, port]
        return "127.0.0.1", server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all."""
        for server in self._servers.values():
            server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        lost: list[bool] = []
        """Of the requests without an answer yet."""
        there: asyncio.StreamWriter | None = None
        try:
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
            back, there = await asyncio.open_connection(sock=sock)
            ways = [self._forth(reader, there, lost), self._back(back, writer, lost)]
            tasks = [asyncio.create_task(way) for way in ways]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except OSError:
            pass  # no broker there
        finally:
            for one in (writer, there):
                if one is not None:
                    one.close()
                    with suppress(OSError):
                        await one.wait_closed()

    async def _forth(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, lost: list[bool]
    ) -> None:
        while True:
            frame = await _frame(reader)
            api_key = int.from_bytes(frame[4:6], "big")
            if self.holds(api_key):
                self.held.set()
                await self._free.wait()
            lost.append(self.loses(api_key))
            there.write(frame)

    async def _back(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: list[bool]) -> None:
        while True:
            frame = await _frame(back)
            if lost.pop(0):
                self.lost += 1
                return
            writer.write(frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


@asynccontextmanager
async def proxies() -> AsyncIterator[Proxies]:
    """All connections that this event loop's clients open go through them."""
    loop = asyncio.get_running_loop()
    made, direct = Proxies(), loop.create_connection

    async def create_connection(factory: Any, host: Any, port: Any, **more: Any) -> Any:
        if host is None or port is None:  # a proxy's own, of a socket
            return await direct(factory, host, port, **more)
        return await direct(factory, *await made.address(host, port), **more)

    loop.create_connection = create_connection  # type: ignore[method-assign, assignment]
    try:
        yield made
    finally:
        loop.create_connection = direct  # type: ignore[method-assign]
        await made.close()
