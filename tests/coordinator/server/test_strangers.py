"""Peers that never prove who they are, by the hundred: a client of the same address logs in while all of them
are still there, and clients that have logged in stay."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.clock import monotonic_ms
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.server import handshakes
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.handlers import security as security_handlers
from ringleader.coordinator.server.hello import hello as wait_for_hello
from ringleader.coordinator.server.sasl import Sasl
from ringleader.coordinator.server.slow_steps import SlowSteps
from ringleader.coordinator.server.strangers import (
    CONNECTION_BYTES,
    HANDSHAKE_BYTES,
    LONG_READ_BYTES,
    Strangers,
)
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.support.certificates import Certificates
from tests.support.groupclient import form
from tests.support.registered import PASSWORD, ScramClient, registered
from tests.support.served import Client, Served, serving, until

CLOSED = "a peer that has not authenticated was closed"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.asynccontextmanager
async def asking(directory: Path, certificates: Certificates, **more: Any) -> AsyncIterator[Served]:
    """A server that asks everybody who they are, with TLS and without."""
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "ssl_keystore_location": certificates.server,
        "tls_handshake_timeout_ms": 600_000,
        "sasl_authentication_timeout_ms": 600_000,
        **more,
    }
    sasl = Sasl((await registered(directory)).users)
    async with serving(handlers=security_handlers.register, sasl=sasl, **settings) as served:
        yield served


@contextlib.asynccontextmanager
async def member(served: Served, tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    """A client that has logged in."""
    address = served.server.listeners[0 if tls is not None else 1].address
    client = Client(*await asyncio.open_connection(*address, ssl=tls))
    try:
        await log_in(client)
        yield client
    finally:
        await client.close()


async def log_in(client: Client) -> None:
    scram = ScramClient()
    assert (await client.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)).error_code == 0
    first = await client.call(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
    final = scram.final(first.auth_bytes)
    assert (await client.call(SaslAuthenticateRequest(auth_bytes=final), 2)).error_code == 0


@contextlib.contextmanager
def strangers(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    """`count` strangers, connected."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(address))
            one.setblocking(False)
            found.append(one)
        yield found


def client_hello() -> bytes:
    """Of a client that could go on."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


# ---- handshakes ----

BEGINNINGS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda hello: b"",
    "one byte": lambda hello: hello[:1],
    "all but one byte": lambda hello: hello[:-1],
    "a whole hello": lambda hello: hello,
    "the head of a record of one byte": lambda hello: b"\x16\x03\x01\x00\x01",
    "a record of one byte": lambda hello: b"\x16\x03\x01\x00\x01\x01",
}


@pytest.mark.parametrize(
    ("count", "beginning"),
    [*((150, one) for one in BEGINNINGS), (1_000, "all but one byte"), (1_000, "a whole hello")],
)
async def test_silent_peers_keep_no_client_of_their_address_out(
    certificates: Certificates, tmp_path: Path, count: int, beginning: str
) -> None:
    opening = BEGINNINGS[beginning](client_hello())
    async with asking(tmp_path, certificates) as served:
        with strangers(served.server.listeners[0].address, count) as silent:
            for one in silent:
                one.send(opening)
            await until(lambda: len(served.server.handshakes) == count)
            async with member(served, certificates.client_tls()) as client:
                # Not in place of any of them: they are all still there.
                assert len(served.server.handshakes) == count
                assert served.server.handshakes.failed == 0
                assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        await until(lambda: not len(served.server.handshakes))
        await until(lambda: not len(served.server.strangers))
        assert served.server.strangers.held_bytes == 0


async def test_a_hello_that_comes_byte_by_byte_takes_no_turn_before_its_end(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte is in a segment of its own. The one with a turn may begin when the last byte is there."""
    begun: list[handshakes.Arrival] = []
    begin = handshakes.Handshakes._begin

    def counted(self: handshakes.Handshakes, arrival: handshakes.Arrival) -> None:
        begun.append(arrival)
        begin(self, arrival)

    monkeypatch.setattr(handshakes.Handshakes, "_begin", counted)
    hello = client_hello()
    async with asking(tmp_path, certificates, tls_max_handshakes=1) as served:
        with strangers(served.server.listeners[0].address, 20) as slow:
            for one in slow:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for position in range(len(hello) - 1):
                for one in slow:
                    one.send(hello[position : position + 1])
                await asyncio.sleep(0)
                if position == len(hello) // 2:
                    async with member(served, certificates.client_tls()):
                        assert len(begun) == 1
            assert len(begun) == 1
            for one in slow:
                one.send(hello[-1:])
            await until(lambda: len(begun) == 21)
            answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(slow[-1], 1), 20)
            assert answer == b"\x16"


async def test_a_peer_that_falls_silent_in_its_turn_is_closed(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with asking(tmp_path, certificates, tls_handshake_timeout_ms=100) as served:
        with strangers(served.server.listeners[0].address, 1) as [silent]:
            silent.send(client_hello())
            await until(lambda: bool(served.events("TLS handshake failed")))
            [line] = served.events("TLS handshake failed")
            assert line["reason"] == "not over in time (tls.handshake.timeout.ms)"
            await until(lambda: not len(served.server.handshakes))
        assert served.server.handshakes._busy == 0


async def test_the_wait_for_a_turn_is_not_held_against_a_peer(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_s = 0.1
    async with asking(tmp_path, certificates, tls_max_handshakes=1) as served:
        shaking = served.server.handshakes

        async def hello(peer: socket.socket) -> None:
            await wait_for_hello(peer)
            shaking._timeout_s = short_s

        monkeypatch.setattr(handshakes, "hello", hello)
        shaking._busy = 1  # others have theirs
        coming = asyncio.create_task(_logged_in(served, certificates))
        await until(lambda: sum(map(len, shaking._waiting.values())) == 1)
        await asyncio.sleep(3 * short_s)  # nothing has to happen
        assert (len(shaking), shaking.failed) == (1, 0)
        shaking._timeout_s, shaking._busy = 600.0, 0
        shaking._next()
        await coming
        assert shaking.failed == 0


async def _logged_in(served: Served, certificates: Certificates) -> None:
    async with member(served, certificates.client_tls()) as client:
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0


async def test_turns_go_round_addresses(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One turn at a time, held for ever by its owner; then the next is of another address."""
    monkeypatch.setattr(handshakes, "TURN_S", 600.0)
    hello = client_hello()
    async with asking(tmp_path, certificates, tls_max_handshakes=1) as served:
        shaking = served.server.handshakes
        with strangers(served.server.listeners[0].address, 40) as here:
            for one in here:
                one.send(hello)
            await until(lambda: sum(map(len, shaking._waiting.values())) == 39)
            address = served.server.listeners[0].address
            with socket.create_connection(address, source_address=("127.0.0.2", 0)) as elsewhere:
                elsewhere.setblocking(False)
                elsewhere.send(hello)
                await until(lambda: "127.0.0.2" in shaking._waiting)
                begun = [one for one in here if await _answered(one)]
                assert len(begun) == 1
                begun[0].close()
                await until(lambda: len(shaking) == 40)
                # One more of those that came first, then the other address, whatever is before it.
                begun = [one for one in here if one.fileno() >= 0 and await _answered(one)]
                for one in begun:
                    one.close()
                assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(elsewhere, 1), 20)


async def _answered(one: socket.socket) -> bool:
    await asyncio.sleep(0.001)
    with contextlib.suppress(BlockingIOError):
        return bool(one.recv(1, socket.MSG_PEEK))
    return False


# ---- memory ----


async def test_strangers_share_a_pool_and_a_member_goes_on(
    certificates: Certificates, tmp_path: Path
) -> None:
    pool = 4_194_304
    async with (
        asking(tmp_path, certificates, connections_unauthenticated_max_bytes=pool) as served,
        member(served) as client,
    ):
        worker = await form(client, "group")
        begun = struct.pack(">i", 524_288) + bytes(524_287)
        with strangers(served.server.listeners[1].address, 100) as many:
            loop = asyncio.get_running_loop()
            for one in many:
                with contextlib.suppress(ConnectionError):
                    await loop.sock_sendall(one, begun)
                assert served.server.strangers.held_bytes <= pool
                assert (await client.call(worker.heartbeat(), 3)).error_code == 0
            await until(lambda: served.server.strangers.closed >= 80)
            # A login holds less than any of them does.
            async with member(served) as another:
                assert (await another.call(ApiVersionsRequest(), 0)).error_code == 0
        assert len(served.events(CLOSED)) < 10, "seldom enough that nobody fills the log"
        await until(lambda: not len(served.server.strangers))
        assert served.server.held_bytes == 0


async def test_strangers_are_closed_before_members(certificates: Certificates, tmp_path: Path) -> None:
    """Though a member holds more than each of them."""
    limit = 2_097_152
    async with (
        asking(tmp_path, certificates, queued_max_request_bytes=limit) as served,
        member(served) as client,
    ):
        await client.call(ApiVersionsRequest(), 0)
        client.writer.write(struct.pack(">ihhi", 1_000_000, 11, 5, 9) + bytes(900_000))
        await until(lambda: served.server.held_bytes > 900_000)
        begun = struct.pack(">i", 524_288) + bytes(400_000)
        with strangers(served.server.listeners[1].address, 6) as few:
            loop = asyncio.get_running_loop()
            for one in few:
                with contextlib.suppress(ConnectionError):
                    await loop.sock_sendall(one, begun)
            await until(lambda: len(served.events("connection closed")) >= 4)
            assert served.server.held_bytes <= limit
            closed_peers = {line["peer"] for line in served.events("connection closed")}
            [held] = [one for one in served.server.connections if one.held_bytes > 900_000]
            assert held.peer not in closed_peers
            assert str(held.session.principal) == "User:alice"


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_ip"])
@pytest.mark.parametrize("listener", [0, 1], ids=["tls", "sasl"])
async def test_strangers_make_room(
    certificates: Certificates, tmp_path: Path, limit: str, listener: int
) -> None:
    settings: dict[str, Any] = {limit: 10}
    async with asking(tmp_path, certificates, **settings) as served, contextlib.AsyncExitStack() as stack:
        with strangers(served.server.listeners[listener].address, 10):
            await until(lambda: len(served.server.strangers) == 10)
            context = certificates.client_tls()
            for number in range(10):
                await stack.enter_async_context(member(served, context if number % 2 else None))
            assert not len(served.server.strangers)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await stack.enter_async_context(member(served))
        assert len(served.server.connections) == 10


@pytest.mark.parametrize("listener", [0, 1], ids=["tls", "sasl"])
async def test_a_client_that_has_failed_is_read_from_no_more(
    certificates: Certificates, tmp_path: Path, listener: int
) -> None:
    """Until it is closed, which is after a while, it may send what it likes."""
    wait = {"connection_failed_authentication_delay_ms": 60_000}
    tls = certificates.client_tls() if listener == 0 else None
    async with asking(tmp_path, certificates, **wait) as served:
        address = served.server.listeners[listener].address
        client = Client(*await asyncio.open_connection(*address, ssl=tls))
        client.writer.write(struct.pack(">i", -1))
        await until(lambda: bool(served.events("authentication failed")))
        [stranger] = served.server.connections
        assert served.server.held_bytes == 0
        assert stranger._reading, "it is noticed when it hangs up"
        client.writer.write(bytes(1_000_000))
        await until(lambda: not stranger._reading)
        assert served.server.held_bytes == 0
        client.writer.transport.abort()
        await client.close()


@pytest.mark.parametrize("listener", [0, 1], ids=["tls", "sasl"])
async def test_a_stranger_that_waits_is_read_from_up_to_its_largest_frame(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: int
) -> None:
    """And once it has logged in, up to what everybody may send ahead."""
    stepping: list[asyncio.Future[bytes]] = []

    def add(self: SlowSteps, address: str, step: Callable[[], bytes]) -> asyncio.Future[bytes]:
        stepping.append(asyncio.get_running_loop().create_future())
        return stepping[0]

    monkeypatch.setattr(SlowSteps, "add", add)
    most = 65_536
    plain = {
        "sasl_server_max_receive_size": most,
        "sasl_enabled_mechanisms": "PLAIN",
        "sasl_cleartext_without_tls": True,
    }
    tls = certificates.client_tls() if listener == 0 else None
    async with asking(tmp_path, certificates, **plain) as served:
        address = served.server.listeners[listener].address
        client = Client(*await asyncio.open_connection(*address, ssl=tls))
        assert (await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == 0
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + PASSWORD.encode()), 2)
        await until(lambda: bool(stepping))
        [stranger] = served.server.connections
        client.writer.write(bytes(most - 1))
        await until(lambda: len(stranger._more) == most - 1)
        assert stranger._reading
        client.writer.write(bytes(1))
        await until(lambda: not stranger._reading)
        assert len(stranger._more) == most
        client.writer.transport.abort()
        await client.close()


async def test_what_tls_reads_into_is_counted_from_a_long_read_on(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with asking(tmp_path, certificates) as served:
        pool = served.server.strangers
        address = served.server.listeners[0].address
        client = Client(*await asyncio.open_connection(*address, ssl=certificates.client_tls()))
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        assert pool.held_bytes == HANDSHAKE_BYTES
        frame = struct.pack(">i", 400_000) + bytes(300_000)
        client.writer.write(frame)
        await until(lambda: served.server.held_bytes == len(frame))
        assert pool.held_bytes == HANDSHAKE_BYTES + LONG_READ_BYTES + len(frame)
        client.writer.transport.abort()
        await client.close()
        await until(lambda: not len(pool))
        async with member(served, certificates.client_tls()):
            assert pool.held_bytes == 0


async def test_a_peer_counts_once_when_its_handshake_becomes_a_connection(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there is room for one alone."""
    counted: list[tuple[int, int, int]] = []
    made = Connection.connection_made

    async with asking(tmp_path, certificates, max_connections_per_ip=1, max_connections=1) as served:
        server = served.server

        def counting(self: Connection, transport: asyncio.BaseTransport) -> None:
            made(self, transport)
            here = len(server.connections) + len(server.handshakes)
            counted.append((here, len(server.strangers), server.strangers.held_bytes))

        monkeypatch.setattr(Connection, "connection_made", counting)
        for _ in range(3):
            async with member(served, certificates.client_tls()) as client:
                assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
                assert server.handshakes.from_address("127.0.0.1") == 0
            await until(lambda: not server.connections)
        assert counted == [(1, 1, HANDSHAKE_BYTES)] * 3


class Peer:
    """One that is noted when it is closed."""

    def __init__(self, address: str, closed: list[Peer]) -> None:
        self.address, self.peer, self._closed = address, address, closed

    def give_way(self) -> None:
        self._closed.append(self)


def test_the_pool_is_never_above_its_bound(seed: int) -> None:
    """The bound holds while clients come, send more, log in and leave; and the sums are right at the end."""
    drawn = random.Random(seed)
    most = drawn.choice((100_000, 1_000_000))
    pool = Strangers(most, monotonic_ms, get_log())
    closed: list[Peer] = []
    here: dict[Peer, int] = {}
    for _ in range(3_000):
        match drawn.randrange(4):
            case 0 | 1:
                one = Peer(f"10.0.0.{drawn.randrange(5)}", closed)
                here[one] = drawn.choice((CONNECTION_BYTES, HANDSHAKE_BYTES))
                pool.enter(one, here[one])
            case 2 if here:
                one = drawn.choice(list(here))
                pool.weigh(one, drawn.choice((0, 1, 5_000, 2 * most)))
            case _ if here:
                one = drawn.choice(list(here))
                pool.leave(one)
                del here[one]
        for peer in closed:
            here.pop(peer, None)
            assert not pool.has(peer)
        closed.clear()
        assert len(pool) == len(here)
        assert pool.held_bytes <= most
    for one in list(here):
        pool.leave(one)
    assert (len(pool), pool.held_bytes) == (0, 0)


def test_an_address_that_all_have_left_has_none_to_make_room() -> None:
    pool, closed = Strangers(100_000, monotonic_ms, get_log()), list[Peer]()
    first, other = Peer("10.0.0.1", closed), Peer("10.0.0.2", closed)
    for one in (first, other):
        pool.enter(one, CONNECTION_BYTES)
    pool.leave(first)
    assert not pool.make_room("for the test", first.address)
    assert closed == []
    assert pool.make_room("for the test", other.address)
    assert closed == [other]


@pytest.mark.parametrize("addresses", [1, 150])
def test_a_silent_stranger_is_closed_before_one_that_logs_in(addresses: int) -> None:
    closed: list[Peer] = []
    pool = Strangers(1_048_576, monotonic_ms, get_log())
    for number in range(150):
        pool.enter(Peer(f"10.0.0.{number % addresses}", closed), CONNECTION_BYTES)
    honest = Peer("10.0.0.0" if addresses == 1 else "10.0.1.0", closed)
    pool.enter(honest, CONNECTION_BYTES)
    pool.enter(honest, HANDSHAKE_BYTES)
    pool.weigh(honest, 4_000)
    for number in range(20):
        pool.enter(Peer(f"10.0.2.{number}" if addresses > 1 else "10.0.0.0", closed), CONNECTION_BYTES)
    assert pool.make_room("too many connections")
    assert len(closed) > 40
    assert pool.has(honest)


async def test_a_handshake_that_is_closed_as_its_turn_comes_harms_no_other(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes more from then on, and the pool is full."""
    monkeypatch.setattr(handshakes, "TURN_S", 600.0)  # a turn ends here when the test says so
    pool = 1_048_576
    more = {"connections_unauthenticated_max_bytes": pool, "tls_max_handshakes": 1}
    async with asking(tmp_path, certificates, **more) as served:
        address, held = served.server.listeners[0].address, served.server.strangers
        under_way = served.server.handshakes
        loop = asyncio.get_running_loop()
        unhandled: list[str] = []
        loop.set_exception_handler(lambda _, context: unhandled.append(str(context)))
        with contextlib.ExitStack() as stack:

            async def come(source: str, says: bytes = b"") -> socket.socket:
                count = len(held)
                made = stack.enter_context(socket.socket())
                made.bind((source, 0))
                made.connect(address)
                made.setblocking(False)
                made.sendall(says)
                await until(lambda: len(held) > count)
                return made

            await come("127.0.0.2", client_hello())
            await until(lambda: under_way._busy == 1)
            [first] = [one for one in under_way._here if one.turn is not None]
            second = await come("127.0.0.1", client_hello())
            third = await come("127.0.0.3", client_hello())
            await until(lambda: len(under_way._waiting) == 2)
            while held.held_bytes + CONNECTION_BYTES <= pool:
                await come("127.0.0.1")
            assert (held.closed, list(under_way._waiting)) == (0, ["127.0.0.1", "127.0.0.3"])
            under_way._over(first)  # as its timer does
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(loop.sock_recv(second, 1), 20) == b""
            assert held.closed > 0
            assert await asyncio.wait_for(loop.sock_recv(third, 1), 20), "its turn came all the same"
            assert held.held_bytes <= pool
        await until(lambda: len(under_way) == 0)
        assert (len(held), held.held_bytes, unhandled) == (0, 0, [])


def test_the_address_that_holds_most_pays() -> None:
    closed: list[Peer] = []
    pool = Strangers(100_000, monotonic_ms, get_log())
    honest = Peer("10.0.0.1", closed)
    pool.enter(honest, CONNECTION_BYTES)
    for _ in range(100):
        pool.enter(Peer("10.0.0.2", closed), CONNECTION_BYTES)
    assert len(closed) == 89
    assert pool.has(honest)
    small, large = Peer("10.0.0.2", closed), Peer("10.0.0.2", closed)
    pool.enter(small, 10)
    closed.clear()
    pool.enter(large, 10)
    pool.weigh(large, 90_000)
    assert closed == [large]
    assert pool.has(small)


class _Silent:
    """A peer that holds something, and is closed."""

    def __init__(self, address: str, peer: str, closed: list[str]) -> None:
        self.address, self.peer = address, peer
        self._closed = closed

    def give_way(self) -> None:
        """See `Stranger`."""
        self._closed.append(self.peer)


def test_of_those_that_hold_about_as_much_the_oldest_goes_however_they_grew() -> None:
    closed: list[str] = []
    strangers = Strangers(100_000_000, lambda: 0, get_log())
    first, second, third = (_Silent("10.0.0.1", name, closed) for name in ("first", "second", "third"))
    for one in (first, second, third):
        strangers.enter(one, CONNECTION_BYTES)
    strangers.weigh(first, 10)
    assert strangers.make_room("a test")
    strangers.weigh(third, 10)
    assert strangers.make_room("a test")
    assert closed == ["first", "second"]
    assert strangers.held_bytes == CONNECTION_BYTES + 10
    strangers.weigh(third, 4 * LONG_READ_BYTES)
    strangers.leave(third)
    assert strangers.held_bytes == 0
    alone = _Silent("10.0.0.2", "alone", closed)
    strangers.enter(alone, CONNECTION_BYTES)
    again = _Silent("10.0.0.1", "again", closed)
    strangers.enter(again, CONNECTION_BYTES)
    strangers.weigh(alone, LONG_READ_BYTES)
    assert strangers.make_room("a test")
    assert closed[2:] == ["alone"], "what is gone does not count against its address"
