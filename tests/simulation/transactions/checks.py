"""The invariants of a run with transactions. Each has the id of what it holds:

T1   An offset of a transaction becomes the committed one only when the first marker of its producer behind it
     is that of its own transaction, and commits: what was written when that was over never counts in the
     next one. [appended, fetched, settled]
T2   Of the offsets that count the last one in the log is the committed one, whichever marker came first, as
     in Kafka. [appended, settled]
T3   What was acknowledged counts: at once outside of a transaction, else when its marker commits. [fetched,
     settled]
T4   A client that asks for stable offsets is not shown one that a transaction may still change. [fetched]
T5   What was shown once is not taken back, whichever node is asked, zombies included. [fetched]
T6   No offset waits for ever for the end of a transaction. [settled]
S1   A change of ACLs that is acknowledged was read back by the node that says so. [answered]
S2   A node that begins to serve knows all that was acknowledged before. [began]
S3   What a node knows of ACLs is what the topic says up to where it has read, and its verdicts follow.
     [after_step]
S4   A request that leaves for a broker is allowed to its principal at that moment. [passed]
G12  Every request is answered, or its connection closed, in time. [_check_waiting, has_settled]
G18  After the faults every partition is served by whom the map names, and everything is at rest. [settled]

D1, D2, O3 and P1 are those of `tests.simulation.nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ringleader.coordinator.groups import records
from ringleader.coordinator.relay.authorization import FORWARDED
from ringleader.coordinator.security.acls import (
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    to_key,
)
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.security.records import Entry, entry_of
from ringleader.protocol import messages as kafka
from tests.simulation.facts import Place
from tests.simulation.nodes.checks import Checks
from tests.simulation.nodes.kafka import TOPIC, Partition, Row
from tests.simulation.transactions.coordination import ONGOING

if TYPE_CHECKING:
    from tests.simulation.nodes.node import Node
    from tests.simulation.transactions.node import TxnNode, Wire
    from tests.simulation.transactions.world import TxnWorld

_WAITS_MAX_S = 320.0
"""A commit in a transaction asks its coordinator 50 times, for 3 s each, twice; a node may stand still."""
_RESTS_MAX_S = 20.0
"""Once nothing goes wrong any more."""
_LOOK_STEPS = 64


@dataclass
class Write:
    """An offset that somebody commits: no two have the same."""

    place: Place
    offset: int
    producer: tuple[int, int] | None
    """Producer id and which of all transactions; None: outside of any."""
    position: int | None = None
    """Where it stands in the log first."""
    acknowledged: bool = False


class Marker(NamedTuple):
    """One in the log."""

    position: int
    serial: int
    committed: bool


class TxnChecks(Checks):
    """See the module; and `Checks`."""

    world: TxnWorld

    def __init__(self, world: TxnWorld) -> None:
        super().__init__(world)
        self._writes: dict[int, Write] = {}
        self._of_place: dict[Place, list[Write]] = {}
        self._markers: dict[tuple[int, int], list[Marker]] = {}
        """By partition and producer id, in their order."""
        self._decisions: dict[int, bool] = {}
        self._effective: dict[Place, int] = {}
        """The position of the last offset that is committed, as far as the log says so explicitly."""
        self._shown: dict[Place, int] = {}
        self.half_done = False
        """Whether the last effect of a marker was written before that of another one that is there."""

    def again(self) -> str:
        """See `Checks`."""
        return (
            f"python -m tests.simulation.transactions --seed {self.world.seed}{' --quiet' * self.world.quiet}"
        )

    # ---- what is written ----

    def writes(self, place: Place, producer: tuple[int, int] | None) -> int:
        """Somebody is about to commit an offset; which."""
        offset = self.fresh_offset()
        write = self._writes[offset] = Write(place, offset, producer)
        self._of_place.setdefault(place, []).append(write)
        return offset

    def decided(self, serial: int, committed: bool) -> None:
        """A transaction ends."""
        self._decisions[serial] = committed
        self.counts["committed" if committed else "aborted"] += 1

    def marked(self, partition: int, producer_id: int, offset: int, serial: int, committed: bool) -> None:
        """Its marker is in the log."""
        self._markers.setdefault((partition, producer_id), []).append(Marker(offset, serial, committed))
        self.counts["markers"] += 1

    def appended(self, node: Node, partition: Partition, code: int, rows: list[Row]) -> None:
        """See `Checks`."""
        if code:
            self.counts["fenced"] += code == 47
            return
        owner = partition.owner
        for row in rows:
            right = owner is not None and (row.producer_id, row.epoch) == owner[1:]
            self.must(right, "D1", f"{node} writes {row} to partition {partition.number} of {owner}")
            self._learn_offset(node, row)

    def _learn_offset(self, node: Node, row: Row) -> None:
        named = records.decode_key(row.key)
        if named is None or row.value is None or named[0] not in (records.OFFSET, records.UNCOMMITTED_OFFSET):
            return
        write = self._writes[records.decode_offset_value(row.value).offset]
        if named[0] == records.UNCOMMITTED_OFFSET or write.producer is None:
            if write.position is None:
                write.position = row.offset
                self._take_over(write)
            if write.producer is not None:
                return
        else:
            counts = self._counts(write)
            self.must(counts, "T1", f"{node} commits {write} at {row.offset}, and its transaction did not")
            self.counts["commits of transactions"] += 1
        position = -1 if write.position is None else write.position
        before = self._effective.get(write.place, -1)
        self.must(position >= before, "T2", f"{node} commits {write} though one from {before} counts already")
        self._effective[write.place] = max(before, position)
        self.half_done = any(self._is_to_come(one) for one in self._of_place[write.place])
        self.counts["half done"] += self.half_done

    def _take_over(self, write: Write) -> None:
        """An offset that is written while its producer's next transaction has its group is one of that
        transaction: epochs of the first transactions do not tell them apart (KIP-890), in Kafka neither."""
        if write.producer is None:
            return
        place = TOPIC, self.world.partition_of_group(write.place[0])
        for one in self.world.brokers.coordination.known.values():
            later = one.producer_id == write.producer[0] and one.serial > write.producer[1]
            if later and place in one.partitions and one.state == ONGOING:
                self.counts["late, of the next transaction"] += 1
                write.producer = write.producer[0], one.serial

    def _is_to_come(self, write: Write) -> bool:
        """Whether its marker is in the log, and nothing that came of that."""
        effective = self._effective.get(write.place, -1)
        later = write.position is not None and write.position > effective
        return later and write.producer is not None and self._counts(write)

    def _marker_of(self, write: Write) -> Marker | None:
        """The first one behind it."""
        assert write.producer is not None
        if write.position is None:
            return None
        partition = self.world.partition_of_group(write.place[0])
        found = self._markers.get((partition, write.producer[0]), ())
        return next((one for one in found if one.position > (write.position or 0)), None)

    def _may_count(self, write: Write) -> bool:
        """Whether it is not known yet. An aborted offset may go before its marker is there."""
        aborted = write.producer is not None and self._decisions.get(write.producer[1]) is False
        return not aborted and self._marker_of(write) is None

    def _counts(self, write: Write) -> bool:
        """Whether the log says that it does."""
        if write.position is None or write.producer is None:
            return write.position is not None
        marker = self._marker_of(write)
        return marker is not None and marker.committed and marker.serial == write.producer[1]

    # ---- requests and answers ----

    def request_left(self, wire: Wire, request: Any) -> None:
        """A request leaves its client."""
        if isinstance(request, kafka.OffsetFetchRequest):
            wire.begun = dict(self._floor(request)), list(self._unsure(request))
        elif isinstance(request, kafka.CreateAclsRequest | kafka.DeleteAclsRequest):
            wire.begun = self.world.brokers.security.end

    def _of_group(self, group_id: str) -> list[Write]:
        return [one for place, some in self._of_place.items() if place[0] == group_id for one in some]

    def _floor(self, request: kafka.OffsetFetchRequest) -> dict[Place, int]:
        """The least that an answer has to show, by position."""
        floor = {place: shown for place, shown in self._shown.items() if place[0] == request.group_id}
        for write in self._of_group(request.group_id):
            if not write.acknowledged or write.position is None:
                continue
            if write.producer is not None:
                decided = self._decisions.get(write.producer[1])
                if not (decided and request.require_stable):
                    continue
            floor[write.place] = max(floor.get(write.place, -1), write.position)
        return floor

    def _unsure(self, request: kafka.OffsetFetchRequest) -> list[Write]:
        """The offsets that a transaction has acknowledged."""
        if not request.require_stable:
            return []
        found = self._of_group(request.group_id)
        return [
            one
            for one in found
            if one.acknowledged and one.producer is not None and self._marker_of(one) is None
        ]

    def answer_left(self, wire: Wire, request: Any, response: Any) -> None:
        """An answer leaves a node."""
        node = wire.node
        if isinstance(request, kafka.OffsetFetchRequest):
            self._check_fetched(node, wire.begun, request, response)
        elif isinstance(request, kafka.OffsetCommitRequest | kafka.TxnOffsetCommitRequest):
            self._check_committed(node, request, response)
        elif isinstance(request, kafka.CreateAclsRequest):
            for creation, result in zip(request.creations, response.results, strict=True):
                if not result.error_code:
                    self._check_changed(node, wire.begun, _acl(creation), True)
        elif isinstance(request, kafka.DeleteAclsRequest):
            for result in response.filter_results:
                for one in result.matching_acls if not result.error_code else ():
                    self._check_changed(node, wire.begun, _acl(one), False)

    def _check_committed(self, node: Node, request: Any, response: Any) -> None:
        commits = {
            (topic.name, one.partition_index): one for topic in request.topics for one in topic.partitions
        }
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code:
                    self.counts[f"refused {one.error_code}"] += 1
                    continue
                write = self._writes[commits[topic.name, one.partition_index].committed_offset]
                self.must(write.position is not None, "T3", f"{node} acknowledges {write}, not in the log")
                write.acknowledged = True

    def _check_fetched(self, node: Node, begun: Any, request: Any, response: Any) -> None:
        floor, unsure = begun
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code:
                    self.counts["unstable"] += one.error_code == 88
                    continue
                place = request.group_id, topic.name, one.partition_index
                shown = self._writes.get(one.committed_offset)
                position = -1
                if shown is not None:
                    fine = shown.place == place and self._counts(shown)
                    self.must(fine, "T1", f"{node} shows {shown} of {place}, which does not count")
                    position = -1 if shown.position is None else shown.position
                least = floor.get(place, -1)
                self.must(position >= least, "T3", f"{node} shows {shown} of {place}, and {least} counted")
                for write in unsure:
                    hidden = write.place == place and self._may_count(write)
                    later = write.position is not None and write.position > position
                    self.must(not (hidden and later), "T4", f"{node} shows {shown}, and {write} is open")
                self._shown[place] = max(position, self._shown.get(place, -1))
                self.counts["read"] += shown is not None

    # ---- users and ACLs ----

    def _entries(self, until: int) -> set[str]:
        """The ACLs as of an offset of their topic."""
        found: dict[str, bool] = {}
        for row in self.world.brokers.security.rows:
            entry = entry_of(row.key, row.value) if row.offset < until else None
            if isinstance(entry, Entry) and entry.section == "acls":
                found[entry.key] = entry.value is not None
        return {key for key, there in found.items() if there}

    def is_deleted(self, place: tuple[Any, ...]) -> bool:
        """Whether there is no such ACL."""
        key = to_key(AclBinding(*place))
        return key not in self._entries(self.world.brokers.security.end)

    def _check_changed(self, node: TxnNode, since: int, acl: AclBinding, there: bool) -> None:
        assert node.store is not None
        key, read = to_key(acl), node.store._next_offset
        made = False
        for row in self.world.brokers.security.rows:
            entry = entry_of(row.key, row.value) if since <= row.offset < read else None
            made = made or (
                isinstance(entry, Entry) and entry.key == key and (entry.value is not None) == there
            )
        made = made or (key in self._entries(read)) == there
        self.must(made, "S1", f"{node} acknowledges {acl}, and has read up to {read} only")
        self.counts["changes"] += 1

    def began(self, node: TxnNode, known: int) -> None:
        """A node serves; `known`: the end of the topic when it began to start."""
        assert node.store is not None
        read = node.store._next_offset
        self.must(read >= known, "S2", f"{node} serves, and has read up to {read} of {known}")
        self._check_followed(node)
        self.counts["began"] += 1

    def _check_followed(self, node: TxnNode) -> None:
        assert node.store is not None
        entries = self._entries(node.store._next_offset)
        same = set(node.store.entries("acls")) == entries
        same = same and {to_key(one) for one in node.authorizer.all()} == entries
        self.must(same, "S3", f"{node} knows {node.store.entries('acls')}, the topic has {entries}")

    def passed(self, node: TxnNode, message: Any) -> None:
        """A client's request goes to a broker."""
        self.must(type(message) in FORWARDED, "S4", f"{node} passes on {message!r}")
        name = getattr(message, "transactional_id", None)
        name = name or getattr(message, "v3_and_below_transactional_id", None)
        if name is None:
            return
        principal = Principal("User", f"p{name.rpartition('-')[2]}")
        kind = ResourceType.TRANSACTIONAL_ID
        allowed = node.authorizer.authorize(principal, "127.0.0.1", Operation.WRITE, kind, name)
        self.must(allowed, "S4", f"{node} passes on {message!r}, which {principal} may not do any more")
        self.counts["passed"] += 1

    # ---- nodes ----

    def died(self, node: Node) -> None:
        """See `Checks`."""
        super().died(node)
        for wire in list(cast("TxnNode", node).wires):
            self.world.hung_up(wire)

    # ---- after each step ----

    def after_step(self) -> None:
        """See `Checks`."""
        if self.world.steps % _LOOK_STEPS == 0:
            for node in self.world.txn_nodes:
                if node.store is not None and node.started:
                    self._check_followed(node)
        super().after_step()

    def _check_waiting(self) -> None:
        for node, wire in self._waiting():
            since_s = self.world.time_s - wire.since_s
            call = wire.call
            name = type(call.request).__name__ if call is not None else ""
            self.must(since_s < _WAITS_MAX_S, "G12", f"{node} does not answer {name} for {since_s:.0f} s")

    def _waiting(self) -> list[tuple[TxnNode, Wire]]:
        return [
            (node, wire)
            for node in self.world.txn_nodes
            if not node.paused
            for wire in node.wires
            if wire.call is not None and not wire.closed
        ]

    # ---- the end ----

    def complaint(self) -> str:
        """The first thing that is not at rest."""
        world = self.world
        if self._misplaced():
            return f"partitions {self._misplaced()} are not served as the map says"
        if not all(one.is_over for one in world.actors("is_over")):
            return "a producer does not come to an end"
        if not all(one.is_done for one in world.actors("is_done")):
            return "the officer does not come to an end"
        ends = [one for one in world.brokers.coordination.known.values() if one.ends]
        if ends:
            return f"{ends} are not over"
        for partition, node in enumerate(world.owners):
            open_ones = node.runtime.shards[partition].open_producers()
            if open_ones:
                return f"T6: {node} has offsets of {open_ones} that wait in partition {partition}"
            claimed = world.brokers.partitions[partition].owner
            if claimed is not None and claimed[0] is not node:
                return f"{node} does not know yet that {claimed[0]} had partition {partition} meanwhile"
            out = node.runtime.shards[partition]._core.out
            if out.durable < out.emitted:
                return f"{node} waits for an append to partition {partition}"
        for one in world.txn_nodes:
            if one.store is None or one.store._next_offset != world.brokers.security.end:
                return f"{one} has not read all users and ACLs"
        late = [wire for _, wire in self._waiting() if world.time_s - wire.since_s > _RESTS_MAX_S]
        return f"G12: {len(late)} requests wait" if late else ""

    def has_settled(self) -> bool:
        """See `Checks`."""
        return not self.complaint()

    def settled(self) -> None:
        """Raises `ViolationError`."""
        complaint = self.complaint()
        name = complaint[:2] if complaint.startswith("T6") else "G18"
        self.must(not complaint, name, f"it did not settle: {complaint}")
        self.raise_if_wrong()
        for place, writes in self._of_place.items():
            self._check_place(place, writes)
        for node in self.world.txn_nodes:
            self._check_followed(node)
        self.raise_if_wrong()

    def _check_place(self, place: Place, writes: list[Write]) -> None:
        partition = self.world.partition_of_group(place[0])
        node = self.world.owners[partition]
        group = node.runtime.shards[partition]._groups.get(place[0])
        value = None if group is None else group.offsets.get(place[1], {}).get(place[2])
        sure = [one.position for one in writes if one.acknowledged and self._counts(one)]
        least = max((position for position in sure if position is not None), default=-1)
        if value is None:
            self.must(least < 0, "T3", f"nothing is committed of {place}, and {least} counts")
            return
        found = self._writes[records.decode_offset_value(value).offset]
        self.must(found.place == place and self._counts(found), "T1", f"{found} does not count for {place}")
        position = -1 if found.position is None else found.position
        self.must(position >= least, "T2", f"{place} is {found}, and {least} counts")


def _acl(one: Any) -> AclBinding:
    """Of a request or an answer."""
    pattern = one.resource_pattern_type if hasattr(one, "resource_pattern_type") else one.pattern_type
    return AclBinding(
        ResourceType(one.resource_type),
        one.resource_name,
        PatternType(pattern),
        one.principal,
        one.host,
        Operation(one.operation),
        Permission(one.permission_type),
    )
