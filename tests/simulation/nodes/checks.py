"""The invariants of a run with several nodes. Each has the id of what it holds:

D1   Only the node that claimed a partition last writes to it. [appended]
D2   A node that lost or gave up a shard says nothing of it, keeps nothing, and takes it back when the map
     says so, not before. [answered, after_step, opened]
D3   Nothing is served before the load ends. [answered]
D4   A move alone, planned or not, changes no generation and drops no member. [_check_calm; runs with `calm`]
Z1   Whatever a node says of a group is proven: an append of its own was taken, as the owner's, after the
     request had come, and before the answer left. [answered]
O1   A fetch shows the last commit that was acknowledged before it was sent, or a later one: from any node,
     zombies included. [_fetched]
O2   Success is said of what is in the log only. [_committed]
O3   What an owner knows is what the log says, when it begins to serve and whenever nothing is on its way.
     [_check_rebuilt]
G1   One leader for each generation, on all nodes. [_joined]
G2   A generation has one set of members. [_joined]
G5   SyncGroup returns what a leader sent for this member in this generation. [_synced]
G12  Every request that a node has is answered in time. [_check_waiting]
G17  No request is answered twice. [world]
G18  After the faults every partition is served by whom the map names, and every group is stable. [settled]
P1   Nothing raises. [world, node]

K1 to K5 are those of a group of the consumer protocol: see `consumers`.

D5 (all nodes answer FindCoordinator alike) is the map's business: tests/coordinator/cluster.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.storage.base import StorageError
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.simulation import check_end
from tests.simulation.check_log import durable_state
from tests.simulation.facts import Place, ViolationError
from tests.simulation.nodes.consumers import is_plain
from tests.simulation.requests import Fetch, ListGroups

if TYPE_CHECKING:
    from tests.simulation.nodes.kafka import Partition, Row
    from tests.simulation.nodes.node import Node
    from tests.simulation.nodes.world import NodeCall, NodesWorld

STAY_MS = 10_000
_WAIT_MAX_S = 120.0
"""Longer than a join phase, and a store that does not answer, can take."""
_REBUILT_EVERY = 40
_NEEDS_NO_PROOF = {
    int(code)
    for code in (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.POLICY_VIOLATION,
    )
}
_NOT_HERE = {int(ErrorCode.NOT_COORDINATOR)}
_LOADING = {
    int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    int(ErrorCode.REBALANCE_IN_PROGRESS),  # to SyncGroup, for Java's consumer
}


class Checks:
    """Watches one world from outside: requests, answers, the log; and looks at the nodes between steps."""

    def __init__(self, world: NodesWorld) -> None:
        self.world = world
        self.dead: list[Node] = []
        self.counts: Counter[str] = Counter()
        """The number of each event."""
        self.acknowledged: dict[Place, int] = {}
        """The highest offset in the log of what was acknowledged."""
        self.settled_since: dict[str, tuple[int, float]] = {}
        self._wrong: tuple[str, str] | None = None
        self._offset = 0
        self._tick = 0
        self._positions: dict[tuple[Place, int], int] = {}
        """Where in the log a committed offset stands."""
        self._tombstones: dict[Place, int] = {}
        self._proofs: dict[tuple[int, int], int] = {}
        """Node and partition -> when it last wrote as the owner."""
        self._arrived: dict[NodeCall, int] = {}
        self._leaders: dict[tuple[str, int], str] = {}
        self._listed: dict[tuple[str, int], frozenset[str]] = {}
        self._persons: dict[str, str] = {}
        self._submitted: dict[tuple[str, int], list[dict[str, bytes]]] = {}
        self._rebuilt: dict[tuple[int, int], tuple[Any, int]] = {}
        self._stable: dict[str, int] = {}
        """Calm runs: group -> its generation, once all its members are in."""

    # ---- complaints ----

    def where(self) -> str:
        """Where the run is."""
        return f"{self.world.now_ms} ms, step {self.world.steps}"

    def again(self) -> str:
        """How to run it once more."""
        return f"python -m tests.simulation.nodes --seed {self.world.seed}{' --calm' * self.world.calm}"

    def wrong(self, name: str, text: str) -> None:
        """Noted: the caller may be within a node, which survives exceptions."""
        self._wrong = self._wrong or (name, text)

    def must(self, condition: Any, name: str, text: str) -> None:
        """Wrong unless the condition holds."""
        if not condition:
            self.wrong(name, text)

    def raise_if_wrong(self) -> None:
        """Raises `ViolationError`."""
        if self._wrong is not None:
            raise ViolationError(*self._wrong, self.world.seed, self.where(), self.again())

    def fresh_offset(self) -> int:
        """Every committed offset is used once."""
        self._offset += 1
        return self._offset

    # ---- the log ----

    def appended(self, node: Node, partition: Partition, code: int, rows: list[Row]) -> None:
        """The brokers have decided about a batch."""
        self._tick += 1
        if code:
            self.counts["fenced"] += code == ErrorCode.INVALID_PRODUCER_EPOCH
            return
        owner = partition.owner
        for row in rows:
            right = owner is not None and (row.producer_id, row.epoch) == owner[1:]
            self.must(right, "D1", f"{node} writes {row} to partition {partition.number} of {owner}")
            self._learn(row)
        if self.world.consumers is not None:
            self.world.consumers.learned(rows)
        if owner is not None and owner[0] is node:
            self._proofs[node.number, partition.number] = self._tick

    def _learn(self, row: Row) -> None:
        named = records.decode_key(row.key)
        if named is None or named[0] != records.OFFSET:
            self.counts["barriers"] += row.key == records.READ_BARRIER_RECORD[0]
            return
        place = named[1:4]
        if row.value is None:
            self._tombstones[place] = row.offset
        else:
            self._positions.setdefault((place, records.decode_offset_value(row.value).offset), row.offset)

    # ---- requests and answers ----

    def sent(self, call: NodeCall) -> None:
        """A request leaves its client."""
        if isinstance(call.request, Fetch):
            call.begun = dict(self.acknowledged)

    def before(self, call: NodeCall, partition: int) -> None:
        """A node is about to hand it to its machine."""
        assert call.node is not None
        self._tick += 1
        self._arrived[call] = self._tick
        phase = call.node.runtime.shards[partition].phase
        call.loading, call.away = phase is Phase.LOADING, phase is Phase.UNLOADED
        call.arrived_s = self.world.time_s
        request = call.request
        if isinstance(request, SyncGroupRequest) and request.assignments:
            content = {self._person(one.member_id): one.assignment for one in request.assignments}
            self._submitted.setdefault((request.group_id, request.generation_id), []).append(content)

    def answered(self, call: NodeCall, response: Any, refused: bool) -> None:
        """An answer leaves a node."""
        from tests.simulation.nodes.world import codes

        assert call.node is not None
        arrived = self._arrived.pop(call, 0)
        if response is None or refused:
            self.counts["refused"] += refused
            return
        answer_codes = codes(response)
        if call.away or call.loading:
            name, allowed = ("D2", _NOT_HERE) if call.away else ("D3", _LOADING)
            beat = isinstance(call.request, HeartbeatRequest) and call.loading and answer_codes == {0}
            nothing = isinstance(call.request, ListGroups) and not response
            fine = beat or nothing or answer_codes <= allowed | _NEEDS_NO_PROOF
            self.must(fine, name, f"{call.node} does not serve, and answers {call.request!r}: {response!r}")
            return
        if isinstance(call.request, ConsumerGroupHeartbeatRequest) and self.world.consumers is not None:
            self.world.consumers.answered(call, response)
        quiet = isinstance(call.request, HeartbeatRequest) and answer_codes == {0}
        if answer_codes <= _NEEDS_NO_PROOF or quiet or is_plain(call.request, response):
            return
        partition = self.world.partition_of(call.request)
        proven = self._proofs.get((call.node.number, partition), -1) > arrived
        self.must(proven, "Z1", f"{call.node} answers {call.request!r} without proof: {response!r}")
        self.counts["proven"] += 1
        if isinstance(call.request, Fetch):
            self._fetched(call, response)
        elif isinstance(call.request, OffsetCommitRequest):
            self._committed(call.request, response)
        elif isinstance(call.request, JoinGroupRequest) and not response.error_code:
            self._joined(call.request, response)
        elif isinstance(call.request, SyncGroupRequest) and not response.error_code:
            self._synced(call.request, response)

    def heard(self, call: NodeCall, response: Any) -> None:
        """A client has an answer."""

    def _fetched(self, call: NodeCall, response: Any) -> None:
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code:
                    continue
                place = (call.request.group_id, topic.name, one.partition_index)
                least = call.begun.get(place, -1)
                found = one.committed_offset
                position = self._positions.get((place, found), -1)
                if found == -1:
                    position = self._tombstones.get(place, -1)
                else:
                    self.must(position >= 0, "O1", f"{place} is {found}, which is not in the log")
                text = f"{call.node} shows {found} of {place}, from before offset {least} of the log"
                self.must(position >= least, "O1", f"{text}, which was acknowledged when it was asked")
                self.counts["read"] += found != -1

    def _committed(self, request: OffsetCommitRequest, response: Any) -> None:
        commits = {
            (topic.name, one.partition_index): one.committed_offset
            for topic in request.topics
            for one in topic.partitions
        }
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code:
                    continue
                place = (request.group_id, topic.name, one.partition_index)
                position = self._positions.get((place, commits[place[1:]]), -1)
                self.must(
                    position >= 0, "O2", f"{place}: {commits[place[1:]]} is acknowledged, not in the log"
                )
                self.acknowledged[place] = max(position, self.acknowledged.get(place, -1))
                self.counts["committed"] += 1

    def _person(self, member_id: str) -> str:
        return self._persons.get(member_id, member_id)

    def _joined(self, request: JoinGroupRequest, response: Any) -> None:
        for one in response.members:
            if one.group_instance_id is not None:
                self._persons[one.member_id] = f"instance {one.group_instance_id}"
        if request.group_instance_id is not None:
            self._persons[response.member_id] = f"instance {request.group_instance_id}"
        place = request.group_id, response.generation_id
        leader = self._person(response.leader)
        first = self._leaders.setdefault(place, leader)
        known = first == leader or leader not in self._persons.values() or first not in self._persons.values()
        same = first == leader or (known and self._is_static(first, leader))
        self.must(same, "G1", f"generation {place} is led by {first}, and by {leader}")
        if response.members:
            listed = frozenset(self._person(one.member_id) for one in response.members)
            before = self._listed.setdefault(place, listed)
            self.must(before == listed, "G2", f"generation {place} has {set(before)}, and {set(listed)}")

    def _is_static(self, *persons: str) -> bool:
        """Whether one of these may be a static member, of whom only a former member id is known."""
        return any(not one.startswith("instance ") for one in persons) and any(
            one.startswith("instance ") for one in persons
        )

    def _synced(self, request: SyncGroupRequest, response: Any) -> None:
        sent = self._submitted.get((request.group_id, request.generation_id), [])
        person = self._person(request.member_id)
        known = {content.get(person, content.get(request.member_id, b"")) for content in sent}
        right = response.assignment in known or not response.assignment
        self.must(right, "G5", f"{request!r} is answered {response!r}, sent was {sent}")

    # ---- nodes ----

    def died(self, node: Node) -> None:
        """kill -9."""
        self.counts["kills"] += 1
        self.dead.append(node)
        for call in [one for one in self._arrived if one.node is node]:
            del self._arrived[call]
            self.world.later(self.world.rng.randint(0, 500), partial(call.reply, None))

    def opened(self, node: Node, partition: int) -> None:
        """A node's store is asked to fence the owner of a partition."""
        requested = partition in node.acquiring
        self.must(requested, "D2", f"{node} takes partition {partition}, and nobody told it to")

    def acquired(self, node: Node, partition: int) -> None:
        """A node has taken a partition over."""
        self.counts["acquired"] += 1

    def released(self, node: Node, partition: int) -> None:
        """A node has given one up."""
        self.counts["released"] += 1

    def lost(self, node: Node, partition: int, error: BaseException) -> None:
        """A node has lost one."""
        self.counts[f"lost {error.failure.name}" if isinstance(error, StorageError) else "lost"] += 1

    # ---- after each step ----

    def after_step(self) -> None:
        """Everything that must hold between two steps. Raises `ViolationError`."""
        self.raise_if_wrong()
        for node in self.world.nodes:
            serving = node.runtime.serving
            for partition in self.world.partitions:
                shard = node.runtime.shards[partition]
                if partition in serving:
                    self._check_rebuilt(node, partition, shard)
                    continue
                quiet = shard.phase is not Phase.SERVING and not node.runtime.pending[partition]
                quiet = quiet and shard.next_deadline() is None and not shard.dirty
                self.must(quiet, "D2", f"{node} does not have {partition}, and has something to do there")
        if self.world.steps % 16 == 0:
            self._check_waiting()
        if self.world.calm:
            self._check_calm()
        self.raise_if_wrong()

    def _check_rebuilt(self, node: Node, partition: int, shard: Shard) -> None:
        """O3. A zombie's state is its own business: nobody hears of it."""
        log, out = self.world.kafka.partitions[partition], shard._out
        opened = node.storage._open.get(partition)
        if opened is None or out.emitted != out.durable or log.owner is None:
            return
        if log.owner[0] is not node or log.owner[2] != opened.epoch:
            return
        known, looks = self._rebuilt.get((node.number, partition), (None, 0))
        first = known is not shard
        self._rebuilt[node.number, partition] = (shard, 0 if first else looks + 1)
        if first or looks % _REBUILT_EVERY == 0:
            again = Shard(partition, self.world.settings, str)
            again.replay((row.key, row.value) for row in log.rows)
            same = durable_state(shard._groups) == durable_state(again._groups)
            self.must(same, "O3", f"what {node} knows of partition {partition} is not what the log says")
            self.counts["rebuilt"] += 1

    def _check_waiting(self) -> None:
        for call in self._arrived:
            node = call.node
            if node is None or not node.alive or node.paused or call.closed:
                continue
            since_s = self.world.time_s - call.arrived_s
            self.must(since_s < _WAIT_MAX_S, "G12", f"{node} does not answer {call.request!r}")

    def _check_calm(self) -> None:
        """D4: once a group is stable it stays so, as nothing happens to its members."""
        if self.world.consumers is not None:
            self.world.consumers.after_step()
        for group in {one.group for one in self.world.workers}:
            members = [one for one in self.world.workers if one.group == group]
            generations = {one.generation for one in members}
            known = self._stable.get(group)
            if known is None:
                # Not while a member is in it whose answer was lost, and which joined again.
                if len(generations) == 1 and not self._complaint(group):
                    self._stable[group] = generations.pop()
                continue
            fine = generations == {known} and all(one.stable and one.alive for one in members)
            self.must(fine, "D4", f"group {group} was stable in {known}, and rebalances: {generations}")

    # ---- the end ----

    def group(self, group_id: str) -> Group | None:
        """A group, as who owns it has it."""
        partition = self.world._routes.get(group_id, 0)
        node = self.world.owners[partition]
        if partition not in node.runtime.serving:
            return None
        return node.runtime.shards[partition]._groups.get(group_id)

    def has_settled(self) -> bool:
        """Whether all is well, and has been for a while."""
        for group_id in self._groups():
            group = self.group(group_id)
            if group is None or self._complaint(group_id):
                self.settled_since.pop(group_id, None)
                continue
            known = self.settled_since.get(group_id)
            if known is None or known[0] != group.generation:
                self.settled_since[group_id] = (group.generation, self.world.now_ms)
        now_ms = self.world.now_ms
        return (
            not self._misplaced()
            and not self._consumers_complaint()
            and all(
                one in self.settled_since and now_ms - self.settled_since[one][1] >= STAY_MS
                for one in self._groups()
            )
        )

    def _groups(self) -> list[str]:
        return sorted({one.group for one in self.world.workers if one.alive})

    def _complaint(self, group_id: str) -> str:
        return check_end.complaint(cast(Any, self), group_id)

    def _misplaced(self) -> list[int]:
        return [
            partition
            for partition, owner in enumerate(self.world.owners)
            if [node for node in self.world.nodes if partition in node.runtime.serving] != [owner]
        ]

    def _consumers_complaint(self) -> str:
        return "" if self.world.consumers is None else self.world.consumers.complaint()

    def settled(self) -> None:
        """G18, K5. Raises `ViolationError`."""
        complaint = self._consumers_complaint()
        self.must(not complaint, "K5", complaint)
        self.must(
            not self._misplaced(), "G18", f"partitions {self._misplaced()} are not served as the map says"
        )
        for group_id in self._groups():
            complaint = self._complaint(group_id)
            self.must(not complaint, "G18", f"{group_id} did not settle: {complaint}")
        self.must(self.has_settled(), "G18", f"generations go on: {self.settled_since}")
        if self.world.calm:
            self.must(set(self._stable) == set(self._groups()), "D4", "a group was never stable")
        self.raise_if_wrong()
