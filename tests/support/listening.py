"""A listener for what never listens."""

from __future__ import annotations

from ringleader.coordinator.security.listeners import Address, Listener, SecurityProtocol


def listener_at(host: str = "127.0.0.1", port: int = 9_092) -> Listener:
    """One that asks nobody who they are, and says to come to this address."""
    address = Address(host, port)
    return Listener("PLAINTEXT", address, SecurityProtocol.PLAINTEXT, address)
