"""The event loops of a simulated run, and both kinds of sockets: transports, and those that block."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.simulation.daemon import turns as simulated
from tests.simulation.daemon.network import HOST, PORT, Connection, Network
from tests.simulation.daemon.turns import SimpleQueue, Thread, Turns
from tests.simulation.nodes.loop import NumberedTask

_KERNEL_BYTES = 262_144


class Transport(asyncio.Transport):
    """One end for a protocol in a loop."""

    def __init__(self, loop: SimulatedLoop, connection: Connection, side: str, protocol: Any) -> None:
        super().__init__({"peername": (HOST, 40_000), "sockname": (HOST, PORT)})
        self._loop, self._connection, self._side, self._protocol = loop, connection, side, protocol
        self._closing = self._ended = self._reads = False
        self._unread: list[bytes] = []
        self._out, back = (
            (connection.there, connection.back) if side == "client" else (connection.back, connection.there)
        )
        back.deliver = lambda data: self._later(self._received, data)
        connection.ended[side] = lambda error: self._later(self._lost, error)

    def begin(self) -> None:
        """The protocol hears of it. In the loop."""
        self._protocol.connection_made(self)
        self._reads = True
        self._read_on()

    def _later(self, function: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(function, *args)

    def _received(self, data: bytes) -> None:
        self._unread.append(data)
        self._read_on()

    def _read_on(self) -> None:
        while self._unread and self._reads and not self._closing:
            data = self._unread.pop(0)
            if not isinstance(self._protocol, asyncio.BufferedProtocol):
                self._protocol.data_received(data)
                continue
            while data and not self._closing:
                room = memoryview(self._protocol.get_buffer(-1))
                count = min(len(room), len(data))
                room[:count] = data[:count]
                self._protocol.buffer_updated(count)
                data = data[count:]

    def _lost(self, error: Exception | None) -> None:
        if not self._ended:
            self._ended = self._closing = True
            self._protocol.connection_lost(error)

    def write(self, data: Any) -> None:
        """See `asyncio.WriteTransport`."""
        if not self._closing and not self._ended and data:
            send = self._connection.ask if self._side == "client" else self._connection.answer
            send(bytes(data))

    def writelines(self, parts: Any) -> None:
        """See `asyncio.WriteTransport`."""
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._closing

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        self._end(kindly=True)

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self._end(kindly=False)

    def _end(self, *, kindly: bool) -> None:
        if not self._closing:
            self._closing = True
            self._connection.hang_up(self._side, kindly=kindly)
            self._later(self._lost, None)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._reads = False

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._reads = True
        self._later(self._read_on)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See `asyncio.WriteTransport`."""

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`: what the kernel would not take."""
        return max(0, self._out.in_flight - _KERNEL_BYTES)


class Listener:
    """In place of `asyncio.Server`, and of its socket."""

    def __init__(self, loop: SimulatedLoop, make: Callable[[], Any], port: int) -> None:
        self.loop, self.make, self.port = loop, make, port
        self.sockets = [self]

    def setsockopt(self, *_: object) -> None:
        """Nothing to set."""

    def getsockname(self) -> tuple[str, int]:
        """Where it listens."""
        return HOST, self.port

    def accept(self, connection: Connection) -> None:
        """See `Listening`."""
        if self.loop.is_closed():
            connection.reset()
            return
        transport = Transport(self.loop, connection, "server", self.make())
        self.loop.call_soon_threadsafe(transport.begin)

    async def start_serving(self) -> None:
        """See `asyncio.Server`."""
        self.loop.net.listeners[self.port] = self
        self.loop.net.server_process = self.loop.process

    def close(self) -> None:
        """See `asyncio.Server`."""
        if self.loop.net.listeners.get(self.port) is self:
            del self.loop.net.listeners[self.port]


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop of one simulated thread."""

    def __init__(self, turns: Turns, net: Network, wrong: Callable[[str, str], None]) -> None:
        super().__init__()
        self.turns, self.net = turns, net
        self.process = turns.process
        self._wrong = wrong
        self._selector = self
        self._clock_resolution = 1e-6
        self._woken = False
        self._lanes: dict[object, SimpleQueue] = {}
        self._numbers = 0
        self.set_exception_handler(self._exception)
        self.set_task_factory(self._new_task)

    def _exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.process.dead and not self.turns.over:
            text = f"{self.process}: {context.get('message')}: {context.get('exception')!r}"
            self._wrong("nobody awaits an exception", text)

    def _new_task(self, loop: Any, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        self._numbers += 1
        return NumberedTask(coroutine, self._numbers, loop=loop, **more)

    def create_future(self) -> asyncio.Future[Any]:
        """See `asyncio.AbstractEventLoop`."""
        self._numbers += 1
        future = _Future(loop=self)
        future.number = self._numbers
        return future

    def time(self) -> float:
        """Simulated seconds."""
        return self.turns.now_us / 1e6

    def select(self, timeout: float | None = None) -> list[Any]:
        """As a selector's: wait for a call from another thread, or so long."""
        if self._woken or timeout == 0:
            self.turns.give_way()
        else:
            self.turns.wait(self, None if timeout is None else max(1, round(timeout * 1e6)))
        self._woken = False
        return []

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        self._woken = True
        self.turns.wake(self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """On a thread of its own, or in the executor's order."""
        future = self.create_future()

        def work() -> None:
            result, error = None, None
            try:
                result = func(*args)
            except Exception as caught:
                error = caught
            with suppress(RuntimeError):
                self.call_soon_threadsafe(_settle, future, result, error)

        if executor is None:
            Thread(target=work, name="executor", process=self.process).start()
            return future
        if executor not in self._lanes:
            lane = self._lanes[executor] = SimpleQueue()
            Thread(target=_drive, args=(lane,), name="lane", process=self.process).start()
        self._lanes[executor].put(work)
        return future

    def close(self) -> None:
        """See `asyncio.AbstractEventLoop`."""
        for lane in self._lanes.values():
            lane.put(None)
        self._lanes.clear()
        super().close()

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """It is as it is given."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """The daemon's."""
        return Listener(self, protocol_factory, port)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, ssl: Any = None, **_: Any
    ) -> Any:
        """A client's."""
        await asyncio.sleep(0.0005)
        connection = self.net.connect(self.process, port)
        if ssl is not None:  # nobody speaks TLS here: who tries is hung up on
            connection.reset()
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        protocol = protocol_factory()
        transport = Transport(self, connection, "client", protocol)
        transport.begin()
        return transport, protocol


class _Future(asyncio.Future[Any]):
    """Its place in a set of futures is the same in each run, as that of a `NumberedTask`."""

    number = 0

    def __hash__(self) -> int:
        return self.number


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _drive(lane: SimpleQueue) -> None:
    while (work := lane.get()) is not None:
        work()


class BlockingSocket:
    """In place of a socket, for those who call and wait."""

    def __init__(self, net: Network, port: int) -> None:
        process = simulated.turns.process
        simulated.sleep(0.0005)
        self._connection = net.connect(process, port)
        self._data = bytearray()
        self._error: Exception | None = None
        self._eof = False
        self._patience_us: int | None = None
        self._connection.back.deliver = self._received
        self._connection.ended["client"] = self._ended

    def _received(self, data: bytes) -> None:
        self._data += data
        simulated.turns.wake(self)

    def _ended(self, error: Exception | None) -> None:
        self._error, self._eof = error, True
        simulated.turns.wake(self)

    def settimeout(self, _timeout: float | None) -> None:
        """A kernel's timeout is what counts."""

    def setsockopt(self, _level: int, option: int, value: Any) -> None:
        """The timeouts only."""
        if option == socket.SO_RCVTIMEO:
            seconds, micros = (int.from_bytes(value[at : at + 8], sys.byteorder) for at in (0, 8))
            self._patience_us = seconds * 1_000_000 + micros

    def sendall(self, data: bytes) -> None:
        """See `socket.socket`."""
        if self._eof:
            raise self._error or BrokenPipeError(errno.EPIPE, "Broken pipe")
        self._connection.ask(bytes(data))

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """See `socket.socket`, MSG_WAITALL."""
        turns = simulated.turns
        until_us = None if self._patience_us is None else turns.now_us + self._patience_us
        while len(self._data) < size and not self._eof:
            left_us = None if until_us is None else until_us - turns.now_us
            if left_us is not None and left_us <= 0:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            turns.wait(self, left_us)
        if self._error is not None:
            raise self._error
        taken = bytes(self._data[:size])
        del self._data[:size]
        return taken

    def recv_into(self, room: memoryview, size: int = 0, flags: int = 0) -> int:
        """See `socket.socket`."""
        data = self.recv(size or len(room), flags)
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """See `socket.socket`."""
        self._eof = True
        self._connection.hang_up("client", kindly=True)


class Sockets:
    """In place of the module `socket`, for blocking clients."""

    def __init__(self, net: Network) -> None:
        self._net = net

    def create_connection(self, address: tuple[str, int], _timeout: float | None = None) -> BlockingSocket:
        """See `socket.create_connection`."""
        return BlockingSocket(self._net, address[1])

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)
