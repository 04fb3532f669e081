"""One seed = one run: nodes that take partitions over from each other, die, stand still and wake, a cluster
of brokers behind them, a network between all, and the members and operators of the other simulation."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, cast
from unittest import mock

from ringleader.coordinator import run_queue
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.storage.kafka import ownership, security, store, writer
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import OffsetCommitRequest
from ringleader.protocol.refusals import refusal as protocol_refusal
from tests.simulation.facts import ViolationError
from tests.simulation.member import Worker
from tests.simulation.nodes import consumers
from tests.simulation.nodes.checks import Checks
from tests.simulation.nodes.consumers import Consumers
from tests.simulation.nodes.kafka import Kafka
from tests.simulation.nodes.node import STORAGE_TIMEOUT_MS, Node
from tests.simulation.requests import Delete, Describe, Fetch, ListGroups
from tests.simulation.requests import refusal as member_refusal
from tests.simulation.strangers import Liar, Operator
from tests.simulation.world import Call, World

GROUPS = ("g", "h")
PARTITIONS = 2
FAULTY_MS = (15_000, 30_000, 60_000)
SETTLE_MS = 150_000
NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)
_LOOK_MS = 2_000
_LOOK_AT_CLOCK_S = 0.0015
"""The time that passes, to the scheduler of long work, from one look at its clock to the next."""
_STAYS_AT_NODE = 0.9
"""How likely a client that looks for its coordinator gets the one that really should be it."""


@dataclass(eq=False, slots=True)
class NodeCall(Call):
    """A request that one node has."""

    node: Node | None = None
    world: Any = None
    begun: dict[Any, int] = field(default_factory=dict)
    """Fetches: what was acknowledged when it was sent."""
    arrived_s: float = 0.0
    owner: Any = None
    loading: bool = False
    away: bool = False
    done: bool = False

    def answer(self, response: Any) -> None:
        """The node's runtime answers; None: the connection is closed."""
        self.world.answered(self, response)

    def refuse(self, error_code: int) -> None:
        """It refuses."""
        self.world.answered(self, refusal(self, int(error_code)), refused=True)


def refusal(call: Call, code: int) -> Any:
    """In the form that the request has for it."""
    request = call.request
    if isinstance(request, Fetch | Delete | Describe | ListGroups):
        return member_refusal(request, code)
    return protocol_refusal(request, call.api_version, code)


class NodesWorld:
    """The world that the members and operators of `tests.simulation` need, with nodes in it."""

    consumers: Consumers | None = None

    def __init__(self, seed: int, *, calm: bool = False, tell: Callable[[str], None] | None = None) -> None:
        """`calm`: nothing goes wrong with members, and their network is good (D4)."""
        self.seed = seed
        self.calm = calm
        self.tell = tell
        self.rng = random.Random(seed)
        self.time_s = 0.0
        self.steps = 0
        self.trouble = True
        """With nodes and brokers."""
        self.faults = not calm
        """With members and their network."""
        self.keep_offsets = True
        self.storage_timeout_ms = STORAGE_TIMEOUT_MS
        self.partition_count = PARTITIONS
        self.partitions = range(PARTITIONS)
        chosen = World._choose_settings(cast(Any, self), True)
        self.settings: GroupSettings = chosen.model_copy(
            update={
                "group_metadata_max_bytes": 2**28,
                "offsets_retention_check_interval_ms": 600_000,
                "group_max_record_bytes": 1_000_000,
                "group_consumer_session_timeout_ms": 10_000 if calm else self.rng.choice([10_000, 45_000]),
                "group_consumer_assignment_interval_ms": self.rng.choice([0, 1_000]),
            }
        )
        if calm:
            self.settings = self.settings.model_copy(
                update={"group_max_size": 2**31 - 1, "group_max_pending_members": 1_000}
            )
        self.pause_chance = self.rng.choice([0.0, 0.002, 0.01])
        self.trace = hashlib.sha256()
        self.checks = Checks(self)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._ids = 0
        self.kafka = Kafka(self, PARTITIONS)
        routed = "h", "simple", consumers.GROUP
        self._routes = {group: self.rng.randrange(PARTITIONS) for group in routed}
        self.consumers = Consumers(self)
        self.nodes = [self._make_node(number) for number in range(self.rng.choice([2, 3, 3]))]
        self._numbers = len(self.nodes)
        self.owners: list[Node] = [self.rng.choice(self.nodes) for _ in range(PARTITIONS)]
        """The owners according to the map."""
        for partition, node in enumerate(self.owners):
            node.want(partition, True)
        self._at: dict[tuple[int, int], Node] = {}
        """By client and partition: whom it takes for its coordinator."""
        self.faulty_ms = self.rng.choice(FAULTY_MS)
        self._populate()
        self.consumers.populate()

    def _populate(self) -> None:
        rng = self.rng
        share = rng.choice([0.0, 0.3, 0.7])
        self.workers = [
            Member(
                cast(Any, self),
                f"w{number}",
                rng.choice(GROUPS),
                f"i{number}" if rng.random() < share else None,
            )
            for number in range(rng.choice([2, 3, 4, 6, 8]))
        ]
        self.others: list[Any] = [Onlooker(cast(Any, self))]
        if not self.calm:
            self.others.append(Liar(cast(Any, self)))
        else:
            for one in self.workers:
                one.session_ms, one.rebalance_ms, one.interval_ms = 10_000, 20_000, 1_000
                one.protocols = [offer for offer in one.protocols if offer.name == "range"]
        for one in (*self.workers, *self.others):
            self.later(rng.randint(0, 2_000), one.start)
        moves = rng.choice([2, 5, 10])
        for _ in range(moves):
            self.later(rng.randint(3_000, self.faulty_ms), self._move)
        for _ in range(rng.randint(0, 4)):
            self.later(rng.randint(1_000, self.faulty_ms), self._pause_one)
        for _ in range(rng.randint(0, 3)):
            self.later(rng.randint(1_000, self.faulty_ms), self._kill_one)
        for _ in range(rng.randint(0, 2)):
            self.later(rng.randint(1_000, self.faulty_ms), self._cut_one)
        if rng.random() < 0.2:
            self.later(rng.randint(1_000, self.faulty_ms), self.kafka.forget_ids)

    # ---- time ----

    @property
    def now_ms(self) -> int:
        """The monotonic clock of everybody."""
        return int(self.time_s * 1000 + 1e-6)

    @property
    def processes(self) -> list[Any]:
        """All that have an event loop."""
        return cast("list[Any]", self.nodes)

    def at(self, time_s: float, what: Callable[[], None]) -> None:
        """Do something at a time."""
        self._sequence += 1
        heappush(self._events, (max(time_s, self.time_s), self._sequence, what))

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something after a delay."""
        self.at(self.time_s + delay_ms / 1000, what)

    def run(self, until_ms: int) -> None:
        """Steps up to a time; every invariant is checked on the way."""
        while True:
            busy = [one for one in self.processes if one.busy]
            if busy:
                node = busy[0] if len(busy) == 1 else self.rng.choice(busy)
                for _ in range(self.rng.choice((1, 3, 10))):
                    if not node.busy:
                        break
                    self.steps += 1
                    node.step()
                self.checks.after_step()
                continue
            running = [one for one in self.processes if one.alive and not one.paused]
            due_s = [due for node in running if (due := node.loop.due_s()) is not None]
            times = [*due_s, *([self._events[0][0]] if self._events else [])]
            if not times or min(times) * 1000 > until_ms:
                self.time_s = max(self.time_s, until_ms / 1000)
                return
            self.time_s = max(self.time_s, min(times))
            if self._events and self._events[0][0] <= self.time_s:
                heappop(self._events)[2]()
            for node in running:
                node.loop.ring()
            self.checks.raise_if_wrong()

    def say(self, what: str, of: Any) -> None:
        """A line of the run's story, if anybody listens."""
        if self.tell is not None:
            self.tell(f"{self.time_s:.3f} #{self.steps} {what} {of!r}")

    def fresh_id(self, prefix: str) -> str:
        """A member id."""
        self._ids += 1
        return f"{prefix}-{self._ids}"

    # ---- requests and answers ----

    def partition_of(self, request: Any) -> int:
        """Where a request belongs."""
        if isinstance(request, ListGroups):
            return request.partition
        return self._routes.get(request.group_id, 0)

    def send(
        self, actor: Any, request: Any, version: int, client_id: str | None, reply: Callable[[Any], None]
    ) -> NodeCall:
        """A request goes to whom its sender takes for the coordinator."""
        rng = self.rng
        call = NodeCall(actor, request, version, client_id, reply, rng.random() < 0.5, world=self)
        self.checks.sent(call)
        bad = self.faults
        if bad and rng.random() < 0.02:
            return call  # lost
        delay_ms = rng.choice([0, 0, 1, 10, 700 if bad else 5])
        self.later(12_000 if bad and rng.random() < 0.005 else delay_ms, partial(self._arrive, call))
        return call

    def ask(self, actor: Any, request: Any, reply: Callable[[Any], None]) -> NodeCall:
        """As `send`: nothing is asked from within here."""
        return self.send(actor, request, 8, None, reply)

    def _coordinator(self, call: NodeCall) -> Node:
        partition = self.partition_of(call.request)
        place = id(call.actor), partition
        known = self._at.get(place)
        if known is None or not known.alive:
            right = self.rng.random() < _STAYS_AT_NODE or not self.faults
            known = self.owners[partition] if right else self.rng.choice(self.nodes)
            self._at[place] = known
        # An operator may ask anybody: nobody may show it anything old.
        if isinstance(call.actor, Operator) and self.rng.random() < 0.3:
            return self.rng.choice(self.nodes)
        return known

    def _arrive(self, call: NodeCall) -> None:
        if call.closed:
            return
        node = self._coordinator(call)
        if not node.alive:
            self._forget_coordinator(call)
            self.later(self.rng.randint(0, 200), partial(call.reply, None))
            return
        self.say("->", (node, call.client_id, call.api_version, call.request))
        call.node = node
        call.arrived_s = self.time_s
        node.tell(partial(node.arrive, call))
        self.at(self.time_s + (4.0 if self.calm else 15.0), partial(self._impatient, call, node))

    def _impatient(self, call: NodeCall, node: Node) -> None:
        """Clients leave a connection that says nothing, but for those that wait for others to join."""
        if not call.done and not call.closed and (node.paused or not node.alive):
            self._forget_coordinator(call)
            self.close(call)
            call.reply(None)

    def _forget_coordinator(self, call: NodeCall) -> None:
        self._at.pop((id(call.actor), self.partition_of(call.request)), None)

    def close(self, call: NodeCall) -> None:
        """The connection of a waiting request goes."""
        call.closed = True
        node = call.node
        if node is not None and node.alive and not call.done:
            group_id = getattr(call.request, "group_id", None)
            if group_id is not None:
                node.tell(partial(self._ticket_closed, node, call))

    def _ticket_closed(self, node: Node, call: NodeCall) -> None:
        partition = self.partition_of(call.request)
        node.runtime.pending[partition].pop(call, None)
        node.runtime.call(partition, "ticket_closed", "", None, lambda shard, _: shard.ticket_closed(call))

    def answered(self, call: NodeCall, response: Any, refused: bool = False) -> None:
        """A node answers; None: it closes the connection."""
        assert call.node is not None
        if not call.node.alive:
            return
        if call.done:
            self.checks.wrong("G17", f"{call.request!r} is answered twice")
            return
        call.done = True
        if isinstance(call.request, OffsetCommitRequest) and isinstance(response, int):
            response = protocol_refusal(call.request, call.api_version, response)  # the hot path
        self.say("<-", (call.node, call.client_id, type(call.request).__name__, response))
        self.trace.update(f"{self.now_ms} {call.node.number} {response!r}\n".encode())
        self.checks.answered(call, response, refused)
        if call.closed:
            return
        if response is None or NOT_COORDINATOR in codes(response):
            self._forget_coordinator(call)
        bad = self.faults
        if bad and self.rng.random() < 0.03:
            return  # lost on its way; its effect is there
        delay_ms = self.rng.choice([0, 1, 20, 2_000] if bad else [0, 0, 1, 5])
        self.later(delay_ms, partial(self._deliver, call, response))

    def _deliver(self, call: NodeCall, response: Any) -> None:
        self.checks.heard(call, response)
        call.reply(response)

    def delete_topic(self, topic: str) -> None:
        """Topics stay."""

    # ---- the nodes ----

    def _alive(self) -> list[Node]:
        return [node for node in self.nodes if node.alive]

    def _move(self) -> None:
        """The controller gives a partition to another node: planned, or as it takes the former for dead."""
        partition = self.rng.randrange(PARTITIONS)
        heirs = [one for one in self._alive() if not self.calm or not (one.paused or one.cut)]
        if heirs:
            self.give(partition, self.rng.choice(heirs))

    def give(self, partition: int, heir: Node) -> None:
        """Change the map. The former owner learns of it now, or late, and gives up before the heir begins, or
        not."""
        former = self.owners[partition]
        if heir is former:
            return
        self.say("move", (partition, former, heir))
        self.owners[partition] = heir
        planned = self.rng.random() < 0.5
        tell_s = 0.0 if planned or not self.trouble else self.rng.choice([0.1, 2.0, 60.0])
        self.at(self.time_s + tell_s, partial(self._tell_owner, former, partition))
        heir_s = self.rng.choice([0.0, 0.02, 0.3]) if self.trouble else 0.05
        self.at(self.time_s + heir_s, partial(self._tell_owner, heir, partition))

    def _tell_owner(self, node: Node, partition: int) -> None:
        if node.alive:
            node.tell(lambda: node.want(partition, self.owners[partition] is node))

    def pause(self, node: Node) -> None:
        """SIGSTOP, for a moment or for hours."""
        if node.paused or not node.alive or not self.trouble or not self._may_go(node):
            return
        node.paused = True
        for_s = self.rng.choice([0.01, 0.5, 3.0, 20.0, 90.0])
        if self.rng.random() < 0.05:
            node.uptime_more_s += 3 * 3600.0
        self.say("pause", (node, for_s))
        self.at(self.time_s + for_s, partial(self._wake, node))
        if for_s > 1.0 and (self.calm or self.rng.random() < 0.8):
            self.later(self.rng.randint(500, 1_500), partial(self._suspect, node))

    def _wake(self, node: Node) -> None:
        if node.paused:
            self.say("wake", node)
            node.paused = False

    def _may_go(self, node: Node) -> bool:
        """In calm runs somebody is there to take over, or sessions would end for want of an owner."""
        others = [one for one in self._alive() if one is not node and not one.paused and not one.cut]
        return not self.calm or bool(others)

    def _pause_one(self) -> None:
        self.pause(self.rng.choice(self.nodes))

    def _cut_one(self) -> None:
        node = self.rng.choice(self.nodes)
        if not self._may_go(node):
            return
        node.cut = True
        self.say("cut", node)
        # Its session is over before others could have its partitions for long.
        self.later(3_000, partial(self._give_up, node))
        self.later(self.rng.choice([300, 3_000, 20_000]), partial(self._join_again, node))
        if self.calm or self.rng.random() < 0.7:
            self.later(self.rng.randint(500, 3_000), partial(self._suspect, node))

    def _join_again(self, node: Node) -> None:
        node.cut = False
        for partition in range(PARTITIONS):
            self._tell_owner(node, partition)

    def _give_up(self, node: Node) -> None:
        if node.cut:
            for partition in range(PARTITIONS):
                node.tell(partial(node.want, partition, False))

    def _suspect(self, node: Node) -> None:
        """The controller gives all that a node has to others; the node hears of it when it can."""
        others = [one for one in self._alive() if one is not node and not one.paused and not one.cut]
        for partition in range(PARTITIONS):
            if self.owners[partition] is node and others:
                self.give(partition, self.rng.choice(others))
        if (node.paused or node.cut or not node.alive) and node in self.owners:
            self.later(500, partial(self._suspect, node))

    def _kill_one(self) -> None:
        self._kill(self.rng.choice(self._alive()))

    def _kill(self, node: Node) -> None:
        if not node.alive or not self._may_go(node):
            return
        self.say("kill", node)
        node.kill()
        self.checks.died(node)
        self.nodes.remove(node)
        self.later(self.rng.choice([0, 1_000, 5_000]), self._new_node)
        self.later(self.rng.randint(100, 1_500), partial(self._suspect, node))
        if not self.nodes:
            self._new_node()

    def _new_node(self) -> None:
        node = self._make_node(self._numbers)
        self._numbers += 1
        self.nodes.append(node)

    def _make_node(self, number: int) -> Node:
        node = Node(self, number)
        if self.consumers is not None:
            self.consumers.follow(node)
        return node

    def calm_down(self) -> None:
        """No more faults; zombies wake, and the map settles."""
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
        for one in self.others:
            one.stop()
        if not self.calm:
            for worker in self.workers:
                worker.calm_down()


class Onlooker(Operator):
    """An operator that deletes no group that has generations: they would begin again. In calm runs it only
    looks, and commits in a group without members."""

    def _do(self, group: str, fate: float) -> None:
        calm = cast(Any, self.world).calm
        if calm and 0.45 <= fate < 0.88:
            fate = 0.1 if fate < 0.6 else 0.5
        super()._do("simple" if 0.75 <= fate < 0.83 or (calm and fate == 0.5) else group, fate)


class Member(Worker):
    """A worker to which nothing happens while the world is calm; it commits all the same."""

    def _misfortune(self) -> None:
        if not cast(Any, self.world).calm:
            super()._misfortune()

    def heartbeat(self, generation: int) -> None:
        """See `Worker.heartbeat`."""
        super().heartbeat(generation)
        current = generation == self.generation and not self.paused
        if cast(Any, self.world).calm and current and self.stable and self.world.rng.random() < 0.4:
            self.commit()


def codes(response: Any) -> set[int]:
    """All error codes of an answer."""
    if isinstance(response, list):
        return {0}
    found = {response.error_code} if hasattr(response, "error_code") else set()
    for topic in getattr(response, "topics", None) or ():
        found |= {one.error_code for one in topic.partitions}
    return found


@contextlib.contextmanager
def _pretending(world: NodesWorld) -> Iterator[None]:
    """The store's connections, and its clock, are those of the node that runs."""

    def here() -> Node:
        loop = asyncio.get_running_loop()
        return next(node for node in (*world.nodes, *world.checks.dead) if node.loop is loop)

    def link(*_: Any, **__: Any) -> Any:
        return here().link

    def uptime_s() -> float:
        return world.time_s + here().uptime_more_s

    turns = itertools.count()

    def look_at_clock_s() -> float:
        return next(turns) * _LOOK_AT_CLOCK_S

    with (
        mock.patch.object(store, "Cluster", link),
        mock.patch.object(writer, "uptime_s", uptime_s),
        mock.patch.object(ownership, "uptime_s", uptime_s),
        mock.patch.object(security, "uptime_s", uptime_s),
        mock.patch.object(run_queue, "perf_counter", look_at_clock_s),
    ):
        yield


def simulate(seed: int, *, calm: bool = False, tell: Callable[[str], None] | None = None) -> NodesWorld:
    """One run: faults for a while, then quiet, in which everything must settle (G18). Raises
    `ViolationError`."""
    random.seed(seed)  # back-off
    world = NodesWorld(seed, calm=calm, tell=tell)
    with _pretending(world):
        try:
            _play(world)
        except ViolationError:
            raise
        except Exception as error:
            raise ViolationError(
                "P1", repr(error), seed, world.checks.where(), world.checks.again()
            ) from error
        finally:
            for node in world.nodes:
                node.alive = False
                node.loop.bury()
    return world


def _play(world: NodesWorld) -> None:
    world.run(world.faulty_ms)
    world.calm_down()
    until_ms = world.now_ms + SETTLE_MS
    while not world.checks.has_settled() and world.now_ms < until_ms:
        world.run(world.now_ms + _LOOK_MS)
    world.checks.settled()
