"""SASL."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message


@message(key=17, versions=(0, 1), kind="request")
class SaslHandshakeRequest(Message):
    """Ask for a SASL mechanism (SaslHandshake, API 17, v0-1; KIP-43)."""

    mechanism: str = field("string", default="")


@message(key=17, versions=(0, 1), kind="response")
class SaslHandshakeResponse(Message):
    """Whether the mechanism can be had, and which there are (SaslHandshake, API 17, v0-1; KIP-43)."""

    error_code: int = field("int16", default=0)
    mechanisms: list[str] = array("string", factory=list)


@message(key=36, versions=(0, 2), flexible=2, kind="request")
class SaslAuthenticateRequest(Message):
    """Hand on the bytes of a SASL exchange (SaslAuthenticate, API 36, v0-2; KIP-152, KIP-368)."""

    auth_bytes: bytes = field("bytes", default=b"")


@message(key=36, versions=(0, 2), flexible=2, kind="response")
class SaslAuthenticateResponse(Message):
    """The next bytes of the SASL exchange, or why it failed.

    `session_lifetime_ms` 0 means that the session does not end by itself.

    SaslAuthenticate, API 36, v0-2; KIP-152, KIP-368.
    """

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    auth_bytes: bytes = field("bytes", default=b"")
    session_lifetime_ms: int = field("int64", versions=(1, LAST), default=0, ignorable=True)
