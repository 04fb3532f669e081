"""One blocking connection to one broker.

One thread per instance. Every failure that another try may cure is a ConnectionLostError; answers with error
codes are the caller's.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.requests import Request
from ringleader.clients.connection.wire import Wire
from ringleader.clients.errors import (
    ClientError,
    ConnectionLostError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from ringleader.protocol.errors import MalformedError, error_name
from ringleader.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from ringleader.protocol.schema import Message

# A fetch limit is soft: one batch larger than the limits still comes whole. Brokers cap a batch far
# below this; the bound is against a peer that is no Kafka at all.
MAX_FRAME_BYTES = 512 * 1024 * 1024
CONNECT_TIMEOUT_S = 10.0
# A broker that keeps an answer back for this time is logged; it is waited for until the request's timeout.
SLOW_S = 5.0
# A larger answer gets memory of its own, or it would be kept for good.
KEPT_BYTES = 32 * 1024 * 1024

_LENGTH = struct.Struct(">i")
R = TypeVar("R", bound=Message)
T = TypeVar("T")


class BlockingConnection:
    """One connection to one broker. Requests may be sent ahead; answers come in the order of requests.

    Raises ConnectionLostError from every method; the connection is of no use after that. To make one raises
    AuthenticationError too: the broker does not let this client in, or is not the one it should be.
    """

    def __init__(
        self,
        host: str,
        port: int,
        endpoint: Endpoint,
        tell: Callable[[ClientError], None] = lambda _error: None,
    ) -> None:
        """``tell`` is called for a broker that cannot be connected to, and for one that keeps an answer
        back."""
        self.name = f"{host}:{port}"
        self._tell = tell
        self._timeout_s = endpoint.request_timeout_ms / 1000
        try:
            self._open(host, port, endpoint)
        except ConnectionLostError as error:
            tell(error)
            raise

    def _open(self, host: str, port: int, endpoint: Endpoint) -> None:
        self._wire = Wire(self.name, endpoint.client_id, MAX_FRAME_BYTES)
        self._pending: list[tuple[int, int]] = []
        self._room = bytearray()
        try:
            self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        except OSError as error:
            raise ConnectionLostError(f"cannot connect to {self.name}: {error}") from error
        self._encrypted = False
        self._use_until_s: float | None = None
        try:
            self._set_up()
            if endpoint.security:
                self._secure(host, endpoint)
            else:
                self._ask_versions()
        except BaseException:
            self.close()
            raise
        self._wire.established()

    def version(self, request: type[Message], highest: int = 32767) -> int:
        """The highest version of an API that both sides (and ``highest``) allow."""
        try:
            return self._wire.version(request, highest)
        except UnsupportedVersionError as error:  # another broker of the cluster may be newer
            raise ConnectionLostError(str(error)) from None

    def serves(self, request: type[Message]) -> bool:
        """Whether both sides know a version of an API."""
        return self._wire.serves(request)

    def send(self, request: Message, version: int) -> None:
        """Send without waiting for the answer."""
        correlation, frame = self._wire.request(request, version)
        try:
            if self._encrypted:
                # Only what is waited for in parts may end early.
                self._socket.settimeout(self._timeout_s)
            self._socket.sendall(frame)
            if self._encrypted:
                self._socket.settimeout(self._patience_s)
        except OSError as error:
            raise ConnectionLostError(f"{self.name} broke the connection: {error}") from error
        self._pending.append((correlation, version))

    def receive(self, response: type[R], in_place: bool = False) -> R:
        """The answer to the oldest request that has none yet.

        ``in_place``: for messages with records, which then are parts of memory that the next such call
        fills again. To get new memory for each answer, and to copy the records, costs more than to
        receive them.
        """
        correlation, version = self._pending.pop(0)
        (size,) = _LENGTH.unpack(self._read(4))
        if not 4 <= size <= self._wire.limit_bytes:
            raise ConnectionLostError(f"{self.name} announced an answer of {size} bytes")
        try:
            frame = self._read_in_place(size) if in_place else self._read(size)
            got, message = self._wire.answer(response, frame, version)
        except MalformedError as error:
            raise ConnectionLostError(f"{self.name} sent an answer that does not parse: {error}") from error
        if got != correlation:
            raise ConnectionLostError(f"{self.name} answered request {got}, not {correlation}")
        return message

    def ask(self, request: Message, response: type[R], version: int | None = None) -> R:
        """Send, and wait for the answer."""
        self.send(request, self.version(type(request)) if version is None else version)
        return self.receive(response)

    def ask_for(self, request: Request, response: type[R]) -> R:
        """Build the request for the version that is spoken, send it, and wait for the answer."""
        version = self.version(request.message, request.max_version)
        return self.ask(request.build(version), response, version)

    @property
    def stale(self) -> bool:
        """Whether the session that the broker granted is nearly over: time for a new connection."""
        return self._use_until_s is not None and time.monotonic() > self._use_until_s

    @property
    def waiting(self) -> int:
        """How many answers are outstanding."""
        return len(self._pending)

    def close(self) -> None:
        """Close; may be called twice."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _set_up(self) -> None:
        sock = self._socket
        timeout_ms = int(self._timeout_s * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A kernel timeout on a blocking socket lets MSG_WAITALL fill one buffer in one call.
        sock.settimeout(None)
        for option, limit_ms in (
            (socket.SO_RCVTIMEO, int(self._patience_s * 1000)),
            (socket.SO_SNDTIMEO, timeout_ms),
        ):
            value = struct.pack("ll", limit_ms // 1000, limit_ms % 1000 * 1000)
            sock.setsockopt(socket.SOL_SOCKET, option, value)

    @property
    def _patience_s(self) -> float:
        """How long one call waits: the request's time in equal parts, none longer than SLOW_S."""
        return self._timeout_s / max(1, math.ceil(self._timeout_s / SLOW_S))

    def _secure(self, host: str, endpoint: Endpoint) -> None:
        from ringleader.clients.blocking import security as secure

        security = secure.security_of(endpoint.security)
        try:
            if security.tls is not None:
                # With TLS no call fills more than one record: the socket's own timeout serves as well.
                self._socket.settimeout(self._timeout_s)
                self._socket = secure.encrypted(self._socket, host, security.tls, self.name)
                self._socket.settimeout(self._patience_s)
                self._encrypted = True
            self._ask_versions()
            if security.sasl is not None:
                lifetime_s = secure.authenticate(self, security.sasl, self._timeout_s)
                if lifetime_s is not None:
                    self._use_until_s = time.monotonic() + lifetime_s
                if self._wire.half_known:
                    self._ask_versions()
        except OSError as error:
            raise ConnectionLostError(f"no secure connection to {self.name}: {error}") from error

    def _ask_versions(self) -> None:
        # Version 0 is answered by every broker there is.
        answer = self.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        if answer.error_code:
            raise ConnectionLostError(f"{self.name} refused ApiVersions: {error_name(answer.error_code)}")
        self._wire.learn(answer)

    def _wait(self, receive: Callable[[], T]) -> T:
        """Something of the answer, waited for in patience: a broker may accept and stay silent."""
        began_s = time.monotonic()
        for waits in itertools.count(1):
            try:
                return receive()
            except (TimeoutError, BlockingIOError):
                if waits * self._patience_s >= self._timeout_s:
                    raise ConnectionLostError(f"{self.name} did not answer in time") from None
                silent_s = time.monotonic() - began_s
                self._tell(
                    RequestTimedOutError(
                        f"{self.name} has not answered for {silent_s:.0f} s (of {self._timeout_s:g} s that a "
                        "request may take)"
                    )
                )
            except OSError as error:
                raise ConnectionLostError(f"{self.name} broke the connection: {error}") from error
        raise AssertionError

    def _read(self, size: int) -> bytes:
        if self._encrypted:
            return self._read_encrypted(size)
        parts: list[bytes] = []
        left = size
        while left:
            part = self._wait(partial(self._socket.recv, left, socket.MSG_WAITALL))
            if not part:
                raise ConnectionLostError(f"{self.name} closed the connection")
            left -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_encrypted(self, size: int) -> bytes:
        whole = bytearray(size)
        self._fill(memoryview(whole))
        return bytes(whole)

    def _read_in_place(self, size: int) -> bytes:
        if size > KEPT_BYTES:
            return self._read(size)
        if len(self._room) < size:
            self._room = bytearray(size)
        whole = memoryview(self._room)[:size]
        self._fill(whole)
        # Readers of records accept any buffer.
        return cast(bytes, whole)

    def _fill(self, left: memoryview) -> None:
        flags = 0 if self._encrypted else socket.MSG_WAITALL
        while left:
            count = self._wait(partial(self._socket.recv_into, left, 0, flags))
            if not count:
                raise ConnectionLostError(f"{self.name} closed the connection")
            left = left[count:]
