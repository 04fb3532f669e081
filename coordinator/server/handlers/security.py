"""SASL of who is known already, or asked by nobody who they are: SaslHandshake (17) v0-1 and SaslAuthenticate
(36) v0-2 are answered as by Kafka's broker. What comes before that: `server.sasl`."""

from __future__ import annotations

from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    return {17: handshake, 36: authenticate}


def handshake(call: Call, request: kafka.SaslHandshakeRequest) -> kafka.SaslHandshakeResponse | None:
    """Where sessions end, the beginning of the next one (KIP-368); else there is no mechanism to choose."""
    if call.connection.authenticates_again(call, request):
        return None
    return kafka.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(call: Call, request: kafka.SaslAuthenticateRequest) -> kafka.SaslAuthenticateResponse:
    """Everybody is whoever they say."""
    return kafka.SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
