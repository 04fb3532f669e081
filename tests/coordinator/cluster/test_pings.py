"""Pings over sockets: who answers, who is silent, who is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from ringleader.coordinator.cluster import pings as module
from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.pings import Greeting, Pings
from ringleader.coordinator.cluster.suspicion import MISSED_PINGS, Suspicion
from tests.support.cluster_nodes import Lines
from tests.support.served import serving, until


class Seen(Suspicion):
    """Keeps its events."""

    def __init__(self) -> None:
        super().__init__(1)
        self.reported: list[str] = []

    def heard(self, node_id: int) -> None:
        self.reported.append("heard")
        super().heard(node_id)

    def missed(self, node_id: int) -> None:
        self.reported.append("missed")
        super().missed(node_id)

    def refused(self, node_id: int) -> None:
        self.reported.append("refused")
        super().refused(node_id)


def a_map(*ports: int) -> ClusterMap:
    nodes = [NodeInfo(number, "127.0.0.1", port, "0") for number, port in enumerate((9, *ports), 1)]
    return ClusterMap(1, 1, tuple(nodes), ())


@contextlib.asynccontextmanager
async def pinging(
    *ports: int, greeting: Greeting | None = None, lines: Lines | None = None
) -> AsyncIterator[tuple[Seen, Pings]]:
    """Node 1 pings nodes 2 and so on at these ports."""
    seen = Seen()
    pings = Pings(1, seen, greeting, None if lines is None else lines.log)
    pings.follow(a_map(*ports))
    try:
        yield seen, pings
    finally:
        await pings.stop()


async def test_a_node_that_serves_is_heard_on_one_connection_then_refuses() -> None:
    async with serving() as served, pinging(served.port) as (seen, _):
        await until(lambda: seen.reported.count("heard") >= 3)
        assert len(served.server.connections) == 1
        served.server.stop_accepting()
        await served.server.close_connections(0)
        await until(lambda: "refused" in seen.reported)
        assert seen.due(0) == [(2, "it refuses connections")]


async def test_a_node_that_hangs_is_missed_and_heard_when_it_goes_on() -> None:
    hanging, release = asyncio.Event(), asyncio.Event()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                if hanging.is_set():
                    await release.wait()
                writer.write((4).to_bytes(4) + frame[4:8])
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    async with server, pinging(server.sockets[0].getsockname()[1]) as (seen, _):
        await until(lambda: "heard" in seen.reported)
        hanging.set()
        await until(lambda: seen.reported[-MISSED_PINGS:] == ["missed"] * MISSED_PINGS)
        assert [node_id for node_id, _ in seen.due(0)] == [2]
        release.set()
        await until(lambda: seen.reported[-1] == "heard")
        assert seen.due(5_000) == []


async def test_a_node_that_answers_and_hangs_up_now_and_then_is_asked_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PING_INTERVAL_S", "RECONNECT_S"):
        monkeypatch.setattr(module, name, 0.001)
    monkeypatch.setattr(module, "DISBELIEF_S", 3_600)
    answers = 0

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answers
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        answers += 1
        writer.write((4).to_bytes(4) + frame[4:8])
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    async with server, pinging(server.sockets[0].getsockname()[1]):
        await until(lambda: answers > 2 * module.HANG_UPS)


async def test_an_answer_to_something_else_does_not_count() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write((4).to_bytes(4) + (999).to_bytes(4))
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(client, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with serving() as served, pinging(port, served.port) as (seen, _):
            await until(lambda: "heard" in seen.reported)
            assert seen._peers[2].heard is False


async def test_a_node_that_left_the_map_is_not_pinged() -> None:
    async with serving() as served, pinging(served.port) as (seen, pings):
        await until(lambda: "heard" in seen.reported)
        pings.follow(a_map())
        await until(lambda: not served.server.connections)
        assert seen.due(0) == []
