"""The network of a simulated run: bytes take time, in order, and arrive in pieces, late, or never, as the
plan has it."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ringleader.protocol.frames import request_class
from tests.simulation.daemon.turns import Process, Turns

HOST, PORT, SASL_PORT = "127.0.0.1", 9092, 9093
"""Where the daemon listens: for everybody, and for who says who he is."""
_SINGLE_BYTES_MAX = 300
"""The most bytes of one write that come one by one; the rest comes in one piece."""
_RESET = errno.ECONNRESET


class Pipe:
    """One direction of a connection: what `owner` writes comes out at the other end."""

    def __init__(self, net: Network, owner: Process, rng: random.Random) -> None:
        self._net, self._owner, self._rng = net, owner, rng
        self.deliver: Callable[[bytes], None]
        self._last_us = 0
        self.in_flight = 0
        self.severed = False
        """Nothing of what is on its way arrives any more."""

    def send(self, data: bytes, single: bool, late_ms: int, not_before_us: int) -> None:
        """Bytes go on their way."""
        pieces = [data]
        if single:
            first = data[:_SINGLE_BYTES_MAX]
            pieces = [first[at : at + 1] for at in range(len(first))] + [data[_SINGLE_BYTES_MAX:]]
        for piece in filter(None, pieces):
            delay_us = self._rng.randint(50, 1_500) + 1000 * (self._rng.randint(0, late_ms) if late_ms else 0)
            self.in_flight += len(piece)
            self._then(delay_us, not_before_us, partial(self._arrive, piece))

    def after(self, what: Callable[[], None], not_before_us: int) -> None:
        """Something comes behind the bytes."""
        self._then(self._rng.randint(50, 1_500), not_before_us, what)

    def _then(self, delay_us: int, not_before_us: int, what: Callable[[], None]) -> None:
        self._last_us = max(self._last_us, self._net.turns.now_us + delay_us, not_before_us)
        self._net.turns.at(self._last_us, partial(self._unless_severed, what))

    def _unless_severed(self, what: Callable[[], None]) -> None:
        if not self.severed:
            what()

    def _arrive(self, piece: bytes) -> None:
        self.in_flight -= len(piece)
        self.deliver(piece)


class Connection:
    """Two pipes. The requests of its client are counted, by API."""

    def __init__(self, net: Network, client: Process, number: int) -> None:
        rng = random.Random(f"{net.seed} connection {number} of {client.name}")
        self.net, self.client = net, client
        self.there, self.back = Pipe(net, client, rng), Pipe(net, net.server_process, rng)
        self.ended: dict[str, Callable[[Exception | None], None]] = {}
        """The callback by which each side, client and server, learns of the end."""
        self._apis: dict[int, str] = {}
        self._request = bytearray()

    def ask(self, data: bytes) -> None:
        """The client writes."""
        self._request += data
        while len(self._request) >= 12:
            end = 4 + int.from_bytes(self._request[:4], "big")
            if len(self._request) < end:
                break
            key, correlation = int.from_bytes(self._request[4:6], "big"), bytes(self._request[8:12])
            message = request_class(key)
            name = str(key) if message is None else message.NAME.removesuffix("Request")
            self._apis[int.from_bytes(correlation, "big")] = name
            self.net.count_request(self.client, name)
            del self._request[:end]
        self._send(self.there, data)

    def answer(self, data: bytes) -> None:
        """The server writes: an answer may be lost after all is done."""
        losing = self.net.losing.get(self.client.name)
        at = 0
        while losing is not None and at + 8 <= len(data):
            name = self._apis.get(int.from_bytes(data[at + 4 : at + 8], "big"), "")
            if name and losing in (name, "*"):
                del self.net.losing[self.client.name]
                self.net.counts["answers lost"] += 1
                self.reset()
                return
            at += 4 + int.from_bytes(data[at : at + 4], "big")
        self._send(self.back, data)

    def _send(self, pipe: Pipe, data: bytes) -> None:
        net, now_us = self.net, self.net.turns.now_us
        name = self.client.name
        net.trace(f"{now_us} {name} {pipe is self.there} ".encode() + data)
        single = net.single_until_us.get(name, 0) > now_us
        late_ms = net.late.get(name, (0, 0))
        pipe.send(data, single, late_ms[0] if late_ms[1] > now_us else 0, net.hole_until_us.get(name, 0))

    def reset(self) -> None:
        """Both sides hear of it; what is on its way is lost."""
        self.there.severed = self.back.severed = True
        self._over()
        for end in list(self.ended.values()):
            end(ConnectionResetError(_RESET, "Connection reset by peer"))
        self.ended.clear()

    def _over(self) -> None:
        if self in self.net.connections:
            self.net.connections.remove(self)

    def hang_up(self, side: str, *, kindly: bool) -> None:
        """One side closes: the other hears of it behind what was written before."""
        if self.ended.pop(side, None) is None:
            return
        pipe, other = (self.there, "server") if side == "client" else (self.back, "client")
        (self.back if side == "client" else self.there).severed = True
        if other not in self.ended:
            self._over()

        def heard() -> None:
            self._over()
            if (tell := self.ended.pop(other, None)) is not None:
                tell(None if kindly else ConnectionResetError(_RESET, "Connection reset by peer"))

        pipe.after(heard, self.net.hole_until_us.get(self.client.name, 0))


class Listening(Protocol):
    """A port of the daemon."""

    def accept(self, connection: Connection) -> None:
        """Here is one more."""


class Network:
    """All connections, and what goes wrong with them, by the client's name."""

    def __init__(self, turns: Turns, seed: int, trace: Callable[[bytes], None]) -> None:
        """`trace` gets all bytes that are sent."""
        self.turns, self.seed, self.trace = turns, seed, trace
        self.listeners: dict[int, Listening] = {}
        """By port."""
        self.server_process = Process("nobody")
        self.connections: list[Connection] = []
        self.losing: dict[str, str] = {}
        """Client -> the API whose next answer is lost with the connection; "*": any."""
        self.single_until_us: dict[str, int] = {}
        self.hole_until_us: dict[str, int] = {}
        self.late: dict[str, tuple[int, int]] = {}
        """Client -> the most ms that it is late, and until when."""
        self.counts: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By client, API and simulated second."""
        self._numbers: Counter[str] = Counter()

    def count_request(self, client: Process, api: str) -> None:
        """A request leaves its client."""
        self.counts[api] += 1
        self.requests[client.name, api, self.turns.now_us // 1_000_000] += 1

    def connect(self, client: Process, port: int) -> Connection:
        """Raises ConnectionRefusedError."""
        listener = self.listeners.get(port)
        self.count_request(client, "connect")
        if listener is None or client.dead:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self._numbers[client.name] += 1
        connection = Connection(self, client, self._numbers[client.name])
        self.connections.append(connection)

        def accept() -> None:
            if listener is self.listeners.get(port):
                listener.accept(connection)
            else:
                connection.reset()

        connection.there.deliver = lambda data: None
        connection.there.after(accept, self.hole_until_us.get(client.name, 0))
        return connection

    def reset(self, client: str | None = None) -> None:
        """Break all connections, or those of one client."""
        for one in [one for one in self.connections if client in (None, one.client.name)]:
            one.reset()

    def mute(self, client: str) -> None:
        """As if a router had forgotten a client's connections: nothing comes through, and neither side learns
        of it."""
        for one in [one for one in self.connections if one.client.name == client]:
            one.there.severed = one.back.severed = True
            self.connections.remove(one)
