"""Nodes that pass on to a Kafka cluster, in this process: the real server and relay, groups in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.coordinator.config import Settings
from ringleader.coordinator.group_transactions.handlers import register as group_transactions
from ringleader.coordinator.nodes import NodeAddress
from ringleader.coordinator.relay.relay import Relay
from ringleader.coordinator.relay.tables import build
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.server.services import Services
from tests.support.memory_store import MemoryStorage
from tests.support.served import Client, connected
from tests.support.two_brokers import TwoBrokers, two_brokers


class Nodes:
    """The partitions of groups go round the nodes; all listeners see the same."""

    def __init__(self) -> None:
        self.known: list[NodeAddress] = []

    async def mapped(self) -> None:
        """See `Nodes.mapped` of handlers."""

    def through(self, _listener: str) -> Nodes:
        """See `Nodes.through` of handlers."""
        return self

    def owner(self, partition: int) -> NodeAddress | None:
        """See `Directory.owner`."""
        return self.known[partition % len(self.known)]

    def nodes(self) -> Sequence[NodeAddress]:
        """See `Directory.nodes`."""
        return self.known


@dataclass
class RelayNode:
    """One of them."""

    server: Server
    relay: Relay
    services: Services

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return str(self.server.listeners[0].address)

    host = "127.0.0.1"

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.listeners[0].address.port

    @property
    def upstreams(self) -> int:
        """How many of its clients' connections have connections to brokers."""
        return sum(connection.session.companion is not None for connection in self.server.connections)


@contextlib.asynccontextmanager
async def relaying(
    bootstrap: str,
    count: int = 1,
    security: Security | None = None,
    withheld: Collection[str] = (),
    racks: Sequence[str] = (),
    **settings: Any,
) -> AsyncIterator[list[RelayNode]]:
    """This number of nodes before the brokers of `bootstrap`; node ids begin at 101. `security`: of all of
    them. `racks`: of each, none without."""
    directory = Nodes()
    async with contextlib.AsyncExitStack() as stack:
        nodes = []
        for number in range(count):
            rack = racks[number] if racks else ""
            own = {"broker_rack": rack, **settings}
            node = await stack.enter_async_context(
                _node(bootstrap, 101 + number, directory, security, withheld, own)
            )
            nodes.append(node)
            address = node.server.listeners[0].advertised
            directory.known.append(NodeAddress(node.services.node_id, *address, rack or None))
        yield nodes


@contextlib.asynccontextmanager
async def node_of_two_brokers(
    api_key: int, versions: tuple[int, int], answered: Callable[[Any], Any]
) -> AsyncIterator[tuple[TwoBrokers, RelayNode, Client]]:
    """A node, the brokers behind it, and a client. They answer that API so, and have these versions of it."""
    async with two_brokers() as cluster:
        for broker in cluster.brokers.values():
            broker.versions[api_key] = versions
        cluster.on(api_key, lambda request, *_: answered(request))
        async with relaying(cluster.bootstrap) as [node], connected("127.0.0.1", node.port) as client:
            yield cluster, node, client


@contextlib.asynccontextmanager
async def _node(
    bootstrap: str,
    node_id: int,
    directory: Nodes,
    security: Security | None,
    withheld: Collection[str],
    settings: dict[str, Any],
) -> AsyncIterator[RelayNode]:
    chosen = Settings(
        **{"listen": "127.0.0.1:0", "node_id": node_id, "group_initial_rebalance_delay_ms": 0, **settings}
    )
    runtime = GroupRuntime(chosen, MemoryStorage())
    await runtime.start()
    tasks: set[asyncio.Task[None]] = set()
    failures: list[BaseException] = []

    def spawn(call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                failures.append(error)
                if call is not None:
                    call.close("failed")

        task.add_done_callback(done)
        if call is not None:
            call.on_closed = task.cancel

    async with Cluster(bootstrap, client_id=f"node-{node_id}", request_timeout_ms=10_000) as cluster:
        relay = Relay(cluster, chosen)
        await relay.start()
        authorizer = AllowAll() if security is None else security.authorizer
        quotas = None if security is None else security.quotas
        server = Server(chosen, runtime, authorizer=authorizer, quotas=quotas)
        services = Services(
            authorizer=authorizer,
            settings=chosen,
            runtime=runtime,
            topics=relay.topology,
            node_id=node_id,
            cluster_id="cluster",
            spawn=spawn,
            cluster=directory,
            find_topics=relay.topology.find,
            find_topic_ids=relay.topology.find_ids,
            security=security,
            withheld=frozenset(withheld),
            withheld_ids=relay.withheld_ids,
        )
        await server.start(build(services, relay, group_transactions), relay.topology)
        try:
            yield RelayNode(server, relay, services)
        finally:
            server.stop_accepting()
            await runtime.stop()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.close_connections(1.0)
    if failures:
        raise failures[0]
