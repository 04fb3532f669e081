"""The invariants of a simulated run, held after every step.

What is checked is what an outside observer can hold against the machine: requests, answers, the log, and a
look at the groups between two steps. Nothing here shares code with the machine but the record formats; what
the machine concludes about its members is worked out again (oracle.py).

Each check has the id of what it holds:

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
     one is durable before it is told. [check_members._check_instances, check_answers._check_replaced,
     _check_fenced]
G10  A static member goes by session, leave, removal or sync timer only. [check_members._gone]
G11  Who does not rejoin in time is out; nobody goes before its session ends, nobody who waits for us goes;
     sessions do end. [check_members._gone, _completed, _check_phases, _check_silence]
G12  Every parked request is answered or closed in time. [check_members._check_parked]
G13  The sync phase ends with the rebalance timeout, heartbeats or not. [check_members._check_phases]
G14  Given-out member ids are bounded, expire in time and not before, and are waited for until then.
     [check_members._check_pending, _completed]
G15  No more members join a generation than the limit. [check_members._completed, check_answers._check_code]
G16  A heartbeat is told exactly what its group and generation call for. [check_answers._check_code]
G17  A repeated request makes no second member and no extra generation. [check_members._come,
     check_answers._join_answered]
G18  After the faults every group with live members becomes stable in time, and stays. [check_end; settled]
G19  A static member that restarts unchanged in a stable group causes no rebalance.
     [check_answers._join_answered]
O1   A fetch sees the last acknowledged commit or a later one. [check_offsets._fetch_answered]
O2   Success is said only of what is durable: commits, assignments, generation numbers.
     [check_offsets._commit_answered, check_answers._sync_answered, _check_floor]
O3   The durable part of the live state is what the log says, after every record. [check_log]
O4   A compacted log, and one with records of unknown kinds, says the same. [check_log, store.crash]
O5   Nothing expires before its time, nor while it is read or in a transaction; a restart changes no clock.
     [check_offsets._check_expiry, restarted]
O6   A refused partition of a commit leaves no trace. [check_offsets.emitted, _commit_answered]
O7   Offsets of a transaction are seen after its commit only, never after its abort, and are called unstable
     until then. [check_offsets._check, transaction_ended, _fetch_answered]
O8   What was deleted stays deleted. [check_offsets._delete_answered, check_members.after_step]
O9   Offsets of a deleted topic go. [check_offsets.after_step]
D2   When a shard stops, everybody who waits is told, and it writes nothing more. [stopped, emitted]
D3   Nothing is served before the load ends. [check_answers._check_loading]
D6   No timer follows the wall clock. [wall_clock_set; world.check_clocks compares two whole runs]
J1   One journal row for each generation; its phases sum to its duration. [check_answers.journal]
P1   Nothing that happens raises in the machine. [world.simulate]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups.journal import JournalEntry
from ringleader.coordinator.groups.outbox import Append, Records
from ringleader.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from tests.simulation import check_end, check_log
from tests.simulation.check_answers import Answers
from tests.simulation.check_members import Members
from tests.simulation.check_offsets import Offsets
from tests.simulation.facts import Memory
from tests.simulation.oracle import expected

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

_QUEUED_MS = 15_000
"""Longer than any request waits behind a deletion."""
STAY_MS = 15_000
"""G18: a group that is stable for so long stays so."""


class Checks:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.memory = memory = Memory(world)
        self.answers = Answers(memory)
        self.members = Members(memory)
        self.offsets = Offsets(memory)
        self.log = check_log.Log(memory)
        self._offset = 0
        self._stopping = False
        self._settled: dict[str, tuple[int, int]] = {}  # group -> generation, since when

    def fresh_offset(self) -> int:
        """Every committed offset is used once, so that a fetch tells which commit it saw."""
        self._offset += 1
        return self._offset

    # ---- requests and answers ----

    def before(self, call: Call) -> None:
        """A request is about to be handed over."""
        world, memory, facts = self.world, self.memory, call.facts
        facts.serving = world.serving
        group = memory.groups().get(call.request.group_id)
        if group is not None:
            facts.state, facts.generation = group.state, group.generation
            facts.gated = bool(group.exclusive or group.blocked)
        if world.serving and not facts.gated:
            facts.code = expected(call.request, call.api_version, group, world.settings)
        if isinstance(call.request, JoinGroupRequest | LeaveGroupRequest):
            memory.open_calls.append(call)
            life = memory.life(call.request.group_id)
            life.disturbed += 1
            facts.disturbed = life.disturbed
        self.answers.before(call, group)
        self.members.before(call, group)
        self.offsets.before(call)

    def answered(self, call: Call, response: Any) -> None:
        """An answer leaves; None: a closed connection."""
        if response is None or self._stopping:
            return
        self.answers.answered(call, response)
        self.members.answered(call, response)
        self.offsets.answered(call, response)

    def emitted(self, appends: Sequence[Append]) -> None:
        """The machine wants records in the log."""
        self.memory.must(not (self._stopping and appends), "D2", "the shard is gone, and writes")
        for append in appends:
            self.offsets.emitted(append.records)

    def landed(self, content: Records) -> None:
        """Records are in the log."""
        self.offsets.landed(content)

    def journal(self, entry: JournalEntry) -> None:
        """A row of the journal."""
        self.answers.journal(entry)

    def look(self, group_id: str) -> None:
        """An operator describes a group and lists all."""
        self.answers.look(group_id)

    def topic_deleted(self, topic: str) -> None:
        """A topic is about to be deleted."""
        self.offsets.topic_deleted(topic)

    # ---- time ----

    def after_step(self) -> None:
        """Everything that must hold between two steps."""
        if not self.world.serving:
            return
        memory = self.memory
        groups = memory.groups()
        for group_id in [one for one in memory.lives if one not in groups]:
            del memory.lives[group_id]  # deleted: what comes next starts clean
        self.members.after_step(groups)
        self.offsets.after_step()
        self.log.after_step(groups)
        step = self.world.steps
        memory.open_calls = [
            one
            for one in memory.open_calls
            if one.answered_step == step or (one.answered_step < 0 and self._may_act(one))
        ]

    def _may_act(self, call: Call) -> bool:
        """Without its connection it is never answered, but may wait behind a deletion."""
        return not call.closed or self.world.now_ms - call.sent_ms < _QUEUED_MS

    def timers(self) -> list[int]:
        """When the machine's timers are due."""
        due = [self.world.shard.next_deadline() or -1]
        for group in self.memory.groups().values():
            due += [group.join_deadline.due_ms, group.sync_deadline.due_ms, group.save_deadline.due_ms]
            due += [one.due_ms for one in (*group.members.values(), *group.pending.values())]
        return due

    def wall_clock_set(self, before: list[int]) -> None:
        """The machine was told another Unix time."""
        same = self.timers() == before and not self.world.shard.dirty
        self.memory.must(same, "D6", "setting the wall clock moved a timer")

    # ---- the process ----

    def stopping(self) -> None:
        """The process stops in good order: whoever waits is told to go elsewhere."""
        self._stopping = True

    def stopped(self) -> None:
        """It has stopped."""
        self._stopping = False
        waiting = [call.request for call in self.world.calls]
        self.memory.must(not waiting, "D2", f"the shard is gone and did not answer {waiting}")

    def crashed(self) -> None:
        """The process is gone; what was only live is gone with it."""
        self.memory.open_calls.clear()
        self.members.crashed()
        self.offsets.crashed()

    def restarted(self) -> None:
        """Another process serves."""
        memory = self.memory
        groups = memory.groups()
        for group_id in [one for one in memory.lives if one not in groups]:
            del memory.lives[group_id]
        self.members.restarted(groups)
        self.offsets.restarted(groups)

    # ---- the end ----

    def has_settled(self) -> bool:
        """Whether every group has been stable, in one generation, for a while."""
        memory, now_ms = self.memory, self.world.now_ms
        for group_id in check_end.groups(memory):
            group = memory.groups().get(group_id)
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
        return all(stable)

    def settled(self) -> None:
        """G18: every group with live members is stable, has just these, and stays so."""
        for group_id in check_end.groups(self.memory):
            complaint = check_end.complaint(self.memory, group_id)
            self.memory.must(not complaint, "G18", f"{group_id} did not settle: {complaint}")
        self.memory.must(self.has_settled(), "G18", f"generations go on: {self._settled}")
