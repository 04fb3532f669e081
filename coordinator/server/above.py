"""The side of a session that its connection sees: frames go up, and a few questions."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ringleader.coordinator.server.call import Answerable
from ringleader.coordinator.server.phases import Phase


class Authentication(Protocol):
    """A login, as far as its bytes go."""

    most_bytes: int
    """The longest frame."""

    def take(self, frame: bytes) -> None:
        """One frame, without its size."""

    def fail(self, reason: str) -> None:
        """End it, and close the connection after a delay."""


class Above(Answerable, Protocol):
    """The session over a connection, as the connection sees it."""

    phase: Phase

    @property
    def login(self) -> Authentication | None:
        """Takes the frames in place of the session, while the client authenticates."""

    def began(self, transport: asyncio.Transport) -> None:
        """The connection is made."""

    def refusal(self, api_key: int) -> str:
        """The reason not to handle a request of that API, or "". Asked after `Connection.open_until`."""

    def limit(self, api_key: int) -> int:
        """The longest frame that is waited for."""

    def rests_first(self, frame: bytes, api_key: int, version: int) -> bool:
        """Whether the first request of a connection waits for a quota; then the connection is muted."""

    def request(
        self, frame: bytes, api_key: int, version: int, correlation_id: int, out: list[bytes], now: int
    ) -> str:
        """One request: adds its answer to `out`, or parks the connection. Returns why the connection must be
        closed, or ""."""

    def quotas_changed(self) -> None:
        """Look up again which quotas count."""

    def log_fields(self) -> dict[str, str]:
        """Peer and client, for a log line."""

    def left_behind(self, frames: bytes, now: int) -> None:
        """The peer hung up while these bytes waited."""

    def ended(self) -> None:
        """The connection is about to close."""

    def lost(self) -> None:
        """The connection is gone."""
