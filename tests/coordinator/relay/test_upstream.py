"""The brokers' connections of one client's connection: large answers take their turn, and nothing stays when
the client is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.clients.errors import ConnectionLostError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.arrivals import Arrivals
from ringleader.coordinator.relay.upstream import SMALL_BYTES, DataConnection, Upstreams

BROKER = Node(1, "broker", 9092)


class Opened:
    """A cluster whose connections stand when the test says so."""

    def __init__(self) -> None:
        self.may_stand = asyncio.Event()
        self.made: list[DataConnection] = []

    async def connect(self, node: Node, make: Any) -> DataConnection:
        await self.may_stand.wait()
        found: DataConnection = make(f"{node.host}:{node.port}", "client", 2**20, 5.0)
        self.made.append(found)
        return found


class Transport(asyncio.Transport):
    """One on which nothing is sent."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None: ...


async def test_a_connection_that_stands_when_the_client_is_gone_is_closed() -> None:
    cluster: Any = Opened()
    upstreams = Upstreams(cluster, Arrivals(2**20))
    opening = asyncio.create_task(upstreams.connection(BROKER))
    await asyncio.sleep(0)
    upstreams.close()
    cluster.may_stand.set()
    with pytest.raises(ConnectionLostError, match="client is gone"):
        await opening
    assert [one.ended.is_set() for one in cluster.made] == [True]


async def test_an_answer_that_is_coming_in_keeps_its_bytes_when_another_is_handed_over() -> None:
    arrivals = Arrivals(2**20)
    connection = DataConnection("broker:9092", "client", 2**20, 5.0, arrivals=arrivals)
    connection.wire.established()
    connection.connection_made(Transport())
    size = 2 * SMALL_BYTES
    head = size.to_bytes(4, "big")
    connection.get_buffer(-1)[: len(head)] = head
    connection.buffer_updated(len(head))
    assert arrivals.taken_bytes == 4 + size
    connection.release()
    assert arrivals.taken_bytes == 4 + size
    connection.close()
    assert arrivals.taken_bytes == 0


async def test_a_large_answer_stays_at_the_broker_while_the_client_does_not_wait_for_it() -> None:
    cluster: Any = Opened()
    cluster.may_stand.set()
    arrivals = Arrivals(2**20)
    upstreams = Upstreams(cluster, arrivals)
    connection = await upstreams.connection(BROKER, waiting=True)
    connection.wire.established()
    connection.connection_made(Transport())
    upstreams.want(BROKER, False)
    size = 2 * SMALL_BYTES
    connection.get_buffer(-1)[:4] = size.to_bytes(4, "big")
    connection.buffer_updated(4)
    assert arrivals.taken_bytes == 0
    upstreams.want(BROKER, True)
    assert arrivals.taken_bytes == 4 + size
    connection.close()
    assert arrivals.taken_bytes == 0
