"""A node with all that is not sockets: runtime, store, relay, offsets in transactions, users and ACLs. Its
clients' requests come over wires, to the real handlers; what these pass on goes over the node's link."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ClientError, ConnectionLostError
from ringleader.clients.model import Node as Broker
from ringleader.coordinator.group_transactions.handlers import register as group_transactions
from ringleader.coordinator.relay.arrivals import Arrivals
from ringleader.coordinator.relay.relay import Relay
from ringleader.coordinator.relay.tables import build
from ringleader.coordinator.relay.upstream import DataConnection, Upstreams
from ringleader.coordinator.security.acls import Authorizer
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.audit import Audit
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.storage.base import StorageError
from ringleader.coordinator.storage.kafka import TopicStore
from ringleader.protocol import messages as kafka
from ringleader.protocol.refusals import refusal
from tests.simulation.nodes.kafka import Connection, Link
from tests.simulation.nodes.node import Node
from tests.simulation.transactions.brokers import SECURITY_TOPIC

if TYPE_CHECKING:
    from tests.simulation.transactions.world import TxnWorld

ADMIN = Principal("User", "admin")
_AGAIN_S = 0.5
_CONNECT_S = 0.01
_CLIENT = "of a client"
_OF_A_COMMIT = (kafka.ProduceRequest, kafka.ListOffsetsRequest, kafka.DescribeTransactionsRequest)
"""The requests of a node for a commit in a transaction."""


class Wire:
    """One connection of a client to a node; one request at a time. See `Answerable`."""

    listener = None
    companion: Any = None

    def __init__(self, world: TxnWorld, node: TxnNode, principal: Principal) -> None:
        self.world = world
        self.node = node
        self.principal = principal
        self.closed = False
        self.call: Call | None = None
        """The call that the node has."""
        self.since_s = 0.0
        self.pending: asyncio.Future[Any] | None = None
        """The client waits for it."""
        self.begun: Any = None
        """The state that was known when the request was sent."""

    def call_answered(self, call: Call, response: Any) -> None:
        """See `Answerable`."""
        self.call = None
        self.world.answered_on(self, call, response)

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("nothing is answered in bytes here")

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        self.call = None
        self.world.say("closes", (self.node, type(call.request).__name__, reason))
        self.world.hung_up(self)


class Passed(DataConnection):
    """To a broker, for one wire."""

    def __init__(self, link: RelayLink, broker: Broker) -> None:
        super().__init__(f"{broker.host}:{broker.port}", None, 2**20, 8.0, arrivals=link.arrivals)
        self._link = link
        self._broker = broker
        self._purpose = link.fresh_purpose()

    async def ask(self, request: Request, timeout_s: float, **more: Any) -> Any:
        """See `Connection.ask`."""
        self._link.leaves(request.build(request.max_version))
        try:
            return await self._link.send(
                self._broker, request, request_timeout_ms=round(timeout_s * 1000), purpose=self._purpose
            )
        except ClientError:
            self.ended.set()
            raise

    def retire(self) -> None:
        """See `DataConnection`."""
        self.ended.set()
        self._link.disconnect(self._broker, self._purpose)


class RelayLink(Link):
    """A node's way to the brokers, in whose place the world may move while an answer is on its way."""

    knows_cluster = False
    request_timeout_ms = 8_000

    def __init__(self, node: TxnNode) -> None:
        super().__init__(node)
        self.arrivals = Arrivals(2**27)
        self._numbers = 0
        self._txn_node = node
        self._txn_world = node.world

    def know(self, brokers: Any) -> None:
        """See `Cluster`."""

    def fresh_purpose(self) -> str:
        """Of a connection for one wire."""
        self._numbers += 1
        return f"{_CLIENT} {self._numbers}"

    def leaves(self, message: Any) -> None:
        """A client's request goes to a broker now."""
        self._txn_world.checks.passed(self._txn_node, message)

    async def connect(self, broker: Broker, make: Any) -> Passed:
        """See `Cluster`."""
        await asyncio.sleep(self._txn_world.rng.uniform(0.0, _CONNECT_S) + self._held_s(None))
        if self._txn_node.cut or broker.node_id in self.cut_from:
            raise ConnectionLostError("it cannot be reached")
        return Passed(self, broker)

    def _is_of_a_client(self, place: tuple[int, str]) -> bool:
        return place[1].startswith(_CLIENT)

    def _held_s(self, message: Any) -> float:
        world = self._txn_world
        if not world.trouble or world.rng.random() >= world.hold_chance:
            return 0.0
        world.happen()
        return world.rng.choice([0.02, 0.3, 2.0])

    def _late_s(self, message: Any) -> float:
        """Meanwhile the transaction that it is about may end, and the next one begin."""
        world = self._txn_world
        if not isinstance(message, _OF_A_COMMIT):
            return 0.0
        chance = world.late_chance
        if isinstance(message, kafka.ProduceRequest):
            chance /= 4
        if not world.trouble or world.rng.random() >= chance:
            return 0.0
        if world.rng.random() < 0.7:
            world.later(world.rng.randint(0, 200), partial(world.lose_commits, self._txn_node))
        return world.rng.choice([0.3, 1.0, 2.0])

    def _arrive(
        self,
        connection: Connection,
        place: tuple[int, str],
        message: Any,
        answered: asyncio.Future[Any],
        breaks: bool,
    ) -> None:
        go = partial(super()._arrive, connection, place, message, answered, breaks)
        brokers = self._txn_world.brokers
        if not isinstance(message, kafka.FetchRequest) or not brokers.park(message, place[0], go):
            go()


class RelayWithoutSockets(Relay):
    """The wires' connections to brokers are kept as those of a server's connection are."""

    def upstreams(self, call: Call) -> Upstreams:
        """See `Relay`."""
        wire = cast(Wire, call.connection)
        if wire.companion is None:
            wire.companion = Upstreams(self.cluster, self.arrivals)
        return cast(Upstreams, wire.companion)


class TxnNode(Node):
    """See the module."""

    link_class = RelayLink
    world: TxnWorld

    def __init__(self, world: TxnWorld, number: int) -> None:
        self._table: dict[int, Handler] = {}
        self.store: TopicStore | None = None
        self.authorizer = Authorizer((str(ADMIN),))
        self.wires: dict[Wire, None] = {}
        self.services: Services
        super().__init__(cast(Any, world), number)
        self.runtime.vouch = lambda partition: world.owners[partition] is self

    async def _start(self) -> None:
        while not self.started:
            try:
                await self._begin()
            except (StorageError, ClientError) as error:
                self.world.say("not started", (self, str(error)))
                await asyncio.sleep(_AGAIN_S)
        for partition in sorted(self.wanted):
            self._tend(partition)

    async def _begin(self) -> None:
        world, cluster, log = self.world, cast(Any, self.link), self.runtime._log
        known = world.brokers.security.end
        self.authorizer = Authorizer((str(ADMIN),))
        store = TopicStore(cluster, SECURITY_TOPIC, 1, self._failed, log, bytes(32))
        try:
            security = Security(store, self.authorizer)
            await security.start()
            relay = RelayWithoutSockets(cluster, world.node_settings)
            await relay.start()
            await self.runtime.start_empty()
        except BaseException:
            await store.close()
            raise
        self.services = Services(
            settings=world.node_settings,
            runtime=self.runtime,
            topics=relay.topology,
            node_id=self.number,
            cluster_id="simulated",
            spawn=self._spawn,
            now_ms=lambda: world.now_ms,
            wall_ms=lambda: 1_700_000_000_000 + world.now_ms,
            find_topics=relay.topology.find,
            find_topic_ids=relay.topology.find_ids,
            withheld_ids=relay.withheld_ids,
            authorizer=self.authorizer,
            security=security,
            withheld=frozenset((SECURITY_TOPIC,)),
            audit=Audit(log, lambda: world.now_ms, lambda: 1_700_000_000_000 + world.now_ms),
        )
        self._table = build(self.services, relay, group_transactions)
        self.store = store
        self.started = True
        world.checks.began(self, known)

    def _failed(self, error: Exception) -> None:
        self.world.checks.wrong("P1", f"{self} can serve no more: {error!r}")

    def _spawn(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(self._contained(call, coroutine))
        if call is not None:
            call.on_closed = task.cancel

    async def _contained(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception as error:
            where = traceback.format_exception(error)
            self.world.checks.wrong("P1", f"{self}: {error!r} {where[-2:]}")
            if call is not None:
                call.close("failed")

    # ---- requests ----

    def deliver(self, wire: Wire, request: Any, version: int) -> None:
        """A request has arrived."""
        if wire.closed:
            return
        if not self.started:
            self.world.hung_up(wire)
            return
        self.wires[wire] = None
        key = type(request).API_KEY
        call = wire.call = Call(cast(Any, wire), key, version, 0, "client", "/127.0.0.1", request)
        wire.since_s = self.world.time_s
        response = self._table[key](call, request)
        if isinstance(response, Generator):
            self._spawn(None, self._in_slices(call, response))
        elif isinstance(response, int):
            call.answer(refusal(request, version, response))  # the hot path
        elif response is not None:
            call.answer(response)

    async def _in_slices(self, call: Call, work: Any) -> None:
        response = await self.services.run_queue.run(work)
        if response is not None:
            call.answer(response)

    def hang_up(self, wire: Wire) -> None:
        """The peer is gone."""
        self.wires.pop(wire, None)
        call, wire.call = wire.call, None
        if call is not None:
            call.dropped()
        if wire.companion is not None:
            wire.companion.close()


class Clients:
    """The process of all clients: an event loop that is never in trouble."""

    alive = True
    paused = False

    def __init__(self, loop: Any) -> None:
        self.loop = loop

    @property
    def busy(self) -> bool:
        """See `Node`."""
        return bool(self.loop.busy)

    def step(self) -> None:
        """See `Node`."""
        self.loop.step()

    def tell(self, what: Callable[[], None]) -> None:
        """See `Node`."""
        self.loop.call_soon(what)
