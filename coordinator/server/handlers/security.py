"""SASL requests in an open session: SaslHandshake (17) v0-1 and SaslAuthenticate (36) v0-2, answered as by
Kafka's broker. A client that still has to authenticate sends them to its `login`."""

from __future__ import annotations

from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    return {17: handshake, 36: authenticate}


def handshake(call: Call, request: kafka.SaslHandshakeRequest) -> kafka.SaslHandshakeResponse | None:
    """The client authenticates again, in a session that ends (KIP-368); an error in any other."""
    if call.connection.authenticates_again(call, request):
        return None
    return kafka.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(call: Call, request: kafka.SaslAuthenticateRequest) -> kafka.SaslAuthenticateResponse:
    """Always an error: the client has authenticated already, or is on a listener without SASL."""
    return kafka.SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
