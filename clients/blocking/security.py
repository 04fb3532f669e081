"""TLS and SASL for the blocking connections, from Kafka's property names.

The conversations and the words of errors are those of `ringleader.clients.connection`; here a thread waits.
Imported when an endpoint has security properties: one without them should not pay for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from ringleader.clients.connection.authentication import log_in
from ringleader.clients.connection.requests import Request
from ringleader.clients.connection.security import ClientSecurity, Sasl, security_from_properties
from ringleader.clients.connection.tls import tls_error
from ringleader.clients.errors import AuthenticationError, ClientError
from ringleader.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ringleader.protocol.schema import Message

_ANSWERS: dict[type[Message], type[Message]] = {
    SaslHandshakeRequest: SaslHandshakeResponse,
    SaslAuthenticateRequest: SaslAuthenticateResponse,
}
R = TypeVar("R", bound=Message)

RENEW_AFTER = 0.8
"""The part of a session's lifetime after which its connection is given up for a new one (KIP-368)."""


class LoginConnection(Protocol):
    """A blocking connection, as far as logging in needs it."""

    name: str

    def version(self, request: type[Message], highest: int = ...) -> int:
        """The version that both sides speak."""

    def ask_for(self, request: Request, response: type[R]) -> R:
        """Send a request, and wait for its answer."""


@lru_cache(maxsize=8)
def security_of(properties: tuple[tuple[str, str], ...]) -> ClientSecurity:
    """The security that the properties describe; certificates are read once in a process. Raises
    AuthenticationError."""
    try:
        return security_from_properties(dict(properties))
    except ValueError as error:
        raise AuthenticationError(str(error)) from None


def encrypted(plain: socket.socket, host: str, tls: ssl.SSLContext, name: str) -> ssl.SSLSocket:
    """The socket with TLS on it. Raises AuthenticationError when another try would fail too, else OSError."""
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        known = tls_error(name, error)
        if known is None:
            raise
        raise known from None


def authenticate(connection: LoginConnection, sasl: Sasl, timeout_s: float) -> float | None:
    """Log in; returns for how many seconds to use the connection then, None: without end.

    Raises AuthenticationError when the broker refuses, OSError when another try may help.
    """
    try:
        channel = _Channel(connection)
        lifetime_ms = asyncio.run(log_in(channel, sasl, timeout_s))
    except AuthenticationError:
        raise
    except ClientError as error:
        raise OSError(str(error)) from None
    return lifetime_ms / 1000 * RENEW_AFTER if lifetime_ms else None


class _Channel:
    """A blocking connection whose answers are awaited: nothing else runs in that loop."""

    def __init__(self, connection: LoginConnection) -> None:
        self.address = connection.name
        self._connection = connection

    async def ask(self, request: Request, timeout_s: float, *, alone: bool = False) -> Any:
        return self._connection.ask_for(request, _ANSWERS[request.message])

    def version_for(self, request: Request) -> int:
        return self._connection.version(request.message, request.max_version)

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        yield

    def session(self, lifetime_ms: int) -> None:
        """The owner of the connection looks at its age."""

    def close(self, why: str = "closed") -> None:
        """The owner of the connection closes it."""
