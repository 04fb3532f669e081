"""Connections between processes that a test can spoil: a TCP proxy for each way from one process to another.

For what a network does to bytes. Where a single request is to be lost or held back, among clients of one
event loop, there are `tests.interop.cluster.proxies`, which know Kafka's frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.support.ports import free_ports

_READ_BYTES = 65_536
_AHEAD = 256
"""Pieces that wait for their time, before no more are read."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Way:
    """The fate of bytes that go one way."""

    cut: bool = False
    delay_s: float = 0.0
    drip_s: float | None = None
    """They come one by one, so far from each other."""


class Link:
    """From the client that connects to `address` on to `upstream`. Made by `Links.to`."""

    def __init__(self, links: Links, upstream: tuple[str, int]) -> None:
        self.upstream = upstream
        [self.port] = free_ports(1)
        self.opened = 0
        """Connections that came through so far."""
        self._links = links
        self._ways = {"there": Way(), "back": Way()}
        self._changed = asyncio.Event()
        self._half_open = False
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """HOST:PORT to connect to."""
        return f"127.0.0.1:{self.port}"

    # ---- from any thread ----

    def reset(self) -> None:
        """All connections end with a RST, on both sides; new ones are as good as ever."""
        self._links.run(self._reset())

    def refuse(self) -> None:
        """All connections end with a RST, and nobody listens until `heal`."""
        self._links.run(self._refuse())

    def half_open(self) -> None:
        """The other side is gone, and nobody here learns of it: bytes that are sent go nowhere, on new
        connections, too."""
        self._links.run(self._lose_the_other_side())

    def spoil(self, how: Way, way: str = "both") -> None:
        """From now on, for bytes that go "there", "back" or both. Bytes that a cut holds up are kept."""
        self._links.run(self._spoil(way, how))

    def heal(self) -> None:
        """Everything goes on. A connection whose other side is gone ends with a RST."""
        self._links.run(self._heal())

    # ---- on the loop of its links ----

    async def listen(self) -> None:
        """On the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=_READ_BYTES)

    async def close(self) -> None:
        """Of all that it has."""
        await self._refuse()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reset(self) -> None:
        for one in list(self._connections):
            one.end()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._reset()

    async def _lose_the_other_side(self) -> None:
        self._half_open = True
        for one in list(self._connections):
            one.lose()

    async def _spoil(self, way: str, how: Way) -> None:
        for name in ("there", "back") if way == "both" else (way,):
            self._ways[name] = how
        self._wake()

    async def _heal(self) -> None:
        self._ways = {"there": Way(), "back": Way()}
        if self._half_open:
            self._half_open = False
            await self._reset()
        self._wake()
        if self._server is None:
            await self.listen()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        one = _Connection(reader, writer)
        self._connections.add(one)
        self.opened += 1
        try:
            if not self._half_open:
                await one.join(self.upstream)
            await one.run(self)
        except (OSError, asyncio.CancelledError):
            pass  # as if nobody listened; or `close`, which a server of streams would report
        finally:
            one.end()
            self._connections.discard(one)
            self._tasks.discard(task)

    async def pump(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes that go one way, each in its time, until their sender has sent all."""
        queue: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue(_AHEAD)
        loop = asyncio.get_running_loop()

        async def take() -> None:
            data: bytes | None = b"?"
            while data:
                try:
                    data = await reader.read(_READ_BYTES)
                except OSError:
                    data = None
                await queue.put((loop.time() + self._ways[name].delay_s, data))

        taking = loop.create_task(take())
        try:
            while True:
                due_s, data = await queue.get()
                await asyncio.sleep(max(0.0, due_s - loop.time()))
                while self._ways[name].cut:
                    await self._changed.wait()
                if data is None:
                    raise ConnectionResetError
                if not data:
                    writer.write_eof()
                    return
                await self._send(name, data, writer)
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    async def _send(self, name: str, data: bytes, writer: asyncio.StreamWriter) -> None:
        while data and (drip_s := self._ways[name].drip_s) is not None:
            writer.write(data[:1])
            await writer.drain()
            data = data[1:]
            await asyncio.sleep(drip_s)
        if data:
            writer.write(data)
            await writer.drain()


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._near = (reader, writer)
        self._far: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._lost = asyncio.Event()

    async def join(self, upstream: tuple[str, int]) -> None:
        """Raises ``OSError`` if nobody listens there."""
        self._far = await asyncio.open_connection(*upstream, limit=_READ_BYTES)

    async def run(self, link: Link) -> None:
        """Until it is over."""
        if self._far is not None:
            ways = {
                asyncio.create_task(link.pump("there", self._near[0], self._far[1])),
                asyncio.create_task(link.pump("back", self._far[0], self._near[1])),
            }
            lost = asyncio.create_task(self._lost.wait())
            try:
                while ways and not lost.done():
                    done, _ = await asyncio.wait({*ways, lost}, return_when=asyncio.FIRST_COMPLETED)
                    ways -= done
                    if [error for task in done if (error := task.exception()) is not None]:
                        break
            finally:
                for task in (*ways, lost):
                    task.cancel()
                await asyncio.gather(*ways, lost, return_exceptions=True)
            if not self._lost.is_set():
                if not ways:
                    await self._close()
                return
        with contextlib.suppress(OSError):
            while await self._near[0].read(_READ_BYTES):
                pass

    async def _close(self) -> None:
        """Bytes that are written leave first."""
        for _, writer in (self._near, self._far or self._near):
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def lose(self) -> None:
        """The far side is gone."""
        self._lost.set()
        if self._far is not None:
            _abort(self._far[1])

    def end(self) -> None:
        """Both sides learn of it."""
        _abort(self._near[1])
        if self._far is not None:
            _abort(self._far[1])


def _abort(writer: asyncio.StreamWriter) -> None:
    """With a RST, if it is not over already."""
    sock = writer.get_extra_info("socket")
    if not writer.transport.is_closing() and sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Links:
    """All of a run, on a thread of their own. `with Links() as links:`"""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links")
        self._made: list[Link] = []

    def to(self, host: str, port: int) -> Link:
        """A new one, which listens."""

        async def make() -> Link:
            link = Link(self, (host, port))
            await link.listen()
            return link

        self._made.append(link := self.run(make()))
        return link

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """On its loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for link in self._made:
            self.run(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
