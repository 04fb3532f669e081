"""The HTTP server of a daemon's endpoint and of insight's page: uvicorn behind an acceptor of our own, so
that connections are bounded in number and in time, with TLS from files that may change."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_MAX_BYTES = 16_384
"""Of a request's first line and headers."""
REQUEST_S = 30.0
"""In this time a whole request has to come, the next one of a connection too, and the answer has to be
read."""
HANDSHAKE_S = 10.0
HANDSHAKES_MAX = 64
"""TLS handshakes under way; for one more the oldest is ended."""
ACCEPT_AGAIN_S = 0.5
"""After the operating system had no socket for one more."""
TOKEN_MIN_CHARS = 16
TOKEN_MAX_CHARS = 1_024

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\s]+))(?::\d{1,5})?")
"""Of RFC 9110: an IPv6 address in brackets, or a name or an IPv4 address; and a port."""

CERTIFIED = "ringleader.certified"
"""In a scope: the certificate (DER) that the client has shown, which is trusted."""

SAFE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every answer, refusals too."""
ONLY_TLS = {"Strict-Transport-Security": "max-age=31536000"}
"""With TLS, likewise."""


# ---- authorization ----


def read_token(file: Path) -> str:
    """The token in a file. Raises ValueError, one sentence: for a file that cannot be read, and for a token
    that is too short to keep an attacker out."""
    try:
        with file.open() as stream:
            found = stream.read(TOKEN_MAX_CHARS + 2)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ValueError(f"the token file {file} cannot be read: {reason}") from None
    return checked_token(found, str(file))


def checked_token(text: str, where: str) -> str:
    """The token, without white space around it. Raises ValueError, one sentence."""
    found = text.strip()
    if not TOKEN_MIN_CHARS <= len(found) <= TOKEN_MAX_CHARS or not found.isascii() or not found.isprintable():
        raise ValueError(
            f"the token in {where} has to be {TOKEN_MIN_CHARS} or more printable ASCII characters, and "
            f"{TOKEN_MAX_CHARS:,} at most"
        )
    return found


def bears(headers: Headers, token: str) -> bool:
    """Whether `Authorization: Bearer` names the token; in the same time, whatever it names."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def is_addressed_to(headers: Headers, names: frozenset[str]) -> bool:
    """Whether a request is for one of these host names, or for an address: a page from elsewhere could have
    let its own name point here, but addresses cannot be pointed elsewhere."""
    found = _HOST.fullmatch(headers.get("host", "").lower())
    if found is None:
        return False
    bracketed, name = found.groups()
    try:
        if bracketed is not None:
            ipaddress.IPv6Address(bracketed)
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return name is not None and name in names
    return True


# ---- the server ----


def bound(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens. Raises OSError."""
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(backlog)
    except OSError:
        found.close()
        raise
    found.setblocking(False)
    return found


class ServerTls(Protocol):
    """The TLS context of a server, from files that may change."""

    @property
    def context(self) -> ssl.SSLContext: ...

    def changed(self) -> bool:
        """Whether the files have changed."""

    def reload(self) -> None:
        """Read the files again. Raises ValueError, one sentence."""


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`. The caller listens to signals itself."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        *,
        connections_max: int,
        headers: Mapping[str, str] = SAFE_HEADERS,
        tls: ServerTls | None = None,
        on_trouble: Callable[[str], object] = lambda reason: None,
        stop_s: int = 1,
    ) -> None:
        """`headers`: of every answer. `tls`: of every connection; its files are looked at for each
        connection, and `on_trouble` is called when they cannot be read: then those from before stay."""
        self.headers = {**headers, **(ONLY_TLS if tls is not None else {})}
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(_Connection, headers=self.headers),  # type: ignore[arg-type]
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                headers=list(self.headers.items()),
                h11_max_incomplete_event_size=HEAD_MAX_BYTES,
                timeout_keep_alive=int(REQUEST_S),
                timeout_graceful_shutdown=stop_s,
            )
        )
        self._listening = listening
        self._most = connections_max
        self._tls = tls
        self._on_trouble = on_trouble
        self._accepting: asyncio.Task[None] | None = None
        self._welcoming: dict[asyncio.Task[None], None] = {}
        """Oldest first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves them alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn; connections come through `listening`, not through sockets of uvicorn."""
        await super().startup(sockets=[])
        self._accepting = asyncio.create_task(self._accept())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        tasks = [*self._welcoming, *([self._accepting] if self._accepting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening.close()
        await super().shutdown(sockets=[])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            accepted.setblocking(False)
            if not self._has_room():
                accepted.close()
            elif self._tls is None:
                await self._welcome(accepted)
            else:
                task = asyncio.create_task(self._welcome(accepted))
                self._welcoming[task] = None
                task.add_done_callback(partial(self._welcomed, accepted))

    def _has_room(self) -> bool:
        """Whether there is room for one more: the connection without a request for longest makes room."""
        if len(self._welcoming) >= HANDSHAKES_MAX:
            oldest = next(iter(self._welcoming))
            del self._welcoming[oldest]
            oldest.cancel()
        connections: Iterable[_Connection] = self.server_state.connections  # type: ignore[assignment]
        here = [one for one in connections if not one.transport.is_closing()]
        if len(here) < self._most:
            return True
        waiting = [one for one in here if one.waits]
        if waiting:
            min(waiting, key=lambda one: one.since_s).transport.abort()
        return bool(waiting)

    async def _welcome(self, accepted: socket.socket) -> None:
        context = self._context()
        kind: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        app_state = self.lifespan.state
        make = partial(kind, config=self.config, server_state=self.server_state, app_state=app_state)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                accepted,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_S if context is not None else None,
            )
        except OSError:  # no TLS, no certificate that is trusted, too late
            accepted.close()

    def _welcomed(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._welcoming.pop(task, None)
        if task.cancelled():
            accepted.close()  # nothing else does where it had not begun

    def _context(self) -> ssl.SSLContext | None:
        tls = self._tls
        if tls is None:
            return None
        if tls.changed():
            try:
                tls.reload()
            except ValueError as error:
                self._on_trouble(str(error))
        return tls.context


class _Connection(H11Protocol):
    """A connection that does not wait for ever."""

    def __init__(self, *args: Any, headers: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._headers = headers
        self._timer: asyncio.TimerHandle | None = None
        self.since_s = self.loop.time()
        """When it connected, or was answered last."""

    @property
    def waits(self) -> bool:
        """Whether a request, or the rest of one, has yet to come."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        shown = transport.get_extra_info("ssl_object")
        if shown is not None and shown.getpeercert():
            self.app = partial(_certified, self.app, shown.getpeercert(binary_form=True))
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio. Bytes behind a connection's last request are not read (RFC 9112, section 9.6)."""
        if self.conn.their_state is not h11.MUST_CLOSE:
            super().data_received(data)

    def on_response_complete(self) -> None:
        """See uvicorn."""
        self._arm()
        super().on_response_complete()

    def shutdown(self) -> None:
        """See uvicorn, which raises an error for a connection that a refusal is closing."""
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """See uvicorn, which sends it without the headers, and does not tell what answers the request."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state is h11.SEND_BODY:
            self.transport.abort()
            return
        self.conn.send_failed()
        lines = [f"{name}: {value}" for name, value in self._headers.items()]
        head = ["HTTP/1.1 400 Bad Request", "Content-Type: text/plain", "Connection: close", *lines]
        body = f"{msg}\n"
        head.append(f"Content-Length: {len(body)}")
        self.transport.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        self.transport.close()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.since_s = self.loop.time()
        self._timer = self.loop.call_later(REQUEST_S, self._look)

    def _look(self) -> None:
        if self.waits or self.flow.write_paused:
            self.transport.abort()
        else:  # it is being answered
            self._timer = self.loop.call_later(REQUEST_S, self._look)


async def _certified(app: ASGIApp, certificate: bytes, scope: Scope, receive: Receive, send: Send) -> None:
    scope[CERTIFIED] = certificate
    await app(scope, receive, send)
