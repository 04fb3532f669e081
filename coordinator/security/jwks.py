"""The public keys that tokens are checked with: from a file or a URL, and read again now and then (I/O)."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ssl
import time
import urllib.error
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.exchange import Exchange
from ringleader.coordinator.security.listeners import is_loopback
from ringleader.coordinator.security.oauth import (
    Claims,
    OAuthExchange,
    TokenRules,
    UnknownKeyError,
    check_token,
    parse_keys,
)
from ringleader.host.http_client import opener

if TYPE_CHECKING:
    from joserfc.jwk import Key

TIMEOUT_S = 10.0
MAX_BYTES = 1_048_576
RETRY_S = 10.0
"""After a failure, and at least between two requests for unknown keys."""


class KeysError(OSError):
    """The keys cannot be read; the text is one sentence."""


class Keys:
    """Reads the keys at the start and every `refresh_ms`; earlier when a token names another one."""

    def __init__(
        self, url: str, rules: TokenRules, refresh_ms: int, log: Log, trusted: Path | None = None
    ) -> None:
        """`trusted`: see `read_keys`."""
        self._url = url
        self._trusted = trusted
        self._rules = rules
        self._refresh_s = refresh_ms / 1000
        self._log = log
        self._keys: Mapping[str, Key] = {}
        self._wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises KeysError."""
        self._keys = await asyncio.to_thread(read_keys, self._url, self._trusted)
        self._task = self._loop.create_task(self._refresh())

    async def stop(self) -> None:
        """May be called twice, or without `start`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def check(self, token: str) -> Claims:
        """See `check_token`; on any thread."""
        try:
            return check_token(token, self._keys, self._rules, time.time())
        except UnknownKeyError:
            self._loop.call_soon_threadsafe(self._wanted.set)
            raise

    def exchange(self) -> Exchange:
        """A fresh one."""
        return OAuthExchange(self.check)

    async def _refresh(self) -> None:
        wait_s = self._refresh_s
        while True:
            self._wanted.clear()
            await asyncio.sleep(min(RETRY_S, wait_s))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait_s - RETRY_S)):
                    await self._wanted.wait()
            try:
                self._keys = await asyncio.to_thread(read_keys, self._url, self._trusted)
                wait_s = self._refresh_s
            except KeysError as error:
                self._log.warning("keys of tokens cannot be read: the old ones count", reason=str(error))
                wait_s = RETRY_S


def check_url(url: str) -> str:
    """The URL if keys may come from there. Raises ValueError."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file" and parts.path:
        return url
    if parts.scheme == "https" and parts.hostname:
        return url
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return url
    raise ValueError("keys come from a file: or https: URL (http: from this machine only)")


def _trusting(trusted: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=trusted)
    except OSError as error:
        setting = "sasl.oauthbearer.jwks.truststore.location"
        reason = "is not PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise KeysError(f"{setting}, {trusted}: {reason}") from None


def read_keys(url: str, trusted: Path | None = None) -> Mapping[str, Key]:
    """Waits for the answer. `trusted`: a PEM file of those who may issue the certificate of an https: URL;
    None: whom the machine trusts. Raises KeysError."""
    try:
        with opener(_trusting(trusted)).open(check_url(url), timeout=TIMEOUT_S) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES:,} bytes")
        return parse_keys(data)
    except KeysError:
        raise
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or error
        where = urllib.parse.urlsplit(url)
        place = f"{where.scheme}://{where.hostname or ''}{where.path}"  # there may be a secret in the rest
        raise KeysError(f"sasl.oauthbearer.jwks.endpoint.url, {place}: {reason}") from None
