"""PLAIN as Kafka's broker speaks it (RFC 4616): checked against the keys that SCRAM keeps, so that the same
users can come, and no password is kept."""

from __future__ import annotations

from typing import Protocol

from ringleader.coordinator.security.exchange import OTHER_ID, SaslFailedError
from ringleader.coordinator.security.scram import Credential

MAX_MESSAGE_BYTES = 65_536


class Passwords(Protocol):
    """The passwords of users."""

    def any_credential(self, user: str) -> Credential:
        """One of a user's credentials; of a user that does not exist, made up."""


class PlainExchange:
    """See `Exchange`. A user that does not exist takes as long as a wrong password."""

    slow = True
    expires_ms: int | None = None

    def __init__(self, passwords: Passwords) -> None:
        self.user = ""
        self.done = False
        self._passwords = passwords
        self._ended = False

    def step(self, data: bytes) -> bytes:
        """See `Exchange`."""
        if self._ended:
            raise SaslFailedError("the PLAIN exchange is over")
        self._ended = True
        if len(data) > MAX_MESSAGE_BYTES:
            raise SaslFailedError(f"a PLAIN message of {len(data):,} bytes")
        parts = data.split(b"\0", 3)
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        try:
            authorization_id, self.user = parts[0].decode(), parts[1].decode()
        except UnicodeDecodeError:
            raise SaslFailedError("a user name that is not UTF-8") from None
        if not self.user:
            raise _refused("Authentication failed: username not specified")
        if not parts[2]:
            raise _refused("Authentication failed: password not specified")
        if not self._passwords.any_credential(self.user).is_of(parts[2]):
            raise _refused("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != self.user:
            raise _refused(OTHER_ID)
        self.done = True
        return b""


def _refused(text: str) -> SaslFailedError:
    return SaslFailedError(text, text)
