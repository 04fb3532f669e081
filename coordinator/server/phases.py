"""The phases of a session, and the table of transitions that every change of a phase is checked against."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    """The phase of a session between a client and this server."""

    ACCEPTED = "accepted"
    """The socket is accepted; over TLS the handshake is under way."""
    SASL = "sasl"
    """The client authenticates: it is answered ApiVersions and SASL alone."""
    OPEN = "open"
    """Requests are handled."""
    NODE = "node"
    """Another node authenticated: it is answered ApiVersions alone, and no quota counts."""
    RENEWING = "renewing"
    """The client authenticates again (KIP-368), as in SASL."""
    FAILED = "failed"
    """Authentication failed: nothing is read, and the connection closes after a delay."""
    CLOSED = "closed"
    """The connection is closed, or about to be."""


TRANSITIONS: Final[dict[Phase, dict[Phase, str]]] = {
    Phase.ACCEPTED: {
        Phase.SASL: "the connection is made, on a listener with SASL",
        Phase.OPEN: "the connection is made; a certificate, if there is one, names the principal",
        Phase.CLOSED: "too many connections; the certificate gives no principal",
    },
    Phase.SASL: {
        Phase.OPEN: "the client authenticated",
        Phase.NODE: "another node authenticated",
        Phase.FAILED: "the client did not prove its name, or chose a mechanism that is not enabled",
        Phase.CLOSED: "another request came, or none in time; either side hung up",
    },
    Phase.OPEN: {
        Phase.RENEWING: "a SaslHandshake came in a session that ends",
        Phase.CLOSED: "either side hung up; a request came after the end of the session",
    },
    Phase.NODE: {Phase.CLOSED: "either side hung up"},
    Phase.RENEWING: {
        Phase.OPEN: "the client authenticated again, as the same principal",
        Phase.FAILED: "the client did not prove its name, or chose another principal or mechanism",
        Phase.CLOSED: "another request came, or none in time; either side hung up",
    },
    Phase.FAILED: {Phase.CLOSED: "the delay is over; either side hung up"},
    Phase.CLOSED: {},
}
"""from -> to -> when."""


class IllegalTransitionError(RuntimeError):
    """A transition that is not in the table: a fault of the server, never a client's doing."""


def check_transition(old: Phase, new: Phase) -> None:
    """Raises `IllegalTransitionError` unless the table has old -> new."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransitionError(f"{old.value} -> {new.value}")
