"""The common part of all SASL mechanisms, on the server's side."""

from __future__ import annotations

from typing import Final, Protocol

MAX_NAME_CHARACTERS = 256
"""The most of a name that goes to the log before it is authenticated."""

OTHER_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class SaslFailedError(Exception):
    """An authentication failed. Its text is for the log, without any secret."""

    def __init__(self, reason: str, answer: str = "") -> None:
        """`answer`: the message to the client, in Kafka's words; "": only that authentication failed."""
        super().__init__(reason)
        self.answer = answer


class Exchange(Protocol):
    """One authentication in progress."""

    user: str
    """The name that the client gives, "" before it does; it is not authenticated before `done`."""
    done: bool
    """Whether the client is authenticated."""
    expires_ms: int | None
    """Wall clock in ms at which the proof ends; None: it does not end by itself."""
    slow: bool
    """Whether a step takes milliseconds of a CPU: that is done beside the event loop, on any thread."""

    def step(self, data: bytes) -> bytes:
        """The answer to the client's message. Raises SaslFailedError, after which there is no other step."""


def plain_name(name: str) -> str:
    """A name as messages of SCRAM and OAUTHBEARER carry it (RFC 5802), without their escapes."""
    return name.replace("=2C", ",").replace("=3D", "=")


def shortened_name(name: str) -> str:
    """A name as a peer sent it, cut to a length that fits a log line."""
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}..."
