"""Links between processes, spoiled in each way."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.links import Link, Links, Way

SHORT_S = 0.3
"""So long nothing comes where nothing is to come."""


@contextmanager
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what comes, until its sender has sent all."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(one: socket.socket) -> None:
            with one:
                try:
                    while data := one.recv(65_536):
                        one.sendall(data)
                except OSError:
                    pass

        def accept() -> None:
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=serve, args=(one,)))
                threads[-1].start()

        threads = [threading.Thread(target=accept)]
        threads[0].start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()


@pytest.fixture
def link() -> Iterator[Link]:
    """To an echo."""
    with echo() as (host, port), Links() as links:
        yield links.to(host, port)


def connected(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=10)


def exactly(one: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := one.recv(count - len(data))):
        data += more
    return data


def silent(one: socket.socket) -> bool:
    one.settimeout(SHORT_S)
    try:
        one.recv(1)
    except TimeoutError:
        return True
    finally:
        one.settimeout(10)
    return False


def test_bytes_come_through_and_ends_do(link: Link) -> None:
    sent = bytes(range(256)) * 4_000
    with connected(link) as one:

        def send() -> None:
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        assert exactly(one, len(sent) + 1) == sent
        sender.join()
    assert link.opened == 1


def test_a_reset_is_one_and_the_next_connection_is_good(link: Link) -> None:
    with connected(link) as one:
        one.sendall(b"a")
        assert exactly(one, 1) == b"a"
        link.reset()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with connected(link) as one:
        one.sendall(b"b")
        assert exactly(one, 1) == b"b"


def test_nobody_listens_until_it_is_healed(link: Link) -> None:
    link.refuse()
    with pytest.raises(ConnectionRefusedError):
        connected(link)
    link.heal()
    with connected(link) as one:
        one.sendall(b"a")
        assert exactly(one, 1) == b"a"


@pytest.mark.parametrize("way", ["there", "back", "both"])
def test_bytes_that_a_cut_holds_up_come_later(link: Link, way: str) -> None:
    with connected(link) as one:
        one.sendall(b"a")
        assert exactly(one, 1) == b"a"
        link.spoil(Way(cut=True), way)
        one.sendall(b"bc")
        assert silent(one)
        link.heal()
        assert exactly(one, 2) == b"bc"


def test_a_cut_of_one_way_lets_the_other_one_through() -> None:
    """A server that speaks first is heard, and does not hear."""
    with socket.create_server(("127.0.0.1", 0)) as listening, Links() as links:
        link = links.to(*listening.getsockname())
        with connected(link) as one, listening.accept()[0] as other:
            other.settimeout(10)
            link.spoil(Way(cut=True), "there")
            one.sendall(b"a")
            other.sendall(b"b")
            assert exactly(one, 1) == b"b"
            assert silent(other)
            link.heal()
            assert exactly(other, 1) == b"a"


def test_half_open_connections_swallow_and_end_with_the_healing(link: Link) -> None:
    with connected(link) as one:
        one.sendall(b"a")
        assert exactly(one, 1) == b"a"
        link.half_open()
        with connected(link) as fresh:
            for each in (one, fresh):
                each.sendall(b"b")
                assert silent(each)
            link.heal()
            for each in (one, fresh):
                with pytest.raises(ConnectionResetError):
                    each.recv(1)


def test_bytes_are_late(link: Link) -> None:
    link.spoil(Way(delay_s=0.2))
    with connected(link) as one:
        began_s = time.monotonic()
        one.sendall(b"a")
        assert exactly(one, 1) == b"a"
        assert time.monotonic() - began_s >= 0.4


def test_bytes_come_one_by_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, Links() as links:
        link = links.to(*listening.getsockname())
        link.spoil(Way(drip_s=0.02))
        with connected(link) as one, listening.accept()[0] as other:
            one.sendall(b"abcdef")
            pieces = [other.recv(10) for _ in range(3)]
            assert pieces == [b"a", b"b", b"c"]
            link.heal()
            assert exactly(other, 3) == b"def"


def test_an_upstream_that_is_not_there_resets() -> None:
    with Links() as links:
        link = links.to("127.0.0.1", 1)
        with pytest.raises(ConnectionResetError), connected(link) as one:
            one.recv(1)


def test_a_process_that_listens_elsewhere_is_found_again(link: Link) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        link.upstream = listening.getsockname()
        with connected(link) as one, listening.accept()[0] as other:
            one.sendall(struct.pack(">i", 7))
            assert exactly(other, 4) == struct.pack(">i", 7)
