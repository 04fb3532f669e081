"""What every SASL mechanism has in common, seen from the server."""

from __future__ import annotations

from typing import Final, Protocol

MAX_NAME_CHARACTERS = 256
"""What of a name that nobody has proved yet goes to the log."""

OTHER_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class SaslFailedError(Exception):
    """Somebody did not prove who they are. Its text is for the log, without any secret."""

    def __init__(self, reason: str, told: str = "") -> None:
        """`told`: what the client is told in Kafka's words; "": only that it was not believed."""
        super().__init__(reason)
        self.told = told


class Exchange(Protocol):
    """One authentication in progress."""

    user: str
    """Who it says it is, "" as long as it does not; nobody that is proved before `done`."""
    done: bool
    """Whether it is proved."""
    expires_ms: int | None
    """Wall clock in ms at which the proof ends; None: it does not end by itself."""
    slow: bool
    """Whether a step takes milliseconds of a CPU: that is done beside the event loop, on any thread."""

    def step(self, data: bytes) -> bytes:
        """The answer to what the client said. Raises SaslFailedError, after which there is no other step."""


def plain_name(name: str) -> str:
    """A name as messages of SCRAM and OAUTHBEARER carry it (RFC 5802), without their escapes."""
    return name.replace("=2C", ",").replace("=3D", "=")


def told_name(name: str) -> str:
    """A name that anybody may have made up, fit for a log line."""
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}..."
