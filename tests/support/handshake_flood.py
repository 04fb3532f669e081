"""A process that does TLS handshakes with a server, one after the other on several connections at once, until
it is killed: `python -m tests.support.handshake_flood HOST PORT FROM AT_ONCE`."""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading


def knock(host: str, port: int, source: str) -> None:
    """For ever. Whether the server is who it says is of no interest here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, port), source_address=(source, 0)) as plain,
            context.wrap_socket(plain),
        ):
            pass


if __name__ == "__main__":
    target = (sys.argv[1], int(sys.argv[2]), sys.argv[3])
    for _ in range(int(sys.argv[4])):
        threading.Thread(target=knock, args=target).start()
