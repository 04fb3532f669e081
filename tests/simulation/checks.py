"""The invariants of a simulated run, held after every step.

The checks use what an outside observer can hold against the machine: requests, answers, the log, and a look
at the groups between two steps. Nothing here shares code with the machine but the record formats; what
the machine concludes about its members is worked out again (oracle.py).

Each check has the id of what it holds:

A1   No answer and no row of the journal leaves before what it depends on is in the log; what is durable waits
     for nothing. [check_durable]
F1   While the store is full nothing is written, and nothing that need not write is refused. [check_durable,
     check_answers._check_code]
M1   What a shard keeps in memory stays within its bounds. [check_memory]
R1   A shard that is loaded again does not touch the others. [undisturbed]
X1   Every exception of the machine is reported. [after_step]
G1   One leader for each generation; only it gets the member list. [check_answers._check_leader]
G2   Generations grow by one for each join phase; a number never means another member set, restarts
     included. [check_members._completed, check_answers._listed]
G3   The leader's list is who was answered, and static members that were kept. [check_answers._check_leader,
     check_members._completed]
G4   The protocol is common to all and wins the vote; ties always go the same way. [check_members._check_vote]
G5   SyncGroup returns what the leader sent for this member in this generation. [check_answers._sync_answered]
G6   Bytes pass through unchanged: metadata in lists and descriptions. [check_answers._check_bytes, look]
G7   No partition goes to two members of a generation, unless the leader said so.
     [check_answers._check_owners]
G8   A commit succeeds only for a current member, or from outside into an empty group.
     [check_answers._check_code, by oracle.py]
G9   One member id for each instance id. A replaced one never comes back and succeeds with nothing; the new
     one is durable before an answer has it. [check_members._check_instances, check_durable._check_join,
     check_answers._check_fenced]
G10  A static member goes by session, leave, removal or sync timer only. [check_members._removed]
G11  Who does not rejoin in time is out; nobody goes before its session ends, nobody who waits for us goes;
     sessions do end. [check_members._removed, _completed, _check_phases, _check_silence]
G12  Every parked request is answered or closed in time. [check_members._check_parked]
G13  The sync phase ends with the rebalance timeout, heartbeats or not. [check_members._check_phases]
G14  Given-out member ids are bounded, expire in time and not before, and are waited for until then.
     [check_members._check_pending, _completed]
G15  No more members join a generation than the limit. [check_members._completed, check_answers._check_code]
G16  A heartbeat's answer is exactly what its group and generation call for. [check_answers._check_code]
G17  A repeated request makes no second member and no extra generation. [check_members._come,
     check_answers._join_answered]
G18  After the faults every group with live members becomes stable in time, and stays. [check_end; settled]
G19  A static member that restarts unchanged in a stable group causes no rebalance.
     [check_answers._join_answered]
O1   A fetch sees the last acknowledged commit or a later one. [check_offsets._fetch_answered]
O2   Success is said only of what is durable: commits, assignments, generation numbers.
     [check_offsets._commit_answered, check_durable]
O3   The durable part of the live state is what the log says, after every record. [check_log]
O4   A compacted log, and one with records of unknown kinds, says the same. [check_log, store.crash]
O5   Nothing expires before its time, in true time, nor while it is read or in a transaction; a restart
     changes no clock. [check_offsets._check_expiry, restarted]
O6   A refused partition of a commit leaves no trace. [check_offsets.emitted, _commit_answered]
O7   Offsets of a transaction are seen after its commit only, never after its abort, and are called unstable
     until then. [check_offsets._check, transaction_ended, _fetch_answered]
O8   What was deleted stays deleted. [check_offsets._delete_answered, check_members.after_step]
O9   Offsets of a deleted topic go. [check_offsets.topic_deleted]
D2   A shard that stops does and says nothing more. [unloaded, check_answers._check_unloaded]
D3   Nothing is served before the load ends. [check_answers._check_loading]
D6   No timer follows the wall clock. [wall_clock_set; world.check_clocks compares two whole runs]
J1   One journal row for each generation; its phases sum to its duration. [check_answers.journal]
P1   Nothing that happens raises in the machine. [world.simulate]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.coordinator.machine import Append, Notice
from ringleader.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from tests.simulation import check_end, check_log, check_memory
from tests.simulation.check_answers import Answers
from tests.simulation.check_durable import Durable
from tests.simulation.check_members import Members
from tests.simulation.check_offsets import Offsets
from tests.simulation.facts import Memory
from tests.simulation.oracle import expected
from tests.simulation.requests import EndTransaction, ForgetTopic, ListGroups

if TYPE_CHECKING:
    from tests.simulation.partition import Partition
    from tests.simulation.world import Call, World

_QUEUED_MS = 15_000
"""Longer than the effects of a request can take whose connection is gone."""
STAY_MS = 15_000
"""G18: a group that is stable for so long stays so."""


class Checks:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.memory = memory = Memory(world)
        self.durable = Durable(memory)
        self.answers = Answers(memory)
        self.members = Members(memory, self.durable)
        self.offsets = Offsets(memory)
        self.log = check_log.Log(memory)
        self._offset = 0
        self._settled: dict[str, tuple[int, int]] = {}  # group -> generation, since when

    def fresh_offset(self) -> int:
        """Every committed offset is used once, so that a fetch tells which commit it saw."""
        self._offset += 1
        return self._offset

    # ---- requests and answers ----

    def before(self, call: Call) -> None:
        """A request is about to be handed over."""
        world, memory, facts = self.world, self.memory, call.facts
        partition = world.partition_of(call.request)
        facts.serving = partition.serving
        facts.counted_bytes = world.memory.counted
        facts.unloaded = partition.shard.phase.value == "unloaded"
        if isinstance(call.request, ListGroups | EndTransaction | ForgetTopic):
            return
        group = memory.group(call.request.group_id)
        if group is not None:
            facts.state, facts.generation = group.state, group.generation
        if facts.serving:
            facts.code = expected(call, group, world.settings, world.full)
        if isinstance(call.request, JoinGroupRequest | LeaveGroupRequest):
            memory.open_calls.append(call)
            if facts.serving:
                life = memory.life(call.request.group_id)
                life.disturbed += 1
                facts.disturbed = life.disturbed
        self.answers.before(call, group)
        self.members.before(call, group)
        self.offsets.before(call)

    def handed_over(self, call: Call, waits: bool) -> None:
        """The machine has it."""
        group = self.memory.group(call.request.group_id) if hasattr(call.request, "group_id") else None
        call.facts.emptied = group is not None and group.state is GroupState.EMPTY
        self.durable.handed_over(call, waits)
        check_memory.handed_over(self.memory, call.facts.counted_bytes)

    def answered(self, call: Call, response: Any) -> None:
        """An answer leaves; None: a closed connection."""
        if response is None:
            return
        self.durable.answered(call, response)
        self.answers.answered(call, response)
        self.members.answered(call, response)
        self.offsets.answered(call, response)

    def emitted(self, partition: Partition, append: Append) -> None:
        """The machine wants records in the log."""
        self.durable.emitted(partition, append)
        self.offsets.emitted(append.records)

    def landed(self, number: int, life: int, append: Append) -> None:
        """Records are in the log."""
        self.durable.landed(number, life, append)
        self.offsets.landed(append.records)

    def event(self, event: Any) -> None:
        """A row of the journal, or a notice."""
        if isinstance(event, JournalEntry):
            self.durable.journal(event)
            self.answers.journal(event)
        elif isinstance(event, Notice) and event.expected:  # else of a member that was refused
            there = event.member_id in self.durable.members
            self.memory.must(there, "A1", f"{event} tells of a member that is not durable")

    def topic_goes(self, topic: str) -> None:
        """A topic is about to be deleted."""
        self.offsets.topic_goes(topic)

    def topic_deleted(self, topic: str) -> None:
        """Its offsets are gone."""
        self.offsets.topic_deleted(topic)

    # ---- time ----

    def after_step(self) -> None:
        """Everything that must hold between two steps."""
        memory, world = self.memory, self.world
        thrown, reported = world.sabotage.thrown, world.reported
        memory.must(thrown == reported, "X1", f"{thrown} exceptions, {reported} of them reported")
        groups = memory.groups()
        for group_id in [one for one in memory.lives if one not in groups]:
            if world.partition(group_id).serving:
                del memory.lives[group_id]  # deleted: what comes next starts clean
        self.members.after_step(groups)
        self.durable.after_step()
        self.log.after_step(groups)
        check_memory.after_step(memory)
        memory.open_calls = [
            one
            for one in memory.open_calls
            if one.answered_step == world.steps or (one.answered_step < 0 and self._may_act(one))
        ]

    def _may_act(self, call: Call) -> bool:
        """Without its connection it is never answered."""
        return not call.closed or self.world.now_ms - call.sent_ms < _QUEUED_MS

    def timers(self, partition: Partition) -> list[int]:
        """When a shard's timers are due."""
        return check_memory.timers(partition)

    def wall_clock_set(self, partition: Partition, before: list[int]) -> None:
        """The machine was given another Unix time."""
        same = self.timers(partition) == before and not partition.shard.dirty
        self.memory.must(same, "D6", "setting the wall clock moved a timer")

    # ---- lives of shards ----

    def others(self, partition: Partition) -> list[tuple[Partition, dict[str, Any]]]:
        """The other partitions, before something happens to this one."""
        return [(one, check_memory.picture(one)) for one in self.world.partitions if one is not partition]

    def undisturbed(self, others: list[tuple[Partition, dict[str, Any]]]) -> None:
        """R1."""
        for one, before in others:
            same = check_memory.picture(one) == before
            self.memory.must(same, "R1", f"partition {one.number} noticed what happened to another")

    def unloaded(self, partition: Partition) -> None:
        """D2: a shard that moved away wants nothing any more."""
        shard = partition.shard
        quiet = shard.next_deadline() is None and not shard.dirty and not shard._groups
        self.memory.must(quiet, "D2", "the shard is unloaded, and has something to do")
        self.ended(partition)

    def ended(self, partition: Partition) -> None:
        """The shard is gone; what was only live is gone with it."""
        memory = self.memory
        memory.open_calls = [one for one in memory.open_calls if self._of(one) is not partition]
        self.durable.ended(partition.number)
        self.members.ended(partition)

    def _of(self, call: Call) -> Partition:
        return self.world.partition_of(call.request)

    def loaded(self, partition: Partition) -> None:
        """Another shard serves."""
        groups = partition.shard._groups
        memory = self.memory
        for group_id in [one for one in memory.lives if self.world.partition(one) is partition]:
            if group_id not in groups:
                del memory.lives[group_id]
        self.durable.loaded(partition.number)
        self.members.loaded(groups)
        self.offsets.loaded(partition)

    # ---- the end ----

    def has_settled(self) -> bool:
        """Whether every group has been stable, in one generation, for a while."""
        memory, now_ms = self.memory, self.world.now_ms
        for group_id in check_end.groups(memory):
            group = memory.group(group_id)
            if group is None or check_end.complaint(memory, group_id):
                self._settled.pop(group_id, None)
                continue
            known = self._settled.get(group_id)
            if known is None or known[0] != group.generation:
                self._settled[group_id] = (group.generation, now_ms)
        stable = [
            one in self._settled and now_ms - self._settled[one][1] >= STAY_MS
            for one in check_end.groups(memory)
        ]
        return all(stable) and not self.world.deleting

    def settled(self) -> None:
        """G18: every group with live members is stable, has just these, and stays so."""
        memory = self.memory
        for group_id in check_end.groups(memory):
            complaint = check_end.complaint(memory, group_id)
            memory.must(not complaint, "G18", f"{group_id} did not settle: {complaint}")
            life, group = memory.life(group_id), memory.group(group_id)
            recorded = life.crashed_since or (group is not None and life.last_row == group.generation)
            memory.must(recorded, "J1", f"no row for the last generation of {group_id}")
        memory.must(not self.world.deleting, "O9", f"{self.world.deleting} are not gone yet")
        memory.must(self.has_settled(), "G18", f"generations go on: {self._settled}")
