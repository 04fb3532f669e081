"""Ports for what is not there yet, is away, or comes back where it was.

A port that the system chose goes to the next process that asks for any, as soon as nobody listens on it:
another test of the same run, or a connection of one. These are below the ports that the system chooses.
"""

from __future__ import annotations

import secrets
import socket

_PORTS = range(10_000, 32_768)
_TRIES = 1_000


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback address that nobody listens on."""
    found: set[int] = set()
    for _ in range(_TRIES):
        if len(found) == count:
            return list(found)
        port = secrets.choice(_PORTS)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.add(port)
    raise OSError(f"{_TRIES} ports from {_PORTS[0]} to {_PORTS[-1]} were tried: too few are free")


def free_address() -> str:
    """HOST:PORT that nobody listens on."""
    return f"127.0.0.1:{free_ports(1)[0]}"
