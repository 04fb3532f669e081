"""A client that does exactly what a test asks: frames by hand or messages of the codec, blocking or not.

It negotiates nothing, retries nothing and hides nothing, so a test can send what no decent client would.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Any, TypeVar

from ringleader.protocol.frames import decode_response, encode_request, response_class
from ringleader.protocol.schema import Message

ResponseT = TypeVar("ResponseT", bound=Message)

Address = tuple[str, int]
TIMEOUT_S = 30.0
CLIENT_ID = "raw"


class ConnectionClosedError(Exception):
    """The server closed the connection where an answer was due."""


def address_of(bootstrap: str) -> Address:
    """``"HOST:PORT"`` as a pair."""
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def hand_frame(
    api_key: int,
    version: int,
    body: bytes,
    *,
    correlation_id: int = 1,
    client_id: str | None = CLIENT_ID,
    flexible: bool = False,
) -> bytes:
    """A whole request frame around any bytes as body: request header v1, or v2 if `flexible`."""
    name = None if client_id is None else client_id.encode()
    header = struct.pack(">hhih", api_key, version, correlation_id, -1 if name is None else len(name))
    header += (name or b"") + (b"\0" if flexible else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _answer(request: tuple[int, type[Message], int], frame: bytes) -> Message:
    expected, cls, version = request
    correlation_id, message = decode_response(cls, frame, version)
    assert correlation_id == expected, f"answer {correlation_id} came where {expected} was due"
    return message


class _Sent:
    """Requests under way on a connection, oldest first."""

    def __init__(self) -> None:
        self.last_id = 0
        self.waiting: list[tuple[int, type[Message], int]] = []

    def frame(self, message: Message, version: int | None) -> bytes:
        chosen = message.MAX_VERSION if version is None else version
        self.last_id += 1
        answer = response_class(message.API_KEY)
        assert answer is not None
        self.waiting.append((self.last_id, answer, chosen))
        return encode_request(message, chosen, self.last_id, CLIENT_ID)

    def answer(self, frame: bytes) -> Message:
        return _answer(self.waiting.pop(0), frame)


class RawConnection:
    """One blocking connection. Every wait ends after `timeout_s` with ``TimeoutError``."""

    def __init__(self, address: Address | str, *, timeout_s: float = TIMEOUT_S) -> None:
        target = address_of(address) if isinstance(address, str) else address
        self.socket = socket.create_connection(target, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent = _Sent()
        self._input = bytearray()

    def send(self, message: Message, version: int | None = None) -> None:
        """Sends a request (newest version by default) without waiting for its answer."""
        self.send_bytes(self._sent.frame(message, version))

    def send_bytes(self, data: bytes) -> None:
        """Sends any bytes."""
        self.socket.sendall(data)

    def receive(self) -> Any:
        """The answer to the oldest unanswered request of `send`. Raises `ConnectionClosedError`."""
        return self._sent.answer(self.receive_frame())

    def call(self, message: Message, version: int | None = None) -> Any:
        """`send`, then `receive`."""
        self.send(message, version)
        return self.receive()

    def receive_frame(self) -> bytes:
        """The next answer's bytes without the size field. Raises `ConnectionClosedError`."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        while len(self._input) < count:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise ConnectionClosedError(f"{len(self._input)} bytes of {count} came")
            self._input += data
        taken = bytes(self._input[:count])
        del self._input[:count]
        return taken

    def wait_closed(self) -> bytes:
        """Waits until the server closes the connection; returns what it sent before."""
        received = bytearray(self._input)
        self._input.clear()
        while True:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return bytes(received)
            if not data:
                return bytes(received)
            received += data

    def close(self) -> None:
        """Closes the connection."""
        self.socket.close()

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRawConnection:
    """The same in asyncio; made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._sent = _Sent()

    @classmethod
    async def connect(cls, address: Address | str) -> AsyncRawConnection:
        """Opens a connection. Raises ``OSError``."""
        host, port = address_of(address) if isinstance(address, str) else address
        return cls(*await asyncio.open_connection(host, port))

    async def call(self, message: Message, version: int | None = None) -> Any:
        """Sends a request (newest version by default), waits for its answer; `ConnectionClosedError`."""
        try:
            self._writer.write(self._sent.frame(message, version))
            await self._writer.drain()
            async with asyncio.timeout(TIMEOUT_S):
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                return self._sent.answer(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ConnectionClosedError(str(error)) from error

    async def close(self) -> None:
        """Closes the connection."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
