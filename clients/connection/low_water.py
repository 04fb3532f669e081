"""How much of a large answer has to be there before the event loop is woken for it.

Nobody can use an answer before it is whole, and a broker sends one of some megabytes in dozens of pieces,
each of which would wake the loop.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from contextlib import suppress

LEAST_BYTES = 64 * 1024
"""Less than this is waited for as ever: it mostly comes in one piece."""
MOST_BYTES = 4 * 1024 * 1024
"""The kernel makes room for as much as is waited for, within its own limit (`net.ipv4.tcp_rmem`)."""
SINCE_LINUX = 5, 12
"""Before that a socket whose memory was used up by small packets could wait for ever. The newer ones are
readable then, and when the other side has closed."""


class LowWater:
    """The low-water mark (SO_RCVLOWAT) of one socket, which is readable when so much has come."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._mark = 1

    def expect(self, missing_bytes: int) -> None:
        """The answer that is coming in lacks this number of bytes; 0: none is, or its size is not known."""
        mark = min(missing_bytes, MOST_BYTES) if missing_bytes >= LEAST_BYTES else 1
        if mark != self._mark:
            self._mark = mark
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)


def low_water(transport: asyncio.BaseTransport) -> LowWater | None:
    """That of the transport; None where there is none to set: with TLS, as what it has decrypted does not
    tell how much is to come, and without the TCP of a Linux that is new enough."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None or not is_reliable(sys.platform, os.uname().release if hasattr(os, "uname") else ""):
        return None
    if transport.get_extra_info("sslcontext") is not None:
        return None
    return LowWater(sock) if sock.family in (socket.AF_INET, socket.AF_INET6) else None


def is_reliable(platform: str, release: str) -> bool:
    """Whether that system (`sys.platform`, and the release of its kernel) wakes for all else that matters."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return platform == "linux" and numbers is not None and tuple(map(int, numbers.groups())) >= SINCE_LINUX
