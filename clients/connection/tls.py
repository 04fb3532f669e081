"""Faults between a client and the port it is pointed at, in words: TLS that the other side does not speak,
certificates that are not accepted, a port that wants SASL."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from ringleader.clients.connection.authentication import named
from ringleader.clients.errors import AuthenticationError, TlsError
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ringleader.protocol.schema import Message

MAX_PROBE_BYTES = 1024 * 1024
"""A longer answer is none of a broker's."""

SPEAKS_PLAIN = (
    "{} does not speak TLS: leave tls= out (security.protocol PLAINTEXT or SASL_PLAINTEXT), or use the "
    "broker's TLS port"
)
SPEAKS_TLS = (
    "{} speaks TLS: give tls=, for example ssl.create_default_context() (security.protocol SSL or SASL_SSL)"
)
WANTS_SASL = (
    "{} asks for SASL: give sasl= (security.protocol SASL_PLAINTEXT or SASL_SSL); it takes the mechanisms {}"
)

_OUR_CERTIFICATE = ("ALERT_BAD_CERTIFICATE", "CERTIFICATE_REQUIRED", "ALERT_NO_CERTIFICATE")
_ITS_VERDICT = (
    "UNKNOWN_CA",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_REVOKED",
    "ACCESS_DENIED",
)
_NO_COMMON_GROUND = (
    "HANDSHAKE_FAILURE",
    "PROTOCOL_VERSION",
    "UNSUPPORTED_PROTOCOL",
    "NO_SHARED_CIPHER",
    "INSUFFICIENT_SECURITY",
)
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")


def tls_error(address: str, error: ssl.SSLError) -> TlsError | None:
    """The sentence for an error that comes again at each try; None for others."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(_not_trusted(address, error))
    reason = error.reason or ""
    if any(word in reason for word in _OUR_CERTIFICATE):
        text = "asks for a client certificate, and got none or one it does not accept: load one that its "
        return TlsError(f"{address} {text}authority has issued (load_cert_chain, ssl.keystore.location)")
    if any(word in reason for word in _ITS_VERDICT):
        return TlsError(f"{address} does not accept this client's certificate: {_words(reason)}")
    if any(word in reason for word in _NO_COMMON_GROUND):
        return TlsError(
            f"{address} and this client have no TLS version or cipher in common: {_words(reason)}"
        )
    if any(word in reason for word in _NOT_TLS):
        return TlsError(SPEAKS_PLAIN.format(address))
    return None


def _not_trusted(address: str, error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message.rstrip(".")
    if "mismatch" in why or "doesn't match" in why:
        return (
            f"the certificate of {address} is for another host name: {why}: connect to a name that is in the "
            f"certificate, or have one issued for this name"
        )
    if "expired" in why or "not yet valid" in why:
        return f"the certificate of {address} is not valid now: {why}"
    return (
        f"the certificate of {address} is not trusted: {why}: give the certificate of its authority "
        f"(ssl.create_default_context(cafile=...), ssl.truststore.location, ssl.ca.location)"
    )


def _words(reason: str) -> str:
    for prefix in ("SSLV3_ALERT_", "TLSV1_ALERT_", "TLSV13_ALERT_"):
        reason = reason.removeprefix(prefix)
    return reason.replace("_", " ").lower()


# ---- looking once more, after a connection failed in a way that says nothing ----


async def speaks_plain(host: str, port: int, timeout_s: float) -> TlsError | None:
    """Whether a broker answers there without TLS."""
    answer = await _probed(host, port, ApiVersionsRequest(), ApiVersionsResponse, None, timeout_s)
    return None if answer is None else TlsError(SPEAKS_PLAIN.format(f"{host}:{port}"))


async def speaks_tls(host: str, port: int, timeout_s: float) -> TlsError | None:
    """Whether the port answers with TLS; nothing but the greeting is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
            writer.transport.abort()
    except (OSError, TimeoutError):
        return None
    return TlsError(SPEAKS_TLS.format(f"{host}:{port}"))


async def wants_sasl(
    host: str, port: int, tls: ssl.SSLContext | None, timeout_s: float
) -> AuthenticationError | None:
    """Whether the broker there takes SASL: asked for a mechanism without a name, it lists those it has."""
    request = SaslHandshakeRequest(mechanism="")
    answer = await _probed(host, port, request, SaslHandshakeResponse, tls, timeout_s)
    if not isinstance(answer, SaslHandshakeResponse):
        return None
    if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    return AuthenticationError(WANTS_SASL.format(f"{host}:{port}", named(answer.mechanisms)))


async def _probed(
    host: str,
    port: int,
    request: Message,
    response: type[Message],
    tls: ssl.SSLContext | None,
    timeout_s: float,
) -> Message | None:
    """One question on a connection of its own, in version 0; None: no answer that can be read."""
    writer = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port, ssl=tls)
            writer.write(encode_request(request, 0, 0, None))
            size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
            if not 4 <= size <= MAX_PROBE_BYTES:
                return None
            return decode_response(response, await reader.readexactly(size), 0)[1]
    except (OSError, EOFError, TimeoutError, MalformedError):
        return None
    finally:
        if writer is not None:
            with suppress(OSError):
                writer.transport.abort()
