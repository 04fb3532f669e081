"""Authorization of requests: the token or a certificate, the requested host name, and the headers of every
answer."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringleader.coordinator.security.listeners import is_loopback
from ringleader.coordinator.security.names import subject_of
from ringleader.coordinator.security.settings import TlsSettings
from ringleader.coordinator.security.tls import Tls
from ringleader.host import http_server
from ringleader.host.http_server import CERTIFIED, SAFE_HEADERS, bears, checked_token, is_addressed_to

TOKEN_VARIABLE = "RINGLEADER_PAGE_TOKEN"
COOKIE = "ringleader_page"
MAY_RESET = "ringleader.may_reset"
"""In a scope: the request shows the token of resets."""
SIGNED_IN_S = 7 * 24 * 3600
SIGN_IN = "/api/session"
SIGN_IN_MAX_BYTES = 4096
URL_MAX_BYTES = 8192

HEADERS = {
    **SAFE_HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Of every answer."""
_TLS_WORDS = {
    "ssl.keystore.location": "the page's certificate",
    "ssl.truststore.location": "the authority of certificates",
    "ssl.key.password is missing or wrong: the key is": "give a key that is not encrypted: the page's is",
}
"""Settings of listeners, and what they are here."""


def read_token(file: Path | None = None, environ: Mapping[str, str] | None = None) -> str | None:
    """The token of `file`, else of RINGLEADER_PAGE_TOKEN, else None. Raises ValueError for one that is too
    short to be safe, and for a file that cannot be read."""
    if file is not None:
        return http_server.read_token(file)
    found = (os.environ if environ is None else environ).get(TOKEN_VARIABLE, "").strip()
    return checked_token(found, TOKEN_VARIABLE) if found else None


def page_tls(certificate: Path | None, client_authority: Path | None = None) -> Tls | None:
    """TLS with the key and certificates in that file; with `client_authority`, for clients alone that show a
    certificate of one of these. None without a certificate. Raises ValueError, one sentence."""
    if certificate is None:
        if client_authority is not None:
            raise ValueError("certificates are shown over TLS: give one of the page, too")
        return None
    auth: Literal["none", "required"] = "none" if client_authority is None else "required"
    try:
        return Tls(
            TlsSettings(
                ssl_keystore_location=certificate,
                ssl_truststore_location=client_authority,
                ssl_client_auth=auth,
            )
        )
    except ValueError as error:
        text = str(error)
    for name, word in _TLS_WORDS.items():
        text = text.replace(name, word)
    raise ValueError(text)


def check_access(
    host: str, token: str | None, tls: Tls | None = None, reset_token: str | None = None
) -> None:
    """Raises ValueError where `host` is more than loopback and nobody is asked for a token or a
    certificate, where the token of resets can be read on the way, and where it is that of the page."""
    far = not is_loopback(host)
    certified = tls is not None and tls.settings.ssl_client_auth == "required"
    if far and token is None and not certified:
        raise ValueError(
            f"{host} can be reached from other machines: give --token-file FILE (or {TOKEN_VARIABLE}), "
            f"or listen on 127.0.0.1"
        )
    if reset_token is None:
        return
    if far and tls is None:
        raise ValueError(
            f"{host} can be reached from other machines, and the token of resets could be read on the way: "
            f"give a certificate, too, or listen on 127.0.0.1"
        )
    if reset_token == token:
        raise ValueError("the token of resets is that of the page: who looks on is not to reset offsets")


def principal(request: Request) -> str:
    """The client that resets offsets, as logs name it: by its certificate, where it has shown one."""
    certificate = request.scope.get(CERTIFIED)
    if certificate is None:
        return "the holder of the token of resets"
    try:
        return f"User:{subject_of(certificate)}"
    except ValueError:
        return "a certificate that cannot be read"


class Guard:
    """The check in front of the application. Without a token every client that reaches it is served; with
    one, clients that send it (`Authorization: Bearer TOKEN`), or the cookie that the page gets for it, which
    does not hold it. The token of resets lets its holder look, too, and reset offsets: see `MAY_RESET`.

    A request for a host name that is not ours is refused: a page from elsewhere could have let its own name
    point here. Addresses cannot be pointed elsewhere, so they are served.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None = None,
        reset_token: str | None = None,
        names: Iterable[str] = (),
    ) -> None:
        self._app = app
        self._token = token
        self._reset_token = reset_token
        self._tokens = [one for one in (token, reset_token) if one is not None]
        names = ("localhost", socket.gethostname(), *names)
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-cache" if path.startswith("/static/") else "no-store")
            await send(message)

        answer = await self._answer(Request(scope, receive), path)
        await (answer or self._app)(scope, receive, send_guarded)

    async def _answer(self, request: Request, path: str) -> Response | None:
        """None: the application may answer."""
        if len(request.scope.get("raw_path", b"")) + len(request.scope["query_string"]) > URL_MAX_BYTES:
            return refusal(414, f"An address has at most {URL_MAX_BYTES} bytes here.")
        if not is_addressed_to(request.headers, self._names):
            return refusal(
                421, "This is not a name of this page: ask by address, or start it with --page-name."
            )
        is_api = path.startswith("/api/") or path == "/metrics"
        if is_api and request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return refusal(403, "Another site's page may not ask here.")
        if request.method not in ("GET", "HEAD") and not _from_here(request):
            return refusal(403, "Another site's page may not change anything here.")
        if path == SIGN_IN and request.method == "POST":
            return await self._sign_in(request)
        shown = next((one for one in self._tokens if self._knows(request, one)), None)
        if is_api and self._token is not None and shown is None:
            return refusal(401, "The token is missing: Authorization: Bearer TOKEN, or sign in on the page.")
        request.scope[MAY_RESET] = shown is not None and shown == self._reset_token
        return None

    def _knows(self, request: Request, token: str) -> bool:
        if bears(request.headers, token):
            return True
        until, _, mac = request.cookies.get(COOKIE, "").partition(".")
        return (
            until.isascii()
            and until.isdigit()
            and len(until) < 16
            and time.time() < int(until)
            and hmac.compare_digest(mac.encode(), _mac(token, until).encode())
        )

    async def _sign_in(self, request: Request) -> Response:
        body = b""
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > SIGN_IN_MAX_BYTES:
                    return refusal(413, f"A token is sent in at most {SIGN_IN_MAX_BYTES} bytes.")
        except ClientDisconnect:
            return refusal(400, "The token did not come as a whole.")  # nobody reads it
        if not self._tokens:
            return JSONResponse({"signed_in": True})
        given = body.strip()
        token = next((one for one in self._tokens if hmac.compare_digest(given, one.encode())), None)
        if token is None:
            return refusal(401, "That is not the token.")
        until = str(int(time.time()) + SIGNED_IN_S)
        answer = JSONResponse({"signed_in": True})
        answer.set_cookie(
            COOKIE,
            f"{until}.{_mac(token, until)}",
            max_age=SIGNED_IN_S,
            httponly=True,
            samesite="strict",
            secure=request.scope["scheme"] == "https",
        )
        return answer


def _from_here(request: Request) -> bool:
    """Whether what changes something comes from a page of ours, or from a program. A browser names the origin
    of each such request, so that one with a cookie and none comes from nowhere. The scheme is not compared: a
    proxy in front may have TLS."""
    origin = request.headers.get("origin")
    if origin is None:
        return COOKIE not in request.cookies
    try:
        return urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    except ValueError:
        return False


def _mac(token: str, until: str) -> str:
    return hmac.new(token.encode(), f"signed in until {until}".encode(), hashlib.sha256).hexdigest()


def refusal(status: int, sentence: str) -> JSONResponse:
    """An answer that says why not."""
    return JSONResponse({"error": sentence}, status)
