"""Alerts: a peer gets the reason why its TLS handshake fails. Event loops hang up before the alert has left,
and a client without one tries again and again."""

from __future__ import annotations

import contextlib
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Peer:
    """The other end of the connection."""

    socket: socket.socket
    spoke: bool = False
    """Whether it has sent anything."""


PEER: ContextVar[Peer] = ContextVar("PEER")
"""Of the handshake that is about to begin."""


class AlertingObject(ssl.SSLObject):
    """Sends the alert of a handshake that fails before the connection is closed."""

    outgoing: ssl.MemoryBIO
    peer: Peer | None
    begun = False

    def do_handshake(self) -> None:
        """As in the base class; before an error is raised, the alert is sent."""
        if self.begun and self.peer is not None:
            self.peer.spoke = True
        self.begun = True
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.peer is not None:
                with contextlib.suppress(OSError):
                    self.peer.socket.send(self.outgoing.read())
            raise
        self.peer = None


class AlertingContext(ssl.SSLContext):
    """Makes `AlertingObject`s."""

    sslobject_class = AlertingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """For the peer of `PEER`."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, AlertingObject)
        made.outgoing, made.peer = outgoing, PEER.get(None)
        return made
