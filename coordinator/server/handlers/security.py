"""SASL: there is none here. SaslHandshake (17) v0-1 and SaslAuthenticate (36) v0-2 on a port without SASL are
answered as by Kafka's broker."""

from __future__ import annotations

from ringleader.coordinator.server.handlers import Call, Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    return {17: handshake, 36: authenticate}


def handshake(call: Call, request: kafka.SaslHandshakeRequest) -> kafka.SaslHandshakeResponse:
    """There is no mechanism to choose."""
    return kafka.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(call: Call, request: kafka.SaslAuthenticateRequest) -> kafka.SaslAuthenticateResponse:
    """Everybody is whoever they say."""
    return kafka.SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
