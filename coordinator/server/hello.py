"""The first thing a TLS client sends, waited for before anything is begun for the client."""

from __future__ import annotations

import asyncio
import socket

HANDSHAKE_RECORD = 0x16
RECORD_HEAD_BYTES = 5
RECORD_MAX_BYTES = 16_384 + 256
"""Of a record that TLS can read."""


async def hello(peer: socket.socket) -> None:
    """Returns when the first TLS record of a peer is there as a whole, or what can be no TLS, or the end;
    nothing is read. Until then the peer costs a socket, and no turn of the loop for single bytes of it: the
    operating system counts them. `peer` does not block. Raises OSError."""
    try:
        await _arrived(peer, 1)
        if peer.recv(1, socket.MSG_PEEK) != bytes((HANDSHAKE_RECORD,)):
            return
        await _arrived(peer, RECORD_HEAD_BYTES)
        head = peer.recv(RECORD_HEAD_BYTES, socket.MSG_PEEK)
        if len(head) == RECORD_HEAD_BYTES:
            length = int.from_bytes(head[3:], "big")
            if length <= RECORD_MAX_BYTES:
                await _arrived(peer, RECORD_HEAD_BYTES + length)
    finally:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


async def _arrived(peer: socket.socket, count: int) -> None:
    """`count` bytes are there, or no more will come."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(peer, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(peer)


def _set(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)
