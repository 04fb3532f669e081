"""SASL over a connection: SaslHandshake (KIP-43), SaslAuthenticate (KIP-152), and again before the session
that the broker grants is over (KIP-368)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import secrets
import string
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ringleader.clients.connection.aside import aside
from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.connection.security.sasl import (
    NONCE_CHARACTERS,
    SCRAM_HASHES,
    Conversation,
    Sasl,
    SaslOAuthBearer,
    SaslPlain,
    SaslScram,
    TokenUnavailableError,
    oauth_conversation,
    plain_conversation,
    scram_conversation,
)
from ringleader.clients.errors import (
    AuthenticationError,
    ClientError,
    UnsupportedVersionError,
)
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest

logger = logging.getLogger("ringleader.clients.connection.connection")

MAX_ROUNDS = 8
"""Messages of one conversation; SCRAM has two."""
MAX_TOKEN_CALLS = 32
"""Token callbacks under way in the process: one that never returns cannot use up all threads."""
RENEW_FROM, RENEW_TO = 0.85, 0.95
"""The part of a session's lifetime after which it is renewed, as the Java client does: not all at once."""
LEAST_RENEWAL_S, MOST_RENEWAL_S = 1.1, 24 * 3600.0
"""Apache Kafka refuses to begin again within a second of the last time."""
TOKEN_RETRY_S = 1.0
MAX_REASON_CHARACTERS = 500
"""The part of a broker's own words that is repeated."""
MAX_NAMED_MECHANISMS = 10

_token_calls = threading.BoundedSemaphore(MAX_TOKEN_CALLS)


class Channel(Protocol):
    """A connection as seen from here."""

    address: str

    async def ask(self, request: Request, timeout_s: float, *, alone: bool = False) -> Any:
        """Send and wait for the answer; `alone`: inside of the block of that name."""

    def version_for(self, request: Request) -> int:
        """The version that would be spoken."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Nobody else's requests are on their way until the end of the block."""

    def close(self, why: str = "closed") -> None:
        """Close at once."""


class LastingChannel(Channel, Protocol):
    """One whose session is renewed."""

    def session(self, lifetime_ms: int) -> None:
        """From now on the broker accepts requests for this time; 0: as long as the connection lives."""


async def log_in(channel: Channel, sasl: Sasl, timeout_s: float) -> int:
    """Prove who this client is; the session's lifetime in ms, 0: it does not end. `timeout_s` bounds all but
    the wait for what others have on their way.

    Raises AuthenticationError, UnsupportedVersionError (a broker older than Apache Kafka 1.0), RetriableError
    when the connection was lost or there is no token now.
    """
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    conversation = await _conversation(sasl, timeout_s)
    left_s = timeout_s - (now_s() - began_s)
    async with channel.alone():
        return await _converse(channel, sasl, conversation, now_s() + left_s)


async def stay_logged_in(
    channel: LastingChannel,
    sasl: Sasl,
    timeout_s: float,
    lifetime_ms: int,
    chance: Callable[[], float] = random.random,
) -> None:
    """Authenticate again before each session ends. Returns when one does not end; closes the channel when it
    cannot be done, so that the next connection says why."""
    while lifetime_ms > 0:
        part = RENEW_FROM + (RENEW_TO - RENEW_FROM) * chance()
        lifetime_s = lifetime_ms / 1000
        await asyncio.sleep(min(MOST_RENEWAL_S, max(LEAST_RENEWAL_S, lifetime_s * part)))
        try:
            lifetime_ms = await _renewed(channel, sasl, timeout_s, lifetime_s * (1 - part))
        except ClientError as error:
            why = f"could not authenticate again before the session ended: {error}"
            logger.warning("%s: %s", channel.address, why)
            channel.close(why)
            return
        channel.session(lifetime_ms)
        logger.debug("%s: authenticated again (%s)", channel.address, sasl.mechanism)


async def _renewed(channel: Channel, sasl: Sasl, timeout_s: float, left_s: float) -> int:
    """A token that cannot be had is asked for again while the old session lasts."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + left_s
    while True:
        try:
            return await log_in(channel, sasl, timeout_s)
        except TokenUnavailableError:
            if loop.time() + TOKEN_RETRY_S >= until_s:
                raise
        await asyncio.sleep(TOKEN_RETRY_S)


async def _converse(channel: Channel, sasl: Sasl, conversation: Conversation, until_s: float) -> int:
    now_s = asyncio.get_running_loop().time
    await _handshake(channel, sasl, until_s - now_s())
    lifetime_ms = 0
    try:
        message = next(conversation)
        for _ in range(MAX_ROUNDS):
            request = plain(SaslAuthenticateRequest(auth_bytes=message))
            response = await channel.ask(request, until_s - now_s(), alone=True)
            if response.error_code:
                raise _refused(channel, sasl, response)
            lifetime_ms = response.session_lifetime_ms
            message = conversation.send(response.auth_bytes)
    except StopIteration:
        return int(max(0, lifetime_ms))
    except AuthenticationError as error:
        channel.close("authentication failed")
        if error.code is not None:
            raise
        raise AuthenticationError(f"{channel.address}, {sasl.mechanism}: {printable(str(error))}") from None
    raise AuthenticationError(f"{channel.address}: {sasl.mechanism} takes more than {MAX_ROUNDS} messages")


async def _handshake(channel: Channel, sasl: Sasl, timeout_s: float) -> None:
    request = plain(SaslHandshakeRequest(mechanism=sasl.mechanism))
    if channel.version_for(request) < 1:
        raise UnsupportedVersionError(f"{channel.address} is older than Apache Kafka 1.0: no SASL with it")
    response = await channel.ask(request, timeout_s, alone=True)
    code = response.error_code
    if code == ErrorCode.NONE:
        return
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        why = f"does not take SASL mechanism {sasl.mechanism}; it takes {named(response.mechanisms)}"
    elif code == ErrorCode.ILLEGAL_SASL_STATE:
        why = "does not ask for SASL on this port: leave sasl= out (security.protocol PLAINTEXT or SSL)"
    else:
        why = f"answered SaslHandshake with {error_name(code)}"
    raise AuthenticationError(f"{channel.address} {why}", code)


def _refused(channel: Channel, sasl: Sasl, response: Any) -> AuthenticationError:
    reason = printable(response.error_message or error_name(response.error_code))
    match sasl:
        case SaslOAuthBearer():
            identity, check = "the token", "check what the token callback gives, and the broker's validator"
        case _:
            identity = f"user {sasl.username!r}"
            check = f"check user name and password, and that the broker knows the user for {sasl.mechanism}"
    text = f"{channel.address} refused {identity} ({sasl.mechanism}): {reason}: {check}"
    return AuthenticationError(text, response.error_code)


def named(mechanisms: list[str]) -> str:
    """The mechanisms that a broker offers, in short."""
    shown = [printable(name, 50) for name in mechanisms[:MAX_NAMED_MECHANISMS]]
    return ", ".join(shown) or "none"


def printable(text: str, characters: int = MAX_REASON_CHARACTERS) -> str:
    """Text of another party, fit for one line of a log."""
    cut = text if len(text) <= characters else f"{text[:characters]}..."
    return "".join(one if one.isprintable() else " " for one in cut).strip().rstrip(".")


# ---- beginnings of conversations: here is what is random, and what waits ----


async def _conversation(sasl: Sasl, timeout_s: float) -> Conversation:
    match sasl:
        case SaslPlain():
            return plain_conversation(sasl.username, sasl.password)
        case SaslScram():
            nonce = "".join(secrets.choice(_NONCE_ALPHABET) for _ in range(NONCE_CHARACTERS))
            return scram_conversation(sasl.username, sasl.password, SCRAM_HASHES[sasl.hash], nonce)
        case SaslOAuthBearer():
            return oauth_conversation(await _token(sasl.token, timeout_s), sasl.extensions)


_NONCE_ALPHABET = string.ascii_letters + string.digits


async def _token(callback: Callable[[], Any], timeout_s: float) -> str:
    try:
        async with asyncio.timeout(timeout_s):
            called = callback() if inspect.iscoroutinefunction(callback) else await _beside(callback)
            token = await called if inspect.isawaitable(called) else called
    except TimeoutError:
        text = f"the token callback did not return within {round(timeout_s, 1):g} s"
        raise TokenUnavailableError(text) from None
    except ClientError:
        raise
    except Exception as error:
        raise TokenUnavailableError(f"the token callback failed: {type(error).__name__}: {error}") from error
    if not isinstance(token, str):
        raise AuthenticationError(f"the token callback gave {type(token).__name__} instead of str")
    return token


async def _beside(callback: Callable[[], Any]) -> Any:
    if not _token_calls.acquire(blocking=False):
        raise TokenUnavailableError(f"{MAX_TOKEN_CALLS} token callbacks have not returned yet")

    def run() -> Any:
        try:
            return callback()
        finally:
            _token_calls.release()

    return await aside(run)
