"""Nodes of which one does not reach one of the brokers: the real runtime, store and ownership, what a node
thinks of itself and of the brokers, and the real controller; the nodes' group between them is simulated.

Promised to clients is that what a node owns it serves. So within a bound every partition is with a node that
reaches its leader, and no two nodes take it from each other in turn.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from ringleader.coordinator.cluster.ability import CALM_MAX_S, LATE_S, LOST_S, SILENT_S, Ability
from ringleader.coordinator.cluster.contact import Contact, Verdict
from ringleader.coordinator.cluster.controller import next_map
from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.ownership import Ownership
from ringleader.coordinator.cluster.reach import Reach
from ringleader.coordinator.cluster.state import MemberState
from ringleader.coordinator.cluster.suspicion import PING_INTERVAL_S
from tests.simulation.facts import ViolationError
from tests.simulation.nodes.kafka import TOPIC, Kafka
from tests.simulation.nodes.node import STORAGE_TIMEOUT_MS, Node
from tests.simulation.nodes.world import NodesWorld, _pretending
from tests.simulation.world import World

BROKERS = 3
PARTITIONS = 12
SESSION_S = 6.0
BEAT_S = 0.25
JOIN_WAIT_S = 3.0
"""A rebalance of the nodes' group waits so long for a member."""
SERVED_WITHIN_S = 18.0
"""Of a cut: a session (6), a rebalance that waits for a member that does not come (3), a takeover in vain
until it is reported (5), a release (2), and the looks in between (2). Seen: 15.2 at most."""
CLAIMS_MAX = 4
"""Of one partition, for each cut: it is moved away, perhaps to somebody who cannot take it over, and back."""
EVEN_WITHIN_S = CALM_MAX_S + 60.0
_LOOK_MS = 100


class Group:
    """The nodes' group, on the broker that coordinates it."""

    def __init__(self, world: CutWorld, broker: int) -> None:
        self._world = world
        self.broker = broker
        self._heard_s: dict[CutNode, float] = {}
        self._joined: dict[CutNode, MemberState] | None = None
        """While it rebalances: who is back."""
        self._until_s = 0.0
        self._map: ClusterMap | None = None

    def rebalance(self) -> None:
        """All members have to join again."""
        if self._joined is None:
            self._joined = {}
            self._until_s = self._world.time_s + JOIN_WAIT_S

    def beat(self, node: CutNode) -> None:
        """A heartbeat arrives, or the join that follows from its answer."""
        new = node not in self._heard_s
        self._heard_s[node] = self._world.time_s
        if new:
            self.rebalance()
        if self._joined is not None:
            self._joined[node] = node.state()
            self.look()
        elif node.newest is self._map:
            node.confirmed_s = self._world.time_s
        elif self._map is not None:  # the answer to its SyncGroup was lost: it asks again
            self._world.later(self._world.rng.randint(1, 50), partial(self._tell, node, self._map))

    def look(self) -> None:
        """Remove members whose session is over, and note whether all are back."""
        now_s = self._world.time_s
        for node, heard_s in list(self._heard_s.items()):
            if now_s - heard_s > SESSION_S:
                del self._heard_s[node]
                self.rebalance()
        joined = self._joined
        if not joined or (joined.keys() < self._heard_s.keys() and now_s < self._until_s):
            return
        self._heard_s = {node: heard_s for node, heard_s in self._heard_s.items() if node in joined}
        self._joined = None
        controller = min(node.number for node in joined)
        cluster = self._map = next_map(joined.values(), controller, self._world.partition_count)
        self._world.new_map(cluster)
        for node in joined:
            self._world.later(self._world.rng.randint(1, 50), partial(self._tell, node, cluster))

    def _tell(self, node: CutNode, cluster: ClusterMap) -> None:
        if self.broker not in node.link.cut_from and node.alive:
            node.confirmed_s, node.newest = self._world.time_s, cluster
            node.tell(partial(node.follow, cluster))


class CutNode(Node):
    """Follows maps as a real node does."""

    world: CutWorld

    def __init__(self, world: CutWorld, number: int) -> None:
        self.info = NodeInfo(number, f"node-{number}", 9092, "1")
        self.map: ClusterMap | None = None
        self.newest: ClusterMap | None = None
        """The same, but known a moment before `follow`."""
        self.confirmed_s = 0.0
        """When the group said that this is so."""
        self._rejoins = False
        """It is to join again as soon as it reaches the group."""
        self.ability = Ability()
        self.contact = Contact(SESSION_S)
        self.ownership: Ownership
        self.reach: Reach
        super().__init__(cast(Any, world), number)
        world.later(world.rng.randint(0, 250), self._beat)

    async def _start(self) -> None:
        await self.runtime.start_empty()
        self.ownership = Ownership(
            self.number,
            self.runtime,
            self.runtime._log,
            self._settled,
            self._map_silence_s,
            self.contact.doubt_s,
        )
        self.reach = Reach(cast(Any, self.link), TOPIC, self.runtime._log)
        self.reach.start()
        self.started = True
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            self._look(self.world.time_s)

    def _map_silence_s(self) -> float:
        return self.world.time_s - self.confirmed_s if self.newest is self.map else math.inf

    def _look(self, now_s: float) -> None:
        self.contact.heard(now_s)  # it reaches the other brokers
        verdict = self.contact.look(now_s - self.confirmed_s, now_s)
        if verdict is Verdict.PROVE:
            self.contact.proved(now_s)
            self.ownership.prove()
        reason = self.ability.look(
            now_s,
            self.ownership.wanted,
            self.runtime.serving,
            self.reach.silent(now_s, SILENT_S),
            self.reach.silent(now_s, LOST_S),
            self.ownership.late(now_s, LATE_S),
        )
        if reason:
            self.world.say("tells", (self, reason))
            self._rejoin()

    def _settled(self) -> None:
        if self.map is not None and self.map.moving:
            self._rejoin()

    def _rejoin(self) -> None:
        self._rejoins = True
        self._join()

    def _join(self) -> None:
        if self._rejoins and self.world.group.broker not in self.link.cut_from:
            self._rejoins = False
            self.world.group.rebalance()

    def _beat(self) -> None:
        if not self.alive:
            return
        if self.started and self.world.group.broker not in self.link.cut_from:
            self._join()
            self.world.group.beat(self)
        self.world.later(int(BEAT_S * 1000), self._beat)

    def follow(self, cluster: ClusterMap) -> None:
        """Another map."""
        self.map = cluster
        self.ownership.follow(cluster)

    def state(self) -> MemberState:
        """The state that it reports to the controller."""
        loads = dict.fromkeys(self.runtime.serving, 0)
        unable, wary = self.ability.report()
        return MemberState(self.info, self.map, loads, unable=unable, wary=wary)

    def _lost(self, partition: int, error: BaseException) -> None:
        self.world.say("lost", (self, partition, str(error)))
        self.ownership.lost(partition, error)


class CutChecks:
    """Nobody writes to what another one has claimed since; the rest is asked of the world at times."""

    def __init__(self, world: CutWorld) -> None:
        self.world = world
        self.dead: list[Node] = []
        self.counts: Counter[str] = Counter()
        self._wrong: tuple[str, str] | None = None

    def wrong(self, name: str, text: str) -> None:
        """See `Checks`."""
        self._wrong = self._wrong or (name, text)

    def opened(self, node: Node, partition: int) -> None:
        """See `Checks`."""
        self.world.say("opens", (node, partition))
        fine = partition in cast(CutNode, node).ownership.wanted
        if not fine:
            self.wrong("D2", f"{node} takes partition {partition}, and nobody told it to")

    def appended(self, node: Node, partition: Any, code: int, rows: list[Any]) -> None:
        """See `Checks`."""
        owner = partition.owner
        if not code and any((row.producer_id, row.epoch) != owner[1:] for row in rows):
            self.wrong("D1", f"{node} writes to partition {partition.number} of {owner}")

    def after_step(self) -> None:
        """See `Checks`."""

    def raise_if_wrong(self) -> None:
        """Raises `ViolationError`."""
        if self._wrong is not None:
            where = f"{self.world.now_ms} ms, step {self.world.steps}"
            again = f"python -m pytest tests/simulation/nodes/test_cuts.py --seed {self.world.seed}"
            raise ViolationError(*self._wrong, self.world.seed, where, again)


class CutWorld(NodesWorld):
    """Three nodes and three brokers."""

    def __init__(
        self,
        seed: int,
        tell: Callable[[str], None] | None = None,
        *,
        partitions: int = PARTITIONS,
        storage_timeout_ms: int = STORAGE_TIMEOUT_MS,
    ) -> None:
        self.seed = seed
        self.storage_timeout_ms = storage_timeout_ms
        self.tell = tell
        self.calm = True
        self.rng = random.Random(seed)
        self.time_s = 0.0
        self.steps = 0
        self.trouble = self.faults = False
        self.pause_chance = 0.0
        self.partition_count = partitions
        self.partitions = range(partitions)
        self.settings = World._choose_settings(cast(Any, self), True)
        self.checks = cast(Any, CutChecks(self))
        self._events = []
        self._sequence = self._ids = 0
        self.kafka = Kafka(self, partitions, BROKERS)
        self.group = Group(self, self.rng.randint(1, BROKERS))
        self.cuts = 0
        self.nodes = [CutNode(self, number) for number in range(1, 4)]
        self._unserved_s = [0.0] * partitions
        """Since when, by partition; infinite: it is served."""
        self.longest_s = 0.0
        self.later(_LOOK_MS, self._look)

    @property
    def cut_nodes(self) -> list[CutNode]:
        """All that are there."""
        return cast("list[CutNode]", self.nodes)

    def new_map(self, cluster: ClusterMap) -> None:
        """There is a new map."""
        self.say("map", (cluster.generation, cluster.owners, cluster.moving))

    # ---- what happens ----

    def cut(self, node: CutNode, broker: int, for_s: float) -> None:
        """No way between them for a while."""
        self.say("cut", (node, broker, for_s))
        self.cuts += 1
        node.link.cut_from.add(broker)
        self.at(self.time_s + for_s, partial(self._mend, node, broker))

    def _mend(self, node: CutNode, broker: int) -> None:
        self.say("mended", (node, broker))
        node.link.cut_from.discard(broker)

    def move_leaders(self, broker: int) -> None:
        """Others lead the partitions that this broker led."""
        others = [number for number in self.kafka.brokers if number != broker]
        for places in (self.kafka.leaders, self.kafka.coordinators):
            places[:] = [self.rng.choice(others) if place == broker else place for place in places]
        del self.kafka.brokers[broker]

    # ---- what must be ----

    def _look(self) -> None:
        self.later(_LOOK_MS, self._look)
        self.group.look()
        for partition in self.partitions:
            if self._is_served(partition):
                self._unserved_s[partition] = float("inf")
                continue
            self._unserved_s[partition] = min(self._unserved_s[partition], self.time_s)
            gap_s = self.time_s - self._unserved_s[partition]
            self.longest_s = max(self.longest_s, gap_s)
            if gap_s > SERVED_WITHIN_S:
                self.checks.wrong("L1", f"nobody serves partition {partition} for {gap_s:.1f} s")
            claims = self.claims(partition)
            if claims > 1 + CLAIMS_MAX * (1 + self.cuts):
                self.checks.wrong(
                    "L2", f"partition {partition} was taken {claims} times, by {self.cuts} cuts"
                )

    def _is_served(self, partition: int) -> bool:
        """Whether its owner has it, and reaches who leads it."""
        owner = self.kafka.partitions[partition].owner
        if owner is None:
            return False
        node = owner[0]
        reached = self.kafka.leaders[partition] not in node.link.cut_from
        return node.alive and partition in node.runtime.serving and reached

    def claims(self, partition: int) -> int:
        """How often it was taken over."""
        return len(self.kafka.partitions[partition].claims)

    def is_even(self) -> bool:
        """Whether everybody has the share that the map gives him."""
        cluster = self.cut_nodes[0].map
        counts = [len(node.runtime.serving) for node in self.cut_nodes]
        at_rest = cluster is not None and not cluster.moving
        return at_rest and sum(counts) == self.partition_count and max(counts) - min(counts) <= 1

    def until_even(self) -> None:
        """Raises `ViolationError` unless all come to rest."""
        until_ms = self.now_ms + int(EVEN_WITHIN_S * 1000)
        while not self.is_even() and self.now_ms < until_ms:
            self.run(self.now_ms + 500)
        if not self.is_even():
            self.checks.wrong(
                "L3", f"it does not come to rest: {[node.runtime.serving for node in self.nodes]}"
            )
            self.checks.raise_if_wrong()


def simulate_cuts(
    seed: int,
    play: Callable[[CutWorld], None],
    tell: Callable[[str], None] | None = None,
    **more: int,
) -> CutWorld:
    """One run of what `play` does, from when all is even to when it is so again. `more`: see `CutWorld`.
    Raises `ViolationError`."""
    random.seed(seed)  # back-off
    world = CutWorld(seed, tell, **more)
    with _pretending(world):
        try:
            world.until_even()
            play(world)
            world.until_even()
        finally:
            for node in world.nodes:
                node.alive = False
                node.loop.bury()
    return world


def cuts(world: CutWorld) -> None:
    """Some, one after the other: short ones, long ones, a link that comes and goes."""
    rng = world.rng
    for _ in range(rng.choice([1, 2, 4])):
        node, broker = rng.choice(world.cut_nodes), rng.randint(1, BROKERS)
        for _ in range(rng.choice([1, 1, 6])):
            for_s = rng.choice([0.5, 2.5, 4.0, 12.0, 60.0])
            world.cut(node, broker, for_s)
            world.run(world.now_ms + int(1000 * (for_s + rng.choice([0.2, 3.0, 15.0]))))
