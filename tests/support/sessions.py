"""The session over a connection of a server."""

from __future__ import annotations

from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.session import Session


def session_of(connection: Connection) -> Session:
    """It, with all that a connection does not ask of it."""
    assert isinstance(connection.session, Session)
    return connection.session
