"""A1: no answer leaves before what it depends on is in the log, and none waits for anything else.

Seen from outside: when a request has been handed over, all records of its group that were written by then are
what its answer may show; it may leave when the last of these has landed. F1: a full store is not written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.journal.entries import JournalEntry, Outcome
from ringleader.coordinator.machine import Append
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from tests.simulation.facts import Memory
from tests.simulation.requests import Delete, Describe, EndTransaction, Fetch, ForgetTopic, ListGroups

if TYPE_CHECKING:
    from tests.simulation.partition import Partition
    from tests.simulation.world import Call

_GROUP_KINDS = (records.GROUP, records.RESERVED_GENERATION)
_OK = int(ErrorCode.NONE)
_DEPENDS_ON_NOTHING = frozenset(
    int(code)
    for code in (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
)
"""Answers about a request, or about the shard, whatever its groups are."""


class Durable:
    """Knows what is on its way to the log, for whom, and what has ever been in it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.must = memory.must
        self.members: set[str] = set()  # ids that have been in a durable record of their group
        self.assigned: set[tuple[str, int, str, bytes]] = set()  # group, generation, member, assignment
        self.generations: dict[str, int] = {}  # group -> the highest generation of its durable records
        self.floors: dict[str, int] = {}  # group -> the highest floor
        self.offsets: set[int] = set()  # committed offsets
        # Per partition: position that has landed; last position of a group's record, of an offset of it.
        self._landed: dict[int, int] = {}
        self._group: dict[int, dict[str, tuple[int, int]]] = {}
        self._offsets: dict[int, dict[str, int]] = {}
        self._keys: dict[str, set[bytes]] = {}  # group -> what it has, with what is on its way
        self._written: dict[bytes, tuple[int, int]] = {}  # key -> life and position that has landed last

    # ---- records ----

    def emitted(self, partition: Partition, append: Append) -> None:
        """Records go to the store."""
        world = self.memory.world
        self.must(not world.full, "F1", f"the store is full, and {append.records!r} is written")
        self._note(partition.number, append)

    def _note(self, number: int, append: Append) -> None:
        groups = self._group.setdefault(number, {})
        offsets = self._offsets.setdefault(number, {})
        for key, value in append.records:
            named = records.decode_key(key)
            if named is None:
                continue
            group_id = named[1]
            if named[0] not in _GROUP_KINDS:
                offsets[group_id] = append.position
            existed = bool(self._keys.setdefault(group_id, set()))
            if value is None:
                self._keys[group_id].discard(key)
            else:
                self._keys[group_id].add(key)
            # Of a group without record, members and given-out ids its offsets say whether it exists.
            group = self.memory.group(group_id)
            lives = group is not None and (group.state is not GroupState.EMPTY or bool(group.given_out))
            same = (lives or existed == bool(self._keys[group_id])) and named[0] not in _GROUP_KINDS
            if not same and groups.get(group_id, (0, 0))[0] != append.position:
                groups[group_id] = (append.position, self.memory.world.steps)
            if named[0] == records.GROUP and value is None:
                self.memory.tombstones[group_id] = self.memory.tombstones.get(group_id, 0) + 1

    def landed(self, number: int, life: int, append: Append) -> None:
        """Records are in the log."""
        partition = self.memory.world.partitions[number]
        if partition.life == life:
            self._landed[number] = append.position
        for key, value in append.records:
            named = records.decode_key(key)
            if named is None:
                continue
            kind, group_id = named[:2]
            self._written[key] = (life, append.position)
            if kind == records.GROUP:
                self._group_landed(group_id, value)
            elif kind == records.RESERVED_GENERATION and value is not None:
                floor = records.decode_reserved_value(value)
                self.floors[group_id] = max(self.floors.get(group_id, 0), floor)
            elif value is not None and kind == records.OFFSET:
                self.offsets.add(records.decode_offset_value(value).offset)

    def _group_landed(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            landed = self.memory.tombstones_landed
            landed[group_id] = landed.get(group_id, 0) + 1
            return
        record = records.decode_group_value(value)
        self.generations[group_id] = max(record.generation, self.generations.get(group_id, 0))
        for one in record.members:
            self.members.add(one.member_id)
            self.assigned.add((group_id, record.generation, one.member_id, one.assignment))

    def ended(self, number: int) -> None:
        """Another shard counts from the beginning."""
        self._landed.pop(number, None)
        self._group.pop(number, None)
        self._offsets.pop(number, None)

    def loaded(self, number: int) -> None:
        """The state that a new shard begins with."""
        world = self.memory.world
        memory = self.memory
        for group_id in {*memory.tombstones, *memory.tombstones_landed}:
            if world.partition(group_id).number == number:
                memory.tombstones[group_id] = memory.tombstones_landed.get(group_id, 0)
        for group_id in self._keys:
            if world.partition(group_id).number == number:
                self._keys[group_id] = set()
        for key, value in world.store.durable.items():
            named = records.decode_key(key)
            if value is not None and named is not None and world.partition(named[1]).number == number:
                self._keys.setdefault(named[1], set()).add(key)

    def since(self, number: int, group_id: str) -> int:
        """The step in which the group's record was written that is on its way; the next step if none is."""
        position, step = self._group.get(number, {}).get(group_id, (0, 0))
        return step if position > self._landed.get(number, 0) else self.memory.world.steps + 1

    # ---- answers ----

    def handed_over(self, call: Call, waits: bool) -> None:
        """The machine has the request: what its answer depends on is written by now."""
        partition = self.memory.world.partition_of(call.request)
        number = partition.number
        for append in partition.shard._out._content.appends:  # not drained yet
            self._note_early(number, append)
        groups, offsets = self._group.get(number, {}), self._offsets.get(number, {})
        request, facts = call.request, call.facts
        facts.life = partition.life
        if isinstance(request, EndTransaction | ForgetTopic):
            return
        if isinstance(request, ListGroups):
            facts.group_position = max((position for position, _ in groups.values()), default=0)
            return
        facts.group_position = groups.get(request.group_id, (0, 0))[0]
        facts.offsets_position = offsets.get(request.group_id, 0)
        if waits and isinstance(request, HeartbeatRequest | Describe):
            landed = self._landed.get(number, 0)
            group = self.memory.group(request.group_id)
            # Of a group without a record its offsets say whether it exists, deleted and made again meanwhile.
            of_offsets = group is not None and group.synced is None and facts.offsets_position > landed
            owed = facts.group_position > landed or of_offsets
            self.must(owed, "A1", f"{request!r} waits, and the record of its group is durable")

    def _note_early(self, number: int, append: Append) -> None:
        before = dict(self.memory.tombstones)
        self._note(number, append)
        self.memory.tombstones = before

    def answered(self, call: Call, response: Any) -> None:
        """An answer leaves."""
        request, facts = call.request, call.facts
        if isinstance(request, EndTransaction | ForgetTopic) or not facts.serving:
            return
        code = _code(request, response)
        if code in _DEPENDS_ON_NOTHING:
            return
        number = self.memory.world.partition_of(request).number
        landed = self._landed.get(number, 0)
        if not isinstance(request, Fetch):
            fine = isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest) and code == _OK
            fine = fine or facts.group_position <= landed
            self.must(fine, "A1", f"{request!r} was answered {response!r}, its group's record is on its way")
        writes = isinstance(
            request, OffsetCommitRequest | TxnOffsetCommitRequest | OffsetDeleteRequest | Delete
        )
        if isinstance(request, Fetch) or (writes and code == _OK):
            durable = facts.offsets_position <= landed
            self.must(durable, "A1", f"{request!r} was answered {response!r}, its offsets are on their way")
        if isinstance(request, Fetch):
            self._check_fetched(response)
        elif isinstance(request, Delete) and code == _OK:
            self._check_deleted(call)
        elif isinstance(request, JoinGroupRequest) and code == _OK:
            self._check_join(request, response)
        elif isinstance(request, SyncGroupRequest) and code == _OK:
            one = (request.group_id, request.generation_id, request.member_id, response.assignment)
            self.must(one in self.assigned, "O2", f"the assignment {one} is not durable")

    def _check_fetched(self, response: Any) -> None:
        for topic in response.topics:
            for one in topic.partitions:
                there = one.committed_offset == -1 or one.committed_offset in self.offsets
                self.must(there, "A1", f"{one.committed_offset} is shown, and is not durable")

    def _check_deleted(self, call: Call) -> None:
        """O8: nothing is left but what came later."""
        deleted = (call.facts.life, max(call.facts.offsets_position, call.facts.group_position))
        for key, value in self.memory.world.store.durable.items():
            named = records.decode_key(key)
            if value is not None and named is not None and named[1] == call.request.group_id:
                later = self._written[key] > deleted
                self.must(later, "O8", f"{call.request!r} was answered, its record {named} is there")

    def _check_join(self, request: JoinGroupRequest, response: Any) -> None:
        group_id, number, member_id = request.group_id, response.generation_id, response.member_id
        reserved = max(self.floors.get(group_id, 0), self.generations.get(group_id, 0))
        self.must(reserved >= number, "O2", f"generation {number} was answered, {reserved} is reserved")
        if request.group_instance_id is None:
            return
        # G9: a member that was given the place keeps it over a restart.
        value = self.memory.world.store.durable.get(records.group_key(group_id))
        stored = records.decode_group_value(value).members if value else []
        holders = [m.member_id for m in stored if m.group_instance_id == request.group_instance_id]
        kept = not holders or member_id in holders or member_id in self.members
        self.must(kept, "G9", f"{member_id} was told, durable is {holders}")

    def journal(self, entry: JournalEntry) -> None:
        """A row says what is durable."""
        generation = self.generations.get(entry.group_id, 0)
        if entry.outcome is Outcome.SUPERSEDED:
            generation = max(generation, self.floors.get(entry.group_id, 0))
        there = generation >= entry.generation
        self.must(there, "A1", f"the journal tells of generation {entry.generation}, durable is {generation}")

    # ---- when nothing is on its way ----

    def after_step(self) -> None:
        """Nobody waits for what will never come."""
        world = self.memory.world
        for one in world.partitions:
            if one.serving and world.store.is_idle(one.number):
                out = one.shard._out
                waits = [*out._waiting.values(), *out._in_flight]
                self.must(not waits, "G12", f"these wait, and nothing is on its way: {waits}")


def _code(request: Any, response: Any) -> int:
    """The error code of the answer; 0 if some part of it is a success."""
    if isinstance(response, list):
        return _OK
    if isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
        return min((one.error_code for topic in response.topics for one in topic.partitions), default=_OK)
    code: int = response.error_code
    return code
