"""One seed = one run: nodes with relay, offsets in transactions, users and ACLs, before three brokers, while
partitions, leaders and coordinators move, and processes die."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from unittest import mock

from ringleader.coordinator.config import Settings
from ringleader.coordinator.group_transactions import handlers
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.relay import tables
from ringleader.coordinator.server.call import Call
from ringleader.protocol.messages import TxnOffsetCommitRequest
from tests.simulation.facts import ViolationError
from tests.simulation.nodes.kafka import TOPIC
from tests.simulation.nodes.loop import NodeLoop
from tests.simulation.nodes.node import Node
from tests.simulation.nodes.world import NodesWorld, _pretending
from tests.simulation.transactions.brokers import ORDERS_PARTITIONS, TxnKafka
from tests.simulation.transactions.checks import TxnChecks
from tests.simulation.transactions.clients import Committer, Officer, Producer, Reader
from tests.simulation.transactions.node import Clients, TxnNode, Wire

PARTITIONS = 2
FAULTY_MS = (20_000, 40_000, 60_000)
SETTLE_MS = 120_000
_LOOK_MS = 1_000
_RIGHT = 0.9
"""How likely a client that looks for a coordinator gets the one that it really should be."""


class TxnWorld(NodesWorld):
    """See the module."""

    checks: TxnChecks

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None, *, quiet: bool = False) -> None:
        """`quiet`: nothing goes wrong."""
        rng = self.rng = random.Random(seed)
        self.seed, self.tell = seed, tell
        self.calm = False
        self.time_s = 0.0
        self.steps = 0
        self.quiet = quiet
        self.trouble = False
        """With nodes and brokers, and on the way to them; not before all have started."""
        self.faults = True
        """Clients go on."""
        self.storage_timeout_ms = rng.choice([5_000, 5_000, 30_000])
        self.partition_count = PARTITIONS
        self.partitions = range(PARTITIONS)
        self.node_settings = Settings(
            authorizer="acl", cluster_groups_topic=TOPIC, offsets_topic_num_partitions=PARTITIONS
        )
        self.settings = self.node_settings
        self.pause_chance = rng.choice([0.0, 0.0005, 0.003])
        self.hold_chance = rng.choice([0.0, 0.005, 0.02])
        """How likely the world moves while an answer of a broker is on its way."""
        self.late_chance = rng.choice([0.0, 0.2, 0.4])
        """How likely it is that a node learns late where a log ends, or what became of a transaction."""
        self.strike_chance = rng.choice([0.0, 0.1, 0.3])
        """How likely a partition moves, or its owner dies, between the effects of two markers."""
        self.trace = hashlib.sha256()
        checks = self.checks = TxnChecks(self)
        self._events = []
        self._sequence = self._ids = 0
        self.brokers = TxnKafka(self, PARTITIONS)
        self.kafka = self.brokers
        self.clients = Clients(NodeLoop(lambda: self.time_s, lambda what: checks.wrong("P1", what)))
        self._actors: list[Any] = []
        self.nodes = [self._make_node(number) for number in range(rng.choice([2, 3, 3]))]
        self._numbers = len(self.nodes)
        self.owners = [rng.choice(self.nodes) for _ in range(PARTITIONS)]
        for partition, node in enumerate(self.owners):
            node.want(partition, True)
        self.faulty_ms = rng.choice(FAULTY_MS)
        self.producers = rng.choice([3, 4, 6, 8])
        self.width = rng.choice([1, 2, ORDERS_PARTITIONS])
        """The number of partitions that offsets are of."""
        self.narrow = rng.random() < 0.5
        """All transactions have offsets of the same group, and of nothing else."""
        self._act(Officer(self))

    def populate(self) -> None:
        """Everybody is allowed to come."""
        self.trouble = not self.quiet
        for number in range(self.producers):
            self._act(Producer(self, number))
        self._act(Committer(self))
        for _ in range(2):
            self._act(Reader(self))
        rng = self.rng
        chances: list[tuple[int, Callable[[], None]]] = [
            (6, self._move),
            (3, self._pause_one),
            (2, self._kill_one),
            (1, self._cut_one),
            (4, self.brokers.move_leader),
            (5, self.brokers.compact_one),
            (2, self._shorten_one),
            (2, self.brokers.coordination.expire_one),
            (2, self._silence_one),
            (16, self._hold_markers),
        ]
        for most, what in chances:
            for _ in range(rng.randint(0, most)):
                self.later(rng.randint(500, self.faulty_ms), partial(self._if_trouble, what))

    def _act(self, actor: Any) -> None:
        self._actors.append(actor)
        self.clients.loop.start(actor.run())

    def actors(self, with_field: str) -> list[Any]:
        """Those clients that have it."""
        return [one for one in self._actors if hasattr(one, with_field)]

    @property
    def processes(self) -> list[Any]:
        """See `NodesWorld`."""
        return [*self.nodes, self.clients]

    @property
    def txn_nodes(self) -> list[TxnNode]:
        """All that are alive."""
        return cast("list[TxnNode]", self.nodes)

    def _make_node(self, number: int) -> Node:
        return TxnNode(self, number)

    # ---- what happens ----

    def _if_trouble(self, what: Callable[[], None]) -> None:
        if self.trouble:
            what()

    def _shorten_one(self) -> None:
        place = self.rng.choice(sorted(self.brokers.logs))
        self.brokers.shorten(place, self.rng.choice([0.3, 3.0, 8.0]))

    def _silence_one(self) -> None:
        """A coordinator of transactions does not answer for a while."""
        self.brokers.coordination.silence(self.rng.choice([2.0, 9.0]))

    def _hold_markers(self) -> None:
        """Transactions go on to end, and what that means for a partition comes all at once."""
        place = TOPIC, self.rng.choice(self.partitions)
        self.brokers.coordination.hold(place, self.rng.choice([0.3, 1.0, 4.0]))

    def lose_commits(self, node: TxnNode) -> None:
        """The clients that wait for it in a transaction lose their connections."""
        for wire in list(node.wires):
            if wire.call is not None and isinstance(wire.call.request, TxnOffsetCommitRequest):
                self.hung_up(wire)
                self._tell_closed(wire)

    def happen(self) -> None:
        """The world moves, now."""
        what = self.rng.choice(
            [
                self._move,
                self._move,
                self.brokers.move_leader,
                self.brokers.coordination.expire_one,
                self.brokers.compact_one,
                self._shorten_one,
            ]
        )
        self.checks.counts["held"] += 1
        self.later(0, partial(self._if_trouble, what))

    def transaction_took_effect(self, node: Node, partition: int) -> None:
        """An owner has written the effect of a marker: perhaps this was its last act."""
        chance = 0.9 if self.checks.half_done else self.strike_chance
        if not self.trouble or self.rng.random() >= chance:
            return
        self.checks.counts["struck"] += 1
        if self.rng.random() < 0.3:
            self.later(0, partial(self.brokers.compact, (TOPIC, partition)))
        others = [one for one in self._alive() if one is not node]
        if others and self.rng.random() < 0.7:
            self.later(0, partial(self.give, partition, self.rng.choice(others)))
        elif others:
            self.later(0, partial(self._kill, node))

    def calm_down(self) -> None:
        """See `NodesWorld`."""
        self.trouble = self.faults = False
        for node in list(self.nodes):
            node.cut = False
            self._wake(node)
        alive = self._alive()
        for partition, owner in enumerate(self.owners):
            if not owner.alive:
                self.give(partition, self.rng.choice(alive))
        for node in alive:
            for partition in range(PARTITIONS):
                self.later(100, partial(self._tell_owner, node, partition))

    # ---- requests and answers ----

    def partition_of_group(self, group_id: str) -> int:
        """Where its offsets are."""
        return partition_for(group_id, PARTITIONS)

    def any_node(self) -> TxnNode:
        """For what every node can do."""
        return self.rng.choice([one for one in self.txn_nodes if one.started] or self.txn_nodes)

    def coordinator(self, group_id: str) -> TxnNode:
        """The node that a client takes for a group's coordinator."""
        owner = cast(TxnNode, self.owners[self.partition_of_group(group_id)])
        right = not self.trouble or self.rng.random() < _RIGHT
        return owner if right else self.any_node()

    def send_to(self, wire: Wire, request: Any, version: int) -> None:
        """A request leaves its client; it arrives while that waits for it, or never."""
        self.checks.request_left(wire, request)
        if self.trouble and self.rng.random() < 0.005:
            return
        delay_ms = self.rng.choice([0, 0, 1, 5, 10, 10, 20, 400 if self.trouble else 5])
        self.later(delay_ms, partial(self._arrives, wire, request, version))

    def _arrives(self, wire: Wire, request: Any, version: int) -> None:
        if not wire.node.alive:
            self.hung_up(wire)
            return
        self.say("->", (wire.node, str(wire.principal), request))
        wire.node.tell(partial(wire.node.deliver, wire, request, version))

    def answered_on(self, wire: Wire, call: Call, response: Any) -> None:
        """A node answers."""
        if not wire.node.alive or wire.closed:
            return
        self.say("<-", (wire.node, str(wire.principal), response))
        self.trace.update(f"{self.now_ms} {wire.node.number} {response!r}\n".encode())
        self.checks.answer_left(wire, call.request, response)
        if self.trouble and self.rng.random() < 0.01:
            return  # lost on its way; its effect is there
        delay_ms = self.rng.choice([0, 0, 1, 5, 10, 10, 20, 400] if self.trouble else [0, 1, 5])
        self.later(delay_ms, partial(self._settle, wire, wire.pending, response))

    def hung_up(self, wire: Wire) -> None:
        """The node, or what is left of it, closes the connection."""
        if not wire.closed:
            wire.closed = True
            wire.node.wires.pop(wire, None)
            self.later(self.rng.randint(0, 50), partial(self._settle, wire, wire.pending, None))

    def _settle(self, wire: Wire, pending: Any, response: Any) -> None:
        if pending is not None and pending is wire.pending:
            self.clients.tell(partial(_set, pending, response))

    def leave(self, wire: Wire) -> None:
        """The client closes the connection."""
        wire.closed = True
        self._tell_closed(wire)

    def _tell_closed(self, wire: Wire) -> None:
        late_ms = self.rng.choice([0, 0, 1_000, 8_000]) if self.trouble else 0
        self.later(late_ms, partial(wire.node.tell, partial(wire.node.hang_up, wire)))

    def bury(self) -> None:
        """It is over."""
        for node in self.nodes:
            node.alive = False
            node.loop.bury()
        self.clients.loop.bury()


def _set(pending: Any, response: Any) -> None:
    if not pending.done():
        pending.set_result(response)


def simulate(seed: int, *, quiet: bool = False, tell: Callable[[str], None] | None = None) -> TxnWorld:
    """One run: faults for a while, then none, when everything must settle. Raises `ViolationError`."""
    random.seed(seed)  # back-off
    world = TxnWorld(seed, tell, quiet=quiet)

    def log() -> Any:
        loop = asyncio.get_running_loop()
        return next(node.runtime._log for node in (*world.nodes, *world.checks.dead) if node.loop is loop)

    with (
        _pretending(world),
        mock.patch.object(handlers, "get_log", log),
        mock.patch.object(tables, "get_log", log),
    ):
        try:
            _play(world)
        except ViolationError:
            raise
        except Exception as error:
            raise ViolationError(
                "P1", repr(error), seed, world.checks.where(), world.checks.again()
            ) from error
        finally:
            world.bury()
    return world


def _play(world: TxnWorld) -> None:
    world.run(world.faulty_ms)
    world.calm_down()
    until_ms = world.now_ms + SETTLE_MS
    while not world.checks.has_settled() and world.now_ms < until_ms:
        world.run(world.now_ms + _LOOK_MS)
    world.checks.settled()
