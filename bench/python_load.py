"""The load of ``bench/load/load.c`` in Python, over TLS if a certificate of an authority is given: slower, so
only what it measures itself is to be compared.

Takes the options of ``load.c`` and prints what that prints.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import struct
import time
from collections import Counter, deque
from pathlib import Path

import uvloop

from bench.processes import cpu_seconds

CORRELATION_ID = struct.Struct(">I")
CORRELATION_ID_AT = 8
CONNECT_AT_A_TIME = 8


class Load:
    """The shared measurements of all connections."""

    def __init__(self, depth: int, error_at: int) -> None:
        self.depth = depth
        self.error_at = error_at
        self.measuring = False
        self.answers = self.all_answers = self.answer_bytes = 0
        self.errors: Counter[int] = Counter()
        self.latencies_s: list[float] = []
        self.lost = ""


class Repeating(asyncio.Protocol):
    """Sends its frames in turn, and keeps a fixed number of them under way."""

    def __init__(self, load: Load, frames: list[bytes]) -> None:
        self._load = load
        self._frames = frames
        self._next = self._expected = 0
        self._sent_s: deque[float] = deque()
        self._in = b""
        self._transport: asyncio.Transport

    def go(self, transport: asyncio.Transport) -> None:
        """Begin, when all have come."""
        self._transport = transport
        self._send(self._load.depth)

    def _send(self, count: int) -> None:
        out = []
        for _ in range(count):
            frame = self._frames[self._next % len(self._frames)]
            number = CORRELATION_ID.pack(self._next)
            out.append(frame[:CORRELATION_ID_AT] + number + frame[CORRELATION_ID_AT + 4 :])
            self._next += 1
        self._sent_s.extend([time.perf_counter()] * count)
        self._transport.write(b"".join(out))

    def data_received(self, data: bytes) -> None:
        """Answers came."""
        load, now_s = self._load, time.perf_counter()
        data = self._in + data
        at = taken = 0
        while len(data) - at >= 4 and len(data) - at >= (
            size := int.from_bytes(data[at : at + 4], "big") + 4
        ):
            if int.from_bytes(data[at + 4 : at + 8], "big") != self._expected:
                load.lost = f"an answer came where {self._expected} was due"
            self._expected += 1
            code = int.from_bytes(data[at + load.error_at : at + load.error_at + 2], "big", signed=True)
            sent_s = self._sent_s.popleft()
            if load.measuring:
                load.answers += 1
                load.answer_bytes += size
                load.latencies_s.append(now_s - sent_s)
                if code:
                    load.errors[code] += 1
            taken += 1
            at += size
        self._in = data[at:]
        load.all_answers += taken
        if taken:
            self._send(taken)

    def connection_lost(self, error: Exception | None) -> None:
        """Only at the end."""
        if self._load.measuring:
            self._load.lost = "the server closed a connection"


def read_frames(path: Path) -> list[list[bytes]]:
    """By connection, as `bench.frames.write_frames` wrote them."""
    data = path.read_bytes()
    at = 4
    found = []
    for _ in range(int.from_bytes(data[:4], "little")):
        count, at, frames = int.from_bytes(data[at : at + 4], "little"), at + 4, []
        for _ in range(count):
            size = int.from_bytes(data[at : at + 4], "little")
            frames.append(data[at + 8 : at + 8 + size])
            at += 8 + size
        found.append(frames)
    return found


async def run(chosen: argparse.Namespace) -> dict[str, object]:
    """Run the load; returns what was measured. Raises RuntimeError."""
    load = Load(chosen.depth, chosen.error_at)
    tls = ssl.create_default_context(cafile=chosen.authority) if chosen.authority else None
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(CONNECT_AT_A_TIME)

    async def connect(frames: list[bytes]) -> tuple[asyncio.Transport, Repeating]:
        async with gate:
            return await loop.create_connection(
                lambda: Repeating(load, frames), chosen.host, chosen.port, ssl=tls
            )

    for transport, one in await asyncio.gather(*map(connect, read_frames(chosen.frames))):
        one.go(transport)
    await asyncio.sleep(chosen.warmup)
    load.measuring = True
    began_s, server_s, own_s = time.perf_counter(), cpu_seconds(chosen.server_pid), time.process_time()
    await asyncio.sleep(chosen.seconds)
    while not load.answers and not load.lost:  # noqa: ASYNC110 - it is looked at seldom
        await asyncio.sleep(0.01)  # a busy machine may hold up a short run
    load.measuring = False
    if load.lost:
        raise RuntimeError(load.lost)
    found = sorted(load.latencies_s)
    return {
        "depth": load.depth,
        "seconds": time.perf_counter() - began_s,
        "answers": load.answers,
        "answer_bytes": load.answer_bytes,
        "all_answers": load.all_answers,
        "p50_us": found[len(found) // 2] * 1e6,
        "p99_us": found[len(found) * 99 // 100] * 1e6,
        "max_us": found[-1] * 1e6,
        "server_cpu_s": cpu_seconds(chosen.server_pid) - server_s,
        "load_cpu_s": time.process_time() - own_s,
        "errors": {str(code): count for code, count in load.errors.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--frames", type=Path)
    parser.add_argument("--authority")
    for option in ("--port", "--depth", "--error-at", "--server-pid"):
        parser.add_argument(option, type=int)
    for option in ("--warmup", "--seconds"):
        parser.add_argument(option, type=float)
    print(json.dumps(uvloop.run(run(parser.parse_args()))))
